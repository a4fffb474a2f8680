"""The customer's routes: the checkout page, paying, coming back from the bank,
and waiting for an outcome.

No cookie is needed: the link itself is the key to the checkout. A door translates, it
decides nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.core.errors import Conflict, Gone, NotFound, Unavailable
from paydesk.core.urls import as_header
from paydesk.domain.merchants.customer_links import LinkTo, open_link
from paydesk.domain.payments.checkouts import Checkout, Standing, find_checkout
from paydesk.domain.payments.hosting import give_back_older, go_to_page, offers_to_keep, require_pages, takes_page
from paydesk.domain.payments.hurrying import REST, may_look
from paydesk.domain.payments.line_items import LineItem
from paydesk.domain.payments.paying import (
    ConfirmWithBank,
    Paid,
    Refused,
    Result,
    Unsettled,
    order_of,
    pay,
    settle_challenge,
    takes_card,
    takes_saved,
)
from paydesk.domain.payments.receiving import read_form
from paydesk.domain.payments.returning import Way, leads_by_itself, way_back
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.web.brands import brand_address
from paydesk.web.card_fields import WrongFields
from paydesk.web.checkout import branding, card_form, item_pictures, pages, payment_form, sample
from paydesk.web.checkout.card_form import Typed
from paydesk.web.checkout.consents import charge_in_words, keep_in_words, read_agreed
from paydesk.web.checkout.known import Known, cookies_of, find_known
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.item_pictures import picture_address
from paydesk.web.texts import Texts
from paydesk.web.visits import base_path, client_address, in_sandbox, read_form_body, wants_json

LARGEST_BODY = 16 * 1024

WAITING = (Standing.PROCESSING, Standing.PENDING)
"""Nothing can be paid either, as long as nobody knows what becomes of the last try."""

OVER = (Standing.CLOSED, Standing.REVERSED, Standing.EXPIRED, Standing.SUSPENDED)
"""Nothing can be paid at a checkout that stands so."""


@dataclass(frozen=True, slots=True)
class CheckoutVisit:
    """One request to a checkout: the checkout as it stands, the visitor's language,
    and where its pages are.
    """

    request: Request
    services: CheckoutServices
    checkout: Checkout
    texts: Texts
    token: str
    acquirer: Acquirer | None = None
    known: Known | None = None

    @property
    def path(self) -> str:
        """Where its pages begin, in this request's base."""
        return f"{base_path(self.request)}/checkout/{self.token}"

    @property
    def capabilities(self) -> Capabilities:
        """What the acquirer can do that would take the checkout's money."""
        return self.acquirer.capabilities if self.acquirer is not None else Capabilities()

    @property
    def saves_cards(self) -> bool:
        """Whether customers may save the card that they type here, and pay with a saved one."""
        if self.acquirer is None or not self.capabilities.cards:
            return False
        return takes_saved(self.checkout, self.acquirer)

    @property
    def knows_customers(self) -> bool:
        """Whether customers may prove an address here: a card may be saved, on our page or on the
        acquirer's, or a saved one may pay.
        """
        if self.saves_cards or (self.known is not None and self.known.keepers):
            return True
        can, asks = self.capabilities, self.checkout.later is not None
        return self.keeps_on_page and (can.one_click or asks)

    @property
    def keeps_on_page(self) -> bool:
        """Whether the acquirer's page may keep the card that is typed on it."""
        return self.acquirer is not None and self.has_page and offers_to_keep(self.acquirer, self.checkout)

    @property
    def origins(self) -> set[str]:
        """Where its customer may be led to: by the acquirer that would take the money, by that of
        the settings, and by the one of the last attempt. Other merchants' are nobody's business.
        """
        desk, attempt = self.services.desk, self.checkout.attempt
        names = {desk.test_acquirer, desk.live_acquirer, attempt.acquirer if attempt else None}
        usual = [desk.acquirers[name] for name in names if name is not None and name in desk.acquirers]
        chosen = [self.acquirer] if self.acquirer is not None else []
        return {origin for each in (*chosen, *usual) for origin in each.challenge_origins}

    @property
    def has_page(self) -> bool:
        """Whether the checkout may be paid on a page of the acquirer's."""
        with suppress(Unavailable):
            if self.acquirer is not None:
                require_pages(self.acquirer, self.checkout)
                return True
        return False

    @property
    def is_on_page(self) -> bool:
        """Whether its customer was led to a page of the acquirer's that may be open still."""
        attempt = self.checkout.attempt
        return attempt is not None and attempt.page_ends_at is not None

    @property
    def began_it(self) -> bool:
        """Whether the order's last attempt was made at this very checkout; what its bank shows of
        it, an e-mail address too, may be another person's otherwise.
        """
        attempt = self.checkout.attempt
        return attempt is not None and attempt.checkout_id == self.checkout.id

    def view(self, typed: Typed | None = None) -> pages.CheckoutView:
        """The checkout as a page shows it, with what was typed just now or before."""
        checkout, entered = self.checkout, self.checkout.entered
        name, place = (entered.name, entered) if typed is None else (typed.holder, typed)
        customer = pages.Customer(
            place.email, name, place.country, place.city, place.postal_code, asks_place=card_form.asks_place(checkout)
        )
        known, merchant = (self.known if self.knows_customers else None), checkout.merchant_name
        asks, asks_page = known is not None and self.saves_cards, known is not None and self.keeps_on_page
        payable = known.to_pay_with(checkout.now, takes_numbers=self.saves_cards) if known else []
        way = way_back(checkout)
        return pages.CheckoutView(
            merchant_name=checkout.merchant_name,
            brand=brand_address(checkout.shop.merchant_id, checkout.branded_at),
            has_logo=checkout.has_logo,
            description=checkout.description,
            amount=checkout.amount,
            currency=checkout.currency,
            merchant_order_id=checkout.merchant_order_id,
            live=checkout.shop.live,
            pay_url=f"{self.path}/pay" if self.capabilities.cards else "",
            continue_url=f"{self.path}/continue" if self.has_page else "",
            given_back=checkout.given_back,
            shop_url="" if way is Way.NONE else checkout.success_url,
            names_way=way is Way.NAMED,
            payment_id=checkout.attempt.payment_id if checkout.attempt else None,
            form_action=pages.form_action_for(
                checkout.success_url if way is Way.ITSELF else "",
                *sorted(self.origins),
            ),
            expires_at=checkout.expires_at,
            entered=customer,
            entered_expiry=typed.expiry if typed else entered.expiry,
            terms=checkout.terms,
            agreed=typed is not None and typed.agreed,
            by_page=self.is_on_page,
            path=self.path if self.knows_customers else "",
            known_as=known.shopper.email if known else "",
            saved=tuple(payable),
            others=tuple(known.others(payable)) if known else (),
            keep=keep_in_words(merchant, self.texts) if asks else "",
            charge=charge_in_words(merchant, checkout.later, self.texts) if asks else "",
            page_keep=(
                keep_in_words(merchant, self.texts, on_page=True) if asks_page and self.capabilities.one_click else ""
            ),
            page_charge=charge_in_words(merchant, checkout.later, self.texts, on_page=True) if asks_page else "",
            ticked=typed.ticked if typed else (),
            lines=tuple(_line(checkout, item) for item in checkout.items),
        )

    async def thank(self, *, leads_back: bool = False) -> Response:
        """Send the browser on to the shop's thank-you page, once;
        else to our page, which has the way there.

        `leads_back` says that this answer was written down already as the one that does.
        """
        by_itself = leads_back or await leads_by_itself(
            self.services.desk.database, self.checkout, now=self.checkout.now
        )
        return self.go(self.checkout.success_url if by_itself else f"{self.path}/result")

    def go(self, url: str) -> Response:
        """Send the browser on, by a redirect or, if the page's JavaScript asks,
        by telling it where.
        """
        if wants_json(self.request) and self.request.method == "POST":
            return pages.payment_step(url)
        # Starlette's RedirectResponse would encode more than the header needs; the shop's address
        # goes as it was given.
        return Response(status_code=303, headers={"Location": as_header(url), "Cache-Control": "no-store"})

    def again(
        self,
        status: int,
        *,
        errors: dict[str, str] | None = None,
        notice: str | None = None,
        typed: Typed | None = None,
    ) -> Response:
        """Show the form again, saying what is wrong."""
        if wants_json(self.request) and self.request.method == "POST":
            return pages.payment_problem(self.texts, field_errors=errors, notice=notice, status=status)
        return pages.payment_page(self.view(typed), self.texts, field_errors=errors, notice=notice, status=status)


