"""Upgrading a store to the schema of this program."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent
VERSIONS = SCRIPTS / "versions"


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration: the folder of the steps, and the connection they run on."""
    config = Config()
    config.set_main_option("path_separator", "newline")
    config.set_main_option("script_location", _escaped(SCRIPTS))
    config.set_main_option("version_locations", _escaped(VERSIONS))
    config.attributes["connection"] = connection
    return config


def revisions() -> list[str]:
    """The revisions that this program can upgrade from, and the current one; oldest first."""
    steps = ScriptDirectory.from_config(configuration()).walk_revisions()
    return [step.revision for step in steps][::-1]


def upgrade(connection: Connection) -> None:
    """Run the missing steps in the connection's transaction."""
    command.upgrade(configuration(connection), "head")


def _escaped(path: Path) -> str:
    return path.as_posix().replace("%", "%%")
