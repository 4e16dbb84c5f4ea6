"""Learn beliefs from episodes: count evidence, retire refuted beliefs, and induce new ones from cells.

Learning is a fold over episodes in teaching order. `learn` takes one more episode and `learn_all` takes any number;
both ways end in equal states. For every episode:

1. Each belief whose domain and conditions hold gets one more piece of evidence. At a look (10, 20, 40 … episodes after
   those it was induced from) a belief is established, or refuted and retired, or left open.
2. The episode is counted in its cells.
3. Each cell that comes to a look is compared with the strategy's other trades. A significant difference induces a
   belief.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import islice
from typing import NamedTuple

from backsight.core.errors import Invalid
from backsight.core.ids import derive_id
from backsight.core.instants import format_instant
from backsight.core.memory.advice import outcome_text
from backsight.core.memory.cells import (
    NO_TRADES,
    Cell,
    CellCounts,
    DayCount,
    Difference,
    cells_at,
    day_count,
    day_of,
    difference,
    difference_by_runs,
    least_p,
    level_of_look,
)
from backsight.core.memory.checkpoints import Place, is_checkpoint
from backsight.core.memory.conditions import Condition, condition_text
from backsight.core.memory.daily_moments import DailyMoments, DailyMomentsBuilder
from backsight.core.memory.episodic import Episode
from backsight.core.memory.semantic import (
    DIMENSIONS,
    FEWEST_DAYS,
    INDUCED_PRIOR,
    Belief,
    BeliefEvidence,
    Claim,
    Domain,
    EpisodePlace,
    Standing,
    TallyBuilder,
    Weighting,
    is_established,
    is_look,
    is_refuted,
    main_outcome,
    place_of,
    weight_of,
    won,
)
from backsight.core.portfolio import Mode
from backsight.core.trades.trade import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """What one owner's trades of one mode have taught so far: the state that `learn` continues.

    To learn some episodes, a part of the state is enough: the cells that `cells_met` names, with the days of the
    episodes; where a look comes (`reaches_look`), the number of cells by width; and the standings of the beliefs that
    the episodes concern. A test that needs the other days of a cell asks for them (`DaysOf`).
    """

    owner_id: str
    mode: Mode
    weighting: Weighting = "count"
    through: datetime | None = None
    """When the last learned episode became known."""
    cells: Mapping[Domain, Cell] = field(default_factory=dict)
    cells_by_width: Mapping[int, int] = field(default_factory=dict)
    """How many cells have trades, by width."""
    standings: Mapping[str, Standing] = field(default_factory=dict)
    """By belief id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingCheckpoint:
    """A belief and its evidence right after the episode at a place."""

    place: Place
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEvidence:
    """An episode that is evidence for or against one belief, with what the belief learns from it."""

    place: Place
    day: date
    """The UTC day on which the trade closed."""
    win: bool
    outcome: Outcome | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefUpdate:
    """The knowledge after some episodes, and what they changed."""

    knowledge: Knowledge
    evidence: tuple[BeliefEvidence, ...] = ()
    """The evidence that the episodes are, without founding evidence; `founding_evidence` makes that."""
    induced: tuple[Belief, ...] = ()
    retired: tuple[Belief, ...] = ()
    checkpoints: tuple[StandingCheckpoint, ...] = ()


Holds = Callable[[Condition, Episode], bool]
"""Whether conditions held when an episode began."""


DaysOf = Callable[[Collection[Domain]], Mapping[Domain, Mapping[date, DayCount]]]
"""Gives all days of some cells as they were before the episodes that are learned. Few tests need them."""


def no_other_days(domains: Collection[Domain]) -> Mapping[Domain, Mapping[date, DayCount]]:
    """The default for `days_of`: the cells that learning starts from have all their days."""
    return {domain: {} for domain in domains}


def refuse_conditions(conditions: Condition, episode: Episode) -> bool:
    """The default for `holds`: raises `Invalid`; `experience.conditions_held` judges conditions."""
    raise Invalid(
        f"{condition_text(conditions)} cannot be judged for episode {episode.id!r}; pass `holds`", field="conditions"
    )


def learn(knowledge: Knowledge, episode: Episode, *, holds: Holds = refuse_conditions) -> BeliefUpdate:
    """Learn one more episode; it must not have become known before the last one."""
    return learn_all((episode,), knowledge=knowledge, holds=holds)


