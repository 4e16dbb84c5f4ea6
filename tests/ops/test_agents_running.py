"""Agents run one at a time, end in a clear state whatever their program does, and face their decisions."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest

from backsight import notes_of
from backsight.core.agents.card import CardField
from backsight.core.errors import Conflict, Invalid, NotFound, Refused, Unavailable
from backsight.core.strategies import MemoryOverrides
from backsight.memory import Memory, open_memory
from backsight.settings import Settings
from backsight.testing import FakeClock
from backsight.testing.claude_stand_in import stand_in
from support import deployed

AGENT: dict[str, Any] = {"deployment": "VolBreakout@main"}
CARD: dict[str, Any] = {"symbol": "BTC", "decision": "LONG", "entry": 100.0, "target": 110.0, "stop": 95.0}
ADVICE = {"conviction_score": 40, "notes": "The range broke.", "suggested_action": "CLOSE"}


@pytest.fixture
def agent(url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Memory]:
    """A memory with a deployment whose agent the stand-in runs."""
    settings = Settings(url=url, owner="ana", claude_program=stand_in(tmp_path / "claude"))
    with open_memory(settings=settings, clock=clock) as memory:
        deployed(memory)
        memory.configure_deployment(**AGENT, runner="claude", default_prompt="Look at BTC.", timeout_seconds=20)
        yield memory


def ran(memory: Memory, prompt: str | None = None, **more: Any) -> Any:
    memory.clock.advance(seconds=1)  # type: ignore[attr-defined]
    return memory.run_agent(**AGENT, prompt=prompt, wait_seconds=30.0, **more).run


def chatted(memory: Memory, text: str) -> Any:
    memory.clock.advance(seconds=1)  # type: ignore[attr-defined]
    return memory.chat_with_agent(**AGENT, text=text, wait_seconds=30.0).run


def calls(tmp_path: Path) -> list[dict[str, Any]]:
    """What the stand-in was called with."""
    return [json.loads(line) for line in (tmp_path / "claude" / "calls.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("behaviour", "status", "error"),
    [
        ("empty", "failed", "answered nothing"),
        ("killed", "failed", "answered nothing (exit -9)"),
        ("garbage", "failed", "did not answer with JSON"),
        ("error", "failed", "credit balance is too low"),
        ("large", "succeeded", None),
        ("as usual", "succeeded", None),
    ],
)
def test_whatever_the_program_does_the_run_ends_in_a_clear_state(
    agent: Memory, behaviour: str, status: str, error: str | None
) -> None:
    run = ran(agent, f"behave: {behaviour}")
    assert run.status == status
    assert error is None or error in run.error
    assert run.ended_at is not None
    assert len(run.output or "") < 210_000
    assert agent.session_status(**AGENT).context == "off"


PRINTS = """\
#!{python}
import os, sys
sys.stdin.read()
sys.stdout.write({output!r})
sys.stdout.flush()
{then}
"""
RESULT: dict[str, Any] = {"type": "result", "is_error": False, "result": "done", "session_id": "s"}
BEGUN = json.dumps({"type": "assistant", "message": {"content": [{"type": "text", "text": "I begin"}]}})


@pytest.mark.parametrize(
    ("output", "then", "error"),
    [
        (BEGUN, "os.kill(os.getpid(), 9)", "the agent ended before its result (exit -9)"),
        ("x" * 11_000_000, "import time; time.sleep(60)", "wrote more than 10,000,000 bytes"),
        (json.dumps({**RESULT, "result": "half \ud800, \0"}), "", None),
        (json.dumps({**RESULT, "session_id": "s" * 5_000, "usage": {"input_tokens": -5}}), "", None),
        (json.dumps({**RESULT, "result": None, "is_error": True, "errors": ["no credit"]}), "", "no credit"),
    ],
)
def test_odd_output_ends_in_a_clear_state(
    agent: Memory, tmp_path: Path, output: str, then: str, error: str | None
) -> None:
    agent.share_session(**AGENT)
    (tmp_path / "claude" / "claude").write_text(PRINTS.format(python=sys.executable, output=output, then=then))
    run = ran(agent)
    assert (run.status, run.input_tokens) == ("succeeded" if error is None else "failed", None)
    assert error is None or error in run.error
    assert run.session_after in (None, "s")
    assert agent.get_run(run=run.id).run == run


def test_a_result_that_cannot_be_stored_is_flagged_and_the_run_succeeds(agent: Memory) -> None:
    agent.configure_deployment(**AGENT, card_type="trade_decision")
    run = ran(agent, 'reply: {"symbol": "BTC\\ud800", "decision": "WAIT"}')
    assert (run.status, run.fits, run.result) == ("succeeded", False, None)
    assert "half a surrogate pair" in str(run.misfit)
    assert agent.get_run(run=run.id).message == f"Succeeded. The result does not fit trade_decision: {run.misfit}."


def test_a_secret_in_a_result_is_not_stored(agent: Memory, tmp_path: Path) -> None:
    agent.configure_deployment(**AGENT, card_type="trade_decision")
    card = json.dumps({"symbol": "BTC", "decision": "WAIT", "summary": f"api_key={'Q7x' * 14}"})
    output = json.dumps({**RESULT, "result": card})
    (tmp_path / "claude" / "claude").write_text(PRINTS.format(python=sys.executable, output=output, then=""))
    run = ran(agent)
    assert run.status == "succeeded"
    assert "Q7xQ7x" not in f"{run.output}{run.result}"


def test_a_run_that_cannot_be_started_leaves_the_agent_free(agent: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> NoReturn:
        raise RuntimeError("no tools")

    with monkeypatch.context() as patch:
        patch.setattr(agent, "agent_tools", broken)
        with pytest.raises(RuntimeError, match="no tools"):
            ran(agent)
    assert [(each.status, each.headline) for each in agent.list_runs().runs] == [
        ("failed", "the run could not be started")
    ]
    assert ran(agent).status == "succeeded"


@pytest.mark.parametrize(("text", "message"), [("", "text: is empty"), ("  ", "text: is blank")])
def test_a_blank_message_runs_no_agent(agent: Memory, text: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        agent.chat_with_agent(**AGENT, text=text)
    assert agent.list_runs().runs == ()


def test_an_empty_prompt_is_the_default_prompt_and_the_answer_says_so(agent: Memory) -> None:
    answer = agent.run_agent(**AGENT, prompt="", wait_seconds=30.0)
    assert (answer.run.status, answer.run.prompt) == ("succeeded", "Look at BTC.")
    assert notes_of(answer) == ("prompt: '' read as left out",)


def test_a_program_that_is_too_slow_is_killed(agent: Memory) -> None:
    agent.configure_deployment(**AGENT, timeout_seconds=1)
    run = ran(agent, "behave: slow")
    assert (run.status, "did not answer within 1 s" in run.error) == ("failed", True)


@pytest.mark.parametrize("how", ["gone as text", "gone as JSON"])
def test_a_session_that_is_gone_starts_a_fresh_one_and_says_so(agent: Memory, tmp_path: Path, how: str) -> None:
    agent.share_session(**AGENT)
    first = ran(agent, "one")
    (tmp_path / "claude" / f"turns-{first.session_after}").unlink()
    run = ran(agent, f"behave: {how}")
    assert (run.status, run.session_before) == ("succeeded", first.session_after)
    assert "A fresh session was started" in run.note
    assert agent.session_status(**AGENT).session_id == run.session_after
    assert "turn 1" in run.output


def test_what_a_run_sees_with_memory_off_on_and_with_review(agent: Memory) -> None:
    """Seed 003's quick reference: off nothing, on the full transcript, review the last cards in a short section."""

    def seen() -> tuple[bool, bool, bool]:
        run = ran(agent, "now?")
        shown = run.output.split("turn", 1)[1]
        return "hello from chat" in shown, "Look at gold" in shown, "## Your last decisions" in run.prompt

    chatted(agent, "hello from chat")
    ran(agent, f"Look at gold. reply: {json.dumps(CARD)}")
    agent.record_run(**AGENT, prompt="p", output="o", card_type="trade_decision", result={**CARD, "decision": "WAIT"})
    assert seen() == (False, False, False)
    agent.configure_deployment(**AGENT, review_decisions=True)
    assert seen() == (False, False, True)
    agent.configure_deployment(**AGENT, review_decisions=False)
    agent.share_session(**AGENT)
    chatted(agent, "hello from chat")
    ran(agent, "Look at gold.")
    assert seen() == (True, True, False)
    agent.configure_deployment(**AGENT, review_decisions=True)
    assert seen() == (True, True, True)
    agent.unshare_session(**AGENT)
    assert seen() == (False, False, True)
    assert "hello from chat" not in chatted(agent, "and now?").output


