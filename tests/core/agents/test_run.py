"""A run that was interrupted is failed from the end of its lease on; a result is read from the end of an output."""

from datetime import timedelta

from backsight.core.agents.run import AgentRun, json_object_in, lease_of, shortened_text
from backsight.testing import T0

RUN = AgentRun(
    owner_id="ana",
    id="r",
    deployment_id="d",
    kind="heartbeat",
    prompt="look",
    status="running",
    started_at=T0,
    expires_at=T0 + timedelta(minutes=5),
    known_at=T0,
    recorded_at=T0,
)


def test_a_run_is_running_until_its_lease_is_over() -> None:
    assert RUN.at(T0 + timedelta(minutes=4)) == RUN
    interrupted = RUN.at(T0 + timedelta(minutes=5))
    assert (interrupted.status, interrupted.ended_at) == ("failed", RUN.expires_at)
    assert "lease" in str(interrupted.error)


def test_a_lease_is_longer_than_two_attempts() -> None:
    assert lease_of(600) > 2 * timedelta(seconds=600)


def test_the_last_object_of_an_output_is_its_result() -> None:
    assert json_object_in('first {"a": 1} then {"a": {"b": 2}} end') == {"a": {"b": 2}}
    assert json_object_in('{"a": NaN} {"b": 1}') == {"b": 1}
    assert json_object_in('{"a": NaN}') is None
    assert json_object_in("{" * 100_000) is None
    assert json_object_in("") is None


def test_a_short_text_is_stored_whole() -> None:
    assert shortened_text("abc") == "abc"
    assert len(shortened_text("x" * 1_000_000)) < 201_000
