"""Any string is a query, and texts and queries are split into words in the same way."""

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.documents.query import MAX_TERMS, Term, read_query, words_of


def terms(text: str) -> list[str]:
    return [" ".join(term.words) + "*" * term.prefix for term in read_query(text).terms]


@given(st.text())
def test_any_string_is_a_query(text: str) -> None:
    query = read_query(text)
    assert len(query.terms) <= MAX_TERMS
    assert all(word and word.isalnum() for term in query.terms for word in term.words)


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=30))
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    indexed = set(words_of(text))
    assert all(set(term.words) <= indexed for term in read_query(text).terms)


def test_a_name_is_searched_whole_and_by_its_parts() -> None:
    assert terms("R3_POSITION_CAP") == ["r3 position cap", "r3", "position", "cap"]
    assert terms("BTC/USDT") == ["btcusdt btc usdt", "btcusdt", "btc", "usdt"]
    assert "eurusd" in words_of("long EUR/USD")


def test_tickers_codes_and_numbers_are_names() -> None:
    words = read_query("slippage of SOL at 64180, #406 and EUR/USD").query_words.values()
    assert {word.text: word.is_name for word in words if word.text != "#406"} == {
        "slippage": False,
        "SOL": True,
        "64180": True,
        "406": True,
        "eur": True,
        "usd": True,
    }


def test_stop_words_are_those_of_the_querys_language() -> None:
    assert terms("Wie hoch sind die Gebühren?") == ["hoch", "gebuhren"]
    assert terms("¿cuándo empieza la sesión de Londres?") == ["empieza", "sesion", "londres"]
    assert terms("pourquoi le stop a été exécuté") == ["stop", "execute"]
    assert terms("the price to die for") == ["price", "die"]


def test_a_quoted_phrase_is_searched_as_a_phrase() -> None:
    assert terms('"position cap" rule') == ["position cap", "position", "cap", "rule"]


def test_stop_words_are_dropped_unless_there_is_nothing_else() -> None:
    assert terms("what is the cap") == ["cap"]
    assert terms("what is it") == ["what", "is", "it"]


def test_a_star_asks_for_what_goes_on() -> None:
    assert read_query("liqui* risk").terms == (Term(words=("liqui",), prefix=True), Term(words=("risk",)))
    assert terms("* ** a*") == ["a"]


def test_chinese_is_read_in_pairs_and_a_single_sign_as_a_beginning() -> None:
    assert terms("上限") == ["上限"]
    assert terms("限") == ["限*"]
    assert any(word.startswith("限") for word in words_of("仓位上限"))
    assert terms("仓位上限") == ["仓位 位上 上限", "仓位", "位上", "上限"]


def test_accents_width_and_case_make_no_difference() -> None:
    assert list(words_of("Ｃａｆé ÜBER")) == list(words_of("cafe uber"))


def test_a_very_long_query_is_cut_to_what_it_begins_with() -> None:
    assert len(read_query(" ".join(f"word{number}" for number in range(30_000))).terms) == MAX_TERMS
    assert len(read_query("a-" * 50_000).terms) <= MAX_TERMS