def test_chat_and_heartbeat_share_a_session_until_it_is_reset(agent: Memory, clock: FakeClock) -> None:
    assert agent.session_status(**AGENT).context == "off"
    assert agent.share_session(**AGENT).context == "fresh"
    chatted(agent, "one")
    second = ran(agent, heartbeat=True)
    assert second.kind == "heartbeat"
    assert second.output == "turn 2: one / Look at BTC."
    clock.advance(hours=2, minutes=15)
    status = agent.session_status(**AGENT)
    assert (status.context, status.runs_since_reset) == ("carrying context", 2)
    assert "2h 15m ago" in status.message
    assert agent.reset_session(**AGENT).context == "fresh"
    assert chatted(agent, "three").output == "turn 1: three"
    assert [run.kind for run in agent.list_runs(kind="chat").runs] == ["chat", "chat"]
    agent.share_session(**AGENT)
    assert agent.session_status(**AGENT).context == "fresh"


def test_a_failed_run_leaves_the_session_as_it_was(agent: Memory) -> None:
    agent.share_session(**AGENT)
    first = ran(agent, "one")
    ran(agent, "behave: killed")
    assert agent.session_status(**AGENT).session_id == first.session_after


def test_a_long_session_warns(agent: Memory, clock: FakeClock) -> None:
    agent.share_session(**AGENT)
    for number in range(21):
        clock.advance(minutes=1)
        agent.record_run(**AGENT, prompt="p", output=f"{number}", session_after=f"s{number}")
    status = agent.session_status(**AGENT)
    assert (status.runs_since_reset, status.is_long) == (21, True)
    assert "reset_session" in status.message


