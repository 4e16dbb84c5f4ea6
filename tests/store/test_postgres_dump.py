"""pg_dump is used only where it can read everything."""

import os
from pathlib import Path

import pytest
from sqlalchemy import make_url

from backsight.core.errors import Unavailable
from backsight.memory import open_memory
from backsight.store import postgres_dump


def test_a_missing_program_is_the_reason(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(postgres_url) as memory, memory.reading() as connection:
        monkeypatch.setenv("PATH", os.devnull)
        assert postgres_dump.missing_reason(connection) == "pg_dump is not installed"
        with pytest.raises(Unavailable, match="pg_restore is not installed"):
            postgres_dump.load("public", make_url(postgres_url), Path("nowhere"))
