"""Creating the schema from its definition, and upgrading a store step by step, on both databases."""

import shutil
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from backsight.core.errors import Refused
from backsight.memory import open_memory
from backsight.store import schema
from backsight.store.database import open_database
from backsight.store.mapping import METADATA
from backsight.store.migrations import run
from backsight.store.row_security import WORDS_TABLE
from backsight.testing import FakeClock
from support import lived_in, raw

STEP = """
import sqlalchemy as sa
from alembic import op

revision = "0002_0.2.0"
down_revision = "{first}"


def upgrade() -> None:
    with op.batch_alter_table("accounts") as accounts:
        accounts.add_column(sa.Column("venue_code", sa.Text()))
    op.execute("UPDATE accounts SET venue_code = upper(venue)")
"""


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program whose schema has one step more: it adds a column and fills it from the rows that exist."""
    versions = tmp_path / "100% versions"
    shutil.copytree(run.VERSIONS, versions, ignore=shutil.ignore_patterns("__pycache__"))
    (versions / "0002_venue_code.py").write_text(STEP.format(first=schema.REVISION))
    monkeypatch.setattr(run, "VERSIONS", versions)
    monkeypatch.setattr(schema, "REVISION", "0002_0.2.0")


def revision_of(url: str) -> str | None:
    with raw(url) as connection:
        return schema.revision(connection)


def test_a_new_store_is_what_its_definition_says(url: str) -> None:
    open_memory(url).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        options = {"compare_type": True, "include_name": lambda name, *_: name != WORDS_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, METADATA) == []
    engine.dispose()
    assert revision_of(url) == schema.REVISION


def test_the_current_revision_is_the_last_step() -> None:
    assert run.revisions()[-1] == schema.REVISION


def test_a_store_with_rows_is_upgraded_when_it_is_opened(
    url: str, clock: FakeClock, request: pytest.FixtureRequest
) -> None:
    with open_memory(url, owner="ana", clock=clock) as memory:
        lived_in(memory, clock)
        trades, verified = memory.list_trades(limit=100), memory.verify_audit()
    request.getfixturevalue("next_release")
    for _ in range(2):  # the second time there is nothing left to do
        with open_memory(url, owner="ana", clock=clock) as memory:
            assert memory.list_trades(limit=100) == trades
            assert memory.verify_audit() == verified
            assert memory.open_account(venue="binance", name="main", currency="USDT").replayed
    assert revision_of(url) == "0002_0.2.0"
    with raw(url) as connection:
        codes = connection.execute(text("SELECT venue, venue_code FROM accounts ORDER BY venue")).all()
    assert ("binance", "BINANCE") in [tuple(row) for row in codes]
    assert all(code == venue.upper() for venue, code in codes)


def test_a_step_that_fails_leaves_the_store_as_it_was(url: str, next_release: None) -> None:
    with raw(url) as connection:
        schema.create(connection)
        connection.execute(schema.VERSION.update().values(version_num=run.revisions()[0]))
    step = run.VERSIONS / "0002_venue_code.py"
    step.write_text(step.read_text() + "    raise ZeroDivisionError\n")
    with pytest.raises(ZeroDivisionError):
        open_database(url)
    assert revision_of(url) == run.revisions()[0]
    with raw(url) as connection:
        columns = inspect(connection).get_columns("accounts")
    assert "venue_code" not in [column["name"] for column in columns]


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        (
            "0009_2.3.0",
            r"url: this database needs Backsight 2\.3\.0 \(its schema is '0009_2\.3\.0', this program's is ",
        ),
        ("c0ffee", r"url: this database needs another version of Backsight \(its schema is 'c0ffee', "),
    ],
)
def test_a_store_of_an_unknown_revision_is_refused(url: str, revision: str, message: str) -> None:
    open_memory(url).close()
    with raw(url) as connection:
        connection.execute(schema.VERSION.update().values(version_num=revision))
    with pytest.raises(Refused, match=message):
        open_memory(url)
    assert revision_of(url) == revision
