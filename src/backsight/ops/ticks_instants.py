"""The instants at which something changed, over which a page or an agent steps through the past."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from backsight.arguments import AsOf, Instant, Key, SeenAt
from backsight.core.text.counts import count_of
from backsight.operation import query
from backsight.services.context import Context
from backsight.services.deployments import deployment_at
from backsight.services.paging import instant_of, microseconds

if TYPE_CHECKING:
    from backsight.store.change_instants import Micros

ChangeKind = Literal["tick", "close", "lessons", "plan", "equity"]
InstantChoice = Literal["even", "first", "last"]
MostInstants = Annotated[int, Field(strict=True, ge=1, le=1_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeInstant:
    """An instant, and what became known at it."""

    at: datetime
    kinds: tuple[ChangeKind, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstantList:
    """Instants at which something became known, oldest first."""

    deployment: str | None
    instants: tuple[ChangeInstant, ...]
    total: int
    """The number of instants from which these were chosen."""
    message: str
    as_of: datetime


@query(audience=("coach",))
def list_instants(
    ctx: Context,
    *,
    deployment: Annotated[Key | None, "Only changes of this deployment, by name or id."] = None,
    since: Annotated[Instant | None, "Only instants at or after this one."] = None,
    until: Annotated[Instant | None, "Only instants before this one."] = None,
    choose: Annotated[
        InstantChoice, "If there are more than `limit`: evenly spread ones, the first ones, or the last ones."
    ] = "even",
    limit: Annotated[MostInstants, "The most instants to return."] = 200,
    as_of: AsOf = None,
    seen_at: SeenAt = None,
) -> InstantList:
    """List the instants at which something changed: ticks, closes, lessons, plans and readings of equity.

    Any of them is a good `as_of`: between two neighbours nothing became known.
    """
    import numpy as np

    from backsight.store.change_instants import change_instants

    with ctx.reading() as connection:
        view = ctx.view(connection, as_of, seen_at)
        target = None if deployment is None else deployment_at(view, deployment)
        by_kind = change_instants(view, ctx.database.trade_images.at(view), target)
    every = np.unique(np.concatenate(list(by_kind.values())))
    first = 0 if since is None else np.searchsorted(every, microseconds(since))
    end = len(every) if until is None else np.searchsorted(every, microseconds(until))
    within_period = every[first:end]
    chosen = within_period[_chosen_places(len(within_period), limit, choose)]
    instants = tuple(
        ChangeInstant(
            at=instant_of(each), kinds=tuple(kind for kind, instants in by_kind.items() if _contains(instants, each))
        )
        for each in chosen.tolist()
    )
    return InstantList(
        deployment=None if target is None else target.name,
        instants=instants,
        total=len(within_period),
        message=_message(len(instants), len(within_period), choose),
        as_of=view.as_of,
    )


def _chosen_places(count: int, limit: int, choose: InstantChoice) -> list[int]:
    """The places of at most `limit` of `count` items, in order.

    >>> _chosen_places(9, 3, "even"), _chosen_places(9, 3, "first"), _chosen_places(9, 3, "last")
    ([0, 4, 8], [0, 1, 2], [6, 7, 8])
    """
    if count <= limit or choose == "first":
        return list(range(min(count, limit)))
    if choose == "last" or limit == 1:
        return list(range(count - limit, count))
    return [place * (count - 1) // (limit - 1) for place in range(limit)]


def _contains(instants: "Micros", at: int) -> bool:
    place = int(instants.searchsorted(at))
    return place < len(instants) and int(instants[place]) == at


def _message(shown: int, total: int, choose: InstantChoice) -> str:
    if not total:
        return "Nothing had changed by then; ticks, remember_trade and imports make changes."
    if shown == total:
        return f"{count_of(total, 'instant')} at which something changed."
    order = {"even": "evenly spread", "first": "the first ones", "last": "the last ones"}[choose]
    return f"{shown} of {count_of(total, 'instant')} at which something changed, {order}."
