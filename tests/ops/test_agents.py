"""Runs are recorded, listed with ticks as one, found by search, and their cards are kept as the agent gave them."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from backsight.answers.layouts import brief
from backsight.core.agents.card import CardField
from backsight.core.decision import Verdict
from backsight.core.errors import Conflict, Invalid, NotFound, Refused
from backsight.memory import Memory, open_memory
from backsight.services.library import Library
from backsight.testing import T0, FakeClock, a_snapshot
from support import deployed

DEPLOYED: dict[str, Any] = {"deployment": "VolBreakout@main"}
CARD: dict[str, Any] = {"symbol": "BTC", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0}


def recorded(memory: Memory, **changes: Any) -> Any:
    """A run with a trade decision."""
    return memory.record_run(
        **{**DEPLOYED, "prompt": "Look at BTC.", "output": "Up.", "card_type": "trade_decision", "result": CARD}
        | changes
    )


def test_a_run_keeps_what_the_agent_was_asked_and_concluded(memory: Memory) -> None:
    deployed(memory)
    run = recorded(memory, model="m", input_tokens=5, output_tokens=7, cost=0.5, session_after="s").run
    assert (run.kind, run.status, run.fits, run.card) == ("heartbeat", "succeeded", True, CARD)
    assert memory.get_run(run=run.id[:8]).run == run


def test_a_result_that_does_not_fit_is_kept_and_flagged(memory: Memory) -> None:
    deployed(memory)
    answer = recorded(memory, result={"decision": "MAYBE", "mood": "odd"})
    assert answer.run.fits is False
    assert answer.run.card == {"decision": "MAYBE", "mood": "odd"}
    assert "symbol is missing" in str(answer.run.misfit)
    assert "does not fit trade_decision" in answer.message


def test_a_repeated_run_is_a_replay_and_its_key_belongs_to_it(memory: Memory) -> None:
    deployed(memory)
    first = recorded(memory, idempotency_key="k")
    assert recorded(memory, idempotency_key="k").replayed
    with pytest.raises(Conflict, match="another run"):
        recorded(memory, idempotency_key="k", result={**CARD, "entry": 101.0})
    assert memory.get_run(run=first.run.id).run == first.run


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"result": {"entry": float("nan")}}, Invalid, "result.entry: nan is not a finite number"),
        ({"result": {"entry": "9" * 10_000_000}}, Invalid, "result: has 10,000,013 characters"),
        ({"card_type": "trade_decison"}, Invalid, "did you mean 'trade_decision'"),
        ({"parent": "x"}, Invalid, "parent: a re-examination has a parent"),
        ({"kind": "re_examination"}, Invalid, "parent: a re-examination has a parent"),
        ({"kind": "re_examination", "parent": "00000000-0000"}, NotFound, "parent: no run"),
        ({"status": "failed"}, Invalid, "error: a run that did not succeed"),
        ({"started_at": T0, "ended_at": T0 - timedelta(hours=1)}, Invalid, "ended_at: .* is before the start"),
        ({"ended_at": T0 + timedelta(days=1)}, Invalid, "ended_at: .* in the future"),
        ({"deployment": "nobody"}, NotFound, "deployment: no deployment"),
    ],
)
def test_a_run_that_cannot_be_is_refused_and_nothing_is_written(
    memory: Memory, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    deployed(memory)
    with pytest.raises(error, match=message):
        recorded(memory, **change)
    assert memory.list_runs().runs == ()


ADVICE = {"conviction_score": 40, "notes": "The range broke.", "suggested_action": "close"}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({**ADVICE, "conviction_score": 140}, "conviction_score must be a whole number"),
        ({**ADVICE, "conviction_score": "high"}, "conviction_score must be a whole number"),
        ({**ADVICE, "suggested_action": "SELL"}, "suggested_action must be one of"),
    ],
)
def test_a_malformed_re_examination_of_another_loop_is_flagged_and_counts_for_nothing(
    memory: Memory, answer: dict[str, Any], reason: str
) -> None:
    deployed(memory)
    parent = recorded(memory).run
    report = recorded(memory, prompt="Again.", kind="re_examination", parent=parent.id, card_type=None, result=answer)
    assert report.message.startswith(f"Recorded. The result does not fit re_examination: {reason}")
    assert report.run.card == answer
    (conviction,) = memory.conviction_history(run=parent.id).re_examinations
    assert (conviction.conviction_score, conviction.error is not None) == (None, True)
    assert "conviction" not in memory.get_my_decisions(deployment="VolBreakout@main").lines[0]


def test_a_re_examination_of_another_loop_is_read_as_one_of_ours(memory: Memory) -> None:
    deployed(memory)
    parent = recorded(memory).run
    again: dict[str, Any] = {"prompt": "Again.", "kind": "re_examination", "card_type": None}
    child = recorded(memory, **again, parent=parent.id, result=ADVICE)
    assert (child.message, child.run.fits) == ("Recorded.", True)
    (conviction,) = memory.conviction_history(run=parent.id).re_examinations
    assert (conviction.conviction_score, conviction.suggested_action) == (40, "CLOSE")
    assert memory.get_my_decisions(deployment="VolBreakout@main").lines[0].endswith("conviction 40 CLOSE")
    silent = recorded(memory, **{**again, "prompt": "Third."}, parent=parent.id, result=None)
    assert "it has no conviction" in silent.message
    with pytest.raises(Refused, match="parent: this run is a re-examination itself"):
        recorded(memory, **again, parent=child.run.id)
    plain = recorded(memory, prompt="No card.", card_type=None, result=None).run
    with pytest.raises(Refused, match="parent: the run has no card"):
        recorded(memory, **again, parent=plain.id)
    with pytest.raises(Invalid, match="card_type: a re-examination has the card type"):
        recorded(memory, **{**again, "card_type": "trade_decision"}, parent=parent.id)


def test_a_result_without_a_card_type_and_a_card_type_without_a_result_say_what_they_are(memory: Memory) -> None:
    deployed(memory)
    assert "so it is no decision" in recorded(memory, card_type=None).message
    assert recorded(memory, result=None).message.startswith("Recorded without a card: no result")


def test_an_answer_about_a_run_shows_what_the_agent_wrote(memory: Memory) -> None:
    deployed(memory)
    run = recorded(memory, prompt="Why?", output="Because.\n" + "word " * 5_000 + "the end").run
    text = brief(memory.get_run(run=run.id))
    assert all(part in text for part in ("> Because.", "the end", "── prompt\n> Why?", "── result"))


def test_the_run_of_another_owner_is_no_parent(url: str) -> None:
    clock = FakeClock(T0)
    with open_memory(url, owner="eve", clock=clock) as eve:
        deployed(eve)
        parent = recorded(eve).run
    with open_memory(url, owner="ana", clock=clock) as memory:
        deployed(memory)
        with pytest.raises(NotFound, match="parent: no run"):
            recorded(memory, kind="re_examination", parent=parent.id)


def test_runs_and_ticks_are_listed_as_one(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    first = recorded(memory).run
    clock.advance(hours=1)
    tick = memory.close_tick(
        **DEPLOYED, at=clock.now(), before=a_snapshot(at=clock.now()), verdict=Verdict(kind="noop", detail="quiet")
    ).decision
    clock.advance(hours=1)
    chat = recorded(memory, kind="chat", card_type=None, result=None).run
    page = memory.list_runs()
    assert [(each.id, each.kind) for each in page.runs] == [
        (chat.id, "chat"),
        (tick.id, "tick"),
        (first.id, "heartbeat"),
    ]
    assert [each.headline for each in page.runs] == ["Up.", "noop · quiet", "BTC · LONG"]
    one = memory.list_runs(limit=2)
    assert [each.id for each in memory.list_runs(limit=2, cursor=one.next_cursor).runs] == [first.id]
    assert [each.id for each in memory.list_runs(kind="tick").runs] == [tick.id]
    assert [each.id for each in memory.list_runs(as_of=T0).runs] == [first.id]
    assert memory.get_run(run=tick.id).tick == tick


def test_no_runs_say_what_would_make_one(memory: Memory) -> None:
    deployed(memory)
    assert "record_run" in memory.list_runs(**DEPLOYED).message
    with pytest.raises(NotFound, match="list_runs"):
        memory.get_run(run="nothing")


def test_transcripts_are_found_by_search_and_chats_too(memory: Memory, clock: FakeClock, tmp_path: Path) -> None:
    deployed(memory)
    recorded(memory, kind="chat", prompt="What of the miners?", output="Miners capitulate near lows.", result=None)
    memory.library = Library(folder=str(tmp_path))
    memory.reindex()
    (cited,) = memory.search_memory(query="miners capitulate", source=["run"]).citations
    assert (cited.source, cited.path) == ("run", "runs/VolBreakout@main/2026-06-04.md")
    clock.advance(minutes=1)
    run = recorded(memory).run
    note = memory.append_note(text="As planned.", agent="a", run=run.id[:8])
    assert run.id in (tmp_path / note.path).read_text()


def test_a_card_type_is_data_and_changes_until_it_is_used(memory: Memory, clock: FakeClock) -> None:
    deployed(memory)
    fields = [
        CardField(name="view", type="text", role="direction"),
        CardField(name="why", type="text", role="summary"),
    ]
    saved = memory.save_card_type(name="fx view", fields=fields, re_examinable="always", actions=["KEEP"])
    assert memory.save_card_type(name="fx view", fields=fields, re_examinable="always", actions=["KEEP"]).replayed
    clock.advance(minutes=1)
    assert not memory.save_card_type(name="fx view", fields=fields).replayed
    recorded(memory, card_type="fx view", result={"view": "WAIT", "why": "no edge"})
    assert memory.list_runs().runs[0].headline == "WAIT · no edge"
    with pytest.raises(Conflict, match="cannot change"):
        memory.save_card_type(name="fx view", fields=fields[:1])
    assert saved.card_type.actions == ("KEEP",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": [{"name": "a", "type": "text"}] * 2}, "fields.1.name: the field 'a' is there twice"),
        ({"fields": [{"name": "a", "type": "text", "role": "entrance"}]}, "fields.0.role: 'entrance' is not known"),
        ({"fields": [{"name": "a", "type": "date"}]}, "fields.0.type: 'date' is not known"),
        ({"name": "trade_decision"}, "name: 'trade_decision' is a shipped card type"),
    ],
)
def test_a_card_type_that_cannot_be_is_refused_by_name(memory: Memory, change: dict[str, Any], message: str) -> None:
    call = {"name": "mine", "fields": [{"name": "a", "type": "text"}]} | change
    with pytest.raises((Invalid, Conflict), match=message):
        memory.save_card_type(**call)
