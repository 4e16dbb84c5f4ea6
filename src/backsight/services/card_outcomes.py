"""Find out what became of decisions: walk stored bars, append the states, and make episodes of resolved cards."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from backsight.core.agents.card import CardType, seconds_of
from backsight.core.agents.outcomes import (
    DecisionOutcome,
    OutcomeSource,
    card_episode,
    card_episode_id,
    card_levels,
    current_revision,
    is_settled,
    new_rows,
    settled_rows,
    state_at,
)
from backsight.core.agents.resolution import (
    FINEST,
    Levels,
    Resolution,
    bars_to_expire,
    marked_r,
    resolve,
)
from backsight.core.agents.run import AgentRun
from backsight.core.errors import Invalid, Refused
from backsight.core.instants import Horizon
from backsight.services.bar_symbols import symbol_of_bars
from backsight.services.deployments import deployment_named
from backsight.store import agents as stored_agents
from backsight.store import bars as stored_bars
from backsight.store import memories as stored_memories
from backsight.store import outcomes as stored
from backsight.store.database import Connection
from backsight.store.transaction import Transaction
from backsight.store.view import View, everything

DECIDED = frozenset({"resolved", "expired"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CardStates:
    """The states of a decision that the stored bars show, and the levels that they are about."""

    run: AgentRun
    card_type: CardType
    levels: Levels | None
    states: tuple[Resolution, ...]


def resolve_open_cards(transaction: Transaction, owner: str, *, by: datetime, recorded_at: datetime) -> None:
    """Append what bars up to an instant say about the decisions that are not final yet."""
    connection = transaction.connection
    runs = [run for run in stored.open_cards(connection, owner) if run.known_at <= by]
    write_states(transaction, read_states(connection, owner, runs, by=by), recorded_at=recorded_at)


def resolve_cards_since(transaction: Transaction, owner: str, *, since: datetime, by: datetime) -> None:
    """Resolve the decisions that bars from an instant on may change, also those that are final."""
    connection = transaction.connection
    if not stored_agents.has_cards(connection, owner):
        return
    runs = [
        run
        for run in stored.cards_since(connection, owner)
        if run.known_at <= by and _may_change(connection, run, since)
    ]
    write_states(transaction, read_states(connection, owner, runs, by=by), recorded_at=by)


def _may_change(connection: Connection, run: AgentRun, since: datetime) -> bool:
    """Whether bars from an instant on can change a decision: it was not decided before that instant."""
    rows = current_revision(stored.outcomes_of(connection, run.owner_id, run.id))
    last = rows[-1] if rows else None
    if last is None or last.status not in DECIDED:
        return last is None or last.status != "not_applicable"
    return last.known_at > since


def read_states(connection: Connection, owner: str, runs: Sequence[AgentRun], *, by: datetime) -> list[CardStates]:
    """The states of decisions that the bars closed by an instant show."""
    if not runs:
        return []
    types = {each.name: each for each in stored_agents.card_types(everything(connection, owner))}
    view = View(connection, owner, Horizon(as_of=by))
    return [_states_of(view, run, types[run.card_type]) for run in runs if run.card_type is not None]


def _states_of(view: View, run: AgentRun, card_type: CardType) -> CardStates:
    levels = card_levels(card_type, run)
    if isinstance(levels, str):
        reason = levels if run.misfit is None else f"the result does not fit its type: {run.misfit}"
        state = Resolution(status="not_applicable", known_at=run.known_at, reason=reason)
        return CardStates(run=run, card_type=card_type, levels=None, states=(state,))
    symbol = _symbol_of(view, card_type, run)
    timeframe = seconds_of(card_type.value_of(run.card, "timeframe"))
    answers: list[tuple[Resolution, ...]] = []
    first_bars = partial(stored_bars.first_bars, view, symbol=symbol, since=_decided_at(run))
    intervals = walked_intervals(stored_bars.intervals(view.connection, view.owner, symbol))
    for number, interval in enumerate(intervals):
        expire = bars_to_expire(interval, timeframe)
        bars = first_bars(interval_seconds=interval, limit=expire)
        longer = (first_bars(interval_seconds=each, limit=1) for each in intervals[number + 1 :])
        if bars and any(first[0].closes_at <= bars[0].opened_at for first in longer if first):
            continue  # the series begins too late: longer bars show what happened before it
        states = resolve(levels, bars, decided_at=_decided_at(run), expire_bars=expire)
        if states and states[-1].status == "active":
            reaching = stored_bars.first_reaching(
                view,
                symbol=symbol,
                interval_seconds=interval,
                after=bars[-1].opened_at,
                low=min(levels.target, levels.stop),
                high=max(levels.target, levels.stop),
            )
            states = resolve(levels, [*bars, *reaching], decided_at=_decided_at(run), expire_bars=expire)
        if states and states[-1].status in DECIDED:
            return CardStates(run=run, card_type=card_type, levels=levels, states=states)
        answers.append(states)
    furthest = max(answers, key=len, default=())
    return CardStates(run=run, card_type=card_type, levels=levels, states=furthest)


def _decided_at(run: AgentRun) -> datetime:
    """A decision counts from the end of its run: no earlier price could have been acted on."""
    return run.ended_at or run.known_at


def walked_intervals(intervals: Sequence[int]) -> list[int]:
    """The intervals of the bars to walk, finest first: those of at least five minutes, else the longest.

    >>> walked_intervals([60, 300, 3600]), walked_intervals([15, 60]), walked_intervals([])
    ([300, 3600], [60], [])
    """
    long_enough = sorted(each for each in intervals if each >= FINEST)
    return long_enough or sorted(intervals)[-1:]


def write_states(transaction: Transaction, cards: Iterable[CardStates], *, recorded_at: datetime) -> int:
    """Append the states that are new, and keep the episodes of resolved cards up to date; how many cards changed."""
    connection, changed = transaction.connection, 0
    for card in cards:
        former = stored.outcomes_of(connection, card.run.owner_id, card.run.id)
        if is_settled(former):
            continue
        source: OutcomeSource = "card" if card.levels is None else "bars"
        rows = new_rows(former, card.states, card.run, source=source, recorded_at=recorded_at)
        if rows:
            _append(transaction, card, former, rows, recorded_at=recorded_at)
            changed += 1
    return changed


def _append(
    transaction: Transaction,
    card: CardStates,
    former: Sequence[DecisionOutcome],
    rows: Sequence[DecisionOutcome],
    *,
    recorded_at: datetime,
) -> None:
    for row in rows:
        transaction.add(stored.OUTCOMES, row)
    _keep_episode(transaction, card, [*former, *rows], recorded_at=recorded_at)


def _keep_episode(
    transaction: Transaction, card: CardStates, rows: Sequence[DecisionOutcome], *, recorded_at: datetime
) -> None:
    """Write the episode of a resolved card; withdraw it if the card turned out not to be resolved."""
    connection, run = transaction.connection, card.run
    last = current_revision(rows)[-1]
    episode = stored_memories.current_episode(connection, run.owner_id, card_episode_id(run.id))
    if last.status == "resolved" and card.levels is not None:
        deployment = deployment_named(connection, run.owner_id, run.deployment_id)
        made = card_episode(run, card.card_type, card.levels, last, deployment)
        transaction.revise(stored_memories.EPISODES, made)
    elif episode is not None:
        transaction.withdraw(stored_memories.EPISODES, episode, known_at=episode.known_at, recorded_at=recorded_at)


def resolve_run(transaction: Transaction, run: AgentRun, *, by: datetime) -> None:
    """Append what is known at once about the decision of a run that was just recorded."""
    if run.status == "succeeded" and run.kind != "re_examination" and run.card_type and run.result:
        states = read_states(transaction.connection, run.owner_id, [run], by=by)
        write_states(transaction, states, recorded_at=by)


MOST_R = 1_000_000.0
"""A settled result beyond it is a slip of the keyboard."""


def settle(
    transaction: Transaction, run: AgentRun, *, entry: float, exit_price: float, now: datetime
) -> DecisionOutcome:
    """Record that the owner entered and left at these prices, which wins over bars."""
    connection = transaction.connection
    (card,) = read_states(connection, run.owner_id, [run], by=now)
    if card.levels is None:
        raise Refused(f"the decision has no levels: {card.states[0].reason}", field="run")
    outcome_r = card.levels.outcome_r(entry, exit_price)
    if outcome_r is not None and abs(outcome_r) > MOST_R:
        message = f"{exit_price:g} is {outcome_r:.1e}R from the entry {entry:g}; check both prices"
        raise Invalid(message, field="exit")
    former = stored.outcomes_of(connection, run.owner_id, run.id)
    last = state_at(former, now)
    settled = Resolution(
        status="resolved",
        known_at=max(now, run.known_at),
        entry_at=None if last is None else last.entry_at,
        fill=entry,
        exit_at=now,
        exit_price=exit_price,
        exit_kind="owner",
        outcome_r=outcome_r,
    )
    rows = settled_rows(former, run, settled, recorded_at=now)
    _append(transaction, card, former, rows, recorded_at=now)
    return rows[-1]


def why_pending(view: View, card_type: CardType, run: AgentRun) -> str | None:
    """Why a decision stays pending: there are no bars of its symbol that could decide it; None if there are."""
    symbol = _symbol_of(view, card_type, run)
    return None if stored_bars.intervals_then(view, symbol) else f"no bars of {symbol} are stored"


def _symbol_of(view: View, card_type: CardType, run: AgentRun) -> str:
    """The symbol of a card, in the spelling in which its bars are stored."""
    return symbol_of_bars(view, str(card_type.value_of(run.card, "symbol")).strip())


def mark_of(view: View, card_type: CardType, run: AgentRun, state: DecisionOutcome) -> float | None:
    """The result so far of an active decision in R, at the last close known then."""
    levels = card_levels(card_type, run)
    if state.status != "active" or isinstance(levels, str):
        return None
    symbol = _symbol_of(view, card_type, run)
    counts = dict.fromkeys(walked_intervals(stored_bars.intervals(view.connection, view.owner, symbol)), 1)
    series = stored_bars.last_bars(view, symbol=symbol, counts=counts).values() if counts else ()
    last = max((bars[-1] for bars in series if bars), key=lambda bar: bar.closes_at, default=None)
    if last is None:
        return None
    resolution = Resolution(status="active", known_at=state.known_at, fill=state.fill)
    return marked_r(levels, resolution, last.close)
