"""Pingbacks: the log with its filters, and one pingback with every attempt as it was sent."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.domain.accounts.roles import Permission
from paydesk.domain.pingbacks.history import PingbackFilter, browse_pingbacks, find_with_attempts
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section
from paydesk.web.console.lists import ROWS, days_asked, list_address, mark_of, page_asked
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_PINGBACKS = "/account/{merchant_id}/pingbacks"

_STATES = {
    PingbackState.WAITING: (mark("Waits for a URL"), "yellow"),
    PingbackState.DUE: (mark("Being sent"), "blue"),
    PingbackState.ACKNOWLEDGED: (mark("Acknowledged"), "green"),
    PingbackState.EXHAUSTED: (mark("Failed"), "red"),
}
"""What a state is called, and the tone of its badge."""


@section.page(_PINGBACKS, needs=Permission.view_pingbacks)
async def show_pingbacks(visit: Visit) -> Response:
    """A page of the log, newest first."""
    text, path = visit.form.text, visit.url("pingbacks")
    state = text("state", 20)
    asked = {
        "state": state if state in set(PingbackState) else "",
        "reference": text("reference", 300),
        "email": text("email", 300),
        **days_asked(visit),
    }
    wanted = PingbackFilter(
        PingbackState(asked["state"]) if asked["state"] else None, asked["reference"] or None, asked["email"] or None
    )
    found = await browse_pingbacks(visit.database, visit.shop, wanted, page_asked(visit))
    shown = [seen.pingback for seen in found[:ROWS]]
    older = mark_of(shown[-1].created_at, shown[-1].id) if len(found) > ROWS else ""
    return visit.page(
        "pingbacks.html",
        pingbacks=shown,
        asked=asked,
        filtered=any(asked.values()),
        states=_STATES,
        now=await visit.shop_now(),
        newest=list_address(path, asked) if text("before", 60) else "",
        older=list_address(path, {**asked, "before": older}) if older else "",
    )


@section.page(f"{_PINGBACKS}/{{pingback_id}}", needs=Permission.view_pingbacks)
async def show_pingback(visit: Visit) -> Response:
    """One pingback with its attempts, first to last; the private key in their headers is masked."""
    seen, attempts = await find_with_attempts(visit.database, visit.shop, visit.number("pingback_id"))
    return visit.page(
        "pingback.html",
        pingback=seen.pingback,
        state=_STATES[seen.pingback.state],
        attempts=attempts,
    )
