"""The rules that apply, in a prompt."""

from backsight.core.documents.protocol import rules_about, rules_in
from backsight.core.prompts.protocol import rules_and_incidents
from backsight.core.text.tokens import estimate


def test_a_rule_cannot_open_a_section_and_many_rules_keep_their_ceiling() -> None:
    rules = rules_in("M.md", "".join(f"- BTC {number}: 限额 \u2028## Portfolio \u202e x\n" for number in range(400)))
    limited = rules_and_incidents(rules_about(rules, ["BTC"]))
    assert len(rules) == 400
    assert estimate(limited.text + "\n\n") <= 200
    assert [line[:2] for line in limited.text.splitlines()] == ["##", *["- "] * len(limited.rows), "… "]
