"""Beliefs: what trades earn in a domain, or how often they win there, against a reference, and how credible that is.

A belief claims that the mean outcome in a domain, or the win rate there, lies above or below a reference. Episodes in
the domain are its evidence. Beliefs are stated by somebody, or induced from trades (`belief_induction`). A belief about
a win rate is no advice: many small wins can cost more than they earn (`advice`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Literal

from backsight.core.copies import copy_with
from backsight.core.errors import Invalid
from backsight.core.ids import ShownAsJson, canonical_json, derive_id
from backsight.core.instants import days_between
from backsight.core.memory.conditions import Condition, condition_text
from backsight.core.memory.daily_moments import DailyMoments, DailyMomentsBuilder
from backsight.core.memory.episodic import Episode
from backsight.core.portfolio import Direction, Mode
from backsight.core.quick_init import quick_init
from backsight.core.regime import Regime, Session, VolatilityRegime
from backsight.core.statistics import beta_quantile, beta_tail
from backsight.core.trades.trade import Outcome, OutcomeUnit

About = Literal["mean_outcome", "win_rate"]
"""The quantity that a belief compares with its reference."""
Claim = Literal["above", "below"]
BeliefSource = Literal["induced", "seeded", "migrated"]
Weighting = Literal["count", "outcome"]
"""`count`: each episode counts 1. `outcome`: it counts min(2, |R|), which biases the posterior; for comparison only."""

DIMENSIONS = ("symbol", "direction", "session", "regime", "volatility_regime")
LOOKS = (10, 20, 40, 80, 160, 320)
"""At how many episodes a cell or a belief is tested; after the last one, at every doubling."""
FEWEST_DAYS = 8
"""On fewer UTC days than this, nothing is induced or refuted."""
RETIRED_BELOW = 0.1
"""The credibility below which a belief is refuted."""
WORTH_TESTING = (0.3, 0.7)
"""Between these credibilities a belief is undecided."""
FEWEST_TO_TEST = 10
SEEDED_PRIOR = (2.0, 1.0)
INDUCED_PRIOR = (1.0, 1.0)
REFERENCES: Mapping[About, float] = {"mean_outcome": 0.0, "win_rate": 0.5}
"""The reference of a stated belief that names none."""
UNITS: tuple[OutcomeUnit, ...] = ("R", "vol", "pct")
"""In this order of preference where several units have as many outcomes."""
LARGEST_WEIGHT = 2.0
FALSE_ALARMS = 0.05
"""The error over all looks at a belief, or over all looks at all cells of one width."""
_NORMAL_NODES = (
    (-2.856970013872806, 0.011257411327720683),
    (-1.355626179974266, 0.2220759220056126),
    (0.0, 0.5333333333333333),
    (1.355626179974266, 0.2220759220056126),
    (2.856970013872806, 0.011257411327720683),
)
"""Points and weights of the five-point Gauss–Hermite rule for a standard normal variable."""

DECAY_DAYS = 180.0
DECAY = 0.3
OUTSIDE_DOMAIN = 0.3


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Where a belief holds; None means any value of a dimension.

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
        """How many dimensions the domain names besides the strategy."""
        return sum(getattr(self, name) is not None for name in DIMENSIONS)

    @property
    def wider(self) -> tuple["Domain", ...]:
        """For a domain of two dimensions, the two domains that name one of them; else nothing."""
        dimensions = [name for name in DIMENSIONS if getattr(self, name) is not None]
        return tuple(copy_with(self, **{name: None}) for name in dimensions) if len(dimensions) > 1 else ()

    def matches(self, episode: Episode) -> bool:
        """Whether an episode is in the domain; an unknown dimension of an episode matches no named value."""
        return self.contains(place_of(episode))

    def contains(self, place: "EpisodePlace") -> bool:
        """Whether the episodes at a place are in the domain."""
        strategy, (symbol, direction, session, regime, volatility_regime) = place
        return (
            self.strategy in (None, strategy)
            and self.symbol in (None, symbol)
            and self.direction in (None, direction)
            and self.session in (None, session)
            and self.regime in (None, regime)
            and self.volatility_regime in (None, volatility_regime)
        )

    def text(self) -> str:
        """The domain as canonical JSON, which identifies it.

        >>> Domain(strategy="IM", regime="ranging").text()
        '{"regime":"ranging","strategy":"IM"}'
        """
        return _text_of(self)


@lru_cache(maxsize=4_096)  # a correction looks up the same cells thousands of times
def _text_of(domain: Domain) -> str:
    values = {name: getattr(domain, name) for name in ("strategy", *DIMENSIONS)}
    return canonical_json({name: value for name, value in values.items() if value is not None})


EpisodePlace = tuple[str, tuple[str | None, ...]]
"""An episode's strategy, and its values in the order of `DIMENSIONS`; its cells and beliefs depend on nothing else."""


