"""The figures of closed trades from their columns: win rate, expectancy, profit factor, holding time, by category.

Every sum is taken over sorted values or exactly, so that the order of the rows, which differs between stores, does not
change an answer.
"""

import json
import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from backsight.core.missing_outcomes import KnownOutcomes
from backsight.core.statistics import Moments, rate_bounds
from backsight.core.trades.columns import (
    UNKNOWN_INSTANT,
    ClosedTradeColumns,
    Floats,
    Integers,
    converted_pnl,
    order_of_codes,
)
from backsight.core.trades.performance import Category, FiguresOfGroup, MeanFigure, ResultFigures

LEVEL = 0.9
"""The level of all intervals."""
UNKNOWN = "unknown"
HOUR, DAY = 3_600_000_000, 86_400_000_000
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
EPOCH_WEEKDAY = 3
"""1970-01-01 was a Thursday."""


def figures_of(columns: ClosedTradeColumns, rows: Integers) -> ResultFigures:
    """The figures of some trades."""
    pnl, known = columns.pnl[rows], converted_pnl(columns, rows)
    money = np.sort(known[np.isfinite(known)])
    won = pnl > 0.0
    wins, losses = money[money > 0.0], money[money < 0.0]
    in_r = np.array([group.outcome_unit == "R" for group in columns.groups], np.bool_)[columns.group[rows]]
    in_r &= np.isfinite(columns.outcome[rows])
    outcomes = _outcomes(won, in_r)
    hides = outcomes.hides_losers
    minutes = columns.minutes[rows]
    minutes = np.sort(minutes[np.isfinite(minutes)])
    n, n_won = len(rows), int(np.count_nonzero(won))
    low, high = rate_bounds(n_won, n, confidence=0.5 + LEVEL / 2.0) if n else (None, None)
    return ResultFigures(
        trades=n,
        wins=n_won,
        win_rate=n_won / n if n else None,
        win_rate_low=low,
        win_rate_high=high,
        net=math.fsum(money.tolist()),
        profit_factor=float(wins.sum()) / -float(losses.sum()) if len(losses) else None,
        r=None if hides else _mean(np.sort(columns.outcome[rows][in_r])),
        r_missing=f"no mean in R is given: {outcomes.in_words}" if hides else _unknown_r(outcomes),
        money=_mean(money),
        average_minutes=float(minutes.sum()) / len(minutes) if len(minutes) else None,
        median_minutes=_median(minutes) if len(minutes) else None,
        best=float(money[-1]) if len(money) else None,
        worst=float(money[0]) if len(money) else None,
        unconverted=n - len(money),
    )


def _outcomes(won: NDArray[np.bool_], in_r: NDArray[np.bool_]) -> KnownOutcomes:
    return KnownOutcomes(
        won=int(np.count_nonzero(won)),
        lost=int(np.count_nonzero(~won)),
        known_won=int(np.count_nonzero(won & in_r)),
        known_lost=int(np.count_nonzero(~won & in_r)),
    )


def _unknown_r(outcomes: KnownOutcomes) -> str | None:
    return f"R is unknown for {outcomes.unknown} of {outcomes.n} trades" if outcomes.unknown else None


def _median(values: Floats) -> float:
    """The median of ascending values."""
    return float(values[(len(values) - 1) // 2 : len(values) // 2 + 1].mean())


def _mean(values: Floats) -> MeanFigure | None:
    """The mean of ascending values, and its interval."""
    if not len(values):
        return None
    mean = float(values.sum()) / len(values)
    squares = float(np.sort((values - mean) ** 2).sum())
    interval = Moments(n=len(values), mean=mean, squares=squares).interval(level=LEVEL)
    low, high = (None, None) if interval is None else interval
    return MeanFigure(n=len(values), mean=mean, low=low, high=high)


# By category


def rows_by_label(
    columns: ClosedTradeColumns, rows: Integers, category: Category, names: Mapping[str, str]
) -> dict[str, Integers]:
    """The rows of some trades by their label in a category; a trade with several tags is in several groups.

    `names` maps ids of deployments to their names.
    """
    if category == "tag":
        return _rows_by_tag(columns, rows)
    codes, labels = _coded_labels(columns, rows, category, names)
    order = order_of_codes(codes, len(labels))
    counts = np.bincount(codes, minlength=len(labels))
    parts = np.split(rows[order], np.cumsum(counts)[:-1]) if len(labels) else []
    return {label: part for label, part in zip(labels, parts, strict=True) if len(part)}


def figures_by(
    columns: ClosedTradeColumns, by_label: Mapping[str, Integers], *, most: int | None = None
) -> tuple[FiguresOfGroup, ...]:
    """The figures of each label, most trades first; of equally many, in alphabetical order."""
    largest = sorted(by_label, key=lambda label: (-len(by_label[label]), label))[:most]
    return tuple(FiguresOfGroup(label=label, figures=figures_of(columns, by_label[label])) for label in largest)


def _coded_labels(
    columns: ClosedTradeColumns, rows: Integers, category: Category, names: Mapping[str, str]
) -> tuple[Integers, list[str]]:
    """The code of each row's label, and the label of each code."""
    match category:
        case "hour" | "weekday" | "month":
            return _times(columns, rows, category)
        case "direction" | "regime" | "volatility" | "session" | "memory" | "model":
            field = {"volatility": "volatility_regime", "memory": "memory_arm"}.get(category, category)
            return _codes_of([getattr(each, field) for each in columns.entries], columns.entry[rows])
        case "deployment":
            ids = [names.get(each.deployment_id, each.deployment_id) for each in columns.groups]
            return _codes_of(ids, columns.group[rows])
        case _:
            field = {"strategy": "strategy_name", "version": "strategy_version", "lessons": "lessons_hash"}.get(
                category, category
            )
            return _codes_of([getattr(each, field) for each in columns.groups], columns.group[rows])


def _codes_of(labels: Iterable[object], by_row: NDArray[np.uint32]) -> tuple[Integers, list[str]]:
    texts = [UNKNOWN if each is None else str(each) for each in labels]
    distinct = sorted(set(texts))
    place = {text: number for number, text in enumerate(distinct)}
    return np.array([place[text] for text in texts], np.int64)[by_row], distinct


def _times(columns: ClosedTradeColumns, rows: Integers, category: Category) -> tuple[Integers, list[str]]:
    if category == "month":
        months = columns.closed_at[rows].astype("datetime64[us]").astype("datetime64[M]")
        distinct, codes = np.unique(months, return_inverse=True)
        return codes.astype(np.int64), [str(month) for month in distinct]
    opened = columns.opened_at[rows]
    known = opened != UNKNOWN_INSTANT
    if category == "hour":
        names = [f"{hour:02}:00" for hour in range(24)]
        codes = opened // HOUR % 24
    else:
        names = list(WEEKDAYS)
        codes = (opened // DAY + EPOCH_WEEKDAY) % 7
    return np.where(known, codes, len(names)), [*names, UNKNOWN]


def _rows_by_tag(columns: ClosedTradeColumns, rows: Integers) -> dict[str, Integers]:
    by_row = columns.entry[rows]
    tags = [json.loads(each.tags) or ["untagged"] for each in columns.entries]
    codes: dict[str, list[int]] = {}
    for code, own in enumerate(tags):
        for tag in dict.fromkeys(own):
            codes.setdefault(tag, []).append(code)
    by_tag = {tag: rows[np.isin(by_row, own)] for tag, own in codes.items()}
    return {tag: tagged for tag, tagged in by_tag.items() if len(tagged)}
