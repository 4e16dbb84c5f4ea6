"""The first schema. `store.schema.create` makes it from the table definitions, so this step never runs."""

revision = "0001_0.1.0.dev15"
down_revision = None


def upgrade() -> None: ...
