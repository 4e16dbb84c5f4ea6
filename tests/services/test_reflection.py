"""Reflections: their evidence, how they change the lessons in force, and how they fail."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from backsight.core.errors import Conflict, Invalid, NotFound, Unavailable
from backsight.core.reflection.citation_check import ProposedBullet
from backsight.core.reflection.notes import ReflectionOutcome
from backsight.core.reflection.reflector_request import ReflectorAnswer, ReflectorRequest, ReflectorUnavailable
from backsight.core.strategies import Deployment, MemoryOverrides
from backsight.memory import Memory, open_memory
from backsight.services.reflection import ReflectionResult, reflect_if_due
from backsight.settings import Settings
from backsight.store.notes import NOTES, REFLECTIONS
from backsight.testing import T0, FakeClock, FakeReflector, a_trade_call
from backsight.testing.models import ModelServer, bullets_reply
from support import LESSONS, dump, lost_in_ranges, raw

DEPLOYMENT = "Fade@main"
RANGES = "regime_fit/regime=ranging"
BULLET_TEXT = "ranging markets: -1.11 ± 0.59R over 12 trades on 12 days, against +0.94R elsewhere; 0% won against 92%"
MODEL: dict[str, Any] = {"reflector": "model", "model": "openai:gpt-5"}


def fading(memory: Memory, *, trades: int = 24, avoid: tuple[str, ...] = (), **settings: Any) -> Deployment:
    """Deploy Fade on a live account with trades that lose in ranging markets."""
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="Fade", thesis="What fell comes back.", rules=["out at 2R"], avoid=list(avoid))
    deployment = memory.deploy(strategy_name="Fade", account="main", memory=MemoryOverrides(**settings)).deployment
    lost_in_ranges(memory, days=trades, until=memory.now, deployment=DEPLOYMENT)
    return deployment


def worsened(memory: Memory, clock: FakeClock, *, r: float = -6.0) -> None:
    """Eight more days on which ranging markets cost much more than before, so that the effect moves."""
    for _ in range(8):
        clock.advance(days=1)
        closed = {"closed_at": clock.now() - timedelta(hours=1), "opened_at": clock.now() - timedelta(minutes=90)}
        lost = a_trade_call(strategy_name="Fade", symbol="BTC", context_regime="ranging", pnl=100.0 * r, pnl_r=r)
        memory.remember_trade(**lost | closed, deployment=DEPLOYMENT)


def rows(memory: Memory, table: str) -> list[Any]:
    return dump(memory)[table]


def reflected(memory: Memory, clock: FakeClock, **options: Any) -> ReflectionResult:
    """Reflect one hour later."""
    clock.advance(hours=1)
    return memory.reflect(deployment=DEPLOYMENT, **options)


def with_model(memory: Memory, *bullets: ProposedBullet, **options: Any) -> FakeReflector:
    """Use a model that writes these bullets for every request."""
    reflector = FakeReflector(bullets=bullets, **options)
    memory.reflectors = lambda _: reflector
    return reflector


def a_bullet(
    words: str = "In ranging markets trades lost 1.11R.", cites: tuple[str, ...] = (RANGES,)
) -> ProposedBullet:
    return ProposedBullet(slot="regime_fit", text=words, cites=cites)


# Written lessons


def test_a_pattern_becomes_a_lesson_with_its_numbers_and_its_trades(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    done = reflected(memory, clock)
    assert (done.came, done.reason, done.replayed) == ("written", "1 lesson from 24 closed trades", False)
    (bullet,) = done.bullets
    assert (bullet.slot, bullet.text, bullet.evidence, len(bullet.trade_ids)) == (
        "regime_fit",
        BULLET_TEXT,
        (RANGES,),
        12,
    )
    assert done.note is not None
    assert (done.note.author, done.note.trades_considered, done.note.content_hash) == (
        "statistics",
        24,
        "2d8e14ce44382603",
    )
    assert (done.note.window_start, done.note.window_end) == (T0 - timedelta(days=23), T0)
    assert memory.active_lessons(deployment=DEPLOYMENT).note == done.note
    assert memory.verify_audit().intact


def test_too_few_trades_leave_an_attempt_and_no_note(memory: Memory, clock: FakeClock) -> None:
    fading(memory, trades=9)
    done = reflected(memory, clock)
    assert (done.came, done.note) == ("unchanged", None)
    assert done.reason == "no lesson yet: 9 closed trades; the first test is at 20"
    assert (rows(memory, "reflection_notes"), len(rows(memory, "reflections"))) == ([], 1)


def test_a_strategy_without_trades_can_be_reflected_on(memory: Memory, clock: FakeClock) -> None:
    fading(memory, trades=0)
    assert reflected(memory, clock).reason == "no lesson yet: 0 closed trades; the first test is at 20"


def test_the_same_trades_again_change_nothing(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    first, again = reflected(memory, clock), reflected(memory, clock)
    assert again.came == "unchanged"
    assert again.reason.startswith("the lessons in force rest on the same patterns; no effect moved")
    assert again.note == first.note
    assert (len(rows(memory, "reflection_notes")), len(rows(memory, "reflections"))) == (1, 2)


def test_a_few_more_trades_of_the_same_kind_make_no_new_revision(memory: Memory, clock: FakeClock) -> None:
    """The numbers of the note stay as adopted, although the evidence has others by now."""
    fading(memory)
    first = reflected(memory, clock)
    clock.advance(days=2)
    lost_in_ranges(memory, days=2, until=clock.now(), deployment=DEPLOYMENT)
    second = reflected(memory, clock)
    assert (second.came, second.note) == ("unchanged", first.note)
    assert second.evidence.groups[0].n == 13
    assert "over 12 trades" in second.bullets[0].text


def test_a_model_is_not_called_while_the_lessons_still_hold(memory: Memory, clock: FakeClock) -> None:
    fading(memory, **MODEL)
    reflector = with_model(memory, a_bullet())
    assert [reflected(memory, clock).came for _ in range(3)] == ["written", "unchanged", "unchanged"]
    assert len(reflector.requests) == 1


def test_another_reflector_writes_its_own_note(memory: Memory, clock: FakeClock) -> None:
    """Lessons written by rule are promoted; a deployment with a model starts with them, and lets the model write."""
    fading(memory)
    reflected(memory, clock)
    memory.promote_lessons(deployment=DEPLOYMENT)
    settings = MemoryOverrides(**MODEL)
    copy = memory.deploy(strategy_name="Fade", account="main", name="second", memory=settings).deployment
    with_model(memory, a_bullet())
    clock.advance(hours=1)
    done = memory.reflect(deployment=copy.id)
    assert (done.came, done.note and done.note.author) == ("written", "model")


def test_new_lessons_supersede_the_former_at_the_same_instant(memory: Memory, clock: FakeClock, url: str) -> None:
    fading(memory)
    first = reflected(memory, clock)
    worsened(memory, clock)
    second = reflected(memory, clock)
    assert first.note is not None
    assert second.note is not None
    assert (second.came, second.reason) == ("written", "1 lesson from 32 closed trades: ranging markets moved")
    listed = memory.list_lessons(deployment=DEPLOYMENT).notes
    assert [(each.id, each.status, each.known_at) for each in listed] == [
        (second.note.id, "active", second.at),
        (first.note.id, "superseded", second.at),
    ]
    before = memory.active_lessons(deployment=DEPLOYMENT, as_of=second.at - timedelta(microseconds=1))
    assert before.note == first.note
    with raw(url) as connection:
        counted = text("select count(*) from reflection_notes where status = 'active'")
        assert connection.execute(counted).scalar_one() == 1


def test_a_lesson_is_withdrawn_when_its_pattern_is_gone(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    reflected(memory, clock)
    for _ in range(8):
        clock.advance(days=1)
        closed = {"closed_at": clock.now() - timedelta(hours=1), "opened_at": clock.now() - timedelta(minutes=90)}
        won = a_trade_call(strategy_name="Fade", symbol="BTC", context_regime="ranging", pnl=400.0, pnl_r=4.0)
        memory.remember_trade(**won | closed, deployment=DEPLOYMENT)
    done = reflected(memory, clock)
    assert (done.came, done.bullets, done.evidence.lost) == ("written", (), (RANGES,))
    assert done.reason.startswith("no lesson holds: ")
    assert done.note is not None
    assert done.note.lessons_text.count("(no clear pattern yet)") == 5
    assert reflected(memory, clock).came == "unchanged"


def test_lessons_written_by_the_owner_stay_until_trades_contradict_them(memory: Memory, clock: FakeClock) -> None:
    fading(memory, trades=9)
    memory.promote_lessons(deployment=DEPLOYMENT, lessons=LESSONS)
    memory.deploy(strategy_name="Fade", account="main", name="second")
    clock.advance(hours=1)
    done = memory.reflect(deployment="second")
    assert (done.came, done.bullets[0].text) == ("unchanged", "wait for the retest")
    assert done.reason.startswith("the owner's lessons stay: 9 closed trades")


def test_a_lesson_that_repeats_an_avoid_rule_is_rejected(memory: Memory, clock: FakeClock) -> None:
    fading(memory, avoid=("Ranging  markets",))
    done = reflected(memory, clock)
    assert (done.came, done.note) == ("rejected", None)
    assert done.reason == "lessons: repeats the avoid rule 'Ranging  markets'; say what trades showed"
    (attempt,) = memory.list_lessons(deployment=DEPLOYMENT).attempts
    assert (attempt.came, attempt.reason, attempt.note_id) == ("rejected", done.reason, None)


# Evidence


def test_trades_of_all_deployments_and_versions_count_and_other_modes_do_not(memory: Memory, clock: FakeClock) -> None:
    fading(memory, trades=0)
    memory.save_strategy(name="Fade", thesis="What fell comes back, slowly.")
    memory.deploy(strategy_name="Fade", account="main", name="second")
    memory.open_account(venue="binance", name="paper", mode="paper")
    memory.deploy(strategy_name="Fade", account="paper", name="practice")
    for number, name in enumerate((DEPLOYMENT, "second", "practice")):
        until = clock.now() - timedelta(minutes=number)
        lost_in_ranges(memory, days=10 + number, until=until, deployment=name)
    live, paper = reflected(memory, clock), memory.reflect(deployment="practice")
    assert (live.evidence.closed, live.evidence.considered, paper.evidence.closed) == (21, 21, 12)


def test_a_pattern_is_shared_by_all_deployments_of_the_strategy(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    memory.deploy(strategy_name="Fade", account="main", name="second")
    reflected(memory, clock)
    clock.advance(hours=1)
    done = memory.reflect(deployment="second")
    assert (done.came, done.evidence.level) == ("written", 0.0)
    assert [each.found_at for each in done.evidence.groups if each.key == RANGES] == [T0 + timedelta(hours=1)]


def test_trades_that_were_not_yet_known_teach_nothing(memory: Memory, clock: FakeClock) -> None:
    deployment = fading(memory)
    clock.advance(days=10)
    lost_in_ranges(memory, days=10, until=clock.now(), deployment=deployment.id)
    clock.at = T0 + timedelta(hours=1)
    done = memory.reflect(deployment=DEPLOYMENT)
    with open_memory("sqlite://", owner="ana", clock=FakeClock(T0)) as other:
        fading(other)
        other.clock = FakeClock(T0 + timedelta(hours=1))
        without = other.reflect(deployment=DEPLOYMENT)
    assert replace(done, proposals=()) == replace(without, proposals=())
    assert memory.active_lessons(deployment=DEPLOYMENT, as_of=T0 + timedelta(minutes=59)).note is None
    assert memory.active_lessons(deployment=DEPLOYMENT, as_of=done.at).note == done.note


def test_lessons_of_a_later_instant_are_not_replaced_from_the_past(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    reflected(memory, clock)
    clock.at = T0 + timedelta(minutes=1)
    with pytest.raises(Conflict, match=r"deployment: lessons of 2026-06-04T11:00:00\.000000Z are in force; reflect at"):
        memory.reflect(deployment=DEPLOYMENT)


def test_a_dry_run_shows_the_lessons_and_writes_nothing(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    before = dump(memory)
    dry = reflected(memory, clock, dry_run=True)
    assert (dry.dry_run, dry.came, dry.reflection_id, dry.note) == (True, "written", None, None)
    assert [bullet.text for bullet in dry.bullets] == [BULLET_TEXT]
    assert dump(memory) == before
    group, other, *_ = dry.evidence.groups
    assert (group.key, group.n, group.days, group.missing) == (RANGES, 12, 12, None)
    assert other.missing is not None
    assert other.missing.startswith("not significant (p = 1, level 0.0006) after correction for 8 comparisons and for")
    assert dry.evidence.next_test_at == 35


def test_a_dry_run_of_then_is_not_changed_by_later_trades_and_lessons(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    dry = reflected(memory, clock, dry_run=True)
    then: dict[str, Any] = {"as_of": clock.now(), "seen_at": clock.now(), "dry_run": True}
    reflected(memory, clock)
    worsened(memory, clock)
    answer = memory.reflect(deployment=dry.deployment, **then)
    assert (answer.at, answer.note, answer.dry_run) == (then["as_of"], None, True)
    assert answer == dry
    for field in ("as_of", "seen_at"):
        with pytest.raises(Invalid, match=f"{field}: only a dry run looks at the past"):
            memory.reflect(deployment=dry.deployment, **{field: then[field]})


def test_a_dry_run_names_the_missing_evidence(memory: Memory, clock: FakeClock) -> None:
    fading(memory, trades=12)
    dry = reflected(memory, clock, dry_run=True)
    assert (dry.evidence.groups, dry.bullets) == ((), ())
    assert dry.evidence.missing == "12 closed trades; the first test is at 20"


# Replays, concurrent reflections, interruptions


def test_an_attempt_at_the_same_instant_is_a_replay(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    first = reflected(memory, clock)
    before = dump(memory)
    again = memory.reflect(deployment=DEPLOYMENT)
    assert again.replayed
    assert (again.reflection_id, again.came, again.reason, again.note, again.bullets) == (
        first.reflection_id,
        first.came,
        first.reason,
        first.note,
        first.bullets,
    )
    assert dump(memory) == before


class Slow(FakeReflector):
    """A model that runs `meanwhile` before it answers."""

    meanwhile: Callable[[], object]

    def reflect(self, request: ReflectorRequest) -> ReflectorAnswer:
        self.meanwhile()
        return super().reflect(request)


def test_a_reflection_that_was_overtaken_changes_nothing(memory: Memory, clock: FakeClock) -> None:
    fading(memory, **MODEL)
    quick, slow = FakeReflector(bullets=(a_bullet("Ranging markets cost 1.11R."),)), Slow(bullets=(a_bullet(),))
    requests: list[str] = []

    def reflectors(model: str) -> FakeReflector:
        requests.append(model)
        return slow if len(requests) == 1 else quick

    memory.reflectors = reflectors
    done: list[ReflectionResult] = []

    def meanwhile() -> None:
        done.append(reflected(memory, clock))

    slow.meanwhile = meanwhile
    overtaken = reflected(memory, clock)
    assert (done[0].came, overtaken.came, overtaken.reflection_id) == ("written", "unchanged", None)
    assert overtaken.reason == "another reflection of this deployment was recorded in the meantime; nothing was changed"
    assert overtaken.note == done[0].note
    assert (len(rows(memory, "reflection_notes")), len(rows(memory, "reflections"))) == (1, 1)


def test_two_processes_at_once_leave_one_active_note(memory: Memory, clock: FakeClock, url: str) -> None:
    fading(memory, **MODEL)
    clock.advance(hours=1)
    together = threading.Barrier(2, timeout=30)
    came: list[ReflectionOutcome] = []

    def run(number: int) -> None:
        reflector = Slow(bullets=(a_bullet(f"Ranging markets cost {'much: ' * number}1.11R."),))
        reflector.meanwhile = together.wait
        at = FakeClock(clock.now() + timedelta(seconds=number))
        with open_memory(url, owner="ana", clock=at, reflectors=lambda _: reflector) as own:
            came.append(own.reflect(deployment=DEPLOYMENT).came)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(came) == ["unchanged", "written"]
    assert len(rows(memory, "reflections")) == 1
    assert [row for row in rows(memory, "reflection_notes") if "active" in row] == rows(memory, "reflection_notes")
    assert memory.verify_audit().intact


def test_an_interruption_during_the_model_call_writes_nothing(memory: Memory, clock: FakeClock) -> None:
    fading(memory, **MODEL)
    before = dump(memory)

    def killed() -> None:
        raise KeyboardInterrupt

    slow = Slow(bullets=(a_bullet(),))
    slow.meanwhile = killed
    memory.reflectors = lambda _: slow
    with pytest.raises(KeyboardInterrupt):
        reflected(memory, clock)
    assert dump(memory) == before
    with_model(memory, a_bullet())
    assert memory.reflect(deployment=DEPLOYMENT).came == "written"


# Models


def test_a_model_words_the_evidence(memory: Memory, clock: FakeClock) -> None:
    fading(memory, avoid=("news",), **MODEL)
    reflector = with_model(memory, a_bullet())
    done = reflected(memory, clock)
    assert (done.came, [each.text for each in done.bullets]) == ("written", ["In ranging markets trades lost 1.11R."])
    assert done.note is not None
    assert (done.note.author, done.note.model_used) == ("model", "fake")
    assert (done.input_tokens, done.note.input_tokens, done.note.output_tokens) == (100, 100, 20)
    assert len(done.bullets[0].trade_ids) == 12
    (request,) = reflector.requests
    assert (request.strategy, request.avoid, request.note) == ("What fell comes back.\nout at 2R", ("news",), None)
    assert [pattern.key for pattern in request.evidence.patterns] == [RANGES]


def test_a_model_gets_the_lessons_in_force(memory: Memory, clock: FakeClock) -> None:
    fading(memory, **MODEL)
    reflector = with_model(memory, a_bullet())
    first = reflected(memory, clock)
    worsened(memory, clock)
    reflected(memory, clock)
    note = reflector.requests[1].note
    assert note is not None
    assert note.bullets == first.bullets


def test_bullets_that_the_evidence_does_not_support_are_dropped_and_named(memory: Memory, clock: FakeClock) -> None:
    fading(memory, **MODEL)
    with_model(memory, a_bullet(), a_bullet("Win 99% with this."), a_bullet("More.", cites=("sizing/size=large",)))
    done = reflected(memory, clock)
    assert (done.came, len(done.bullets)) == ("written", 1)
    assert [each.reason for each in done.dropped] == [
        "its number 99 is none of the evidence's",
        "it cites 'sizing/size=large', which was not given",
    ]
    (attempt,) = memory.list_lessons(deployment=DEPLOYMENT).attempts
    assert attempt.dropped == done.dropped


@pytest.mark.parametrize(
    ("bullets", "reason"),
    [
        ((a_bullet("Win 99%."),), "none of its 1 bullets holds: its number 99 is none of the evidence's"),
        ((), "it wrote no bullet"),
        ((a_bullet("Do not TRADE the news."),), "lessons: repeats the avoid rule 'trade the news'; say what trades"),
        (tuple(a_bullet("x" * 500) for _ in range(9)), "lessons: 46"),
    ],
)
def test_an_invalid_note_is_rejected_and_the_old_note_stays(
    memory: Memory, clock: FakeClock, bullets: tuple[ProposedBullet, ...], reason: str
) -> None:
    fading(memory, avoid=("trade the news",), **MODEL)
    with_model(memory, a_bullet())
    first = reflected(memory, clock)
    worsened(memory, clock)
    with_model(memory, *bullets)
    done = reflected(memory, clock)
    assert (done.came, done.note) == ("rejected", first.note)
    assert done.reason.startswith(reason)
    assert done.input_tokens == 100
    assert memory.active_lessons(deployment=DEPLOYMENT).note == first.note


@pytest.mark.parametrize(
    "error",
    [
        Unavailable("openai:gpt-5 is away; try later"),
        ReflectorUnavailable("slow", input_tokens=700, output_tokens=9, cost_usd=0.1),
    ],
)
def test_an_unavailable_model_is_a_failed_outcome_and_the_old_note_stays(
    memory: Memory, clock: FakeClock, error: Unavailable
) -> None:
    fading(memory, **MODEL)
    with_model(memory, a_bullet())
    first = reflected(memory, clock)
    worsened(memory, clock)
    with_model(memory, error=error)
    done = reflected(memory, clock)
    assert (done.came, done.reason, done.note) == ("failed", error.message, first.note)
    usage = (700, 9, 0.1) if isinstance(error, ReflectorUnavailable) else (None, None, None)
    assert (done.input_tokens, done.output_tokens, done.cost_usd) == usage
    (last, _) = memory.list_lessons(deployment=DEPLOYMENT).attempts
    assert (last.came, last.input_tokens, last.note_id) == ("failed", usage[0], first.note and first.note.id)


def test_an_error_in_a_plug_in_is_a_failed_outcome(memory: Memory, clock: FakeClock) -> None:
    deployment = fading(memory, cadence="daily", **MODEL)

    def broken(_: str) -> FakeReflector:
        raise ZeroDivisionError("a mistake of its own")

    memory.reflectors = broken
    done = reflect_if_due(memory, deployment, at=clock.now(), closed_in_tick=1)
    assert done is not None
    assert (done.came, done.reason) == ("failed", "openai:gpt-5 failed: ZeroDivisionError('a mistake of its own')")


def test_the_model_at_the_address_in_the_settings_is_called() -> None:
    with ModelServer(bullets_reply(a_bullet())) as server:
        settings = Settings(url="sqlite://", owner="ana", model_url=server.base_url, model_key="sesame-sesame")
        with open_memory(settings=settings, clock=FakeClock(T0)) as memory:
            fading(memory, **MODEL)
            done = memory.reflect(deployment=DEPLOYMENT)
    assert (done.came, done.model_used, done.input_tokens) == ("written", "openai:gpt-5", 700)
    assert [request["model"] for request in server.requests] == ["gpt-5"]
    assert "sesame-sesame" in str(server.headers[0])


def test_a_pattern_that_was_significant_when_a_model_failed_is_not_tested_again(
    memory: Memory, clock: FakeClock
) -> None:
    fading(memory, **MODEL)
    with_model(memory, error=Unavailable("away"))
    assert reflected(memory, clock).came == "failed"
    with_model(memory, a_bullet())
    done = reflected(memory, clock)
    assert (done.came, done.evidence.level) == ("written", 0.0)


def test_without_a_pattern_no_model_is_called(memory: Memory, clock: FakeClock) -> None:
    fading(memory, trades=9, **MODEL)
    reflector = with_model(memory, a_bullet())
    assert (reflected(memory, clock).came, reflector.requests) == ("unchanged", [])


def test_a_dry_run_calls_no_model(memory: Memory, clock: FakeClock) -> None:
    fading(memory, **MODEL)
    reflector = with_model(memory, a_bullet())
    dry = reflected(memory, clock, dry_run=True)
    assert (reflector.requests, [bullet.text for bullet in dry.bullets]) == ([], [BULLET_TEXT])
    assert dry.reason == "openai:gpt-5 would write lessons from this evidence; a dry run does not call it"


def test_lessons_that_return_are_the_same_note(memory: Memory, clock: FakeClock) -> None:
    fading(memory, **MODEL)
    notes, instants = [], []
    for words, r in (
        ("Ranging markets lose.", -6.0),
        ("Ranging markets cost.", -30.0),
        ("Ranging markets lose.", -1.0),
    ):
        with_model(memory, a_bullet(words))
        notes.append(reflected(memory, clock).note)
        instants.append(memory.now)
        worsened(memory, clock, r=r)
    assert notes[0] is not None
    assert notes[2] is not None
    assert (notes[0].id, notes[0].generated_at, notes[2].status) == (notes[2].id, notes[2].generated_at, "active")
    hashes = [memory.active_lessons(deployment=DEPLOYMENT, as_of=instant).hash for instant in instants]
    assert hashes[0] == hashes[2] != hashes[1]
    assert len(memory.list_lessons(deployment=DEPLOYMENT).notes) == 2
    assert memory.verify_audit().intact


def test_without_language_models_the_attempt_fails_and_names_the_remedy(memory: Memory, clock: FakeClock) -> None:
    fading(memory, **MODEL)
    clock.advance(hours=1)
    plain = Memory(database=memory.database, clock=clock, owner="ana", actor="test")
    done = plain.reflect(deployment=DEPLOYMENT)
    assert (done.came, done.reason) == (
        "failed",
        "no language model is configured, so 'openai:gpt-5' cannot be asked; open the memory with reflectors",
    )


# Cadence


def due(memory: Memory, deployment: Deployment, at: datetime, *, closed: int = 1) -> ReflectionOutcome | None:
    done = reflect_if_due(memory, deployment, at=at, closed_in_tick=closed)
    return None if done is None else done.came


def test_by_default_no_reflection_is_due(memory: Memory, clock: FakeClock) -> None:
    assert due(memory, fading(memory), clock.now()) is None


def test_a_reflection_is_due_when_the_nth_trade_closes(memory: Memory, clock: FakeClock) -> None:
    deployment = fading(memory, trades=9, cadence="per_n_trades", every_n_trades=10)
    assert due(memory, deployment, clock.now()) is None
    lost_in_ranges(memory, days=1, until=clock.now() - timedelta(minutes=5), deployment=DEPLOYMENT)
    assert due(memory, deployment, clock.now(), closed=0) is None
    assert due(memory, deployment, clock.now()) == "unchanged"
    clock.advance(hours=1)
    assert due(memory, deployment, clock.now()) is None
    clock.advance(days=16)
    lost_in_ranges(memory, days=16, until=clock.now(), deployment=DEPLOYMENT)
    assert due(memory, deployment, clock.now()) == "written"


def test_a_daily_reflection_is_due_once_a_day_and_only_with_a_trade(memory: Memory, clock: FakeClock) -> None:
    deployment = fading(memory, cadence="daily")
    assert due(memory, deployment, clock.now(), closed=0) == "written"
    clock.advance(hours=2)
    lost_in_ranges(memory, days=1, until=clock.now(), deployment=DEPLOYMENT)
    assert due(memory, deployment, clock.now()) is None
    clock.advance(hours=13)
    assert due(memory, deployment, clock.now(), closed=0) is not None
    clock.advance(days=1)
    assert [due(memory, deployment, clock.now(), closed=0) for _ in range(2)].count(None) >= 1


def test_an_unavailable_provider_is_not_called_at_every_tick(memory: Memory, clock: FakeClock) -> None:
    deployment = fading(memory, cadence="per_n_trades", every_n_trades=5, **MODEL)
    reflector = with_model(memory, error=Unavailable("away"))
    assert due(memory, deployment, clock.now()) == "failed"
    for _ in range(3):
        clock.advance(hours=1)
        assert due(memory, deployment, clock.now()) is None
    assert len(reflector.requests) == 1


def test_a_tick_before_the_lessons_in_force_changes_nothing(memory: Memory, clock: FakeClock) -> None:
    deployment = fading(memory, cadence="per_n_trades", every_n_trades=5)
    reflected(memory, clock)
    assert due(memory, deployment, T0 + timedelta(minutes=1)) is None


def test_an_unknown_deployment_is_named(memory: Memory) -> None:
    with pytest.raises(NotFound, match="deployment: no deployment 'nothing'; get_my_deployments lists them"):
        memory.reflect(deployment="nothing")


def test_a_reflection_writes_one_row_to_each_of_its_tables(memory: Memory, clock: FakeClock) -> None:
    fading(memory)
    reflected(memory, clock)
    assert (len(rows(memory, NOTES.table.name)), len(rows(memory, REFLECTIONS.table.name))) == (1, 1)
