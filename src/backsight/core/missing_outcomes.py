"""Trades whose outcome in R is unknown: of how many it is known, and whether the losers are the ones that hide.

A mean over the trades with a known R is a mean over all trades only if R is missing at random. Where R is known of the
winners and missing of the losers, a coin has a mean of +1R. The test is Fisher's (1935): given how many trades have a
known R, is it known of so few losers by chance?
"""

import math
from dataclasses import dataclass

LEVEL = 0.05
"""The p-value from which losers hide: one in twenty histories whose R is missing at random is refused, too."""
MOST_EXACT = 500
"""Trades up to which the test is exact; beyond, the normal approximation is as good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOutcomes:
    """Of how many won and lost trades the outcome in R is known."""

    won: int = 0
    lost: int = 0
    """Trades at 0 count as lost."""
    known_won: int = 0
    known_lost: int = 0

    @property
    def n(self) -> int:
        return self.won + self.lost

    @property
    def known(self) -> int:
        return self.known_won + self.known_lost

    @property
    def unknown(self) -> int:
        return self.n - self.known

    @property
    def hides_losers(self) -> bool:
        """Whether R is missing more often among losers than among winners, beyond chance.

        >>> KnownOutcomes(won=20, lost=20, known_won=20, known_lost=14).hides_losers
        True
        >>> KnownOutcomes(won=20, lost=20, known_won=18, known_lost=14).hides_losers
        False
        """
        return self.unknown > 0 and self.p_value <= LEVEL

    @property
    def hides_winners(self) -> bool:
        """Whether R is missing more often among winners than among losers, beyond chance.

        >>> KnownOutcomes(won=20, lost=20, known_won=14, known_lost=20).hides_winners
        True
        """
        turned = KnownOutcomes(won=self.lost, lost=self.won, known_won=self.known_lost, known_lost=self.known_won)
        return turned.hides_losers

    @property
    def p_value(self) -> float:
        """The probability that R is known of so few losers by chance (one-sided; hypergeometric).

        >>> round(KnownOutcomes(won=20, lost=20, known_won=20, known_lost=14).p_value, 4)
        0.0101
        >>> KnownOutcomes(won=9, lost=0, known_won=4).p_value
        1.0
        """
        if not (self.won and self.lost and self.known and self.unknown):
            return 1.0
        if self.n > MOST_EXACT:
            return self._approximate_p_value
        fewest = max(0, self.known - self.won)
        ways = [
            math.comb(self.lost, k) * math.comb(self.won, self.known - k) for k in range(fewest, self.known_lost + 1)
        ]
        return sum(ways) / math.comb(self.n, self.known)

    @property
    def _approximate_p_value(self) -> float:
        share = self.known / self.n
        deviation = math.sqrt(self.lost * self.won / self.n * share * (1.0 - share) * self.n / (self.n - 1))
        return 0.5 * math.erfc((self.lost * share - self.known_lost - 0.5) / deviation / math.sqrt(2.0))

    @property
    def in_words(self) -> str:
        """How often R is unknown among losers and among winners.

        >>> KnownOutcomes(won=20, lost=20, known_won=19, known_lost=14).in_words
        'R is unknown for 30% of losing trades and 5% of winning ones'
        """
        lost, won = (
            f"{100.0 * (n - known) / n:.0f}%" if n else "none"
            for n, known in ((self.lost, self.known_lost), (self.won, self.known_won))
        )
        return f"R is unknown for {lost} of losing trades and {won} of winning ones"
