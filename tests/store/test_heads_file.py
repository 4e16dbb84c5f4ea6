"""A heads file outside the database: whoever can write the database cannot cut off or rewrite the chain unnoticed."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, select, text

from backsight.core.audit import ERASE, ChainHead, Erasure, link_hash, next_link
from backsight.core.errors import Invalid
from backsight.memory import Memory, open_memory
from backsight.settings import Settings, settings_from
from backsight.store.audit import AUDIT
from backsight.store.erasure import erase_rows
from backsight.testing import FakeClock, a_trade_call
from support import raw

KEY = "a key that is not in the database"


@pytest.fixture
def heads(tmp_path: Path) -> Path:
    return tmp_path / "heads.jsonl"


def opened(url: str, heads: Path | None, clock: FakeClock, key: str | None = KEY) -> Memory:
    path = None if heads is None else str(heads)
    return open_memory(settings=Settings(url=url, owner="ana", heads_file=path, audit_key=key), clock=clock)


@pytest.fixture
def anchored(url: str, heads: Path, clock: FakeClock) -> Iterator[Memory]:
    """A memory with three trades whose heads are recorded."""
    with opened(url, heads, clock) as memory:
        for number in range(3):
            clock.advance(minutes=1)
            memory.remember_trade(**a_trade_call(idempotency_key=str(number), deployment=None))
        yield memory


def kinds(memory: Memory) -> set[tuple[str, str]]:
    return {(finding.kind, finding.table) for finding in memory.verify_audit().findings}


def rewrite(url: str, sequence: int) -> None:
    """Change a link and the hashes of all links after it, as somebody who can write the database would."""
    with raw(url) as connection:
        c = AUDIT.table.c
        rows = connection.execute(select(AUDIT.table).where(c.sequence >= sequence).order_by(c.sequence)).all()
        previous: str | None = None
        for row in rows:
            link = replace(AUDIT.from_row(row), actor="somebody else")
            link = link if previous is None else replace(link, previous=previous)
            link = replace(link, hash=link_hash(link))
            connection.execute(delete(AUDIT.table).where(c.sequence == link.sequence))
            connection.execute(insert(AUDIT.table), AUDIT.to_row(link))
            previous = link.hash


def test_every_command_records_the_head_that_it_leaves(anchored: Memory, heads: Path) -> None:
    verified = anchored.verify_audit()
    assert verified.intact
    assert f"Compared with {verified.links} heads of the heads file, up to link {verified.links}." in verified.note
    lines = heads.read_text().splitlines()
    assert len(lines) == verified.links
    assert verified.head in lines[-1]
    assert KEY not in heads.read_text()
    assert heads.stat().st_mode & 0o077 == 0
    anchored.list_trades()
    assert len(heads.read_text().splitlines()) == verified.links


def test_a_rewritten_chain_is_found(anchored: Memory, url: str, heads: Path, clock: FakeClock) -> None:
    checkpoint = anchored.verify_audit().checkpoint
    rewrite(url, 2)
    with opened(url, None, clock, None) as unanchored:
        assert unanchored.verify_audit().intact  # the chain alone cannot know
    assert kinds(anchored) == {("link_changed", "audit_log")}
    anchored.remember_trade(**a_trade_call(idempotency_key="later"))
    assert kinds(anchored) == {("link_changed", "audit_log")}
    assert not anchored.verify_audit(since=checkpoint).intact


def test_a_chain_that_was_cut_off_is_found(anchored: Memory, url: str, clock: FakeClock) -> None:
    checkpoint = anchored.verify_audit().checkpoint
    clock.advance(hours=1)
    anchored.remember_trade(**a_trade_call(symbol="EURUSD", idempotency_key="loss"))
    with raw(url) as connection:
        last = select(AUDIT.table.c.sequence).order_by(AUDIT.table.c.sequence.desc()).limit(1)
        connection.execute(delete(AUDIT.table).where(AUDIT.table.c.sequence == connection.execute(last).scalar_one()))
        for table in ("episodic_memory", "trade_history"):
            connection.execute(text(f"DELETE FROM {table} WHERE symbol = 'EURUSD'"))
    assert ("cut_off", "audit_log") in kinds(anchored)
    assert {finding.kind for finding in anchored.verify_audit(since=checkpoint).findings} == {"cut_off"}
    anchored.doctor(repair=True)  # a link of its own, in place of the link that was cut off
    assert kinds(anchored) == {("link_changed", "audit_log")}


def test_a_store_that_was_begun_anew_is_found(anchored: Memory, url: str) -> None:
    with raw(url) as connection:
        erase_rows(connection, "ana")
    assert ("cut_off", "audit_log") in kinds(anchored)


def test_a_forged_erasure_is_told_from_one_of_the_owner(
    anchored: Memory, url: str, heads: Path, clock: FakeClock
) -> None:
    checkpoint = anchored.verify_audit().checkpoint
    with raw(url) as connection:
        newest = select(AUDIT.table).order_by(AUDIT.table.c.sequence.desc()).limit(1)
        last = AUDIT.from_row(connection.execute(newest).one())
        rows = erase_rows(connection, "ana")
        head = ChainHead(sequence=last.sequence, hash=last.hash)
        link = next_link(head, [Erasure(rows=rows)], owner_id="ana", at=last.at, actor="cli", operation=ERASE)
        connection.execute(insert(AUDIT.table), AUDIT.to_row(link))
    with opened(url, None, clock, None) as unanchored:
        assert unanchored.verify_audit().intact
    with opened(url, heads, clock) as memory:
        memory.remember_trade(**a_trade_call())  # what is recorded later does not make it genuine
        for findings in (memory.verify_audit().findings, memory.verify_audit(since=checkpoint).findings):
            assert [(each.kind, each.key) for each in findings] == [("link_added", str(link.sequence))]
            assert "forged" in findings[0].detail
        memory.erase_owner(confirm="ana")
        memory.remember_trade(**a_trade_call())
        assert memory.verify_audit().intact


def test_a_restored_backup_is_told_from_a_chain_that_was_cut_off(
    anchored: Memory, tmp_path: Path, clock: FakeClock
) -> None:
    backup = anchored.backup(path=str(tmp_path / "backup"))
    clock.advance(minutes=1)
    anchored.remember_trade(**a_trade_call(idempotency_key="after the backup"))
    anchored.restore(path=str(tmp_path / "backup"), overwrite=True)
    verified = anchored.verify_audit()
    assert (verified.intact, verified.head) == (True, backup.head)
    assert "A backup was restored" in verified.note
    anchored.remember_trade(**a_trade_call(idempotency_key="another"))
    assert anchored.verify_audit().intact


def test_lines_without_the_signature_of_the_key_are_named(anchored: Memory, heads: Path) -> None:
    lines = heads.read_text().splitlines()
    lines[1] = lines[1].replace('"owner":"ana"', '"owner":"bob"')
    heads.write_text("\n".join(lines) + "\n")
    (finding,) = anchored.verify_audit().findings
    assert (finding.table, finding.key) == ("heads file", "line 2")


def test_a_heads_file_that_is_gone_or_behind_is_said(anchored: Memory, heads: Path, url: str, clock: FakeClock) -> None:
    with opened(url, None, clock, None) as unanchored:
        unanchored.remember_trade(**a_trade_call(idempotency_key="elsewhere"))
    links = anchored.verify_audit().links
    assert f"up to link {links - 1} of {links}; later links have no recorded head yet" in anchored.verify_audit().note
    heads.unlink()
    assert "The heads file has no head of this chain yet" in anchored.verify_audit().note


def test_a_command_whose_head_cannot_be_recorded_is_done_and_an_error_is_logged(
    anchored: Memory, heads: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heads.unlink()
    heads.mkdir()
    with caplog.at_level(logging.ERROR, logger="backsight"):
        anchored.remember_trade(**a_trade_call(idempotency_key="unrecorded"))
    assert "is not in the heads file" in caplog.text
    heads.rmdir()
    assert anchored.verify_audit().intact


def test_settings_of_the_heads_file_are_checked(tmp_path: Path) -> None:
    store = {"BACKSIGHT_URL": f"sqlite:///{tmp_path}/store.db", "BACKSIGHT_HEADS_FILE": str(tmp_path / "heads")}
    key = tmp_path / "key"
    with pytest.raises(Invalid, match=r"audit_key_file: .* cannot be read"):
        settings_from({**store, "BACKSIGHT_AUDIT_KEY_FILE": str(key)})
    key.write_text("short\n")
    with pytest.raises(Invalid, match="audit_key: the key is too short"):
        settings_from({**store, "BACKSIGHT_AUDIT_KEY_FILE": str(key)})
    key.write_text(KEY + "\n")
    settings = settings_from({**store, "BACKSIGHT_AUDIT_KEY_FILE": str(key)})
    assert settings.audit_key == KEY
    assert KEY not in repr(settings)
    with pytest.raises(Invalid, match="heads_file"):
        settings_from({"BACKSIGHT_AUDIT_KEY": KEY})
    with pytest.raises(Invalid, match=r"heads_file: .* is not a file in an existing folder"):
        open_memory(settings=replace(settings, heads_file=str(tmp_path / "none" / "heads")))
    assert not (tmp_path / "store.db").exists()