def learn_all(
    episodes: Iterable[Episode],
    *,
    knowledge: Knowledge,
    holds: Holds = refuse_conditions,
    retirements: Mapping[str, datetime] | None = None,
    days_of: DaysOf = no_other_days,
) -> BeliefUpdate:
    """Learn episodes in teaching order. `days_of` gives the days that the cells of the knowledge lack.

    To learn everything again, start with `Knowledge(owner_id=…, mode=…)`, add the stated beliefs by `with_belief`, and
    pass when the owner retired which induced beliefs.
    """
    learner = _BeliefLearner(knowledge, holds, retirements or {}, days_of)
    for episode in episodes:
        learner.learn(episode)
    return learner.update()


def with_belief(knowledge: Knowledge, belief: Belief) -> Knowledge:
    """The knowledge with a belief that somebody states, or with a known belief that its owner changed.

    Only episodes that become known after a stated belief are evidence for it; those of the same instant are not.
    """
    _check_same(knowledge, owner_id=belief.owner_id, mode=belief.mode, noun="belief", name=belief.id)
    standing = knowledge.standings.get(belief.id, Standing(belief=belief))
    return replace(knowledge, standings={**knowledge.standings, belief.id: replace(standing, belief=belief)})


def with_evidence(standing: Standing, evidence: Iterable[PastEvidence]) -> Standing:
    """A belief with more evidence, each episode counted once, in teaching order."""
    builder = _StandingBuilder(standing)
    for each in evidence:
        builder.add(each.outcome, each.place[0], each.day, win=each.win, weight=1.0)
    return builder.build()


class JudgedTrade(NamedTuple):
    """A closed trade with a result: the part of it that the evidence of a belief needs."""

    episode_id: str
    known_at: datetime
    win: bool
    weight: float = 1.0


def judged_trades(
    domain: Domain, episodes: Iterable[Episode], *, weighting: Weighting = "count"
) -> Iterator[JudgedTrade]:
    """The trades in a domain that have a result, in the order of `episodes`."""
    for each in episodes:
        if domain.matches(each) and (win := won(each)) is not None:
            yield JudgedTrade(each.id, each.known_at, win, weight_of(each, weighting=weighting))


def founding_evidence(standing: Standing, trades: Iterable[JudgedTrade]) -> tuple[BeliefEvidence, ...]:
    """The evidence that a belief was induced from: its first trades in teaching order."""
    first = islice(trades, standing.founding.n)
    return tuple(_evidence(standing.belief, each, founding=True) for each in first)


def _evidence(belief: Belief, trade: JudgedTrade, *, founding: bool) -> BeliefEvidence:
    return BeliefEvidence(
        belief_id=belief.id,
        episode_id=trade.episode_id,
        confirms=trade.win == (belief.claims == "above"),
        founding=founding,
        weight=trade.weight,
        known_at=trade.known_at,
    )


class _CellBuilder:
    """A `Cell` to which episodes are added in place.

    The counts of the current day are kept apart and written when the day changes or the cell is built.
    """

    __slots__ = ("day", "day_n", "day_wins", "days", "domain", "other_days", "squares", "tally", "traded_days")

    def __init__(self, domain: Domain, cell: Cell) -> None:
        self.domain, self.tally = domain, TallyBuilder(cell.tally)
        self.days, self.traded_days, self.squares = dict(cell.days), cell.traded_days, cell.squares
        self.other_days: Mapping[date, DayCount] | None = None if cell.days or cell.traded_days else {}
        """Days that the cell was given without; None until a test asks for them."""
        self.day: date | None = None
        self.day_n = self.day_wins = 0

    def add(self, episode: Episode, day: date, *, day_text: str, win: bool, weight: float) -> None:
        self.tally.add(episode.outcome, episode.known_at, day=day_text, win=win, weight=weight)
        if day != self.day:
            self._write_day()
            count = self.days.get(day, NO_TRADES)
            self.day, self.day_n, self.day_wins = day, count.n, count.wins
        self.day_n += 1
        self.day_wins += win

    def build(self) -> Cell:
        """The cell so far; it shares its days with the builder, so that the next episode changes them."""
        self._write_day()
        return Cell(tally=self.tally.build(), days=self.days, traded_days=self.traded_days, squares=self.squares)

    def counts(self) -> CellCounts:
        """The trades so far, without their days."""
        self._write_day()
        return CellCounts(n=self.tally.n, wins=self.tally.wins, traded_days=self.traded_days)

    def whole(self) -> Cell:
        """The cell so far with all its days, for a test."""
        cell = self.build()
        return replace(cell, days={**self.other_days, **self.days}) if self.other_days else cell

    def _write_day(self) -> None:
        if self.day is None:
            return
        former, n, wins = self.days.get(self.day, NO_TRADES), self.day_n, self.day_wins
        n_squared, n_by_wins, wins_squared = self.squares
        self.squares = (
            n_squared + n * n - former.n * former.n,
            n_by_wins + n * wins - former.n * former.wins,
            wins_squared + wins * wins - former.wins * former.wins,
        )
        self.traded_days += former.n == 0
        self.days[self.day] = day_count(n, wins)


