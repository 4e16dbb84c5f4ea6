"""A prompt over budget: which sections are cut, in which order, and that the cuts are reported."""

from importlib import import_module

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.decision import MEMORY, Segment
from backsight.core.prompts.budget import CUT_ORDER, FittedPrompt, Part, fit_to_budget
from backsight.core.prompts.sections import CEILINGS, Row, Section

HEADER = Segment(name="header", text="You are a trading agent.")
REVIEW = Segment(name="decisions_under_review", text="## Decisions under review\n- one\n- two")
ROWS = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), max_size=8)


def a_section(name: str, rows: int = 4) -> Section:
    lines = tuple(Row(f"- row {n} of what is said here") for n in range(rows))
    return Section(name=name, heading=f"## About {name.replace('_', ' ')}", rows=lines)


PARTS: list[Part] = [HEADER, *(a_section(name) for name in MEMORY)]


def tokens(text: str) -> int:
    """The larger count of cl100k and o200k."""
    openai = import_module("rs_bpe.bpe").openai  # no stubs, so not imported by name
    return max(int(tokenizer.count(text)) for tokenizer in (openai.cl100k_base(), openai.o200k_base()))


def names(prompt: FittedPrompt) -> list[str]:
    return [cut.name for cut in prompt.cuts]


def test_within_the_budget_every_section_is_kept_in_order() -> None:
    prompt = fit_to_budget(PARTS, budget=2_000)
    assert [segment.name for segment in prompt.segments] == ["header", *MEMORY]
    assert (prompt.cuts, prompt.fits) == ((), True)
    assert prompt == fit_to_budget(PARTS)


def test_the_first_to_give_way_loses_rows_before_the_next_one_does() -> None:
    whole = fit_to_budget(PARTS).tokens
    little, more = fit_to_budget(PARTS, budget=whole - 5), fit_to_budget(PARTS, budget=whole - 90)
    assert names(little) == ["what_usually_happens"]
    assert "… 1 more" in little.text or "… 2 more" in little.text
    assert names(more)[:2] == ["what_usually_happens", "how_you_trade"]
    assert more.cuts[0].whole


def test_cuts_are_listed_with_the_tokens_they_saved() -> None:
    whole = fit_to_budget(PARTS).tokens
    prompt = fit_to_budget(PARTS, budget=whole - 40)
    assert sum(cut.tokens for cut in prompt.cuts) == whole - prompt.tokens >= 40
    assert prompt.cuts[0].rows == 4


def test_a_segment_without_rows_gives_way_as_a_whole() -> None:
    prompt = fit_to_budget(
        [HEADER, REVIEW, a_section("plans")], budget=fit_to_budget([HEADER, a_section("plans")]).tokens
    )
    (cut,) = prompt.cuts
    assert (cut.name, cut.rows, cut.whole) == ("decisions_under_review", None, True)
    assert [segment.name for segment in prompt.segments] == ["header", "plans"]


def test_the_header_is_never_cut() -> None:
    prompt = fit_to_budget(PARTS, budget=0)
    assert [segment.name for segment in prompt.segments] == ["header"]
    assert not prompt.fits
    assert names(prompt) == [name for name in CUT_ORDER if name in MEMORY]


def test_every_section_with_a_ceiling_but_the_account_and_the_protocol_gives_way() -> None:
    assert set(CEILINGS) - set(CUT_ORDER) == {"portfolio", "protocol"}


@given(st.lists(st.tuples(st.sampled_from([*MEMORY, "market"]), ROWS), max_size=6), st.integers(0, 200))
def test_a_budget_holds_by_the_real_tokenizers(sections: list[tuple[str, list[str]]], budget: int) -> None:
    parts: list[Part] = [
        Section(name=name, heading="## Heading", rows=tuple(Row(f"- {row}") for row in rows)) for name, rows in sections
    ]
    prompt = fit_to_budget(parts, budget=budget)
    assert tokens(prompt.text) <= prompt.tokens
    assert prompt.fits == (prompt.tokens <= budget)
    assert prompt.fits or not [segment for segment in prompt.segments if segment.name in CUT_ORDER]
