"""Settings: one frozen value, built from a mapping. This module is the only one that reads the environment."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one process uses Backsight; each field is set by the variable `BACKSIGHT_` and its name in capitals."""

    url: str
    """URL of the database: `sqlite:///file.db` or `postgresql://user@host/name`."""
    owner: str = "me"
    """Owner of the memory. Owners cannot see each other's rows."""
    actor: str = "python"
    """Name of the caller in the audit log."""

    cache: str | None = None
    """Folder for cache files, which may be deleted at any time. None: only beside a store that is a file."""
    model_url: str | None = None
    """URL of an OpenAI-compatible server that writes lessons. None: the provider that the model's name begins with."""
    model_key: str | None = field(default=None, repr=False)
    """API key of the model. None: the key in the provider's own variable, or no key if model_url is set."""
    model_timeout: float = 60.0
    """Seconds to wait for an answer of the model."""

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
    minimum_score: str = "0.15"
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
        if not 0 < self.model_timeout <= LONGEST_TIMEOUT:
            message = f"{self.model_timeout:g} is out of range; give seconds above 0, up to {LONGEST_TIMEOUT:g}"
            raise Invalid(message, field="model_timeout")


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
    if "model_timeout" in fields:
        fields["model_timeout"] = _seconds(fields["model_timeout"])
    folders = {"url": f"sqlite:///{data_folder(values) / 'backsight.db'}", "cache": str(cache_folder(values))}
    settings = Settings(**(folders | fields))
    settings.check()
    return settings


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a number; give seconds, like 60", field="model_timeout") from None


def settings_from_environment() -> Settings:
    """The settings of this process."""
    return settings_from(os.environ)


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
