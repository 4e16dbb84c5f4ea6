"""The ledger after a tick: reported fills, the fills inferred from them, and the round trips that follow from both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from backsight.core.fills import Fill
from backsight.core.instruments import FLAT_SHARE, PLAIN, SymbolRules, price_at, valued
from backsight.core.market import Bar
from backsight.core.orders import BrokerReason, BrokerSnapshot
from backsight.core.portfolio import Position
from backsight.core.trades.fold import RoundTrip, fold, open_trips
from backsight.core.trades.infer import FillStamp, Touch, first_touch, infer_fills

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
    reported = _with_level_reasons(open_trips(ledger), reported, last_seen=last_seen, bars=bars)
    explained = explain_inferred(_inferred(stored), reported, openers=openers)
    fills = [*explained.left(stored), *explained.reported]
    # Infer the fills that lead to the snapshot before the decision.
    fills += infer_fills(
        open_trips(fold(fills, continued=continued, flatness=rules.flatness)),
        since.snapshot.portfolio,
        stamp=since.stamp,
        last_seen=last_seen,
        bars=bars,
        marks=since.snapshot.marks,
        known=[*same_instant, *fills],
        rules=rules,
    )
    ledger = fold(fills, continued=continued, flatness=rules.flatness)
    openers |= {trip.first_fill_id for trip in ledger}
    # In this tick: reports from before the first snapshot are late, the others are the decision's.
    late = [_not_decided(fill) for fill in now.reported if fill.at < since.snapshot.portfolio.at]
    fresh = [fill for fill in now.reported if fill.at >= since.snapshot.portfolio.at]
    explained = explain_inferred(_inferred(fills), late, openers=openers)
    reported = [*explained.reported, *_flattened(open_trips(ledger), fresh, now.stamp)]
    fills = [*explained.left(fills), *reported]
    # Infer the fills that lead to the snapshot after the decision.
    fills += infer_fills(
        open_trips(fold(fills, continued=continued, flatness=rules.flatness)),
        now.snapshot.portfolio,
        stamp=now.stamp,
        last_seen=since.snapshot.portfolio.by_key(),
        bars={},
        marks=now.snapshot.marks,
        known=[*same_instant, *fills],
        rules=rules,
    )
    return _change(stored, fills, fold(fills, continued=continued, flatness=rules.flatness))


def _inferred(fills: Iterable[Fill]) -> list[Fill]:
    """The fills that no broker reported."""
    return [fill for fill in fills if fill.latest_at is not None]


def _change(stored: Iterable[Fill], fills: Sequence[Fill], trips: Iterable[RoundTrip]) -> LedgerChange:
    before, after = {fill.id: fill for fill in stored}, {fill.id: fill for fill in fills}
    return LedgerChange(
        added=tuple(fill for fill in fills if fill.id not in before),
        restated=tuple(after[key] for key in before if key in after and after[key] != before[key]),
        withdrawn=tuple(fill for fill in before.values() if fill.id not in after),
        trips=tuple(trips),
    )


def _not_decided(fill: Fill) -> Fill:
    """A report that came after the decision but is of before it: only a reason given by the broker remains."""
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
) -> list[Fill]:
    """The reports; an exit without a reason gets that of the stop or target that the bars and its price reached."""
    fills: list[Fill] = []
    for fill in reported:
        trip = ledger.get(fill.position_key)
        if fill.reason is None and trip is not None and _is_exit(fill, ledger):
            touch = first_touch(trip, last_seen.get(fill.position_key), bars.get(fill.symbol, ()))
            if touch is not None and fill.price is not None and _is_at(touch, fill.price, trip):
                fill = replace(fill, reason=touch.reason)
        fills.append(fill)
    return fills


def _is_at(touch: Touch, price: float, trip: RoundTrip) -> bool:
    """Whether a price is at the level or beyond it."""
    against = touch.source != "target"
    way = 1.0 if (trip.direction == "long") != against else -1.0
    return way * (price - touch.price) >= -AT_LEVEL * abs(touch.price)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedFills:
    """Late reports, and the inferred fills that they restate or withdraw."""

    reported: tuple[Fill, ...]
    """The reports, with the decision and the reason of the inferred fills that they explain."""
    restated: tuple[Fill, ...]
    withdrawn: tuple[Fill, ...]

    def left(self, fills: Iterable[Fill]) -> list[Fill]:
        """The given fills without the withdrawn ones, and with the restated ones restated."""
        replaced = {fill.id for fill in (*self.withdrawn, *self.restated)}
        return [*(fill for fill in fills if fill.id not in replaced), *self.restated]


def explain_inferred(
    inferred: Sequence[Fill], reported: Sequence[Fill], *, openers: frozenset[str] = frozenset()
) -> ExplainedFills:
    """Match reports to the inferred fills that they explain.

    A snapshot often shows a position before its execution is reported. A report explains an inferred fill of the same
    position and side if it lies between the same two snapshots. Then the reported price replaces the inferred one, and
    the trade keeps its id (`openers` are the fills that opened a trade). The rest of a fill that is explained in part
    gets the price that leaves its whole cost unchanged.
    """
    splits = {guess.id for guess in inferred for report in reported if _explains_split(report, guess)}
    left = {fill.id: fill for fill in sorted(inferred, key=lambda each: each.order) if fill.kind != "split"}
    used_names: set[str] = set()
    reports: list[Fill] = []
    for report in sorted(reported, key=lambda each: each.order):
        # Take the report's quantity from the matching inferred fills, oldest first.
        rest, matches = abs(report.quantity), []
        for guess in [each for each in left.values() if _explains(report, each)]:
            if rest <= 0:
                break
            quantity = min(rest, abs(guess.quantity))
            matches.append(guess)
            rest = 0.0 if rest - quantity <= FLAT_SHARE * rest else rest - quantity
            left[guess.id] = _rest_of(guess, report, quantity)
        reports.append(_in_place_of(matches, report, openers=openers, used_names=used_names))
    before = {fill.id: fill for fill in inferred}
    return ExplainedFills(
        reported=tuple(reports),
        restated=tuple(fill for fill in left.values() if fill.quantity != 0 and fill != before[fill.id]),
        withdrawn=tuple(fill for fill in inferred if fill.id in splits or _is_used_up(left.get(fill.id))),
    )


def _is_used_up(guess: Fill | None) -> bool:
    return guess is not None and guess.quantity == 0


def _explains_split(report: Fill, guess: Fill) -> bool:
    """Whether a reported split is the one that was inferred."""
    same = report.kind == guess.kind == "split" and report.position_key == guess.position_key
    return same and _is_within(report, guess)


def _explains(report: Fill, guess: Fill) -> bool:
    """Whether a report explains an inferred fill.

    Many brokers round times to seconds: an execution at the instant of a snapshot may not have been in it yet.
    """
    same = report.position_key == guess.position_key and report.quantity * guess.quantity > 0
    is_move = report.executed or report.kind == "asset_transfer"
    return is_move and same and _is_within(report, guess)


def _is_within(report: Fill, guess: Fill) -> bool:
    """Whether a report lies between the two snapshots of an inferred fill."""
    if guess.latest_at is None or report.at > guess.latest_at:
        return False
    return guess.earliest_at is None or report.at >= guess.earliest_at


def _rest_of(guess: Fill, report: Fill, quantity: float) -> Fill:
    """The part of an inferred fill that a report leaves unexplained."""
    size = abs(guess.quantity)
    rest = size - quantity
    if rest <= FLAT_SHARE * size or guess.price is None or report.price is None:
        return replace(guess, quantity=0.0)
    inverse = guess.inverse
    value = valued(guess.price, inverse=inverse) * size - valued(report.price, inverse=inverse) * quantity
    price = price_at(value / rest, inverse=inverse)
    sign = 1.0 if guess.quantity > 0 else -1.0
    return replace(guess, quantity=sign * rest, price=price if price > 0 else guess.price)


def _in_place_of(matches: Sequence[Fill], report: Fill, *, openers: frozenset[str], used_names: set[str]) -> Fill:
    """A report with the name, the decision and the reason of the fills that it explains; each name is used once."""
    if not matches:
        return report
    opened = [guess.name for guess in matches if guess.name in openers and guess.name not in used_names]
    unused = [guess.name for guess in matches if guess.name not in used_names]
    name = next(iter([*opened, *unused]), None)
    used_names.update(guess.name for guess in matches)
    first = matches[0]
    return replace(
        report,
        decision_id=report.decision_id or first.decision_id,
        reason=report.reason or first.reason,
        replaces=name,
    )


def from_first(fills: Iterable[Fill], *, first_fill_id: str, size: float) -> list[Fill]:
    """The fills of a position from the one that opened a round trip.

    Of a fill that reversed the position, only the part that opened the round trip counts.

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
