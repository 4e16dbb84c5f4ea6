"""The ledger: what was traded, and how it ended."""
