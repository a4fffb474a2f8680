"""A coupon that is typed on the checkout page: the order gets a checkout at the price that this
leaves, and the customer is led there.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from paydesk.core.errors import TooMany
from paydesk.domain.coupons.applying import apply_coupon, is_used_up
from paydesk.domain.coupons.coupons import CouponRefused
from paydesk.domain.coupons.guessing import count_try
from paydesk.domain.payments.checkouts import Standing
from paydesk.domain.payments.receiving import read_form
from paydesk.web.checkout import pages
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.checkout.visit import CheckoutVisit, find_visit
from paydesk.web.minute_budgets import MinuteBudget
from paydesk.web.rendering import secured
from paydesk.web.visits import base_path, client_address, read_form_body

LARGEST_BODY = 4 * 1024

_presses = MinuteBudget(everybody=3_000, each=60)
"""What is read at all by this process; how many codes may be tried, all of them count together."""

_NOTICES = {"unknown": "coupon_unknown", "over": "coupon_over"}


async def submit(request: Request) -> Response:
    """Lead to the checkout with the coupon; its button may be pressed twice. Moves no money."""
    visit, services = await find_visit(request), CheckoutServices.of(request)
    address, now = client_address(request.scope, services.trusted_proxies), services.now()
    checkout = visit.checkout
    if not checkout.takes_coupons or checkout.standing not in (Standing.OPEN, Standing.COUPON_OVER):
        return visit.go(visit.path)
    if not _presses.take(address, now=now):
        raise TooMany("too many coupons from this address; wait a minute", retry_after=60 - now.second)
    await count_try(services.desk.database, services.desk.vault, checkout.shop, address, now=now)
    code = read_form(await read_form_body(request, LARGEST_BODY)).get("code")
    try:
        link = await apply_coupon(services.desk.database, checkout, code if isinstance(code, str) else "")
    except CouponRefused as refused:
        return visit.again(409, notice=_NOTICES.get(refused.why, "coupon_elsewhere"))
    return visit.go(f"{base_path(request)}/checkout/{link.token(services.desk.vault)}")


async def refused_for(visit: CheckoutVisit, email: str) -> Response | None:
    """What a customer is told who has used the checkout's coupon as often as they may; None if it
    is not that which kept them from paying.
    """
    checkout = visit.checkout
    if checkout.standing is Standing.OPEN and await is_used_up(visit.services.desk.database, checkout, email):
        return visit.again(409, notice="coupon_used")
    return None


def coupon_over_page(visit: CheckoutVisit) -> Response:
    """The page (409) of a checkout whose coupon can't be used, with the way on without it."""
    view, texts = visit.view(), visit.texts
    html = pages.PAGES.render("coupon_over.html", texts, view=view, offer=pages.offer_of(view, texts), home="")
    return secured(html, status=409)


async def refuse_get(request: Request) -> Response:
    """A browser that reloads this address is sent back to the page."""
    visit = await find_visit(request)
    return visit.go(visit.path)


routes = [
    Route("/checkout/{token}/coupon", submit, methods=["POST"]),
    Route("/checkout/{token}/coupon", refuse_get, methods=["GET"]),
]
