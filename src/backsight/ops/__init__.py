"""The operations of memory: one function each, one module per noun."""

NOUNS = {
    "trades": "Remember trades and deliberate inactions; list, read and annotate them.",
    "ticks": "Run a deployment tick by tick: the prompt before a decision, the record after it.",
    "decisions": "Record calls that take no position; their outcome is known later.",
    "state": "See the agent's mood and habits; record the equity of an account.",
    "beliefs": "State beliefs, see how credible they are, retire them.",
    "plans": "Make plans, see which plans apply, cancel and settle them.",
    "lessons": "Reflect on trades, see whether the lessons help, accept or reject proposals.",
    "recall": "Recall the memories that matter for a decision.",
    "documents": "Search documents; add notes, propose edits, approve them.",
    "strategies": "Save strategies, open accounts, deploy a strategy on an account.",
    "instruments": "Save what one unit of a symbol is worth, and in which steps it trades.",
    "performance": "See the performance of deployments.",
    "events": "Import and record market bars.",
    "fills": "Import the executions of an account from a file.",
    "positions": "Import position logs of other agents.",
    "legacy": "Import memories of the older three-layer scheme.",
    "admin": "Verify and export the audit chain; repair derived rows; export all rows and import them.",
}
"""Each module of `ops` and the purpose of its operations."""
