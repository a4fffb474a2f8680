"""Every page that a customer may see, for tests of its languages;
its names and references are of no language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
from starlette.responses import Response

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.periods import Period
from paydesk.domain.billing.for_customer import Holding, PastPayment, PastPayments, Receipt, StoredCard
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import PaymentState
from paydesk.domain.shoppers.for_customer import SavedAtShop
from paydesk.domain.shoppers.instruments import LaterCharges, SavedInstrument
from paydesk.domain.subscriptions.changes import Change, ChangeType
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Package, Terms, Trial
from paydesk.web.card_words import CARD_ERRORS
from paydesk.web.checkout import pages as checkout
from paydesk.web.checkout import wording
from paydesk.web.checkout.checkout_view import CheckoutView
from paydesk.web.checkout.consents import charge_in_words, keep_in_words
from paydesk.web.portal import pages as portal
from paydesk.web.portal import wording as portal_wording

NOW = datetime(2030, 3, 8, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=11)
YEARLY = Terms("Qvorp", "qvorp", "USD", Decimal(10), Period(1, "year"), None, 0)
TRIED = replace(YEARLY, period=Period(6, "month"), limit=5, trial=Trial(Decimal(0), Period(14, "day")))
BEST = Package(2, 2, replace(YEARLY, name="Best"), 0)

PAYMENT = CheckoutView(
    merchant_name="Zyx",
    description="Blorp",
    amount=Decimal("1234.50"),
    currency="USD",
    merchant_order_id="1701",
    live=False,
    pay_url="/pay",
    shop_url="https://zyx.example/",
    form_action="",
    expires_at=NOW,
)
SAVED = SavedInstrument(1, 1, "Qvorp", NOW, (), (), "visa", "4242", 12, 2040)
KNOWN = replace(
    PAYMENT,
    path="/checkout/t1",
    known_as="q@zyx.example",
    saved=[SAVED, replace(SAVED, id=2, brand="unknown")],
)
SUBSCRIBING = replace(PAYMENT, terms=YEARLY)
TRYING = replace(PAYMENT, terms=TRIED, amount=Decimal(0))

SAVED_AT_SHOP = SavedAtShop(
    Shop(1, False), 1, "Zyx", "UTC", 2, [replace(SAVED, charge_wordings=["Vorp"], charges_agreed_at=[NOW])], NOW
)
HELD = Holding(
    shop=Shop(1, False),
    subscription=Subscription(
        merchant_id=1,
        live=False,
        id=1,
        state=SubscriptionState.ACTIVE,
        package=Package(1, 1, YEARLY, 1),
        init_payment_id=1,
        init_merchant_order_id="1701",
        email="q@zyx.example",
        time_zone="UTC",
        anchor=NOW,
        next_period=2,
        date_next=LATER,
        date_start=NOW,
        created_at=NOW,
    ),
    merchant_name="Zyx",
    agreed="",
    card=StoredCard("", "4242", "Q", 12, 2040),
    change=None,
    charging=False,
    now=NOW,
)
PAID = PastPayments(
    tuple(PastPayment(one, one, NOW, Decimal(10), "USD", state) for one, state in enumerate(PaymentState, 1)), older=1
)


RECEIPT = Receipt(1, "1701", NOW, Decimal(10), Decimal(1), "USD", StoredCard("Visa", "4242", "", 0, 0))


def held(charging: bool = False, **changed: object) -> Holding:
    """The subscription with some of its fields changed."""
    subscription = msgspec.structs.replace(HELD.subscription, **changed)
    return replace(HELD, charging=charging, subscription=subscription)


ENDED = SubscriptionState.EXPIRED
SUBSCRIPTIONS: dict[str, Holding] = {
    "active": HELD,
    "charging": held(charging=True),
    "failing": held(failures=1),
    "failing, charging": held(charging=True, failures=1),
    "running out": held(date_next=None, date_end=LATER),
    "trial": held(state=SubscriptionState.TRIAL, package=Package(1, 1, TRIED, 1), anchor=LATER, next_period=1),
    "cancelled": held(charging=True, state=SubscriptionState.CANCELLED, date_cancelled=NOW),
    "stopped": held(state=ENDED, date_stopped=NOW),
    "ended": held(state=ENDED, date_expired=NOW),
}

Page = Callable[[str], Response]


def _paying(view: CheckoutView, **said: object) -> Page:
    return lambda header: checkout.payment_page(view, checkout.texts_for(header), **said)  # type: ignore[arg-type]


def _portal(page: Callable[..., Response], holding: Holding, *args: object, **said: object) -> Page:
    return lambda header: page(portal.PortalView(holding, portal.texts_for(header), "/portal/t1"), *args, **said)


def _to_pay(page: Callable[..., Response], *args: object, **said: object) -> Page:
    """A page of who came by the link that pays what is open."""

    def shown(header: str) -> Response:
        view = portal.PortalView(held(failures=1), portal.texts_for(header), "/portal/pay/2/t1", pays=True)
        return page(view, *args, **said)

    return shown


def _agreeing(header: str) -> CheckoutView:
    """The form of somebody who is known, with the boxes that save a card."""
    texts = checkout.texts_for(header)
    later = LaterCharges("Blorp", Decimal(50), "USD")
    return replace(KNOWN, keep=keep_in_words("Zyx", texts), charge=charge_in_words("Zyx", later, texts))


def _saved_cards(header: str, saved: SavedAtShop) -> Response:
    return portal.saved_cards_page(saved, portal.texts_for(header), "/portal/cards/t1")


def _field_errors(errors: Mapping[str, Mapping[str, str]]) -> list[dict[str, str]]:
    """All codes of all fields, each field with one code at a time."""
    most = max(map(len, errors.values()))
    return [{name: list(codes)[min(at, len(codes) - 1)] for name, codes in errors.items()} for at in range(most)]


PAGES: dict[str, Page] = {
    "payment": _paying(PAYMENT),
    "live": _paying(replace(PAYMENT, live=True, shop_url="")),
    "subscribing": _paying(SUBSCRIBING),
    "trying": _paying(TRYING),
    **{f"errors {n}": _paying(TRYING, field_errors=e) for n, e in enumerate(_field_errors(wording.FIELD_ERRORS))},
    **{f"notice {notice}": _paying(PAYMENT, notice=notice)
       for notice in dict.fromkeys([*DeclineReason, *wording.NOTICES])},
    **{f"error {status}": lambda header, s=status: checkout.error_page(checkout.texts_for(header), status=s)  # type: ignore[misc]
       for status in wording.ERRORS},
    "paying elsewhere too": _paying(replace(PAYMENT, continue_url="/checkout/abc/continue")),
    "paying elsewhere": _paying(replace(PAYMENT, pay_url="", continue_url="/checkout/abc/continue", given_back=True)),
    "may save": _paying(replace(PAYMENT, path="/checkout/t1")),
    "known": lambda header: checkout.payment_page(_agreeing(header), checkout.texts_for(header)),
    "address": lambda header: checkout.address_page(KNOWN, checkout.texts_for(header), wrong="invalid"),
    "too many codes": lambda header: checkout.address_page(KNOWN, checkout.texts_for(header), notice="too_many_codes"),
    "code": lambda header: checkout.code_page(KNOWN, checkout.texts_for(header), wrong=True),
    "unpayable": lambda header: checkout.unpayable_page(PAYMENT, checkout.texts_for(header)),
    "paid twice": lambda header: checkout.already_paid_page(
        replace(PAYMENT, given_back=True), checkout.texts_for(header)
    ),
    "checking": lambda header: checkout.checking_page(PAYMENT, checkout.texts_for(header), status_url="/status"),
    "paid": lambda header: checkout.already_paid_page(PAYMENT, checkout.texts_for(header)),
    "subscribed": lambda header: checkout.already_paid_page(SUBSCRIBING, checkout.texts_for(header)),
    "tried": lambda header: checkout.already_paid_page(TRYING, checkout.texts_for(header)),
    "expired": lambda header: checkout.expired_page(PAYMENT, checkout.texts_for(header)),
    "closed": lambda header: checkout.closed_page(PAYMENT, checkout.texts_for(header)),
    "suspended": lambda header: checkout.suspended_page(PAYMENT, checkout.texts_for(header)),
    "stopped": lambda header: checkout.stopped_page(PAYMENT, checkout.texts_for(header)),
    "form error": lambda header: checkout.form_error_page(
        checkout.texts_for(header), status=403, message="wrong hash", fields=["hash"], hashed="a=1", suspect="amount"
    ),
    **{f"portal, {name}": _portal(portal.subscription_page, holding, PAID, paging=True)
       for name, holding in SUBSCRIPTIONS.items()},
    "portal, saved cards": lambda header: _saved_cards(header, SAVED_AT_SHOP),
    "portal, no saved cards": lambda header: _saved_cards(header, replace(SAVED_AT_SHOP, instruments=[], browsers=0)),
    "portal, no older": _portal(portal.subscription_page, HELD, PastPayments((), None)),
    "portal, receipt": _portal(portal.receipt_page, HELD, RECEIPT),
    "portal, receipt, by bank": _portal(
        portal.receipt_page, HELD, replace(RECEIPT, card=StoredCard("", "", "", 0, 0, "bank"))
    ),
    "portal, over": _portal(portal.subscription_page, SUBSCRIPTIONS["cancelled"], PAID, again="/buy/t1"),
    "portal, plan": _portal(portal.plan_page, HELD, [BEST]),
    "portal, plan to come": _portal(
        portal.subscription_page,
        held(change=Change(ChangeType.PLAN, LATER, NOW, "customer", BEST)),
        PAID,
    ),
    "portal, cancel": _portal(portal.cancel_page, held(charging=True)),
    "portal, card": _portal(portal.card_page, held(failures=1)),
    **{f"portal, errors {n}": _portal(portal.card_page, HELD, errors=e)
       for n, e in enumerate(_field_errors(CARD_ERRORS))},
    **{f"portal, notice {notice}": _portal(portal.card_page, HELD, notice=notice)
       for notice in dict.fromkeys([*DeclineReason, *portal_wording.NOTICES])},
    "portal, card replaced": _portal(portal.card_replaced_page, held(failures=1)),
    "portal, stopped": _portal(portal.stopped_page, HELD),
    "portal, checking": _portal(portal.checking_page, HELD),
    "to pay": _to_pay(portal.card_page, continue_url="/portal/pay/2/t1/continue"),
    "to pay, charging": _to_pay(portal.checking_page),
    "to pay, stopped": _to_pay(portal.stopped_page),
    **{f"to pay, {standing}": _to_pay(portal.standing_page, standing) for standing in portal_wording.STANDINGS},
    "portal, not found": lambda header: portal.not_found_page(portal.texts_for(header)),
}  # fmt: skip
