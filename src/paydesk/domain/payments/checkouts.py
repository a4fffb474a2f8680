"""Checkouts: valid forms that wait to be paid. Whether one is open, paid or closed follows
from its order's payment.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import Link, LinkTo, OpenedLink, wrong_link
from paydesk.domain.merchants.imprints import NO_IMPRINT, Imprint, imprint_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.asking_pages import OpenedPage
from paydesk.domain.payments.checkout_rows import Behind, CheckoutRow, read_checkout
from paydesk.domain.payments.line_items import LineItem
from paydesk.domain.payments.requests import prefill
from paydesk.domain.payments.states import REVERSED, PaymentState
from paydesk.domain.payments.used_coupons import UsedCoupon, coupon_of
from paydesk.domain.shoppers.instruments import LaterCharges
from paydesk.domain.subscriptions.rows import package_in
from paydesk.domain.subscriptions.subscription_terms import Terms

queries = load_statements(__package__ or "")

LIFETIME = timedelta(hours=24)
"""How long a checkout is open (interface.md §2.1)."""


class Standing(StrEnum):
    """What a checkout's page has to show."""

    OPEN = "open"
    PROCESSING = "processing"
    CHALLENGED = "challenged"
    PENDING = "pending"
    """The order was paid by a slow method, here or at another checkout: nothing is sure yet."""
    PAID = "paid"
    CLOSED = "closed"
    """The order was paid through another checkout."""
    REVERSED = "reversed"
    """It was paid here, and all of the money was given back since."""
    EXPIRED = "expired"
    SUSPENDED = "suspended"
    """The shop takes no live payments: an operator has suspended it."""
    SOLD_OUT = "sold_out"
    """It is of a payment link, of which others have bought the last; one may come free again."""
    COUPON_OVER = "coupon_over"
    """Its coupon can't be used, not any more or not now; the order's checkout without it can."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """The attempt that holds the order's payment:
    by `key` the acquirer knows it, until `not_after` it takes it.

    `page_ends_at` is until when it may be paid on a page of the acquirer's, None if it is paid
    on ours; `reference` is what the acquirer calls it. `page_looked_at` is when the acquirer was
    last asked about that page (real time). With `slow` that page offers methods too whose money is
    sure only in some days: `sure_by` (the shop's time), once it was so paid.
    """

    id: int
    payment_id: int
    checkout_id: int | None
    key: str
    acquirer: str
    not_after: datetime
    decline_reason: str
    challenge_url: str
    client_address: str
    amount: Decimal
    currency: str
    reference: str
    page_ends_at: datetime | None
    page_looked_at: datetime | None = None
    slow: bool = False
    sure_by: datetime | None = None

    def page(self, shop: Shop) -> OpenedPage | None:
        """The page of the acquirer's on which its customer pays, if that is how they pay."""
        if self.page_ends_at is None:
            return None
        return OpenedPage(
            shop,
            self.id,
            self.acquirer,
            self.key,
            self.reference,
            self.amount,
            self.currency,
            self.page_ends_at,
            self.slow,
        )


@dataclass(frozen=True, slots=True)
class Entered:
    """What a customer typed before, or the shop prefilled; `expiry` is MM / YY, empty when unknown.

    The page asks for `city` and `postal_code` only where the shop prefilled one: for the bank, they
    are never kept.
    """

    email: str
    name: str
    country: str
    expiry: str = ""
    city: str = ""
    postal_code: str = ""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout as its page shows it; times are UTC.

    `amount` is what is charged here and now, in the main unit of `currency`; `terms` are a
    subscription's; `now` is the shop's time when it was read: a test clock may run ahead.
    `branded_at` is when colour and logo were chosen; `app_schemes` are of the account's own apps;
    `merchant_confirmed` is whether somebody stands behind the account; `given_back` is whether the
    order was paid once more, on a page that was given up, and that is given back. `saves_cards`:
    customers may save cards at this shop; `later` is what the shop asks to be allowed then;
    `slow_methods`: they may pay by what takes days, where the operator allows that; `suspended` is
    whether it takes no live payments. `takes_coupons`: customers may type one here. `needs_card` is
    whether something has to be given to charge: a free trial may begin without.
    """

    shop: Shop
    id: int
    merchant_name: str
    merchant_order_id: str
    amount: Decimal
    currency: str
    description: str
    success_url: str
    first_name: str
    last_name: str
    expires_at: datetime
    standing: Standing
    attempt: Attempt | None
    entered: Entered
    terms: Terms | None
    now: datetime
    created_at: datetime
    branded_at: datetime | None = None
    has_logo: bool = False
    app_schemes: tuple[str, ...] = ()
    merchant_confirmed: bool = False
    shipped_goods: bool = False
    given_back: bool = False
    saves_cards: bool = False
    slow_methods: bool = False
    later: LaterCharges | None = None
    test_mail: str = ""
    suspended: bool = False
    imprint: Imprint = NO_IMPRINT
    items: tuple[LineItem, ...] = ()
    takes_coupons: bool = False
    needs_card: bool = True
    coupon: UsedCoupon | None = None
    seed: str = field(default="", repr=False)

    @property
    def link(self) -> Link:
        """What leads a customer to it."""
        return Link(LinkTo.CHECKOUT, self.shop, self.id, self.seed)

    @property
    def captures(self) -> bool:
        """Whether its money is taken at once: a subscription's is (interface.md §7.4)."""
        return self.terms is not None or not self.shipped_goods

    @property
    def is_late(self) -> bool:
        """Whether its time is over while a try of its order is open: what comes of that counts, and
        nothing is paid instead.
        """
        return self.standing is Standing.CHALLENGED and self.expires_at <= self.now


async def find_checkout(database: Database, link: Link | OpenedLink, *, now: datetime) -> Checkout:
    """The checkout behind a customer's link.

    Raises: NotFound.
    """
    checkout_id = await _old_link(database, link) if link.row_id is None else link.row_id
    found = await read_checkout(database, link.shop, checkout_id)
    if found is None or not link.fits(found[0].seed):
        raise wrong_link()
    return _checkout(*found, link.shop, now)


async def find_own_checkout(database: Database, shop: Shop, checkout_id: int, *, now: datetime) -> Checkout:
    """A shop's own checkout, by its id; `now` is real time. Raises: NotFound."""
    found = await read_checkout(database, shop, checkout_id)
    if found is None:
        raise NotFound(f"there is no checkout {checkout_id}")
    return _checkout(*found, shop, now)


def _checkout(row: CheckoutRow, behind: Behind | None, shop: Shop, now: datetime) -> Checkout:
    checkout = Checkout(
        shop=shop,
        id=row.id,
        merchant_name=row.merchant_name,
        branded_at=row.branded_at,
        has_logo=row.has_logo,
        imprint=imprint_of(row.imprint),
        app_schemes=tuple(row.app_schemes),
        merchant_confirmed=row.merchant_confirmed,
        shipped_goods=row.shipped_goods,
        saves_cards=row.saves_cards,
        slow_methods=row.slow_methods,
        later=_later(row),
        test_mail="" if row.live else row.merchant_email,
        suspended=row.suspended,
        merchant_order_id=row.merchant_order_id,
        amount=row.amount,
        currency=row.currency,
        description=row.description,
        success_url=row.success_url,
        first_name=row.first_name,
        last_name=row.last_name,
        expires_at=row.expires_at,
        standing=standing(row, behind, now + row.clock),
        now=now + row.clock,
        created_at=row.created_at,
        attempt=None,
        entered=_entered(row, behind),
        terms=None,
        items=row.line_items.items if row.line_items is not None else (),
        seed=row.seed,
    )
    if behind is None:
        return checkout
    sells_terms = behind.package_version_id is not None
    return replace(
        checkout,
        given_back=behind.given_back,
        attempt=_attempt(behind),
        terms=package_in(behind).terms if sells_terms else None,
        takes_coupons=behind.types_coupons and sells_terms,
        needs_card=behind.needs_card,
        coupon=coupon_of(shop, behind.coupon_code, behind.undiscounted_id, behind.undiscounted_seed),
    )


async def _old_link(database: Database, link: Link | OpenedLink) -> int | None:
    """The checkout whose link an older version made; None if there is none."""
    assert isinstance(link, OpenedLink)
    shop, names = link.shop, {"token": link.token, "token_hash": link.old_hash}
    found = await queries.find_old_link(database, merchant_id=shop.merchant_id, live=shop.live, **names)
    return None if found is None else int(found)


def standing(row: CheckoutRow, behind: Behind | None, now: datetime) -> Standing:
    """Where a checkout stands, by its order's payment and, while that is open, by its own age."""
    state = None if behind is None else behind.payment_state
    if state == PaymentState.PROCESSING:
        return Standing.PROCESSING
    if state == PaymentState.CHALLENGED:
        return Standing.CHALLENGED
    if state == PaymentState.PENDING:
        return Standing.PENDING
    if behind is not None and state is not None and state != PaymentState.DECLINED:
        # One whose checkout the database forgot was paid by the shop's form that came again here.
        if behind.paying_checkout_id not in (None, row.id):
            return Standing.CLOSED
        return Standing.REVERSED if state in REVERSED else Standing.PAID
    if row.expires_at <= now:
        return Standing.EXPIRED
    if row.suspended:
        return Standing.SUSPENDED
    if behind is None:
        return Standing.OPEN
    if behind.coupon_over:
        return Standing.COUPON_OVER
    return Standing.SOLD_OUT if behind.sold_out else Standing.OPEN


def _attempt(behind: Behind) -> Attempt | None:
    if behind.attempt_id is None or behind.payment_id is None:
        return None
    return Attempt(
        id=behind.attempt_id,
        payment_id=behind.payment_id,
        checkout_id=behind.paying_checkout_id,
        key=behind.idempotency_key,
        acquirer=behind.acquirer,
        not_after=behind.not_after,
        decline_reason=behind.decline_reason,
        challenge_url=behind.challenge_url,
        client_address=behind.client_address,
        amount=behind.attempt_amount,
        currency=behind.attempt_currency,
        reference=behind.acquirer_reference,
        page_ends_at=behind.page_ends_at,
        page_looked_at=behind.page_looked_at,
        slow=behind.slow,
        sure_by=behind.sure_by,
    )


def _later(row: CheckoutRow) -> LaterCharges | None:
    """What the shop's form asks its customer to allow; it was checked when it came."""
    if not row.charge_for or not row.charge_limit:
        return None
    return LaterCharges(row.charge_for, Decimal(row.charge_limit), row.currency)


def _entered(row: CheckoutRow, behind: Behind | None) -> Entered:
    """What was typed in this very checkout comes back;
    another checkout of the order may be another person's.
    """
    place = {"city": prefill(row.city or "", "city"), "postal_code": prefill(row.zip or "", "zip")}
    if behind is not None and behind.paying_checkout_id == row.id:
        expiry = f"{behind.entered_month:02} / {behind.entered_year % 100:02}" if behind.entered_month else ""
        return Entered(behind.entered_email, behind.entered_holder, behind.entered_country, expiry, **place)
    return Entered(row.email, f"{row.first_name} {row.last_name}".strip(), row.country, **place)