def place_of(episode: Episode) -> EpisodePlace:
    """The place of an episode among the cells."""
    context = episode.context
    values = (episode.symbol, episode.direction, context.session, context.regime, context.volatility_regime)
    return episode.strategy_name, values


def won(episode: Episode) -> bool | None:
    """Whether a trade was won (net > 0); None for an episode that is no trade or has no result: it is no evidence."""
    if episode.kind != "trade":
        return None
    if episode.pnl is not None:
        return episode.pnl > 0
    return None if episode.outcome is None else episode.outcome.value > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefTerms:
    """A proposition about the mean outcome or the win rate in a domain, against a reference."""

    owner_id: str
    id: str
    mode: Mode
    proposition: str
    domain: Domain
    conditions: Annotated[Condition | None, ShownAsJson(encode=condition_text)]
    """A condition on the context at entry, in the grammar of plans."""
    about: About
    claims: Claim
    reference: float
    """A win rate, or a mean outcome in R; a mean outcome of 0 is the same in every unit."""
    reference_error: float = 0.0
    """The standard error of a reference that was estimated, such as the win rate elsewhere; 0 for a stated one."""
    source: BeliefSource
    prior_alpha: float
    """Prior count of confirming episodes: wins where the belief claims `above`, losses where it claims `below`."""
    prior_beta: float
    known_at: datetime
    """When the belief was stated, or when the episode that induced it became known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief(BeliefTerms):
    """A belief, and whether it is retired."""

    retired_at: datetime | None = None
    """From then on the belief is neither shown nor acted on; its evidence is still counted."""


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefEvidence:
    """One episode that confirms or contradicts one belief."""

    belief_id: str
    episode_id: str
    confirms: bool
    founding: bool
    """Whether the belief was induced from the episode, so that the episode does not test it."""
    weight: float
    known_at: datetime


@quick_init
@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceTally:
    """Wins, losses and outcomes of episodes; the weights are counts, unless episodes are weighted by outcome."""

    wins: int = 0
    losses: int = 0
    won_weight: float = 0.0
    lost_weight: float = 0.0
    outcomes: Mapping[OutcomeUnit, DailyMoments] = field(default_factory=dict)
    last_at: datetime | None = None
    """When the last episode became known."""

    @property
    def n(self) -> int:
        return self.wins + self.losses


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A belief with its evidence: founding evidence, from which it was induced, and later evidence, which tests it."""

    belief: Belief
    founding: EvidenceTally = field(default_factory=EvidenceTally)
    tested: EvidenceTally = field(default_factory=EvidenceTally)
    days: tuple[str, ...] = ()
    """The first eight UTC days of evidence, in ISO 8601; a belief is refuted only on that many days."""
    wins: DailyMoments = field(default_factory=DailyMoments)
    """Wins as 1 and losses as 0, of all evidence, for the errors of the win rate by day and by blocks of days."""
    established: bool = False
    """Whether the last look found the claim established; see `is_established`."""

    @property
    def n(self) -> int:
        """How many episodes are evidence."""
        return self.founding.n + self.tested.n

    def design_effect(self, *, level: float = 0.9) -> float:
        """How many episodes count as one, since wins come together on days and in spells of days; at least 1."""
        return self.wins.n / self.wins.effective_n(level=level) if self.wins.n else 1.0

    @property
    def outcomes(self) -> dict[OutcomeUnit, DailyMoments]:
        """The outcomes of all evidence, by unit."""
        founding = dict(self.founding.outcomes)
        return founding | {
            unit: founding.get(unit, DailyMoments()).joined(tested) for unit, tested in self.tested.outcomes.items()
        }

    @property
    def last_evidence_at(self) -> datetime:
        """When the last evidence became known; without evidence, when the belief became known."""
        return self.tested.last_at or self.founding.last_at or self.belief.known_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """The posterior of a belief: Beta(α, β) of the rate at which episodes confirm it, and its credibility."""

    alpha: float
    beta: float
    n: int
    confidence: float
    """The Beta's mean."""
    uncertainty: float
    """The Beta's variance."""
    credibility: float
    """The probability that the claim against the reference holds, from the evidence that tests it, without founding
    evidence: of the win rate by the Beta distribution, with as many episodes as there are independent ones; of the mean
    outcome by Student's t over days and blocks of days, with ten sceptical trades at the reference."""
    win_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefDraft:
    """A belief as somebody states it, not yet checked."""

    proposition: str
    domain: Domain
    conditions: Condition | None = None
    """A condition on the context at entry."""
    about: About = "mean_outcome"
    claims: Claim = "above"
    reference: float | None = None
    """None is a mean outcome of 0, or a win rate of one half."""
    mode: Mode = "live"
    source: BeliefSource = "seeded"
    prior: tuple[float, float] = SEEDED_PRIOR
    """α and β of the Beta prior."""


