"""Signing in: with the address that `backsight serve` prints, or with a key of the owner."""

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from backsight.core.errors import BacksightError
from backsight.surfaces.access import PAGES_COOKIE, Door
from backsight.surfaces.web.page import PageRequest, error_page

if TYPE_CHECKING:
    from starlette.requests import Request

WEEK = 7 * 86_400


def sign_in(page: PageRequest, door: Door, request: "Request") -> Response:
    """Show the form; or check the token of the address or of the form, and remember it in a cookie."""
    token = page.form.get("token", page.query.get("token", "")).strip()
    if not token:
        return page.render("sign_in.html", title="Sign in")
    try:
        door.page_caller(token)
    except BacksightError as error:
        return error_page(page, error)
    response = RedirectResponse("/", status_code=303)
    response.set_cookie(
        PAGES_COOKIE,
        token,
        max_age=WEEK,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        path="/",
    )
    return response
