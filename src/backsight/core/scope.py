"""Scope: which deployment and which mode an answer is about, also where the caller names neither."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from backsight.core.portfolio import MODES, Mode
from backsight.core.strategies import Deployment
from backsight.core.text.counts import count_of

NAMES_LISTED = 5
PLACES_LISTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScope:
    """A deployment and a mode, and the defaults that were taken to find them."""

    deployment: Deployment | None
    """The deployment whose mood and plans count: the named one, or the only one; None if there is none, or several."""
    evidence_of: Deployment | None
    """The named deployment: only its trades count. None if none is named: then no trade is left out for its deployment,
    so that a trade of another deployment never hides one."""
    deployments: tuple[Deployment, ...]
    """The named deployment, or all that the caller may have meant."""
    mode: Mode
    deployment_notes: tuple[str, ...]
    """Sentences on the deployment that was taken by default."""
    mode_notes: tuple[str, ...]
    """Sentences on the mode that was taken by default, and on the trades that it leaves out."""
    neutral_because: str | None
    """Why no mood is known; None if it is the mood of the deployment."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on all defaults that were taken."""
        return self.deployment_notes + self.mode_notes

    @property
    def strategy_name(self) -> str | None:
        """The strategy of the named deployment, or of all deployments."""
        names = {each.strategy_name for each in self.deployments}
        return next(iter(names)) if len(names) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeQuery:
    """What a caller names of a scope; None where nothing is named."""

    deployment: Deployment | None = None
    strategy_name: str | None = None
    mode: Mode | None = None
    all_modes: bool = False
    """Whether the caller asks for the trades of all modes together."""


def candidates_for(query: ScopeQuery, deployments: Sequence[Deployment]) -> tuple[Deployment, ...]:
    """The deployments that a caller may mean: the named one, else those of the named strategy and mode."""
    if query.deployment is not None:
        return (query.deployment,)
    return tuple(
        each
        for each in deployments
        if query.strategy_name in (None, each.strategy_name) and query.mode in (None, each.mode)
    )


def needs_trade_counts(query: ScopeQuery, candidates: Sequence[Deployment]) -> bool:
    """Whether the mode depends on where there are trades: nobody names it and the deployments differ in it."""
    return query.mode is None and not query.all_modes and len({each.mode for each in candidates}) > 1


def only_deployment(candidates: Sequence[Deployment]) -> Deployment | None:
    """The only deployment that a caller can mean; None if there is none, or if there are several.

    The one for trades that are reported without a deployment never counts as a second one.
    """
    run = [each for each in candidates if not each.is_manual] or candidates
    return run[0] if len(run) == 1 else None


def first_to_read(candidates: Sequence[Deployment], used: Collection[str]) -> list[Deployment]:
    """The candidates in the order in which an answer of one deployment takes them.

    Those with trades or ticks (`used`, by id) come first, so that a new deployment hides none; of these the oldest, so
    that the first stays the first; those for trades that are reported without a deployment come after the others.
    """
    return sorted(candidates, key=lambda each: (each.id not in used, each.is_manual, each.recorded_at, each.name))


def scope_of(query: ScopeQuery, candidates: Sequence[Deployment], trades: Mapping[Mode, int]) -> AnswerScope:
    """The scope that a query names, completed by defaults.

    `candidates` are those of `candidates_for`; `trades` counts the closed trades that the query is about by mode, where
    `needs_trade_counts`.

    Without a deployment: the only one, see `only_deployment`. Without a mode: the one with the most closed trades; on a
    tie that of the only deployment, else live. Trades of other modes are counted in the notes. More trades never make
    the number of trades in the default mode smaller: nothing that is added hides a history.
    """
    deployment = only_deployment(candidates)
    deployment_notes: tuple[str, ...] = ()
    if query.deployment is None and deployment is not None:
        deployment_notes = (_only_note(query, deployment, candidates),)
    mode, mode_notes = query.mode, list[str]()
    if mode is None:
        mode, mode_notes = _default_mode(candidates, deployment, trades)
    return AnswerScope(
        deployment=deployment,
        evidence_of=query.deployment,
        deployments=tuple(candidates),
        mode=mode,
        deployment_notes=deployment_notes,
        mode_notes=() if query.all_modes else tuple(mode_notes),
        neutral_because=None if deployment is not None else _neutral_note(query, candidates),
    )


def _only_note(query: ScopeQuery, deployment: Deployment, candidates: Sequence[Deployment]) -> str:
    mode = "" if query.mode is None else f" {query.mode}"
    strategy = "" if query.strategy_name is None else f" of {query.strategy_name!r}"
    others = [each for each in candidates if each != deployment]
    rest = f" beside {_as_arguments(others)}" if others else ""
    return f"For {deployment.name!r} ({deployment.mode}), the only{mode} deployment{strategy}{rest}."


def first_note(deployment: Deployment, candidates: Sequence[Deployment]) -> str:
    """The sentence on the deployment that an answer is about where several may be meant."""
    others = [each for each in candidates if each != deployment]
    return (
        f"For {deployment.name!r} ({deployment.mode}), one of {len(candidates)} deployments: {_as_arguments(others)}."
    )


