"""Memory at rest: the only SQL."""
