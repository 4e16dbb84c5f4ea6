"""What trades cost, beside what they earned before costs."""

from dataclasses import dataclass

LARGE_SHARE = 1 / 3
FEWEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """The costs of some closed trades, in one currency."""

    trades: int
    gross: float
    """The result before fees and funding."""
    paid: float
    """Fees, and funding paid less funding received."""

    @property
    def are_large(self) -> bool:
        """Whether costs took more than a third of a gross gain, of at least ten trades.

        >>> Costs(trades=40, gross=300.0, paid=110.0).are_large, Costs(trades=40, gross=300.0, paid=90.0).are_large
        (True, False)
        >>> Costs(trades=40, gross=-300.0, paid=110.0).are_large
        False
        """
        return self.trades >= FEWEST and self.gross > 0.0 and self.paid > LARGE_SHARE * self.gross
