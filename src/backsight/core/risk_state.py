"""The risk state: the agent's recent orders, rejections and results, as a text of at most 140 tokens.

The names of rules come from the caller's risk engine: they may be of any length, in any script. The text shows as many
names, and as much of each, as the limit allows.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Literal, TypeVar
from unicodedata import category

from backsight.core.instants import to_utc
from backsight.core.numbers import signed
from backsight.core.text.tokens import estimate

AttemptKind = Literal["noop", "rejected", "executed"]

HEADING = "## Recent activity (this session)"
REPEATED = " ← same code in the last 3+ rejections; do not repeat the same proposal shape"
LOSING = "; consider whether your read of the regime still holds"

HOUR = timedelta(hours=1)
TAIL = 4
"""Most rejections in the sequence: the last ones of the hour."""
REPEATS = 3
"""Equal rejections in a row from which the text warns of a repetition; two may be chance."""
LOSING_STREAK = 3
"""Losing closes in a row from which their probability is computed; fewer are never unusual."""
FEWEST_TRADES = 10
"""Trades before the streak that a win rate needs."""
UNUSUAL = 0.05
"""The probability below which a losing streak is unusual for the strategy."""

MOST_TOKENS = 140
"""Including the empty line after the section."""
AFTER = "\n\n"
LARGEST_COUNT = 999_999
LARGEST_PERCENT = 9_999.99
LONGEST_READ = 256
"""Characters of a name that are read; far fewer are ever shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The result of one tick: nothing proposed, rejected by the risk engine, or executed."""

    at: datetime
    kind: AttemptKind
    rule: str | None = None
    """The rule that rejected the proposal; None if the risk engine named none."""
    moves_levels: bool = False
    """Whether the proposal only moves the stop or the target of a position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """The close of a trade, with its net result."""

    at: datetime
    net: float
    currency: str | None = None
    """Given if the result could not be converted into the account's currency: it is in no sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """The number of rejections by a rule; the rule None counts those that name no rule."""

    rule: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskState:
    """Recent activity at an instant; the default is the state at a deployment's first tick."""

    rejections: tuple[RuleCount, ...] = ()
    """In the last hour, most frequent first, ties by name."""
    tail: tuple[str | None, ...] = ()
    """The rules of the last rejections within that hour, oldest first, four at most."""
    executed_today: int = 0
    """Orders, without those that only move a stop or a target."""
    levels_moved_today: int = 0
    realized_share_today: float | None = None
    """Net result of the UTC day as a share of the day-start equity; None if the equity is not known."""
    losing_streak: int = 0
    usual_win_rate: float | None = None
    """The strategy's win rate before the streak; None for fewer than three losses in a row, or ten earlier trades."""
    streak_chance: float | None = None
    """The probability of so many losing closes in a row at that win rate, known from so many trades."""

    @property
    def is_unusual_streak(self) -> bool:
        """Whether the losing streak is longer than the strategy's own win rate explains."""
        return self.streak_chance is not None and self.streak_chance < UNUSUAL

    @property
    def repeats_one_rule(self) -> bool:
        """Whether the last three rejections name the same rule."""
        last = self.tail[-REPEATS:]
        return len(last) == REPEATS and last[0] is not None and len(set(last)) == 1


def risk_state(
    attempts: Iterable[Attempt], closes: Iterable[Close], *, now: datetime, day_start_equity: float | None
) -> RiskState:
    """The risk state at `now`; attempts and closes may come in any order, and later ones are ignored.

    The last hour is now − 1 h < at ≤ now, today is the UTC day of `now`, and a loss is a net result of zero or less.

    >>> from datetime import UTC
    >>> now = datetime(2026, 6, 4, 10, tzinfo=UTC)
    >>> attempts = [Attempt(at=now - timedelta(minutes=n), kind="rejected", rule="R6_RATE_LIMIT") for n in (0, 5, 60)]
    >>> state = risk_state(attempts, [Close(at=now, net=0.0)], now=now, day_start_equity=10_000.0)
    >>> state.rejections, state.repeats_one_rule, state.losing_streak
    ((RuleCount(rule='R6_RATE_LIMIT', count=2),), False, 1)
    """
    now = to_utc(now, field="now")
    past_attempts, past_closes = _until(attempts, now=now), _until(closes, now=now)
    rules = [attempt.rule for attempt in past_attempts if attempt.kind == "rejected" and now - attempt.at < HOUR]
    executed = [attempt for attempt in past_attempts if attempt.kind == "executed" and _same_day(attempt.at, now)]
    today = [close.net for close in past_closes if _same_day(close.at, now) and close.currency is None]
    return RiskState(
        rejections=_by_rule(rules),
        tail=tuple(rules[-TAIL:]),
        executed_today=sum(not attempt.moves_levels for attempt in executed),
        levels_moved_today=sum(attempt.moves_levels for attempt in executed),
        realized_share_today=_share(today, of=day_start_equity),
        losing_streak=len(list(takewhile(lambda close: not close.net > 0, reversed(past_closes)))),
    )


