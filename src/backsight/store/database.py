"""Connections, transactions and upserts: the one module that knows both SQLite and PostgreSQL."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from time import sleep
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import URL, Engine, Executable, StaticPool, Table, create_engine, event, inspect, text
from sqlalchemy import Connection as Connection
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError

from backsight.core.errors import Conflict, Invalid, Refused, Unavailable
from backsight.core.ids import digest
from backsight.store import schema
from backsight.store.reading import PRIVATE, row_cache

if TYPE_CHECKING:
    from backsight.store.columns import Images

BUSY_SECONDS = 60
WAL_PAUSE = 0.02
"""Seconds between two attempts to switch a new SQLite file to write-ahead logging."""
SOUND_SQLITE = (3, 51, 3)
"""The first SQLite release without a rare bug: a reader may misread a write-ahead log that a writer resets."""
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
EXAMPLES = "sqlite:///agent.db or postgresql://user@host/name"
WRITING = "backsight_writing"
"""Execution option of connections that write."""


class Database:
    """An open store. Each read sees one snapshot; each write is atomic."""

    def __init__(self, engine: Engine, *, cache: Path | None = None) -> None:
        self._engine = engine
        self._cache = cache
        self._alone: AbstractContextManager[Any] = Lock() if isinstance(engine.pool, StaticPool) else nullcontext()

    @property
    def name(self) -> str:
        """The database URL without the password."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only transaction that sees one snapshot of the store."""
        options: dict[str, Any] = {}
        if self._engine.dialect.name == "postgresql":
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._transaction(options) as connection:
            yield connection

    @contextmanager
    def writing(self, owner: str) -> Iterator[Connection]:
        """A write transaction, the only one of this owner; it commits unless the block raises."""
        with self._transaction({WRITING: True}) as connection:
            if connection.dialect.name == "postgresql":
                _lock(connection, owner)
            yield connection

    @property
    def size(self) -> int | None:
        """Size of a SQLite store in bytes; None for PostgreSQL."""
        if self._engine.dialect.name != "sqlite":
            return None
        with self.reading() as connection:
            pages = text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            return int(connection.execute(pages).scalar_one())

    @cached_property
    def images(self) -> "Images":
        """The in-memory columns of each owner's episodes, which recall scans."""
        from backsight.store.columns import Images  # imports NumPy: slow, and only recall needs it

        url = self._engine.url
        if self._engine.dialect.name != "sqlite":
            return Images(self._cache, prefix=f"{digest(self.name)[:16]}-")
        file = None if _is_in_memory(url) else Path(url.database or "").absolute()
        return Images() if file is None else Images(file.parent, prefix=f"{file.name}-")

    @property
    def remarks(self) -> list[str]:
        """Known problems of the installed database version; empty when there are none."""
        if self._engine.dialect.name != "sqlite" or sqlite3.sqlite_version_info >= SOUND_SQLITE:
            return []
        fixed_in = ".".join(map(str, SOUND_SQLITE))
        problem = f"SQLite {sqlite3.sqlite_version} has a rare bug when several processes write to one file"
        return [f"{problem}; upgrade to {fixed_in} or later"]

    def save(self, path: Path) -> None:
        """Copy a SQLite store to a new file."""
        if path.exists():
            raise Conflict(f"{path} already exists; name a new file", field="path")
        if self._engine.dialect.name != "sqlite":
            raise Invalid("only SQLite stores can be copied; use pg_dump for PostgreSQL", field="path")
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._alone, _named_errors(self.name), self._engine.connect() as engine_connection:
            driver = engine_connection.connection.driver_connection
            if driver is not None:
                driver.execute("VACUUM INTO ?", (str(path),))

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _transaction(self, options: Mapping[str, Any]) -> Iterator[Connection]:
        with self._alone, _named_errors(self.name), self._engine.connect() as engine_connection:
            connection = engine_connection.execution_options(**options)
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                row_cache(connection).clear()  # it may hold rows that were rolled back
                raise


