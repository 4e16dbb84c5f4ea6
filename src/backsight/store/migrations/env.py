"""Alembic runs this file: it executes the missing steps on the connection in the configuration."""

from alembic import context

from backsight.store import (
    schema,
    tables,  # noqa: F401 (it defines every table of METADATA)
)
from backsight.store.mapping import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=schema.VERSION.name,
    render_as_batch=True,
)
context.run_migrations()
