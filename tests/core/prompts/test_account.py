"""The last decision, the portfolio and its caps, in a prompt."""

from dataclasses import replace
from typing import Any

from backsight.core.decision import DecidedOrder, Decision, Verdict
from backsight.core.orders import BrokerSnapshot, Order, ReportedFill
from backsight.core.portfolio import Portfolio
from backsight.core.prompts.account import Cap, LastLine, last_decision, last_lines, portfolio_and_caps
from backsight.testing import a_position, a_snapshot
from core.prompts.test_sections import NOW, TEN

ADD = Order(symbol="BTC", quantity=0.5, stop_price=64_000.0, reason="add to the winner")


def test_the_last_decision_has_its_layout_to_the_byte() -> None:
    line = LastLine(at=TEN, kind="rejected", order=ADD, price=65_200.0, rule="R3_POSITION_CAP", detail="cap is $5,000")
    assert last_decision([line]).text == (
        "## Last decision\n"
        "- 2026-06-04T10:00 rejected by R3_POSITION_CAP: buy 0.5 BTC marked at 65,200 stop=64,000"
        ' "add to the winner"\n'
        '- the engine\'s answer: "cap is $5,000"'
    )
    moved = LastLine(at=TEN, kind="executed", order=replace(ADD, quantity=0.0, reason=None))
    assert last_decision([moved]).text == "## Last decision\n- 2026-06-04T10:00 executed: BTC levels moved stop=64,000"


def a_fill(quantity: float, price: float) -> ReportedFill:
    return ReportedFill(id=f"{price}", at=TEN, sequence=0, kind="trade", symbol="BTC", quantity=quantity, price=price)


def a_decision(order: Order | None, after: BrokerSnapshot | None, **verdict: Any) -> Decision:
    blank = dict.fromkeys(Decision.__dataclass_fields__)
    before = a_snapshot(at=TEN, marks={"BTC": 65_100.0})
    made = {"at": TEN, "verdict": Verdict(**verdict), "proposal": order, "before": before, "after": after}
    made["further_proposals"] = ()
    return Decision(**(blank | made))  # type: ignore[arg-type]


def test_the_price_of_the_last_decision_is_that_of_its_fills_or_the_mark() -> None:
    fills = (a_fill(0.2, 65_000.0), a_fill(0.3, 65_500.0), a_fill(-0.1, 1.0))
    after = replace(a_snapshot(at=TEN), fills=fills)
    assert last_lines(a_decision(ADD, after, kind="executed"))[0].text == (
        '- 2026-06-04T10:00 executed: buy 0.5 BTC filled at 65,300 stop=64,000 "add to the winner"'
    )
    assert "buy 0.5 BTC marked at 65,100" in last_lines(a_decision(ADD, after, kind="rejected", rule="R3"))[0].text
    assert (
        "sell 0.5 BTC marked at"
        in last_lines(a_decision(replace(ADD, quantity=-0.5), a_snapshot(at=TEN), kind="executed"))[0].text
    )


def test_every_order_of_the_last_decision_has_its_line() -> None:
    rejected = DecidedOrder(
        order=Order(symbol="ETH", quantity=-1.0), verdict=Verdict(kind="rejected", rule="R3", detail="too much")
    )
    last = replace(a_decision(ADD, None, kind="executed"), further_proposals=(rejected,))
    rows = last_decision(last_lines(last)).text.split("\n")
    assert rows[1].startswith("- 2026-06-04T10:00 executed: buy 0.5 BTC marked at 65,100")
    assert rows[2:4] == ["- 2026-06-04T10:00 rejected by R3: sell 1 ETH", '- the engine\'s answer: "too much"']
    many = replace(last, further_proposals=(rejected,) * 8)
    rows = last_decision(last_lines(many)).text.split("\n")
    assert not any("engine" in row for row in rows)
    assert rows[-1] == f"… {1 + 2 * 8 - len(rows[1:-1])} more"


def test_a_decision_to_do_nothing_gives_its_reason() -> None:
    last = a_decision(None, None, kind="noop", detail="flat market")
    assert last_decision(last_lines(last)).text == (
        '## Last decision\n- 2026-06-04T10:00 noop, nothing proposed\n- why nothing: "flat market"'
    )


def test_the_portfolio_has_its_layout_to_the_byte() -> None:
    position = a_position(0.5, symbol="ETH", mark=3_438.0, average_price=3_410.0, stop_price=3_350.0, leverage=2.93213)
    portfolio = Portfolio(at=NOW, equity=10_250.0, cash=8_000.0, positions=(position,))
    assert portfolio_and_caps(portfolio, currency="EUR", caps=(Cap(name="position", value="5,000 EUR"),)).text == (
        "## Portfolio\n"
        "- equity 10,250 EUR, cash 8,000 EUR\n"
        "- ETH long size=0.5 leverage=2.9× entry=3,410 mark=3,438 stop=3,350\n"
        "- cap position: 5,000 EUR"
    )
