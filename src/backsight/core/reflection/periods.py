"""The periods that are reviewed, and common words for them."""

from collections.abc import Mapping
from typing import Literal, get_args

Period = Literal["daily", "weekly", "monthly"]
PERIOD_WORDS: Mapping[str, Period] = {"day": "daily", "week": "weekly", "month": "monthly"}
PERIODS: tuple[Period, ...] = get_args(Period)
