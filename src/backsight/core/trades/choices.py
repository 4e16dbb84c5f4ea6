"""What a list of closed trades can be asked for, in words; without the arrays that answer it."""

from collections.abc import Mapping
from typing import Literal

TradeOrder = Literal["newest", "oldest", "best", "worst", "best_r", "worst_r", "longest"]
TradeResult = Literal["won", "lost"]
ORDER_WORDS: Mapping[str, TradeOrder] = {
    "latest": "newest",
    "recent": "newest",
    "most recent": "newest",
    "earliest": "oldest",
}
RESULT_WORDS: Mapping[str, TradeResult] = {
    "win": "won",
    "wins": "won",
    "winner": "won",
    "winners": "won",
    "loss": "lost",
    "losses": "lost",
    "loser": "lost",
    "losers": "lost",
}
Bounded = Literal["pnl", "outcome", "mae_r", "mfe_r", "minutes"]
"""The numbers of a trade that a list can be limited by."""
