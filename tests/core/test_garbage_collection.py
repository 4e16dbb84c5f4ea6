"""A pause of the search for reference cycles ends as it began, also where an error ends it."""

import gc

import pytest

from backsight.core.garbage_collection import collection_paused


def test_the_search_goes_on_after_a_pause_and_after_an_error() -> None:
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            pass
        assert not gc.isenabled()
    with pytest.raises(ValueError, match="a row"), collection_paused():
        raise ValueError("a row")
    assert gc.isenabled()


def test_a_search_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
