"""A workspace is indexed and searched to the line, and agents write only where they may."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import text as sql

from backsight.core.decision import Segment, Verdict
from backsight.core.documents.document import content_hash
from backsight.core.errors import BacksightError, Conflict, Invalid, NotFound, Refused, Unavailable
from backsight.core.market import Bar
from backsight.core.reflection.reviews import NOT_TESTED
from backsight.core.strategies import MemoryOverrides
from backsight.importers.workspace import Workspace
from backsight.memory import Memory, open_memory
from backsight.services.background import BackgroundWorker
from backsight.settings import Settings
from backsight.store import documents as stored
from backsight.store.documents import Scope
from backsight.testing import T0, FakeClock, a_position, a_snapshot
from support import deployed, raw, ticked

MANUAL = """# Trading manual

## R3_POSITION_CAP

Never hold more than 2% in BTC/USDT.

## R4_STOPS

Every trade has a stop.
"""


class CountingEmbedder:
    """Gives similar vectors to texts that share words, and records the texts."""

    language: str | None = None

    def __init__(self, model: str = "counting") -> None:
        self.model = model
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        rows = np.full((len(texts), 64), 1e-3, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                rows[row, sum(word.encode()) % 64] += 1
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


class BrokenEmbedder(CountingEmbedder):
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise Unavailable("the server is away", field="embedder")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a manual, a journal and a strategy."""
    root = tmp_path / "workspace"
    Workspace(root).lay_out()
    (root / "TRADING_MANUAL.md").write_text(MANUAL)
    (root / "journal/2026-06-03.md").write_text("# Wednesday\n\nMetaAPI disconnected (E1042); restarted the bridge.\n")
    (root / "strategies/breakout.py").write_text("# comment\nLOOKBACK = 20\n")
    return root


def opened(url: str, folder: Path | None, clock: FakeClock, **more: Any) -> Memory:
    embedder = None if isinstance(more.get("embedder"), str) else more.pop("embedder", None)
    settings = Settings(url=url, owner="ana", workspace=None if folder is None else str(folder), **more)
    return open_memory(settings=settings, clock=clock, embedder=embedder)


@pytest.fixture
def memory(url: str, folder: Path, clock: FakeClock) -> Iterator[Memory]:
    with opened(url, folder, clock) as opened_memory:
        yield opened_memory


def a_run(memory: Memory) -> str:
    """The id of a recorded trade, the same for every call."""
    return memory.remember_trade(
        symbol="BTC",
        direction="long",
        strategy_name="Manual",
        entry_price=1.0,
        exit_price=2.0,
        pnl=1.0,
        size=1.0,
        opened_at=T0 - timedelta(hours=2),
        closed_at=T0 - timedelta(hours=1),
        idempotency_key="run",
    ).trade.id


def paths(memory: Memory, query: str, **more: Any) -> list[str]:
    return [cited.path for cited in memory.search_memory(query=query, **more).citations]


# Indexing


def test_notes_are_left_out_while_every_deployment_withholds_memory(memory: Memory, clock: FakeClock) -> None:
    memory.reindex()
    assert paths(memory, "restarted bridge") == ["journal/2026-06-03.md"]
    memory.open_account(venue="x", name="main", currency="EUR")
    memory.save_strategy(name="S")
    memory.deploy(strategy_name="S", account="main", memory=MemoryOverrides(holdout=1.0))
    answer = memory.search_memory(query="restarted bridge")
    assert answer.citations == ()
    assert "Notes, decisions, runs and reviews are left out" in answer.message
    assert memory.search_memory(query="restarted", source=["journal"]).citations == ()
    assert "TRADING_MANUAL.md" in paths(memory, "R3_POSITION_CAP")
    assert paths(memory, "restarted bridge", as_of=clock.now()) == ["journal/2026-06-03.md"]
    memory.open_account(venue="x", name="other", currency="EUR")
    memory.deploy(strategy_name="S", account="other")
    assert paths(memory, "restarted bridge") == ["journal/2026-06-03.md"]


def test_a_rule_is_cited_to_the_line(memory: Memory) -> None:
    memory.reindex()
    (cited, *_) = memory.search_memory(query="R3_POSITION_CAP").citations
    assert (cited.place, cited.source) == ("TRADING_MANUAL.md:3-5", "manual")
    assert cited.heading == ("Trading manual", "R3_POSITION_CAP")
    lines = MANUAL.splitlines(keepends=True)
    assert cited.snippet == "".join(lines[cited.start_line - 1 : cited.end_line])
    assert 0 < cited.score <= 1
    assert memory.read_memory(path=cited.path, start_line=3, end_line=5).text == "".join(lines[2:5])


def test_a_rule_that_every_chunk_of_a_small_workspace_mentions_is_found(
    url: str, tmp_path: Path, clock: FakeClock
) -> None:
    root = tmp_path / "small"
    for number in range(5):
        file = root / f"journal/{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("words of no account " * (40 * number) + "the cap holds\n")
    with opened(url, root, clock) as memory:
        memory.reindex()
        assert len(paths(memory, "cap")) == 5


def test_an_incident_is_found_by_its_code_and_by_what_failed(memory: Memory) -> None:
    memory.reindex()
    assert paths(memory, "E1042") == ["journal/2026-06-03.md"]
    assert paths(memory, "what went wrong last time MetaAPI disconnects?")[0] == "journal/2026-06-03.md"


def test_touching_one_file_reads_one_file(memory: Memory, folder: Path, clock: FakeClock) -> None:
    first = memory.reindex()
    assert first.read == first.documents == 10
    assert memory.reindex().read == 0
    (folder / "SOUL.md").write_text("# Soul\n\nPatient.\n")
    clock.advance(minutes=1)
    again = memory.reindex()
    assert (again.read, again.changed, again.removed) == (1, 1, 0)
    os.utime(folder / "SOUL.md", (1, 1))
    assert (memory.reindex().read, memory.reindex().read) == (1, 0)
    assert paths(memory, "patient") == ["SOUL.md"]


def test_a_file_that_is_gone_or_renamed_is_out_of_every_search(memory: Memory, folder: Path, clock: FakeClock) -> None:
    memory.reindex()
    (folder / "journal/2026-06-03.md").rename(folder / "journal/moved.md")
    clock.advance(minutes=1)
    assert memory.reindex().removed == 1
    assert paths(memory, "E1042") == ["journal/moved.md"]
    assert paths(memory, "E1042", as_of=T0) == ["journal/2026-06-03.md"]
    with pytest.raises(NotFound):
        memory.read_memory(path="journal/2026-06-03.md")
    assert "E1042" in memory.read_memory(path="journal/2026-06-03.md", as_of=T0).text


