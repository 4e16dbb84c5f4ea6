"""Names say what kind of thing they name: no bare participle, one class per class name, few parameters, a pure core."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from backsight.memory import OPERATIONS

SOURCE = Path(__file__).parents[2] / "src" / "backsight"
TREES = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}

BANNED = frozenset(
    ["told", "held", "asked", "found", "said", "stands", "home", "looked", "kept", "shown", "seen", "ended"]
)
PUBLIC = frozenset({"shown"})
"""Arguments of operations."""
FIELDS = frozenset({"asked", "found", "shown"})
"""Fields of stored JSON: the audit chain covers their names."""
LIBRARY = frozenset({".home"})
"""Attributes of the standard library: `Path.home`."""
MOST_PARAMETERS = 8
DECLARATIONS = frozenset({"store/mapping.py:noun"})
"""A table's declaration: every parameter is an option of it, and is named where it is used."""


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name in a module with its line; names of attributes, fields and keywords begin with a dot."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.lineno, f".{node.id}" if id(node) in fields else node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.value.lineno, f".{node.arg}"
        elif isinstance(node, ast.Attribute):
            yield node.lineno, f".{node.attr}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def is_banned(name: str) -> bool:
    allowed = {f".{field}" for field in FIELDS} | PUBLIC | LIBRARY
    return name.strip("._").lower() in BANNED and name not in allowed


def test_no_participle_stands_for_a_noun() -> None:
    uses = {
        path: [f"line {line}: {name}" for line, name in names(tree) if is_banned(name)] for path, tree in TREES.items()
    }
    assert {path: lines for path, lines in uses.items() if lines} == {}


def test_no_module_is_named_by_a_participle() -> None:
    assert [path for path in TREES if is_banned(Path(path).stem)] == []


def test_a_class_name_is_used_for_one_class() -> None:
    classes = defaultdict(list)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(path)
    assert {name: paths for name, paths in classes.items() if len(paths) > 1} == {}


def test_only_operations_have_many_parameters() -> None:
    many = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_operation(path, node.name):
                arguments = node.args
                parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                count = len([each for each in parameters if each.arg not in ("self", "cls")])
                if count > MOST_PARAMETERS:
                    many[f"{path}:{node.name}"] = count
    assert {name: count for name, count in many.items() if name not in DECLARATIONS} == {}


def is_operation(path: str, name: str) -> bool:
    return name in OPERATIONS and path.startswith(f"ops/{OPERATIONS[name].noun}")


def test_core_has_no_locks_and_no_addresses_of_providers() -> None:
    for path, tree in TREES.items():
        if path.startswith("core/"):
            assert not imported_packages(tree) & {"threading", "multiprocessing", "asyncio", "socket"}, path
            texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
            assert [text for text in texts if isinstance(text, str) and re.match(r"https?://[\w.]", text)] == [], path


def imported_packages(tree: ast.AST) -> set[str]:
    modules = [
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    return {module.partition(".")[0] for module in modules}