def test_a_reset_during_a_run_wins(agent: Memory, clock: FakeClock) -> None:
    agent.share_session(**AGENT)
    clock.advance(seconds=1)
    started = agent.run_agent(**AGENT, prompt="behave: pause").run
    clock.advance(seconds=1)
    agent.reset_session(**AGENT)
    agent.in_progress.wait(started.id, 30)
    run = agent.get_run(run=started.id).run
    assert run is not None
    assert (run.status, agent.session_status(**AGENT).context) == ("succeeded", "fresh")
    assert "not carried on" in str(run.note)


def test_one_run_at_a_time_the_others_wait_or_conflict(agent: Memory, clock: FakeClock) -> None:
    agent.share_session(**AGENT)
    clock.advance(seconds=1)

    def chat(number: int) -> Any:
        return agent.chat_with_agent(**AGENT, text=f"behave: pause {number}", patience_seconds=60.0, wait_seconds=30.0)

    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(chat, 1), pool.submit(chat, 2)]
        jobs.append(
            pool.submit(lambda: agent.run_agent(**AGENT, heartbeat=True, patience_seconds=60.0, wait_seconds=30.0))
        )
        runs = [job.result().run for job in jobs]
    assert {run.status for run in runs} == {"succeeded"}
    assert agent.session_status(**AGENT).runs_since_reset == 3
    last = max(runs, key=lambda run: int(run.session_after[1:]))
    assert agent.session_status(**AGENT).session_id == last.session_after
    assert last.output.startswith("turn 3")
    clock.advance(seconds=1)
    busy = agent.run_agent(**AGENT, prompt="behave: pause").run
    with pytest.raises(Conflict, match=r"is running \(manual"):
        agent.chat_with_agent(**AGENT, text="hello", patience_seconds=0.0)
    agent.in_progress.wait(busy.id, 30)


def test_closing_the_memory_cancels_a_run(url: str, clock: FakeClock, tmp_path: Path) -> None:
    settings = Settings(url=url, owner="ana", claude_program=stand_in(tmp_path / "claude"))
    with open_memory(settings=settings, clock=clock) as memory:
        deployed(memory)
        memory.configure_deployment(**AGENT, runner="claude", default_prompt="p")
        run = memory.run_agent(**AGENT, prompt="behave: slow").run
    with open_memory(url, owner="ana", clock=clock) as memory:
        ended = memory.get_run(run=run.id).run
        assert ended is not None
        assert (ended.status, ended.error) == ("cancelled", "the run was cancelled")


CRASHING = """
import os, sys
from backsight.memory import open_memory
from backsight.settings import Settings
from backsight.services import agent_runs
from backsight.store.transaction import Transaction
url, program, point = sys.argv[1:]
memory = open_memory(settings=Settings(url=url, owner="ana", claude_program=program))
die = lambda *_args, **_more: os._exit(9)
if point == "asking":
    agent_runs._carry_out = die
elif point == "answered":
    agent_runs._finish = die
elif point == "recording":
    agent_runs.write_back = die
elif point == "revising":
    Transaction.revise = die
memory.run_agent(deployment="VolBreakout@main", prompt="two", wait_seconds=30.0)
"""


