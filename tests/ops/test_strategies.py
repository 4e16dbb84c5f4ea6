"""Operations on accounts, strategies and deployments."""

from dataclasses import replace
from typing import Any

import pytest

from backsight import notes_of
from backsight.core.errors import Conflict, Invalid, NotFound
from backsight.core.strategies import Guidance, MemoryOverrides, MemorySettings
from backsight.memory import Memory
from backsight.testing import FakeClock, a_trade_call


def test_an_account_is_opened_once(memory: Memory, clock: FakeClock) -> None:
    first = memory.open_account(venue="binance", name="main", currency="USDT", mode="paper")
    clock.advance(days=1)
    again = memory.open_account(venue="binance", name="main", currency="USDT", mode="paper")
    assert (first.replayed, again.replayed, again.account) == (False, True, first.account)
    with pytest.raises(Conflict, match="already open with other settings"):
        memory.open_account(venue="binance", name="main", currency="EUR", mode="paper")


def test_the_account_of_remembered_trades_cannot_be_taken(memory: Memory) -> None:
    for name in ("manual", "manual:S", "manual-paper"):
        with pytest.raises(Invalid, match=f"name: '{name}' is reserved"):
            memory.open_account(venue="binance", name=name)


def test_the_deployments_of_remembered_trades_cannot_be_taken(memory: Memory) -> None:
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="S")
    memory.save_strategy(name="manual-sim:S")
    for name in ("manual:S", "manual:other", "manual-paper:S"):
        with pytest.raises(Invalid, match=f"name: '{name}' is reserved for trades without a deployment; choose"):
            memory.deploy(strategy_name="S", account="main", name=name)
    with pytest.raises(Invalid, match="name: 'manual-sim:S@main' is reserved"):
        memory.deploy(strategy_name="manual-sim:S", account="main")
    assert memory.get_my_deployments().deployments == ()
    assert memory.deploy(strategy_name="S", account="main", name="manually").deployment.name == "manually"


def test_saved_changes_are_a_new_version(memory: Memory) -> None:
    first = memory.save_strategy(name="VolBreakout", thesis="Breaks carry.", avoid=["news"])
    second = memory.save_strategy(name="VolBreakout", thesis="Breaks carry.", avoid=["news", "Fridays"])
    again = memory.save_strategy(name="VolBreakout", thesis="Breaks carry.", avoid=["news", "Fridays"])
    assert [(saved.strategy.version, saved.replayed) for saved in (first, second, again)] == [
        (1, False),
        (2, False),
        (2, True),
    ]
    assert first.strategy.id == second.strategy.id


def test_the_latest_version_is_deployed_unless_another_is_named(memory: Memory) -> None:
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="VolBreakout", thesis="one")
    memory.save_strategy(name="VolBreakout", thesis="two")
    latest = memory.deploy(strategy_name="VolBreakout", account="main").deployment
    first = memory.deploy(strategy_name="VolBreakout", account="main", version=1, name="old").deployment
    assert (latest.strategy_version, first.strategy_version) == (2, 1)
    assert memory.deploy(strategy_name="VolBreakout", account="main").replayed
    with pytest.raises(Conflict, match="name: 'old' already runs version 1 of 'VolBreakout'"):
        memory.deploy(strategy_name="VolBreakout", account="main", name="old")


def test_the_longest_names_can_be_referred_to(memory: Memory) -> None:
    strategy, account = "s" * 100, "a" * 100
    memory.open_account(venue="binance", name=account)
    memory.save_strategy(name=strategy)
    deployment = memory.deploy(strategy_name=strategy, account=account).deployment
    memory.remember_trade(**a_trade_call(strategy_name=strategy, deployment=deployment.name))
    memory.remember_trade(**a_trade_call(strategy_name=strategy))
    memory.remember_trade(**a_trade_call(strategy_name=strategy, mode="paper"))
    for manual in ("manual", "manual-paper"):
        assert memory.recall_memories(symbol="XAUUSD", deployment=f"{manual}:{strategy}").candidates == 1
    assert len(memory.list_trades(deployment=deployment.name).trades) == 1


def test_an_unknown_account_or_strategy_is_named(memory: Memory) -> None:
    with pytest.raises(NotFound, match="account: no account 'main'; open one first"):
        memory.deploy(strategy_name="VolBreakout", account="main")
    memory.open_account(venue="binance", name="main")
    with pytest.raises(NotFound, match="did you mean 'main'"):
        memory.deploy(strategy_name="VolBreakout", account="mian")
    with pytest.raises(NotFound, match="strategy_name: no strategy 'VolBreakout' version 3; save it first"):
        memory.deploy(strategy_name="VolBreakout", account="main", version=3)


