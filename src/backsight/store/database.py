"""Connecting, transactions and upsert: the one file that knows there are two databases."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
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
SOUND_SQLITE = (3, 51, 3)
"""Before it, a write-ahead log that is reset while another process reads may rarely be misread."""
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
EXAMPLES = "sqlite:///agent.db or postgresql://user@host/name"
WRITING = "backsight_writing"


class Database:
    """A store that is open: reads see one moment of it, writes are whole or not at all."""

    def __init__(self, engine: Engine, *, cache: Path | None = None) -> None:
        self._engine = engine
        self._cache = cache
        self._alone: AbstractContextManager[Any] = Lock() if isinstance(engine.pool, StaticPool) else nullcontext()

    @property
    def name(self) -> str:
        """The URL without its password."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees the store as it was when the reading began."""
        options: dict[str, Any] = {}
        if self._engine.dialect.name == "postgresql":
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._transaction(options) as connection:
            yield connection

    @contextmanager
    def writing(self, owner: str) -> Iterator[Connection]:
        """A connection that is the owner's only writer; what it wrote is kept when the block ends well."""
        with self._transaction({WRITING: True}) as connection:
            if connection.dialect.name == "postgresql":
                _lock(connection, owner)
            yield connection

    @property
    def size(self) -> int | None:
        """Bytes that a SQLite store takes; None for another one."""
        if self._engine.dialect.name != "sqlite":
            return None
        with self.reading() as connection:
            counted = text("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            return int(connection.execute(counted).scalar_one())

    @cached_property
    def images(self) -> "Images":
        """The episodes of its owners in columns."""
        from backsight.store.columns import Images  # takes a while, and not everybody recalls

        url = self._engine.url
        if self._engine.dialect.name != "sqlite":
            return Images(self._cache, prefix=f"{digest(self.name)[:16]}-")
        file = None if _is_in_memory(url) else Path(url.database or "").absolute()
        return Images() if file is None else Images(file.parent, prefix=f"{file.name}-")

    @property
    def remarks(self) -> list[str]:
        """What somebody who runs this store should know of the database below it."""
        if self._engine.dialect.name != "sqlite" or sqlite3.sqlite_version_info >= SOUND_SQLITE:
            return []
        sound = ".".join(map(str, SOUND_SQLITE))
        told = f"SQLite {sqlite3.sqlite_version} has a rare fault where several processes write to one file"
        return [f"{told}; it is mended in {sound}"]

    def save(self, path: Path) -> None:
        """Write all of a SQLite store to a new file."""
        if path.exists():
            raise Conflict(f"{path} is already there; name a new file", field="path")
        if self._engine.dialect.name != "sqlite":
            raise Invalid("this store is not SQLite's; use the database's own tools to copy it", field="path")
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._alone, _named_errors(self.name), self._engine.connect() as plain:
            driver = plain.connection.driver_connection
            if driver is not None:
                driver.execute("VACUUM INTO ?", (str(path),))

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _transaction(self, options: Mapping[str, Any]) -> Iterator[Connection]:
        with self._alone, _named_errors(self.name), self._engine.connect() as plain:
            connection = plain.execution_options(**options)
            try:
                with connection.begin():
                    yield connection
            except BaseException:
                row_cache(connection).clear()  # it may hold what was taken back
                raise


def open_database(url: str, *, cache: Path | None = None) -> Database:
    """The store at this URL, made if there is none yet, refused if newer code wrote it.

    `cache` is where files go that only spare time, unless the store is a file and has them beside it.
    """
    parsed = _parse(url)
    database = Database(_engine(parsed), cache=cache)
    try:
        _prepare(database)
    except BaseException:
        database.close()
        raise
    return database


def upsert(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Write a row whole, in place of the one with its key if there is one."""
    key = [column.name for column in table.primary_key]
    rest = {name: value for name, value in row.items() if name not in key}
    make = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    connection.execute(make(table).values(**row).on_conflict_do_update(index_elements=key, set_=rest))


def upsert_all(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows whole, each in place of the one with its key if there is one."""
    if rows:
        connection.execute(_upsert(table, connection.dialect.name), rows)


@cache
def _upsert(table: Table, dialect: str) -> Executable:
    """The statement that does so; made once, since making it takes longer than running it."""
    key = [column.name for column in table.primary_key]
    make = (postgresql if dialect == "postgresql" else sqlite).insert(table)
    rest = {column.name: make.excluded[column.name] for column in table.c if column.name not in key}
    made: Executable = make.on_conflict_do_update(index_elements=key, set_=rest)
    return made


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
            raise Unavailable("PostgreSQL needs its driver; pip install 'backsight[postgres]'", field="url") from None
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
    connection.isolation_level = None  # so that BEGIN is ours to say
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


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
        raise Conflict(f"The store refused a row that contradicts another: {_first_line(error)}") from error
    except DBAPIError as error:
        raise _cannot_open(name, _first_line(error)) from error


def _cannot_open(name: str, reason: str) -> Unavailable:
    return Unavailable(f"cannot use {name}: {reason}; check the address and try again", field="url")


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__


State = Literal["empty", "current", "older"]


def _prepare(database: Database) -> None:
    with database.reading() as connection:
        state = _state(connection)
    if state == "current":
        return
    with database.writing("schema") as connection:  # another process may have been quicker: look again
        state = _state(connection)
        if state == "empty":
            schema.create(connection)
        elif state == "older":
            from backsight.store.migrations.run import upgrade

            upgrade(connection)


def _state(connection: Connection) -> State:
    tables = set(inspect(connection).get_table_names())
    if schema.VERSION.name not in tables:
        foreign = tables if connection.dialect.name == "sqlite" else tables & schema.TABLES
        if foreign:
            shown = ", ".join(sorted(foreign)[:3])
            raise Refused(f"this database is not Backsight's (it holds {shown}); give another one", field="url")
        return "empty"
    revision = schema.revision(connection)
    if revision == schema.REVISIONS[-1]:
        return "current"
    if revision in schema.REVISIONS:
        return "older"
    needed = str(revision).partition("_")[2] or "a newer version"
    raise Refused(
        f"this database needs Backsight {needed} (its schema is {revision}); upgrade the program", field="url"
    )