def _line(checkout: Checkout, item: LineItem) -> pages.Line:
    return pages.Line(item, picture_address(checkout.shop, item.picture) if item.picture else "")


async def find_visit(request: Request, *, renew: bool = False) -> CheckoutVisit:
    """Find the checkout that the link names, and who is known in the browser at its shop; the
    sandbox base only knows test checkouts.

    Raises: NotFound.
    """
    services = CheckoutServices.of(request)
    token = request.path_params["token"]
    link = open_link(services.desk.vault, LinkTo.CHECKOUT, token)
    checkout = await find_checkout(services.desk.database, link, now=services.now())
    if checkout.shop.live and in_sandbox(request):
        raise NotFound("this link is incomplete or wrong")
    texts = pages.texts_for(request.headers.get("accept-language", ""))
    known = await find_known(request, services, checkout, renew=renew) if checkout.saves_cards else None
    return CheckoutVisit(request, services, checkout, texts, token, await _chosen(services, checkout), known)


async def _chosen(services: CheckoutServices, checkout: Checkout) -> Acquirer | None:
    """The acquirer that would take the checkout's money now, None if there is none."""
    try:
        return await services.desk.choose(
            order_of(checkout), can=lambda one: takes_card(one, checkout) or takes_page(one, checkout)
        )
    except Unavailable:
        return None


