"""Settings: one frozen value, built from a mapping. Only this module reads the environment and the config file."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from backsight.core.errors import Invalid, did_you_mean
from backsight.language_models import checked_base_url

PREFIX = "BACKSIGHT_"
MAX_NAME = 100
LONGEST_TIMEOUT = 3_600.0
SECONDS = ("connect_timeout", "lock_timeout", "idle_timeout", "pool_timeout", "clock_skew", "model_timeout")
"""The settings that are seconds."""
MOST_CONNECTIONS = 1_000
SHORTEST_AUDIT_KEY = 32
CONFIG_FILES: Mapping[str, tuple[str, ...]] = {"backsight.toml": (), "pyproject.toml": ("tool", "backsight")}
"""Files with settings, the first of which that has any counts, and the table in which they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one process uses Backsight; each field is set by the variable `BACKSIGHT_` and its name in capitals."""

    url: str
    """URL of the database: `sqlite:///file.db` or `postgresql://user@host/name`."""
    owner: str = "me"
    """Owner of the memory. Owners cannot see each other's rows."""
    actor: str = "python"
    """Name of the caller in the audit log."""
    key: str | None = field(default=None, repr=False)
    """API key of the client that `backsight mcp` serves; the owner's tools need one."""

    cache: str | None = None
    """Folder for cache files, which may be deleted at any time. None: only beside a store that is a file."""
    connect_timeout: float = 10.0
    """Seconds to wait for a new connection to PostgreSQL."""
    lock_timeout: float = 60.0
    """Seconds that a command waits for another command of the same owner."""
    idle_timeout: float = 600.0
    """Seconds after which PostgreSQL ends a transaction of a client that stopped in it, and with it its lock."""
    pool_timeout: float = 30.0
    """Seconds to wait for a free connection, if all of the process are in use."""
    connections: int = 15
    """Most connections of a process to the store; the server runs fewer operations at a time."""
    clock_skew: float = 60.0
    """Seconds by which a reported time may be ahead of this machine's clock."""

    heads_file: str | None = None
    """Append-only file outside the database, for the head of the audit chain after each command. None: not recorded."""
    audit_key: str | None = field(default=None, repr=False)
    """Key that signs the heads in that file, 32 characters or more; the database never contains it."""
    audit_key_file: str | None = None
    """File with that key, instead of the key itself."""

    model_url: str | None = None
    """URL of an OpenAI-compatible server that writes lessons. None: the provider that the model's name begins with."""
    model_key: str | None = field(default=None, repr=False)
    """API key of the model. None: the key in the provider's own variable, or no key if model_url is set."""
    model_timeout: float = 60.0
    """Seconds to wait for an answer of the model."""
    claude_program: str = "claude"
    """The `claude` command line that runs agents: its name in PATH, or its path."""

    file_folders: str = ""
    """Folders below which callers over MCP and REST may name files, separated as in PATH. Empty: they may name none."""
    workspace: str | None = None
    """Folder of the documents. None: no documents are indexed."""
    shared_folders: str = ""
    """Further folders to search, separated as in PATH; for example shared playbooks."""
    search: str = "sqlite_fts"
    """How documents are searched: `sqlite_fts`, by words on both databases, or `hybrid_embeddings`, by meaning too."""
    fusion: str = "standardised"
    """How the ranks by words and by meaning are combined: `standardised`, `weighted_sum` or `reciprocal_rank`."""
    keyword_weight: str = "0.5"
    vector_weight: str = "0.5"
    minimum_score: str = "0.3"
    """Matches with a lower score are left out."""
    source_caps: str = "run=3,decision=3,review=3"
    """The most citations of each source, unless the query names sources. Daily documents resemble each other."""
    half_life_days: str | None = None
    """Days after which a journal entry counts half. None: entries do not age."""
    embedder: str = "local"
    """`local`, or the URL of an OpenAI-compatible server like `http://127.0.0.1:8080/v1`."""
    embedder_model: str = ""
    """Name of the embedding model on that server."""
    embedder_key: str | None = field(default=None, repr=False)
    """API key of that server."""

    def with_values(self, **values: str | None) -> "Settings":
        """A copy with some values replaced; None leaves a value unchanged.

        >>> Settings(url="sqlite://").with_values(owner="ana", actor=None).owner
        'ana'
        """
        changes: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        settings = replace(self, **changes)
        settings.check()
        return settings

    def check(self) -> None:
        """Refuse names that cannot be stored, URLs that are malformed, and timeouts that make no sense."""
        for name in ("owner", "actor"):
            value = getattr(self, name)
            if not value.strip() or len(value) > MAX_NAME or not value.isprintable():
                raise Invalid(f"{value[:40]!r} is not a name; give 1 to {MAX_NAME} printable characters", field=name)
        if self.model_url is not None:
            checked_base_url(self.model_url, field="model_url")
        if self.audit_key is not None and len(self.audit_key) < SHORTEST_AUDIT_KEY:
            message = f"the key is too short; give {SHORTEST_AUDIT_KEY} random characters or more"
            raise Invalid(message, field="audit_key")
        if self.audit_key is not None and self.heads_file is None:
            raise Invalid("a key signs heads; give the file for them, heads_file", field="audit_key")
        if not 1 <= self.connections <= MOST_CONNECTIONS:
            message = f"{self.connections} is out of range; give 1 to {MOST_CONNECTIONS}"
            raise Invalid(message, field="connections")
        for name in SECONDS:
            value = getattr(self, name)
            if not 0 < value <= LONGEST_TIMEOUT:
                message = f"{value:g} is out of range; give seconds above 0, up to {LONGEST_TIMEOUT:g}"
                raise Invalid(message, field=name)


