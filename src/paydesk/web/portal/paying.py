"""The page that a mail about a failed charge leads to: it pays what is open, in one step.

No cookie and no log-in is needed: the link itself is the key, to this one charge. The card that is
given takes the place of the one that failed, and is charged at once by the billing run, as any
renewal: never twice for one period.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from paydesk.core.errors import NotFound
from paydesk.domain.billing.open_payments import Standing
from paydesk.domain.billing.replacing_on_pages import PAYING_PATH
from paydesk.web.portal import pages, replacing
from paydesk.web.portal.visiting import PortalVisit, open_visit

Handler = Callable[[PortalVisit], Awaitable[Response]]


def _route(path: str, handler: Handler, method: str) -> Route:
    """A page for as long as the charge is open; after that each of them says how it stands."""

    async def answer(request: Request) -> Response:
        try:
            visit = await open_visit(request)
        except NotFound:
            return pages.not_found_page(pages.texts_for(request.headers.get("accept-language", "")))
        if visit.standing is Standing.OPEN:
            return await handler(visit)
        if method == "POST":
            return visit.go(visit.result_path)
        return _status(visit) if path == "/status" else _how_it_stands(visit)

    return Route(f"{PAYING_PATH}/{{period}}/{{token}}{path}", answer, methods=[method])


def _how_it_stands(visit: PortalVisit) -> Response:
    """The page on which to wait for a charge, or the one that says what came of it."""
    if visit.standing is not Standing.CHARGING:
        return pages.standing_page(visit.view, visit.standing)
    return pages.checking_page(visit.view, query=visit.request.url.query)


def _status(visit: PortalVisit) -> Response:
    """For the waiting page: whether there is a result, and where it is."""
    charging = visit.standing is Standing.CHARGING
    body = {"state": "processing"} if charging else {"state": "done", "url": visit.result_path}
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


routes = [
    _route("", replacing.show_card, "GET"),
    _route("", replacing.submit_card, "POST"),
    _route("/continue", replacing.go_on, "POST"),
    _route("/continue", replacing.back_to_card, "GET"),
    _route("/result", replacing.show_card_result, "GET"),
    _route("/status", replacing.show_card_status, "GET"),
]