def seed_belief(draft: BeliefDraft, *, owner_id: str, known_at: datetime) -> Belief:
    """The belief that somebody states; a belief without a domain or conditions is refused.

    >>> from datetime import UTC
    >>> stated = {"owner_id": "me", "known_at": datetime(2026, 6, 4, tzinfo=UTC)}
    >>> ranges = BeliefDraft(proposition="Breakouts fail in ranges", domain=Domain(regime="ranging"), claims="below")
    >>> belief = seed_belief(ranges, **stated)
    >>> belief.about, belief.reference, belief.prior_alpha, belief.prior_beta
    ('mean_outcome', 0.0, 2.0, 1.0)
    >>> seed_belief(BeliefDraft(proposition="Breakouts work", domain=Domain(strategy="VB")), **stated)
    Traceback (most recent call last):
    ...
    backsight.core.errors.Invalid: domain: 'Breakouts work' does not say where it holds; name at least one of symbol,
    direction, session, regime, volatility_regime, or give conditions
    """
    if not draft.proposition.strip():
        raise Invalid("the proposition is empty; give one sentence", field="proposition")
    if not draft.domain.width and draft.conditions is None:
        remedy = f"name at least one of {', '.join(DIMENSIONS)}, or give conditions"
        raise Invalid(f"{draft.proposition!r} does not say where it holds; {remedy}", field="domain")
    reference = REFERENCES[draft.about] if draft.reference is None else draft.reference
    if draft.about == "win_rate" and not 0.0 < reference < 1.0:
        raise Invalid(f"{reference} is no win rate; give a number between 0 and 1", field="reference")
    if not math.isfinite(reference):
        raise Invalid(f"{reference} is no mean outcome; give a number of R", field="reference")
    if not all(0.0 < part < math.inf for part in draft.prior):
        raise Invalid(f"Beta{draft.prior} does not exist; give two numbers above 0", field="prior")
    conditions = None if draft.conditions is None else condition_text(draft.conditions)
    belief_id = derive_id(
        "belief", owner_id, draft.mode, draft.domain.text(), conditions, draft.claims, draft.proposition
    )
    return Belief(
        owner_id=owner_id,
        id=belief_id,
        mode=draft.mode,
        proposition=draft.proposition,
        domain=draft.domain,
        conditions=draft.conditions,
        about=draft.about,
        claims=draft.claims,
        reference=reference,
        source=draft.source,
        prior_alpha=draft.prior[0],
        prior_beta=draft.prior[1],
        known_at=known_at,
    )


def posterior(standing: Standing, *, with_founding: bool = True) -> Posterior:
    """The posterior of a belief; `with_founding=False` leaves its founding evidence out.

    α = prior + confirming, β = prior + contradicting; mean α/(α+β); variance αβ / ((α+β)²(α+β+1)). The credibility is
    P(value > reference) for a belief that claims `above`, P(value < reference) for one that claims `below`, where the
    value is the win rate or the mean outcome. It never rests on founding evidence, which was chosen for being extreme.
    Without evidence, a mean outcome is as likely above as below.

    >>> from datetime import UTC
    >>> draft = BeliefDraft(proposition="7 of 10", domain=Domain(session="london"), about="win_rate", prior=(1.0, 1.0))
    >>> belief = seed_belief(draft, owner_id="me", known_at=datetime(2026, 6, 4, tzinfo=UTC))
    >>> seven = Standing(belief=belief, tested=EvidenceTally(wins=7, losses=3, won_weight=7.0, lost_weight=3.0))
    >>> after = posterior(seven)
    >>> after.alpha, after.beta, round(after.confidence, 3), round(after.uncertainty, 4), round(after.credibility, 3)
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
        credibility=credibility_of(standing),
        win_rate=alpha / total if above else beta / total,
    )


def credibility_of(standing: Standing, *, level: float = 0.9) -> float:
    """The probability that the claim of a belief holds, from the evidence that tests it.

    `level` is that of the intervals of win rates whose width tells how many episodes are independent.
    """
    belief = standing.belief
    if belief.about == "win_rate":
        return _win_rate_credibility(standing, level)
    _, moments = main_outcome(standing.tested.outcomes, reference=belief.reference)
    is_above = moments.probability_above(belief.reference)
    return is_above if belief.claims == "above" else 1.0 - is_above


def _win_rate_credibility(standing: Standing, level: float) -> float:
    """P(win rate above or below the reference), in the mean over the reference's own error (Gauss–Hermite)."""
    belief, design_effect = standing.belief, standing.design_effect(level=level)
    above = belief.claims == "above"
    tested = (standing.tested.won_weight / design_effect, standing.tested.lost_weight / design_effect)
    confirming, contradicting = tested if above else tested[::-1]
    alpha, beta = belief.prior_alpha + confirming, belief.prior_beta + contradicting
    nodes = _NORMAL_NODES if belief.reference_error else ((0.0, 1.0),)
    references = [(belief.reference + node * belief.reference_error, weight) for node, weight in nodes]
    return math.fsum(
        weight * beta_tail(reference if above else 1.0 - reference, alpha=alpha, beta=beta)
        for reference, weight in references
    )