def with_win_rate(state: RiskState, *, trades: int, wins: int) -> RiskState:
    """The state with the probability of its losing streak, given how many of all the strategy's trades were won.

    The streak itself does not count as evidence. Five losses in a row say nothing about a strategy that wins a quarter
    of its trades, and much about one that wins two thirds:

    >>> states = [with_win_rate(RiskState(losing_streak=5), trades=105, wins=wins) for wins in (25, 67)]
    >>> [(round(state.streak_chance, 3), state.is_unusual_streak) for state in states]
    [(0.241, False), (0.005, True)]
    """
    earlier = trades - state.losing_streak
    if state.losing_streak < LOSING_STREAK or earlier < FEWEST_TRADES:
        return state
    chance = chance_of_losses(state.losing_streak, wins=wins, losses=max(0, earlier - wins))
    return replace(state, usual_win_rate=min(1.0, wins / earlier), streak_chance=chance)


def chance_of_losses(streak: int, *, wins: int, losses: int) -> float:
    """The probability that the next `streak` trades all lose, after so many wins and losses.

    The posterior predictive of a Beta-binomial under Jeffreys' prior, B(w + ½, l + ½ + k) / B(w + ½, l + ½): with few
    trades the win rate is uncertain, and no streak is unlikely.

    >>> [round(chance_of_losses(5, wins=n, losses=n), 3) for n in (0, 5, 500)]
    [0.246, 0.06, 0.032]
    """
    won, lost = wins + 0.5, losses + 0.5
    logarithm = math.lgamma(lost + streak) - math.lgamma(lost) - math.lgamma(won + lost + streak)
    return math.exp(logarithm + math.lgamma(won + lost))


def render_risk_state(state: RiskState) -> str:
    """The section as the agent reads it, without a newline at its end; empty if there was no activity.

    The section takes at most 140 tokens of cl100k and of o200k, whatever the names and the number of the rules.

    >>> state = RiskState(executed_today=2, realized_share_today=-0.0123, losing_streak=5)
    >>> print(render_risk_state(with_win_rate(state, trades=105, wins=67)))
    ## Recent activity (this session)
    - executed orders today (UTC): 2
    - realized PnL today (UTC, vs day-start equity): -1.23%
    - consecutive losing closes: 5 (0.5% likely at 67% wins; consider whether your read of the regime still holds)
    >>> render_risk_state(RiskState())
    ''
    """
    return next(text for text in (_rendered(state, room) for room in _ROOMS) if estimate(text + AFTER) <= MOST_TOKENS)


def _rendered(state: RiskState, room: "_Room") -> str:
    lines = [
        _line("engine rejections (last 1h)", _counts(state.rejections, room)),
        _line("recent rejection sequence", _sequence(state, room)),
        _line("executed orders today (UTC)", _number(state.executed_today) if state.executed_today > 0 else ""),
        _line(
            "stop or target moves today (UTC)", _number(state.levels_moved_today) if state.levels_moved_today else ""
        ),
        _line("realized PnL today (UTC, vs day-start equity)", _percent(state.realized_share_today)),
        _line("consecutive losing closes", _streak(state)),
    ]
    filled = [line for line in lines if line]
    return "\n".join([HEADING, *filled]) if filled else ""


_Dated = TypeVar("_Dated", Attempt, Close)


def _until(items: Iterable[_Dated], *, now: datetime) -> list[_Dated]:
    """The items not after `now`, oldest first; items of one instant keep their order."""
    return sorted((item for item in items if to_utc(item.at, field="at") <= now), key=lambda item: item.at)


