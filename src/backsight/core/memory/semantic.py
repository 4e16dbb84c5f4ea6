"""Beliefs: what has held, where, against what, and how sure one may be of it.

A belief says that the win rate in a domain lies above or below a reference. Episodes in the domain are its evidence;
its posterior is a Beta. Beliefs are seeded by somebody, or induced from cells of a strategy's trades that differ from
the rest of them. All of it is a fold over episodes in the order in which they became known: `learn` takes one more
episode, `learn_all` any number, and both ways end in equal states.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import combinations, islice
from typing import Literal

from backsight.core.errors import Invalid
from backsight.core.ids import canonical_json, derive_id
from backsight.core.instants import days_between, format_instant
from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Direction, Mode
from backsight.core.regime import Regime, Session, VolatilityRegime
from backsight.core.statistics import Moments, beta_quantile, beta_tail, t_two_sided
from backsight.core.trades.trade import OutcomeUnit

Claim = Literal["above", "below"]
BeliefSource = Literal["induced", "seeded", "migrated"]
Weighting = Literal["count", "outcome"]
"""`count`: each episode counts 1. `outcome`: min(2, |R|), as first described; it makes the posterior wrong."""

DIMENSIONS = ("symbol", "direction", "session", "regime", "volatility_regime")
WIDTHS = (1, 2)
LOOKS = (10, 20, 40, 80, 160, 320)
FALSE_ALARMS = 0.05
FEWEST_DAYS = 8
RETIRED_BELOW = 0.1
WORTH_TESTING = (0.3, 0.7)
FEWEST_TO_TEST = 10
SEEDED_PRIOR = (2.0, 1.0)
INDUCED_PRIOR = (1.0, 1.0)
SEEDED_REFERENCE = 0.5
LARGEST_WEIGHT = 2.0

DECAY_DAYS = 180.0
DECAY = 0.3
OUTSIDE_DOMAIN = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Where a belief is said to hold; None means any.

    >>> Domain(strategy="IM", regime="ranging").width
    1
    """

    strategy: str | None = None
    symbol: str | None = None
    direction: Direction | None = None
    regime: Regime | None = None
    volatility_regime: VolatilityRegime | None = None
    session: Session | None = None

    @property
    def width(self) -> int:
        """How many dimensions it names besides the strategy."""
        return sum(getattr(self, name) is not None for name in DIMENSIONS)

    @property
    def wider(self) -> tuple["Domain", ...]:
        """The domains that name one of its two dimensions; none where it names one itself."""
        named = [name for name in DIMENSIONS if getattr(self, name) is not None]
        return tuple(replace(self, **{name: None}) for name in named) if len(named) > 1 else ()

    def matches(self, episode: Episode) -> bool:
        """Whether the episode lies in the domain; one that lacks a dimension lies in no part of it."""
        return _lies_in(self, _place_of(episode))

    def text(self) -> str:
        """The domain as one canonical JSON text, by which it is named.

        >>> Domain(strategy="IM", regime="ranging").text()
        '{"regime":"ranging","strategy":"IM"}'
        """
        held = {name: getattr(self, name) for name in ("strategy", *DIMENSIONS)}
        return canonical_json({name: value for name, value in held.items() if value is not None})


_EpisodePlace = tuple[str, tuple[str | None, ...]]
"""An episode's strategy and what it has in `DIMENSIONS`, in their order: its cells and beliefs follow from it."""


def _place_of(episode: Episode) -> _EpisodePlace:
    context = episode.context
    values = (episode.symbol, episode.direction, context.session, context.regime, context.volatility_regime)
    return episode.strategy_name, values


def _lies_in(domain: Domain, place: _EpisodePlace) -> bool:
    strategy, (symbol, direction, session, regime, volatility_regime) = place
    return (
        domain.strategy in (None, strategy)
        and domain.symbol in (None, symbol)
        and domain.direction in (None, direction)
        and domain.session in (None, session)
        and domain.regime in (None, regime)
        and domain.volatility_regime in (None, volatility_regime)
    )


