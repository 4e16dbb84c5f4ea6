"""One loop at a time has an account, and its orders are recorded before they are submitted."""

from datetime import timedelta

import pytest

from backsight.core.decision import Verdict
from backsight.core.errors import Conflict, Invalid
from backsight.core.orders import BEGINNING, FillMark, ReportedFill
from backsight.memory import Memory
from backsight.ops.claims import ClaimedTick
from backsight.testing import T0, FakeClock, a_snapshot
from support import deployed

DEPLOYMENT = "VolBreakout@main"
INTENT = '{"deployment":"VolBreakout@main"}'


@pytest.fixture
def desk(memory: Memory) -> Memory:
    deployed(memory)
    return memory


def claim(memory: Memory, holder: str = "first", **more: object) -> ClaimedTick:
    return memory.claim_tick(**{"deployment": DEPLOYMENT, "at": memory.now, "holder": holder, **more})  # type: ignore[arg-type]


def close(memory: Memory, sequence: int = 0, **more: object) -> None:
    at = memory.now
    call = {"deployment": DEPLOYMENT, "at": at, "sequence": sequence, "verdict": Verdict(kind="noop")}
    memory.close_tick(**{**call, "before": a_snapshot(at=at), **more})  # type: ignore[arg-type]


def test_the_store_gives_out_the_sequence_of_ticks_of_one_instant(desk: Memory, clock: FakeClock) -> None:
    assert [claim(desk).sequence, claim(desk).sequence] == [0, 0]
    close(desk)
    assert claim(desk).sequence == 1
    clock.advance(hours=1)
    assert claim(desk).sequence == 0


def test_a_second_holder_waits_until_the_lease_expires(desk: Memory, clock: FakeClock) -> None:
    claim(desk, lease_seconds=60)
    clock.advance(seconds=59)
    with pytest.raises(Conflict, match="holder: the account 'main' is run by 'first' until 2026-06-04T10:01:00"):
        claim(desk, "second")
    clock.advance(seconds=1)
    assert claim(desk, "second").holder == "second"
    with pytest.raises(Conflict, match="is run by 'second'"):
        desk.record_intent(deployment=DEPLOYMENT, at=T0, sequence=0, holder="first", intent=INTENT)


def test_a_released_account_is_free_at_once(desk: Memory) -> None:
    claim(desk)
    with pytest.raises(Conflict):
        desk.release_claim(deployment=DEPLOYMENT, holder="second")
    assert desk.release_claim(deployment=DEPLOYMENT, holder="first").released
    assert not desk.release_claim(deployment=DEPLOYMENT, holder="first").released
    assert claim(desk, "second").sequence == 0


def test_an_intent_is_returned_until_its_tick_is_closed(desk: Memory, clock: FakeClock) -> None:
    claim(desk)
    desk.record_intent(deployment=DEPLOYMENT, at=T0, sequence=0, holder="first", intent=INTENT, lease_seconds=1)
    clock.advance(hours=1)
    unfinished = claim(desk, "second")
    assert (unfinished.unfinished, unfinished.at, unfinished.sequence) == (INTENT, T0, 0)
    close(desk, at=T0, before=a_snapshot(at=T0))
    after = claim(desk, "second")
    assert (after.unfinished, after.at) == (None, T0 + timedelta(hours=1))


def test_an_intent_for_a_tick_that_is_not_claimed_is_refused(desk: Memory) -> None:
    with pytest.raises(Conflict, match="is not claimed by 'first'; submit nothing"):
        desk.record_intent(deployment=DEPLOYMENT, at=T0, sequence=0, holder="first", intent=INTENT)


def test_a_claim_names_the_last_fill_that_the_ledger_has(desk: Memory) -> None:
    assert claim(desk).since == BEGINNING
    fills = [ReportedFill(id=f"t{n}", at=T0 - n * timedelta(hours=1), sequence=0, kind="transfer") for n in (0, 1)]
    close(desk, before=a_snapshot(fills=fills))
    assert claim(desk).since == FillMark(id="t0", symbol="", at=T0)


def test_a_claim_in_the_future_or_before_the_last_tick_is_refused(desk: Memory, clock: FakeClock) -> None:
    close(desk)
    with pytest.raises(Invalid, match=r"at: .* is in the future"):
        claim(desk, at=T0 + timedelta(days=1))
    with pytest.raises(Conflict, match=r"is before the account's last tick, .*; run ticks in order, or void_tick"):
        claim(desk, at=T0 - timedelta(hours=1))


def test_a_claim_leaves_no_link_in_the_audit_chain(desk: Memory) -> None:
    links = desk.verify_audit().links
    claim(desk)
    verified = desk.verify_audit()
    assert (verified.links, verified.intact) == (links, True)
