"""Agents by name: a class in a file or a module, `strategies/breakout.py:Breakout` or `package.module:Breakout`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Protocol

from backsight.core.decision import Decided, Sight
from backsight.core.errors import BacksightError, Invalid, NotFound, did_you_mean
from backsight.core.strategies import MemoryOverrides

EXAMPLES = ("volatility_breakout.py", "intraday_momentum.py", "mean_reversion.py")


SAID = ("name", "thesis", "rules", "avoid", "decide")


class Authored(Protocol):
    """A strategy in code: an agent that says what it is.

    One that never looks at what memory shows says so with `reads_memory = False`: then nothing is put together for it,
    which takes most of the time of a tick.
    """

    name: str
    thesis: str
    rules: tuple[str, ...]
    avoid: tuple[str, ...]

    def decide(self, sight: Sight) -> Decided: ...


def load_agent(named: str) -> Authored:
    """The strategy of this name, made with its defaults."""
    place, _, wanted = named.rpartition(":")
    if not place or not wanted:
        raise Invalid(f"{named!r} names no class; give file.py:Class or module:Class", field="strategy")
    module = _module(place)
    made = getattr(module, wanted, None)
    if not isinstance(made, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise NotFound(f"no class {wanted!r} in {place}; {did_you_mean(wanted, classes)}", field="strategy")
    lacking = [name for name in SAID if not hasattr(made, name)]
    if lacking:
        raise Invalid(
            f"{wanted!r} lacks {', '.join(lacking)}; a strategy says what it is and decides", field="strategy"
        )
    try:
        agent: Authored = made()
    except TypeError as error:
        raise Invalid(f"{wanted!r} cannot be made: {error}; give its parameters defaults", field="strategy") from None
    return agent


def memory_for(agent: Authored) -> MemoryOverrides | None:
    """How a deployment of this agent uses memory: as its strategy says, unless it does not read any."""
    return None if getattr(agent, "reads_memory", True) else MemoryOverrides(enabled=False)


def example(file: str) -> Path:
    """Where an example strategy is: beside the installed package, or in the checkout."""
    here = Path(__file__).parents[1]
    found = [folder / file for folder in (here / "examples", here.parents[1] / "examples") if (folder / file).exists()]
    if not found:
        raise NotFound(f"no example {file!r}; known: {', '.join(EXAMPLES)}", field="strategy")
    return found[0]


def _module(place: str) -> ModuleType:
    try:
        return _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except BacksightError:
        raise
    except ModuleNotFoundError as error:
        raise NotFound(f"{place}: {error}; check the name", field="strategy") from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NotFound(f"no file {str(path)!r}; give the path of a Python file", field="strategy")
    spec = importlib.util.spec_from_file_location(f"backsight_agent_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise Invalid(f"{str(path)!r} is not a Python file; give one", field="strategy")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module
