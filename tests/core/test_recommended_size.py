"""A recommended size in words, and its interval."""

from dataclasses import replace

import pytest

from backsight.core.recommended_size import SizeKind
from backsight.core.sizing import position_size

UNKNOWN = position_size([])


@pytest.mark.parametrize(
    ("kind", "share", "answer"),
    [
        ("sized", 0.0235, "Risk 2.35% of equity"),
        ("no_recommendation", None, "No recommendation: the strategy's own risk applies"),
        ("no_edge", 0.0, "No edge seen here: risk nothing"),
        ("not_now", 0.0, "Not now: risk nothing more"),
    ],
)
def test_each_kind_has_an_answer(kind: SizeKind, share: float | None, answer: str) -> None:
    assert replace(UNKNOWN, kind=kind, recommended=share).answer == answer


def test_the_interval_is_the_mean_and_1645_deviations() -> None:
    size = replace(UNKNOWN, mean=0.2, deviation=0.1)
    assert size.interval == pytest.approx((0.2 - 0.1645, 0.2 + 0.1645), abs=1e-4)
    assert replace(size, mean=None).interval is None
