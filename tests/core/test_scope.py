"""The default deployment and mode: the only one there is, and never silently."""

import re
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.portfolio import MODES, Mode
from backsight.core.scope import (
    AnswerScope,
    ScopeQuery,
    TradeCount,
    candidates_for,
    first_note,
    first_to_read,
    hint_for_nothing,
    needs_trade_counts,
    scope_of,
)
from backsight.core.strategies import Deployment, MemorySettings
from backsight.testing import T0

NUMBERS = count()
STRATEGIES = ("S", "T")


def a_deployment(strategy: str = "S", mode: Mode = "live") -> Deployment:
    number = next(NUMBERS)
    return Deployment(
        owner_id="ana",
        id=f"id-{number}",
        name=f"{strategy}@{number}",
        strategy_id=strategy,
        strategy_name=strategy,
        strategy_version=1,
        account_id=f"account-{number}",
        mode=mode,
        memory=MemorySettings(),
        known_at=T0,
        recorded_at=T0,
    )


def resolve(deployments: list[Deployment], trades: dict[Mode, int] | None = None, **query: object) -> AnswerScope:
    wanted = ScopeQuery(**query)  # type: ignore[arg-type]
    return scope_of(wanted, candidates_for(wanted, deployments), trades or {})


def test_the_only_deployment_is_taken_with_its_mode_and_the_answer_says_so() -> None:
    only = a_deployment(mode="sim")
    scope = resolve([only])
    assert (scope.deployment, scope.mode, scope.neutral_because) == (only, "sim", None)
    assert scope.notes == (f"For {only.name!r} (sim), the only deployment.",)


def test_the_only_deployment_of_the_strategy_is_taken_among_those_of_others() -> None:
    only, other = a_deployment("S", "paper"), a_deployment("T", "live")
    scope = resolve([only, other], strategy_name="S")
    assert (scope.deployment, scope.mode) == (only, "paper")
    assert scope.notes == (f"For {only.name!r} (paper), the only deployment of 'S'.",)


def test_a_named_mode_chooses_among_the_deployments() -> None:
    live, sim = a_deployment(mode="live"), a_deployment(mode="sim")
    assert resolve([live, sim], mode="sim").deployment == sim
    reason = resolve([live, sim], mode="paper").neutral_because
    assert reason == "Nothing is deployed in paper yet, so the mood is neutral."


def test_a_named_deployment_needs_no_note() -> None:
    named, other = a_deployment(mode="paper"), a_deployment()
    scope = resolve([named, other], deployment=named)
    assert (scope.deployment, scope.mode, scope.notes, scope.neutral_because) == (named, "paper", (), None)


def test_without_a_deployment_the_mood_is_neutral_and_the_answer_says_why() -> None:
    assert resolve([]).neutral_because == "Nothing is deployed yet, so the mood is neutral."
    assert resolve([], strategy_name="S").neutral_because == "'S' is not deployed yet, so the mood is neutral."
    several = [a_deployment() for _ in range(7)]
    reason = resolve(several).neutral_because or ""
    assert reason.startswith(f"There are 7 deployments, so the mood is neutral: name one of {several[0].name!r}, ")
    assert reason.endswith(", ….")


def test_the_only_mode_with_trades_is_taken() -> None:
    scope = resolve([a_deployment(), a_deployment(mode="sim")], {"sim": 166})
    assert (scope.mode, scope.notes) == ("sim", ("Mode sim, the only one with closed trades.",))


def test_the_mode_with_most_trades_is_taken_and_names_those_left_out() -> None:
    deployments = [a_deployment(mode=mode) for mode in MODES]
    scope = resolve(deployments, {"live": 3, "sim": 166})
    left_out = "3 trades in live are not counted: mode='live'."
    assert (scope.mode, scope.notes) == ("sim", ("Mode sim, with most trades.", left_out))
    tie = resolve(deployments, {"live": 3, "sim": 3})
    assert (tie.mode, tie.notes) == ("live", ("Mode live.", "3 trades in sim are not counted: mode='sim'."))
    assert resolve(deployments, {"paper": 2, "sim": 2}).mode == "paper"
    assert resolve(deployments, {}).notes == ()


def test_reported_trades_make_no_second_deployment() -> None:
    only, reported = a_deployment("S", "sim"), replace(a_deployment("S", "live"), name="manual:S")
    scope = resolve([only, reported], {"sim": 72, "live": 1})
    assert (scope.deployment, scope.mode, scope.neutral_because) == (only, "sim", None)
    assert scope.notes == (
        f"For {only.name!r} (sim), the only deployment beside deployment='manual:S'.",
        "Mode sim, with most trades.",
        "1 trade in live is not counted: mode='live'.",
    )
    assert resolve([only, reported], {"live": 1}).mode == "live"
    assert resolve([only, reported], {"sim": 1, "live": 1}).mode == "sim"
    assert resolve([reported]).deployment == reported