def test_one_name_at_two_venues_needs_the_id(memory: Memory) -> None:
    account = memory.open_account(venue="binance", name="main").account
    memory.open_account(venue="kraken", name="main")
    memory.save_strategy(name="VolBreakout")
    with pytest.raises(NotFound, match="several accounts are named 'main'; give the id"):
        memory.deploy(strategy_name="VolBreakout", account="main")
    assert memory.deploy(strategy_name="VolBreakout", account=account.id).deployment.account_id == account.id


# Guidance and memory settings.


def test_a_strategy_carries_its_guidance_and_memory_and_a_change_of_either_is_a_new_version(memory: Memory) -> None:
    guidance: dict[str, Any] = {"name": "VolBreakout", "thesis": "Breaks carry.", "entry_rules": ["a close above"]}
    first = memory.save_strategy(
        **guidance, leash="strict", look_for=["volume"], memory=MemorySettings(suppressed=("sizing",))
    )
    assert first.strategy.guidance == Guidance(
        mode="hybrid", leash="strict", look_for=("volume",), entry_rules=("a close above",)
    )
    assert first.strategy.memory == MemorySettings(suppressed=("sizing",))
    assert memory.save_strategy(**guidance, memory=MemorySettings(suppressed=("sizing",))).strategy.version == 2
    assert memory.save_strategy(**guidance, memory=MemorySettings(suppressed=("sizing",))).replayed
    assert memory.save_strategy(**guidance).strategy.version == 3


@pytest.mark.parametrize(
    ("guidance", "mode"), [({"thesis": "t"}, "thesis"), ({"rules": ["r"]}, "rules"), ({}, "thesis")]
)
def test_the_guidance_mode_follows_from_the_fields_given(memory: Memory, guidance: dict[str, Any], mode: str) -> None:
    assert memory.save_strategy(name="VolBreakout", **guidance).strategy.guidance.mode == mode


def test_a_deployment_uses_memory_as_its_strategy_does_unless_it_is_set_otherwise(memory: Memory) -> None:
    memory.open_account(venue="binance", name="main")
    memory.save_strategy(name="VolBreakout", memory=MemorySettings(recent_trades_k=5, cadence="daily", holdout=0.1))
    plain = memory.deploy(strategy_name="VolBreakout", account="main").deployment
    other = MemoryOverrides(holdout=0.3, suppressed=("regime_fit", "sizing"))
    changed = memory.deploy(strategy_name="VolBreakout", account="main", name="other", memory=other).deployment
    assert plain.memory == MemorySettings(recent_trades_k=5, cadence="daily", holdout=0.1)
    assert changed.memory == replace(plain.memory, holdout=0.3, suppressed=("sizing", "regime_fit"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"memory": {"recent_trades_k": 31}}, "memory.recent_trades_k: 31 is out of range; give 30 or less"),
        ({"memory": {"cadence": "hourly"}}, "memory.cadence: 'hourly' is not known; known: off, per_n_trades, daily"),
        ({"memory": {"every_n_trades": 0}}, "memory.every_n_trades: 0 is out of range; give 1 or more"),
        ({"memory": {"holdout": 1.5}}, "memory.holdout: 1.5 is out of range; give 1 or less"),
        ({"memory": {"suppressed": ["luck"]}}, "memory.suppressed.0: 'luck' is not known"),
        ({"memory": {"model": "gpt-5"}}, "memory.model: 'gpt-5' has no provider; give 'openai:gpt-5'"),
        ({"memory": {"reflector": "model"}}, "memory.model: missing; name the model that is to write lessons"),
        ({"memory": {"hold_uot": 0.1}}, "memory.hold_uot: unknown argument; did you mean 'holdout'?"),
        ({"avoid": ["x" * 10_000]}, "avoid.0: is longer than 500 characters; shorten it"),
        ({"avoid": [" "]}, "avoid.0: is blank; give some text"),
        ({"leash": "loose"}, "leash: 'loose' is not known; known: strict, balanced, adaptive"),
    ],
)
def test_an_invalid_strategy_is_refused_when_it_is_saved(memory: Memory, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as refused:
        memory.save_strategy(name="VolBreakout", **changes)
    assert message in str(refused.value)
    assert memory.save_strategy(name="VolBreakout").strategy.version == 1


def test_a_setting_is_found_by_its_name_without_separators_and_the_answer_says_so(memory: Memory) -> None:
    answer = memory.save_strategy(name="VolBreakout", memory={"hold_out": 0.1})
    assert answer.strategy.memory.holdout == 0.1
    assert notes_of(answer) == ("memory.holdout: 'hold_out' read as the name 'holdout'",)
