"""Connections, transactions and upserts: the one module that knows both SQLite and PostgreSQL."""

import os
import re
import sqlite3
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from pathlib import Path
from threading import Lock, get_ident
from time import sleep
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from sqlalchemy import URL, Engine, Executable, StaticPool, Table, TextClause, create_engine, event, inspect, text
from sqlalchemy import Connection as Connection
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from backsight.core.errors import Conflict, Invalid, NotFound, Refused, Unavailable
from backsight.core.ids import digest
from backsight.store import row_security, schema
from backsight.store.mapping import METADATA
from backsight.store.reading import PRIVATE, row_cache
from backsight.store.recent_recalls import RecentRecalls
from backsight.store.transaction_state import ANY_TABLE, TRANSACTION, TransactionState, UnchangedValues, mark_touched

if TYPE_CHECKING:
    from backsight.store.columns import Images
    from backsight.store.trade_columns import TradeImages

WAL_PAUSE = 0.02
"""Seconds between two attempts to switch a new SQLite file to write-ahead logging."""
BACKUP_PAUSE = 0.25
"""Seconds between two attempts to replace the content of a store that another process is writing."""
PRIVATE_MODE = 0o600
"""A store is readable and writable by its user alone; SQLite gives its further files the same mode."""
SOUND_SQLITE = (3, 51, 3)
"""The first SQLite release without a rare bug: a reader may misread a write-ahead log that a writer resets."""
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}
EXAMPLES = "sqlite:///agent.db or postgresql://user@host/name"
INSUFFICIENT_PRIVILEGE = "42501"
"""PostgreSQL's code for an action that the role may not take."""
LOCK_NOT_AVAILABLE, QUERY_CANCELED = "55P03", "57014"
"""PostgreSQL's codes for a lock that was not acquired in time, and for a statement that took too long."""
TABLE_LOCK_WAIT = 1.0
"""Seconds to wait for the lock of a whole table, during which everyone else waits behind."""
READERS_END = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds between attempts to write a table anew while an older transaction may still read its deleted rows."""
WRITING = "backsight_writing"
"""Execution option of connections that write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseLimits:
    """How long the store is waited for, in seconds, and how many connections a process uses."""

    connect_timeout: float = 10.0
    """For a new connection to PostgreSQL."""
    lock_timeout: float = 60.0
    """For another command of the same owner to finish."""
    idle_timeout: float = 600.0
    """After which PostgreSQL ends a transaction in which nothing happens, and with it the lock that it holds."""
    pool_timeout: float = 30.0
    """For a free connection, if all connections of the process are in use."""
    connections: int = 15
    """More than the server runs operations at a time, so that none of them waits for a connection."""