def settings_from(values: Mapping[str, str]) -> Settings:
    """Settings from a mapping such as the environment; only names that begin with `BACKSIGHT_` are read.

    >>> settings_from({"BACKSIGHT_URL": "sqlite:///a.db", "HOME": "/root"}).url
    'sqlite:///a.db'
    >>> settings_from({"BACKSIGHT_ONWER": "ana"})
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: BACKSIGHT_ONWER: unknown setting; did you mean 'BACKSIGHT_OWNER'? Known: ...
    """
    known = {PREFIX + name.upper(): name for name in Settings.__dataclass_fields__}
    variables = {name: value for name, value in values.items() if name.startswith(PREFIX) and value}
    for name in variables:
        if name not in known:
            raise Invalid(f"unknown setting; {did_you_mean(name, known)}", field=name)
    fields: dict[str, Any] = {known[name]: value for name, value in variables.items()}
    if "connections" in fields:
        fields["connections"] = _whole(fields["connections"], field="connections")
    fields |= {name: _seconds(fields[name], field=name) for name in SECONDS if name in fields}
    folders = {"url": f"sqlite:///{data_folder(values) / 'backsight.db'}", "cache": str(cache_folder(values))}
    if "audit_key_file" in fields:
        fields.setdefault("audit_key", _secret_in(Path(fields["audit_key_file"]), field="audit_key_file"))
    settings = Settings(**(folders | fields))
    settings.check()
    return settings


SECRETS = frozenset(name for name, setting in Settings.__dataclass_fields__.items() if not setting.repr)
"""The settings that must not be copied into files or shown."""
PATHS = ("cache", "heads_file", "audit_key_file", "workspace")
PATH_LISTS = ("shared_folders", "file_folders")
"""The settings that are a path, and those that are several."""


def portable_variables(values: Mapping[str, str], *, folder: Path) -> dict[str, str]:
    """The settings of a mapping for a process that starts in another folder: with absolute paths, without secrets.

    The URL is always among them. `folder` is where relative paths begin.

    >>> portable_variables({"BACKSIGHT_URL": "sqlite:///a.db", "BACKSIGHT_KEY": "k"}, folder=Path("/home/ana"))
    {'BACKSIGHT_URL': 'sqlite:////home/ana/a.db'}
    """
    settings = settings_from(values)
    variables = {"url": absolute_url(settings.url, folder=folder)}
    for variable, value in values.items():
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or not value or name in SECRETS | {"url", "actor"}:
            continue
        if name in PATHS:
            value = str(folder / value)
        elif name in PATH_LISTS:
            value = os.pathsep.join(str(folder / path) for path in value.split(os.pathsep))
        variables[name] = value
    return {PREFIX + name.upper(): value for name, value in variables.items()}


