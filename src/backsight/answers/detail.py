"""How much of an answer is shown: in brief and within a ceiling of tokens, or in full.

`detail` belongs to the surfaces: an operation has one result, and its brief form is a rendering of it. An operation
that has an argument `detail` of its own receives it as well; if `brief` is not among its values, it says what the
result contains and not how the result is shown.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

from backsight.answers.brief import REMEDY, Brief
from backsight.answers.layouts import brief_of
from backsight.coercions import CallNotes, choice_of, read_value
from backsight.core.errors import Invalid, did_you_mean
from backsight.operation import Operation

Detail = Literal["brief", "full"]
DETAILS: tuple[Detail, ...] = get_args(Detail)

CEILING = 2_000
CEILINGS = {"recall_memories": 1_200, "list_trades": 1_000, "get_strategy_performance": 500}
"""Tokens of a brief answer to a model at the default limit, where they differ from `CEILING`."""
REMEDY_OF_CONTENTS = "ask for one deployment or strategy; list_trades and break_down have the rest"
"""Where `detail` says what a result contains, `full` does not show all of it."""


def has_own_detail(operation: Operation) -> bool:
    """Whether `detail` is an argument of the operation itself."""
    return "detail" in operation.arguments.model_fields


def split_detail(operation: Operation, arguments: object, *, default: Detail) -> tuple[Detail, object]:
    """The detail that a caller wants, and the arguments of the operation."""
    if not isinstance(arguments, Mapping) or "detail" not in arguments:
        return default, arguments
    detail = choice_of(arguments["detail"], Detail)
    if has_own_detail(operation):
        return (detail if detail in DETAILS and _is_about_showing(operation) else default), arguments
    return checked_detail(detail, default=default), {key: arguments[key] for key in arguments if key != "detail"}


def _is_about_showing(operation: Operation) -> bool:
    """Whether the operation's own `detail` has the values of the surfaces."""
    return "brief" in str(operation.input_schema["properties"]["detail"])


def checked_detail(detail: Any, *, default: Detail) -> Detail:
    """The detail, or the default if it is left out; `Invalid` if it is not known."""
    if isinstance(detail, str):
        detail = choice_of(detail, Detail) if detail.strip() else None
    if detail is None:
        return default
    if detail not in DETAILS:
        raise Invalid(f"{str(detail)[:40]!r} is not known; {did_you_mean(str(detail), DETAILS)}", field="detail")
    known: Detail = detail
    return known


def brief_answer(operation: Operation, arguments: object, answer: Any) -> Brief:
    """The brief form of an answer, within the tokens that it may take."""
    remedy = REMEDY_OF_CONTENTS if has_own_detail(operation) and not _is_about_showing(operation) else REMEDY
    return brief_of(answer).within(ceiling_of(operation, arguments), remedy=remedy)


def ceiling_of(operation: Operation, arguments: object) -> int:
    """The tokens that a brief answer may take; with a limit above the default, in proportion more."""
    ceiling = CEILINGS.get(operation.name, CEILING)
    contents = operation.arguments.model_fields.get("detail")
    if (
        contents is not None
        and isinstance(arguments, Mapping)
        and arguments.get("detail")
        not in (
            None,
            contents.default,
        )
    ):
        return max(ceiling, CEILING)  # more was asked for than the default
    limit = operation.arguments.model_fields.get("limit")
    wanted = read_value(arguments.get("limit"), int, "limit", CallNotes()) if isinstance(arguments, Mapping) else None
    if limit is None or not isinstance(limit.default, int) or not isinstance(wanted, int):
        return ceiling
    return max(ceiling, ceiling * wanted // limit.default)
