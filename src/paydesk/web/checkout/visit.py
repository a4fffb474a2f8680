"""One request to a checkout: the checkout as it stands, who visits, and what they are shown."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from paydesk.adapters.acquirers.hosted_pages import Capabilities
from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.core.errors import NotFound, Unavailable
from paydesk.core.urls import as_header
from paydesk.domain.merchants.customer_links import LinkTo, open_link
from paydesk.domain.payments.checkouts import Checkout, Standing, find_checkout
from paydesk.domain.payments.hosting import offers_to_keep, require_pages, takes_page
from paydesk.domain.payments.line_items import LineItem
from paydesk.domain.payments.paying import order_of, takes_card, takes_saved
from paydesk.domain.payments.returning import Way, leads_by_itself, way_back
from paydesk.domain.subscriptions.rows import NO_ACCOUNT
from paydesk.web.brands import brand_address
from paydesk.web.checkout import card_form, pages
from paydesk.web.checkout.card_form import Typed
from paydesk.web.checkout.checkout_view import CheckoutView, Customer, Line
from paydesk.web.checkout.consents import charge_in_words, keep_in_words
from paydesk.web.checkout.coupon_view import CouponView
from paydesk.web.checkout.form_action import form_action_for
from paydesk.web.checkout.known import Known, find_known
from paydesk.web.checkout.services import CheckoutServices
from paydesk.web.item_pictures import picture_address
from paydesk.web.texts import Texts
from paydesk.web.visits import base_path, in_sandbox, wants_json


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
    def takes_cards(self) -> bool:
        """Whether a card may be typed here."""
        return self.capabilities.cards and not self.checkout.is_late

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
    def without_card(self) -> bool:
        """Whether its free trial begins, or has begun, without a card."""
        checkout = self.checkout
        if checkout.standing is Standing.PAID and checkout.attempt is not None:
            return checkout.attempt.acquirer == NO_ACCOUNT
        return not checkout.needs_card

    @property
    def _continue_url(self) -> str:
        if self.without_card:
            return f"{self.path}/start"
        return f"{self.path}/continue" if self.has_page else ""

    @property
    def is_on_page(self) -> bool:
        """Whether its customer was led to a page of the acquirer's that may be open still."""
        attempt = self.checkout.attempt
        return attempt is not None and attempt.page_ends_at is not None

    @property
    def waits(self) -> bool:
        """Whether nobody knows what becomes of the last try, and nothing can be paid instead."""
        return self.checkout.standing in (Standing.PROCESSING, Standing.PENDING) or self.is_left_to_bank

    @property
    def is_left_to_bank(self) -> bool:
        """Whether that is so since its time is over while a bank asks its customer (3-D Secure), or
        another checkout's is on a page. A page that it has led to itself is gone on with.
        """
        goes_on = self.is_on_page and self.began_it and self.has_page and not self.without_card
        return self.checkout.is_late and not goes_on

    @property
    def began_it(self) -> bool:
        """Whether the order's last attempt was made at this very checkout; what its bank shows of
        it, an e-mail address too, may be another person's otherwise.
        """
        attempt = self.checkout.attempt
        return attempt is not None and attempt.checkout_id == self.checkout.id

    @property
    def too_often(self) -> bool:
        """Whether it would be paid by direct debit, too, if it were not charged so often."""
        desk, terms = self.services.desk, self.checkout.terms
        takes_debits = self.checkout.slow_methods and desk.slow_methods and desk.slow_renewals
        return takes_debits and terms is not None and not terms.may_be_slow

    def view(self, typed: Typed | None = None) -> CheckoutView:
        """The checkout as a page shows it, with what was typed just now or before."""
        checkout, entered = self.checkout, self.checkout.entered
        name, place = (entered.name, entered) if typed is None else (typed.holder, typed)
        customer = Customer(
            place.email, name, place.country, place.city, place.postal_code, asks_place=card_form.asks_place(checkout)
        )
        known, merchant = (self.known if self.knows_customers else None), checkout.merchant_name
        asks, asks_page = known is not None and self.saves_cards, known is not None and self.keeps_on_page
        payable = known.to_pay_with(checkout.now, takes_numbers=self.saves_cards) if known else []
        way = way_back(checkout)
        return CheckoutView(
            merchant_name=checkout.merchant_name,
            brand=brand_address(checkout.shop.merchant_id, checkout.branded_at),
            has_logo=checkout.has_logo,
            imprint=checkout.imprint,
            description=checkout.description,
            amount=checkout.amount,
            currency=checkout.currency,
            merchant_order_id=checkout.merchant_order_id,
            live=checkout.shop.live,
            pay_url=f"{self.path}/pay" if self.takes_cards and not self.without_card else "",
            continue_url=self._continue_url,
            without_card=self.without_card,
            given_back=checkout.given_back,
            too_often=self.too_often,
            shop_url="" if way is Way.NONE else checkout.success_url,
            names_way=way is Way.NAMED,
            payment_id=checkout.attempt.payment_id if checkout.attempt else None,
            form_action=form_action_for(
                checkout.success_url if way is Way.ITSELF else "",
                *sorted(self.origins),
            ),
            expires_at=checkout.expires_at,
            entered=customer,
            entered_expiry=typed.expiry if typed else entered.expiry,
            terms=checkout.terms,
            agreed=typed is not None and typed.agreed,
            by_page=self.is_on_page or self.without_card,
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
            coupon=self._coupon(),
        )

    def _coupon(self) -> CouponView:
        """What the page says of coupons: the one that is used, or where one is typed."""
        used = self.checkout.coupon
        if used is not None:
            without = f"{base_path(self.request)}/checkout/{used.without.token(self.services.desk.vault)}"
            return CouponView(code=used.code, without=without)
        return CouponView(url=f"{self.path}/coupon" if self.checkout.takes_coupons else "")

    async def thank(self, *, leads_back: bool = False) -> Response:
        """Send the browser on to the shop's thank-you page, once;
        else to our page, which has the way there.

        `leads_back` says that this answer was written down already as the one that does.
        """
        by_itself = leads_back or await leads_by_itself(
            self.services.desk.database, self.checkout, now=self.checkout.now
        )
        return self.go(self.checkout.success_url if by_itself else f"{self.path}/result", done=True)

    def go(self, url: str, *, done: bool = False) -> Response:
        """Send the browser on, by a redirect or, if the page's JavaScript asks,
        by telling it where, and whether all is `done`.
        """
        if wants_json(self.request) and self.request.method == "POST":
            return pages.payment_step(url, done=done)
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


def _line(checkout: Checkout, item: LineItem) -> Line:
    return Line(item, picture_address(checkout.shop, item.picture) if item.picture else "")


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
