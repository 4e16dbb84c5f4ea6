"""The state of a page, which is its address: deployment, mode, unit, period and instant."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from urllib.parse import urlencode

from backsight.core.errors import Invalid
from backsight.core.instants import format_instant, parse_instant
from backsight.core.portfolio import MODES, Mode
from backsight.surfaces.web.numbers import UNITS, Unit

PERIODS: dict[str, timedelta | None] = {
    "all": None,
    "1y": timedelta(days=365),
    "90d": timedelta(days=90),
    "30d": timedelta(days=30),
    "7d": timedelta(days=7),
}
EVERY = "*"
"""The deployment that stands for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarState:
    """What the bar of every page says."""

    deployment: str | None = None
    """None if the address names none; `*` for all."""
    mode: Mode | None = None
    unit: Unit = "R"
    period: str = "all"
    as_of: datetime | None = None
    """None is now."""

    @property
    def when(self) -> dict[str, Any]:
        """The arguments of every query."""
        return {} if self.as_of is None else {"as_of": self.as_of}

    def since(self, now: datetime) -> datetime | None:
        """The first instant of the period."""
        length = PERIODS[self.period]
        return None if length is None else (self.as_of or now) - length

    def parameters(self) -> dict[str, str]:
        """The part of an address that says this state, without defaults."""
        values = {
            "deployment": self.deployment,
            "mode": self.mode,
            "unit": None if self.unit == "R" else self.unit,
            "period": None if self.period == "all" else self.period,
            "as_of": None if self.as_of is None else short_instant(self.as_of),
        }
        return {name: value for name, value in values.items() if value is not None}

    def link(self, path: str, /, **more: object) -> str:
        """The address of a page with this state; `more` adds parameters, and None removes one."""
        changed = {**self.parameters(), **{name: text_of(value) for name, value in more.items() if value is not None}}
        remaining = {name: value for name, value in changed.items() if more.get(name, value) is not None}
        return f"{path}?{urlencode(remaining)}" if remaining else path

    def at(self, as_of: datetime | None) -> "BarState":
        return replace(self, as_of=as_of)


def text_of(value: object) -> str:
    return short_instant(value) if isinstance(value, datetime) else str(value)


def short_instant(at: datetime) -> str:
    """An instant as short as it can be.

    >>> short_instant(datetime(2026, 6, 4, 10, tzinfo=UTC))
    '2026-06-04T10:00:00Z'
    """
    return format_instant(at).replace(".000000Z", "Z")


def read_state(query: Mapping[str, str]) -> BarState:
    """The state in an address; `Invalid` names a part that is wrong."""
    unit, period, mode = query.get("unit") or "R", query.get("period") or "all", query.get("mode") or None
    if unit not in UNITS:
        raise Invalid(f"{unit!r} is no unit; give one of {', '.join(UNITS)}", field="unit")
    if period not in PERIODS:
        raise Invalid(f"{period!r} is no period; give one of {', '.join(PERIODS)}", field="period")
    if mode is not None and mode not in MODES:
        raise Invalid(f"{mode!r} is no mode; give one of {', '.join(MODES)}", field="mode")
    return BarState(
        deployment=query.get("deployment") or None,
        mode=next((each for each in MODES if each == mode), None),
        unit=next(each for each in get_args(Unit) if each == unit),
        period=period,
        as_of=read_instant(query.get("as_of", ""), field="as_of"),
    )


def read_instant(text: str, *, field: str) -> datetime | None:
    """An instant of an address or a form; a time without a zone is in UTC, and no text is None.

    >>> read_instant("2026-06-04 10:00", field="as_of")
    datetime.datetime(2026, 6, 4, 10, 0, tzinfo=datetime.timezone.utc)
    """
    cleaned = text.strip()
    if not cleaned or cleaned == "now":
        return None
    try:
        at = datetime.fromisoformat(cleaned)
    except ValueError:
        return parse_instant(cleaned, field=field)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else parse_instant(cleaned, field=field)