def test_what_cannot_be_indexed_is_skipped_and_listed(memory: Memory, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("outside")
    (folder / "journal/link.md").symlink_to(tmp_path / "secret.md")
    (folder / "journal/out").symlink_to(tmp_path)
    (folder / "journal/binary.md").write_bytes(b"a\0b")
    (folder / "journal/latin.md").write_bytes("café".encode("latin-1"))
    (folder / "artifacts/huge.json").write_bytes(b"x" * (5 * 1024 * 1024 + 1))
    os.mkfifo(folder / "artifacts/pipe")
    result = memory.reindex()
    assert {skipped.path: skipped.reason for skipped in result.skipped} == {
        "artifacts/huge.json": "too large",
        "artifacts/pipe": "not text",
        "journal/binary.md": "not text",
        "journal/latin.md": "not UTF-8",
        "journal/link.md": "leads out of the workspace",
        "journal/out": "leads out of the workspace",
    }
    health = memory.index_health()
    assert not health.healthy
    assert health.skipped == result.skipped
    assert paths(memory, "outside") == []


def test_a_name_that_cannot_be_decoded_is_listed_and_stops_nothing(memory: Memory, folder: Path) -> None:
    for name in (b"journal/caf\xe9.md", b"journal/\xff\xfe/inside.md"):
        file = folder / os.fsdecode(name)
        file.parent.mkdir(exist_ok=True)
        file.write_text("words\n")
    result = memory.reindex()
    assert {(each.path, each.reason) for each in result.skipped} == {
        (r"journal/caf\xe9.md", "name is not UTF-8"),
        (r"journal/\xff\xfe", "name is not UTF-8"),
    }
    assert paths(memory, "E1042") == ["journal/2026-06-03.md"]


def test_the_date_of_an_entry_counts_and_not_that_of_its_file(memory: Memory, folder: Path) -> None:
    entries = "# Learnings\n\n## 2026-01-05T10:00:00Z\n\nA squeeze in January.\n\n## 2026-05-05\n\nA squeeze in May.\n"
    (folder / "memory/learnings.md").write_text(entries)
    memory.reindex()
    spring = datetime(2026, 3, 1, tzinfo=UTC)
    (late,) = memory.search_memory(query="squeeze", since=spring).citations
    (early,) = memory.search_memory(query="squeeze", until=spring).citations
    assert ("May" in late.snippet, "January" in early.snippet) == (True, True)
    assert paths(memory, "E1042", since=datetime(2026, 6, 4, tzinfo=UTC)) == []


def test_a_rule_of_a_list_or_a_table_is_cited_alone(memory: Memory, folder: Path) -> None:
    rules = "# Manual\n\n## Sessions\n\n1. EUR/USD from 07:00 only.\n2. Gold never in Asia,\n   unless flat.\n\n"
    orders = "## Orders\n\n| symbol | type |\n|---|---|\n| AAPL | market |\n| DAX | limit |\n"
    (folder / "TRADING_MANUAL.md").write_text(rules + orders)
    memory.reindex()
    for query, place in (("EURUSD", "5"), ("gold in Asia", "6-7"), ("AAPL orders", "13"), ("sessions", "3-7")):
        (cited, *_) = memory.search_memory(query=query).citations
        assert cited.place == f"TRADING_MANUAL.md:{place}"
        first, last = cited.start_line, cited.end_line
        assert memory.read_memory(path=cited.path, start_line=first, end_line=last).text == cited.snippet


def test_a_file_that_vanishes_while_it_is_read_is_listed(
    memory: Memory, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = Workspace(folder).list_files()
    (folder / "SOUL.md").unlink()
    monkeypatch.setattr(Workspace, "list_files", lambda _self: listing)
    assert [(each.path, each.reason) for each in memory.reindex().skipped] == [("SOUL.md", "vanished")]


def test_concurrent_reindexing_gives_one_complete_index(
    url: str, folder: Path, clock: FakeClock, memory: Memory
) -> None:
    for number in range(40):
        (folder / f"journal/n{number}.md").write_text(f"note number{number} of many\n")
    failed: list[BaseException] = []

    def run() -> None:
        try:
            with opened(url, folder, clock) as second:
                second.reindex()
        except BacksightError as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert memory.reindex().documents == 50
    assert paths(memory, "number17") == ["journal/n17.md"]


KILLED = """
import os, sys
from backsight.memory import open_memory
from backsight.settings import Settings
from backsight.store.search import slot
made = slot.word_index
def dying(connection):
    words = made(connection)
    class Dying:
        def __getattr__(self, name): return getattr(words, name)
        def add(self, *given): words.add(*given); os._exit(9)
    return Dying()
import backsight.store.publishing as publishing
publishing.word_index = dying
with open_memory(settings=Settings(url=sys.argv[1], owner="ana", workspace=sys.argv[2])) as memory:
    memory.reindex()
"""


def test_killed_while_publishing_the_old_index_answers(memory: Memory, url: str, folder: Path) -> None:
    memory.reindex()
    before = memory.index_health()
    (folder / "journal/2026-06-03.md").write_text("something else\n")
    ran = subprocess.run([sys.executable, "-c", KILLED, url, str(folder)], check=False)
    assert ran.returncode == 9
    assert memory.index_health() == before
    assert paths(memory, "E1042") == ["journal/2026-06-03.md"]


def test_an_agent_finds_its_own_and_common_documents(memory: Memory, folder: Path) -> None:
    for agent in ("btc", "eth"):
        (folder / f"agents/{agent}/journal").mkdir(parents=True)
        (folder / f"agents/{agent}/journal/a.md").write_text(f"{agent} saw a squeeze\n")
    (folder / "journal/all.md").write_text("a squeeze for everybody\n")
    memory.reindex()
    assert set(paths(memory, "squeeze", agent="btc")) == {"agents/btc/journal/a.md", "journal/all.md"}
    assert set(paths(memory, "squeeze", source=["journal"], path_prefix="agents/")) == {
        "agents/btc/journal/a.md",
        "agents/eth/journal/a.md",
    }


def test_shared_folders_are_searched_and_a_missing_one_is_listed(
    url: str, folder: Path, tmp_path: Path, clock: FakeClock
) -> None:
    (tmp_path / "desk/runbooks").mkdir(parents=True)
    (tmp_path / "desk/playbook.md").write_text("fade the squeeze\n")
    (tmp_path / "desk/runbooks/mt5.md").write_text("E77: restart the squeeze detector\n")
    shared = os.pathsep.join([str(tmp_path / "desk"), str(tmp_path / "nowhere")])
    with opened(url, folder, clock, shared_folders=shared) as memory:
        assert [(each.path, each.reason) for each in memory.reindex().skipped] == [("global/nowhere", "cannot be read")]
        assert paths(memory, "squeeze", source=["global"]) == ["global/desk/playbook.md"]
        assert paths(memory, "E77", source=["incident"]) == ["global/desk/runbooks/mt5.md"]
        with pytest.raises(Refused):
            memory.append_note(run=a_run(memory), text="x", agent="a", path="global/desk/playbook.md")


def test_decisions_are_documents_of_their_own_source(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    first = memory.reindex()
    (cited, *_) = memory.search_memory(query="break of the range", source=["decision"]).citations
    assert "reason: break of the range" in cited.snippet
    assert cited.path == "decisions/VolBreakout@main/2026-06-04.md"
    assert memory.read_memory(path=cited.path, start_line=1, end_line=1).text == "# Decisions of 2026-06-04\n"
    clock.advance(hours=1)
    again = memory.reindex()
    assert (again.changed, again.documents) == (0, first.documents)


def test_a_call_is_a_decision_and_its_outcome_follows(memory: Memory, clock: FakeClock) -> None:
    call: dict[str, Any] = {"symbol": "BTC", "direction": "long", "strategy_name": "Macro", "horizon_hours": 2.0}
    memory.init_documents()
    memory.reindex()
    rule = memory.search_memory(query="every trade has a stop").citations[0].place
    recorded = memory.record_decision(**call, reasoning="the squeeze is near", price=100.0, citations=[rule])
    assert recorded.episode.citations == (rule,)
    memory.reindex()
    path = "decisions/manual:Macro/2026-06-04.md"
    assert paths(memory, "squeeze", source=["decision"]) == [path]
    text = memory.read_memory(path=path).text
    assert f"- citations: {rule}\n" in text
    assert "outcome" not in text
    clock.advance(hours=3)
    hour = Bar(
        symbol="BTC",
        interval_seconds=3_600,
        opened_at=T0 + timedelta(hours=1),
        open=110.0,
        high=110.0,
        low=110.0,
        close=110.0,
    )
    memory.record_bars(bars=[hour])
    memory.reindex()
    assert "- outcome: +" in memory.read_memory(path=path).text


def test_chunks_are_numbered_in_the_order_of_paths(memory: Memory, clock: FakeClock) -> None:
    call: dict[str, Any] = {"symbol": "BTC", "direction": "long", "horizon_hours": 2.0, "price": 100.0}
    for strategy in ("Zeta", "Alpha", "Mean"):
        for _ in range(2):
            memory.record_decision(**call, strategy_name=strategy, reasoning="flat range")
            clock.advance(days=1)
    memory.reindex()
    with memory.reading() as connection:
        numbers = stored.numbers_in(connection, "ana", Scope(sources=("decision",)))
        chunks = stored.numbered_chunks(connection, "ana", numbers)
    indexed = [chunks[number].path for number in numbers]
    assert len(indexed) == 6
    assert indexed == sorted(indexed)


def test_a_run_is_a_document(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    deployment, at = "VolBreakout@main", clock.now()
    before = a_snapshot(a_position(2.0, stop_price=95.0), at=at)
    last = at - timedelta(minutes=5)
    bars = [Bar(symbol="BTC", interval_seconds=300, opened_at=last, open=99.0, high=101.0, low=98.5, close=100.0)]
    opened = memory.open_tick(
        deployment=deployment,
        at=at,
        before=before,
        bars=bars,
        market=[Segment(name="news", text="# Halving\n```\nminers capitulate")],
    )
    memory.close_tick(
        deployment=deployment,
        at=at,
        before=before,
        bars=bars,
        verdict=Verdict(kind="noop", detail="waiting for the close"),
        shown=[*opened.system, *opened.segments],
        model="m-1",
        input_tokens=900,
        output_tokens=40,
        response="I wait.",
        citations=["TRADING_MANUAL.md:3-5"],
    )
    memory.reindex()
    (cited,) = memory.search_memory(query="miners capitulate", source=["run"]).citations
    assert cited.path == "runs/VolBreakout@main/2026-06-04.md"
    text = memory.read_memory(path=cited.path).text
    assert text.startswith("# Runs of 2026-06-04\n\n## 2026-06-04T10:00:00.000000Z noop\n\n- run: ")
    for line in (
        "- model: m-1",
        "- tokens: 900 in, 40 out",
        "- citations: TRADING_MANUAL.md:3-5",
        "### news",
        "> # Halving",
        "> ```",
        "### account",
        "- detail: waiting for the close",
        "- strategy: VolBreakout",
        "### market",
        "> BTC bar 2026-06-04T09:55:00.000000Z open=99 high=101 low=98.5 close=100",
        "### answer of the model",
        "> I wait.",
    ):
        assert f"\n{line}\n" in text
    assert "BTC long size=2 " in text
    assert "strategy" in text.split("- shown: ")[1].split("\n")[0]


def test_decisions_of_an_agent_are_not_found_for_another(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    memory.reindex()
    assert paths(memory, "break of the range", agent="VolBreakout@main")
    assert paths(memory, "break of the range", agent="Other@main") == []


def test_reviews_of_finished_periods_are_documents(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    memory.reindex()
    assert paths(memory, "review", path_prefix="reviews/") == []
    clock.advance(days=1)
    memory.reindex()
    assert paths(memory, "review", path_prefix="reviews/") == ["reviews/VolBreakout@main/daily/2026-06-04.md"]
    clock.advance(days=30)
    assert memory.reindex().changed == 2
    citations = memory.search_memory(query="monthly review", path_prefix="reviews/").citations
    assert {citation.path.split("/", 2)[2] for citation in citations} == {
        "daily/2026-06-04.md",
        "weekly/2026-W23.md",
        "monthly/2026-06.md",
    }
    (best, *_) = citations
    end = datetime(2026, 7, 1, tzinfo=UTC)
    same = memory.review_period(deployment="VolBreakout@main", period="monthly", ending=end)
    text = memory.read_memory(path=best.path).text
    assert NOT_TESTED in text
    assert set(text.split("\n\n")) - {NOT_TESTED} < set(same.markdown.split("\n\n"))
    assert memory.reindex().changed == 0


def test_daily_decisions_do_not_crowd_out_other_sources(memory: Memory, folder: Path, clock: FakeClock) -> None:
    (folder / "TRADING_MANUAL.md").write_text("# Manual\n\nTalk much of many things before the flat range: wait.\n")
    call: dict[str, Any] = {"symbol": "BTC", "direction": "long", "strategy_name": "Macro", "horizon_hours": 2.0}
    for _ in range(60):
        memory.record_decision(**call, reasoning="flat range, flat range, wait", price=100.0)
        clock.advance(days=1)
    memory.reindex()
    cited_paths = paths(memory, "flat range")
    assert "TRADING_MANUAL.md" in cited_paths
    assert sum(path.startswith("decisions/") for path in cited_paths) == 3
    assert len(paths(memory, "flat range", source=["decision"])) == 10


@pytest.mark.parametrize("computed", ["traces.render_review", "indexing.prepare"])
def test_a_note_is_written_while_the_index_is_computed(
    memory: Memory, url: str, folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, computed: str
) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    clock.advance(days=1)
    module, _, name = f"backsight.services.{computed}".rpartition(".")
    compute, texts = getattr(sys.modules[module], name), ["meanwhile"]
    run = memory.list_decisions().decisions[0].id

    def compute_beside_a_writer(*arguments: Any) -> Any:
        if texts:
            with opened(url, folder, clock) as writer:
                writer.append_note(run=run, text=texts.pop(), agent="b")
        return compute(*arguments)

    monkeypatch.setattr(f"{module}.{name}", compute_beside_a_writer)
    memory.reindex()
    assert (folder / "journal/2026-06-05.md").read_text().count("meanwhile") == 1
    assert memory.reindex().changed == 0
    assert paths(memory, "meanwhile") == ["journal/2026-06-05.md"]
    assert paths(memory, "review", path_prefix="reviews/") == ["reviews/VolBreakout@main/daily/2026-06-04.md"]


def test_an_emptied_workspace_keeps_its_index_until_it_is_confirmed(memory: Memory, folder: Path) -> None:
    first = memory.reindex()
    folder.rename(folder.parent / "elsewhere")
    folder.mkdir()
    kept = memory.reindex()
    assert (kept.documents, kept.removed) == (first.documents, 0)
    assert [(each.path, "no indexed file is left" in each.reason) for each in kept.skipped] == [(".", True)]
    health = memory.index_health()
    assert (health.healthy, health.message) == (False, kept.skipped[0].reason)
    assert paths(memory, "E1042") == ["journal/2026-06-03.md"]
    dropped = memory.reindex(accept_empty=True)
    assert (dropped.documents, dropped.skipped) == (0, ())


def test_notes_in_an_emptied_workspace_do_not_drop_its_index(memory: Memory, folder: Path, clock: FakeClock) -> None:
    memory.append_note(run=a_run(memory), text="Before.", agent="a")
    former = memory.reindex().documents
    clock.advance(minutes=1)
    folder.rename(elsewhere := folder.parent / "elsewhere")
    folder.mkdir()
    for note in ("Meanwhile.", "Later."):  # the first in a file that was indexed before, as today's journal
        clock.advance(minutes=1)
        memory.append_note(run=a_run(memory), text=note, agent="a")
        memory.append_note(run=a_run(memory), text=note, agent="a", path="journal/ideas.md")
    assert memory.reindex().documents == former + 1
    assert not memory.index_health().healthy
    assert paths(memory, "E1042") == ["journal/2026-06-03.md"]
    assert paths(memory, "later meanwhile")
    shutil.rmtree(folder)
    elsewhere.rename(folder)
    back = memory.reindex()
    assert (back.documents, back.skipped) == (former, ())


def test_files_that_were_moved_are_no_emptied_workspace(memory: Memory, folder: Path) -> None:
    first = memory.reindex()
    (moved := folder.parent / "moved").mkdir()
    folder.rename(moved / "strategies")
    moved.rename(folder)
    after = memory.reindex()
    assert (after.removed, after.skipped) == (first.documents, ())


def test_a_note_is_indexed_without_reading_the_whole_store_again(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    ticked(memory, clock, deployment="VolBreakout@main")
    memory.append_note(run=a_run(memory), text="Slow day.", agent="a")
    assert paths(memory, "slow day")[0] == "journal/2026-06-04.md"
    assert paths(memory, "break of the range", source=["decision", "run"]) == []
    memory.reindex()
    memory.append_note(run=a_run(memory), text="Slower day.", agent="a")
    assert paths(memory, "break of the range", source=["decision", "run"])


def test_a_huge_line_of_any_script_is_indexed_by_its_beginning(memory: Memory, folder: Path) -> None:
    words = (f"слово{number}" + "ы" * 50 for number in range(30_000))
    (folder / "artifacts/report.json").write_text("needle " + " ".join(words))
    (folder / "artifacts/long.txt").write_text("haystack " * 300_000 + "pin")
    assert memory.reindex().skipped == ()
    (cited,) = memory.search_memory(query="needle").citations
    assert (cited.path, cited.start_line, cited.end_line, cited.shortened) == ("artifacts/report.json", 1, 1, True)
    assert paths(memory, "haystack") == paths(memory, "pin") == ["artifacts/long.txt"]


# Empty answers and errors


def test_an_empty_search_says_why(memory: Memory) -> None:
    assert memory.search_memory(query="cap").message == "nothing is indexed yet; run reindex"
    memory.reindex()
    nothing = memory.search_memory(query="xylophone").message
    assert nothing == "none of 10 documents matches: xylophone; try other words"
    weak = memory.search_memory(query="SOL DOGE restarted")
    assert "1 passage with some of the words, but not enough to be an answer (minimum score 0.3)" in weak.message
    assert "nothing is written about: SOL, DOGE" in weak.message
    assert (weak.citations, weak.missing) == ((), ("SOL", "DOGE"))
    filtered = memory.search_memory(query="E1042", source=["manual"])
    assert filtered.message == "documents outside the filters match; remove filters"
    assert memory.search_memory(query="MetaAPI bridge xylophone").message == "nothing is written about: xylophone"
    corrected = memory.search_memory(query="restarted the brigde")
    assert corrected.message == "'brigde' is in no document and was read as 'bridge'"
    assert "contains no words" in memory.search_memory(query="?!").message
    assert "contains no words" in memory.search_memory(query="").message


def test_umlauts_may_be_written_either_way_in_a_question_and_in_a_file(memory: Memory, folder: Path) -> None:
    (folder / "journal/boerse.md").write_text("# Kosten\n\nDie Gebühren der Börse stiegen auf 0,1%.\n")
    (folder / "journal/risiko.md").write_text("# Risiko\n\nGroesse und Ueberhang pruefen, Gold.\n")
    memory.reindex()
    for query, path in (
        ("Wie hoch sind die Gebuehren?", "journal/boerse.md"),
        ("Wie hoch sind die Gebühren?", "journal/boerse.md"),
        ("Was kostet die Boerse", "journal/boerse.md"),
        ("Wann ist die Größe zu prüfen?", "journal/risiko.md"),
        ("Überhang fuer Gold", "journal/risiko.md"),
    ):
        assert paths(memory, query)[:1] == [path]


def test_a_query_that_is_too_long_is_refused(memory: Memory) -> None:
    with pytest.raises(Invalid, match="longer than 10000 characters"):
        memory.search_memory(query="x" * 100_000)


def test_a_workspace_that_is_not_there_is_an_error(url: str, tmp_path: Path, clock: FakeClock) -> None:
    with opened(url, tmp_path / "nowhere", clock) as memory, pytest.raises(NotFound, match="documents init"):
        memory.reindex()
    with opened(url, None, clock) as memory, pytest.raises(Invalid, match="BACKSIGHT_WORKSPACE"):
        memory.reindex()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"search": "faiss"}, "search: 'faiss' is not a search slot"),
        ({"fusion": "magic"}, "fusion: 'magic' is not a fusion method"),
        ({"keyword_weight": "heavy"}, "keyword_weight: 'heavy' is not a number"),
        ({"source_caps": "journal"}, "source_caps: 'journal' is not a cap"),
        (
            {"search": "hybrid_embeddings", "embedder": "nowhere", "embedder_model": "m"},
            "embedder: 'nowhere' is not an addr",
        ),
        ({"search": "hybrid_embeddings", "embedder": "http://127.0.0.1:1/v1"}, "embedder_model: name the model"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error_at_start(
    url: str, folder: Path, clock: FakeClock, wrong: dict[str, str], message: str
) -> None:
    with pytest.raises(Invalid, match=message):
        opened(url, folder, clock, **wrong)


def test_an_embedder_that_is_not_installed_is_an_error_at_start(
    url: str, folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backsight.memory.find_spec", lambda _name: None)
    with pytest.raises(Unavailable, match="pip install"):
        opened(url, folder, clock, search="hybrid_embeddings")


@pytest.mark.parametrize(
    ("name", "first", "among_five", "nothing"),
    [("questions", 0.85, 0.97, 0.9), ("held_out_questions", 0.85, 0.9, 0.8)],
)
def test_questions_are_answered_and_those_without_an_answer_get_nothing(
    url: str, tmp_path: Path, clock: FakeClock, name: str, first: float, among_five: float, nothing: float
) -> None:
    questions = json.loads((Path(__file__).parent.parent / f"data/{name}.json").read_text())
    for path, text in questions["files"].items():
        file = tmp_path / "workspace" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    places: list[int] = []
    empty: list[bool] = []
    with opened(url, tmp_path / "workspace", clock) as memory:
        memory.reindex()
        for question in questions["questions"]:
            answer = memory.search_memory(query=question["text"], limit=5)
            if "path" not in question:
                empty.append(not answer.citations and bool(answer.message))
                continue
            right = [question["path"] == each.path and question["answer"] in each.snippet for each in answer.citations]
            places.append(right.index(True) if any(right) else 99)
    assert sum(place == 0 for place in places) / len(places) >= first
    assert sum(place < 5 for place in places) / len(places) >= among_five
    assert sum(empty) / len(empty) >= nothing


# Embeddings


def test_only_changed_chunks_are_embedded_and_a_change_of_model_embeds_all(
    url: str, folder: Path, clock: FakeClock
) -> None:
    embedder, new_embedder = CountingEmbedder(), CountingEmbedder("other")
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=embedder) as memory:
        first = memory.reindex()
        assert first.embedded == len(embedder.texts) == first.chunks
        (folder / "SOUL.md").write_text("# Soul\n\nPatient.\n")
        clock.advance(minutes=1)
        assert memory.reindex().embedded == 1
        health = memory.index_health()
        assert (health.embedding_model, health.embedded) == ("counting", health.chunks)
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=new_embedder) as memory:
        assert memory.index_health().embedded == 0
        assert paths(memory, "E1042") == ["journal/2026-06-03.md"]  # by words, until the vectors are there
        assert memory.reindex().embedded == first.chunks


def test_each_paragraph_of_a_long_chunk_is_embedded_under_its_headings(
    url: str, folder: Path, clock: FakeClock
) -> None:
    embedder = CountingEmbedder()
    words = ("spread", "funding", "slippage", "interest", "swap")
    paragraphs = [f"{word} " * 60 + "\n\n" for word in words]
    (folder / "memory/costs.md").write_text(f"# Costs\n\n{''.join(paragraphs)}")
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=embedder) as memory:
        result = memory.reindex()
        passages = [text for text in embedder.texts if text.startswith("Costs\n")]
        assert passages == [f"Costs\n# Costs\n\n{paragraphs[0]}", *(f"Costs\n{each}" for each in paragraphs[1:])]
        assert result.embedded == memory.index_health().embedded == result.chunks < len(embedder.texts)
        (cited, *_) = memory.search_memory(query="swap").citations
        assert cited.path == "memory/costs.md"
        assert cited.factors.vector is not None
        assert cited.factors.vector > 0.9
        assert memory.reindex().embedded == 0


def test_a_citation_has_a_keyword_and_a_vector_score(url: str, folder: Path, clock: FakeClock) -> None:
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=CountingEmbedder()) as memory:
        memory.reindex()
        (best, *_) = memory.search_memory(query="restarted the bridge").citations
        assert best.path == "journal/2026-06-03.md"
        assert best.factors.keyword is not None
        assert best.factors.vector is not None


def test_a_repeated_query_is_embedded_once(url: str, folder: Path, clock: FakeClock) -> None:
    embedder = CountingEmbedder()
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=embedder) as memory:
        memory.reindex()
        before = len(embedder.texts)
        for _ in range(3):
            assert paths(memory, "E1042") == ["journal/2026-06-03.md"]
        assert embedder.texts[before:] == ["E1042"]


def test_a_search_before_there_are_vectors_says_so(url: str, folder: Path, clock: FakeClock) -> None:
    with opened(url, folder, clock) as memory:
        memory.reindex()
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=CountingEmbedder()) as memory:
        assert "no document has a vector yet" in memory.search_memory(query="E1042").message


def test_without_its_embedder_a_search_uses_keywords_and_says_so(url: str, folder: Path, clock: FakeClock) -> None:
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=CountingEmbedder()) as memory:
        memory.reindex()
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=BrokenEmbedder()) as memory:
        answer = memory.search_memory(query="E1042")
        assert answer.citations[0].path == "journal/2026-06-03.md"
        assert "searched by words only" in answer.message