def won(episode: Episode) -> bool | None:
    """Whether a trade was won (net > 0); None for what is no trade or has no result, and so is no evidence."""
    if episode.kind != "trade":
        return None
    if episode.pnl is not None:
        return episode.pnl > 0
    return None if episode.outcome is None else episode.outcome.value > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A proposition about the win rate in a domain, against a reference."""

    owner_id: str
    id: str
    mode: Mode
    proposition: str
    domain: Domain
    conditions: str | None
    """Validity conditions as canonical JSON, in the grammar of plans."""
    claims: Claim
    reference: float
    source: BeliefSource
    prior_alpha: float
    """Of confirming episodes: wins where it claims `above`, losses where it claims `below`."""
    prior_beta: float
    known_at: datetime
    """When it was seeded, or when the episode that induced it became known."""
    retired_at: datetime | None = None
    """From then on it is neither shown nor acted on; its evidence is still counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefEvidence:
    """That one episode confirms or contradicts one belief."""

    belief_id: str
    episode_id: str
    confirms: bool
    founding: bool
    """Whether the belief was induced from it, and so says nothing new about it."""
    weight: float
    known_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTally:
    """Wins, losses and outcomes; weights are counts unless outcomes weigh."""

    wins: int = 0
    losses: int = 0
    won_weight: float = 0.0
    lost_weight: float = 0.0
    outcomes: Mapping[OutcomeUnit, Moments] = field(default_factory=dict)
    last_at: datetime | None = None
    """When the last of them became known."""

    @property
    def n(self) -> int:
        return self.wins + self.losses

    def add(self, episode: Episode, *, win: bool, weight: float) -> "EvidenceTally":
        """The tally with one more episode."""
        opened = _OpenTally(self)
        opened.add(episode, win=win, weight=weight)
        return opened.closed()


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCount:
    """A cell's trades that closed on one UTC day."""

    n: int = 0
    wins: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A strategy's trades in one or two dimensions, or all of them, and how they fall on days."""

    tally: EvidenceTally = field(default_factory=EvidenceTally)
    days: Mapping[date, DayCount] = field(default_factory=dict)
    traded_days: int = 0
    """How many days there are, also where only some of them are at hand."""
    squares: tuple[int, int, int] = (0, 0, 0)
    """Σ n², Σ n·wins, Σ wins² over the days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A belief with the evidence for and against it, apart by whether it founded the belief."""

    belief: Belief
    founding: EvidenceTally = field(default_factory=EvidenceTally)
    tested: EvidenceTally = field(default_factory=EvidenceTally)
    days: tuple[str, ...] = ()
    """The first eight UTC days of evidence, as ISO 8601 has them: a look needs as many."""

    @property
    def n(self) -> int:
        """How many episodes are evidence."""
        return self.founding.n + self.tested.n

    @property
    def outcomes(self) -> dict[OutcomeUnit, Moments]:
        """How much was won or lost, in each unit apart, over all evidence."""
        held = dict(self.founding.outcomes)
        return held | {unit: held.get(unit, Moments()).joined(new) for unit, new in self.tested.outcomes.items()}

    @property
    def last_evidence_at(self) -> datetime:
        """When the last evidence became known; without any, when the belief did."""
        return self.tested.last_at or self.founding.last_at or self.belief.known_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """What evidence makes of a belief: Beta(α, β) of the rate at which it is confirmed."""

    alpha: float
    beta: float
    n: int
    confidence: float
    """The Beta's mean."""
    uncertainty: float
    """The Beta's variance."""
    credibility: float
    """The probability that the claim against the reference holds."""
    win_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """All that one owner's trades of one mode have taught: the state that `learn` carries on.

    A part is enough to learn some episodes from: the cells that `cells_met` names with the days of the episodes, all
    their days (and all of their strategy's) where `is_looked_at`, the counts of cells, and the standings of beliefs.
    """

    owner_id: str
    mode: Mode
    weighting: Weighting = "count"
    through: datetime | None = None
    """When the last episode became known that it rests on."""
    cells: Mapping[Domain, Cell] = field(default_factory=dict)
    cells_by_width: Mapping[int, int] = field(default_factory=dict)
    """Width: how many cells of it have been seen."""
    standings: Mapping[str, Standing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefUpdate:
    """What one episode, or many, changed."""

    knowledge: Knowledge
    evidence: tuple[BeliefEvidence, ...] = ()
    """Of the episodes learned; those that founded a belief are named by `founding_evidence`."""
    induced: tuple[Belief, ...] = ()
    retired: tuple[Belief, ...] = ()


Holds = Callable[[str, Episode], bool]
"""Whether conditions (canonical JSON) held at an episode."""


def refuse_conditions(conditions: str, episode: Episode) -> bool:
    """Raises Invalid: conditions cannot be judged without somebody who knows their grammar."""
    raise Invalid(f"{conditions} cannot be judged for episode {episode.id!r}; pass `holds`", field="conditions")


def seed_belief(
    proposition: str,
    *,
    owner_id: str,
    mode: Mode,
    domain: Domain,
    known_at: datetime,
    conditions: str | None = None,
    claims: Claim = "above",
    reference: float = SEEDED_REFERENCE,
    source: BeliefSource = "seeded",
    prior: tuple[float, float] = SEEDED_PRIOR,
) -> Belief:
    """The belief that somebody states; without a domain or conditions it is refused.

    >>> from datetime import UTC
    >>> told = {"owner_id": "me", "mode": "live", "known_at": datetime(2026, 6, 4, tzinfo=UTC)}
    >>> belief = seed_belief("Breakouts fail in ranges", domain=Domain(regime="ranging"), claims="below", **told)
    >>> belief.prior_alpha, belief.prior_beta, belief.reference
    (2.0, 1.0, 0.5)
    >>> seed_belief("Breakouts work", domain=Domain(strategy="VB"), **told)
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: domain: 'Breakouts work' does not say where it holds; name at least one of symbol,
    direction, session, regime, volatility_regime, or give conditions
    """
    if not proposition.strip():
        raise Invalid("a belief needs a sentence; say what holds", field="proposition")
    if not domain.width and conditions is None:
        remedy = f"name at least one of {', '.join(DIMENSIONS)}, or give conditions"
        raise Invalid(f"{proposition!r} does not say where it holds; {remedy}", field="domain")
    if not 0.0 < reference < 1.0:
        raise Invalid(f"{reference} is no win rate between 0 and 1; give one", field="reference")
    if not all(0.0 < part < math.inf for part in prior):
        raise Invalid(f"Beta{prior} does not exist; give two numbers above 0", field="prior")
    return Belief(
        owner_id=owner_id,
        id=derive_id("belief", owner_id, mode, domain.text(), conditions, claims, proposition),
        mode=mode,
        proposition=proposition,
        domain=domain,
        conditions=conditions,
        claims=claims,
        reference=reference,
        source=source,
        prior_alpha=prior[0],
        prior_beta=prior[1],
        known_at=known_at,
    )


def posterior(standing: Standing, *, with_founding: bool = True) -> Posterior:
    """What the evidence makes of a belief, on request without the episodes that founded it.

    α = prior + confirming, β = prior + contradicting; mean α/(α+β); variance αβ / ((α+β)²(α+β+1)); credibility is
    P(win rate > reference) where it claims `above`, P(win rate < reference) where it claims `below`.

    >>> from datetime import UTC
    >>> belief = seed_belief("7 of 10", owner_id="me", mode="live", domain=Domain(session="london"), prior=(1.0, 1.0),
    ...                      known_at=datetime(2026, 6, 4, tzinfo=UTC))
    >>> seven = Standing(belief=belief, tested=EvidenceTally(wins=7, losses=3, won_weight=7.0, lost_weight=3.0))
    >>> held = posterior(seven)
    >>> held.alpha, held.beta, round(held.confidence, 3), round(held.uncertainty, 4), round(held.credibility, 3)
    (8.0, 4.0, 0.667, 0.0171, 0.887)
    """
    belief, parts = standing.belief, (standing.founding, standing.tested) if with_founding else (standing.tested,)
    won_weight, lost_weight = sum(part.won_weight for part in parts), sum(part.lost_weight for part in parts)
    above = belief.claims == "above"
    alpha = belief.prior_alpha + (won_weight if above else lost_weight)
    beta = belief.prior_beta + (lost_weight if above else won_weight)
    total = alpha + beta
    return Posterior(
        alpha=alpha,
        beta=beta,
        n=sum(part.n for part in parts),
        confidence=alpha / total,
        uncertainty=alpha * beta / (total * total * (total + 1.0)),
        credibility=beta_tail(belief.reference if above else 1.0 - belief.reference, alpha=alpha, beta=beta),
        win_rate=alpha / total if above else beta / total,
    )


def win_rate_interval(held: Posterior, *, claims: Claim, level: float = 0.9) -> tuple[float, float]:
    """The ends between which the true win rate lies with 90 %: quantiles of the Beta.

    >>> held = Posterior(alpha=8.0, beta=4.0, n=10, confidence=8 / 12, uncertainty=0.0171, credibility=0.887,
    ...                  win_rate=8 / 12)
    >>> [round(end, 3) for end in win_rate_interval(held, claims="above")]
    [0.436, 0.865]
    """
    ends = (0.5 - level / 2, 0.5 + level / 2)
    low, high = (beta_quantile(end, alpha=held.alpha, beta=held.beta) for end in ends)
    return (low, high) if claims == "above" else (1.0 - high, 1.0 - low)


def strength(standing: Standing, *, now: datetime, regime: Regime | None) -> float:
    """How much of a belief is left on reading: (1 + t/180)^−.3, t in days since the last evidence; × .3 elsewhere.

    "Elsewhere" is a current regime that is not in the belief's domain, one that is not known included; a domain of any
    regime holds all of them.

    >>> from datetime import UTC, timedelta
    >>> t0 = datetime(2026, 6, 4, tzinfo=UTC)
    >>> belief = seed_belief("x", owner_id="me", mode="live", domain=Domain(regime="ranging"), known_at=t0)
    >>> later = {"now": t0 + timedelta(days=180)}
    >>> [round(strength(Standing(belief=belief), regime=regime, **later), 3) for regime in ("ranging", "volatile")]
    [0.812, 0.244]
    """
    faded = (1.0 + days_between(standing.last_evidence_at, now) / DECAY_DAYS) ** -DECAY
    return float(faded * (1.0 if standing.belief.domain.regime in (None, regime) else OUTSIDE_DOMAIN))


def worth_testing(standing: Standing) -> bool:
    """Whether a live belief is still open after ten episodes: credibility .3 to .7."""
    if standing.belief.retired_at is not None or standing.n < FEWEST_TO_TEST:
        return False
    return WORTH_TESTING[0] <= posterior(standing).credibility <= WORTH_TESTING[1]


def is_refuted(standing: Standing) -> bool:
    """Whether a belief is to be retired: a credibility below .1 at a look on at least eight days."""
    is_judged = is_look(standing.n) and len(standing.days) >= FEWEST_DAYS
    return is_judged and posterior(standing).credibility < RETIRED_BELOW


def is_look(n: int) -> bool:
    """Whether a cell or a belief is looked at when it holds n episodes: 10, 20, 40 … 320 and each doubling after.

    >>> [n for n in range(1, 1000) if is_look(n)]
    [10, 20, 40, 80, 160, 320, 640]
    """
    if n < LOOKS[0] or n % LOOKS[0]:
        return False
    doubled = n // LOOKS[0]
    return doubled & (doubled - 1) == 0


def is_looked_at(n: int, *, more: int) -> bool:
    """Whether a cell of n episodes is looked at while so many more come.

    >>> [is_looked_at(n, more=9) for n in (0, 1, 9, 10, 11, 31)]
    [False, True, True, False, True, True]
    """
    look = LOOKS[0]
    while look <= n:
        look *= 2
    return look <= n + more


def level_of_look(n: int, *, cells: int) -> float:
    """The level at which a cell of n episodes must differ, of so many cells of its width seen so far.

    .05 / cells / 6 up to 320 episodes; after that each doubling at half the former level.

    >>> [round(level_of_look(n, cells=10), 7) for n in (10, 320, 640, 1280)]
    [0.0008333, 0.0008333, 0.0004167, 0.0002083]
    """
    return FALSE_ALARMS / cells / len(LOOKS) * min(1.0, LOOKS[-1] / n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far a cell's win rate lies from that of the rest of the strategy's trades, and how likely that is chance."""

    rate: float
    elsewhere: float
    error: float
    days: int
    p: float
    least: float
    """1 / (m + 2), m the trades of the rest: what never or always happened there may yet happen."""


def difference(cell: Cell, strategy: Cell) -> Difference | None:
    """A cell against the rest of its strategy's trades; None on fewer than eight days in the cell or in the rest.

    With n trades in the cell and m in the rest, p̂ and q̂ their win rates, and g the UTC days of the close:

        u_g = Σ_{i in cell, g} (y_i − p̂) / n − Σ_{i in rest, g} (y_i − q̂) / m
        V   = G/(G − 1) · Σ_g u_g²                                 Liang & Zeger 1986, clusters are days
        B   = π̂(1 − π̂)(1/n + 1/m), π̂ the win rate of all           binomial, under "no difference"
        t   = (p̂ − q̂) / √max(V, B), two-sided, G − 1 degrees of freedom

    G is the smaller of the days on which the cell and the rest traded: what is known of a rate is known from its own
    days. Days that both share enter u_g once, so a good day for all trades is no difference.
    """
    n, wins = cell.tally.n, cell.tally.wins
    m, rest_wins = strategy.tally.n - n, strategy.tally.wins - wins
    days = min(cell.traded_days, _days_of_rest(cell, strategy))
    if days < FEWEST_DAYS:
        return None
    rate, elsewhere, pooled = wins / n, rest_wins / m, strategy.tally.wins / strategy.tally.n
    clustered = _clustered(cell, strategy, rate, elsewhere) * days / (days - 1)
    error = math.sqrt(max(clustered, pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)))
    p = t_two_sided((rate - elsewhere) / error, freedom=days - 1) if error else 1.0
    return Difference(rate=rate, elsewhere=elsewhere, error=error, days=days, p=p, least=1.0 / (m + 2))


def _days_of_rest(cell: Cell, strategy: Cell) -> int:
    return strategy.traded_days - sum(strategy.days[day].n == count.n for day, count in cell.days.items())


def _clustered(cell: Cell, strategy: Cell, rate: float, elsewhere: float) -> float:
    """Σ u_g²: from the strategy's sums of squares, corrected on the cell's days, which are the only ones visited."""
    n, m = cell.tally.n, strategy.tally.n - cell.tally.n
    both, mixed, won_both = strategy.squares
    others = [won_both - 2.0 * elsewhere * mixed + elsewhere * elsewhere * both]
    shared = []
    for day, here in cell.days.items():
        all_day = strategy.days[day]
        others.append(-((all_day.wins - elsewhere * all_day.n) ** 2))
        rest = (all_day.wins - here.wins) - elsewhere * (all_day.n - here.n)
        shared.append(((here.wins - rate * here.n) / n - rest / m) ** 2)
    return max(0.0, math.fsum(others)) / (m * m) + math.fsum(shared)


def cells_of(episode: Episode) -> tuple[Domain, ...]:
    """The cells an episode lies in: its strategy's, then by each one and each two of the dimensions it has.

    An episode that lacks a dimension lies in no cell of it.
    """
    return _cells(_place_of(episode))


def cells_met(episodes: Iterable[Episode]) -> Mapping[Domain, int]:
    """The cells that some episodes are counted in, and how many of them each."""
    places = Counter(_place_of(episode) for episode in episodes if won(episode) is not None)
    met: Counter[Domain] = Counter()
    for place, n in places.items():
        for domain in _cells(place):
            met[domain] += n
    return met


@lru_cache(maxsize=4096)
def _cells(place: _EpisodePlace) -> tuple[Domain, ...]:
    strategy, values = place
    held = {name: value for name, value in zip(DIMENSIONS, values, strict=True) if value is not None}
    chosen = [names for width in (0, *WIDTHS) for names in combinations(held, width)]
    return tuple(_domain(strategy, {name: held[name] for name in names}) for names in chosen)


def _domain(strategy: str, values: Mapping[str, str]) -> Domain:
    return Domain(strategy=strategy, **values)  # type: ignore[arg-type]


def learn(knowledge: Knowledge, episode: Episode, *, holds: Holds = refuse_conditions) -> BeliefUpdate:
    """What is known after one more episode, in the order in which episodes become known."""
    return learn_all((episode,), knowledge=knowledge, holds=holds)


def learn_all(
    episodes: Iterable[Episode],
    *,
    knowledge: Knowledge,
    holds: Holds = refuse_conditions,
    retirements: Mapping[str, datetime] | None = None,
) -> BeliefUpdate:
    """What is known after these episodes, in the order in which they became known, and what they changed.

    To learn all anew, start with `Knowledge(owner_id=…, mode=…)`, the seeded beliefs added by `with_belief`, and hand
    in when the owner retired which induced beliefs.
    """
    draft = _BeliefLearner(knowledge, holds, retirements or {})
    for episode in episodes:
        draft.learn(episode)
    return draft.learned()


def with_belief(knowledge: Knowledge, belief: Belief) -> Knowledge:
    """The knowledge with a belief that somebody states, or a held one as the owner has changed it.

    Episodes that become known after a seeded belief are evidence for it, earlier ones and those of its instant not.
    """
    _check_same(knowledge, owner_id=belief.owner_id, mode=belief.mode, noun="belief", name=belief.id)
    held = knowledge.standings.get(belief.id, Standing(belief=belief))
    return replace(knowledge, standings={**knowledge.standings, belief.id: replace(held, belief=belief)})


def founding_evidence(
    standing: Standing, episodes: Iterable[Episode], *, weighting: Weighting = "count"
) -> tuple[BeliefEvidence, ...]:
    """The evidence that an induced belief rests on, of the strategy's episodes in the order they became known."""
    belief = standing.belief
    judged = ((each, win) for each in episodes if belief.domain.matches(each) and (win := won(each)) is not None)
    return tuple(
        _evidence(belief, each, win=win, founding=True, weight=weight_of(each, weighting=weighting))
        for each, win in islice(judged, standing.founding.n)
    )


def _evidence(belief: Belief, episode: Episode, *, win: bool, founding: bool, weight: float) -> BeliefEvidence:
    return BeliefEvidence(
        belief_id=belief.id,
        episode_id=episode.id,
        confirms=win == (belief.claims == "above"),
        founding=founding,
        weight=weight,
        known_at=episode.known_at,
    )


def weight_of(episode: Episode, *, weighting: Weighting) -> float:
    """How much an episode counts: 1, or by outcome min(2, |R|) where it has one in R.

    A 35 % win rate at +2.5R/−1R reads .52 by outcome: kept for comparison only.
    """
    outcome = episode.outcome
    if weighting == "count" or outcome is None or outcome.unit != "R":
        return 1.0
    return min(LARGEST_WEIGHT, abs(outcome.value))


class _OpenMoments:
    """`Moments` to which values are added in place."""

    __slots__ = ("mean", "n", "squares")

    def __init__(self, held: Moments) -> None:
        self.n, self.mean, self.squares = held.n, held.mean, held.squares

    def closed(self) -> Moments:
        return Moments(n=self.n, mean=self.mean, squares=self.squares)


_NO_OUTCOMES = Moments()


class _OpenTally:
    """A `EvidenceTally` to which episodes are added in place."""

    __slots__ = ("last_at", "losses", "lost_weight", "outcomes", "wins", "won_weight")

    def __init__(self, held: EvidenceTally) -> None:
        self.wins, self.losses = held.wins, held.losses
        self.won_weight, self.lost_weight = held.won_weight, held.lost_weight
        self.outcomes = {unit: _OpenMoments(moments) for unit, moments in held.outcomes.items()}
        self.last_at = held.last_at

    @property
    def n(self) -> int:
        return self.wins + self.losses

    def add(self, episode: Episode, *, win: bool, weight: float) -> None:
        if win:
            self.wins += 1
            self.won_weight += weight
        else:
            self.losses += 1
            self.lost_weight += weight
        self.last_at = episode.known_at
        if (outcome := episode.outcome) is not None:
            held, value = self.outcomes.get(outcome.unit), outcome.value
            if held is None:
                held = self.outcomes[outcome.unit] = _OpenMoments(_NO_OUTCOMES)
            held.n += 1  # as `Moments.add` does, bit for bit
            step = value - held.mean
            held.mean += step / held.n
            held.squares += step * (value - held.mean)

    def closed(self) -> EvidenceTally:
        return EvidenceTally(
            wins=self.wins,
            losses=self.losses,
            won_weight=self.won_weight,
            lost_weight=self.lost_weight,
            outcomes={unit: moments.closed() for unit, moments in self.outcomes.items()},
            last_at=self.last_at,
        )


class _OpenCell:
    """A `Cell` to which episodes are added in place; the day of the last one is written when it is left."""

    __slots__ = ("day", "day_n", "day_wins", "days", "domain", "squares", "tally", "traded_days")

    def __init__(self, domain: Domain, held: Cell) -> None:
        self.domain, self.tally = domain, _OpenTally(held.tally)
        self.days, self.traded_days, self.squares = dict(held.days), held.traded_days, held.squares
        self.day: date | None = None
        self.day_n = self.day_wins = 0

    def add(self, episode: Episode, day: date, *, win: bool, weight: float) -> None:
        self.tally.add(episode, win=win, weight=weight)
        if day != self.day:
            self._turn_to(day)
        self.day_n += 1
        self.day_wins += win

    def closed(self) -> Cell:
        """The cell as it stands; its days are shared and change with the next episode."""
        self._write_day()
        return Cell(tally=self.tally.closed(), days=self.days, traded_days=self.traded_days, squares=self.squares)

    def _turn_to(self, day: date) -> None:
        self._write_day()
        held = self.days.get(day, _NO_TRADES)
        self.day, self.day_n, self.day_wins = day, held.n, held.wins

    def _write_day(self) -> None:
        if self.day is None:
            return
        was, n, wins = self.days.get(self.day, _NO_TRADES), self.day_n, self.day_wins
        both, mixed, won_both = self.squares
        self.squares = (
            both + n * n - was.n * was.n,
            mixed + n * wins - was.n * was.wins,
            won_both + wins * wins - was.wins * was.wins,
        )
        self.traded_days += was.n == 0
        self.days[self.day] = DayCount(n=n, wins=wins)


_NO_TRADES = DayCount()


class _OpenStanding:
    """A `Standing` to which tested episodes are added in place."""

    __slots__ = ("belief", "days", "founding", "tested")

    def __init__(self, held: Standing) -> None:
        self.belief, self.founding, self.days = held.belief, held.founding, held.days
        self.tested = _OpenTally(held.tested)

    @property
    def n(self) -> int:
        return self.founding.n + self.tested.n

    def add(self, episode: Episode, day: date, *, win: bool, weight: float) -> None:
        self.tested.add(episode, win=win, weight=weight)
        if len(self.days) < FEWEST_DAYS:
            self.days = _with_day(self.days, day.isoformat())

    def closed(self) -> Standing:
        return Standing(belief=self.belief, founding=self.founding, tested=self.tested.closed(), days=self.days)


class _BeliefLearner:
    """Knowledge while it is being learned: what is written is opened once, what is not stays shared."""

    def __init__(self, knowledge: Knowledge, holds: Holds, retirements: Mapping[str, datetime]) -> None:
        self._start, self._holds, self._retirements = knowledge, holds, retirements
        self._through, self._cells_by_width = knowledge.through, dict(knowledge.cells_by_width)
        self._cells: dict[Domain, _OpenCell] = {}
        self._cells_of: dict[_EpisodePlace, tuple[_OpenCell, ...]] = {}
        self._standings = dict(knowledge.standings)
        self._fed: dict[str, _OpenStanding] = {}
        self._beliefs_about: dict[_EpisodePlace, tuple[Belief, ...]] = {}
        self._evidence: list[BeliefEvidence] = []
        self._induced: list[str] = []
        self._retired: list[str] = []

    def learn(self, episode: Episode) -> None:
        self._check(episode)
        self._through = episode.known_at
        win = won(episode)
        if win is None:
            return
        place, day = _place_of(episode), day_of(episode)
        weight = weight_of(episode, weighting=self._start.weighting)
        for belief in self._beliefs(place):
            if self._concerns(belief, episode):
                self._feed(belief.id, episode, day, win=win, weight=weight)
        strategy, *cells = self._open(place)
        strategy.add(episode, day, win=win, weight=weight)
        for cell in cells:
            cell.add(episode, day, win=win, weight=weight)
        for cell in cells:
            if is_look(cell.tally.n):
                self._look(cell, strategy=strategy, at=episode.known_at)

    def learned(self) -> BeliefUpdate:
        standings = self._standings | {name: fed.closed() for name, fed in self._fed.items()}
        knowledge = replace(
            self._start,
            through=self._through,
            cells={**self._start.cells, **{domain: cell.closed() for domain, cell in self._cells.items()}},
            cells_by_width=self._cells_by_width,
            standings=standings,
        )
        return BeliefUpdate(
            knowledge=knowledge,
            evidence=tuple(self._evidence),
            induced=tuple(standings[name].belief for name in self._induced),
            retired=tuple(standings[name].belief for name in self._retired),
        )

    def _check(self, episode: Episode) -> None:
        _check_same(self._start, owner_id=episode.owner_id, mode=episode.mode, noun="episode", name=episode.id)
        if self._through is not None and episode.known_at < self._through:
            late = f"episode {episode.id!r} became known before {format_instant(self._through)}"
            raise Invalid(f"{late}, up to which all is learned; learn all anew in order", field="known_at")

    def _beliefs(self, place: _EpisodePlace) -> tuple[Belief, ...]:
        """The beliefs whose domain holds the place, in the order in which they are held."""
        found = self._beliefs_about.get(place)
        if found is None:
            held = (standing.belief for standing in self._standings.values())
            found = self._beliefs_about[place] = tuple(each for each in held if _lies_in(each.domain, place))
        return found

    def _open(self, place: _EpisodePlace) -> tuple[_OpenCell, ...]:
        """The cells of the place, the strategy's first."""
        found = self._cells_of.get(place)
        if found is None:
            found = self._cells_of[place] = tuple(
                self._cells.get(domain) or self._open_cell(domain) for domain in _cells(place)
            )
        return found

    def _open_cell(self, domain: Domain) -> _OpenCell:
        held = self._start.cells.get(domain)
        if held is None:
            self._cells_by_width[domain.width] = self._cells_by_width.get(domain.width, 0) + 1
        opened = self._cells[domain] = _OpenCell(domain, held or Cell())
        return opened

    def _concerns(self, belief: Belief, episode: Episode) -> bool:
        if belief.source != "induced" and belief.known_at >= episode.known_at:
            return False
        return belief.conditions is None or self._holds(belief.conditions, episode)

    def _feed(self, name: str, episode: Episode, day: date, *, win: bool, weight: float) -> None:
        """Add the episode to a belief's evidence; at a look on enough days, retire what it has refuted.

        Evidence goes on after that: a posterior that stops where it looks worst would be biased, and so one can see
        whether it was right to retire it.
        """
        fed = self._fed.get(name)
        if fed is None:
            fed = self._fed[name] = _OpenStanding(self._standings[name])
        fed.add(episode, day, win=win, weight=weight)
        self._evidence.append(_evidence(fed.belief, episode, win=win, founding=False, weight=weight))
        if is_look(fed.n) and is_refuted(fed.closed()) and _is_live(fed.belief, at=episode.known_at):
            fed.belief = replace(fed.belief, retired_at=episode.known_at)
            self._retired.append(name)

    def _look(self, looked_at: _OpenCell, *, strategy: _OpenCell, at: datetime) -> None:
        """Induce a belief from a cell that differs from the rest, unless one is held or was retired by the owner."""
        domain, cell = looked_at.domain, looked_at.closed()
        if any(self._cells[wider].tally.n == cell.tally.n for wider in domain.wider):
            return  # the same trades, told by one dimension less
        found = difference(cell, strategy.closed())
        if found is None or found.p >= level_of_look(cell.tally.n, cells=self._cells_by_width[domain.width]):
            return
        belief = _induce(self._start, domain, cell, found, at=at)
        if any(self._forbids(held, belief, at=at) for held in self._held_on(domain)):
            return
        belief = replace(belief, retired_at=self._retirements.get(belief.id))
        self._induced.append(belief.id)
        days = tuple(day.isoformat() for day in sorted(cell.days)[:FEWEST_DAYS])
        self._hold(Standing(belief=belief, founding=cell.tally, days=days))

    def _forbids(self, held: Belief, belief: Belief, *, at: datetime) -> bool:
        """Whether a belief is not to be induced beside one of its domain: that one lives, or the owner retired it."""
        if held.source != "induced":
            return False
        said = self._retirements.get(held.id)
        return _is_live(held, at=at) or (said is not None and said <= at and held.claims == belief.claims)

    def _held_on(self, domain: Domain) -> Iterator[Belief]:
        for name, standing in self._standings.items():
            if standing.belief.domain == domain:
                yield self._fed.get(name, standing).belief

    def _hold(self, standing: Standing) -> None:
        self._standings[standing.belief.id] = standing
        self._fed.pop(standing.belief.id, None)
        self._beliefs_about.clear()


def _is_live(belief: Belief, *, at: datetime) -> bool:
    return belief.retired_at is None or belief.retired_at > at


def _induce(knowledge: Knowledge, domain: Domain, cell: Cell, found: Difference, *, at: datetime) -> Belief:
    claims: Claim = "above" if found.rate > found.elsewhere else "below"
    more, n = "more" if claims == "above" else "less", cell.tally.n
    where = " and ".join(f"{name} {value}" for name in DIMENSIONS if (value := getattr(domain, name)) is not None)
    share = f"{cell.tally.wins} of {n} against {found.elsewhere:.0%}"
    return Belief(
        owner_id=knowledge.owner_id,
        id=derive_id("belief", knowledge.owner_id, knowledge.mode, "induced", domain.text(), claims, n),
        mode=knowledge.mode,
        proposition=f"{domain.strategy} wins {more} often with {where} than elsewhere: {share}",
        domain=domain,
        conditions=None,
        claims=claims,
        reference=min(max(found.elsewhere, found.least), 1.0 - found.least),
        source="induced",
        prior_alpha=INDUCED_PRIOR[0],
        prior_beta=INDUCED_PRIOR[1],
        known_at=at,
    )


def day_of(episode: Episode) -> date:
    """The UTC day on which a trade was closed: trades of one day are not independent of each other."""
    return episode.ended_at.astimezone(UTC).date()


def _with_day(days: tuple[str, ...], day: str) -> tuple[str, ...]:
    return days if len(days) >= FEWEST_DAYS or day in days else (*days, day)


def _check_same(knowledge: Knowledge, *, owner_id: str, mode: Mode, noun: str, name: str) -> None:
    if owner_id != knowledge.owner_id or mode != knowledge.mode:
        kept = f"what is learned is {knowledge.owner_id!r}'s, {knowledge.mode}"
        raise Invalid(f"{noun} {name!r} is {owner_id!r}'s, {mode}; {kept}: keep them apart", field="mode")
