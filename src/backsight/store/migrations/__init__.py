"""Upgrades of the schema, one step per release that changes it (Alembic)."""