def open_database(url: str, *, cache: Path | None = None) -> Database:
    """Open the store at a URL; create it if it does not exist, upgrade it if it is older than this program.

    A store that is newer than this program is refused. `cache` is the folder for files that only save time; a SQLite
    store keeps those files beside its own file.
    """
    parsed = _parse(url)
    database = Database(_engine(parsed), cache=cache)
    try:
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def upsert_all(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, or replace the rows that have the same keys."""
    if rows:
        connection.execute(_upsert(table, connection.dialect.name), rows)


@cache
def _upsert(table: Table, dialect: str) -> Executable:
    """The upsert statement of a table; cached, because building it takes longer than running it."""
    key = [column.name for column in table.primary_key]
    insert = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    other_columns = {column.name: insert.excluded[column.name] for column in table.c if column.name not in key}
    statement: Executable = insert.on_conflict_do_update(index_elements=key, set_=other_columns)
    return statement


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise Invalid(f"this is not a database URL; give one like {EXAMPLES}", field="url") from None
    driver = DRIVERS.get(parsed.drivername.split("+")[0])
    if driver is None:
        raise Invalid(f"{parsed.drivername[:40]!r} is not supported; give one like {EXAMPLES}", field="url")
    return parsed.set(drivername=driver)


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "postgresql":
        try:
            return create_engine(url, pool_pre_ping=True)
        except (ModuleNotFoundError, NoSuchModuleError):
            raise Unavailable(
                "the PostgreSQL driver is not installed; pip install 'backsight[postgres]'", field="url"
            ) from None
    if _is_in_memory(url):
        engine = create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
        event.listen(engine, "connect", _mark_private)
    else:
        try:
            Path(url.database or "").parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_open(url.render_as_string(), error.strerror or str(error)) from None
        engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _is_in_memory(url: URL) -> bool:
    return url.database in (None, "", ":memory:")


def _mark_private(_connection: Any, record: Any) -> None:
    record.info[PRIVATE] = True


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions: `_begin_sqlite` does
    _switch_to_wal(connection)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _switch_to_wal(connection: Any) -> None:
    """Switch a file to write-ahead logging; wait for other processes that open the new file at the same time.

    If another connection is about to write, SQLite refuses the switch at once, without waiting for its busy timeout.
    """
    for attempts_left in reversed(range(int(BUSY_SECONDS / WAL_PAUSE))):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or not attempts_left:
                raise
            sleep(WAL_PAUSE)


def _begin_sqlite(connection: Connection) -> None:
    writing = connection.get_execution_options().get(WRITING)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _lock(connection: Connection, name: str) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": f"backsight:{name}"})


@contextmanager
def _named_errors(name: str) -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise Conflict(f"the database refused a row that conflicts with another: {_first_line(error)}") from error
    except DBAPIError as error:
        raise _cannot_open(name, _first_line(error)) from error


def _cannot_open(name: str, reason: str) -> Unavailable:
    return Unavailable(f"cannot use {name}: {reason}; check the URL and try again", field="url")


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__


SchemaState = Literal["empty", "current", "older"]


def _prepare(database: Database) -> None:
    """Create the schema, or upgrade it, where needed."""
    with database.reading() as connection:
        state = _state(connection)
    if state == "current":
        return
    with database.writing("schema") as connection:  # another process may have been faster: check again
        state = _state(connection)
        if state == "empty":
            schema.create(connection)
        elif state == "older":
            from backsight.store.migrations.run import upgrade

            upgrade(connection)


def _state(connection: Connection) -> SchemaState:
    tables = set(inspect(connection).get_table_names())
    if schema.VERSION.name not in tables:
        foreign = tables if connection.dialect.name == "sqlite" else tables & schema.TABLES
        if foreign:
            examples = ", ".join(sorted(foreign)[:3])
            raise Refused(
                f"this database is not a Backsight store (it has tables {examples}); give another", field="url"
            )
        return "empty"
    revision = schema.revision(connection)
    if revision == schema.REVISION:
        return "current"
    from backsight.store.migrations.run import revisions  # Alembic takes half a second to import

    if revision in revisions():
        return "older"
    release = str(revision).partition("_")[2]
    needed = f"Backsight {release}" if release else "another version of Backsight"
    schemas = f"its schema is {revision!r}, this program's is {schema.REVISION!r}"
    raise Refused(f"this database needs {needed} ({schemas}); install that version", field="url")
