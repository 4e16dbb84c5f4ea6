"""The reference is current."""

from pathlib import Path

from backsight.memory import OPERATIONS
from backsight.surfaces.reference import PATH, reference

ROOT = Path(__file__).parents[2]


def test_the_reference_is_current() -> None:
    assert (ROOT / PATH).read_text() == reference(), "run `make reference`"


def test_every_field_of_a_snapshot_and_an_order_is_in_it() -> None:
    text = (ROOT / PATH).read_text()
    for name, schema in OPERATIONS["close_tick"].input_schema["$defs"].items():
        section = text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        rows = {row.split("`")[1]: row.split(" | ") for row in section.split("\n") if row.startswith("| `")}
        assert set(rows) == set(schema["properties"])
        assert all(len(cells[-1]) > 10 for cells in rows.values()), name


def test_every_operation_and_argument_is_in_it() -> None:
    text = (ROOT / PATH).read_text()
    for name, operation in OPERATIONS.items():
        section = text.partition(f"### {name}\n")[2].partition("\n### ")[0]
        assert all(f"| `{argument}` |" in section for argument in operation.arguments.model_fields)
