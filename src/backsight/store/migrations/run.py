"""Bringing a store up to the schema of this program."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

HERE = Path(__file__).parent


def configuration(connection: Connection | None = None) -> Config:
    """Where the steps are, and the connection they run on."""
    config = Config()
    config.set_main_option("script_location", HERE.as_posix().replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(connection: Connection, to: str = "head") -> None:
    """Run the steps that are missing, in the transaction that the connection is in."""
    command.upgrade(configuration(connection), to)