class _StandingBuilder:
    """A `Standing` to which tested episodes are added in place.

    At a look an episode establishes the belief, or refutes and retires it. Evidence is still counted after that. A
    posterior that stops where it looks worst would be biased, and later evidence shows whether retiring was right.
    """

    __slots__ = ("belief", "days", "established", "founding", "tested", "wins")

    def __init__(self, standing: Standing) -> None:
        self.belief, self.founding, self.days = standing.belief, standing.founding, standing.days
        self.tested, self.wins = TallyBuilder(standing.tested), DailyMomentsBuilder(standing.wins)
        self.established = standing.established

    def add(self, outcome: Outcome | None, known_at: datetime, day: date, *, win: bool, weight: float) -> bool:
        """Add an episode; whether it refuted the belief."""
        text = day.isoformat()
        self.tested.add(outcome, known_at, day=text, win=win, weight=weight)
        self.wins.add(float(win), text)
        if len(self.days) < FEWEST_DAYS and text not in self.days:
            self.days = (*self.days, text)
        if not is_look(self.tested.n):
            return False
        judged = self.build()
        self.established = is_established(judged)
        refuted = is_refuted(judged) and _is_live(self.belief, at=known_at)
        if refuted:
            self.belief = replace(self.belief, retired_at=known_at)
        return refuted

    def build(self) -> Standing:
        return Standing(
            belief=self.belief,
            founding=self.founding,
            tested=self.tested.build(),
            days=self.days,
            wins=self.wins.build(),
            established=self.established,
        )


