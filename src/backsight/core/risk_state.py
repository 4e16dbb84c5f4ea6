"""The risk state: what the agent did in this session and what the risk engine said, in at most 140 tokens.

Rules are named by the caller's risk engine, so their names are text from outside: any length, any script. As many names
are shown, and as much of each, as the ceiling has room for beside the fixed words.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
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
LOSING = " (consider whether your read of the regime still holds)"

HOUR = timedelta(hours=1)
TAIL = 4
"""How many rejections the sequence shows at most, the last ones, however many the hour had."""
REPEATS = 3
"""The smallest number of equal rejections that is clearly not noise: two never accuse."""
LOSING_STREAK = 3

MOST_TOKENS = 140
"""The empty line after it included."""
AFTER = "\n\n"
LARGEST_COUNT = 999_999
LARGEST_PERCENT = 9_999.99
LONGEST_READ = 256
"""Characters of a name that are looked at; far fewer are ever shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of one tick: nothing proposed, refused by the risk engine, or executed."""

    at: datetime
    kind: AttemptKind
    rule: str | None = None
    """The rule that refused, as the risk engine names it; None where it did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """The end of a trade, with its net result in the account's currency."""

    at: datetime
    net: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """How often one rule refused; the rule None stands for rejections that name none."""

    rule: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskState:
    """In-session activity at an instant; the default is that of a deployment's first tick."""

    rejections: tuple[RuleCount, ...] = ()
    """In the last hour, most frequent first, ties by name."""
    tail: tuple[str | None, ...] = ()
    """The rules of the last rejections within that hour, oldest first, four at most."""
    executed_today: int = 0
    realized_share_today: float | None = None
    """Realised net of the UTC day over day-start equity; None where the equity is not known."""
    losing_streak: int = 0

    @property
    def repeats_one_rule(self) -> bool:
        """Whether the last three rejections are one rule; three that name none are not known to be."""
        last = self.tail[-REPEATS:]
        return len(last) == REPEATS and last[0] is not None and len(set(last)) == 1


def risk_state(
    attempts: Iterable[Attempt], closes: Iterable[Close], *, now: datetime, day_start_equity: float | None
) -> RiskState:
    """The risk state at `now`; attempts and closes come in any order, and later ones are not looked at.

    The last hour is now − 1 h < at ≤ now, today is the UTC day of `now`, a loss is a net that is not above zero. The
    sequence is of the same hour as the counts: an old rejection is not recent activity.

    >>> from datetime import UTC
    >>> now = datetime(2026, 6, 4, 10, tzinfo=UTC)
    >>> tried = [Attempt(at=now - timedelta(minutes=n), kind="rejected", rule="R6_RATE_LIMIT") for n in (0, 5, 60)]
    >>> state = risk_state(tried, [Close(at=now, net=0.0)], now=now, day_start_equity=10_000.0)
    >>> state.rejections, state.repeats_one_rule, state.losing_streak
    ((RuleCount(rule='R6_RATE_LIMIT', count=2),), False, 1)
    """
    now = to_utc(now, field="now")
    tried, closed = _seen(attempts, now=now), _seen(closes, now=now)
    rules = [attempt.rule for attempt in tried if attempt.kind == "rejected" and now - attempt.at < HOUR]
    executed = [attempt for attempt in tried if attempt.kind == "executed" and _same_day(attempt.at, now)]
    today = [close.net for close in closed if _same_day(close.at, now)]
    return RiskState(
        rejections=_by_rule(rules),
        tail=tuple(rules[-TAIL:]),
        executed_today=len(executed),
        realized_share_today=_share(today, of=day_start_equity),
        losing_streak=len(list(takewhile(lambda close: not close.net > 0, reversed(closed)))),
    )


