"""Loading strategy classes by name: `strategies/breakout.py:Breakout` or `package.module:Breakout`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Protocol

from backsight.core.decision import AgentDecision, AgentInput
from backsight.core.errors import BacksightError, Invalid, NotFound, did_you_mean
from backsight.core.strategies import MemoryOverrides

EXAMPLES = ("volatility_breakout.py", "intraday_momentum.py", "mean_reversion.py")
REQUIRED_ATTRIBUTES = ("name", "thesis", "rules", "avoid", "decide")


class CodedStrategy(Protocol):
    """A strategy written as a Python class: an agent with a name, a thesis and rules.

    A strategy that never reads memory sets `reads_memory = False`. Its ticks assemble no prompt, which takes most of
    the time of a tick, unless it asks for `agent_input.opened`.
    """

    name: str
    thesis: str
    rules: tuple[str, ...]
    avoid: tuple[str, ...]

    def decide(self, agent_input: AgentInput) -> AgentDecision: ...


def load_agent(reference: str) -> CodedStrategy:
    """An instance of the strategy class that `file.py:Class` or `module:Class` names, made with its defaults."""
    strategy_class = load_class(reference, field="strategy")
    class_name = strategy_class.__name__
    missing = [name for name in REQUIRED_ATTRIBUTES if not hasattr(strategy_class, name)]
    if missing:
        needed = ", ".join(REQUIRED_ATTRIBUTES)
        raise Invalid(f"{class_name!r} lacks {', '.join(missing)}; a strategy class has {needed}", field="strategy")
    try:
        agent: CodedStrategy = strategy_class()
    except TypeError as error:
        message = f"{class_name!r} cannot be created: {error}; give every parameter a default"
        raise Invalid(message, field="strategy") from None
    return agent


def load_class(reference: str, *, field: str) -> type:
    """The class that `file.py:Class` or `module:Class` names; `field` is the argument that an error names."""
    place, _, class_name = reference.rpartition(":")
    if not place or not class_name:
        raise Invalid(f"{reference!r} names no class; give file.py:Class or module:Class", field=field)
    module = _module(place, field=field)
    loaded = getattr(module, class_name, None)
    if not isinstance(loaded, type):
        classes = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise NotFound(f"no class {class_name!r} in {place}; {did_you_mean(class_name, classes)}", field=field)
    return loaded


def memory_for(agent: CodedStrategy) -> MemoryOverrides | None:
    """The memory settings of a deployment of this agent: memory is off if the agent does not read any."""
    return None if getattr(agent, "reads_memory", True) else MemoryOverrides(enabled=False)


def example(file: str) -> Path:
    """The path of an example strategy: in the installed package, or in a checkout of the repository."""
    package = Path(__file__).parents[1]
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / file).exists():
            return folder / file
    raise NotFound(f"no example {file!r}; known: {', '.join(EXAMPLES)}", field="strategy")


def _module(place: str, *, field: str) -> ModuleType:
    try:
        return _module_from_file(Path(place), field=field) if place.endswith(".py") else importlib.import_module(place)
    except BacksightError:
        raise
    except ModuleNotFoundError as error:
        raise NotFound(f"{place}: {error}; check the name", field=field) from None


def _module_from_file(path: Path, *, field: str) -> ModuleType:
    if not path.is_file():
        raise NotFound(f"no file {str(path)!r}; give the path of a Python file", field=field)
    spec = importlib.util.spec_from_file_location(f"backsight_agent_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise Invalid(f"{str(path)!r} is not a Python file; give the path of one", field=field)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module
