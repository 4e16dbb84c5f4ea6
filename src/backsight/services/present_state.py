"""The ledger and the mood at the instant of a prompt, after what the broker's snapshot of that instant tells.

Memory is read as of right before the instant. What `close_tick` will record of the snapshot is computed from it, and
not stored: the same functions settle the tick, with a decision that does nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from backsight.core.decision import TickReport, Verdict, as_last, decision_id, decision_of
from backsight.core.market import Bar
from backsight.core.memory.affective import Mood, equity_fact
from backsight.core.memory.episodic import episode_id_of, episode_of_trade
from backsight.core.orders import BrokerSnapshot
from backsight.core.portfolio import Account
from backsight.core.strategies import Deployment
from backsight.core.trades.trade import Trade
from backsight.services.ledger import SettledTick, Tick, settle_tick, teaches
from backsight.services.ledger_rows import LedgerRows
from backsight.services.mood import MoodFacts, mood_after, mood_in
from backsight.services.recall import MarkedTrade, with_marks
from backsight.store import decisions as stored_decisions
from backsight.store import strategies as stored_strategies
from backsight.store import trades as stored_trades
from backsight.store.trades import FIRST_INSTANT
from backsight.store.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentState:
    """The ledger of an account and the mood of a deployment at an instant."""

    mood: Mood
    open_trades: Sequence[MarkedTrade] = ()
    """The open trades of the account, newest entry first, with their marks."""
    changes: Mapping[str, Trade | None] = field(default_factory=dict)
    """The trades that differ from those that memory has, by id; None for one that no longer follows from the fills."""
    closed: Sequence[Trade] = ()
    """The trades that memory does not have as closed, latest exit first."""

    def uncounted(self, deployment: Deployment) -> list[Trade]:
        """The closed trades that expectation, sizes and beliefs of a deployment's strategy do not count yet."""
        strategy = deployment.strategy_name, deployment.mode
        return [trade for trade in self.closed if (trade.strategy_name, trade.mode) == strategy and teaches(trade)]


def recorded_state(view: View, deployment: Deployment) -> PresentState:
    """The state as it is recorded."""
    trades = newest_first(stored_trades.open_then(view, deployment.account_id))
    return PresentState(mood=mood_in(view, deployment), open_trades=with_marks(view, trades))


def state_at_tick(
    view: View,
    deployment: Deployment,
    account: Account,
    before: BrokerSnapshot,
    *,
    at: datetime,
    sequence: int,
    unstored: Sequence[Sequence[Bar]],
    recorded_at: datetime,
) -> PresentState:
    """The state right after a snapshot; `view` is of right before the tick, `unstored` are bars closed since then.

    The earlier ticks of the same instant are settled first. Whether they, or the tick itself, are stored already makes
    no difference.
    """
    rows, settled = LedgerRows(view), list[SettledTick]()
    if not (sequence or before.portfolio.positions or before.fills or rows.open_trades(account.id)):
        fact = equity_fact(decision_id(deployment.id, at, sequence), at, sequence, before.portfolio.equity, 0.0)
        return PresentState(mood=mood_after(view, deployment, [MoodFacts(equity=fact)]))
    last = stored_decisions.last_of_account_then(view, account.id)
    for tick in _ticks_before(view, account, at=at, sequence=sequence):
        settled.append(settle_tick(rows, replace(tick, last=last), unstored=unstored))
        rows, last = rows.after(settled[-1].row_changes), as_last(tick.decision)
    report = TickReport(at=at, sequence=sequence, before=before, after=None, proposals=(), verdict=Verdict(kind="noop"))
    decision = decision_of(report, deployment, last, recorded_at=recorded_at)
    tick = Tick(deployment=deployment, account=account, decision=decision, last=last)
    settled.append(settle_tick(rows, tick, unstored=unstored))
    return _state_after(view, deployment, settled)


def _ticks_before(view: View, account: Account, *, at: datetime, sequence: int) -> list[Tick]:
    """The earlier ticks of an instant on an account."""
    if not sequence:
        return []
    earlier = stored_decisions.decisions_of_instant(view.connection, view.owner, account.id, at, sequence)
    targets = stored_strategies.deployments_of(view.connection, view.owner, account.id) if earlier else []
    by_id = {each.id: each for each in targets}
    return [Tick(deployment=by_id[each.deployment_id], account=account, decision=each, last=None) for each in earlier]


def _state_after(view: View, deployment: Deployment, settled: Sequence[SettledTick]) -> PresentState:
    changes: dict[str, Trade | None] = {}
    former: dict[str, Trade] = {}
    for tick in settled:
        former = {**tick.state.trades, **former}
        changes |= tick.row_changes.trades
    marks = {mark.trade_id: mark for mark in settled[-1].marks if mark.look == "after"}
    open_trades = newest_first([trade for trade in settled[-1].rows if trade.status == "open"])
    was_open = {trade_id for trade_id, trade in former.items() if trade.status == "open"}
    closed = [
        trade
        for trade_id, trade in changes.items()
        if trade is not None and trade.status == "closed" and (trade_id in was_open or trade_id not in former)
    ]
    return PresentState(
        mood=mood_after(view, deployment, [_mood_facts(tick, deployment) for tick in settled]),
        open_trades=[(trade, marks.get(trade.id)) for trade in open_trades],
        changes=changes,
        closed=sorted(closed, key=lambda trade: (trade.closed_at or trade.known_at, trade.id), reverse=True),
    )


def _mood_facts(settled: SettledTick, deployment: Deployment) -> MoodFacts:
    """What a tick teaches the mood of a deployment."""
    of_strategy = [row for row in settled.changed if row.strategy_name == deployment.strategy_name and teaches(row)]
    new = {trade.id for trade in settled.closed}
    return MoodFacts(
        equity=settled.equity_fact,
        closed=[episode_of_trade(row) for row in of_strategy if row.id in new],
        corrected=[episode_of_trade(row) for row in of_strategy if row.id not in new],
        withdrawn=[
            episode_id_of(trade.id) for trade in settled.unlearned if trade.strategy_name == deployment.strategy_name
        ],
    )


def newest_first(trades: Sequence[Trade]) -> list[Trade]:
    """Open trades by their entry, the latest first, ties by id."""
    by_id = sorted(trades, key=lambda trade: trade.id)
    return sorted(by_id, key=lambda trade: trade.opened_at or FIRST_INSTANT, reverse=True)