class Database:
    """An open store. Each read sees one snapshot; each write is atomic."""

    def __init__(self, engine: Engine, *, cache: Path | None = None, limits: DatabaseLimits | None = None) -> None:
        self._engine = engine
        self._cache = cache
        self._unchanged = UnchangedValues()
        self.recent_recalls = RecentRecalls()
        self._limits = limits or DatabaseLimits()
        self._alone: AbstractContextManager[Any] = Lock() if isinstance(engine.pool, StaticPool) else nullcontext()
        self._writers = Lock() if self.is_file else None
        """SQLite's own wait for its lock is a poll: among many threads, some would wait for very long."""

    @property
    def name(self) -> str:
        """The database URL without the password."""
        return self._engine.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self, owner: str = "") -> Iterator[Connection]:
        """A read-only transaction that sees one snapshot of the store, with row-level security of this owner's rows."""
        options: dict[str, Any] = {}
        if self._engine.dialect.name == "postgresql":
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._transaction(options) as connection:
            _set_owner(connection, owner)
            yield connection

    @contextmanager
    def writing(self, owner: str, *, lock: str | None = None) -> Iterator[Connection]:
        """A write transaction, the only one of this owner; it commits unless the block raises.

        `lock` names what it excludes instead: other transactions with the same lock.
        """
        with self._turn(), self._transaction({WRITING: True}) as connection:
            if connection.dialect.name == "postgresql":
                _lock(connection, lock or owner)
            _set_owner(connection, owner)
            yield connection

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The turn of this thread among those of the process that write to a SQLite file."""
        if self._writers is None:
            yield
            return
        if not self._writers.acquire(timeout=self._limits.lock_timeout):
            raise _unavailable(self.name, "database is locked", self._limits)
        try:
            yield
        finally:
            self._writers.release()

    def prepare(self, role: str) -> None:
        """Make a role of PostgreSQL for the application, for which row-level security holds."""
        if self._engine.dialect.name != "postgresql":
            raise Invalid("SQLite has no roles and no row-level security; give a PostgreSQL URL", field="url")
        from backsight.store.search.postgres_vectors import create_extension

        with self.writing("schema") as connection:
            create_extension(connection)
            row_security.prepare(connection, role, METADATA.tables, version_table=schema.VERSION.name)

    @property
    def url(self) -> URL:
        return self._engine.url

    @property
    def is_file(self) -> bool:
        """Whether the store is a SQLite file."""
        return self._engine.dialect.name == "sqlite" and not _is_in_memory(self._engine.url)

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

        folder, prefix = self._columns_place
        return Images(folder, prefix=prefix)

    @cached_property
    def trade_images(self) -> "TradeImages":
        """The in-memory columns of each owner's closed trades, which counts and sums are computed from."""
        from backsight.store.trade_columns import TradeImages  # imports NumPy

        folder, prefix = self._columns_place
        return TradeImages(folder, prefix=prefix)

    @property
    def _columns_place(self) -> tuple[Path | None, str]:
        """The folder of the files of columns, None for a store in memory, and how their names begin."""
        url = self._engine.url
        if self._engine.dialect.name != "sqlite":
            return self._cache, f"{digest(self.name)[:16]}-"
        if _is_in_memory(url):
            return None, ""
        file = Path(url.database or "").absolute()
        return file.parent, f"{file.name}-"

    def last_value(self, owner: str, key: Hashable) -> Any:
        """What was read before and no command of this process changed; another process may have. None if not read."""
        return self._unchanged.last(owner, key)

    @property
    def remarks(self) -> list[str]:
        """Known problems of the database, of its file and of the role that uses it; empty when there are none."""
        if self._engine.dialect.name == "postgresql":
            with self.reading() as connection:
                return [_BYPASSING] if row_security.bypasses_policies(connection) else []
        if self._engine.dialect.name != "sqlite":
            return []
        remarks = []
        if sqlite3.sqlite_version_info < SOUND_SQLITE:
            fixed_in = ".".join(map(str, SOUND_SQLITE))
            problem = f"SQLite {sqlite3.sqlite_version} has a rare bug when several processes write to one file"
            remarks.append(f"{problem}; upgrade to {fixed_in} or later")
        if self.is_file and self._others_can_read():
            remarks.append("Other users of this machine can read the file of the store; chmod 600 stops that.")
        return remarks

    def _others_can_read(self) -> bool:
        path = Path(self._engine.url.database or "")
        return os.name == "posix" and path.exists() and bool(path.stat().st_mode & 0o077)

    @property
    def damage(self) -> list[str]:
        """What SQLite finds wrong in the pages of its file, at most ten sentences; PostgreSQL checks its own pages."""
        if self._engine.dialect.name != "sqlite":
            return []
        try:
            with self.reading() as connection:
                rows = connection.execute(text("PRAGMA integrity_check(10)")).scalars().all()
        except Unavailable as error:
            return [error.message]
        return [str(row) for row in rows if row != "ok"]

    def save(self, path: Path) -> None:
        """Copy a SQLite store to a new file by SQLite's online backup: one state of the store, even while others write.

        The file gets its name when it is complete.
        """
        if path.exists():
            raise Conflict(f"{path} already exists; name a new file", field="path")
        if self._engine.dialect.name != "sqlite":
            raise Invalid("only SQLite stores can be copied; use pg_dump for PostgreSQL", field="path")
        draft = Path(f"{path}.new-{os.getpid()}-{get_ident()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_MODE))
            with self._driver() as driver, closing(sqlite3.connect(draft)) as copy:
                driver.backup(copy)
            if not _publish_file(draft, path):
                raise Conflict(f"{path} already exists; name a new file", field="path")
        except (OSError, sqlite3.Error) as error:
            raise Unavailable(f"{path} cannot be written ({error}); nothing is left there", field="path") from error
        finally:
            _remove_file(draft)

    def load(self, path: Path) -> None:
        """Replace everything in a SQLite store by the content of a copy, in one transaction."""
        waits = iter(range(max(1, int(self._limits.lock_timeout / BACKUP_PAUSE))))

        def wait(_status: int, _remaining: int, _total: int) -> None:
            if next(waits, None) is None:
                raise _unavailable(self.name, "database is locked", self._limits)

        try:
            with self._driver() as driver, closing(sqlite3.connect(immutable_name(path), uri=True)) as copy:
                copy.backup(driver, progress=wait, sleep=BACKUP_PAUSE)
        except sqlite3.Error as error:
            raise _unavailable(self.name, str(error), self._limits) from error
        self.forget()

    @contextmanager
    def _driver(self) -> Iterator[Any]:
        """A connection of SQLite's own driver, outside any transaction."""
        with self._alone, _named_errors(self.name, self._limits), self._engine.connect() as engine_connection:
            yield engine_connection.connection.driver_connection

    def forget(self) -> None:
        """Forget everything that was read: the whole store was replaced, or rows were removed for good."""
        self._unchanged = UnchangedValues()
        self.recent_recalls = RecentRecalls()
        if not isinstance(self._engine.pool, StaticPool):
            self._engine.dispose()  # connections remember rows
        with self.reading() as connection:
            row_cache(connection).clear()
        for name in ("images", "trade_images"):
            self.__dict__.pop(name, None)

    def compact(self, *, seconds: float | None = None) -> bool:
        """Give up the space of removed rows and overwrite what they contained; whether all of it could be done.

        A SQLite file is written anew and its write-ahead log emptied, unless another process reads at the moment. On
        PostgreSQL only the owner of the tables can do it. Each table is locked while it is written anew; a table that
        takes longer than some seconds stays as it is, so that other owners wait no longer than that. Deleted rows that
        an older transaction may still read are kept by PostgreSQL; they are tried again for some seconds.
        """
        if self._engine.dialect.name == "postgresql":
            return self._compact_postgres(seconds)
        try:
            with self._driver() as driver:
                driver.execute("VACUUM")
                busy, _, _ = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except sqlite3.OperationalError:
            return False
        return not busy

    def _compact_postgres(self, seconds: float | None) -> bool:
        with _named_errors(self.name, self._limits), self._engine.connect() as engine_connection:
            connection = engine_connection.execution_options(isolation_level="AUTOCOMMIT")
            tables = connection.execute(row_security.TABLES).all()
            own = [row_security.quoted(name) for name, is_own in tables if is_own]
            # Whoever comes after a statement that waits for a table's lock waits too, even for reading.
            connection.exec_driver_sql(f"SET lock_timeout = '{round(TABLE_LOCK_WAIT * 1000)}ms'")
            connection.exec_driver_sql(f"SET statement_timeout = '{round((seconds or 0) * 1000)}ms'")
            try:
                outcomes = {name: _compact_table(connection, name) for name in own}
                for pause in READERS_END:
                    in_use = [name for name, outcome in outcomes.items() if outcome == "in use"]
                    if not in_use:
                        break
                    sleep(pause)
                    outcomes |= {name: _compact_table(connection, name) for name in in_use}
            finally:
                connection.exec_driver_sql("RESET statement_timeout")
                connection.exec_driver_sql(f"SET lock_timeout = '{round(self._limits.lock_timeout * 1000)}ms'")
        return set(outcomes.values()) == {"clean"} and len(own) == len(tables)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _transaction(self, options: Mapping[str, Any]) -> Iterator[Connection]:
        with self._alone, _named_errors(self.name, self._limits), self._engine.connect() as engine_connection:
            connection = engine_connection.execution_options(**options)
            info = connection.info
            state = info[TRANSACTION] = TransactionState(self._unchanged)
            try:
                with connection.begin():
                    yield connection
                state.committed()
            except BaseException:
                row_cache(connection).clear()  # it may hold rows that were rolled back
                raise
            finally:
                info.pop(TRANSACTION, None)  # a connection that the server ended has lost it


def _compact_table(connection: Connection, name: str) -> Literal["clean", "in use", "too long"]:
    """Write a table of PostgreSQL anew without its deleted rows.

    A table that another transaction uses, or that takes too long, is left as it is. Rows that were deleted after an
    older transaction began are copied, since that transaction may still read them: the table is in use too. PostgreSQL
    tells the number of such rows in a notice alone.
    """
    kept_rows: list[int] = []

    def count_kept(notice: Any) -> None:
        kept_rows.extend(int(number) for number in re.findall(r"\d+", notice.message_detail or "")[:1])

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(count_kept)
    try:
        connection.exec_driver_sql(f"VACUUM (FULL, VERBOSE) {name}")
    except DBAPIError as error:
        code = getattr(error.orig, "sqlstate", None)
        if code not in (LOCK_NOT_AVAILABLE, QUERY_CANCELED):
            raise
        return "in use" if code == LOCK_NOT_AVAILABLE else "too long"
    finally:
        driver.remove_notice_handler(count_kept)
    return "clean" if kept_rows == [0] else "in use"


def require_store(url: str, *, hint: str = "") -> None:
    """Raise `NotFound` if the store at a URL is a file that does not exist; `open_database` would create it.

    `hint` is where there may be one.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() != "sqlite" or _is_in_memory(parsed) or Path(parsed.database or "").exists():
        return
    where = f"there is no store at {parsed.database}"
    remedy = f"{hint or 'check the URL'}; the first command that writes creates a store"
    raise NotFound(f"{where}; {remedy}", field="url")


def open_database(url: str, *, cache: Path | None = None, limits: DatabaseLimits | None = None) -> Database:
    """Open the store at a URL; create it if it does not exist, upgrade it if it is older than this program.

    A store that is newer than this program is refused. `cache` is the folder for files that only save time; a SQLite
    store keeps those files beside its own file.
    """
    parsed, limits = _parse(url), limits or DatabaseLimits()
    if parsed.get_backend_name() == "sqlite" and not _is_in_memory(parsed):
        _create_file(parsed, limits)
    database = Database(_engine(parsed, limits), cache=cache, limits=limits)
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
    insert = _insert_of(dialect)(table)
    other_columns = {column.name: insert.excluded[column.name] for column in table.c if column.name not in key}
    statement: Executable = insert.on_conflict_do_update(index_elements=key, set_=other_columns)
    return statement


def insert_missing(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> set[tuple[Any, ...]]:
    """Insert the rows whose keys are not stored yet, and return the keys of these rows."""
    statement = _insert_missing(table, connection.dialect.name)
    return {tuple(key) for key in connection.execute(statement, rows)} if rows else set()


@cache
def _insert_missing(table: Table, dialect: str) -> Executable:
    insert = _insert_of(dialect)(table)
    statement: Executable = insert.on_conflict_do_nothing().returning(*table.primary_key)
    return statement


def _insert_of(dialect: str) -> Any:
    """The insert construct of a database; the module of the other database is not imported."""
    return import_module(f"sqlalchemy.dialects.{dialect}").insert


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise Invalid(f"this is not a database URL; give one like {EXAMPLES}", field="url") from None
    driver = DRIVERS.get(parsed.drivername.split("+")[0])
    if driver is None:
        raise Invalid(f"{parsed.drivername[:40]!r} is not supported; give one like {EXAMPLES}", field="url")
    return parsed.set(drivername=driver)


def _create_file(url: URL, limits: DatabaseLimits) -> None:
    """Create the file of a new store, readable by its user alone, with its tables: no process sees an empty file."""
    path = Path(url.database or "")
    draft = Path(f"{path}.new-{os.getpid()}-{get_ident()}")
    try:
        if path.exists():
            if not path.stat().st_size:
                raise _no_store(url)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_MODE))
        database = Database(_engine(url.set(database=str(draft)), limits))
        with database.writing("schema") as connection:
            schema.create(connection)
        database.close()
        _publish_file(draft, path)
    except OSError as error:
        raise _cannot_open(url.render_as_string(), error.strerror or str(error)) from None
    finally:
        _remove_file(draft)


def _remove_file(path: Path) -> None:
    """Remove a SQLite file and the files beside it, if they exist."""
    for end in ("", "-wal", "-shm"):
        with suppress(OSError):
            Path(f"{path}{end}").unlink()


def _publish_file(draft: Path, path: Path) -> bool:
    """Give a complete file its name; False if another process was faster."""
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if path.exists():
            return False
        draft.replace(path)
    return True


def _engine(url: URL, limits: DatabaseLimits) -> Engine:
    engine = _new_engine(url, limits)
    event.listen(engine, "before_execute", _note_table)
    return engine


def _note_table(connection: Connection, statement: Any, *_: object) -> None:
    """Note which table a statement of a command changes; a statement given as text may change any table."""
    if getattr(statement, "is_dml", False):
        mark_touched(connection, statement.table.name)
    elif isinstance(statement, TextClause) and not statement.text.lstrip().upper().startswith("SELECT"):
        mark_touched(connection, ANY_TABLE)


def _new_engine(url: URL, limits: DatabaseLimits) -> Engine:
    pool = {"pool_size": limits.connections, "max_overflow": 0, "pool_timeout": limits.pool_timeout}
    if url.get_backend_name() == "postgresql":
        connect = {"connect_timeout": max(1, round(limits.connect_timeout))}
        try:
            engine = create_engine(url, pool_pre_ping=True, connect_args=connect, **pool)
        except (ModuleNotFoundError, NoSuchModuleError):
            raise Unavailable(
                "the PostgreSQL driver is not installed; pip install 'backsight[postgres]'", field="url"
            ) from None
        event.listen(engine, "connect", partial(_set_up_postgres, limits))
        return engine
    if _is_in_memory(url):
        engine = create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
        event.listen(engine, "connect", _mark_private)
    else:
        engine = create_engine(_file_url(url), connect_args={"timeout": limits.lock_timeout}, **pool)
    event.listen(engine, "connect", partial(_set_up_sqlite, limits))
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _file_url(url: URL) -> URL:
    """The URL of a SQLite file; of one that may not be written, the URL that opens it for reading only."""
    path = Path(url.database or "")
    if not path.exists() or os.access(path, os.W_OK):
        return url
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists() and wal.stat().st_size:
        message = f"{path} may not be written and has a write-ahead log, without which rows would be missing"
        raise Unavailable(f"{message}; copy both files to a folder of your own, and open the copy", field="url")
    return _immutable_url(path)


def _immutable_url(path: Path) -> URL:
    return URL.create(
        DRIVERS["sqlite"],
        database=f"file:{quote(str(path.absolute()))}",
        query={"immutable": "1", "uri": "true"},
    )


def immutable_name(path: Path) -> str:
    """The name by which SQLite opens a file that nobody writes, for reading only and without files beside it."""
    return f"file:{quote(str(path.absolute()))}?immutable=1"


def open_copy(path: Path) -> Database:
    """Open a copy of a SQLite store for reading only; a copy with another schema is refused."""
    database = Database(_new_engine(_immutable_url(path), DatabaseLimits()))
    try:
        with database.reading() as connection:
            if _state(connection) != "current":
                raise Refused(f"{path} is of an older schema; open it once with this program, as its URL", field="path")
    except BaseException:
        database.close()
        raise
    return database


def _is_in_memory(url: URL) -> bool:
    return url.database in (None, "", ":memory:")


def _mark_private(_connection: Any, record: Any) -> None:
    record.info[PRIVATE] = True


def _set_up_postgres(limits: DatabaseLimits, connection: Any, _record: object) -> None:
    """Let PostgreSQL end waits that nobody else would end: for a lock, and in an idle transaction."""
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{round(limits.lock_timeout * 1000)}ms'")
        cursor.execute(f"SET idle_in_transaction_session_timeout = '{round(limits.idle_timeout * 1000)}ms'")
    connection.autocommit = False


def _set_up_sqlite(limits: DatabaseLimits, connection: Any, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions: `_begin_sqlite` does
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _switch_to_wal(connection, seconds=limits.lock_timeout)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _switch_to_wal(connection: Any, *, seconds: float) -> None:
    """Switch a file to write-ahead logging; wait for other processes that open the new file at the same time.

    If another connection is about to write, SQLite refuses the switch at once, without waiting for its busy timeout.
    """
    for attempts_left in reversed(range(max(1, int(seconds / WAL_PAUSE)))):
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


_BYPASSING = (
    "PostgreSQL: the role of this connection bypasses row-level security; connect as a role that `backsight admin"
    " prepare-database` makes"
)


def _set_owner(connection: Connection, owner: str) -> None:
    """Let the transaction see the rows of one owner only, where the database can."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(row_security.SET_OWNER, (owner,))


def _lock(connection: Connection, name: str) -> None:
    connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": f"backsight:{name}"})


@contextmanager
def _named_errors(name: str, limits: DatabaseLimits) -> Iterator[None]:
    try:
        yield
    except ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
            raise _cannot_open(name, _first_line(error)) from error
        raise Refused(
            f"the database refused: {_first_line(error)}; run `backsight admin prepare-database` as the role that owns"
            " the tables",
            field="url",
        ) from error
    except IntegrityError as error:
        raise Conflict(f"the database refused a row that conflicts with another: {_first_line(error)}") from error
    except PoolTimeoutError as error:
        message = f"all {limits.connections} connections to {name} were in use for {limits.pool_timeout:g} s"
        raise Unavailable(f"{message}; try again later, or raise the setting connections", field="url") from error
    except DBAPIError as error:
        raise _unavailable(name, _first_line(error), limits) from error


_REMEDIES = {
    "lock timeout": "another command has the lock for longer than {lock:g} s (setting lock_timeout); try again",
    "database is locked": "another command has the lock for longer than {lock:g} s (setting lock_timeout); try again",
    "idle-in-transaction": "nothing happened in the transaction for {idle:g} s (setting idle_timeout); call again",
    "malformed": "pages of the file are damaged; stop writing, run doctor on a copy, and restore a backup",
    "not a database": "the file is damaged or of another program; restore a backup, or give another file",
    "disk is full": "the disk is full and nothing was written; free some space and try again",
    "no space left": "the disk is full and nothing was written; free some space and try again",
    "disk i/o error": "the disk fails, or files of the store were removed; check both, then run verify_audit",
    "readonly": "the store is open for reading only; give write access to its file and folder",
    "read-only": "the store is open for reading only; give write access to its file and folder",
}
"""Parts of the messages of both databases, and what to do."""


def _unavailable(name: str, reason: str, limits: DatabaseLimits) -> Unavailable:
    remedy = next((remedy for part, remedy in _REMEDIES.items() if part in reason.lower()), None)
    if remedy is None:
        return _cannot_open(name, reason)
    advice = remedy.format(lock=limits.lock_timeout, idle=limits.idle_timeout)
    return Unavailable(f"cannot use {name}: {reason}: {advice}", field="url")


def _no_store(url: URL) -> Refused:
    problem = f"{url.database} exists and is empty: it is no store, or a copy without its write-ahead log"
    return Refused(f"{problem}; restore the file, or delete it to begin a new store", field="url")


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
    if state == "empty" and database.is_file:  # a new file gets its tables before any process can open it
        raise _no_store(database.url)
    with database.writing("schema") as connection:  # another process may have been faster: check again
        state = _state(connection)
        if state == "empty":
            schema.create(connection)
        elif state == "older":
            from backsight.store.migrations.run import upgrade

            upgrade(connection)


def _own_tables() -> frozenset[str]:
    from backsight.store.tables import TABLES  # imports every module with tables, which an existing store need not have

    return TABLES


def _state(connection: Connection) -> SchemaState:
    tables = set(inspect(connection).get_table_names())
    if schema.VERSION.name not in tables:
        foreign = tables if connection.dialect.name == "sqlite" else tables & _own_tables()
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
