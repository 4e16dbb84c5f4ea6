"""What is established about how an agent trades: declines of its results, costs, habits."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from backsight.core.memory.habit_sentences import established_habits
from backsight.core.portfolio import Account
from backsight.core.prompts.how_you_trade import Decline, how_you_trade
from backsight.core.prompts.sections import Section
from backsight.core.strategies import Deployment
from backsight.services.habit_learning import habits_at
from backsight.services.outlook import SymbolOutlook
from backsight.store import experience as stored_experience
from backsight.store import trades as stored_trades
from backsight.store.unchanged import unchanged
from backsight.store.view import View

COSTS_OF = 100
"""The last trades whose costs are compared with what they earned."""


def own_trading(view: View, deployment: Deployment, account: Account, outlooks: Iterable[SymbolOutlook]) -> Section:
    """The section "How you trade"; `outlooks` are those of the symbols that may be traded."""
    return how_you_trade(
        _habits(view, deployment),
        declines=_declines(outlooks),
        costs=stored_trades.recent_costs(view, deployment.id, most=COSTS_OF),
        currency=account.currency,
    )


def _habits(view: View, deployment: Deployment) -> tuple[tuple[str, str], ...]:
    """The habits that stand out, of the strategy in the deployment's mode."""

    def read() -> tuple[tuple[str, str], ...]:
        rows = habits_at(view, deployment.mode, strategy_name=deployment.strategy_name, symbol=None)
        return established_habits({row.symbol: row.habits for row in rows})

    if not stored_experience.is_current(view):
        return read()
    key = ("established habits", deployment.mode, deployment.strategy_name)
    return unchanged(view.connection, view.owner, key, (stored_experience.HABITS,), read)


def _declines(outlooks: Iterable[SymbolOutlook]) -> Iterator[Decline]:
    """The declines that outlooks take into account: that of the strategy once, then those of symbols."""
    declines: dict[tuple[str | None, datetime], Decline] = {}
    for outlook in outlooks:
        for (_, symbol), since in outlook.falling_since.items():
            counts = [direction.counts[0] for direction in outlook.directions]
            won, n = (outlook.trades.won, outlook.trades.n) if symbol is None else (
                sum(count.won for count in counts), sum(count.n for count in counts)
            )  # fmt: skip
            declines.setdefault((symbol, since), Decline(symbol=symbol, since=since, won=won, n=n))
    return iter(sorted(declines.values(), key=lambda decline: (decline.symbol is not None, decline.symbol or "")))
