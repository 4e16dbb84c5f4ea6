"""One tick's facts: what was reported, what that leaves to be inferred, and the round trips that follow from both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from backsight.core.market import Bar
from backsight.core.orders import BrokerSnapshot
from backsight.core.portfolio import Position
from backsight.core.trades.fill import Fill
from backsight.core.trades.fold import FLAT_SHARE, RoundTrip, fold, open_trips
from backsight.core.trades.infer import Stamp, Touch, first_touch, infer_fills

AT_LEVEL = 0.001
"""A price within this share of a level is at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One of the two looks that a tick takes at the broker."""

    stamp: Stamp
    snapshot: BrokerSnapshot
    reported: tuple[Fill, ...]
    """Those of its fills that the ledger does not have yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What a tick changes in the ledger."""

    added: tuple[Fill, ...]
    restated: tuple[Fill, ...]
    """Inferred ones of which a late report explains a part."""
    withdrawn: tuple[Fill, ...]
    """Inferred ones that late reports explain whole."""
    trips: tuple[RoundTrip, ...]


def settle(
    held: Iterable[Fill],
    since: Phase,
    now: Phase,
    *,
    last_seen: Mapping[str, Position],
    bars: Mapping[str, Sequence[Bar]],
) -> Settled:
    """The ledger after a tick, from the fills that it held of the positions concerned.

    First what happened since the last tick: the ledger is led to the broker's snapshot `since`. Then what the tick
    did: from there to `now`. `last_seen` and `bars` are as `infer_fills` takes them.
    """
    held = list(held)
    reported = _touched(open_trips(fold(held)), since.reported, last_seen=last_seen, bars=bars)
    told = explained([fill for fill in held if fill.kind == "inferred"], reported)
    gone = {fill.id for fill in (*told.withdrawn, *told.restated)}
    known = [*(fill for fill in held if fill.id not in gone), *told.restated, *told.reported]
    missed = infer_fills(
        open_trips(fold(known)),
        since.snapshot.portfolio,
        stamp=since.stamp,
        last_seen=last_seen,
        bars=bars,
        marks=since.snapshot.marks,
    )
    known += [*missed, *now.reported]
    done = infer_fills(
        open_trips(fold(known)),
        now.snapshot.portfolio,
        stamp=now.stamp,
        last_seen=since.snapshot.portfolio.by_key(),
        bars={},
        marks=now.snapshot.marks,
    )
    return Settled(
        added=(*told.reported, *missed, *now.reported, *done),
        restated=told.restated,
        withdrawn=told.withdrawn,
        trips=tuple(fold([*known, *done])),
    )


def _touched(
    ledger: Mapping[str, RoundTrip],
    reported: Sequence[Fill],
    *,
    last_seen: Mapping[str, Position],
    bars: Mapping[str, Sequence[Bar]],
) -> list[Fill]:
    """The reports, those without a reason with the one that the bars give: the level that they reached and it is at."""
    told: list[Fill] = []
    for fill in reported:
        trip = ledger.get(fill.position_key)
        if fill.reason is None and trip is not None and fill.quantity * trip.signed_size < 0:
            touch = first_touch(trip, last_seen.get(fill.position_key), bars.get(fill.symbol, ()))
            if touch is not None and fill.price is not None and _is_at(touch, fill.price, trip):
                fill = replace(fill, reason=touch.reason)
        told.append(fill)
    return told


def _is_at(touch: Touch, price: float, trip: RoundTrip) -> bool:
    """Whether a price is that of a level or beyond it."""
    against = touch.source != "target"
    way = 1.0 if (trip.direction == "long") != against else -1.0
    return way * (price - touch.price) >= -AT_LEVEL * abs(touch.price)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """What late reports make of inferred fills."""

    reported: tuple[Fill, ...]
    """The reports, with the decision and the reason of what they explain."""
    restated: tuple[Fill, ...]
    withdrawn: tuple[Fill, ...]


def explained(inferred: Sequence[Fill], reported: Sequence[Fill]) -> Explained:
    """The inferred fills that reports explain, and what is left of them.

    A position is often seen before its execution is reported. A report explains an inferred fill of its position and
    side when it falls between the two snapshots that the inference lies between. The reported price then stands, the
    trade keeps its name, and the rest of a fill explained in part is at the price that leaves its whole cost unchanged.
    """
    left = {fill.id: fill for fill in sorted(inferred, key=lambda each: each.order)}
    named: set[str] = set()
    reports: list[Fill] = []
    for report in sorted(reported, key=lambda each: each.order):
        rest, first = abs(report.quantity), None
        for guess in [each for each in left.values() if rest > 0 and _explains(report, each)]:
            taken = min(rest, abs(guess.quantity))
            first = first or guess
            rest = 0.0 if rest - taken <= FLAT_SHARE * rest else rest - taken
            left[guess.id] = _rest_of(guess, report, taken)
        reports.append(report if first is None else _in_place_of(first, report, named=first.name not in named))
        named |= {first.name} if first is not None else set()
    was = {fill.id: fill for fill in inferred}
    return Explained(
        reported=tuple(reports),
        restated=tuple(fill for fill in left.values() if fill.quantity != 0 and fill != was[fill.id]),
        withdrawn=tuple(was[fill.id] for fill in left.values() if fill.quantity == 0),
    )


def _explains(report: Fill, guess: Fill) -> bool:
    same = report.position_key == guess.position_key and report.quantity * guess.quantity > 0
    if not (report.executed and same) or guess.latest_at is None or report.at > guess.latest_at:
        return False
    return guess.earliest_at is None or report.at > guess.earliest_at or report.at == guess.latest_at


def _rest_of(guess: Fill, report: Fill, taken: float) -> Fill:
    size = abs(guess.quantity)
    rest = size - taken
    if rest <= FLAT_SHARE * size or guess.price is None or report.price is None:
        return replace(guess, quantity=0.0)
    price = (guess.price * size - report.price * taken) / rest
    way = 1.0 if guess.quantity > 0 else -1.0
    return replace(guess, quantity=way * rest, price=price if price > 0 else guess.price)


def _in_place_of(guess: Fill, report: Fill, *, named: bool) -> Fill:
    return replace(
        report,
        decision_id=report.decision_id or guess.decision_id,
        reason=report.reason or guess.reason,
        replaces=guess.name if named else None,
    )


def from_first(fills: Iterable[Fill], *, first_fill_id: str, size: float) -> list[Fill]:
    """The fills of a position from the one that opened a round trip on; of one that turned the position, its part.

    >>> from backsight.testing import a_fill
    >>> turned = from_first([a_fill(0), a_fill(1, quantity=-3.0, fee=3.0)], first_fill_id="fill-000001", size=2.0)
    >>> [(fill.quantity, fill.fee) for fill in turned]
    [(-2.0, 2.0)]
    """
    ordered = sorted(fills, key=lambda each: each.order)
    place = next(number for number, fill in enumerate(ordered) if fill.name == first_fill_id)
    first, *later = ordered[place:]
    if size < abs(first.quantity):
        share = size / abs(first.quantity)
        first = replace(first, quantity=size if first.quantity > 0 else -size, fee=first.fee * share)
    return [first, *later]
