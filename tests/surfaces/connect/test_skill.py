"""The agent skill is short, and names only what a trader has."""

import re
from importlib import import_module

from backsight.audience import OFFERED
from backsight.memory import OPERATIONS
from backsight.surfaces.connect.connecting import skill_text

CODE = re.compile(r"`([a-z_]+)`")
KINDS = {"sized", "no_recommendation", "no_edge", "not_now"}
"""What `position_size` answers (spec: a forgiving edge)."""
MOST_TOKENS = 800


def tokens(text: str) -> int:
    """The larger count of cl100k and o200k."""
    openai = import_module("rs_bpe.bpe").openai  # no stubs, so not imported by name
    return max(int(tokenizer.count(text)) for tokenizer in (openai.cl100k_base(), openai.o200k_base()))


def test_the_skill_begins_with_its_name_and_when_to_use_it() -> None:
    beginning, _, body = skill_text().removeprefix("---\n").partition("---\n")
    fields = dict(line.split(": ", 1) for line in beginning.splitlines())
    assert set(fields) == {"name", "description"}
    assert fields["name"] == "backsight"
    assert len(fields["description"]) < 300
    assert body.startswith("\n# ")


def test_the_skill_is_short() -> None:
    assert tokens(skill_text()) <= MOST_TOKENS


def test_every_tool_and_argument_of_the_skill_exists() -> None:
    tools, arguments = set(), set()
    for paragraph in re.split(r"\n(?=- |\d\. |\n)", skill_text()):
        named = CODE.findall(paragraph)
        operations = [OPERATIONS[name] for name in named if name in OPERATIONS]
        tools |= {operation.name for operation in operations}
        words = set(named) - {operation.name for operation in operations} - KINDS - {"as_of"}
        if words:
            (operation,) = operations
            assert words <= set(operation.input_schema["properties"]), operation.name
            arguments |= words
    assert {"recall_memories", "remember_trade", "position_size", "record_decision"} <= tools
    assert all("trader" in OPERATIONS[name].audience for name in tools)
    assert tools - {"get_trade"} <= set(OFFERED["trader"] or ())
    assert {"symbol", "reflection", "idempotency_key", "trigger_condition"} <= arguments
