"""A checkout as its pages show it: what they are given, none of which they find out themselves."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any

from paydesk.domain.merchants.imprints import NO_IMPRINT, Imprint
from paydesk.domain.payments.line_items import LineItem
from paydesk.domain.shoppers.instruments import SavedInstrument
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk.web.checkout.coupon_view import NO_COUPON, CouponView


@dataclass(frozen=True, slots=True)
class Customer:
    """What the form is filled with before the customer types:
    `name` as on the card, `country` as ISO 3166 code.

    With `asks_place` it has fields for `city` and `postal_code`, which may stay empty.
    """

    email: str = ""
    name: str = ""
    country: str = ""
    city: str = ""
    postal_code: str = ""
    asks_place: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an order, with the address of its picture, empty if it has none."""

    item: LineItem
    picture: str


@dataclass(frozen=True, slots=True)
class CheckoutView:
    """One checkout as its pages show it.

    `amount` is in main units; `pay_url` is where the form posts to; `shop_url` is the checkout's
    `success_url` (empty: our own page says thank you); `payment_id` is that of its order, once
    somebody tried to pay; `form_action` names the CSP sources that the form's answer may lead to
    (see `form_action.py`); `entered_expiry` is what the customer typed before. Card number and CVC
    never come back from the server. `terms` are a subscription's, then `amount` is what is charged
    today (0 for a free trial); `agreed` keeps its box ticked. Below `brand` are the merchant's own
    stylesheet and, with `has_logo`, the logo; it is empty if nothing was chosen. `names_way`:
    nobody stands behind the shop yet, so its page is only linked where the text says where that
    leads, once the order is paid. `continue_url` leads to the acquirer's page, as `pay_url` takes a
    card; each is empty where there is no such way. `by_page`: the last try was made there.
    `without_card`: its free trial begins by that form, and takes nothing. `given_back` as of a
    checkout. `too_often`: the shop takes direct debits, and this subscription
    is charged too often for one.

    `path` is where the checkout's pages begin, if a card may be saved here; `known_as` is the
    address that was proved in this browser, with the cards `saved` by it to pay with, the `others`,
    and the sentences beside the boxes that save this one (`keep`, `charge`; `page_keep` and
    `page_charge` on the way to the acquirer's page), of which some are `ticked`.
    """

    merchant_name: str
    description: str
    amount: Decimal
    currency: str
    merchant_order_id: str
    live: bool
    pay_url: str
    shop_url: str
    form_action: str
    expires_at: datetime
    entered: Customer = Customer()
    entered_expiry: str = ""
    terms: Terms | None = None
    agreed: bool = False
    by_page: bool = False
    brand: str = ""
    has_logo: bool = False
    payment_id: int | None = None
    names_way: bool = False
    continue_url: str = ""
    without_card: bool = False
    given_back: bool = False
    too_often: bool = False
    path: str = ""
    known_as: str = ""
    saved: Sequence[SavedInstrument] = ()
    others: Sequence[SavedInstrument] = ()
    keep: str = ""
    charge: str = ""
    page_keep: str = ""
    page_charge: str = ""
    ticked: Sequence[str] = ()
    lines: Sequence[Line] = ()
    """What the order is made of, where its shop says so."""
    coupon: CouponView = NO_COUPON
    imprint: Imprint = NO_IMPRINT


_WORDS = ("description", "merchant_order_id", "pay_url", "continue_url", "path")
_TYPED = ("email", "name", "city", "postal_code")
_COUPON = "coupon"
_UNSEEN = ("amount", "shop_url", "form_action", "expires_at", "payment_id", "names_way")
"""What the form to pay does not show, or not as it is here: `pages.py` says how."""
_ELSEWHERE = frozenset([*_WORDS, *_UNSEEN, "entered", "coupon"])

_kind = attrgetter(*(one.name for one in fields(CheckoutView) if one.name not in _ELSEWHERE), "entered.asks_place")
_words = attrgetter(*_WORDS, *(f"entered.{name}" for name in _TYPED), "coupon.url")


def is_usual(view: CheckoutView) -> bool:
    """Whether the form to pay says what it says to most: a one-time payment by somebody of whom
    no card is known, who is here for the first time.
    """
    told = view.terms or view.lines or view.known_as or view.coupon.code
    asked = view.keep or view.charge or view.page_keep or view.page_charge
    return not (told or asked or view.entered_expiry or view.agreed or view.ticked)


def kind_of(view: CheckoutView) -> Hashable:
    """What the form to pay of a usual order hangs on but for its words, and those that `pages.py`
    makes of it.
    """
    kind: Hashable = _kind(view)
    return kind


def words_of(view: CheckoutView) -> dict[str, str]:
    """What the form to pay says as it is, and at most asks whether there is any."""
    return dict(zip((*_WORDS, *_TYPED, _COUPON), _words(view), strict=True))


def in_words(view: CheckoutView, words: Mapping[str, str]) -> CheckoutView:
    """The same in other words."""
    typed: dict[str, Any] = {name: words[name] for name in _TYPED}
    entered = replace(view.entered, **typed)
    coupon = CouponView(url=words[_COUPON])
    own: dict[str, Any] = {name: words[name] for name in _WORDS}
    return replace(view, **own, entered=entered, coupon=coupon)