def render_risk_state(state: RiskState) -> str:
    """The section as the agent reads it, without a newline at its end; empty when there is nothing to say.

    It takes at most 140 tokens of cl100k and of o200k, whatever the rules are called and however many there are.

    >>> print(render_risk_state(RiskState(executed_today=2, realized_share_today=-0.0123, losing_streak=3)))
    ## Recent activity (this session)
    - executed orders today (UTC): 2
    - realized PnL today (UTC, vs day-start equity): -1.23%
    - consecutive losing closes: 3 (consider whether your read of the regime still holds)
    >>> render_risk_state(RiskState())
    ''
    """
    return next(text for text in (_rendered(state, room) for room in _ROOMS) if estimate(text + AFTER) <= MOST_TOKENS)


def _rendered(state: RiskState, room: "_Room") -> str:
    lines = [
        _line("engine rejections (last 1h)", _counts(state.rejections, room)),
        _line("recent rejection sequence", _sequence(state, room)),
        _line("executed orders today (UTC)", _number(state.executed_today) if state.executed_today > 0 else ""),
        _line("realized PnL today (UTC, vs day-start equity)", _percent(state.realized_share_today)),
        _line("consecutive losing closes", _streak(state.losing_streak)),
    ]
    said = [line for line in lines if line]
    return "\n".join([HEADING, *said]) if said else ""


_Dated = TypeVar("_Dated", Attempt, Close)


def _seen(items: Iterable[_Dated], *, now: datetime) -> list[_Dated]:
    """Those not after `now`, oldest first; those of one instant stay in the order given."""
    return sorted((item for item in items if to_utc(item.at, field="at") <= now), key=lambda item: item.at)


def _same_day(at: datetime, now: datetime) -> bool:
    return to_utc(at).date() == now.date()


def _by_rule(rules: Iterable[str | None]) -> tuple[RuleCount, ...]:
    ordered = sorted(Counter(rules).items(), key=lambda item: (-item[1], item[0] or ""))
    return tuple(RuleCount(rule=rule, count=count) for rule, count in ordered)


def _share(nets: Iterable[float], *, of: float | None) -> float | None:
    """The sum as a share of equity; None where either is not a usable number."""
    if of is None or not 0 < of < math.inf:
        return None
    share = sum(nets) / of
    return share if math.isfinite(share) else None


def _line(label: str, said: str) -> str:
    return f"- {label}: {said}" if said else ""


def _number(count: int) -> str:
    """A count in at most six digits.

    >>> _number(42), _number(10**9)
    ('42', '999999+')
    """
    return str(count) if count <= LARGEST_COUNT else f"{LARGEST_COUNT}+"


def _percent(share: float | None) -> str:
    """A share as a signed percentage; empty where it is not known or shows as zero.

    >>> _percent(-0.0123), _percent(0.5), _percent(0.00001), _percent(1e6)
    ('-1.23%', '+50.00%', '', '>+9999.99%')
    """
    if share is None or not math.isfinite(share):
        return ""
    if abs(share) * 100 > LARGEST_PERCENT:
        return f"{'>+' if share > 0 else '<-'}{LARGEST_PERCENT}%"
    text = signed(share * 100, 2)
    return f"{text}%" if float(text) else ""


def _streak(losses: int) -> str:
    if losses <= 0:
        return ""
    return _number(losses) + (LOSING if losses >= LOSING_STREAK else "")


@dataclass(frozen=True, slots=True)
class _Room:
    """How many rules and how much of the sequence are shown, and in how many bytes a name."""

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
"""From the most to the least, whole names before many; the last always fits."""


def _counts(rejections: tuple[RuleCount, ...], room: _Room) -> str:
    shown = [f"{_name(each.rule, size=room.size)}={_number(each.count)}" for each in rejections[: room.rules]]
    more = len(rejections) - len(shown)
    return ", ".join([*shown, f"+{_number(more)} more"] if more else shown)


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
    seen = "".join(" " if category(c) in _INVISIBLE else c for c in (rule or "")[:LONGEST_READ])
    name = " ".join(seen.translate(_ARROWS).split()) or "unnamed"
    if len(name.encode()) <= size:
        return name
    return name.encode()[: size - len(_CUT)].decode(errors="ignore").rstrip(" _") + _CUT.decode()


_INVISIBLE = frozenset({"Cc", "Cf", "Cs"})
_ARROWS = str.maketrans("→←", "><")
_CUT = "…".encode()
