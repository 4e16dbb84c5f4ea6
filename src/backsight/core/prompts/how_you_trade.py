"""The prompt section on the agent's own trading: only what is established, one line each, most urgent first."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from backsight.core.prompts.amounts import money
from backsight.core.prompts.sections import Section, section_of
from backsight.core.text.counts import count_of
from backsight.core.text.untrusted_text import name
from backsight.core.trades.costs import Costs

HEADING = "## How you trade"
SYMBOL_TOKENS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Decline:
    """A fall of results that is established, with the trades since then."""

    symbol: str | None
    """None for the strategy as a whole."""
    since: datetime
    won: int
    n: int

    @property
    def text(self) -> str:
        """The decline in words.

        >>> from datetime import UTC
        >>> Decline(symbol=None, since=datetime(2026, 3, 2, tzinfo=UTC), won=9, n=34).text
        'results have been falling since 2026-03-02: 9 of 34 trades won since then; expectations rest on these'
        """
        where = "results" if self.symbol is None else f"results in {name(self.symbol, tokens=SYMBOL_TOKENS)}"
        trades = f"{self.won} of {count_of(self.n, 'trade')} won since then"
        return f"{where} have been falling since {self.since:%Y-%m-%d}: {trades}; expectations rest on these"


def costs_in_words(costs: Costs, *, currency: str | None) -> str:
    """What costs took of the gross result, and what a trade must earn to pay them.

    >>> costs_in_words(Costs(trades=100, gross=10_932.0, paid=33_424.0), currency="USD")
    'costs took $33,424 of $10,932 gross in your last 100 trades: a trade must gain $334 to pay its own'
    """
    paid, gross, of_one = (money(amount, currency) for amount in (costs.paid, costs.gross, costs.paid / costs.trades))
    taken = f"costs took {paid} of {gross} gross in your last {costs.trades} trades"
    return f"{taken}: a trade must gain {of_one} to pay its own"


def how_you_trade(
    habits: Sequence[tuple[str, str]] = (),
    *,
    declines: Iterable[Decline] = (),
    costs: Costs | None = None,
    currency: str | None,
) -> Section:
    """Declines, costs and habits (symbol and sentence), as many as fit; empty where nothing is established."""
    return section_of("how_you_trade", HEADING, _rows(habits, declines, costs, currency))


def _rows(
    habits: Sequence[tuple[str, str]], declines: Iterable[Decline], costs: Costs | None, currency: str | None
) -> Iterator[str]:
    yield from (f"- {decline.text}" for decline in declines)
    if costs is not None and costs.are_large:
        yield f"- {costs_in_words(costs, currency=currency)}"
    yield from (f"- {name(symbol, tokens=SYMBOL_TOKENS)}: {habit}" for symbol, habit in habits)
