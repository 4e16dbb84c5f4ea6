"""Late reports: fills that a broker reports after a snapshot already showed what they did.

Between two snapshots the size of a position changed by a known amount. Reported fills explain a part of it; inferred
fills are the rest. A late report takes its size from the inferred fills of its interval. What it does beyond them was
undone within the same interval, or the snapshots would have shown it: a fill that offsets it is inferred there, and the
report of that fill takes it back. So when every fill is reported, no inferred fill is left.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from backsight.core.fills import Fill
from backsight.core.ids import derive_id
from backsight.core.instruments import EXACT, Flatness, price_at, valued
from backsight.core.trades.fold import RoundTrip


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedFills:
    """Late reports, and the inferred fills that they add, restate or withdraw."""

    reported: tuple[Fill, ...]
    """The reports, with the decision and the reason of the inferred fills that they explain."""
    offset: tuple[Fill, ...] = ()
    """New inferred fills that offset a report."""
    restated: tuple[Fill, ...]
    withdrawn: tuple[Fill, ...]

    def left(self, fills: Iterable[Fill]) -> list[Fill]:
        """The given fills without the withdrawn ones, with the restated ones restated, and the new ones."""
        replaced = {fill.id for fill in (*self.withdrawn, *self.restated)}
        return [*(fill for fill in fills if fill.id not in replaced), *self.restated, *self.offset]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The time between two snapshots of the broker; None if there is no snapshot on that side."""

    after: datetime | None
    until: datetime | None

    def contains(self, guess: Fill) -> bool:
        """Whether an inferred fill lies between the two snapshots; one at the instant of a snapshot does not."""
        earliest, latest = guess.earliest_at, guess.latest_at
        if latest is None:
            return False
        starts = self.after is None or (earliest is not None and self.after <= earliest and self.after < latest)
        ends = self.until is None or (latest <= self.until and (earliest is None or earliest < self.until))
        return starts and ends


def interval_of(at: datetime, snapshots: Sequence[datetime], *, executed_at: Collection[datetime] = ()) -> Interval:
    """The interval between the snapshots around an instant.

    Many brokers round times to seconds: whether an execution at the instant of a snapshot was in it is not known. Such
    an instant does not separate two intervals; `executed_at` are the instants of the executions of the position.

    >>> from backsight.testing import T0
    >>> from datetime import timedelta
    >>> hours = [T0 + timedelta(hours=number) for number in range(4)]
    >>> interval_of(hours[1] + timedelta(minutes=5), hours) == Interval(after=hours[1], until=hours[2])
    True
    >>> interval_of(hours[2], hours, executed_at=[hours[1]]) == Interval(after=hours[0], until=hours[3])
    True
    """
    earlier = [each for each in snapshots if each < at]
    clear = [each for each in earlier if each not in executed_at]
    later = [each for each in snapshots if each > at and each not in executed_at]
    return Interval(after=next(iter([*reversed(clear), *earlier]), None), until=next(iter(later), None))


def explain_inferred(
    known: Sequence[Fill],
    reported: Sequence[Fill],
    *,
    openers: frozenset[str] = frozenset(),
    snapshots: Sequence[datetime] = (),
    continued: Sequence[RoundTrip] = (),
    flatness: Flatness = EXACT,
) -> ExplainedFills:
    """Match reports to the inferred fills among the known ones that they explain, and offset what they do beyond them.

    A snapshot often shows a position before its execution is reported. A report explains an inferred fill of the same
    position and side if it lies between the same two snapshots. Then the reported price replaces the inferred one, and
    the trade keeps its id (`openers` are the fills that opened a trade). The rest of a fill that is explained in part
    gets the price that leaves its whole cost unchanged; a rest that counts as flat is dropped.

    `snapshots` are the instants of the broker's snapshots up to now, from before the first report. Beyond the last one
    nothing is offset: the next snapshot shows the size. `continued` are the open round trips that fills led to which
    are not among the known ones.
    """
    inferred = [fill for fill in known if fill.latest_at is not None]
    by_position = _by_position([*known, *reported])
    account = _Reconciling(
        guesses={fill.id: fill for fill in sorted(inferred, key=lambda each: each.order) if fill.kind == "inferred"},
        openers=openers,
        snapshots=snapshots,
        flatness=flatness,
        continued={trip.position_key: trip for trip in continued},
        fills=by_position,
        executed_at={
            key: frozenset(fill.at for fill in fills if fill.changes_size and fill.latest_at is None)
            for key, fills in by_position.items()
        },
        others=_by_position(fill for fill in known if fill.kind != "inferred"),
        used_names={fill.replaces for fill in known if fill.replaces is not None},
    )
    reports = [account.explain(report) for report in sorted(reported, key=lambda each: each.order)]
    for rename in [fill for fills in account.others.values() for fill in fills if fill.kind == "rename"]:
        if any(report.position_key == rename.position_key for report in reports):
            account.withdraw_balanced(rename)
    for report in reports:
        if report.executed and report.at in snapshots:
            account.withdraw_balanced(report)
    account.name_first_parts(reports, known)
    before = {fill.id: fill for fill in inferred}
    left = account.guesses.values()
    return ExplainedFills(
        reported=tuple(reports),
        offset=tuple(fill for fill in left if fill.quantity != 0 and fill.id not in before),
        restated=(
            *(fill for fill in left if fill.quantity != 0 and fill != before.get(fill.id, fill)),
            *account.renamed,
        ),
        withdrawn=tuple(
            fill
            for fill in inferred
            if fill.id in account.explained_splits
            or (fill.id in account.guesses and account.guesses[fill.id].quantity == 0)
        ),
    )


