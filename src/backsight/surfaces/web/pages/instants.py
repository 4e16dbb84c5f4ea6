"""The instants of the slider, and the step to the next change; both look at the whole past, not as of the page."""

from datetime import timedelta
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.responses import JSONResponse, RedirectResponse, Response

from backsight.core.errors import Invalid
from backsight.surfaces.web.page import PAGES, PageRequest
from backsight.surfaces.web.state import short_instant

STOPS = 400


def show(page: PageRequest) -> Response:
    """The instants at which something changed, for the slider."""
    answer = page.memory.list_instants(**page.deployment, limit=STOPS)
    return JSONResponse([short_instant(each.at) for each in answer.instants])


def step(page: PageRequest) -> Response:
    """The same page as of the change before or after its instant."""
    target = urlsplit(page.query.get("to", "/"))
    if target.scheme or target.netloc or "/" + target.path.lstrip("/").partition("/")[0] not in PAGES:
        raise Invalid("is no page of this server; use the links", field="to")
    now = page.memory.clock.now()
    at = page.state.as_of or now
    instant = timedelta(microseconds=1)
    if page.query.get("direction") == "later":
        neighbours = page.memory.list_instants(**page.deployment, since=at + instant, choose="first", limit=1).instants
    else:
        neighbours = page.memory.list_instants(**page.deployment, until=at, choose="last", limit=1).instants
    query = dict(parse_qsl(target.query, keep_blank_values=True))
    query.pop("as_of", None)
    is_last = page.query.get("direction") == "later" and not neighbours
    if neighbours:
        query["as_of"] = short_instant(neighbours[0].at)
    elif not is_last:
        query["as_of"] = short_instant(at)
    path = f"{target.path}?{urlencode(query)}" if query else target.path
    return RedirectResponse(path, status_code=303)