class _BeliefLearner:
    """Knowledge while episodes are learned: only the cells and standings that change are copied."""

    def __init__(
        self, knowledge: Knowledge, holds: Holds, retirements: Mapping[str, datetime], days_of: DaysOf
    ) -> None:
        self._start, self._holds, self._retirements, self._days_of = knowledge, holds, retirements, days_of
        self._through, self._cells_by_width = knowledge.through, dict(knowledge.cells_by_width)
        self._cells: dict[Domain, _CellBuilder] = {}
        self._cells_at: dict[EpisodePlace, tuple[_CellBuilder, ...]] = {}
        self._standings = dict(knowledge.standings)
        self._changed: dict[str, _StandingBuilder] = {}
        self._beliefs_at: dict[EpisodePlace, tuple[Belief, ...]] = {}
        self._evidence: list[BeliefEvidence] = []
        self._induced: list[str] = []
        self._retired: list[str] = []
        self._checkpoints: list[StandingCheckpoint] = []

    def learn(self, episode: Episode) -> None:
        self._check(episode)
        self._through = episode.known_at
        win = won(episode)
        if win is None:
            return
        place, day = place_of(episode), day_of(episode)
        weight = weight_of(episode, weighting=self._start.weighting)
        for belief in self._beliefs(place):
            if self._concerns(belief, episode):
                self._add_evidence(belief.id, episode, day, win=win, weight=weight)
        builders = self._builders(place)
        strategy, *cells = builders
        day_text = day.isoformat()
        for cell in builders:
            cell.add(episode, day, day_text=day_text, win=win, weight=weight)
        for cell in cells:
            if is_look(cell.tally.n):
                self._test_cell(cell, strategy=strategy, episode=episode)

    def update(self) -> BeliefUpdate:
        standings = self._standings | {name: standing.build() for name, standing in self._changed.items()}
        knowledge = replace(
            self._start,
            through=self._through,
            cells={**self._start.cells, **{domain: cell.build() for domain, cell in self._cells.items()}},
            cells_by_width=self._cells_by_width,
            standings=standings,
        )
        return BeliefUpdate(
            knowledge=knowledge,
            evidence=tuple(self._evidence),
            induced=tuple(standings[name].belief for name in self._induced),
            retired=tuple(standings[name].belief for name in self._retired),
            checkpoints=tuple(self._checkpoints),
        )

    def _check(self, episode: Episode) -> None:
        _check_same(self._start, owner_id=episode.owner_id, mode=episode.mode, noun="episode", name=episode.id)
        if self._through is not None and episode.known_at < self._through:
            through = format_instant(self._through)
            message = f"episode {episode.id!r} became known before the last one learned, at {through}"
            raise Invalid(f"{message}; learn all episodes again in order", field="known_at")

    def _beliefs(self, place: EpisodePlace) -> tuple[Belief, ...]:
        """The beliefs whose domain contains a place, in the order in which they became known."""
        beliefs = self._beliefs_at.get(place)
        if beliefs is None:
            every = (standing.belief for standing in self._standings.values())
            beliefs = self._beliefs_at[place] = tuple(each for each in every if each.domain.contains(place))
        return beliefs

    def _builders(self, place: EpisodePlace) -> tuple[_CellBuilder, ...]:
        """The cells of a place, the strategy's own first."""
        builders = self._cells_at.get(place)
        if builders is None:
            builders = self._cells_at[place] = tuple(
                self._cells.get(domain) or self._open_cell(domain) for domain in cells_at(place)
            )
        return builders

    def _open_cell(self, domain: Domain) -> _CellBuilder:
        cell = self._start.cells.get(domain)
        if cell is None:
            self._cells_by_width[domain.width] = self._cells_by_width.get(domain.width, 0) + 1
        builder = self._cells[domain] = _CellBuilder(domain, cell or Cell())
        return builder

    def _concerns(self, belief: Belief, episode: Episode) -> bool:
        if belief.source != "induced" and belief.known_at >= episode.known_at:
            return False
        return belief.conditions is None or self._holds(belief.conditions, episode)

    def _add_evidence(self, belief_id: str, episode: Episode, day: date, *, win: bool, weight: float) -> None:
        """Add an episode to a belief's evidence."""
        standing = self._changed.get(belief_id)
        if standing is None:
            standing = self._changed[belief_id] = _StandingBuilder(self._standings[belief_id])
        self._evidence.append(
            _evidence(standing.belief, JudgedTrade(episode.id, episode.known_at, win, weight), founding=False)
        )
        if standing.add(episode.outcome, episode.known_at, day, win=win, weight=weight):
            self._retired.append(belief_id)
        if is_checkpoint(standing.tested.n):
            self._keep(episode, standing.build())

    def _keep(self, episode: Episode, standing: Standing) -> None:
        self._checkpoints.append(StandingCheckpoint(place=episode.place, standing=standing))

    def _test_cell(self, builder: _CellBuilder, *, strategy: _CellBuilder, episode: Episode) -> None:
        """Induce a belief from a cell that differs from the rest, unless a belief about the cell prevents it."""
        domain, at = builder.domain, episode.known_at
        wider_cells = [self._cells[wider] for wider in domain.wider]
        if any(wider.tally.n == builder.tally.n for wider in wider_cells):
            return  # a cell with one dimension less has the same trades
        level = level_of_look(builder.tally.n, cells=self._cells_by_width[domain.width])
        if least_p(builder.counts(), strategy.counts()) >= level:
            return  # without reading any days
        if any(other.source == "induced" and _is_live(other, at=at) for other in self._beliefs_on(domain)):
            return  # whatever the test finds, a live belief prevents another one
        self._read_days([builder, strategy, *wider_cells])
        cell, whole = builder.whole(), strategy.whole()
        test = difference(cell, whole)
        if test is None or test.p >= level:
            return  # without visiting all days of the strategy
        labels = (cell, *(wider.whole() for wider in wider_cells))
        test = difference_by_runs(test, cell, whole, labels)
        if test is None or test.p >= level:
            return
        belief = _induce(self._start, domain, cell, test, earns=_earnings(cell, whole), at=at)
        if any(self._prevents(other, belief, at=at) for other in self._beliefs_on(domain)):
            return
        belief = replace(belief, retired_at=self._retirements.get(belief.id))
        self._induced.append(belief.id)
        days = tuple(day.isoformat() for day in sorted(cell.days)[:FEWEST_DAYS])
        standing = Standing(belief=belief, founding=cell.tally, days=days, wins=_wins_by_day(cell))
        self._add_standing(standing)
        self._keep(episode, standing)

    def _read_days(self, builders: Iterable[_CellBuilder]) -> None:
        """Ask for the days that some cells were given without."""
        lacking = {builder.domain: builder for builder in builders if builder.other_days is None}
        if lacking:
            for domain, days in self._days_of(lacking.keys()).items():
                lacking[domain].other_days = days

    def _prevents(self, other: Belief, belief: Belief, *, at: datetime) -> bool:
        """Whether an induced belief about the same cell prevents a new one: it is live, or its owner retired it."""
        if other.source != "induced":
            return False
        retired_at = self._retirements.get(other.id)
        retired_by_owner = retired_at is not None and retired_at <= at and other.claims == belief.claims
        return _is_live(other, at=at) or retired_by_owner

    def _beliefs_on(self, domain: Domain) -> Iterator[Belief]:
        for name, standing in self._standings.items():
            if standing.belief.domain == domain:
                yield self._changed.get(name, standing).belief

    def _add_standing(self, standing: Standing) -> None:
        self._standings[standing.belief.id] = standing
        self._changed.pop(standing.belief.id, None)
        self._beliefs_at.clear()