class GatedEmbedder(CountingEmbedder):
    """Waits in its first call until `go` is set."""

    def __init__(self, model: str = "gated") -> None:
        super().__init__(model)
        self.called, self.go = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.called.set()
        assert self.go.wait(60)
        return super().embed(texts)


def background_of(memory: Memory) -> BackgroundWorker:
    assert memory.library is not None
    return memory.library.background


def test_a_change_of_model_embeds_in_the_background(url: str, folder: Path, clock: FakeClock) -> None:
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=CountingEmbedder()) as memory:
        memory.reindex()
    embedder = GatedEmbedder()
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=embedder) as memory:
        result = memory.reindex(background=True)
        assert embedder.called.wait(60)
        assert (result.embedded, result.waiting) == (0, result.chunks)
        health = memory.index_health()
        assert (health.embedding, health.embedded, health.healthy) == (True, 0, False)
        embedder.go.set()
        background_of(memory).wait(60)
        health = memory.index_health()
        assert (health.embedding, health.embedded, health.healthy) == (False, result.chunks, True)
        assert health.compared_in == ("database" if url.startswith("postgresql") else "memory")
        assert memory.search_memory(query="stops").citations[0].factors.vector is not None


def test_keyword_search_works_during_embedding(url: str, folder: Path, clock: FakeClock) -> None:
    embedder = GatedEmbedder()
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=embedder) as memory:
        memory.reindex(background=True)
        assert embedder.called.wait(60)
        with opened(url, folder, clock, search="hybrid_embeddings", embedder=CountingEmbedder("gated")) as second:
            assert paths(second, "E1042") == ["journal/2026-06-03.md"]
        embedder.go.set()