def test_an_answer_of_one_deployment_takes_the_oldest_with_trades() -> None:
    new, old = a_deployment(), replace(a_deployment(), recorded_at=T0 - timedelta(days=1))
    reported = replace(a_deployment(), name="manual:S", recorded_at=T0 - timedelta(days=2))
    assert first_to_read([new, old, reported], []) == [old, new, reported]
    assert first_to_read([new, old, reported], [new.id, reported.id]) == [new, reported, old]
    assert first_note(new, [old, new]) == f"For {new.name!r} (live), one of 2 deployments: deployment={old.name!r}."


def test_all_modes_leave_nothing_out() -> None:
    deployments = [a_deployment(), a_deployment(mode="sim")]
    assert resolve(deployments, {"live": 3, "sim": 166}, all_modes=True).notes == ()


@given(
    places=st.lists(st.tuples(st.sampled_from(STRATEGIES), st.sampled_from(MODES)), max_size=5),
    named=st.integers(-5, 4),
    strategy=st.none() | st.sampled_from(STRATEGIES),
    mode=st.none() | st.sampled_from(MODES),
    numbers=st.tuples(*(st.integers(0, 3) for _ in MODES)),
)
def test_the_rule(
    places: list[tuple[str, Mode]],
    named: int,
    strategy: str | None,
    mode: Mode | None,
    numbers: tuple[int, ...],
) -> None:
    deployments = [a_deployment(*place) for place in places]
    deployment = deployments[named] if 0 <= named < len(deployments) else None
    query = ScopeQuery(deployment=deployment, strategy_name=strategy, mode=mode)
    candidates = candidates_for(query, deployments)
    there = {each.mode for each in candidates}
    trades = {each: number for each, number in zip(MODES, numbers, strict=True) if each in there}
    scope = scope_of(query, candidates, trades)

    matching = [each for each in deployments if strategy in (None, each.strategy_name) and mode in (None, each.mode)]
    expected = deployment or (matching[0] if len(matching) == 1 else None)
    assert scope.deployment == expected
    assert (scope.neutral_because is None) == (expected is not None)
    traded = [each for each in MODES if trades.get(each)]
    if mode is not None:
        assert scope.mode == mode
    elif expected is not None:
        assert scope.mode == expected.mode
    elif len(there) == 1:
        assert scope.mode in there
    else:
        assert trades.get(scope.mode, 0) == max([0, *trades.values()])
        assert traded or scope.mode == "live"
    if needs_trade_counts(query, candidates):
        left_out = sum(int(number) for note in scope.notes for number in re.findall(r"^(\d+) trades? in", note))
        assert left_out + trades.get(scope.mode, 0) == sum(trades.values())
    if expected is not None and deployment is None:
        assert any(repr(expected.name) in note for note in scope.notes)


COUNTS = [
    TradeCount(mode="live", strategy_name="S", symbol="BTC", trades=2),
    TradeCount(mode="sim", strategy_name="S", symbol="BTC", trades=166),
    TradeCount(mode="sim", strategy_name="T", symbol="ETH", trades=5),
]


@pytest.mark.parametrize(
    ("mode", "strategy", "symbol", "hint"),
    [
        ("paper", "S", "BTC", "166 closed trades with mode='sim'; 2 closed trades with mode='live'"),
        ("live", "S", "ETH", "2 closed trades with symbol='BTC'"),
        ("live", "T", "BTC", "2 closed trades with strategy_name='S'"),
        ("live", "T", "SOL", "5 closed trades with mode='sim', symbol='ETH'"),
        ("live", None, "SOL", "2 closed trades with symbol='BTC'"),
        ("sim", "U", "SOL", "166 closed trades with symbol='BTC', strategy_name='S'; 5 closed"),
        (None, "U", "BTC", "168 closed trades with strategy_name='S'"),
        ("live", "S", "BTC", "2 closed trades without the other filters"),
    ],
)
def test_an_empty_answer_says_where_there_are_trades(
    mode: Mode | None, strategy: str | None, symbol: str, hint: str
) -> None:
    assert hint_for_nothing(COUNTS, mode=mode, strategy_name=strategy, symbol=symbol).startswith(f"There are {hint}")


def test_an_empty_answer_names_the_argument_as_its_query_does() -> None:
    hint = hint_for_nothing(COUNTS, mode="live", strategy_name="T", symbol="BTC", strategy_argument="strategy")
    assert hint == "There are 2 closed trades with strategy='S'."
