"""What one can ask of memory: one function each, grouped by noun."""

from typing import Literal, get_args

Audience = Literal["trader", "coach", "owner"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)

NOUNS = {
    "trades": "Remember trades and inactions; list and read them.",
    "ticks": "Run a deployment tick by tick: what to show, and what happened.",
    "state": "See the agent's mood; record what an account is worth.",
    "plans": "Make plans, see which apply, cancel them.",
    "recall": "Ask which memories matter here and now.",
    "strategies": "Save strategies, open accounts, deploy one on the other.",
    "performance": "See how deployments do.",
    "events": "Bring in what the market did.",
    "positions": "Bring in what agents held elsewhere.",
    "admin": "Prove that nothing was changed, and keep the proof.",
}
"""Every noun and what its operations are for; a module each."""