def _as_arguments(deployments: Sequence[Deployment]) -> str:
    """Deployments as the argument to name them by, the first of many."""
    named = [f"deployment={each.name!r}" for each in deployments[:PLACES_LISTED]]
    more = len(deployments) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _neutral_note(query: ScopeQuery, candidates: Sequence[Deployment]) -> str:
    if not candidates:
        subject = "Nothing" if query.strategy_name is None else repr(query.strategy_name)
        place = "" if query.mode is None else f" in {query.mode}"
        verb = "is deployed" if query.strategy_name is None else "is not deployed"
        return f"{subject} {verb}{place} yet, so the mood is neutral."
    return f"There are {len(candidates)} deployments, so the mood is neutral: name one of {listed_names(candidates)}."


def listed_names(deployments: Sequence[Deployment]) -> str:
    """The names of some deployments, for a message that asks to choose one."""
    names = ", ".join(repr(each.name) for each in deployments[:NAMES_LISTED])
    return names if len(deployments) <= NAMES_LISTED else f"{names}, …"


def _default_mode(
    candidates: Sequence[Deployment], only: Deployment | None, trades: Mapping[Mode, int]
) -> tuple[Mode, list[str]]:
    """The mode of a scope that names none, and what to say about it."""
    modes = {each.mode for each in candidates}
    if len(modes) == 1:
        (shared,) = modes
        return shared, [f"All {len(candidates)} deployments are {shared}."] if len(candidates) > 1 and not only else []
    usual: Mode = "live" if only is None else only.mode
    most = max([usual, *MODES], key=lambda mode: trades.get(mode, 0))  # the first of several with as many
    others = [mode for mode in MODES if mode != most and trades.get(mode)]
    if not others:
        return most, [f"Mode {most}, the only one with closed trades."] if trades.get(most) and not only else []
    left_out = [
        f"{count_of(trades[mode], 'trade')} in {mode} {_be(trades[mode])} not counted: mode={mode!r}."
        for mode in others
    ]
    return most, [
        f"Mode {most}, with most trades." if trades[most] > max(map(trades.__getitem__, others)) else f"Mode {most}.",
        *left_out,
    ]


# Where there are trades, for answers that are empty


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeCount:
    """The number of closed trades of a strategy in a symbol and a mode."""

    mode: Mode
    strategy_name: str
    symbol: str
    trades: int


RELAXED = (
    ("mode",),
    ("symbol",),
    ("strategy_name",),
    ("mode", "symbol"),
    ("symbol", "strategy_name"),
    ("mode", "strategy_name"),
    ("mode", "symbol", "strategy_name"),
)
"""The arguments that may be changed to find trades, the smallest change first."""


def hint_for_nothing(
    counts: Sequence[TradeCount],
    *,
    mode: Mode | None,
    strategy_name: str | None,
    symbol: str | None,
    strategy_argument: str = "strategy_name",
) -> str:
    """What to ask instead of a query that found no trade; None matches every mode, strategy or symbol.

    `strategy_argument` is what the query calls the name of a strategy.

    >>> counts = [TradeCount(mode="sim", strategy_name="S", symbol="BTC", trades=166)]
    >>> hint_for_nothing(counts, mode="live", strategy_name="S", symbol="BTC")
    "There are 166 closed trades with mode='sim'."
    >>> hint_for_nothing(counts, mode="sim", strategy_name=None, symbol="ETH")
    "There are 166 closed trades with symbol='BTC'."
    >>> hint_for_nothing(counts, mode="sim", strategy_name="S", symbol="BTC")
    'There are 166 closed trades without the other filters.'
    >>> hint_for_nothing([], mode="live", strategy_name=None, symbol=None)
    'No closed trade is remembered yet; remember_trade adds one.'
    """
    if not counts:
        return "No closed trade is remembered yet; remember_trade adds one."
    wanted = {"mode": mode, "strategy_name": strategy_name, "symbol": symbol}
    for names in ((), *RELAXED):
        fixed = [name for name in wanted if name not in names]
        matches = [each for each in counts if all(wanted[name] in (None, getattr(each, name)) for name in fixed)]
        if matches:
            return _largest(matches, names, {"strategy_name": strategy_argument})
    raise AssertionError("the last relaxation matches every trade")


def _largest(counts: Sequence[TradeCount], names: Sequence[str], arguments: Mapping[str, str]) -> str:
    """The largest numbers of trades by these values; `arguments` are those that a query calls otherwise."""
    if not names:
        total = sum(each.trades for each in counts)
        return f"There {_be(total)} {count_of(total, 'closed trade')} without the other filters."
    totals: Counter[str] = Counter()
    for each in counts:
        totals[", ".join(f"{arguments.get(name, name)}={getattr(each, name)!r}" for name in names)] += each.trades
    largest = sorted(totals.items(), key=lambda item: (-item[1], item[0]))[:PLACES_LISTED]
    listed = "; ".join(f"{count_of(trades, 'closed trade')} with {place}" for place, trades in largest)
    return f"There {_be(largest[0][1])} {listed}."


def _be(number: int) -> str:
    return "is" if number == 1 else "are"
