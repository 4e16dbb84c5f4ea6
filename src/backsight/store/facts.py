"""Facts about the owner in the store, and which chat sessions were shown them."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, func, select, text

from backsight.core.facts import Fact, FactReference
from backsight.store.decisions import SEGMENTS
from backsight.store.mapping import OWNER, noun
from backsight.store.reading import fetch, fetch_one, known, owned, within
from backsight.store.view import View

USER_FACTS = noun(Fact, "user_facts", indexes=[("created_at", "id")], revised=True, sealed=("fact",))
REFERENCES = noun(
    FactReference,
    "fact_references",
    within={"user_facts": ("fact_id",)},
    indexes=[("session", "place"), ("fact_id", "known_at")],
)


def fact(connection: Connection, owner: str, fact_id: str) -> Fact | None:
    """The fact with this id, also an erased one."""
    return fetch_one(connection, USER_FACTS, owned(USER_FACTS, owner, USER_FACTS.table.c.id == fact_id))


def facts(view: View) -> list[Fact]:
    """All facts that were known, archived ones too and erased ones not, newest first."""
    rows = fetch(view.connection, USER_FACTS, known(USER_FACTS, view.owner, view.horizon))
    return sorted((each for each in rows if each.fact is not None), key=lambda each: (each.created_at, each.id))[::-1]


def referenced_at(view: View) -> dict[str, datetime]:
    """When each fact was shown last, by its id; a fact that never was is not in it."""
    c = REFERENCES.table.c
    last = func.max(c.known_at, type_=c.known_at.type)
    shown = [c[OWNER] == view.owner, c.fact_id.is_not(None), *within(REFERENCES, view.horizon)]
    statement = select(c.fact_id, last).where(*shown)
    return {row[0]: row[1] for row in view.connection.execute(statement.group_by(c.fact_id))}


def shown_in(connection: Connection, owner: str, session: str) -> list[FactReference]:
    """What a chat session was shown, in its order."""
    c = REFERENCES.table.c
    return fetch(connection, REFERENCES, owned(REFERENCES, owner, c.session == session).order_by(c.place))


def count_erased(connection: Connection, owner: str) -> int:
    """The number of facts whose text was erased."""
    c = USER_FACTS.table.c
    statement = select(func.count()).where(c[OWNER] == owner, c.erased_at.is_not(None))
    return int(connection.execute(statement).scalar_one())


def prompts_with(connection: Connection, owner: str, texts: Iterable[str]) -> list[str]:
    """The hashes of stored prompts and answers that contain one of the texts."""
    c, wanted = SEGMENTS.table.c, list(texts)
    rows = connection.execute(select(c.hash, c.text).where(c[OWNER] == owner).execution_options(yield_per=1_000))
    return [row.hash for row in rows if any(each in row.text for each in wanted)]


def overwrite_deleted(connection: Connection) -> None:
    """Make SQLite overwrite what the running transaction deletes."""
    if connection.dialect.name == "sqlite":
        connection.execute(text("PRAGMA secure_delete=ON"))


def former_texts(connection: Connection, owner: str, fact_id: str) -> list[str]:
    """The texts of a fact before it was edited."""
    if USER_FACTS.former is None:
        raise TypeError("facts are revised")
    c = USER_FACTS.former.table.c
    return list(connection.execute(select(c.fact).where(c[OWNER] == owner, c.id == fact_id)).scalars())