async def show(request: Request) -> Response:
    """The checkout's page, as it stands now."""
    visit = await find_visit(request, renew=True)
    response = await _shown(visit)
    if visit.known is not None and visit.known.shopper.fresh is not None:
        cookies_of(request, visit.services, visit.checkout.shop).know(response, visit.known.shopper.fresh)
    return response


async def _shown(visit: CheckoutVisit) -> Response:
    if visit.checkout.standing is Standing.PROCESSING:
        return visit.go(f"{visit.path}/result")
    if visit.checkout.standing is Standing.CHALLENGED:
        return visit.again(200, notice=_left_open(visit))
    return _ended(visit) or visit.again(200)


def _left_open(visit: CheckoutVisit) -> str:
    """What to say to a customer who has come back from a page that is still open."""
    return PAGE_LEFT if visit.is_on_page else "challenge_closed"


async def submit(request: Request) -> Response:
    """Take the payment: `POST /checkout/{token}/pay`. Moves money."""
    visit = await find_visit(request)
    standing = visit.checkout.standing
    if standing is Standing.PAID:
        return await visit.thank()
    if standing in WAITING:
        return visit.go(f"{visit.path}/result")
    if standing in OVER or not visit.capabilities.cards:
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
        return visit.go(f"{visit.path}/result")
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
    if standing in WAITING:
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
        return visit.go(f"{visit.path}/result")
    except Gone:
        return visit.go(visit.path)
    return await follow(visit, result, card_form.typed(form, on_page=True))


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
            return pages.checking_page(visit.view(), visit.texts, status_url=f"{visit.path}/status?soon")
        try:
            result = await settle_challenge(visit.services.desk, checkout, checkout.attempt, now=checkout.now)
        except Conflict:
            return visit.go(visit.path)
        if isinstance(result, ConfirmWithBank):
            return visit.again(200, notice=_left_open(visit))
        if not isinstance(result, Unsettled):
            return await follow(visit, result)
        visit = await find_visit(request)
        checkout = visit.checkout
    if checkout.standing in (Standing.PROCESSING, Standing.CHALLENGED):
        # A page that the customer has come back from must not be led to again.
        waits = "?waits" if checkout.standing is Standing.CHALLENGED and visit.is_on_page else ""
        return pages.checking_page(visit.view(), visit.texts, status_url=f"{visit.path}/status{waits}")
    if checkout.standing is Standing.PAID and await leads_by_itself(
        visit.services.desk.database, checkout, now=checkout.now
    ):
        return visit.go(checkout.success_url)
    if checkout.standing is Standing.OPEN and checkout.attempt and visit.began_it:
        return visit.again(402, notice=checkout.attempt.decline_reason)
    return _ended(visit) or visit.go(visit.path)


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
        case _ if not (visit.capabilities.cards or visit.has_page):
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
    Route(sample.SAMPLE, sample.show_sample, methods=["GET"], middleware=compressed),
    Route("/checkout/{token}", show, methods=["GET"], middleware=compressed),
    Route("/checkout/{token}/pay", submit, methods=["POST"], middleware=compressed),
    Route("/checkout/{token}/pay", refuse_get, methods=["GET"]),
    Route("/checkout/{token}/continue", go_on, methods=["POST"], middleware=compressed),
    Route("/checkout/{token}/continue", refuse_get, methods=["GET"]),
    Route("/checkout/{token}/stopped", show_stopped, methods=["GET"]),
    Route("/checkout/{token}/result", show_result, methods=["GET"]),
    Route("/checkout/{token}/status", show_status, methods=["GET"]),
]
