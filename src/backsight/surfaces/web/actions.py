"""The forms: each does one thing by one operation, and goes back to the page that it came from."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import RedirectResponse, Response

from backsight.core.errors import Invalid, Refused
from backsight.core.facts import FactConfidence
from backsight.surfaces.web import background
from backsight.surfaces.web.page import PAGES, PageRequest


def _back(page: PageRequest) -> Response:
    """To the page that the form was on; only to a page of this server."""
    target = page.form.get("back", "/")
    parts = urlsplit(target)
    is_page = "/" + parts.path.lstrip("/").partition("/")[0] in PAGES and target.startswith("/") and "\\" not in target
    safe = is_page and not parts.scheme and not parts.netloc and not target.startswith("//")
    return RedirectResponse(target if safe else "/", status_code=303)


def _field(page: PageRequest, name: str) -> str:
    value = page.form.get(name, "").strip()
    if not value:
        raise Invalid("is missing; send the form of the page", field=name)
    return value


def _reason(page: PageRequest) -> dict[str, str]:
    reason = page.form.get("reason", "").strip()
    return {"reason": reason} if reason else {}


def annotate(page: PageRequest) -> Response:
    tags = [tag for each in page.form.get("tags", "").split(",") if (tag := each.strip())]
    words = page.form.get("reflection", "").replace("\r\n", "\n").strip()
    more: dict[str, Any] = {**({"tags": tags} if tags else {}), **({"reflection": words} if words else {})}
    page.memory.annotate_trade(trade_id=_field(page, "trade_id"), **more)
    return _back(page)


def decide_proposal(page: PageRequest) -> Response:
    proposal = {"proposal_id": _field(page, "proposal_id"), **_reason(page)}
    if _choice(page, ("accept", "reject")) == "accept":
        page.memory.accept_proposal(**proposal)
    else:
        page.memory.reject_proposal(**proposal)
    return _back(page)


def decide_edit(page: PageRequest) -> Response:
    edit = {"edit_id": _field(page, "edit_id"), **_reason(page)}
    if _choice(page, ("approve", "reject")) == "approve":
        page.memory.approve_edit(**edit)
    else:
        page.memory.reject_edit(**edit)
    return _back(page)


def _choice(page: PageRequest, choices: tuple[str, ...]) -> str:
    decision = _field(page, "decision")
    if decision not in choices:
        raise Invalid(f"{decision[:20]!r} is none of {', '.join(choices)}", field="decision")
    return decision


def retire_belief(page: PageRequest) -> Response:
    page.memory.retire_belief(belief_id=_field(page, "belief_id"), **_reason(page))
    return _back(page)


def cancel_plan(page: PageRequest) -> Response:
    page.memory.cancel_plan(plan_id=_field(page, "plan_id"), **_reason(page))
    return _back(page)


def add_fact(page: PageRequest) -> Response:
    page.memory.add_fact(fact=_field(page, "fact"), **_topic(page))
    return _back(page)


def _topic(page: PageRequest) -> dict[str, Any]:
    topic = page.form.get("topic", "").strip()
    return {"topic": topic} if topic else {}


def edit_fact(page: PageRequest) -> Response:
    text = _field(page, "fact").replace("\r\n", "\n")
    page.memory.edit_fact(fact_id=_field(page, "fact_id"), fact=text, **(_topic(page) or {"clear": ["topic"]}))
    return _back(page)


def fact_confidence(page: PageRequest) -> Response:
    is_promoted = page.form.get("confidence") == "asserted"
    confidence: FactConfidence = "asserted" if is_promoted else "inferred"
    page.memory.set_fact_confidence(fact_id=_field(page, "fact_id"), confidence=confidence)
    return _back(page)


def archive_fact(page: PageRequest) -> Response:
    page.memory.forget(fact_id=_field(page, "fact_id"), reason="user_deleted")
    return _back(page)


def restore_fact(page: PageRequest) -> Response:
    page.memory.restore_fact(fact_id=_field(page, "fact_id"))
    return _back(page)


def erase_fact(page: PageRequest) -> Response:
    if page.form.get("confirm", "").strip().lower() != "erase":
        raise Invalid("is not 'erase'; type it to confirm", field="confirm")
    page.memory.erase_fact(fact_id=_field(page, "fact_id"))
    return _back(page)


def session(page: PageRequest) -> Response:
    """Share, unshare or reset the session of a deployment's agent."""
    deployment = _field(page, "of_deployment")
    match _choice(page, ("share", "unshare", "reset")):
        case "share":
            page.memory.share_session(deployment=deployment)
        case "unshare":
            page.memory.unshare_session(deployment=deployment)
        case _:
            page.memory.reset_session(deployment=deployment)
    return _back(page)


def re_examine(page: PageRequest) -> Response:
    page.memory.re_examine(run=_field(page, "run"))
    return _back(page)


def verify(page: PageRequest) -> Response:
    if not page.is_owner:
        raise Refused("only the owner verifies the store; sign in", field="authorization")
    background.start(page.memory, everything=page.form.get("everything") == "yes")
    return _back(page)


FORMS: Mapping[str, Callable[[PageRequest], Response]] = {
    action.__name__.replace("_", "-"): action
    for action in (
        *(annotate, decide_proposal, decide_edit, retire_belief, cancel_plan, session, re_examine, verify),
        *(add_fact, edit_fact, fact_confidence, archive_fact, restore_fact, erase_fact),
    )
}
"""The forms by the last part of their address."""
