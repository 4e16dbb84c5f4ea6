"""Text is compressed at rest, and everybody but the database sees the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from backsight.memory import Memory
from backsight.store.compression import compress_text, decompress_text
from backsight.testing import FakeClock
from support import lived_in, raw


@given(st.text())
def test_a_text_comes_back_as_it_was(value: str) -> None:
    assert decompress_text(compress_text(value)) == value
    assert decompress_text(compress_text(value * 50)) == value * 50


@pytest.mark.parametrize("stored", [b"", b"text", b"\x01nonsense", compress_text("long enough " * 20)[:-3]])
def test_what_is_not_a_compressed_text_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match="compressed text"):
        decompress_text(stored)


def test_a_spoilt_text_is_found(memory: Memory, clock: FakeClock, url: str) -> None:
    lived_in(memory, clock)
    with raw(url) as connection:
        changed = {"text": compress_text("## Recent activity: risk 90%"), "spoilt": b"\x01nonsense"}
        connection.execute(text("UPDATE shown_segments SET text = :text"), changed)
        connection.execute(text("UPDATE recalls SET made = :spoilt"), changed)
    findings = memory.verify_audit().findings
    assert {finding.table for finding in findings} == {"shown_segments", "recalls"}
