"""Active memory: the events of a shared session, and the state that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

SessionEventKind = Literal["shared", "unshared", "reset", "advanced"]
SessionContext = Literal["off", "fresh", "carrying context"]
MANY_RUNS = 20
"""Successful runs since a fresh start above which a session is long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent:
    """One event of the session that the chats and heartbeats of a deployment share."""

    owner_id: str
    deployment_id: str
    sequence: int
    kind: SessionEventKind
    session_id: str | None = None
    """The newest session, of an `advanced` event."""
    run_id: str | None = None
    """The run that advanced the session."""
    known_at: datetime
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState:
    """The shared session of a deployment at an instant."""

    is_shared: bool = False
    session_id: str | None = None
    """The session to resume; None: start fresh."""
    runs: int = 0
    """Successful runs since the last fresh start."""
    since: datetime | None = None
    """The last fresh start: sharing or reset."""
    advanced_at: datetime | None = None
    """When a run last wrote the session back."""

    @property
    def context(self) -> SessionContext:
        if not self.is_shared:
            return "off"
        return "fresh" if self.session_id is None else "carrying context"

    @property
    def is_long(self) -> bool:
        return self.is_shared and self.runs > MANY_RUNS

    def age(self, now: datetime) -> timedelta | None:
        """How long ago the session was last written; None if it is fresh."""
        return None if self.advanced_at is None else max(timedelta(0), now - self.advanced_at)


NOT_SHARED = SessionState()


def session_state(events: Sequence[SessionEvent]) -> SessionState:
    """The state after some events, in their order. Unsharing keeps the events, and the session is not used."""
    state = NOT_SHARED
    for event in sorted(events, key=lambda each: each.sequence):
        match event.kind:
            case "shared":
                state = SessionState(is_shared=True, since=event.known_at)
            case "reset":
                state = SessionState(is_shared=state.is_shared, since=event.known_at)
            case "unshared":
                state = NOT_SHARED
            case "advanced":
                state = SessionState(
                    is_shared=state.is_shared,
                    session_id=event.session_id,
                    runs=state.runs + 1,
                    since=state.since,
                    advanced_at=event.known_at,
                )
    return state


def may_advance(state: SessionState, *, started_at: datetime) -> bool:
    """Whether a run that started at an instant may write its session back.

    A session that was reset, shared anew or unshared while the run was on its way stays as it is.
    """
    return state.is_shared and (state.since is None or state.since <= started_at)


def age_in_words(age: timedelta) -> str:
    """An age as people say it.

    >>> [age_in_words(timedelta(minutes=m)) for m in (0, 7, 135, 60 * 50)]
    ['0m', '7m', '2h 15m', '2d 2h']
    """
    minutes = int(age.total_seconds() // 60)
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days}d {hours}h" if hours else f"{days}d"
    return f"{hours}h {minutes % 60}m" if hours else f"{minutes}m"
