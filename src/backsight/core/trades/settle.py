"""The ledger after a tick: reported fills, the fills inferred from them, and the round trips that follow from both."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import get_args

from backsight.core.fills import Fill
from backsight.core.instruments import FLAT_SHARE, PLAIN, SymbolRules
from backsight.core.market import Bar
from backsight.core.orders import BrokerReason, BrokerSnapshot
from backsight.core.portfolio import Position
from backsight.core.trades.fold import RoundTrip, fold, open_trips, uncounted_transfers
from backsight.core.trades.infer import FillStamp, Touch, first_touch, infer_fills, level_reason
from backsight.core.trades.late_reports import explain_inferred

AT_LEVEL = 0.001
"""A price within this share of a stop or target counts as at that level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One of a tick's two phases, and the broker's snapshot at its end."""

    stamp: FillStamp
    snapshot: BrokerSnapshot
    reported: tuple[Fill, ...]
    """The snapshot's fills that the ledger does not have yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerChange:
    """The fills that a tick adds, restates and withdraws, and the round trips afterwards."""

    added: tuple[Fill, ...]
    restated: tuple[Fill, ...]
    """Inferred fills that late reports explain in part."""
    withdrawn: tuple[Fill, ...]
    """Inferred fills that late reports explain fully."""
    trips: tuple[RoundTrip, ...]


def settle(
    stored: Iterable[Fill],
    since: Phase,
    now: Phase,
    *,
    last_seen: Mapping[str, Position],
    bars: Mapping[str, Sequence[Bar]],
    continued: Sequence[RoundTrip] = (),
    same_instant: Iterable[Fill] = (),
    rules: SymbolRules = PLAIN,
) -> LedgerChange:
    """The change of the ledger by a tick, from the stored fills of the positions concerned.

    A position whose past cannot change is among `continued` instead, as the round trip that its fills led to.

    Phase `since` leads the ledger from the last tick to the broker's snapshot before the decision, phase `now` from
    there to the snapshot after it. `same_instant` are fills of the tick's instant in positions that are closed already:
    inferred fills come after them. `last_seen` and `bars` are the arguments of `infer_fills`.
    """
    stored, same_instant = list(stored), list(same_instant)
    ledger = fold(stored, continued=continued, flatness=rules.flatness)
    openers = frozenset(trip.first_fill_id for trip in ledger)
    # Since the last tick: give reports their reasons, and let them explain fills that were inferred before.
    reported = _flattened(open_trips(ledger), since.reported, since.stamp)
    reported = _with_level_reasons(open_trips(ledger), reported, last_seen=last_seen, bars=bars, rules=rules)
    snapshots = sorted({*since.stamp.snapshots, *([] if since.stamp.since is None else [since.stamp.since])})
    explained = explain_inferred(
        stored, reported, openers=openers, snapshots=snapshots, continued=continued, flatness=rules.flatness
    )
    fills = [*explained.left(stored), *explained.reported]
    # Infer the fills that lead to the snapshot before the decision.
    ledger = fold(fills, continued=continued, flatness=rules.flatness)
    fills += infer_fills(
        open_trips(ledger),
        since.snapshot,
        stamp=since.stamp,
        last_seen=last_seen,
        bars=bars,
        known=[*same_instant, *fills],
        uncounted=uncounted_transfers(fills, ledger),
        rules=rules,
    )
    ledger = fold(fills, continued=continued, flatness=rules.flatness)
    openers |= {trip.first_fill_id for trip in ledger}
    if not now.reported and now.snapshot.portfolio is since.snapshot.portfolio:
        return _change(stored, fills, ledger)  # the ledger is where the broker is
    # In this tick: reports from before the first snapshot are late, the others are the decision's.
    seen_at = since.snapshot.portfolio.at
    earlier = _reported_late(since.snapshot, now)
    positions = since.snapshot.portfolio.by_key()
    late = _with_level_reasons(
        open_trips(ledger),
        [_not_decided(fill, now.stamp) for fill in now.reported if fill.key in earlier],
        last_seen=positions,
        bars={},
        rules=rules,
    )
    fresh = [fill for fill in now.reported if fill.key not in earlier]
    snapshots = [*snapshots, seen_at]
    explained = explain_inferred(
        fills, late, openers=openers, snapshots=snapshots, continued=continued, flatness=rules.flatness
    )
    fresh = _flattened(open_trips(ledger), fresh, now.stamp)
    fresh = _with_level_reasons(open_trips(ledger), fresh, last_seen=positions, bars={}, rules=rules)
    reported = [*explained.reported, *fresh]
    fills = [*explained.left(fills), *reported]
    # Infer the fills that lead to the snapshot after the decision.
    ledger = fold(fills, continued=continued, flatness=rules.flatness)
    fills += infer_fills(
        open_trips(ledger),
        now.snapshot,
        stamp=now.stamp,
        last_seen=positions,
        bars={},
        known=[*same_instant, *fills],
        uncounted=uncounted_transfers(fills, ledger),
        rules=rules,
    )
    return _change(stored, fills, fold(fills, continued=continued, flatness=rules.flatness))


def _change(stored: Iterable[Fill], fills: Sequence[Fill], trips: Iterable[RoundTrip]) -> LedgerChange:
    before, after = {fill.key: fill for fill in stored}, {fill.key: fill for fill in fills}
    return LedgerChange(
        added=tuple(fill for fill in fills if fill.key not in before),
        restated=tuple(after[key] for key in before if key in after and after[key] != before[key]),
        withdrawn=tuple(fill for fill in before.values() if fill.key not in after),
        trips=tuple(trips),
    )


