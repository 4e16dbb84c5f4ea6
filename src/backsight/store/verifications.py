"""The table of verifications."""

from backsight.core.verification import VerificationRecord
from backsight.store.mapping import noun
from backsight.store.reading import fetch_one, owned, within
from backsight.store.view import View

VERIFICATIONS = noun(VerificationRecord, "verifications", indexes=[("known_at",)])


def last_verification(view: View, *, whole: bool = False) -> VerificationRecord | None:
    """The last verification that was recorded by then; with `whole`, the last of everything."""
    c = VERIFICATIONS.table.c
    of_everything = [c.since.is_(None)] if whole else []
    statement = owned(VERIFICATIONS, view.owner, *within(VERIFICATIONS, view.horizon), *of_everything)
    return fetch_one(view.connection, VERIFICATIONS, statement.order_by(c.known_at.desc(), c.id))
