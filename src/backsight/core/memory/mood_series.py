"""The stored series of moods: one row for every equity reading, transfer, close and correction.

An account has a series of equity and drawdown. Every strategy on the account has a series of confidence and streaks.
The mood as of an instant is made from the last row of each by then.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from backsight.core.copies import copy_with
from backsight.core.memory.affective import (
    MAX_DRAWDOWN,
    AccountMood,
    CloseFact,
    EquityFact,
    Mood,
    MoodCause,
    MoodState,
    StrategyMood,
    TransferFact,
    advance,
    after_close,
    cause_of,
    dated_mood,
    drawdown_state,
    fact_order,
    risk_appetite,
)
from backsight.core.quick_init import quick_init


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class MoodRow:
    """One stored row: the mood of an account, or the mood of a strategy on the account."""

    owner_id: str
    account_id: str
    strategy_name: str
    """Empty in the rows of the account."""
    known_at: datetime
    sequence: int
    id: str
    """The id of the fact that made the row."""
    at: datetime
    cause: MoodCause
    n: int
    """The number of facts up to the row."""
    account: AccountMood | None = None
    risk_appetite: float | None = None
    drawdown_state: float | None = None
    strategy: StrategyMood | None = None
    """Only the last row of a series has `recent` outcomes, since only the next row needs them."""

    @property
    def order(self) -> tuple[datetime, int, str]:
        """The sort key of the series."""
        return self.known_at, self.sequence, self.id


def account_row(last: MoodRow | None, fact: EquityFact | TransferFact, *, owner_id: str, account_id: str) -> MoodRow:
    """The next row of an account."""
    before = AccountMood() if last is None or last.account is None else last.account
    account = advance(MoodState(account=before), fact).account
    return MoodRow(
        owner_id=owner_id,
        account_id=account_id,
        strategy_name="",
        known_at=fact.known_at,
        sequence=fact.sequence,
        id=fact.id,
        at=fact.at,
        cause=cause_of(fact),
        n=1 if last is None else last.n + 1,
        account=account,
        risk_appetite=risk_appetite(account.drawdown),
        drawdown_state=drawdown_state(account.drawdown),
    )


def account_rows(facts: Iterable[EquityFact | TransferFact], *, owner_id: str, account_id: str) -> list[MoodRow]:
    """The rows of an account, one for each fact; the facts may be in any order."""
    rows: list[MoodRow] = []
    for fact in sorted(facts, key=fact_order):
        rows.append(account_row(rows[-1] if rows else None, fact, owner_id=owner_id, account_id=account_id))
    return rows


def strategy_row(
    last: MoodRow | None, close: CloseFact, *, owner_id: str, account_id: str, strategy_name: str
) -> MoodRow:
    """The next row of a strategy on an account, with its recent outcomes."""
    key = {"owner_id": owner_id, "account_id": account_id, "strategy_name": strategy_name}
    return _close_row(close, _after(_strategy_mood(last), close), n=1 if last is None else last.n + 1, **key)


def next_strategy_rows(
    last: MoodRow | None, closes: Sequence[CloseFact], *, owner_id: str, account_id: str, strategy_name: str
) -> list[MoodRow]:
    """The rows that more closes write: the former last row without its recent outcomes, and one row for each close."""
    key = {"owner_id": owner_id, "account_id": account_id, "strategy_name": strategy_name}
    mood, first = _strategy_mood(last), 1 if last is None else last.n + 1
    rows = [] if last is None else [without_recent(last)]
    for n, close in enumerate(closes, start=first):
        mood = _after(mood, close)
        is_last = n - first == len(closes) - 1
        rows.append(_close_row(close, mood if is_last else _forgetful(mood), n=n, **key))
    return rows


def _strategy_mood(row: MoodRow | None) -> StrategyMood:
    return StrategyMood() if row is None or row.strategy is None else row.strategy


def _after(mood: StrategyMood, close: CloseFact) -> StrategyMood:
    return after_close(mood, net=close.net, outcome=close.outcome, trend=close.trend)


def _close_row(
    close: CloseFact, mood: StrategyMood, *, n: int, owner_id: str, account_id: str, strategy_name: str
) -> MoodRow:
    return MoodRow(
        owner_id=owner_id,
        account_id=account_id,
        strategy_name=strategy_name,
        known_at=close.known_at,
        sequence=close.sequence,
        id=close.id,
        at=close.at,
        cause="close",
        n=n,
        strategy=mood,
    )


def without_recent(row: MoodRow) -> MoodRow:
    """A row that is no longer the last one."""
    return replace(row, strategy=_forgetful(_strategy_mood(row)))


def _forgetful(mood: StrategyMood) -> StrategyMood:
    """A mood without its recent outcomes."""
    return copy_with(mood, recent={})


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseVersion:
    """A close as it was known from an instant on."""

    close: CloseFact | None
    """None where the close was withdrawn."""
    id: str
    sequence: int
    known_at: datetime
    first: bool
    """Whether this is the first version of the close."""

    @property
    def order(self) -> tuple[datetime, int, str]:
        """The sort key of versions, which is that of the rows they make."""
        return self.known_at, self.sequence, self.id


def strategy_rows(
    versions: Iterable[CloseVersion], *, owner_id: str, account_id: str, strategy_name: str
) -> list[MoodRow]:
    """The rows of a strategy on an account: each is the mood as it was known at its instant.

    A close adds a row. A correction adds a row too, folded again from all closes as known from then on, since the
    corrected close may be any of them.
    """
    key = {"owner_id": owner_id, "account_id": account_id, "strategy_name": strategy_name}
    closes: dict[str, CloseFact] = {}
    rows: list[MoodRow] = []
    for version in sorted(versions, key=lambda each: each.order):
        if closes.get(version.id) == version.close:
            continue  # the correction changed nothing that the mood depends on
        closes.pop(version.id, None)
        if version.close is not None:
            closes[version.id] = version.close
        if version.first and version.close is not None:
            rows.append(strategy_row(rows[-1] if rows else None, version.close, **key))
        else:
            rows.append(correction_row(None, sorted(closes.values(), key=fact_order), version, **key))
    return [*map(without_recent, rows[:-1]), *rows[-1:]]


def correction_row(
    start: MoodRow | None,
    closes: Sequence[CloseFact],
    version: CloseVersion,
    *,
    owner_id: str,
    account_id: str,
    strategy_name: str,
) -> MoodRow:
    """The row of a correction: the fold of all closes as known from then on.

    `start` is a row with its recent outcomes whose closes are known unchanged, and `closes` are those after it, in
    order; without such a row they are all closes.
    """
    row = start if start is not None and start.n else None
    for close in closes:
        row = strategy_row(row, close, owner_id=owner_id, account_id=account_id, strategy_name=strategy_name)
    return MoodRow(
        owner_id=owner_id,
        account_id=account_id,
        strategy_name=strategy_name,
        known_at=version.known_at,
        sequence=version.sequence,
        id=version.id,
        at=version.known_at if row is None else row.at,
        cause="correction",
        n=0 if row is None else row.n,
        strategy=StrategyMood() if row is None else row.strategy,
    )


def mood_from(account: MoodRow | None, strategy: MoodRow | None, *, max_drawdown: float = MAX_DRAWDOWN) -> Mood:
    """The mood in the last row of an account and the last row of a strategy on it."""
    state = MoodState(
        account=AccountMood() if account is None or account.account is None else account.account,
        strategy=_strategy_mood(strategy),
    )
    latest = account if strategy is None else strategy
    if account is not None and strategy is not None and account.order >= strategy.order:
        latest = account
    if latest is None:
        return dated_mood(state, max_drawdown=max_drawdown)
    return dated_mood(state, at=latest.at, known_at=latest.known_at, cause=latest.cause, max_drawdown=max_drawdown)