@pytest.mark.parametrize("point", ["asking", "answered", "recording", "revising"])
def test_a_crash_anywhere_in_a_run_leaves_a_clear_state(url: str, tmp_path: Path, point: str) -> None:
    program = stand_in(tmp_path / "claude")
    with open_memory(settings=Settings(url=url, owner="ana", claude_program=program)) as memory:
        deployed(memory)
        memory.configure_deployment(**AGENT, runner="claude", default_prompt="p", timeout_seconds=20)
        memory.share_session(**AGENT)
        first = memory.run_agent(**AGENT, prompt="one", wait_seconds=30.0).run
    command = [sys.executable, "-c", CRASHING, url, program, point]
    assert subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 9
    with open_memory(settings=Settings(url=url, owner="ana", claude_program=program)) as memory:
        crashed = memory.list_runs().runs[0]
        assert crashed.status == "running"
        with pytest.raises(Conflict, match="is running"):
            memory.run_agent(**AGENT, patience_seconds=0.0)
        assert memory.session_status(**AGENT).session_id == first.session_after
        whole = memory.get_run(run=crashed.id).run
        assert whole is not None
        assert whole.expires_at is not None
        after = whole.expires_at + timedelta(seconds=1)
        assert memory.list_runs(as_of=after).runs[0].status == "failed"
    with open_memory(settings=Settings(url=url, owner="ana", claude_program=program), clock=FakeClock(after)) as memory:
        third = memory.run_agent(**AGENT, prompt="three", wait_seconds=30.0).run
        assert (third.status, third.session_before) == ("succeeded", first.session_after)
        assert [each.status for each in memory.list_runs().runs] == ["succeeded", "failed", "succeeded"]
        assert memory.session_status(**AGENT).runs_since_reset == 2
        assert memory.verify_audit().passed


def test_an_answer_after_the_lease_is_dropped(agent: Memory, clock: FakeClock) -> None:
    started = agent.run_agent(**AGENT, prompt="behave: pause").run
    clock.advance(hours=1)
    agent.in_progress.wait(started.id, 30)
    run = agent.get_run(run=started.id).run
    assert run is not None
    assert (run.status, run.output) == ("failed", None)
    agent.resolve_decisions()
    with agent.reading() as connection:
        from backsight.store.agents import runs_left_running

        assert runs_left_running(connection, "ana") == []


def test_a_run_gives_its_card_and_one_that_does_not_is_flagged(agent: Memory) -> None:
    agent.configure_deployment(**AGENT, card_type="trade_decision")
    run = ran(agent, f"Look. reply: {json.dumps(CARD)}")
    assert '"decision":"LONG | SHORT | WAIT"' in run.prompt
    assert (run.fits, run.card) == (True, CARD)
    unfit = ran(agent, "Look. reply: I would rather not say")
    assert (unfit.status, unfit.fits) == ("succeeded", False)


def test_a_re_examination_annotates_its_parent_and_closes_nothing(
    agent: Memory, clock: FakeClock, tmp_path: Path
) -> None:
    result = {**CARD, "watch_for": ["a close above 108"], "summary": 'break "of" the range'}
    parent = agent.record_run(**AGENT, prompt="p", output="o", card_type="trade_decision", result=result).run
    clock.advance(days=2)
    prepared = agent.prepare_re_examination(run=parent.id[:8])
    for text in ("2d ago", "- entry:", "a close above 108", "HOLD | CLOSE | SCALE", "do not tell the specialists"):
        assert text in prepared.prompt
    assert "confidence" not in prepared.prompt
    answer = {**ADVICE, "watch_for": [{"item": "a close above 108", "verdict": "failed"}]}
    child = examined(agent, parent.id, answer, tmp_path)
    assert (child.status, child.parent_id, child.kind) == ("succeeded", parent.id, "re_examination")
    clock.advance(hours=1)
    examined(agent, parent.id, {**answer, "conviction_score": 20}, tmp_path)
    history = agent.conviction_history(run=parent.id).re_examinations
    assert [each.conviction_score for each in history] == [40, 20]
    assert agent.get_run(run=parent.id).run == parent
    decisions = agent.get_my_decisions(**AGENT)
    assert [each.run_id for each in decisions.decisions] == [parent.id]
    assert decisions.lines[0].endswith("not judged: no bars of BTC are stored · conviction 20 CLOSE")


