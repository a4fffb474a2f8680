"""The customer's routes: the checkout page, paying, coming back from the bank,
and waiting for an outcome.

No cookie is needed: the link itself is the key to the checkout. A door translates, it
decides nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from paydesk.core.errors import Conflict, Gone
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.checkouts import Checkout, Standing
from paydesk.domain.payments.free_trials import begin_free_trial
from paydesk.domain.payments.hosting import go_to_page
from paydesk.domain.payments.hurrying import REST, may_look
from paydesk.domain.payments.older_pages import give_back_older
from paydesk.domain.payments.paying import pay
from paydesk.domain.payments.receiving import read_form
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Refused, Result, Unsettled
from paydesk.domain.payments.returning import leads_by_itself
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.web.card_fields import WrongFields
from paydesk.web.checkout import (
    branding,
    buying,
    card_form,
    coupons,
    item_pictures,
    link_pages,
    pages,
    payment_form,
    sample,
)
from paydesk.web.checkout.card_form import Typed
from paydesk.web.checkout.consents import read_agreed
from paydesk.web.checkout.coupon_view import COUPON_OVER
from paydesk.web.checkout.known import cookies_of
from paydesk.web.checkout.visit import CheckoutVisit, find_visit
from paydesk.web.visits import client_address, read_form_body, wants_json

LARGEST_BODY = 16 * 1024

OVER = (
    Standing.CLOSED,
    Standing.REVERSED,
    Standing.EXPIRED,
    Standing.SUSPENDED,
    Standing.SOLD_OUT,
    Standing.COUPON_OVER,
)
"""Nothing can be paid at a checkout that stands so."""


async def show(request: Request) -> Response:
    """The checkout's page, as it stands now."""
    visit = await find_visit(request, renew=True)
    response = await _shown(visit)
    if visit.known is not None and visit.known.shopper.fresh is not None:
        cookies_of(request, visit.services, visit.checkout.shop).know(response, visit.known.shopper.fresh)
    return response


async def _shown(visit: CheckoutVisit) -> Response:
    if visit.checkout.standing is Standing.PROCESSING or visit.is_left_to_bank:
        return visit.go(f"{visit.path}/result")
    if visit.checkout.standing is Standing.CHALLENGED:
        return visit.again(200, notice=_left_open(visit))
    said = "coupon_over" if visit.request.url.query == COUPON_OVER else None
    return _ended(visit) or visit.again(200, notice=said)


def _left_open(visit: CheckoutVisit) -> str | None:
    """What to say to a customer who has come back from a page that is still open; nothing to one
    at another checkout of the order, who was at none.
    """
    if not visit.began_it:
        return None
    if not visit.is_on_page:
        return "challenge_closed"
    return "page_open" if visit.checkout.is_late else PAGE_LEFT


async def submit(request: Request) -> Response:
    """Take the payment: `POST /checkout/{token}/pay`. Moves money."""
    visit = await find_visit(request)
    standing = visit.checkout.standing
    if standing is Standing.PAID:
        return await visit.thank()
    if visit.waits:
        return visit.go(f"{visit.path}/result")
    if standing in OVER or not visit.takes_cards:
        return visit.go(visit.path) if wants_json(request) else _ended(visit) or visit.go(visit.path)
    form = read_form(await read_form_body(request, LARGEST_BODY))
    services, typed = visit.services, card_form.typed(form)
    now = visit.checkout.now
    try:
        caller = client_address(request.scope, services.trusted_proxies)
        payer = card_form.read_payer(form, visit.checkout, caller, visit.texts.mail_language)
        if visit.known is not None:
            payer = replace(payer, saving=read_agreed(form, visit.checkout, visit.known.shopper.id))
    except WrongFields as wrong:
        return visit.again(400, errors=wrong.errors, typed=typed)
    return_url = services.public_url(request, f"/checkout/{visit.token}/result")
    try:
        result = await pay(services.desk, visit.checkout, payer, return_url=return_url, now=now)
    except Conflict:
        return await coupons.refused_for(visit, payer.email) or visit.go(f"{visit.path}/result")
    except Gone:
        return visit.go(visit.path)
    return await follow(visit, result, typed)


async def go_on(request: Request) -> Response:
    """Lead the customer to the acquirer's page: `POST /checkout/{token}/continue`.
    Moves no money.
    """
    visit = await find_visit(request)
    standing, services = visit.checkout.standing, visit.services
    if standing is Standing.PAID:
        return await visit.thank()
    if visit.waits:
        return visit.go(f"{visit.path}/result")
    if standing in OVER or not visit.has_page:
        return _ended(visit) or visit.go(visit.path)
    form = read_form(await read_form_body(request, LARGEST_BODY))
    try:
        caller = client_address(request.scope, services.trusted_proxies)
        guest = card_form.read_guest(form, visit.checkout, caller, visit.texts.mail_language)
        if visit.known is not None:
            saving = read_agreed(form, visit.checkout, visit.known.shopper.id, on_page=True)
            guest = replace(guest, saving=saving)
    except WrongFields as wrong:
        return visit.again(400, errors=wrong.errors, typed=card_form.typed(form, on_page=True))
    base = services.public_url(request, "")
    try:
        result = await go_to_page(services.desk, visit.checkout, guest, base=base, now=visit.checkout.now)
    except Conflict:
        return await coupons.refused_for(visit, guest.email) or visit.go(f"{visit.path}/result")
    except Gone:
        return visit.go(visit.path)
    return await follow(visit, result, card_form.typed(form, on_page=True))


