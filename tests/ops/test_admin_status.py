"""The status says what a store holds, as of any instant."""

from datetime import timedelta

from backsight.memory import Memory
from backsight.testing import T0, a_trade_call


def test_the_status_counts_trades_by_mode_and_names_the_head(memory: Memory) -> None:
    assert memory.status().message == f"Nothing was traded or decided yet under the owner {memory.owner!r}."
    for number, mode in enumerate(("live", "live", "paper")):
        memory.remember_trade(**a_trade_call(mode=mode, idempotency_key=str(number)))
    status = memory.status()
    assert [(each.mode, each.trades, each.decisions) for each in status.modes] == [("live", 2, 0), ("paper", 1, 0)]
    assert status.head == memory.export_audit().head
    assert status.documents == 0


def test_the_status_as_of_an_earlier_instant_knows_nothing_later(memory: Memory) -> None:
    memory.remember_trade(**a_trade_call())
    earlier = memory.status(as_of=T0 - timedelta(days=900))
    assert (earlier.modes, earlier.head, earlier.last_command_at) == ((), None, None)
