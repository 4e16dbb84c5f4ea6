"""Settings from a mapping."""

import sys
from pathlib import Path

import pytest

from backsight.core.errors import Invalid
from backsight.settings import Settings, data_folder, settings_from


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
    ],
)
def test_invalid_model_settings_are_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        settings_from({f"BACKSIGHT_{name}": value})