def main_outcome(
    outcomes: Mapping[OutcomeUnit, DailyMoments], *, reference: float = 0.0
) -> tuple[OutcomeUnit, DailyMoments]:
    """The unit of most outcomes, and the outcomes in it; only R can be compared with a reference other than 0.

    >>> main_outcome({"pct": DailyMoments(n=3), "R": DailyMoments(n=2)})[0]
    'pct'
    >>> unit, moments = main_outcome({"pct": DailyMoments(n=3)}, reference=0.2)
    >>> unit, moments == DailyMoments()
    ('R', True)
    """
    units = UNITS if reference == 0.0 else UNITS[:1]
    unit = max(units, key=lambda each: outcomes[each].n if each in outcomes else 0)
    return unit, outcomes.get(unit, DailyMoments())


def win_rate_interval(standing: Standing, *, level: float = 0.9) -> tuple[float, float]:
    """The equal-tailed credible interval of the win rate: quantiles of the Beta distribution of independent episodes.

    >>> from datetime import UTC
    >>> draft = BeliefDraft(proposition="7 of 10", domain=Domain(session="london"), about="win_rate", prior=(1.0, 1.0))
    >>> belief = seed_belief(draft, owner_id="me", known_at=datetime(2026, 6, 4, tzinfo=UTC))
    >>> seven = Standing(belief=belief, tested=EvidenceTally(wins=7, losses=3, won_weight=7.0, lost_weight=3.0))
    >>> [round(end, 3) for end in win_rate_interval(seven)]
    [0.436, 0.865]
    """
    belief, design_effect = standing.belief, standing.design_effect(level=level)
    above = belief.claims == "above"
    prior_wins, prior_losses = (
        (belief.prior_alpha, belief.prior_beta) if above else (belief.prior_beta, belief.prior_alpha)
    )
    wins = prior_wins + (standing.founding.won_weight + standing.tested.won_weight) / design_effect
    losses = prior_losses + (standing.founding.lost_weight + standing.tested.lost_weight) / design_effect
    low, high = (beta_quantile(end, alpha=wins, beta=losses) for end in (0.5 - level / 2, 0.5 + level / 2))
    return low, high


def strength(standing: Standing, *, now: datetime, regime: Regime | None) -> float:
    """How much of a belief is left: (1 + t/180)^−.3 after t days without evidence, times .3 in another regime.

    A domain that names a regime does not include an unknown regime; a domain that names none includes all regimes.

    >>> from datetime import UTC, timedelta
    >>> t0 = datetime(2026, 6, 4, tzinfo=UTC)
    >>> draft = BeliefDraft(proposition="x", domain=Domain(regime="ranging"))
    >>> belief = seed_belief(draft, owner_id="me", known_at=t0)
    >>> later = {"now": t0 + timedelta(days=180)}
    >>> [round(strength(Standing(belief=belief), regime=regime, **later), 3) for regime in ("ranging", "volatile")]
    [0.812, 0.244]
    """
    faded = (1.0 + days_between(standing.last_evidence_at, now) / DECAY_DAYS) ** -DECAY
    return float(faded * (1.0 if standing.belief.domain.regime in (None, regime) else OUTSIDE_DOMAIN))


def worth_testing(standing: Standing) -> bool:
    """Whether a live belief is undecided after ten episodes: a credibility of .3 to .7."""
    if standing.belief.retired_at is not None or standing.n < FEWEST_TO_TEST:
        return False
    return WORTH_TESTING[0] <= posterior(standing).credibility <= WORTH_TESTING[1]


