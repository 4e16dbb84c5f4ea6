"""Dumps of a PostgreSQL store by PostgreSQL's own programs, `pg_dump` and `pg_restore`."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from sqlalchemy import URL, Connection, text

from backsight.core.errors import Unavailable
from backsight.store.row_security import bypasses_policies, quoted

MAGIC = b"PGDMP"
"""The first bytes of a dump in the custom format."""


def missing_reason(connection: Connection) -> str | None:
    """Why the store cannot be dumped by pg_dump; None if it can."""
    program = shutil.which("pg_dump")
    if program is None or shutil.which("pg_restore") is None:
        return "pg_dump is not installed"
    if not bypasses_policies(connection):
        return "row-level security hides the rows of other owners from this role"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    own = re.search(r"\d+", version)
    server = int(connection.execute(text("SHOW server_version_num")).scalar_one()) // 10_000
    if own is None or int(own.group()) < server:
        return f"pg_dump is older than the server, which is PostgreSQL {server}"
    return None


def dump(connection: Connection, url: URL, path: Path) -> None:
    """Write a dump of the snapshot that the transaction of this connection sees."""
    snapshot = str(connection.execute(text("SELECT pg_export_snapshot()")).scalar_one())
    arguments = ["--format=custom", f"--snapshot={snapshot}", f"--schema={quoted(schema_of(connection))}"]
    _run("pg_dump", url, [*arguments, "--no-owner", f"--file={path}"])
    path.chmod(0o600)
    _run("pg_restore", None, ["--list", str(path)])


def load(schema: str, url: URL, path: Path) -> None:
    """Replace the tables of a schema by those of a dump, in one transaction."""
    arguments = ["--clean", "--if-exists", "--single-transaction", "--exit-on-error", "--no-owner"]
    _run("pg_restore", url, [*arguments, f"--schema={schema}", str(path)])


def schema_of(connection: Connection) -> str:
    """The schema of the store."""
    return str(connection.execute(text("SELECT current_schema()")).scalar_one())


def _run(program: str, url: URL | None, arguments: list[str]) -> None:
    """Run a program of PostgreSQL; the password goes through the environment, which other users cannot read."""
    environment = dict(os.environ)
    target: list[str] = []
    if url is not None:
        plain = url.set(drivername="postgresql")._replace(password=None)
        target = [f"--dbname={plain.render_as_string(hide_password=False)}"]
        if url.password:
            environment["PGPASSWORD"] = str(url.password)
    path = shutil.which(program)
    if path is None:
        raise Unavailable(f"{program} is not installed; install the client programs of PostgreSQL", field="path")
    done = subprocess.run([path, *target, *arguments], capture_output=True, text=True, env=environment, check=False)  # noqa: S603
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[0]
        raise Unavailable(f"{program} failed ({reason}); nothing was changed", field="path")