def examined(memory: Memory, run: str, answer: Any, folder: Path) -> Any:
    """The child of a re-examination whose agent answers with this text."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    (folder / "claude" / "re-examination").write_text(text)
    return memory.re_examine(run=run, wait_seconds=30.0).run


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("no idea", "no JSON object"),
        ({**ADVICE, "conviction_score": 101}, "conviction_score"),
        ({**ADVICE, "conviction_score": "high"}, "conviction_score"),
        ({**ADVICE, "notes": ""}, "notes"),
        ({**ADVICE, "suggested_action": "SELL"}, "one of HOLD, CLOSE, SCALE"),
    ],
)
def test_a_malformed_answer_fails_the_child_only(agent: Memory, tmp_path: Path, answer: Any, reason: str) -> None:
    parent = agent.record_run(**AGENT, prompt="p", output="o", card_type="trade_decision", result=CARD).run
    child = examined(agent, parent.id, answer, tmp_path)
    assert (child.status, reason in child.error) == ("failed", True)
    assert agent.get_run(run=parent.id).run == parent
    assert agent.conviction_history(run=parent.id).re_examinations[0].conviction_score is None


def test_a_re_examination_is_refused_with_its_reason(agent: Memory, clock: FakeClock) -> None:
    plain = agent.record_run(**AGENT, prompt="p", output="o").run
    with pytest.raises(Refused, match="no card"):
        agent.re_examine(run=plain.id)
    agent.save_card_type(name="idea", fields=[CardField(name="x", type="text")])
    idea = agent.record_run(**AGENT, prompt="p", output="o", card_type="idea", result={"x": "y"}).run
    with pytest.raises(Refused, match="not re-examined"):
        agent.re_examine(run=idea.id)
    trade = agent.record_run(**AGENT, prompt="q", output="o", card_type="trade_decision", result=CARD).run
    clock.advance(seconds=1)
    busy = agent.run_agent(**AGENT, prompt="behave: pause").run
    with pytest.raises(Refused, match="is running"):
        agent.re_examine(run=trade.id)
    agent.in_progress.wait(busy.id, 30)
    clock.advance(hours=1)
    agent.settle_decision(run=trade.id, entry=100.0, exit=104.0)
    with pytest.raises(Refused, match="is resolved"):
        agent.prepare_re_examination(run=trade.id)
    with pytest.raises(NotFound, match="no run"):
        agent.re_examine(run="nothing")
    thesis = agent.record_run(**AGENT, prompt="r", card_type="research_thesis", result={"thesis": "up"}).run
    assert "one word in capitals" in agent.prepare_re_examination(run=thesis.id).prompt


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"schedule": "0 0 31 2 *"}, Invalid, "schedule: '0 0 31 2 \\*' never fires"),
        ({"schedule": "every day"}, Invalid, "schedule: 'every day' has 2 parts"),
        ({"runner": "claude"}, Unavailable, "runner: the program 'no-such-program' is not installed"),
        ({"runner": "model"}, Invalid, "model: missing"),
        ({"runner": "gpt"}, Invalid, "runner: 'gpt' is not known"),
        ({"card_type": "nothing"}, Invalid, "card_type: no card type"),
        ({"tools": ["erase_owner"]}, Invalid, "tools.0: 'erase_owner' is no tool of a trader"),
        ({"schedule": "@daily"}, Invalid, "schedule: .* has no runner"),
    ],
)
def test_settings_that_could_not_work_are_refused_by_name(
    url: str, clock: FakeClock, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    with open_memory(settings=Settings(url=url, owner="ana", claude_program="no-such-program"), clock=clock) as memory:
        deployed(memory)
        with pytest.raises(error, match=message):
            memory.configure_deployment(**AGENT, **change)
        with pytest.raises(Refused, match="has no runner"):
            memory.run_agent(**AGENT)


def test_settings_have_a_history(agent: Memory, clock: FakeClock) -> None:
    from backsight.services.agent_settings import settings_of
    from backsight.services.deployments import deployment_named

    before = clock.now()
    clock.advance(hours=1)
    agent.configure_deployment(**AGENT, schedule="@daily", review_decisions=True)
    with agent.reading() as connection:
        target = deployment_named(connection, "ana", AGENT["deployment"])
        assert settings_of(agent.view(connection, before), target).schedule is None
        assert settings_of(agent.view(connection), target).schedule == "@daily"
    assert "Nothing was given" in agent.configure_deployment(**AGENT).message
    again = agent.configure_deployment(**AGENT, schedule="@daily", share_session=False)
    assert again.message == "Already so: nothing was changed."
    assert agent.configure_deployment(**AGENT, schedule="off").settings.schedule is None


def test_a_session_is_not_shared_where_memory_is_withheld(agent: Memory) -> None:
    agent.deploy(strategy_name="VolBreakout", account="main", name="held out", memory=MemoryOverrides(holdout=0.5))
    with pytest.raises(Refused, match="withholds memory on 50% of days"):
        agent.share_session(deployment="held out")
    with pytest.raises(Conflict, match="not shared"):
        agent.reset_session(**AGENT)