def _by_position(fills: Iterable[Fill]) -> dict[str, list[Fill]]:
    by_key: dict[str, list[Fill]] = {}
    for fill in fills:
        by_key.setdefault(fill.position_key, []).append(fill)
    return by_key


@dataclass(slots=True, kw_only=True)
class _Reconciling:
    """Inferred fills while reports are taken from them.

    Sizes are compared in the units at the end of an interval: a split multiplies everything that came before it.
    """

    guesses: dict[str, Fill]
    """By id, oldest first; a quantity of 0 is used up."""
    openers: frozenset[str]
    snapshots: Sequence[datetime]
    flatness: Flatness
    continued: dict[str, RoundTrip]
    """The open round trip of each position before its fills, if it is not flat."""
    fills: dict[str, list[Fill]]
    """Of each position, with the new reports."""
    executed_at: dict[str, frozenset[datetime]]
    """The instants of the reported executions of each position."""
    others: dict[str, list[Fill]]
    """The fills of each position that are no guesses, with the reports that are explained already."""
    used_names: set[str]
    """Names of inferred fills that reports have taken, or that rests got."""
    explained_splits: set[str] = field(default_factory=set)
    """Inferred splits that were reported."""
    renamed: list[Fill] = field(default_factory=list)
    """Earlier reports that lost their name to a new one, or got it from one."""

    def explain(self, report: Fill) -> Fill:
        """Take what a report does from the inferred fills, oldest first, and offset what is left."""
        key = report.position_key
        interval = interval_of(report.at, self.snapshots, executed_at=self.executed_at[key])
        if report.kind == "split":
            units = self._split(report, interval)
        else:
            self.others.setdefault(key, []).append(report)
            units = _moved_units(report)
            units *= self._growth(report, interval) if units else 1.0
        if report.kind in ("split", "rename"):
            self._cancel(report, interval)
        if not units:
            return report
        same = [guess for guess in self._guesses_of(key) if guess.quantity * units > 0]
        within = [guess for guess in same if _is_within(report, guess)]
        around = [guess for guess in same if guess not in within and interval.contains(guess)]
        rest = abs(units)
        matches: list[Fill] = []
        for guess in [*within, *(around if self.snapshots else [])]:
            if rest <= 0:
                break
            growth = self._growth(guess, interval)
            size = min(rest, abs(guess.quantity) * growth)
            matches.append(guess)
            rest -= size
            self.guesses[guess.id] = self._rest_of(guess, report, size / growth)
        if rest > self._flat(report, abs(units)) and interval.until is not None:
            price = report.price if report.price is not None else self._last_price(report)
            quantity = (-rest if units > 0 else rest) / self._growth(report, interval)
            offset = _offset(report, quantity, price, interval)
            self.guesses[offset.id] = offset
        if report.kind == "split":
            return report
        explained = [guess for guess in matches if guess in within and _same_order(guess, report)]
        return self._in_place_of(matches, explained, report)

    def _split(self, report: Fill, interval: Interval) -> float:
        """Add a split to its position, in place of the one that was inferred, and return the units that it adds."""
        key = report.position_key
        before = self._size_at(key, interval)
        others = self.others.setdefault(key, [])
        inferred = next((fill for fill in others if _explains_split(report, fill)), None)
        if inferred is not None:
            others.remove(inferred)
            self.explained_splits.add(inferred.id)
        ratio = report.ratio or 1.0
        for guess in self._guesses_of(key):
            was_after = _shows(guess, report) if inferred is None else guess.order > inferred.order
            if was_after != (guess.order > report.order) and guess.price_source != "offset":
                self.guesses[guess.id] = _in_units(guess, ratio if guess.order > report.order else 1.0 / ratio)
        others.append(report)
        return self._size_at(key, interval) - before

    def _cancel(self, report: Fill, interval: Interval) -> None:
        """Take back an exit and an entry that one snapshot seemed to show because a split or rename was not known."""
        ids = [guess.id for guess in self._guesses_of(report.position_key) if _is_within(report, guess)]
        for pair in itertools.permutations(ids, 2):
            sold, bought = (self.guesses[each] for each in pair)
            if sold.quantity < 0 < bought.quantity and _of_one_snapshot(sold, bought):
                growths = self._growth(sold, interval), self._growth(bought, interval)
                size = min(-sold.quantity * growths[0], bought.quantity * growths[1])
                self.guesses[sold.id] = self._rest_of(sold, report, size / growths[0])
                self.guesses[bought.id] = self._rest_of(bought, report, size / growths[1])

    def withdraw_balanced(self, report: Fill) -> None:
        """Withdraw the guesses around a report if together they change no size: reports explain the interval.

        That is so around a late rename, and around executions at the very instant of a snapshot.
        """
        key = report.position_key
        interval = interval_of(report.at, self.snapshots, executed_at=self.executed_at[key])
        guesses = [guess for guess in self._guesses_of(key) if interval.contains(guess)]
        units = [guess.quantity * self._growth(guess, interval) for guess in guesses]
        if guesses and abs(math.fsum(units)) <= self._flat(guesses[0], max(map(abs, units))):
            self.guesses |= {guess.id: replace(guess, quantity=0.0) for guess in guesses}

    def _give_up(self, name: str, report: Fill) -> bool:
        """Take a name from the fill that has it if a report was executed before that fill."""
        others = self.others[report.position_key]
        for place, other in enumerate(others):
            if other.replaces == name and other.order > report.order:
                others[place] = replace(other, replaces=None)
                self.renamed.append(others[place])
                return True
        return False

    def name_first_parts(self, reports: list[Fill], known: Sequence[Fill]) -> None:
        """Give the name of an entry that is explained whole to the first of its parts, which may be of earlier reports.

        A rest that came before all parts had the name until the last part used it up.
        """
        guesses = (fill for fill in known if fill.kind == "inferred" and fill.name in self.openers)
        for guess in guesses:
            holder = next((place for place, fill in enumerate(reports) if fill.replaces == guess.name), None)
            if holder is None:
                continue
            last = reports[holder]
            parts = (
                fill
                for fill in (*known, *reports)
                if fill.position_key == guess.position_key and fill.executed and fill.latest_at is None
                if fill.quantity * guess.quantity > 0 and fill.replaces is None and fill.id not in self.openers
                if guess.order < fill.order < last.order
            )
            first = min(parts, key=lambda fill: fill.order, default=None)
            if first is None:
                continue
            reports[holder] = replace(last, replaces=None)
            named = replace(first, replaces=guess.name)
            if first in reports:
                reports[reports.index(first)] = named
            else:
                self.renamed.append(named)

    def _guesses_of(self, key: str) -> list[Fill]:
        return [guess for guess in self.guesses.values() if guess.position_key == key and guess.quantity]

    def _growth(self, fill: Fill, interval: Interval) -> float:
        """How many units one unit of a fill became by the splits after it, until the end of an interval."""
        splits = (each for each in self.others.get(fill.position_key, ()) if each.kind == "split")
        later = (each for each in splits if each.order > fill.order and _by_then(each, interval.until))
        return math.prod(split.ratio or 1.0 for split in later)

    def _size_at(self, key: str, interval: Interval) -> float:
        """The signed size of a position at the end of an interval."""
        trip = self.continued.get(key)
        size = 0.0 if trip is None else trip.signed_size
        for fill in sorted([*self.others.get(key, ()), *self._guesses_of(key)], key=lambda each: each.order):
            if _by_then(fill, interval.until):
                size = size * (fill.ratio or 1.0) if fill.kind == "split" else size + _moved_units(fill)
        return size

    def _last_price(self, report: Fill) -> float | None:
        """The price of the last execution before a report that has none of its own, else the cost of its position."""
        key = report.position_key
        executed = [fill for fill in self.fills[key] if fill.executed and fill.order < report.order]
        last, trip = max(executed, key=lambda fill: fill.order, default=None), self.continued.get(key)
        price = last.price if last is not None else None if trip is None else trip.average_cost
        return None if price is None else price / (report.ratio or 1.0)

    def _flat(self, fill: Fill, peak: float) -> float:
        """The largest size that is flat."""
        worth = 0.0 if fill.price is None else abs(valued(fill.price, inverse=fill.inverse)) * fill.point_value
        return self.flatness.below(fill.symbol, peak=peak, point_price=worth)

    def _rest_of(self, guess: Fill, report: Fill, quantity: float) -> Fill:
        """The part of an inferred fill that a report leaves unexplained."""
        size = abs(guess.quantity)
        rest = size - quantity
        if rest <= self._flat(guess, size):
            return replace(guess, quantity=0.0)
        sign = 1.0 if guess.quantity > 0 else -1.0
        price = guess.price
        if guess.price is not None and report.price is not None:
            inverse = guess.inverse
            value = valued(guess.price, inverse=inverse) * size - valued(report.price, inverse=inverse) * quantity
            price = price_at(value / rest, inverse=inverse)
            price = price if price > 0 else guess.price
        return replace(guess, quantity=sign * rest, price=price)

    def _in_place_of(self, matches: Sequence[Fill], explained: Sequence[Fill], report: Fill) -> Fill:
        """A report with the name, the decision and the reason of the fills that it explains.

        No two fills have one name, or two trades would have one id: what is left of a fill after the report loses its
        name to it, and a later part of the same execution loses it to an earlier one that is reported after it.
        """
        free = [guess for guess in matches if guess.order > report.order or not self.guesses[guess.id].quantity]
        names = [guess.name for guess in free if guess.name not in self.used_names]
        opened = [name for name in names if name in self.openers]
        taken = [guess.id for guess in matches if guess.id in self.openers and self._give_up(guess.id, report)]
        named = replace(report, replaces=next(iter([*opened, *taken, *names]), report.replaces))
        for guess in free:
            self.used_names.add(guess.name)
            if guess.name == named.replaces:
                rest = derive_id("fill", guess.account_id, guess.name, "rest")
                self.used_names.add(rest)
                self.guesses[guess.id] = replace(self.guesses[guess.id], replaces=rest)
        if not explained:
            return named
        first = explained[0]
        return replace(named, decision_id=report.decision_id or first.decision_id, reason=report.reason or first.reason)


