"""Secrets are refused at the door in every free text, and text about trading is not."""

from typing import Any

import pytest

from backsight.core.errors import Refused
from backsight.core.secret_text import is_seed_phrase, refuse_secrets, secret_in, without_secrets
from backsight.memory import open_memory
from backsight.testing import T0, FakeClock, a_trade_call

KEY = "BINANCE_API_KEY=a1b2c3d4e5f6a7b8"


@pytest.mark.parametrize(
    "text",
    [
        "use sk-proj-abcdefghij0123456789xyz",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "a1" * 20,
        "-----BEGIN RSA PRIVATE KEY-----",
        "API_KEY: 9f8e7d6c5b4a",
        "password = hunter2hunter2",
        "postgresql://me:secret@host/db",
        "0x" + "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "first line\nsecret_key='abcd1234efgh'",
        "BINANCE_API_KEY=vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A",
        "export X_API_SECRET: kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw",
        "METAAPI_TOKEN=abcdefghijkl",
        'config = {"apiKey": "a1b2c3d4e5f6a7b8"}',
        "curl -H 'Authorization: Bearer 0a1b2c3d4e5f6071'",
        "bsk.bWU." + "A" * 43,
        "OKX_PASSPHRASE=correct-horse",
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
        "seed phrase: zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong",
        "1. letter 2. advice 3. cage 4. absurd 5. amount 6. doctor 7. acoustic 8. avoid 9. letter 10. advice 11. cage"
        " 12. above",
        " ".join(["hamster diagram private dutch cause delay private meat slide toddler razor book"] * 2),
    ],
)
def test_a_text_that_looks_like_a_key_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="looks like it contains"):
        refuse_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "Key level at 3,410; the password to this market is patience.",
        "order 7c9e6679-7425-40de-944b-e07fc1f90ae7 filled",
        "R3_POSITION_CAP applies to BTC/USDT, see #406",
        "risk-adjusted-return-over-the-whole-period was fine",
        "https://example.com/report?id=12345678",
        "The secret: discipline. Key: support at 5170.25, resistance at 5190.50.",
        "token: PEPE, token=1000SHIB/USDT; the access key level is 3,410.25",
        "bearer bonds fell 12 % after the auction of 2026-06-04",
        "tx hash 0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318 confirmed",
        "trend strong volume rising breakout clean stop below range target prior high",
        "wait for the retest and then enter with half the size below that high",
        "Stopped out: entry 5175, stop 5170, -1.0R; session=london, regime=trending_up",
        "passing the level; mnemonic for the setup: Buy The Dip",
        '{"field": "confidence", "op": ">=", "value": 0.5}',
    ],
)
def test_a_note_about_trading_is_no_key(text: str) -> None:
    refuse_secrets(text)


def test_a_line_of_other_words_is_no_seed_phrase() -> None:
    assert not is_seed_phrase("Legal Winner Thank Year Wave Sausage Worth Useful Legal Winner Thank Yellow")
    assert not is_seed_phrase("legal winner thank year wave sausage worth useful legal winner thank")
    assert not is_seed_phrase("word " * 1000)


def test_what_must_be_recorded_loses_the_line_only() -> None:
    assert without_secrets("filled") == "filled"
    recorded = without_secrets(f"filled\n{KEY}\nat 10")
    assert recorded == "filled\n[line removed: it looked like a key]\nat 10"
    assert secret_in(recorded) is None


def test_a_citation_that_a_model_gave_is_recorded_without_its_secret() -> None:
    call: dict[str, Any] = {"symbol": "X", "direction": "long", "strategy_name": "S", "horizon_hours": 4.0}
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        memory.record_decision(**call, reasoning="breaks", citations=["SOUL.md:3", KEY])
        assert KEY not in str(memory.export_audit().links)
        assert "[line removed: it looked like a key]" in str(memory.export_audit().links)


@pytest.mark.parametrize(
    ("operation", "field", "arguments"),
    [
        ("remember_trade", "reflection", a_trade_call(reflection=KEY)),
        ("remember_trade", "market_context", a_trade_call(market_context=KEY)),
        ("remember_trade", "tags", a_trade_call(tags=["fine", KEY])),
        ("remember_inaction", "reason", {"symbol": "X", "strategy_name": "S", "reason": KEY}),
        ("add_belief", "proposition", {"proposition": KEY}),
        ("create_trading_plan", "reasoning", {"trigger_condition": {}, "planned_action": {}, "reasoning": KEY}),
        (
            "create_trading_plan",
            "planned_action",
            {"trigger_condition": {}, "planned_action": {"note": {"text": [KEY]}}, "reasoning": "r"},
        ),
        ("save_strategy", "rules", {"name": "S", "rules": ["enter", KEY]}),
        ("save_strategy", "name", {"name": KEY}),
        ("open_account", "venue", {"venue": KEY, "name": "main"}),
        ("append_note", "text", {"text": KEY, "agent": "a"}),
        ("propose_edit", "reason", {"path": "SOUL.md", "text": "# S", "reason": KEY, "agent": "a"}),
    ],
)
def test_every_free_text_is_looked_through(operation: str, field: str, arguments: dict[str, Any]) -> None:
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        with pytest.raises(Refused, match=f"{field}: line 1 looks like it contains a key"):
            getattr(memory, operation)(**arguments)
        assert memory.export_audit().links == ()
