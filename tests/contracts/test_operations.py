"""Every operation keeps the shape that the surfaces are made from."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import typing

import pytest

import backsight.ops
from backsight.memory import OPERATIONS, Memory
from backsight.operation import Operation, operation_of
from parity.arguments import EVERY_ARGUMENT
from parity.test_parity import SCENARIO

ALL = list(OPERATIONS.values())


def a_call(operation: Operation) -> dict[str, typing.Any]:
    """The required arguments of an operation, as a call of the parity scenario gives them."""
    required = [name for name, field in operation.arguments.model_fields.items() if field.is_required()]
    calls = [more for name, _, more in EVERY_ARGUMENT if name == operation.name]
    calls += [more for name, more in SCENARIO if name == operation.name]
    values = {name: next((call[name] for call in calls if name in call), "an-id") for name in required}
    operation.check(values)
    return values


def marked() -> dict[str, Operation]:
    """Every function in `ops` that is marked as an operation."""
    modules = [
        importlib.import_module(f"backsight.ops.{module.name}")
        for module in pkgutil.iter_modules(backsight.ops.__path__)
    ]
    return {
        operation.name: operation
        for module in modules
        for function in vars(module).values()
        if inspect.isfunction(function) and (operation := operation_of(function)) is not None
    }


def test_every_marked_function_is_listed_in_memory() -> None:
    assert marked() == OPERATIONS


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_an_operation_takes_its_arguments_by_name_each_with_a_meaning(operation: Operation) -> None:
    context, *arguments = inspect.signature(operation.function).parameters.values()
    assert context.name == "ctx"
    for argument in arguments:
        assert argument.kind is argument.KEYWORD_ONLY
        assert str(operation.arguments.model_fields[argument.name].description).endswith(".")


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_an_operation_answers_with_a_frozen_dataclass(operation: Operation) -> None:
    answer = typing.get_type_hints(operation.function)["return"]
    assert dataclasses.is_dataclass(answer)
    assert vars(answer)["__dataclass_params__"].frozen


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_an_operation_says_in_one_sentence_what_it_does(operation: Operation) -> None:
    assert re.fullmatch(r"[A-Z](?:[^.]|\.\b)*\.", operation.summary), operation.summary


@pytest.mark.parametrize("operation", [each for each in ALL if each.noun not in ("admin",)], ids=lambda each: each.name)
def test_every_read_takes_both_instants(operation: Operation) -> None:
    if operation.kind == "query":
        instants: dict[str, set[str]] = {
            "open_tick": {"at", "seen_at"},
            "explain_recall": {"recall"},  # which holds those of the recall
        }
        assert instants.get(operation.name, {"as_of", "seen_at"}) <= set(operation.arguments.model_fields)


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_null_for_an_optional_argument_leaves_it_out(operation: Operation) -> None:
    call = a_call(operation)
    left_out = operation.check(call)
    optional = [name for name, field in operation.arguments.model_fields.items() if not field.is_required()]
    for name in optional:
        assert operation.check({**call, name: None}) == left_out
    assert operation.check({**call, **dict.fromkeys(optional)}) == left_out


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_the_schema_allows_null_for_every_optional_argument(operation: Operation) -> None:
    schema = operation.input_schema
    for name, argument in schema["properties"].items():
        allowed = {"type": "null"} in argument.get("anyOf", [])
        assert allowed == (name not in schema.get("required", [])), name


def test_null_leaves_out_a_field_of_an_object() -> None:
    check = OPERATIONS["open_tick"].check
    tick = {"deployment": "d", "at": "2026-06-04T10:00:00Z"}
    portfolio = {"at": "2026-06-04T10:00:00Z", "equity": 1.0, "cash": 1.0}
    whole = check({**tick, "before": {"portfolio": portfolio, "marks": {}}})
    nulls = {"positions": None, "open_orders": None, "account": None}
    assert check({**tick, "before": {"portfolio": {**portfolio, **nulls}, "fills": None, "marks": {}}}) == whole


def test_the_methods_of_memory_are_typed() -> None:
    assert typing.get_type_hints(Memory.remember_trade)["return"].__name__ == "RememberedTrade"
    assert inspect.signature(Memory.recall_memories).parameters["limit"].default == 10
