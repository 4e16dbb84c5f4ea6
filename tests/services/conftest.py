"""Fixtures that tests of several services share."""

import pytest

from backsight.memory import Memory
from backsight.testing import FakeClock
from services.test_plans import Desk


@pytest.fixture
def desk(memory: Memory, clock: FakeClock) -> Desk:
    return Desk(memory, clock)
