"""Every operation keeps the shape that the surfaces are made from."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import typing

import pytest

import backsight.ops
from backsight.memory import OPERATIONS, Memory
from backsight.operation import Operation, operation_of

ALL = list(OPERATIONS.values())


def marked() -> dict[str, Operation]:
    """Every function in `ops` that is marked as an operation."""
    modules = [
        importlib.import_module(f"backsight.ops.{module.name}")
        for module in pkgutil.iter_modules(backsight.ops.__path__)
    ]
    return {
        operation.name: operation
        for module in modules
        for function in vars(module).values()
        if inspect.isfunction(function) and (operation := operation_of(function)) is not None
    }


def test_every_marked_function_is_listed_in_memory() -> None:
    assert marked() == OPERATIONS


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_an_operation_takes_its_arguments_by_name_each_with_a_meaning(operation: Operation) -> None:
    context, *arguments = inspect.signature(operation.function).parameters.values()
    assert context.name == "ctx"
    for argument in arguments:
        assert argument.kind is argument.KEYWORD_ONLY
        assert str(operation.arguments.model_fields[argument.name].description).endswith(".")


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_an_operation_answers_with_a_frozen_dataclass(operation: Operation) -> None:
    answer = typing.get_type_hints(operation.function)["return"]
    assert dataclasses.is_dataclass(answer)
    assert vars(answer)["__dataclass_params__"].frozen


@pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.name)
def test_an_operation_says_in_one_sentence_what_it_does(operation: Operation) -> None:
    assert re.fullmatch(r"[A-Z](?:[^.]|\.\b)*\.", operation.summary), operation.summary


@pytest.mark.parametrize("operation", [each for each in ALL if each.noun not in ("admin",)], ids=lambda each: each.name)
def test_every_read_takes_both_instants(operation: Operation) -> None:
    if operation.kind == "query":
        instants: dict[str, set[str]] = {
            "open_tick": {"at", "seen_at"},
            "explain_recall": {"recall"},  # which holds those of the recall
            "index_health": set(),  # which is of the index, and not of what it holds
        }
        assert instants.get(operation.name, {"as_of", "seen_at"}) <= set(operation.arguments.model_fields)


def test_the_methods_of_memory_are_typed() -> None:
    assert typing.get_type_hints(Memory.remember_trade)["return"].__name__ == "RememberedTrade"
    assert inspect.signature(Memory.recall_memories).parameters["limit"].default == 10