def _by_then(fill: Fill, until: datetime | None) -> bool:
    return until is None or fill.at <= until


def _shows(guess: Fill, split: Fill) -> bool:
    """Whether a guess is in units and prices of after a split: a snapshot of after it told its size and price."""
    if not _is_within(split, guess):
        return guess.order > split.order
    return guess.order > split.order or guess.price_source in ("average", "mark", "last_known")


def _of_one_snapshot(guess: Fill, other: Fill) -> bool:
    """Whether one snapshot showed both; an offset was not shown by any."""
    windows = {(each.earliest_at, each.latest_at) for each in (guess, other)}
    return len(windows) == 1 and "offset" not in (guess.price_source, other.price_source)


def _in_units(guess: Fill, factor: float) -> Fill:
    """A guess in other units: more of them, at a lower price, if the factor is above 1."""
    price = None if guess.price is None else guess.price / factor
    return replace(guess, quantity=guess.quantity * factor, price=price)


def _moved_units(fill: Fill) -> float:
    return fill.quantity if fill.executed or fill.kind == "asset_transfer" else 0.0


def _offset(report: Fill, quantity: float, price: float | None, interval: Interval) -> Fill:
    """The inferred fill right after a report that undoes a part of it."""
    return replace(
        report,
        id=derive_id("fill", report.account_id, report.position_key, report.id, "offset"),
        kind="inferred",
        sequence=report.sequence + 1,
        quantity=quantity,
        price=price,
        price_source="offset",
        fee=0.0,
        fee_currency=None,
        fee_amount=None,
        amount=0.0,
        realized_pnl=None,
        reason=None,
        decision_id=None,
        ratio=None,
        order_id=None,
        earliest_at=interval.after,
        latest_at=interval.until,
        replaces=None,
    )


def _same_order(guess: Fill, report: Fill) -> bool:
    """Whether one order may have made both; an expiry comes from none, and ids tell two orders apart."""
    return report.kind == "trade" and (None in (guess.order_id, report.order_id) or guess.order_id == report.order_id)


def _explains_split(report: Fill, guess: Fill) -> bool:
    """Whether a reported split is the one that was inferred."""
    same = report.kind == guess.kind == "split" and report.position_key == guess.position_key
    return same and _is_within(report, guess)


def _is_within(report: Fill, guess: Fill) -> bool:
    """Whether a report lies between the two snapshots of an inferred fill.

    Many brokers round times to seconds: an execution at the instant of a snapshot may not have been in it yet.
    """
    if guess.latest_at is None or report.at > guess.latest_at:
        return False
    return guess.earliest_at is None or report.at >= guess.earliest_at
