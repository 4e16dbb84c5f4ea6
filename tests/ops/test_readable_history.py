"""No command hides a history: what the default calls read before a command, they read afterwards too."""

import random
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backsight.core.errors import BacksightError, Invalid
from backsight.core.portfolio import MODES, Mode
from backsight.memory import Memory
from backsight.ops.state import AgentState
from backsight.testing import FakeClock, a_position, a_snapshot, a_trade_call

SYMBOLS = ("BTC", "ETH")
STRATEGIES = ("S", "T")
Reading = dict[str, tuple[int, str]]
"""By call: how much it read, and its message."""


class History:
    """A store to which a random sequence of commands is applied."""

    def __init__(self, memory: Memory, clock: FakeClock, folder: Path, rng: random.Random) -> None:
        self.memory, self.clock, self.folder, self.rng = memory, clock, folder, rng
        self.names: list[str] = []
        """The deployments that were made for ticks."""
        self.commands: tuple[Callable[[], str], ...] = (
            self.import_fills,
            self.import_trades,
            self.deploy,
            self.remember_trade,
            self.remember_trade,
            self.remember_inaction,
            self.tick,
            self.tick,
        )

    def step(self) -> str:
        """Run a random command; what it was."""
        self.clock.advance(hours=1)
        return self.rng.choice(self.commands)()

    def _mode(self) -> Mode:
        return self.rng.choice(MODES)

    def _file(self, lines: list[str]) -> str:
        path = self.folder / f"{self.clock.now():%Y%m%d%H%M}.csv"
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    def import_fills(self) -> str:
        mode, symbol, trades = self._mode(), self.rng.choice(SYMBOLS), self.rng.randrange(1, 6)
        lines = ["symbol,side,quantity,price,time"]
        for number in range(trades):
            start = self.clock.now() - timedelta(minutes=2 * (trades - number))
            lines += [f"{symbol},buy,1,100,{start.isoformat()}"]
            lines += [f"{symbol},sell,1,101,{(start + timedelta(minutes=1)).isoformat()}"]
        self.memory.import_fills(path=self._file(lines), account=f"{mode}-file", mode=mode, currency="USD")
        return f"import {trades} trades of fills in {mode} {symbol}"

    def import_trades(self) -> str:
        mode, symbol, strategy = self._mode(), self.rng.choice(SYMBOLS), self.rng.choice(STRATEGIES)
        lines = ["symbol,direction,entry_price,exit_price,pnl,pnl_r,closed_at"]
        rows = self.rng.randrange(1, 14)
        for number in range(rows):
            closed = self.clock.now() - timedelta(seconds=number)
            lines.append(f"{symbol},long,100,101,{10 + number},1,{closed.isoformat()}")
        self.memory.import_trades(path=self._file(lines), strategy_name=strategy, mode=mode)
        return f"import {rows} trades of {strategy} in {mode} {symbol}"

    def deploy(self) -> str:
        strategy, name, mode = self.rng.choice(STRATEGIES), f"a{len(self.names)}", self._mode()
        self.memory.save_strategy(name=strategy)
        self.memory.open_account(venue="v", name=name, mode=mode)
        self.names.append(self.memory.deploy(strategy_name=strategy, account=name).deployment.name)
        return f"deploy {strategy} in {mode}"

    def remember_trade(self) -> str:
        mode = self.rng.choice([None, *MODES])
        call = a_trade_call(
            symbol=self.rng.choice(SYMBOLS), strategy_name=self.rng.choice(STRATEGIES), pnl=self.rng.randrange(1, 99)
        )
        call |= {"pnl_r": 1.0, "mode": mode, "entry_price": 100.0, "exit_price": 101.0}
        text = f"remember {call['strategy_name']} in {mode} {call['symbol']}"
        try:
            return f"{text}: {self.memory.remember_trade(**call).message}"
        except Invalid as error:
            return f"{text}: {_checked_refusal(error)}"

    def remember_inaction(self) -> str:
        strategy = self.rng.choice(STRATEGIES)
        self.memory.remember_inaction(symbol=self.rng.choice(SYMBOLS), strategy_name=strategy, reason="flat")
        return f"inaction of {strategy}"

    def tick(self) -> str:
        """A trade of a deployment in two ticks."""
        if not self.names:
            return self.deploy()
        deployment, symbol = self.rng.choice(self.names), self.rng.choice(SYMBOLS)
        for positions in ([a_position(symbol=symbol, stop_price=99.0)], []):
            self.clock.advance(minutes=5)
            at = self.clock.now()
            before = a_snapshot(*positions, at=at, marks={symbol: 101.0})
            self.memory.close_tick(deployment=deployment, at=at, before=before, verdict={"kind": "noop"})
        return f"ticks of {deployment} in {symbol}"

    def reading(self) -> Reading:
        """How much each default call reads; a call that is refused, or that reads nothing, is left out."""
        memory = self.memory
        calls: dict[str, Callable[[], tuple[int, str]]] = {
            "list_trades": lambda: _of(memory.list_trades(count=True), lambda page: page.total or 0),
            "list_trades open": lambda: _of(memory.list_trades(status="open"), lambda page: len(page.trades)),
            "get_agent_state": lambda: _of(memory.get_agent_state(), _closes),
            "active_lessons": lambda: _of(memory.active_lessons(), lambda _answer: 1),
            "list_lessons": lambda: (len(memory.list_lessons().attempts), ""),
            "get_strategy_performance": lambda: _of(
                memory.get_strategy_performance(), lambda answer: answer.performance.figures.trades
            ),
            "break_down": lambda: _of(memory.break_down(by="symbol"), lambda answer: answer.trades),
            "get_behavioral_analysis": lambda: _of(
                memory.get_behavioral_analysis(), lambda answer: sum(each.habits.n for each in answer.behaviors)
            ),
            "list_decisions": lambda: (int(bool(memory.list_decisions().decisions)), ""),
            "get_recent_activity": lambda: (1, memory.get_recent_activity().text[:0]),
            "get_equity": lambda: _of(memory.get_equity(), lambda answer: int(bool(answer.days))),
            "get_state_history": lambda: _of(memory.get_state_history(), lambda answer: int(answer.closes > 0)),
            "check_active_plans": lambda: _of(memory.check_active_plans(dry_run=True), lambda answer: len(answer.each)),
            "review_period": lambda: (int(bool(memory.review_period().markdown)), ""),
        }
        for symbol in SYMBOLS:
            calls[f"recall_memories {symbol}"] = partial(self._recall, symbol=symbol)
            calls[f"list_trades {symbol}"] = partial(self._list, symbol)
        for strategy in STRATEGIES:
            calls[f"position_size {strategy}"] = partial(self._size, strategy)
            calls[f"recall_memories {strategy}"] = partial(self._recall, symbol="BTC", strategy_name=strategy)
            calls[f"list_lessons {strategy}"] = partial(self._lessons, strategy)
        answers: Reading = {}
        for name, call in calls.items():
            try:
                answers[name] = call()
            except BacksightError as error:
                answers[name] = (-1, str(error))
        return answers

    def _recall(self, **query: Any) -> tuple[int, str]:
        return _of(self.memory.recall_memories(**query), lambda answer: answer.candidates)

    def _list(self, symbol: str) -> tuple[int, str]:
        return _of(self.memory.list_trades(symbol=symbol, count=True), lambda page: page.total or 0)

    def _size(self, strategy: str) -> tuple[int, str]:
        answer = self.memory.position_size(symbol="BTC", direction="long", strategy_name=strategy)
        return answer.size.n, answer.message

    def _lessons(self, strategy: str) -> tuple[int, str]:
        return len(self.memory.list_lessons(strategy_name=strategy).attempts), ""


