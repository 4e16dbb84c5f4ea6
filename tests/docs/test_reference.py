"""The reference is current."""

from pathlib import Path

from backsight.memory import OPERATIONS
from backsight.surfaces.reference import PATH, reference

ROOT = Path(__file__).parents[2]


def test_the_reference_is_current() -> None:
    assert (ROOT / PATH).read_text() == reference(), "run `make reference`"


def test_every_operation_and_argument_is_in_it() -> None:
    text = (ROOT / PATH).read_text()
    for name, operation in OPERATIONS.items():
        section = text.partition(f"### {name}\n")[2].partition("\n### ")[0]
        assert all(f"| `{argument}` |" in section for argument in operation.arguments.model_fields)
