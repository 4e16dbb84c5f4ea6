"""The last decision, the portfolio and its caps, in a prompt."""

from backsight.core.decision import LastTick, Verdict
from backsight.core.portfolio import Portfolio
from backsight.core.prompts.account import Cap, LastLine, last_decision, last_line, portfolio_and_caps
from backsight.testing import a_position
from core.prompts.test_sections import NOW, TEN


def test_the_last_decision_has_its_layout_to_the_byte() -> None:
    line = LastLine(
        at=TEN,
        kind="rejected",
        symbol="BTC",
        reason="add to the winner",
        rule="R3_POSITION_CAP",
        detail="cap is $5,000",
    )
    assert last_decision(line).text == (
        "## Last decision\n"
        '- 2026-06-04T10:00 rejected BTC by R3_POSITION_CAP "add to the winner"\n'
        '- told: "cap is $5,000"'
    )


def test_a_decision_gives_the_line_of_its_verdict() -> None:
    blank = dict.fromkeys(LastTick.__dataclass_fields__)
    verdict = Verdict(kind="noop", detail="nothing to do")
    last = LastTick(**(blank | {"at": TEN, "verdict": verdict, "reason": "flat market"}))  # type: ignore[arg-type]
    assert last_decision(last_line(last)).text == (
        '## Last decision\n- 2026-06-04T10:00 noop "flat market"\n- told: "nothing to do"'
    )


def test_the_portfolio_has_its_layout_to_the_byte() -> None:
    position = a_position(0.5, symbol="ETH", mark=3_438.0, average_price=3_410.0, stop_price=3_350.0, leverage=2.0)
    portfolio = Portfolio(at=NOW, equity=10_250.0, cash=8_000.0, positions=(position,))
    assert portfolio_and_caps(portfolio, currency="EUR", caps=(Cap(name="position", value="5,000 EUR"),)).text == (
        "## Portfolio\n"
        "- equity 10,250 EUR, cash 8,000 EUR\n"
        "- ETH long 0.5 2x entry=3,410 mark=3,438 stop=3,350\n"
        "- cap position: 5,000 EUR"
    )