async def start(request: Request) -> Response:
    """Begin a free trial that takes no card: `POST /checkout/{token}/start`. Moves no money."""
    visit = await find_visit(request)
    standing, services = visit.checkout.standing, visit.services
    if standing is Standing.PAID:
        return await visit.thank()
    if visit.waits:
        return visit.go(f"{visit.path}/result")
    if standing in OVER or visit.checkout.needs_card:
        return _ended(visit) or visit.go(visit.path)
    form = read_form(await read_form_body(request, LARGEST_BODY))
    typed = card_form.typed(form, on_page=True)
    try:
        caller = client_address(request.scope, services.trusted_proxies)
        language = visit.texts.mail_language
        guest = card_form.read_guest(form, visit.checkout, caller, language, without_card=True)
    except WrongFields as wrong:
        return visit.again(400, errors=wrong.errors, typed=typed)
    try:
        result = await begin_free_trial(services.desk, visit.checkout, guest, now=visit.checkout.now)
    except Conflict:
        return await coupons.refused_for(visit, guest.email) or visit.go(f"{visit.path}/result")
    except Gone:
        return visit.go(visit.path)
    return await follow(visit, result, typed)


async def follow(visit: CheckoutVisit, result: Result, typed: Typed | None = None) -> Response:
    """Where a result leads: the shop, the bank, the form again, or the page to wait on."""
    match result:
        case Paid(leads_back):
            return await visit.thank(leads_back=leads_back)
        case Refused("too_many_attempts"):
            return _stopped(visit)
        case Refused("suspended"):
            return visit.go(visit.path)
        case Refused(reason):
            return visit.again(402, notice=reason, typed=typed)
        case ConfirmWithBank(url):
            return visit.go(url)
        case Unsettled():
            return visit.go(f"{visit.path}/result")


def _stopped(visit: CheckoutVisit) -> Response:
    """No more attempts: a page that says so, and never above a form that takes a card."""
    if wants_json(visit.request):
        return pages.payment_step(f"{visit.path}/stopped", status=429)
    return pages.stopped_page(visit.view(), visit.texts)


async def show_stopped(request: Request) -> Response:
    """Say that there were too many attempts, to a browser whose script was told so."""
    visit = await find_visit(request)
    if visit.checkout.standing not in (Standing.OPEN, Standing.CHALLENGED):
        return visit.go(visit.path)
    return pages.stopped_page(visit.view(), visit.texts)


async def show_result(request: Request) -> Response:
    """What has come of paying: the shop's page or thanks, the form again, or a page that waits.

    The bank sends customers here.
    """
    visit = await find_visit(request)
    if await give_back_older(visit.services.desk, visit.checkout, real_now=visit.services.now()):
        visit = await find_visit(request)
    checkout = visit.checkout
    if checkout.standing is Standing.CHALLENGED and checkout.attempt is not None:
        if visit.is_on_page and not await _may_look(visit):
            return _checking(visit, "?soon")
        try:
            result = await settle_challenge(visit.services.desk, checkout, checkout.attempt, now=checkout.now)
        except Conflict:
            return visit.go(visit.path)
        if isinstance(result, ConfirmWithBank):
            return _still_asked(visit)
        if not isinstance(result, Unsettled | Refused):
            return await follow(visit, result)
        # The page may have come to its end meanwhile, or be another's than the one who was refused.
        visit = await find_visit(request)
        checkout = visit.checkout
    if checkout.standing in (Standing.PROCESSING, Standing.CHALLENGED):
        # A page that the customer has come back from is not led to again, and nobody in circles.
        led_back = visit.is_on_page or visit.is_left_to_bank or not visit.began_it
        return _checking(visit, "?waits" if checkout.standing is Standing.CHALLENGED and led_back else "")
    if checkout.standing is Standing.PAID and await leads_by_itself(
        visit.services.desk.database, checkout, now=checkout.now
    ):
        return visit.go(checkout.success_url)
    if checkout.standing is Standing.OPEN and checkout.attempt and visit.began_it:
        return visit.again(402, notice=checkout.attempt.decline_reason)
    return _ended(visit) or visit.go(visit.path)


