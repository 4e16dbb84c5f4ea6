"""What one can ask of memory: one function each, grouped by noun."""

NOUNS = {
    "trades": "Remember trades and inactions; list, read and annotate them.",
    "ticks": "Run a deployment tick by tick: what to show, and what happened.",
    "decisions": "Record calls that take no position, to be judged later.",
    "state": "See the agent's mood and habits; record what an account is worth.",
    "beliefs": "State what holds where, see how credible it is, retire it.",
    "plans": "Make plans, see which apply, cancel and settle them.",
    "lessons": "Learn from trades, see whether that helps, accept what it proposes.",
    "recall": "Ask which memories matter here and now.",
    "documents": "Search what is written down; add notes, propose edits, approve them.",
    "strategies": "Save strategies, open accounts, deploy one on the other.",
    "performance": "See how deployments do.",
    "events": "Bring in what the market did.",
    "positions": "Bring in what agents held elsewhere.",
    "legacy": "Bring in memories of the older three-layer scheme.",
    "admin": "Prove that nothing was changed, and keep the proof.",
}
"""Every noun and what its operations are for; a module each."""
