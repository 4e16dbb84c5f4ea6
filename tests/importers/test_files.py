"""Cells of files: numbers, instants and zones."""

from datetime import UTC, timedelta

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.instants import EPOCH
from backsight.importers.files import instant_of, number_of, zone_named


@given(st.integers(10**8, 10**10), st.sampled_from([1, 10**3, 10**6, 10**9]))
def test_an_instant_is_the_same_in_every_unit(seconds: int, unit: int) -> None:
    assert instant_of(str(seconds * unit), zone=UTC) == instant_of(seconds, zone=UTC)


@given(st.timedeltas(timedelta(days=4 * 365), timedelta(days=130 * 365)))
def test_a_float_of_seconds_or_milliseconds_keeps_every_microsecond(since_1970: timedelta) -> None:
    at = EPOCH + since_1970
    milliseconds = (at - EPOCH) / timedelta(milliseconds=1)
    for number in (at.timestamp(), repr(at.timestamp()), milliseconds, f"{milliseconds:.3f}"):
        assert instant_of(number, zone=UTC) == at


def test_whole_nanoseconds_are_cut_to_microseconds() -> None:
    assert instant_of("1762061400123456789", zone=UTC).microsecond == 123456


@given(st.text())
def test_any_text_is_a_number_or_none(text: str) -> None:
    assert number_of(text) is None or isinstance(number_of(text), float)


@given(st.text() | st.floats() | st.integers() | st.none() | st.booleans())
def test_any_cell_is_an_instant_or_is_refused_with_a_remedy(cell: object) -> None:
    message = ""
    try:
        instant_of(cell, zone=zone_named("America/New_York"))
    except ValueError as error:
        message = str(error)
    assert not message or "; give " in message
