"""Health: can I trust it?"""

from dataclasses import fields
from datetime import datetime

from starlette.responses import Response

from backsight.core.errors import Unavailable
from backsight.core.portfolio import Mode
from backsight.settings import settings_from_environment
from backsight.surfaces.web import background
from backsight.surfaces.web.page import PageRequest


def show(page: PageRequest) -> Response:
    verification = page.memory.last_verification(**page.when)
    run = background.run_of(page.memory) if page.state.as_of is None else None
    if page.fragment == "verification":
        return page.render("health_verification.html", verification=verification, run=run)
    try:
        index = page.memory.index_health(**page.when)
    except Unavailable:
        index = None
    return page.render(
        "health.html",
        title="Health",
        verification=verification,
        run=run,
        store=stored_trades(page),
        index=index,
        imports=page.memory.list_imports(**page.when),
        accounts=page.memory.list_accounts(**page.when).accounts,
        strategies=page.memory.list_strategies(**page.when).strategies,
        remarks=page.memory.database.remarks,
        settings=_settings(),
    )


def _settings() -> dict[str, object]:
    """The settings of this process, without keys and without places on this machine."""
    settings = settings_from_environment()
    return {
        each.name: getattr(settings, each.name) for each in fields(settings) if each.repr and each.name not in PLACES
    }


PLACES = frozenset({"url", "cache", "workspace", "file_folders", "shared_folders", "claude_program"})


def stored_trades(page: PageRequest) -> list[tuple[Mode, int, datetime | None]]:
    """The number of closed trades of each mode, and the last close; only modes that have some."""
    modes = sorted({each.mode for each in page.deployments()})
    answers = [(mode, page.memory.list_trades(mode=mode, count=True, limit=1, **page.when)) for mode in modes]
    return [(mode, each.total or 0, each.trades[0].closed_at) for mode, each in answers if each.trades]
