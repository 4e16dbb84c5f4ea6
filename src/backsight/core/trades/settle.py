"""One tick's facts: what was reported, what that leaves to be inferred, and the round trips that follow from both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from backsight.core.fills import Fill
from backsight.core.market import Bar
from backsight.core.orders import BrokerReason, BrokerSnapshot
from backsight.core.portfolio import Position
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
    beside: Iterable[Fill] = (),
) -> Settled:
    """The ledger after a tick, from the fills that it held of the positions concerned.

    `beside` are fills of the same instant in positions that were closed by then: what is inferred comes after them.
    First what happened since the last tick: the ledger is led to the broker's snapshot `since`. Then what the tick
    did: from there to `now`. `last_seen` and `bars` are as `infer_fills` takes them.
    """
    held, beside = list(held), list(beside)
    ledger = fold(held)
    openers = frozenset(trip.first_fill_id for trip in ledger)
    reported = _flattened(open_trips(ledger), since.reported, since.stamp)
    reported = _touched(open_trips(ledger), reported, last_seen=last_seen, bars=bars)
    told = explained(_guesses(held), reported, openers=openers)
    known = [*told.left(held), *told.reported]
    missed = infer_fills(
        open_trips(fold(known)),
        since.snapshot.portfolio,
        stamp=since.stamp,
        last_seen=last_seen,
        bars=bars,
        marks=since.snapshot.marks,
        known=[*beside, *known],
    )
    known += missed
    openers |= {trip.first_fill_id for trip in fold(known)}
    late = [_not_decided(fill) for fill in now.reported if fill.at < since.snapshot.portfolio.at]
    fresh = [fill for fill in now.reported if fill.at >= since.snapshot.portfolio.at]
    told_after = explained(_guesses(known), late, openers=openers)
    done_reports = [*told_after.reported, *_flattened(open_trips(fold(known)), fresh, now.stamp)]
    known = [*told_after.left(known), *done_reports]
    done = infer_fills(
        open_trips(fold(known)),
        now.snapshot.portfolio,
        stamp=now.stamp,
        last_seen=since.snapshot.portfolio.by_key(),
        bars={},
        marks=now.snapshot.marks,
        known=[*beside, *known],
    )
    known += done
    return _settled(held, known)


def _guesses(fills: Iterable[Fill]) -> list[Fill]:
    return [fill for fill in fills if fill.kind == "inferred"]


def _settled(held: Iterable[Fill], known: Sequence[Fill]) -> Settled:
    """What became of the fills that the ledger held, and what is new."""
    was, now = {fill.id: fill for fill in held}, {fill.id: fill for fill in known}
    return Settled(
        added=tuple(fill for fill in known if fill.id not in was),
        restated=tuple(now[each] for each in was if each in now and now[each] != was[each]),
        withdrawn=tuple(fill for fill in was.values() if fill.id not in now),
        trips=tuple(fold(known)),
    )


def _not_decided(fill: Fill) -> Fill:
    """A report that came with a decision and is of before it: only the broker's own word on it stands."""
    return replace(fill, decision_id=None, reason=fill.reason if fill.reason in get_args(BrokerReason) else None)


def _flattened(ledger: Mapping[str, RoundTrip], reported: Iterable[Fill], stamp: Stamp) -> list[Fill]:
    """The reports; what takes a position off for no other reason is the doing of a flatten command in force."""
    if not stamp.flattened:
        return list(reported)
    return [
        replace(fill, reason="external_flatten") if not fill.reason and _takes_off(fill, ledger) else fill
        for fill in reported
    ]


def _takes_off(fill: Fill, ledger: Mapping[str, RoundTrip]) -> bool:
    trip = ledger.get(fill.position_key)
    return trip is not None and fill.quantity * trip.signed_size < 0


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
        if fill.reason is None and trip is not None and _takes_off(fill, ledger):
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

    def left(self, fills: Iterable[Fill]) -> list[Fill]:
        """Of some fills, what still stands."""
        gone = {fill.id for fill in (*self.withdrawn, *self.restated)}
        return [*(fill for fill in fills if fill.id not in gone), *self.restated]


def explained(
    inferred: Sequence[Fill], reported: Sequence[Fill], *, openers: frozenset[str] = frozenset()
) -> Explained:
    """The inferred fills that reports explain, and what is left of them.

    A position is often seen before its execution is reported. A report explains an inferred fill of its position and
    side when it falls between the two snapshots that the inference lies between. The reported price then stands, the
    trade keeps its name (`openers` are the fills that opened one), and the rest of a fill explained in part is at the
    price that leaves its whole cost unchanged.
    """
    left = {fill.id: fill for fill in sorted(inferred, key=lambda each: each.order)}
    named: set[str] = set()
    reports: list[Fill] = []
    for report in sorted(reported, key=lambda each: each.order):
        rest, guesses = abs(report.quantity), []
        for guess in [each for each in left.values() if _explains(report, each)]:
            if rest <= 0:
                break
            taken = min(rest, abs(guess.quantity))
            guesses.append(guess)
            rest = 0.0 if rest - taken <= FLAT_SHARE * rest else rest - taken
            left[guess.id] = _rest_of(guess, report, taken)
        reports.append(_in_place_of(guesses, report, openers=openers, named=named))
    was = {fill.id: fill for fill in inferred}
    return Explained(
        reported=tuple(reports),
        restated=tuple(fill for fill in left.values() if fill.quantity != 0 and fill != was[fill.id]),
        withdrawn=tuple(was[fill.id] for fill in left.values() if fill.quantity == 0),
    )


def _explains(report: Fill, guess: Fill) -> bool:
    """Brokers stamp whole seconds: an execution at the very instant of a snapshot may not have been in it yet."""
    same = report.position_key == guess.position_key and report.quantity * guess.quantity > 0
    if not (report.executed and same) or guess.latest_at is None or report.at > guess.latest_at:
        return False
    return guess.earliest_at is None or report.at >= guess.earliest_at


def _rest_of(guess: Fill, report: Fill, taken: float) -> Fill:
    size = abs(guess.quantity)
    rest = size - taken
    if rest <= FLAT_SHARE * size or guess.price is None or report.price is None:
        return replace(guess, quantity=0.0)
    price = (guess.price * size - report.price * taken) / rest
    way = 1.0 if guess.quantity > 0 else -1.0
    return replace(guess, quantity=way * rest, price=price if price > 0 else guess.price)


def _in_place_of(guesses: Sequence[Fill], report: Fill, *, openers: frozenset[str], named: set[str]) -> Fill:
    """A report with the name, the decision and the reason of what it explains; a name is given once."""
    if not guesses:
        return report
    opened = [guess.name for guess in guesses if guess.name in openers and guess.name not in named]
    unnamed = [guess.name for guess in guesses if guess.name not in named]
    name = next(iter([*opened, *unnamed]), None)
    named.update(guess.name for guess in guesses)
    first = guesses[0]
    return replace(
        report,
        decision_id=report.decision_id or first.decision_id,
        reason=report.reason or first.reason,
        replaces=name,
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