def _same_day(at: datetime, now: datetime) -> bool:
    return to_utc(at).date() == now.date()


def _by_rule(rules: Iterable[str | None]) -> tuple[RuleCount, ...]:
    ordered = sorted(Counter(rules).items(), key=lambda item: (-item[1], item[0] or ""))
    return tuple(RuleCount(rule=rule, count=count) for rule, count in ordered)


def _share(nets: Iterable[float], *, of: float | None) -> float | None:
    """The sum as a share of equity; None if either is not a usable number."""
    if of is None or not 0 < of < math.inf:
        return None
    share = sum(nets) / of
    return share if math.isfinite(share) else None


def _line(label: str, text: str) -> str:
    return f"- {label}: {text}" if text else ""


def _number(count: int) -> str:
    """A count in at most six digits.

    >>> _number(42), _number(10**9)
    ('42', '999999+')
    """
    return str(count) if count <= LARGEST_COUNT else f"{LARGEST_COUNT}+"


def _percent(share: float | None) -> str:
    """A share as a signed percentage; empty if it is not known or rounds to zero.

    >>> _percent(-0.0123), _percent(0.5), _percent(0.00001), _percent(1e6)
    ('-1.23%', '+50.00%', '', '>+9999.99%')
    """
    if share is None or not math.isfinite(share):
        return ""
    if abs(share) * 100 > LARGEST_PERCENT:
        return f"{'>+' if share > 0 else '<-'}{LARGEST_PERCENT}%"
    text = signed(share * 100, 2)
    return f"{text}%" if float(text) else ""


def _streak(state: RiskState) -> str:
    """The length of the losing streak, with a nudge only if the strategy's own win rate does not explain it."""
    if state.losing_streak <= 0:
        return ""
    if not state.is_unusual_streak or state.streak_chance is None or state.usual_win_rate is None:
        return _number(state.losing_streak)
    likely = "less than 0.1%" if state.streak_chance < 0.001 else f"{100.0 * state.streak_chance:.1f}%"
    chance = f"{likely} likely at {100.0 * state.usual_win_rate:.0f}% wins"
    return f"{_number(state.losing_streak)} ({chance}{LOSING})"


@dataclass(frozen=True, slots=True)
class _Room:
    """Limits of the text: number of rules, length of the sequence, bytes of a name."""

    rules: int
    tail: int
    size: int


_ROOMS = (
    _Room(3, TAIL, 32),
    _Room(3, 3, 32),
    _Room(2, 3, 32),
    _Room(2, 2, 32),
    _Room(1, 2, 32),
    _Room(1, 1, 32),
    _Room(1, 1, 24),
    _Room(1, 1, 20),
    _Room(1, 1, 16),
    _Room(1, 1, 12),
    _Room(1, 1, 8),
)
"""From the widest to the narrowest; the last one always fits."""


def _counts(rejections: tuple[RuleCount, ...], room: _Room) -> str:
    counts = [f"{_name(each.rule, size=room.size)}={_number(each.count)}" for each in rejections[: room.rules]]
    more = len(rejections) - len(counts)
    return ", ".join([*counts, f"+{_number(more)} more"] if more else counts)


def _sequence(state: RiskState, room: _Room) -> str:
    names = [_name(rule, size=room.size) for rule in state.tail[-room.tail :]]
    return " → ".join(names) + (REPEATED if state.repeats_one_rule else "")


def _name(rule: str | None, *, size: int) -> str:
    """A rule's name on one line, in at most `size` bytes, without arrows and invisible characters.

    >>> _name("R3\\n## New section → buy", size=32)
    'R3 ## New section > buy'
    >>> _name("R3_POSITION_CAP_PER_SYMBOL", size=20), _name("限额超出", size=10), _name(None, size=16)
    ('R3_POSITION_CAP_P…', '限额…', 'unnamed')
    """
    visible = "".join(" " if category(c) in _INVISIBLE else c for c in (rule or "")[:LONGEST_READ])
    name = " ".join(visible.translate(_ARROWS).split()) or "unnamed"
    if len(name.encode()) <= size:
        return name
    return name.encode()[: size - len(_CUT)].decode(errors="ignore").rstrip(" _") + _CUT.decode()


_INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
_ARROWS = str.maketrans("→←", "><")
_CUT = "…".encode()