def absolute_url(url: str, *, folder: Path) -> str:
    """The URL of a store that means the same in every folder; a store in memory is refused, for it has no other user.

    >>> absolute_url("sqlite:///data/../a.db", folder=Path("/home/ana"))
    'sqlite:////home/ana/a.db'
    """
    scheme, mark, path = url.partition(":///")
    if not scheme.startswith("sqlite"):
        return url
    file, question, options = path.partition("?")
    if not mark or not file or file == ":memory:" or file.startswith("file:"):
        raise Invalid(f"{url!r} is not a store in a file; give one, like sqlite:///agent.db", field="url")
    return f"{scheme}{mark}{Path(os.path.normpath(folder / file))}{question}{options}"


def without_driver(url: str) -> str:
    """A database URL as one types it.

    >>> without_driver("sqlite+pysqlite:///agent.db"), without_driver("postgresql+psycopg://ana:***@host/name")
    ('sqlite:///agent.db', 'postgresql://ana:***@host/name')
    """
    scheme, mark, rest = url.partition("://")
    return scheme.partition("+")[0] + mark + rest


def _whole(text: str, *, field: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a whole number; give one, like 15", field=field) from None


def _secret_in(file: Path, *, field: str) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(
            f"{file} cannot be read ({type(error).__name__}); give a file with the key", field=field
        ) from None


def _seconds(text: str, *, field: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a number; give seconds, like 60", field=field) from None


def settings_from_environment() -> Settings:
    """The settings of this process: of the environment, and below it of a file in the current folder."""
    return settings_from(variables_of_process())


def variables_of_process() -> dict[str, str]:
    """The variables of the environment, and below them those of a file in the current folder."""
    return variables_of_file(Path.cwd()) | dict(os.environ)


def variables_of_file(folder: Path) -> dict[str, str]:
    """The settings in `backsight.toml`, else in `[tool.backsight]` of `pyproject.toml`, by their variables."""
    for name, tables in CONFIG_FILES.items():
        values = _table_in(folder / name, tables)
        if values:
            return {PREFIX + setting.upper(): _variable(value, setting, name) for setting, value in values.items()}
    return {}


def _table_in(file: Path, tables: tuple[str, ...]) -> dict[str, Any]:
    """A table of a TOML file; empty if the file does not have it."""
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file} cannot be read: {error}", field="settings") from None
    if tables and f"[{'.'.join(tables)}]" not in text:
        return {}
    import tomllib

    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Invalid(f"{file} is not TOML: {error}", field="settings") from None
    for table in tables:
        content = content.get(table, {})
    return content


def _variable(value: object, setting: str, file: str) -> str:
    """A value of a file as the text of a variable."""
    known = Settings.__dataclass_fields__
    if setting not in known:
        raise Invalid(f"unknown setting in {file}; {did_you_mean(setting, known)}", field=setting)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Invalid(f"{value!r} in {file} is neither text nor a number", field=setting)
    return str(value)


def data_folder(values: Mapping[str, str]) -> Path:
    """The user's data folder, by the convention of the platform."""
    user_folder = Path(values.get("HOME") or Path.home())
    if sys.platform == "win32":
        return Path(values.get("LOCALAPPDATA") or user_folder / "AppData" / "Local") / "backsight"
    if sys.platform == "darwin":
        return user_folder / "Library" / "Application Support" / "backsight"
    return Path(values.get("XDG_DATA_HOME") or user_folder / ".local" / "share") / "backsight"


def cache_folder(values: Mapping[str, str]) -> Path:
    """The user's cache folder, by the convention of the platform."""
    user_folder = Path(values.get("HOME") or Path.home())
    if sys.platform == "win32":
        return data_folder(values) / "cache"
    if sys.platform == "darwin":
        return user_folder / "Library" / "Caches" / "backsight"
    return Path(values.get("XDG_CACHE_HOME") or user_folder / ".cache") / "backsight"
