"""No line is lost or cut, and each chunk names its lines."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from backsight.core.documents.chunk import MAX_TOKENS, MIN_TOKENS, chunks_of, lines_of, tokens_of

LINES = st.one_of(
    st.text(max_size=40),
    st.text(alphabet="# =-`~|>*\t ab1", max_size=30),
    st.sampled_from(
        ["# Rules", "## R3_POSITION_CAP", "```python", "```", "~~~", "| a | b |", "|---|---|", "---", "==="]
    ),
    st.sampled_from(["word " * 300, "x" * 5_000, "限额 " * 400, "\u2028", "\x0c", "\x85", "\ud800", ""]),
)
TEXTS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r", ""])), max_size=60).map(
    lambda parts: "".join(line + end for line, end in parts)
)


@given(text=TEXTS, markdown=st.booleans())
def test_the_chunks_of_a_document_one_after_the_other_are_the_document(text: str, markdown: bool) -> None:
    chunks = chunks_of(text, markdown=markdown)
    assert "".join(chunk.text for chunk in chunks) == text
    assert not chunks or (chunks[0].start_line, chunks[-1].end_line) == (1, len(lines_of(text)))
    assert all(after.start_line == before.end_line + 1 for before, after in pairwise(chunks))


@given(text=TEXTS, markdown=st.booleans())
def test_the_lines_of_a_chunk_are_its_snippet(text: str, markdown: bool) -> None:
    lines = lines_of(text)
    for chunk in chunks_of(text, markdown=markdown):
        assert "".join(lines[chunk.start_line - 1 : chunk.end_line]) == chunk.text


@given(text=TEXTS, markdown=st.booleans())
def test_a_chunk_is_no_larger_than_it_may_be_unless_it_is_one_line(text: str, markdown: bool) -> None:
    for chunk in chunks_of(text, markdown=markdown):
        assert chunk.start_line == chunk.end_line or sum(map(tokens_of, lines_of(chunk.text))) <= MAX_TOKENS


@given(text=TEXTS)
def test_no_two_neighbours_are_so_small_that_they_should_be_one(text: str) -> None:
    sizes = [sum(map(tokens_of, lines_of(chunk.text))) for chunk in chunks_of(text, markdown=False)]
    assert all(before + after > MAX_TOKENS or max(before, after) >= MIN_TOKENS for before, after in pairwise(sizes))


def section(name: str, words: int) -> str:
    return f"{name}\n\n" + "word " * words + "\n\n"


def test_a_chunk_knows_the_headings_above_it() -> None:
    text = section("# Manual", 450) + section("## Risk", 700) + section("### Cap", 500) + section("## Exits", 600)
    assert [chunk.heading for chunk in chunks_of(text)] == [
        ("Manual",),
        ("Manual", "Risk"),
        ("Manual", "Risk", "Cap"),
        ("Manual", "Exits"),
    ]


def test_small_sections_are_joined_under_what_they_share() -> None:
    text = "# Manual\n\n" + "".join(section(f"## R{number}", 100) for number in range(8))
    first, second = chunks_of(text)
    assert first.heading == second.heading == ("Manual",)
    assert first.text.endswith("word \n\n")
    assert second.text.startswith("## R4")


def test_a_hash_in_code_is_no_heading() -> None:
    (chunk,) = chunks_of("# Real\n\n```sh\n# not one\n```\n")
    assert chunk.heading == ("Real",)
    (plain,) = chunks_of("# a comment\nx = 1\n", markdown=False)
    assert plain.heading == ()


def test_an_underlined_line_is_a_heading_and_front_matter_is_not() -> None:
    assert chunks_of("Risk\n====\n\ntext\n")[0].heading == ("Risk",)
    assert chunks_of("---\ntitle: x\n---\n\ntext\n")[0].heading == ()


def test_a_table_that_fits_is_not_cut() -> None:
    table = "".join(f"| row {number} | value {number} |\n" for number in range(60))
    text = section("# A", 700) + table
    assert [chunk.text for chunk in chunks_of(text)][-1] == table


def test_a_line_larger_than_a_chunk_is_a_chunk() -> None:
    chunks = chunks_of("a\n\n" + "y" * 100_000 + "\n\nb\n")
    assert max(chunks, key=lambda chunk: len(chunk.text)).start_line == 3