def test_a_note_is_embedded_without_a_reindex(url: str, folder: Path, clock: FakeClock) -> None:
    embedder = CountingEmbedder()
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=embedder) as memory:
        memory.reindex()
        memory.append_note(run=a_run(memory), text="Gold fell on the news.", agent="a")
        background_of(memory).wait(60)
        assert "Gold fell on the news." in embedder.texts[-1]
        assert memory.index_health().healthy


def test_index_health_reports_a_failing_embedder(url: str, folder: Path, clock: FakeClock) -> None:
    (folder / "memory/binary.md").write_bytes(b"\xff")
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=BrokenEmbedder()) as memory:
        assert memory.reindex(background=True).waiting > 0
        background_of(memory).wait(60)
        message = memory.index_health().message
        assert message.startswith("not in the index: 1 file; `skipped` gives the reason for each; ")
        assert message.endswith("only keyword search finds them; embedding stopped: embedder: the server is away")
        with pytest.raises(Unavailable, match="the server is away"):
            memory.reindex()


class MendedEmbedder(CountingEmbedder):
    """Fails in its first call."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = super().embed(texts)
        if len(self.texts) == len(texts):
            raise Unavailable("the server is away", field="embedder")
        return rows


def test_embedding_resumes_when_the_embedder_is_back(url: str, folder: Path, clock: FakeClock) -> None:
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=MendedEmbedder()) as memory:
        memory.reindex(background=True)
        background_of(memory).wait(60)
        assert not memory.index_health().embedding
        memory.reindex(background=True)
        background_of(memory).wait(60)
        health = memory.index_health()
        assert (health.embedding, health.healthy) == (False, True)


def test_embedding_reports_its_progress(url: str, folder: Path, clock: FakeClock) -> None:
    calls: list[tuple[str, int, int]] = []
    (folder / "journal/many.md").write_text("\n\n".join(f"# Day {day}\n\n{'word ' * 500}" for day in range(80)))
    with opened(url, folder, clock, search="hybrid_embeddings", embedder=CountingEmbedder()) as memory:
        memory.progress = lambda *call: calls.append(call)
        embedded = memory.reindex().embedded
    assert embedded > 64
    embedding = [(done, total) for part, done, total in calls if part == "Embedding"]
    assert embedding == [(64, embedded), (embedded, embedded)]
    assert ("Reading files", 11, 11) in calls


# Writing


def test_a_note_is_added_found_and_attributed(memory: Memory, folder: Path) -> None:
    note = memory.append_note(text="Stopped out of a false break.", agent="btc-5m", run=(run := a_run(memory)))
    assert note.path == "journal/2026-06-04.md"
    lines = (folder / note.path).read_text().splitlines()
    assert lines[note.start_line - 1] == "## 2026-06-04T10:00:00.000000Z"
    assert lines[note.end_line - 1] == "Stopped out of a false break."
    assert paths(memory, "false break")[0] == note.path
    (writing,) = memory.list_edits(run=run).edits
    assert (writing.kind, writing.status, writing.agent, writing.path) == ("note", "written", "btc-5m", note.path)
    assert memory.verify_audit().intact


def test_a_note_written_twice_is_in_the_file_once(memory: Memory, folder: Path) -> None:
    first = memory.append_note(run=a_run(memory), text="once", agent="a", note="learning")
    again = memory.append_note(run=a_run(memory), text="once", agent="a", note="learning")
    assert (first.replayed, again.replayed) == (False, True)
    assert (folder / "memory/learnings.md").read_text().count("once") == 1


def test_a_note_repeated_with_its_key_is_in_the_file_once(memory: Memory, folder: Path, clock: FakeClock) -> None:
    first = memory.append_note(run=a_run(memory), text="Stopped out.", agent="a", idempotency_key="k")
    clock.advance(days=1)
    again = memory.append_note(run=a_run(memory), text="Stopped out.", agent="a", idempotency_key="k")
    assert (again.id, again.path, again.start_line, again.replayed) == (first.id, first.path, first.start_line, True)
    with pytest.raises(Conflict, match="another note"):
        memory.append_note(run=a_run(memory), text="Took profit.", agent="a", idempotency_key="k")
    assert (folder / first.path).read_text().count("Stopped out.") == 1


CUT_OFF = """
import os, sys
from datetime import UTC, datetime
from backsight.importers.workspace import Workspace
from backsight.memory import open_memory
from backsight.settings import Settings
from backsight.testing import FakeClock
write = Workspace.write
def dying(self, path, text):
    if sys.argv[3] == "after":
        write(self, path, text)
    os._exit(9)