def _wins_by_day(cell: Cell) -> DailyMoments:
    """Wins as 1 and losses as 0, by day in the order of days."""
    wins = DailyMomentsBuilder(DailyMoments())
    for day, count in sorted(cell.days.items()):
        for number in range(count.n):
            wins.add(float(number < count.wins), day.isoformat())
    return wins.build()


def _is_live(belief: Belief, *, at: datetime) -> bool:
    return belief.retired_at is None or belief.retired_at > at


def _earnings(cell: Cell, strategy: Cell) -> str:
    """What the trades of a cell earn on average, and the strategy's other trades, since a win rate alone misleads."""
    unit, inside = main_outcome(cell.tally.outcomes)
    whole = strategy.tally.outcomes.get(unit)
    if not inside.n or whole is None:
        return "its mean outcome is not known"
    unknown = cell.tally.n - inside.n
    n = inside.n if unknown else None  # of n trades, as the win rate beside it says
    text = f"it earned {outcome_text(inside.mean, inside.interval(), unit=unit, n=n, unknown=unknown)} a trade"
    others = whole.n - inside.n
    if not others:
        return text
    elsewhere = (whole.mean * whole.n - inside.mean * inside.n) / others
    return f"{text} against {outcome_text(elsewhere, None, unit=unit)}"


def _induce(knowledge: Knowledge, domain: Domain, cell: Cell, test: Difference, *, earns: str, at: datetime) -> Belief:
    """The belief that a cell's win rate lies above or below that of the strategy's other trades."""
    claims: Claim = "above" if test.rate > test.elsewhere else "below"
    more, n = "more" if claims == "above" else "less", cell.tally.n
    where = " and ".join(f"{name} {value}" for name in DIMENSIONS if (value := getattr(domain, name)) is not None)
    share = f"{cell.tally.wins} of {n} against {test.elsewhere:.0%}"
    return Belief(
        owner_id=knowledge.owner_id,
        id=derive_id("belief", knowledge.owner_id, knowledge.mode, "induced", domain.text(), claims, n),
        mode=knowledge.mode,
        proposition=f"{domain.strategy} wins {more} often with {where} than elsewhere: {share}; {earns}",
        domain=domain,
        conditions=None,
        about="win_rate",
        claims=claims,
        reference=min(max(test.elsewhere, test.least), 1.0 - test.least),
        reference_error=test.elsewhere_error,
        source="induced",
        prior_alpha=INDUCED_PRIOR[0],
        prior_beta=INDUCED_PRIOR[1],
        known_at=at,
    )


def _check_same(knowledge: Knowledge, *, owner_id: str, mode: Mode, noun: str, name: str) -> None:
    if owner_id != knowledge.owner_id or mode != knowledge.mode:
        expected = f"this knowledge is about {knowledge.owner_id!r}, {knowledge.mode}"
        raise Invalid(f"{noun} {name!r} belongs to {owner_id!r}, {mode}; {expected}: keep them apart", field="mode")
