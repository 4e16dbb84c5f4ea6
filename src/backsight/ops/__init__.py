"""The operations of memory: one function each, in the module of their noun.

A noun may have a second module, whose name begins with the noun: it has operations that must start quickly, apart from
the slow imports of the others.
"""

NOUNS = {
    "trades": "Remember trades and deliberate inactions; list, read and annotate them.",
    "ticks": "Run a deployment tick by tick: the prompt before a decision, the record after it.",
    "claims": "Claim an account for one live loop, and record orders before they are submitted.",
    "decisions": "See what became of decisions, settle them, record calls that take no position.",
    "agents": "Run agents and talk to them; record their runs, and see what each concluded.",
    "state": "See the agent's mood and habits; record the equity of an account.",
    "beliefs": "State beliefs, see how credible they are, retire them.",
    "plans": "Make plans, see which plans apply, cancel and settle them.",
    "lessons": "Reflect on trades, see whether the lessons help, accept or reject proposals.",
    "recall": "Recall the memories that matter for a decision.",
    "documents": "Search documents; add notes, propose edits, approve them.",
    "strategies": "Save strategies, open accounts, deploy a strategy on an account.",
    "instruments": "Save what one unit of a symbol is worth, and in which steps it trades.",
    "performance": "See the performance of deployments and strategies, by category and by day.",
    "events": "Import and record market bars; import a calendar of market events, see what is ahead.",
    "facts": "See, add, edit and erase what is remembered about you; compose the prompt of a chat.",
    "fills": "Import the executions of an account from a file.",
    "positions": "Import position logs of other agents.",
    "legacy": "Import memories of the older three-layer scheme.",
    "keys": "Create the keys that callers of a server need; list and revoke them.",
    "admin": "Verify and export the audit chain; repair derived rows; back up, restore, export and erase.",
}
"""The nouns, with the purpose of their operations."""