def _checked_refusal(error: Invalid) -> str:
    assert error.field == "mode"
    assert "mode='live'" in error.message
    return str(error)


def _of(answer: Any, count: Callable[[Any], int]) -> tuple[int, str]:
    return count(answer), answer.message


def _closes(state: AgentState) -> int:
    return max([state.closes, *(each.closes for each in state.each)])


@pytest.mark.parametrize("seed", range(12))
def test_no_command_hides_a_history(memory: Memory, clock: FakeClock, tmp_path: Path, seed: int) -> None:
    history = History(memory, clock, tmp_path, random.Random(seed))
    done: list[str] = []
    before = history.reading()
    for _ in range(7):
        done.append(history.step())
        after = history.reading()
        hidden = {name: (count, after[name]) for name, (count, _) in before.items() if after[name][0] < count}
        assert not hidden, (done, hidden)
        before = after
    counts = memory.list_trades(mode="all", count=True).total, before["list_trades"][0]
    other_modes = {trade.mode for trade in memory.list_trades(mode="all", limit=100).trades} - {
        memory.list_trades().mode
    }
    assert counts[0] == counts[1] or all(f"mode={mode!r}" in before["list_trades"][1] for mode in other_modes)
    names = [each.deployment.name for each in memory.get_my_deployments().deployments]
    assert len(names) < 2 or "deployment=" in before["active_lessons"][1]
