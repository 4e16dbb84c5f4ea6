"""Settings: one frozen value made from a mapping; the only reader of the environment."""

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
    """How one process uses Backsight."""

    url: str
    """Where the store is: `sqlite:///file.db` or `postgresql://user@host/name`."""
    owner: str = "me"
    """Whose memory it is; nothing crosses from one owner to another."""
    actor: str = "python"
    """Who acts, for the audit log."""

    cache: str | None = None
    """A folder for files that only spare time; None: there are none, but beside a store that is a file."""
    model_url: str | None = None
    """Of an OpenAI-compatible server that writes lessons; None: the provider's own, as the model's name has it."""
    model_key: str | None = field(default=None, repr=False)
    """Its key; None: the one in the provider's own variable, or none where there is a model_url."""
    model_timeout: float = 60.0
    """Seconds until there must be an answer."""

    workspace: str | None = None
    """The folder of documents; None: there is none."""
    shared_folders: str = ""
    """Folders of playbooks and runbooks that are searched, too, separated as in PATH."""
    search: str = "sqlite_fts"
    """How documents are found: `sqlite_fts`, by words on either database, or `hybrid_embeddings`, by meaning too."""
    fusion: str = "standardised"
    """How the two are made one: `standardised`, `weighted_sum` or `reciprocal_rank`."""
    keyword_weight: str = "0.5"
    vector_weight: str = "0.5"
    minimum_score: str = "0.15"
    """What matches less by words and by meaning is not found."""
    source_caps: str = "run=3,decision=3,review=3"
    """At most so many citations of a source, unless the query names sources: what is done every day is much alike."""
    half_life_days: str | None = None
    """After so many days a journal entry counts half; None: it does not age."""
    embedder: str = "local"
    """`local`, or the address of an OpenAI-compatible server like `http://127.0.0.1:8080/v1`."""
    embedder_model: str = ""
    """The model to ask such a server for."""
    embedder_key: str | None = field(default=None, repr=False)
    """Its key."""

    def with_values(self, **values: str | None) -> "Settings":
        """These settings with the given values in place; None leaves a value as it is.

        >>> Settings(url="sqlite://").with_values(owner="ana", actor=None).owner
        'ana'
        """
        given: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
        settings = replace(self, **given)
        settings.check()
        return settings

    def check(self) -> None:
        """Refuse names that could not be stored or shown."""
        for name in ("owner", "actor"):
            value = getattr(self, name)
            if not value.strip() or len(value) > MAX_NAME or not value.isprintable():
                raise Invalid(f"{value[:40]!r} is not a name; give 1 to {MAX_NAME} printable characters", field=name)
        if self.model_url is not None:
            checked_base_url(self.model_url, field="model_url")
        if not 0 < self.model_timeout <= LONGEST_TIMEOUT:
            told = f"{self.model_timeout:g} is no time to wait; give seconds, up to {LONGEST_TIMEOUT:g}"
            raise Invalid(told, field="model_timeout")


def settings_from(values: Mapping[str, str]) -> Settings:
    """Settings from a mapping such as the environment; only `BACKSIGHT_…` names are looked at.

    >>> settings_from({"BACKSIGHT_URL": "sqlite:///a.db", "HOME": "/root"}).url
    'sqlite:///a.db'
    >>> settings_from({"BACKSIGHT_ONWER": "ana"})
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: BACKSIGHT_ONWER: unknown setting; did you mean 'BACKSIGHT_OWNER'? Known: ...
    """
    known = {PREFIX + name.upper(): name for name in Settings.__dataclass_fields__}
    given = {name: value for name, value in values.items() if name.startswith(PREFIX) and value}
    for name in given:
        if name not in known:
            raise Invalid(f"unknown setting; {did_you_mean(name, known)}", field=name)
    fields: dict[str, Any] = {known[name]: value for name, value in given.items()}
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
        raise Invalid(f"{text[:40]!r} is no number; give seconds, like 60", field="model_timeout") from None


def settings_from_environment() -> Settings:
    """Settings of this process."""
    return settings_from(os.environ)


def data_folder(values: Mapping[str, str]) -> Path:
    """Where this user's programs keep their data, by the custom of the platform."""
    home = Path(values.get("HOME") or Path.home())
    if sys.platform == "win32":
        return Path(values.get("LOCALAPPDATA") or home / "AppData" / "Local") / "backsight"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "backsight"
    return Path(values.get("XDG_DATA_HOME") or home / ".local" / "share") / "backsight"


def cache_folder(values: Mapping[str, str]) -> Path:
    """Where this user's programs keep what they can make again, by the custom of the platform."""
    home = Path(values.get("HOME") or Path.home())
    if sys.platform == "win32":
        return data_folder(values) / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "backsight"
    return Path(values.get("XDG_CACHE_HOME") or home / ".cache") / "backsight"