Workspace.write = dying
settings = Settings(url=sys.argv[1], owner="ana", workspace=sys.argv[2])
with open_memory(settings=settings, clock=FakeClock(datetime(2026, 6, 4, 10, tzinfo=UTC))) as memory:
    memory.append_note(text="Stopped out.", agent="a", run=sys.argv[4])
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_note_is_in_the_file_once(memory: Memory, url: str, folder: Path, when: str) -> None:
    memory.reindex()
    ran = subprocess.run([sys.executable, "-c", CUT_OFF, url, str(folder), when, a_run(memory)], check=False)
    assert ran.returncode == 9
    assert [each.status for each in memory.list_edits().edits] == ["pending"]
    memory.reindex()
    assert [each.status for each in memory.list_edits().edits] == ["written"]
    assert (folder / "journal/2026-06-04.md").read_text().count("Stopped out.") == 1
    assert paths(memory, "stopped out")[0] == "journal/2026-06-04.md"


def test_a_note_that_cannot_be_written_says_so_and_may_be_repeated(
    memory: Memory, folder: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", _no_space)
        with pytest.raises(Unavailable, match="No space left"):
            memory.append_note(run=a_run(memory), text="Stopped out.", agent="a", idempotency_key="k")
    failed = memory.list_edits().edits
    assert [each.status for each in failed] == ["failed"]
    memory.reindex()
    assert not (folder / "journal/2026-06-04.md").exists()
    clock.advance(hours=1)
    assert not memory.append_note(run=a_run(memory), text="Stopped out.", agent="a", idempotency_key="k").replayed
    assert [each.status for each in memory.list_edits().edits] == ["written"]
    assert memory.list_edits(as_of=T0).edits == memory.list_edits(seen_at=T0).edits == failed


def _no_space(_file: int) -> None:
    raise OSError(28, "No space left on device")


def test_notes_written_concurrently_are_all_in_the_file(url: str, folder: Path, memory: Memory) -> None:
    def write(name: str) -> None:
        with opened(url, folder, FakeClock(T0)) as mine:
            for number in range(5):
                mine.append_note(run=a_run(mine), text=f"note {number}", agent=name)

    threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (folder / "journal/2026-06-04.md").read_text().count("<!-- agent:") == 15
    assert len(memory.list_edits().edits) == 15


@pytest.mark.parametrize(
    "path",
    [
        "../x.md",
        "/etc/x.md",
        "journal/../../x.md",
        "journal/CON.md",
        "SOUL.md",
        "strategies/x.md",
        "Journal/x.md",
        "a\\b.md",
    ],
)
def test_a_note_outside_the_writable_folders_is_refused(memory: Memory, folder: Path, path: str) -> None:
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(Refused):
        memory.append_note(run=a_run(memory), text="x", agent="a", path=path)
    assert [each for each in sorted(folder.parent.rglob("*")) if ".db" not in each.name] == [
        each for each in before if ".db" not in each.name
    ]
    assert memory.list_edits().edits == ()


def test_a_note_does_not_follow_a_link(memory: Memory, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "victim.md").write_text("mine")
    (folder / "journal/x.md").symlink_to(tmp_path / "victim.md")
    (folder / "journal/out").symlink_to(tmp_path)
    for path in ("journal/x.md", "journal/out/victim.md"):
        with pytest.raises(Refused, match="link"):
            memory.append_note(run=a_run(memory), text="x", agent="a", path=path)
    assert (tmp_path / "victim.md").read_text() == "mine"


def test_another_spelling_of_a_file_is_refused(memory: Memory, folder: Path) -> None:
    (folder / "journal/Day.md").write_text("x")
    with pytest.raises(Refused, match="differs only in case"):
        memory.append_note(run=a_run(memory), text="x", agent="a", path="journal/day.md")


def test_a_text_with_a_secret_is_refused(memory: Memory, folder: Path) -> None:
    with pytest.raises(Refused, match="looks like it contains"):
        memory.append_note(run=a_run(memory), text="api_key = 1234567890abcdef", agent="a")
    with pytest.raises(Refused, match="looks like it contains"):
        memory.propose_edit(path="SOUL.md", text="password: hunter2hunter2", reason="x", agent="a")
    assert not (folder / "journal/2026-06-04.md").exists()


def test_an_edit_is_applied_when_the_owner_approves(memory: Memory, folder: Path, clock: FakeClock) -> None:
    memory.reindex()
    new = MANUAL.replace("2%", "1%")
    edit = memory.propose_edit(path="TRADING_MANUAL.md", text=new, reason="too large", agent="a", run="r").edit
    assert "-Never hold more than 2%" in edit.diff
    assert (folder / "TRADING_MANUAL.md").read_text() == MANUAL
    clock.advance(hours=1)
    assert memory.approve_edit(edit_id=edit.id).edit.status == "approved"
    assert (folder / "TRADING_MANUAL.md").read_text() == new
    assert "1%" in memory.search_memory(query="R3_POSITION_CAP").citations[0].snippet
    assert memory.list_edits(as_of=T0).edits == (edit,)
    assert [each.status for each in memory.list_edits().edits] == ["approved"]
    with pytest.raises(Conflict, match="already approved"):
        memory.reject_edit(edit_id=edit.id)
    assert memory.verify_audit().intact


def test_an_edit_can_be_proposed_again_after_a_rejection_or_a_conflict(memory: Memory, folder: Path) -> None:
    edit: dict[str, Any] = {"path": "SOUL.md", "text": "# New\n", "reason": "x", "agent": "a"}
    first = memory.propose_edit(**edit).edit
    assert memory.propose_edit(**edit).replayed
    memory.reject_edit(edit_id=first.id)
    again = memory.propose_edit(**edit)
    assert (again.replayed, again.edit.status, again.edit.id != first.id) == (False, "proposed", True)
    (folder / "SOUL.md").write_text("# Changed by the owner\n")
    with pytest.raises(Conflict):
        memory.approve_edit(edit_id=again.edit.id)
    third = memory.propose_edit(**edit)
    assert not third.replayed
    assert memory.approve_edit(edit_id=third.edit.id).edit.status == "approved"
    assert (folder / "SOUL.md").read_text() == "# New\n"
    listed = memory.list_edits(limit=2)
    assert (len(listed.edits), listed.total) == (2, 3)


def test_a_note_names_a_recorded_run(memory: Memory, folder: Path) -> None:
    with pytest.raises(Invalid, match="run"):
        memory.append_note(text="x", agent="a")  # type: ignore[call-arg]
    with pytest.raises(NotFound, match="no run 'nothing' is recorded"):
        memory.append_note(text="x", agent="a", run="nothing")
    run = a_run(memory)
    memory.append_note(text="x", agent="a", run=run[:8], path="journal/x.md")
    assert f"run: {run} " in (folder / "journal/x.md").read_text()
    assert memory.list_edits(run=run) == memory.list_edits(run=run[:8])
    assert memory.list_edits(run=run).total == 1
    assert not (folder / "journal/2026-06-04.md").exists()


def test_an_agent_writes_in_its_own_folder_and_not_in_that_of_another(memory: Memory) -> None:
    note = memory.append_note(text="A squeeze.", agent="btc", run=a_run(memory), path="agents/btc/ideas.md")
    assert paths(memory, "squeeze", agent="btc") == [note.path]
    assert paths(memory, "squeeze", agent="eth") == []
    for path in ("agents/eth/ideas.md", "agents/btc/SOUL.md", "agents/btc/strategies/x.md"):
        with pytest.raises(Refused):
            memory.append_note(text="x", agent="btc", run=a_run(memory), path=path)


def test_an_edit_of_a_file_that_has_changed_is_a_conflict(memory: Memory, folder: Path) -> None:
    edit = memory.propose_edit(path="SOUL.md", text="# New\n", reason="x", agent="a").edit
    (folder / "SOUL.md").write_text("# Changed by the owner\n")
    with pytest.raises(Conflict, match="has changed since the edit was proposed"):
        memory.approve_edit(edit_id=edit.id)
    assert (folder / "SOUL.md").read_text() == "# Changed by the owner\n"
    assert [each.status for each in memory.list_edits().edits] == ["proposed"]


def test_a_rejected_edit_changes_nothing(memory: Memory, folder: Path) -> None:
    before = (folder / "SOUL.md").read_text()
    edit = memory.propose_edit(path="SOUL.md", text="# New\n", reason="x", agent="a").edit
    decided = memory.reject_edit(edit_id=edit.id, reason="no").edit
    assert (decided.status, decided.decided_reason) == ("rejected", "no")
    assert (folder / "SOUL.md").read_text() == before
    with pytest.raises(NotFound):
        memory.approve_edit(edit_id="nothing")


def test_a_new_workspace_is_laid_out_and_nothing_is_overwritten(url: str, tmp_path: Path, clock: FakeClock) -> None:
    fresh = tmp_path / "fresh"
    with opened(url, fresh, clock) as memory:
        created = memory.init_documents().created
        assert "TRADING_MANUAL.md" in created
        (fresh / "SOUL.md").write_text("mine")
        again = memory.init_documents()
    assert (again.created, set(again.existing)) == ((), set(created))
    assert (fresh / "SOUL.md").read_text() == "mine"


def test_journals_age_by_setting_and_sources_are_capped(url: str, folder: Path, clock: FakeClock) -> None:
    for number in range(4):
        (folder / f"journal/n{number}.md").write_text("a squeeze came\n")
    (folder / "memory/notes.md").write_text("a squeeze is rare\n")
    with opened(url, folder, clock, source_caps="journal=2") as memory:
        memory.reindex()
        cited_paths = paths(memory, "squeeze")
    assert sum(path.startswith("journal/") for path in cited_paths) == 2
    assert "memory/notes.md" in cited_paths


def test_a_rule_that_somebody_changed_in_the_index_is_not_shown(memory: Memory, folder: Path, url: str) -> None:
    (folder / "TRADING_MANUAL.md").write_text("# Manual\n\nNever risk more than 1% of zinc.\n")
    memory.reindex()
    with raw(url) as connection:
        connection.execute(sql("UPDATE document_chunks SET text = replace(text, '1%', '90%')"))
    assert "90%" not in str(memory.search_memory(query="risk zinc"))
    with pytest.raises(Unavailable, match=r"TRADING_MANUAL\.md is left out: .* changed outside Backsight; run reindex"):
        memory.read_memory(path="TRADING_MANUAL.md")
    deployed(memory)
    prompt = str(memory.preview_context(deployment="VolBreakout@main"))
    assert "zinc" not in prompt
    assert "Note: TRADING_MANUAL.md is left out" in prompt
    health = memory.index_health()
    assert not health.healthy
    assert "the index of TRADING_MANUAL.md is not what its file says" in health.message
    assert [finding.key for finding in memory.doctor().findings] == ["TRADING_MANUAL.md"]
    assert not memory.doctor(repair=True).passed
    memory.reindex()
    assert "1% of zinc" in memory.read_memory(path="TRADING_MANUAL.md").text
    assert "1% of zinc" in str(memory.preview_context(deployment="VolBreakout@main"))
    assert memory.doctor().healthy


def test_a_rule_that_is_forged_with_its_hashes_is_not_shown(memory: Memory, folder: Path, url: str) -> None:
    (folder / "TRADING_MANUAL.md").write_text("Never risk more than 1% of zinc.\n")
    memory.reindex()
    deployed(memory)
    forged = content_hash("Never risk more than 90% of zinc.\n")
    with raw(url) as connection:
        own = {"path": "TRADING_MANUAL.md", "hash": forged}
        changed = "UPDATE document_chunks SET text = replace(text, '1%', '90%'), text_hash = :hash WHERE path = :path"
        connection.execute(sql(changed), own)
        connection.execute(sql("UPDATE documents SET content_hash = :hash WHERE path = :path"), own)
    assert "the index of TRADING_MANUAL.md is not what its file says" in memory.index_health().message
    prompt = str(memory.preview_context(deployment="VolBreakout@main"))
    assert "zinc" not in prompt
    assert "Note: TRADING_MANUAL.md is left out: its text in the index was changed outside Backsight" in prompt
    answer = memory.search_memory(query="risk zinc")
    assert "90%" not in str(answer)
    assert "TRADING_MANUAL.md is left out" in answer.message
    with pytest.raises(Unavailable, match="changed outside Backsight"):
        memory.read_memory(path="TRADING_MANUAL.md")
    memory.reindex()
    assert "1% of zinc" in str(memory.preview_context(deployment="VolBreakout@main"))
    assert memory.index_health().healthy


def test_a_rule_forged_so_that_the_file_seems_newer_is_named(memory: Memory, folder: Path, url: str) -> None:
    (folder / "TRADING_MANUAL.md").write_text("Never risk more than 1% of zinc.\n")
    memory.reindex()
    deployed(memory)
    (folder / "TRADING_MANUAL.md").write_text("Never risk more than 2% of zinc, ever.\n")  # or the owner edits it
    prompt = str(memory.preview_context(deployment="VolBreakout@main"))
    assert "1% of zinc" in prompt
    assert "Note: TRADING_MANUAL.md differs from its file, which may be newer than the index; run reindex" in prompt
    (folder / "TRADING_MANUAL.md").unlink()  # or somebody adds a document that no file has
    answer = memory.search_memory(query="risk zinc SOL")
    assert answer.message == (
        "TRADING_MANUAL.md is in the index, but its file is missing; run reindex; nothing is written about: SOL"
    )
    prompt = str(memory.preview_context(deployment="VolBreakout@main"))
    assert "Note: TRADING_MANUAL.md is in the index, but its file is missing; run reindex" in prompt


def test_a_row_is_cited_by_its_column_and_an_item_with_its_introduction(memory: Memory, folder: Path) -> None:
    lines = ["# Manual", "", "Never:", "", "- average down", "", "| symbol | cap |", "|---|---|", "| EUR/USD | 3 |"]
    (folder / "TRADING_MANUAL.md").write_text("\r\n".join([*lines, "| DAX | 1 |"]), "utf-8-sig", newline="")
    memory.reindex()
    places = [memory.search_memory(query=query).citations[0].place for query in ("EURUSD cap", "average down")]
    assert places == ["TRADING_MANUAL.md:9", "TRADING_MANUAL.md:3-5"]


def test_capital_endings_are_markdown_and_utf_16_is_named(memory: Memory, folder: Path) -> None:
    (folder / "memory/IDEAS.MD").write_text("Kumquat futures.\n")
    (folder / "memory/windows.md").write_bytes("# Hallo\n".encode("utf-16"))
    skipped = {each.path: each.reason for each in memory.reindex().skipped}
    assert skipped == {"memory/windows.md": "not UTF-8"}
    assert memory.search_memory(query="kumquat").citations[0].path == "memory/IDEAS.MD"
