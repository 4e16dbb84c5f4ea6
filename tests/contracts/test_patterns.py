"""Every regular expression is of linear cost, whatever text it is given."""

import re
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pkgutil import walk_packages
from time import process_time

import pytest

import backsight

SHORT, LONG = 10_000, 100_000
"""Characters of the texts that are timed."""
LINE_PATTERNS = {
    "backsight.core.documents.chunk.UNDERLINE",
    "backsight.core.documents.protocol.TABLE_RULE",
    "backsight.core.reflection.lessons._BULLET",
}
"""Patterns that are matched at the beginning of a text only, and never searched for in it."""
CHARACTERS = " a0-_.:/|#=*,+\n'\"@(A\u201c"
STARTS = ("", "# ", "- ", "|", "sk-", "eyJ", "a://", "0x", "-----BEGIN ", "api key", "1", "'", '"')
UNITS = (
    *CHARACTERS,
    *(first + second for first, second in product(" a0-_.:|#", repeat=2) if first != second),
    *("sk-a-", "-sk-", "sk-aaaaaaaaaa-", "eyJ-", "eyJaaaaaaaa.", "a://b:", "a://b:ccc", "-eyJaaaaaaaaa", "ghp_a"),
    *(
        "eyJ-" * 100 + ".",
        "secret=",
        "api key ",
        "0xa",
        "-----BEGIN A ",
        "xoxb-",
        "github_pat_",
        "1,000",
        "1e",
        "\u201ca",
        "a* ",
        "- a\n",
    ),
)
ENDS = ("", "!", "\nx")


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """The compiled patterns of every module, once each, with the name of the first place."""
    names: dict[tuple[str, int], tuple[str, re.Pattern[str]]] = {}
    for module in walk_packages(backsight.__path__, "backsight."):
        if "migrations" not in module.name and not module.name.endswith("__main__"):
            for name, value in vars(import_module(module.name)).items():
                for pattern in _compiled(value):
                    names.setdefault((pattern.pattern, pattern.flags), (f"{module.name}.{name}", pattern))
    yield from names.values()


def _compiled(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, dict | list | tuple | set | frozenset):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _compiled(each)


def _seconds(pattern: re.Pattern[str], text: str, *, searched: bool) -> float:
    started = process_time()
    pattern.match(text)
    pattern.fullmatch(text)
    if searched:
        for _ in pattern.finditer(text):
            pass
    return process_time() - started


def _text(start: str, unit: str, end: str, length: int) -> str:
    return start + (unit * (length // len(unit) + 1))[:length] + end


@pytest.mark.parametrize(("name", "pattern"), [pytest.param(*each, id=each[0]) for each in _patterns()])
def test_cost_is_linear(name: str, pattern: re.Pattern[str]) -> None:
    """A tenfold text takes about ten times as long; of quadratic cost it would take a hundred times as long."""
    searched = name not in LINE_PATTERNS
    costs = {
        (start, unit, end): _seconds(pattern, _text(start, unit, end, SHORT // 10), searched=searched)
        for start, unit, end in product(STARTS, UNITS, ENDS)
        if start == "" or (end == ENDS[1] and len(unit) == 1)
    }
    for parts in sorted(costs, key=costs.__getitem__)[-5:]:
        short = min(_seconds(pattern, _text(*parts, SHORT), searched=searched) for _ in range(2))
        assert short < 0.2, f"{name} takes {short:.2f} s for {SHORT:,} characters made of {parts}"
        long = _seconds(pattern, _text(*parts, LONG), searched=searched)
        assert long < 40 * short + 0.1, f"{name} takes {short:.3f} s, and {long:.3f} s for ten times {parts}"
