"""Writings: an edit is decided once, and a decision is a new version of the edit."""

from dataclasses import replace
from datetime import timedelta

import pytest

from backsight.core.documents.writing import Writing, decide
from backsight.core.errors import Conflict
from backsight.testing import T0

LATER = T0 + timedelta(hours=1)
EDIT = Writing(
    owner_id="ana",
    id="w1",
    kind="edit",
    path="rules.md",
    text="never above 2%",
    diff="",
    base_hash=None,
    reason=None,
    agent="VolBreakout",
    run_id=None,
    status="proposed",
    decided_at=None,
    decided_reason=None,
    made_at=T0,
    known_at=T0,
    recorded_at=T0,
)


def test_a_decision_is_a_version_known_from_its_instant_on() -> None:
    approved = decide(EDIT, "approved", reason="good", now=LATER)
    assert (approved.status, approved.decided_at, approved.decided_reason) == ("approved", LATER, "good")
    assert (approved.made_at, approved.known_at, approved.recorded_at) == (T0, LATER, LATER)


def test_an_edit_is_decided_once() -> None:
    rejected = decide(EDIT, "rejected", reason=None, now=LATER)
    with pytest.raises(Conflict, match="already rejected; propose a new edit"):
        decide(rejected, "approved", reason=None, now=LATER)


def test_a_note_is_not_decided() -> None:
    with pytest.raises(Conflict, match="only edits are approved or rejected"):
        decide(replace(EDIT, kind="note", status="written"), "approved", reason=None, now=LATER)