def _still_asked(visit: CheckoutVisit) -> Response:
    """The form for another way to pay, or where that is over the page that waits."""
    if visit.is_left_to_bank:
        return _checking(visit, "?waits")
    return visit.again(200, notice=_left_open(visit))


def _checking(visit: CheckoutVisit, how: str) -> Response:
    """The page to wait on; `how` says what ends its waiting (`show_status`)."""
    status, query = f"{visit.path}/status{how}", visit.request.url.query
    return pages.checking_page(visit.view(), visit.texts, status_url=status, query=query)


async def _may_look(visit: CheckoutVisit) -> bool:
    """Whether the acquirer may be asked about the customer's page: not at each press of a key."""
    checkout, services = visit.checkout, visit.services
    assert checkout.attempt is not None
    return await may_look(services.desk.database, checkout.shop, checkout.attempt.id, now=services.now())


async def show_status(request: Request) -> Response:
    """For the waiting page: whether there is a result, and where it is."""
    visit = await find_visit(request)
    checkout = visit.checkout
    waits = checkout.standing is Standing.CHALLENGED and "waits" in request.query_params
    if checkout.standing is Standing.CHALLENGED and "soon" in request.query_params and checkout.attempt is not None:
        looked_at = checkout.attempt.page_looked_at
        if looked_at is not None and looked_at + REST > visit.services.now():
            return JSONResponse({"state": "processing"}, headers={"Cache-Control": "no-store"})
        return JSONResponse({"state": "done", "url": f"{visit.path}/result"}, headers={"Cache-Control": "no-store"})
    if checkout.standing is Standing.PROCESSING or waits:
        return JSONResponse({"state": "processing"}, headers={"Cache-Control": "no-store"})
    url = f"{visit.path}/result"
    if checkout.standing is Standing.CHALLENGED and checkout.attempt is not None and visit.began_it:
        url = checkout.attempt.challenge_url
    return JSONResponse({"state": "done", "url": url}, headers={"Cache-Control": "no-store"})


def _sure_by(checkout: Checkout) -> datetime | None:
    """When the bank of a pending payment will know, as far as that is still to come."""
    at = checkout.attempt.sure_by if checkout.attempt is not None else None
    return at if at is not None and at > checkout.now else None


def _ended(visit: CheckoutVisit) -> Response | None:
    """The page of a checkout that can't be paid any more, or not now, or None."""
    match visit.checkout.standing:
        case Standing.PAID:
            return pages.already_paid_page(visit.view(), visit.texts)
        case Standing.PENDING:
            return pages.pending_page(visit.view(), visit.texts, sure_by=_sure_by(visit.checkout))
        case Standing.REVERSED:
            return pages.reversed_page(visit.view(), visit.texts)
        case Standing.CLOSED:
            return pages.closed_page(visit.view(), visit.texts)
        case Standing.EXPIRED:
            return pages.expired_page(visit.view(), visit.texts)
        case Standing.SUSPENDED:
            return pages.suspended_page(visit.view(), visit.texts)
        case Standing.COUPON_OVER:
            return coupons.coupon_over_page(visit)
        case Standing.SOLD_OUT:
            return link_pages.sold_out_checkout_page(visit.view(), visit.texts)
        case _ if not (visit.capabilities.cards or visit.has_page or visit.without_card):
            return pages.unpayable_page(visit.view(), visit.texts)
        case _:
            return None


async def refuse_get(request: Request) -> Response:
    """Paying is a POST: a browser that reloads this address is sent back to the page."""
    visit = await find_visit(request)
    return visit.go(visit.path)


compressed = [Middleware(GZipMiddleware, minimum_size=1024, compresslevel=5)]
"""For the page with the form, which is three times as quick to fetch this way.

Its only secret is in its own address, so that nobody can guess at it by asking for the page and
comparing lengths (BREACH); a page of somebody who is logged in must not be compressed.
"""

routes = [
    *payment_form.routes,
    *branding.routes,
    *item_pictures.routes,
    *buying.routes,
    *coupons.routes,
    Route(sample.SAMPLE, sample.show_sample, methods=["GET"], middleware=compressed),
    Route("/checkout/{token}", show, methods=["GET"], middleware=compressed),
    Route("/checkout/{token}/pay", submit, methods=["POST"], middleware=compressed),
    Route("/checkout/{token}/pay", refuse_get, methods=["GET"]),
    Route("/checkout/{token}/continue", go_on, methods=["POST"], middleware=compressed),
    Route("/checkout/{token}/continue", refuse_get, methods=["GET"]),
    Route("/checkout/{token}/start", start, methods=["POST"], middleware=compressed),
    Route("/checkout/{token}/start", refuse_get, methods=["GET"]),
    Route("/checkout/{token}/stopped", show_stopped, methods=["GET"]),
    Route("/checkout/{token}/result", show_result, methods=["GET"]),
    Route("/checkout/{token}/status", show_status, methods=["GET"]),
]