def is_refuted(standing: Standing) -> bool:
    """Whether the evidence that tests a belief refutes it: a credibility below .1 at a look, on at least eight days."""
    return is_judged(standing) and credibility_of(standing) < RETIRED_BELOW


def is_established(standing: Standing) -> bool:
    """Whether the evidence that tests a belief establishes it at a look, on at least eight days.

    Its doubt, 1 − credibility, must be below the error that the look may spend, so that a claim that holds no better
    than a coin is ever established in at most 5% of cases, however long it is watched.
    """
    if not is_judged(standing):
        return False
    error, belief = error_of_look(standing.tested.n), standing.belief
    credibility = credibility_of(standing, level=1.0 - 2.0 * error)
    if belief.about == "win_rate" and not standing.founding.n:
        # Ten sceptical trades and Student's t, as for a mean outcome: the Beta distribution has lighter tails.
        is_above = standing.wins.probability_above(belief.reference)
        credibility = min(credibility, is_above if belief.claims == "above" else 1.0 - is_above)
    return 1.0 - credibility < error


def is_judged(standing: Standing) -> bool:
    """Whether a belief is at a look: its 10th, 20th, 40th … tested episode, on at least eight days."""
    return is_look(standing.tested.n) and len(standing.days) >= FEWEST_DAYS


def error_of_look(n: int) -> float:
    """The error that a look at n episodes may spend: .05 / 6 up to 320 episodes, half of it at each later doubling.

    >>> [round(error_of_look(n), 5) for n in (10, 320, 640, 1280)]
    [0.00833, 0.00833, 0.00417, 0.00208]
    """
    return FALSE_ALARMS / len(LOOKS) * min(1.0, LOOKS[-1] / n)


def is_look(n: int) -> bool:
    """Whether a cell or a belief is tested when it has n episodes: at 10, 20, 40 … 320 and every doubling after.

    >>> [n for n in range(1, 1000) if is_look(n)]
    [10, 20, 40, 80, 160, 320, 640]
    """
    if n < LOOKS[0] or n % LOOKS[0]:
        return False
    doubled = n // LOOKS[0]
    return doubled & (doubled - 1) == 0


def reaches_look(n: int, *, more: int) -> bool:
    """Whether a cell of n episodes comes to a look while `more` episodes are added.

    >>> [reaches_look(n, more=9) for n in (0, 1, 9, 10, 11, 31)]
    [False, True, True, False, True, True]
    """
    look = LOOKS[0]
    while look <= n:
        look *= 2
    return look <= n + more


def weight_of(episode: Episode, *, weighting: Weighting) -> float:
    """How much an episode counts: 1, or min(2, |R|) if episodes are weighted by outcome and this one has one in R.

    Weighted by outcome, a true win rate of 35% at +2.5R/−1R appears as .52.
    """
    outcome = episode.outcome
    if weighting == "count" or outcome is None or outcome.unit != "R":
        return 1.0
    return min(LARGEST_WEIGHT, abs(outcome.value))


_NO_OUTCOMES = DailyMoments()


class TallyBuilder:
    """An `EvidenceTally` to which episodes are added in place."""

    __slots__ = ("last_at", "losses", "lost_weight", "outcomes", "wins", "won_weight")

    def __init__(self, tally: EvidenceTally) -> None:
        self.wins, self.losses = tally.wins, tally.losses
        self.won_weight, self.lost_weight = tally.won_weight, tally.lost_weight
        self.outcomes = {unit: DailyMomentsBuilder(moments) for unit, moments in tally.outcomes.items()}
        self.last_at = tally.last_at

    @property
    def n(self) -> int:
        return self.wins + self.losses

    def add(self, outcome: Outcome | None, known_at: datetime, *, day: str, win: bool, weight: float) -> None:
        if win:
            self.wins += 1
            self.won_weight += weight
        else:
            self.losses += 1
            self.lost_weight += weight
        self.last_at = known_at
        if outcome is not None:
            moments = self.outcomes.get(outcome.unit)
            if moments is None:
                moments = self.outcomes[outcome.unit] = DailyMomentsBuilder(_NO_OUTCOMES)
            moments.add(outcome.value, day)

    def build(self) -> EvidenceTally:
        return EvidenceTally(
            wins=self.wins,
            losses=self.losses,
            won_weight=self.won_weight,
            lost_weight=self.lost_weight,
            outcomes={unit: moments.build() for unit, moments in self.outcomes.items()},
            last_at=self.last_at,
        )
