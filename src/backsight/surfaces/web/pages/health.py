"""Health: can I trust it?"""

from dataclasses import fields

from starlette.responses import Response

from backsight.core.errors import Unavailable
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
        store=page.memory.status(**page.when),
        index=index,
        accounts=page.memory.list_accounts(**page.when).accounts,
        strategies=page.memory.list_strategies(**page.when).strategies,
        remarks=page.memory.database.remarks,
        settings=_settings(),
    )


def _settings() -> dict[str, object]:
    """The settings of this process, without keys and without the address of the database, which may have a password."""
    settings = settings_from_environment()
    return {each.name: getattr(settings, each.name) for each in fields(settings) if each.repr and each.name != "url"}
