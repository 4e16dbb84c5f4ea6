"""How a store came to its present schema, one step a release (Alembic)."""