def _reported_late(before: BrokerSnapshot, now: Phase) -> set[tuple[str, str]]:
    """The keys of the reports that came after the decision but are of before it.

    Without order ids, fills at the very instant of the snapshot before the decision may be on either side of it. The
    later ones are of the decision, as many as lead from the one snapshot to the other.
    """
    seen_at = before.portfolio.at
    late = {fill.key for fill in now.reported if _may_be_late(fill, seen_at, now.stamp)}
    fresh = [fill for fill in now.reported if fill.key not in late and fill.executed and fill.quantity]
    unnamed = [fill for fill in fresh if fill.at == seen_at and fill.order_id is None]
    sizes = (before.portfolio.by_key(), -1.0), (now.snapshot.portfolio.by_key(), 1.0)
    for key in {fill.position_key for fill in unnamed}:
        change = math.fsum(sign * positions[key].signed_size for positions, sign in sizes if key in positions)
        excess = math.fsum(fill.quantity for fill in fresh if fill.position_key == key) - change
        for fill in sorted((fill for fill in unnamed if fill.position_key == key), key=lambda each: each.order):
            if excess / fill.quantity >= 1.0 - FLAT_SHARE:
                late.add(fill.key)
                excess -= fill.quantity
    return late


def _may_be_late(fill: Fill, seen_at: datetime, stamp: FillStamp) -> bool:
    """Whether a report that came after the decision may be of before it; the order of the decision was later."""
    return fill.at < seen_at or (fill.at == seen_at and fill.decision_id != stamp.decision_id)


def _not_decided(fill: Fill, stamp: FillStamp) -> Fill:
    """A report that came after the decision but is of before it; an earlier decision may have placed its order."""
    if fill.decision_id not in (None, stamp.decision_id):
        return fill
    return replace(fill, decision_id=None, reason=fill.reason if fill.reason in get_args(BrokerReason) else None)


def _flattened(ledger: Mapping[str, RoundTrip], reported: Iterable[Fill], stamp: FillStamp) -> list[Fill]:
    """The reports; while a flatten command is in force, it is the reason of every exit that has no other."""
    if not stamp.flattened:
        return list(reported)
    return [
        replace(fill, reason="external_flatten") if not fill.reason and _is_exit(fill, ledger) else fill
        for fill in reported
    ]


def _is_exit(fill: Fill, ledger: Mapping[str, RoundTrip]) -> bool:
    trip = ledger.get(fill.position_key)
    return trip is not None and fill.quantity * trip.signed_size < 0


def _with_level_reasons(
    ledger: Mapping[str, RoundTrip],
    reported: Sequence[Fill],
    *,
    last_seen: Mapping[str, Position],
    bars: Mapping[str, Sequence[Bar]],
    rules: SymbolRules,
) -> list[Fill]:
    """The reports; an exit without a reason gets that of the stop or target that the bars or its price reached.

    What a decision ordered is its own reason.
    """
    fills: list[Fill] = []
    for fill in reported:
        trip, price = ledger.get(fill.position_key), fill.price
        if fill.reason is None and price is not None and trip is not None and _is_exit(fill, ledger):
            position = last_seen.get(fill.position_key)
            touch = first_touch(trip, position, bars.get(fill.symbol, ()))
            if touch is not None and _is_at(touch, price, trip):
                fill = replace(fill, reason=touch.reason)
            elif fill.decision_id is None:
                tick_size = rules.tick_sizes.get(fill.symbol)
                fill = replace(fill, reason=level_reason(trip, position, price, tick_size=tick_size))
        fills.append(fill)
    return fills


def _is_at(touch: Touch, price: float, trip: RoundTrip) -> bool:
    """Whether a price is at the level or beyond it."""
    against = touch.source != "target"
    way = 1.0 if (trip.direction == "long") != against else -1.0
    return way * (price - touch.price) >= -AT_LEVEL * abs(touch.price)


def from_first(
    fills: Iterable[Fill], *, first_fill_id: str, size: float, closed_at: datetime | None = None
) -> list[Fill]:
    """The fills of a position from the one that opened a round trip, which was closed at an instant or is open.

    Of a fill that reversed the position, only the part that opened the round trip counts. `size` is that part in the
    units of the round trip's end: splits since then are undone.

    >>> from backsight.testing import a_fill
    >>> turned = from_first([a_fill(0), a_fill(1, quantity=-3.0, fee=3.0)], first_fill_id="fill-000001", size=2.0)
    >>> [(fill.quantity, fill.fee) for fill in turned]
    [(-2.0, 2.0)]
    """
    ordered = sorted(fills, key=lambda each: each.order)
    place = next(number for number, fill in enumerate(ordered) if fill.name == first_fill_id)
    first, *later = ordered[place:]
    for number, fill in enumerate(later):
        if fill.kind == "split" and _is_within(later[number + 1 :], fill, closed_at):
            size /= fill.ratio or 1.0
    if first.closes is not None:  # what is left of it opened the round trip
        first = replace(first, closes=None)
    if size < abs(first.quantity) * (1.0 - FLAT_SHARE):
        share = size / abs(first.quantity)
        first = replace(first, quantity=size if first.quantity > 0 else -size, fee=first.fee * share)
    return [first, *later]


def _is_within(later: Sequence[Fill], split: Fill, closed_at: datetime | None) -> bool:
    """Whether a split is before the close of a round trip; one of the same instant is if an execution follows it."""
    if closed_at is None or split.at < closed_at:
        return True
    return split.at == closed_at and any(fill.executed and fill.at == closed_at for fill in later)
