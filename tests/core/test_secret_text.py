"""Secrets are refused at the door in every free text, and text about trading is not."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backsight.core.decision import Verdict
from backsight.core.errors import Refused
from backsight.core.secret_text import is_seed_phrase, refuse_secrets, secret_in, without_secrets
from backsight.memory import open_memory
from backsight.testing import T0, FakeClock, a_snapshot, a_trade_call
from support import deployed

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
        "the API key is Zx81kdkA991jdkd",
        "der API-Key ist Zx81kdkA991jdkd",
        'config = {"apiKey": "a1b2c3d4e5f6a7b8"}',
        "curl -H 'Authorization: Bearer 0a1b2c3d4e5f6071'",
        "bsk.bWU." + "A" * 43,
        "OKX_PASSPHRASE=correct-horse",
        "legal winner thank year wave sausage worth useful legal winner thank yellow",
        "seed phrase: zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo zoo wrong",
        "1. letter 2. advice 3. cage 4. absurd 5. amount 6. doctor 7. acoustic 8. avoid 9. letter 10. advice 11. cage"
        " 12. above",
        "letter advice cage absurd amount doctor acoustic avoid broken trade long exit",
        "Seed phrase: Legal Winner Thank Year Wave Sausage Worth Useful Legal Winner Thank Yellow",
        '{"seed": "legal winner thank year wave sausage worth useful legal winner thank yellow"}',
        "> `legal winner thank year wave sausage worth useful legal winner thank yellow`",
        "these: 1) letter 2) advice 3) cage 4) absurd 5) amount 6) doctor 7) acoustic 8) avoid 9) letter 10) advice"
        " 11) cage 12) above",
        "abaisser académie accabler abandon accolade accroche acerbe achat acheter aciduler acier affiche",
        unicodedata.normalize("NFD", "ábaco abdomen abeja acción acné ácido aéreo abuelo árbol otoño uña vía"),
        "abaco abbaglio abbinato abete abisso abolire abrasivo abrogato accadere accenno accusato acetone",
        "abdikace abeceda adresa agrese akce aktovka alej alkohol amputace ananas andulka anekdota",
        "あいだ　あおぞら　あかちゃん　あきる　あけがた　あける　あこがれる　あさい　あさひ　あした　あずかる　あそぶ",
        "가격 가끔 가난 가능 가득 가르침 가뭄 가방 가상 가슴 가운데 가을",
        unicodedata.normalize("NFD", "가격 가끔 가난 가능 가득 가르침 가뭄 가방 가상 가슴 가운데 가을"),
        "助记词：的 一 是 在 不 了 有 和 人 这 中 大",
        "的 一 是 在 不 了 有 和 人 这 中 大",
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
        "the secret is patience: the access key is 3,410.25, and the api key is rotated every 90 days",
        "bearer bonds fell 12% after the auction of 2026-06-04",
        "tx hash 0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318 confirmed",
        "trend strong volume rising breakout clean stop below range target prior high",
        "wait for the retest and then enter with half the size below that high",
        "Stopped out: entry 5175, stop 5170, -1.0R; session=london, regime=trending_up",
        "passing the level; mnemonic for the setup: Buy The Dip",
        "warten auf den retest und dann mit halber größe über dem hoch",
        "attendre le retour sous les plus hauts puis entrer avec une demi taille seulement après midi",
        "오늘 시장은 계속 상승했다 우리는 포지션을 유지하고 손절을 아래로 내렸다 그리고 내일을 기다린다",
        "今天 市场 上涨 我们 继续 持有 多单 止损 上移 目标 前高 不变",
        "watch list:\ngold\nsilver\ncopper\nbrent\nwheat\ncorn\ncocoa\nsugar\ncotton\nlumber\ncattle\ncoffee",
        '{"field": "confidence", "op": ">=", "value": 0.5}',
    ],
)
def test_a_note_about_trading_is_no_key(text: str) -> None:
    refuse_secrets(text)


def test_a_line_of_other_words_is_no_seed_phrase() -> None:
    assert not is_seed_phrase("Legal Winner Thank Year Wave Sausage Worth Useful Legal Winner Thank Yellow")
    assert not is_seed_phrase("legal winner thank year wave sausage worth useful legal winner thank")
    assert not is_seed_phrase("word " * 1000)


SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.mark.parametrize(
    "text",
    [
        "My wallet:\n" + SEED.replace(" ", "\n"),
        "These:\n\n" + "\n".join(f"{number}. {word}" for number, word in enumerate(SEED.split(), 1)),
        "I wrote down\n\n" + SEED.replace(" sausage ", " sausage\n") + "\n\nand went home.",
    ],
)
def test_a_seed_phrase_over_several_lines_is_one(text: str) -> None:
    assert secret_in(text) is not None
    assert "winner" not in without_secrets(text)


def test_a_private_key_is_removed_whole() -> None:
    key = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIGJk\nAwEHoUQD\n-----END EC PRIVATE KEY-----"
    removed = "[line removed: it looked like a private key]"
    assert without_secrets(f"before\n{key}\nafter").split("\n") == ["before", *[removed] * 4, "after"]
    assert "MHcC" not in without_secrets(key.rpartition("\n")[0])


@given(st.lists(st.sampled_from([KEY, "api_key:", "a1b2c3d4e5f6a7b8", SEED, *SEED.split(), "wallet:", "", "fine."])))
def test_nothing_that_is_refused_is_recorded(lines: list[str]) -> None:
    assert secret_in(without_secrets("\n".join(lines))) is None


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


def test_ids_of_memories_that_a_model_gave_are_recorded_without_their_secret() -> None:
    with open_memory("sqlite://", clock=FakeClock(T0)) as memory:
        deployed(memory)
        tick: dict[str, Any] = {"at": T0, "before": a_snapshot(at=T0), "verdict": Verdict(kind="noop")}
        decision = memory.close_tick(deployment="VolBreakout@main", **tick, recalled=["a memory", KEY]).decision
        assert decision.recalled == ("a memory", "[line removed: it looked like a key]")


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
