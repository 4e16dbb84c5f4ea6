"""Runs: invocations of an agent, with the prompt, the output, the session and the result card of each."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from backsight.core.instants import format_instant

RunKind = Literal["heartbeat", "manual", "chat", "re_examination"]
RunStatus = Literal["running", "succeeded", "failed", "cancelled"]
MOST_TEXT = 200_000
"""Characters of a prompt or an output that are stored."""
LONGEST_ERROR = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """One invocation of an agent. Its result is written once, when the run ends."""

    owner_id: str
    id: str
    deployment_id: str
    kind: RunKind
    parent_id: str | None = None
    """The run whose decision a re-examination examines."""
    runner: str | None = None
    """What ran the agent, like `claude`; None for a run that an agent with its own loop reported."""
    session_before: str | None = None
    """The session that the run resumed; None if it started fresh."""
    session_after: str | None = None
    """The session that the run ended with."""
    prompt: str
    output: str | None = None
    transcript: str | None = None
    """The messages of the run in the format of its runner; None if the runner keeps them itself."""
    status: RunStatus
    error: str | None = None
    note: str | None = None
    """What happened beside the result, like a session that could not be resumed."""
    started_at: datetime
    expires_at: datetime | None = None
    """By then a run that Backsight started has ended: one that still says `running` was interrupted."""
    ended_at: datetime | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    card_type: str | None = None
    result: str | None = None
    """The result as JSON, as the agent gave it."""
    fits: bool | None = None
    """Whether the result fits its card type; None without a card type."""
    misfit: str | None = None
    """Why the result does not fit."""
    request_digest: str = ""
    known_at: datetime
    recorded_at: datetime

    @property
    def ending(self) -> str:
        """How the run ended, in sentences."""
        status = self.status.capitalize()
        if self.error:
            return f"{status}: {self.error}."
        return f"{status}. The result does not fit {self.card_type}: {self.misfit}." if self.misfit else f"{status}."

    @property
    def card(self) -> Mapping[str, Any]:
        """The result by field; empty if there is none."""
        value = None if self.result is None else json.loads(self.result)
        return value if isinstance(value, dict) else {}

    def at(self, now: datetime) -> "AgentRun":
        """The run as of an instant: one whose lease is over is failed, whatever became of its process."""
        if self.status != "running" or self.expires_at is None or now < self.expires_at:
            return self
        error = f"interrupted: the run had not ended by {format_instant(self.expires_at)}, when its lease was over"
        return replace(self, status="failed", error=error, ended_at=self.expires_at)


def lease_of(timeout_seconds: float) -> timedelta:
    """How long a run may be running: its own time limit, twice since a lost session is tried again, and a minute."""
    return timedelta(seconds=2 * timeout_seconds + 60)


def shortened_text(text: str, *, most: int = MOST_TEXT) -> str:
    """A text as it is stored: of one that is too long, the beginning and the end.

    >>> shortened_text("abcdefghij", most=4)
    'ab\\n[… 6 characters left out …]\\nij'
    """
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


def json_object_in(text: str) -> dict[str, Any] | None:
    """The last JSON object in a text, in a fence or bare; None if there is none.

    >>> json_object_in('I looked.\\n```json\\n{"decision": "WAIT"}\\n```')
    {'decision': 'WAIT'}
    >>> json_object_in("nothing here { at all") is None
    True
    """
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    last_object: dict[str, Any] | None = None
    position = text.find("{")
    tried = 0
    while position >= 0 and tried < MOST_TRIES:
        tried += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            last_object = value if isinstance(value, dict) else last_object
        position = text.find("{", end)
    return last_object


MOST_TRIES = 10_000


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
