"""The walks name files, functions and classes that exist."""

import importlib
import re
from pathlib import Path

import pytest

from backsight.memory import OPERATIONS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "backsight"
WALKS = (ROOT / "docs" / "walks.md").read_text()
NAMES = sorted(set(re.findall(r"`([a-z][\w/]*(?:\.\w+)*)`", re.sub(r"```.*?```", "", WALKS, flags=re.DOTALL))))
ARGUMENTS = {name for operation in OPERATIONS.values() for name in operation.arguments.model_fields}
FIELDS = {"recall"}
"""Fields of answers that the walks name."""


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_the_walks_exists(name: str) -> None:
    if name.endswith(".py") or (SOURCE / name).is_dir() or name == "src/backsight":
        assert (SOURCE / name).exists() or (ROOT / name).exists()
    elif "/" in name or "." in name:
        module, *attributes = name.split(".")
        value: object = importlib.import_module(f"backsight.{module.replace('/', '.')}")
        for attribute in attributes:
            value = getattr(value, attribute)
    else:
        assert name in OPERATIONS or name in ARGUMENTS or name in FIELDS


def test_classes_without_a_module_are_errors() -> None:
    errors = importlib.import_module("backsight.core.errors")
    for name in set(re.findall(r"`([A-Z][a-z]\w+)`", WALKS)):
        assert hasattr(errors, name)


def test_there_is_something_to_check() -> None:
    assert len(NAMES) > 60
