"""The portal's routes: one subscription's page, cancelling it, replacing its card.

No cookie is needed: the link itself is the key to the subscription. A door translates, it
decides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from paydesk.core.errors import NotFound
from paydesk.domain.billing.differences import became_of
from paydesk.domain.billing.for_customer import find_receipt, past_payments
from paydesk.domain.selling.payment_links import link_selling
from paydesk.domain.subscriptions.items import ItemState, list_items
from paydesk.web.portal import changes, pages, planning, replacing
from paydesk.web.portal.visiting import PortalVisit, open_visit
from paydesk.web.texts import Texts
from paydesk.web.visits import base_path

_KEY = re.compile(r"[!-~]{1,255}", re.ASCII)
_PAYMENT = re.compile(r"[0-9]{1,16}", re.ASCII)

Handler = Callable[[PortalVisit], Awaitable[Response]]


def _route(path: str, handler: Handler, method: str) -> Route:
    """A page below `/portal/{token}`, which only the subscription's own link opens."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(await open_visit(request))
        except NotFound:
            return pages.not_found_page(_texts(request))

    return Route(f"/portal/{{token}}{path}", answer, methods=[method])


def _texts(request: Request) -> Texts:
    return pages.texts_for(request.headers.get("accept-language", ""))


async def show(visit: PortalVisit) -> Response:
    """The subscription as it stands now; `?before=<id>` shows older payments."""
    asked = visit.request.query_params.get("before", "")
    before = int(asked) if _PAYMENT.fullmatch(asked) else None
    payments = await past_payments(visit.services.desk.database, visit.holding.subscription, before=before)
    said = await _said(visit)
    held = visit.holding
    items = [
        item
        for item in await list_items(visit.services.desk.database, held.shop, held.subscription.id)
        if item.state is ItemState.WAITING
    ]
    again, query = await _again(visit), visit.request.url.query
    return pages.subscription_page(
        visit.view, payments, items, paging=before is not None, said=said, again=again, query=query
    )


async def _said(visit: PortalVisit) -> str:
    """What is to be said on top of the page to who comes back from a deed."""
    asked = visit.request.query_params
    if "changed" in asked:
        return "changed"
    if visit.holding.charging:
        return next((name for name in ("busy", "waiting") if name in asked), "")
    return await _came_of_waiting(visit, asked.get("waiting", ""))


async def _came_of_waiting(visit: PortalVisit, key: str) -> str:
    """What the bank said at last to the charge that the form with this key asked for."""
    held = visit.holding
    if not _KEY.fullmatch(key):
        return ""
    state = await became_of(visit.services.desk.database, held.shop, held.subscription.id, planning.name_of(key))
    return {"paid": "changed", "declined": "declined"}.get(state, "")


async def show_status(visit: PortalVisit) -> Response:
    """For who waits for the bank on the subscription's page: whether it has answered, and where
    that is said.
    """
    key = quote(visit.request.query_params.get("waiting", ""), safe="")
    done = {"state": "done", "url": f"{visit.path}?waiting={key}"}
    body = {"state": "processing"} if visit.holding.charging else done
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


async def _again(visit: PortalVisit) -> str:
    """Where a subscription that is over may be begun once more: the payment link that sells its
    package, else the shop; empty while it runs.
    """
    held = visit.holding
    if held.subscription.running:
        return ""
    link = await link_selling(visit.services.desk.database, held.shop, held.subscription.package.terms.sku_id)
    if link is None:
        return visit.view.home
    return f"{base_path(visit.request)}/buy/{link.token(visit.services.desk.vault)}"


async def show_receipt(visit: PortalVisit) -> Response:
    """The receipt for one payment."""
    number = str(visit.request.path_params.get("payment_id"))
    if not _PAYMENT.fullmatch(number):
        raise NotFound("there is no such receipt")
    held = visit.holding
    receipt = await find_receipt(visit.services.desk.database, held.subscription, int(number))
    items = await list_items(visit.services.desk.database, held.shop, held.subscription.id)
    return pages.receipt_page(visit.view, receipt, [item for item in items if item.payment_id == receipt.id])


routes = [
    _route("", show, "GET"),
    _route("/status", show_status, "GET"),
    _route("/receipt/{payment_id}", show_receipt, "GET"),
    _route("/cancel", changes.ask_to_cancel, "GET"),
    _route("/cancel", changes.submit_cancel, "POST"),
    _route("/undo", changes.submit_undo, "POST"),
    _route("/undo", changes.back, "GET"),
    _route("/pause", changes.ask_to_pause, "GET"),
    _route("/pause", changes.submit_pause, "POST"),
    _route("/plan", planning.ask_for_plan, "GET"),
    _route("/plan", planning.submit_plan, "POST"),
    _route("/card", replacing.show_card, "GET"),
    _route("/card", replacing.submit_card, "POST"),
    _route("/card/continue", replacing.go_on, "POST"),
    _route("/card/continue", replacing.back_to_card, "GET"),
    _route("/card/result", replacing.show_card_result, "GET"),
    _route("/card/status", replacing.show_card_status, "GET"),
]
