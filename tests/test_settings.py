"""Settings from a mapping."""

import re
import sys
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.settings import Settings, data_folder, settings_from, settings_from_environment
from backsight.store.database import DatabaseLimits
from backsight.surfaces.http_server import THREADS


def test_defaults_need_no_environment() -> None:
    settings = settings_from({"HOME": "/home/ana", "PATH": "/bin"})
    assert (settings.owner, settings.actor) == ("me", "python")
    assert settings.url.startswith("sqlite:////home/ana/")


def test_values_come_from_the_mapping_and_empty_ones_do_not_count() -> None:
    given = {"BACKSIGHT_URL": "sqlite:///x.db", "BACKSIGHT_OWNER": "ana", "BACKSIGHT_ACTOR": "", "BACKSIGHT_CACHE": "c"}
    assert settings_from(given) == Settings(url="sqlite:///x.db", owner="ana", actor="python", cache="c")


@pytest.mark.parametrize("owner", [" ", "a\nb", "x" * 101, "a\0"])
def test_an_invalid_owner_name_is_refused(owner: str) -> None:
    with pytest.raises(Invalid, match="owner: "):
        settings_from({"BACKSIGHT_OWNER": owner})


@pytest.mark.parametrize(
    ("platform", "values", "folder"),
    [
        ("linux", {"HOME": "/home/ana"}, "/home/ana/.local/share/backsight"),
        ("linux", {"HOME": "/home/ana", "XDG_DATA_HOME": "/data"}, "/data/backsight"),
        ("darwin", {"HOME": "/Users/ana"}, "/Users/ana/Library/Application Support/backsight"),
        ("win32", {"HOME": "C:/ana", "LOCALAPPDATA": "C:/ana/local"}, "C:/ana/local/backsight"),
    ],
)
def test_the_data_folder_follows_the_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, values: dict[str, str], folder: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert data_folder(values) == Path(folder)


def test_a_language_model_has_an_address_a_key_and_a_time() -> None:
    given = {"MODEL_URL": "http://localhost:8080/v1", "MODEL_KEY": "secret", "MODEL_TIMEOUT": "2.5"}
    settings = settings_from({f"BACKSIGHT_{name}": value for name, value in given.items()})
    assert (settings.model_url, settings.model_key, settings.model_timeout) == (given["MODEL_URL"], "secret", 2.5)
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MODEL_URL", "localhost", "model_url: 'localhost' is not an HTTP address; give one such as"),
        ("MODEL_URL", "http://me:secret@host/v1", "model_url: the address contains a user name or a password"),
        ("MODEL_TIMEOUT", "soon", "model_timeout: 'soon' is not a number; give seconds, like 60"),
        ("MODEL_TIMEOUT", "nan", "model_timeout: nan is out of range; give seconds above 0, up to 3600"),
        ("MODEL_TIMEOUT", "0", "model_timeout: 0 is out of range"),
        ("LOCK_TIMEOUT", "long", "lock_timeout: 'long' is not a number"),
        ("CLOCK_SKEW", "-1", "clock_skew: -1 is out of range"),
        ("CONNECTIONS", "many", "connections: 'many' is not a whole number"),
        ("CONNECTIONS", "0", "connections: 0 is out of range; give 1 to 1000"),
    ],
)
def test_invalid_settings_are_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        settings_from({f"BACKSIGHT_{name}": value})


def test_there_is_a_connection_for_every_operation_that_the_server_runs_at_a_time() -> None:
    assert THREADS < settings_from({"HOME": "/home/ana"}).connections == DatabaseLimits().connections


@pytest.mark.parametrize(("file", "table"), [("backsight.toml", ""), ("pyproject.toml", "[tool.backsight]\n")])
def test_a_file_of_the_current_folder_is_below_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, table: str
) -> None:
    (tmp_path / file).write_text(f'{table}url = "sqlite:///mine.db"\nowner = "ana"\nlock_timeout = 5\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKSIGHT_OWNER", "bo")
    settings = settings_from_environment()
    assert (settings.url, settings.owner, settings.lock_timeout) == ("sqlite:///mine.db", "bo", 5.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("onwer = 'ana'", "onwer: unknown setting in backsight.toml; did you mean 'owner'"),
        ("owner = ", "is not TOML"),
        ("owner = ['ana']", "in backsight.toml is neither text nor a number"),
    ],
)
def test_a_wrong_config_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    (tmp_path / "backsight.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Invalid, match=message):
        settings_from_environment()


def test_the_page_of_settings_names_every_setting() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "settings.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(Settings.__dataclass_fields__)
