"""A budget that is too low: who gives way, in which order, and that it is said."""

from importlib import import_module

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.decision import MEMORY, Segment
from backsight.core.prompts.budget import GIVES_WAY, Budgeted, Part, within
from backsight.core.prompts.sections import CEILINGS, Row, Section

HEADER = Segment(name="header", text="You are a trading agent.")
REVIEW = Segment(name="decisions_under_review", text="## Decisions under review\n- one\n- two")
ROWS = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), max_size=8)


def a_section(name: str, rows: int = 4) -> Section:
    said = tuple(Row(f"- row {n} of what is said here") for n in range(rows))
    return Section(name=name, heading=f"## About {name.replace('_', ' ')}", rows=said)


PARTS: list[Part] = [HEADER, *(a_section(name) for name in MEMORY)]


def tokens(text: str) -> int:
    """The larger count of cl100k and o200k."""
    openai = import_module("rs_bpe.bpe").openai  # no stubs, so not imported by name
    return max(int(tokenizer.count(text)) for tokenizer in (openai.cl100k_base(), openai.o200k_base()))


def names(budgeted: Budgeted) -> list[str]:
    return [cut.name for cut in budgeted.cuts]


def test_with_room_enough_everything_is_shown_in_its_order() -> None:
    shown = within(PARTS, budget=2_000)
    assert [segment.name for segment in shown.segments] == ["header", *MEMORY]
    assert (shown.cuts, shown.fits) == ((), True)
    assert shown == within(PARTS)


def test_the_first_to_give_way_loses_rows_before_the_next_one_does() -> None:
    whole = within(PARTS).tokens
    little, more = within(PARTS, budget=whole - 5), within(PARTS, budget=whole - 90)
    assert names(little) == ["what_usually_happens"]
    assert "… 1 more" in little.text or "… 2 more" in little.text
    assert names(more)[:2] == ["what_usually_happens", "recent_trades"]
    assert more.cuts[0].whole


def test_what_is_cut_is_listed_with_what_that_saved() -> None:
    whole = within(PARTS).tokens
    shown = within(PARTS, budget=whole - 40)
    assert sum(cut.tokens for cut in shown.cuts) == whole - shown.tokens >= 40
    assert shown.cuts[0].rows == 4


def test_a_segment_without_rows_gives_way_as_a_whole() -> None:
    shown = within([HEADER, REVIEW, a_section("plans")], budget=within([HEADER, a_section("plans")]).tokens)
    (cut,) = shown.cuts
    assert (cut.name, cut.rows, cut.whole) == ("decisions_under_review", None, True)
    assert [segment.name for segment in shown.segments] == ["header", "plans"]


def test_what_an_agent_is_never_gives_way() -> None:
    shown = within(PARTS, budget=0)
    assert [segment.name for segment in shown.segments] == ["header"]
    assert not shown.fits
    assert names(shown) == [name for name in GIVES_WAY if name in MEMORY]


def test_every_section_with_a_ceiling_but_the_account_gives_way() -> None:
    assert set(CEILINGS) - set(GIVES_WAY) == {"portfolio"}


@given(st.lists(st.tuples(st.sampled_from([*MEMORY, "market"]), ROWS), max_size=6), st.integers(0, 200))
def test_a_budget_holds_by_the_real_tokenizers(told: list[tuple[str, list[str]]], budget: int) -> None:
    parts: list[Part] = [
        Section(name=name, heading="## Heading", rows=tuple(Row(f"- {row}") for row in rows)) for name, rows in told
    ]
    shown = within(parts, budget=budget)
    assert tokens(shown.text) <= shown.tokens
    assert shown.fits == (shown.tokens <= budget)
    assert shown.fits or not [segment for segment in shown.segments if segment.name in GIVES_WAY]
