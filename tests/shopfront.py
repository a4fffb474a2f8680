"""What happens at a shop, written once: a customer orders, pays or subscribes,
and the merchant ships or gives money back.

These go through the domain, over a desk with a test bank, as the doors do; nothing here writes into
a table. What a browser does at the checkout's door is another thing (fields, redirects, headers):
`open_page` and `press_pay` below do it over HTTP.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import httpx

from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.business import payment_links, shop_settings
from paydesk.domain.business.shop_settings import find_shop_settings
from paydesk.domain.deliveries.confirmations import read_delivery, read_order
from paydesk.domain.deliveries.confirming import Confirmed, confirm
from paydesk.domain.mail.queueing import open_facts
from paydesk.domain.merchants.customer_links import Link, LinkTo, OpenedLink, open_link
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.checkouts import find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hosting import Guest, go_to_page
from paydesk.domain.payments.paying import Payer
from paydesk.domain.payments.paying import pay as pay_at
from paydesk.domain.payments.refunding import Refund, refund
from paydesk.domain.payments.requests import CheckoutRequest
from paydesk.domain.payments.results import ConfirmWithBank, Paid, Result
from paydesk.domain.payments.storing import open_checkout
from paydesk.domain.selling.buying import buy as buy_by_link
from paydesk.domain.selling.buying import read_choice
from paydesk.domain.selling.payment_links import Offer, find_payment_link, link_to
from paydesk.domain.selling.plans import Plan, Plans, stored
from paydesk.domain.shoppers.instruments import Agreed, LaterCharges
from paydesk.domain.shoppers.proving import ask_for_code, prove
from paydesk.domain.shoppers.sessions import Shopper, find_shopper
from paydesk.domain.subscriptions.for_api import find_subscription_for_api
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.packages import make_version
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk_client.signature import Value, encode_form

GOOD, DECLINED = "4242424242424242", "4000000000000002"
"""Test cards: one that always pays, one that never does."""
TYPED = {"email": "ada@example.com", "holder": "Ada King Lovelace", "country": "GB", "expiry": "12/30", "cvc": "123"}
"""What a customer types into the checkout's page, but for the number."""
MONTHLY = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)


async def order(
    database: Database,
    shop: Shop,
    reference: str = "",
    *,
    amount: str | Decimal = "",
    terms: Terms | None = None,
    form: Mapping[str, Value] | None = None,
    now: datetime | None = None,
    **asked: Any,
) -> Link:
    """A customer is sent to a checkout: over 10 USD, or by a subscription's terms,
    for a new order or the one named.

    `asked` are other fields of the shop's request. Each call opens a checkout of its own unless it
    brings a `form`.
    """
    price = amount or (terms.price if terms else "10.00")
    usual: dict[str, Any] = {
        "currency": terms.currency if terms else "USD",
        "description": "A mug",
        "success_url": "https://shop.example/thanks",
        "pingback_url": "https://shop.example/pingback",
        "sign_version": "v2",
        **dict.fromkeys(("email", "first_name", "last_name", "country"), ""),
        "wants_qr_code": False,
    }
    fields = {**usual, "merchant_order_id": reference or secrets.token_hex(8), "amount": Decimal(price)}
    return await open_checkout(
        database,
        shop,
        CheckoutRequest(**{**fields, **asked}, terms=terms),
        form=form or {"nonce": secrets.token_hex(8)},
        key_id=await database.fetchval("select min(id) from merchant_key where merchant_id = $1", shop.merchant_id),
        now=now or await shop_time(database, shop, real_now=utc_now()),
    )


def payer(
    number: str = GOOD,
    *,
    name: str = "Ada Lovelace",
    cvc: str = "123",
    email: str = "ada@example.com",
    address: str = "192.0.2.1",
    agreed: str = "",
    language: str = "en",
    saving: Agreed | None = None,
) -> Payer:
    """Somebody with a card in their hand; `agreed` is the wording of a subscription's terms
    that they saw.
    """
    return Payer(CardDetails(number, 12, 2040, name, cvc), email, "GB", address, agreed, language, saving)


async def pay(
    desk: Desk, link: Link | OpenedLink, number: str = GOOD, *, now: datetime | None = None, **who: Any
) -> Result:
    """A customer types a card at a checkout and presses the button; `now` is the shop's own time.

    `who` is what `payer` knows of them.
    """
    real = utc_now()
    ahead = await shop_time(desk.database, link.shop, real_now=real) - real
    at = now or real + ahead
    checkout = await find_checkout(desk.database, link, now=at - ahead)
    somebody = payer(number, **{"agreed": "ok" if checkout.terms else "", **who})
    return await pay_at(desk, checkout, somebody, return_url="https://pay.test/back", now=at)


async def go_on(
    desk: Desk,
    link: Link | OpenedLink,
    *,
    email: str = "ada@example.com",
    agreed: str = "",
    address: str = "192.0.2.1",
    now: datetime | None = None,
) -> Result:
    """A customer types an address at a checkout, agrees to a subscription's terms, and goes on to
    the acquirer's page; `now` is the shop's own time.
    """
    at = now or await shop_time(desk.database, link.shop, real_now=utc_now())
    checkout = await find_checkout(desk.database, link, now=now or utc_now())
    guest = Guest(email, address, agreed=agreed or ("ok" if checkout.terms else ""))
    return await go_to_page(desk, checkout, guest, base="https://pay.test", now=at)


async def buy(
    desk: Desk,
    shop: Shop,
    reference: str = "",
    *,
    number: str = GOOD,
    email: str = "ada@example.com",
    now: datetime | None = None,
    **asked: Any,
) -> int:
    """A customer, whose address is `email`, orders and has paid; the payment's id.
    `asked` is what `order` takes.
    """
    reference = reference or secrets.token_hex(8)
    link = await order(desk.database, shop, reference, now=now, **asked)
    came = await pay(desk, link, number, email=email, now=now)
    assert came == Paid(), came
    return await payment_of(desk.database, shop, reference)


async def subscribe(
    desk: Desk, shop: Shop, terms: Terms = MONTHLY, *, reference: str = "club-1", **asked: Any
) -> Subscription:
    """A customer takes out a subscription and has paid for its beginning.
    `asked` is what `buy` takes.
    """
    await buy(desk, shop, reference, terms=terms, **asked)
    return await subscription_of(desk.database, shop, reference)


async def ship(desk: Desk, shop: Shop, payment_id: int, *, now: datetime | None = None, **said: Any) -> Confirmed:
    """The merchant confirms that it shipped an order, with DHL unless it says otherwise."""
    usual: dict[str, Any] = {
        "status": "order_shipped",
        "type": "physical",
        "carrier_type": "DHL",
        "carrier_tracking_id": "00340434161094021501",
        "payment_order_id": payment_id,
    }
    told = {**usual, **said}
    return await confirm(desk, shop, read_order(told), read_delivery(told), now=now or utc_now())


async def give_back(
    desk: Desk,
    shop: Shop,
    payment_id: int,
    amount: str | Decimal | None = None,
    *,
    by: str = "api",
    key: str | None = None,
    now: datetime | None = None,
    **more: Any,
) -> Refund:
    """The merchant gives money back, all that is left unless it says how much; `key` is what
    it calls the refund.
    """
    asked = None if amount is None else Decimal(amount)
    return await refund(desk, shop, payment_id, asked, requested_by=by, request_key=key, now=now or utc_now(), **more)


async def ships(database: Database, shop: Shop, *, shipped: bool = True) -> None:
    """The merchant ships its goods from now on, or doesn't any more:
    new payments wait for the shipment.
    """
    await change_merchant(database, shop.merchant_id, shipped_goods=shipped)


async def saves_cards(database: Database, shop: Shop) -> None:
    """The merchant lets its customers save cards."""
    before, _ = await find_shop_settings(database, shop.merchant_id)
    await shop_settings.queries.save(
        database, merchant_id=shop.merchant_id, **asdict(replace(before, saves_cards=True))
    )


async def become_known(desk: Desk, shop: Shop, email: str = "ada@example.com") -> Shopper:
    """Somebody proves an address at a shop."""
    now = utc_now()
    asked = await ask_for_code(
        desk.database, desk.vault, shop, email, mail_to=email, client=secrets.token_hex(4), language="en", now=now
    )
    code = await mailed_code(desk.database, desk.vault, shop)
    session = await prove(desk.database, desk.vault, shop, asked.browser, code, remember=False, now=now)
    assert session is not None
    shopper = await find_shopper(desk.database, desk.vault, shop, session.token, renew=False, now=now)
    assert shopper is not None
    return shopper


LATER = LaterCharges("what your car has charged", Decimal(50), "USD")
"""What a shop asks to be allowed, in most tests."""


async def save_card(
    desk: Desk, bank: Bank, shopper: Shopper, number: str = GOOD, *, later: LaterCharges | None = LATER
) -> int:
    """A customer who is known pays, and saves the card: for the next visit, and, if `later` is
    asked, to be charged without them, for which their bank asks who they are. The card's id.
    """
    await saves_cards(desk.database, shopper.shop)
    link = await order(desk.database, shopper.shop)
    agreed = Agreed(shopper.id, "keep it", "charge it" if later else "", later)
    result = await pay(desk, link, number, saving=agreed)
    if isinstance(result, ConfirmWithBank):
        bank.decide(result.url.rpartition("/")[2], "approve")
        checkout = await find_checkout(desk.database, link, now=utc_now())
        assert checkout.attempt is not None
        result = await settle_challenge(desk, checkout, checkout.attempt, now=checkout.now)
    assert result == Paid()
    found = await desk.database.fetchval(
        "select max(id) from saved_instrument where merchant_id = $1", shopper.shop.merchant_id
    )
    return int(found)


async def mailed_code(database: Database, vault: Vault, shop: Shop) -> str:
    """The newest code that was mailed in the shop's name."""
    facts = await database.fetchval(
        "select facts::text from mail where merchant_id = $1 and kind = 'shopper_code' order by id desc limit 1",
        shop.merchant_id,
    )
    return str(open_facts(vault, json.loads(facts))["token"])


async def payment_of(database: Database, shop: Shop, reference: str) -> int:
    """The id of an order's payment."""
    return int(
        await database.fetchval(
            "select id from payment where merchant_id = $1 and live = $2 and merchant_order_id = $3",
            shop.merchant_id,
            shop.live,
            reference,
        )
    )


async def subscription_of(database: Database, shop: Shop, reference: str) -> Subscription:
    """The subscription that began with an order."""
    found = await database.fetchval(
        "select id from subscription where merchant_id = $1 and live = $2 and init_merchant_order_id = $3",
        shop.merchant_id,
        shop.live,
        reference,
    )
    return await find_subscription(database, shop, found)


async def find_subscription(database: Database, shop: Shop, subscription_id: int) -> Subscription:
    """A subscription as the shop's server is shown it."""
    return (await find_subscription_for_api(database, shop, subscription_id)).subscription


async def choose_mails(database: Database, shop: Shop, *, customer_mails: bool, test_mails: bool) -> None:
    """A merchant chooses which mails are sent."""
    before, _ = await find_shop_settings(database, shop.merchant_id)
    wanted = replace(before, customer_mails=customer_mails, test_mails=test_mails)
    await shop_settings.queries.save(database, merchant_id=shop.merchant_id, **asdict(wanted))


async def offer_link(database: Database, shop: Shop, **offered: Any) -> Link:
    """A team makes a payment link, over 10 USD unless it says otherwise; where it leads to."""
    usual: dict[str, Any] = {
        "title": "A mug",
        "description": "Holds tea",
        "picture": "",
        "large_picture": "",
        "currency": "USD",
        "price": Decimal("10.00"),
        "monthly_price": None,
        "yearly_price": None,
        "most_quantity": 1,
        "most_sales": None,
        "success_url": "https://shop.example/thanks",
        "coupons": True,
        "plans": None,
    }
    seed, offer = secrets.token_hex(16), Offer(**{**usual, **offered})
    terms = {**asdict(offer), "plans": stored(offer.plans)}
    side = {"merchant_id": shop.merchant_id, "live": shop.live, "now": utc_now()}
    made = await payment_links.queries.make_link(database, **side, seed=seed, most=1000, **terms)
    return link_to(shop, int(made), seed)


async def offer_packages(database: Database, shop: Shop, *sold: Sequence[Terms], **offered: Any) -> Link:
    """A team makes a page that sells packages, each in some versions; where it leads to."""
    plans = [
        Plan(tuple([(await make_version(database, shop, terms, now=utc_now())).version_id for terms in versions]))
        for versions in sold
    ]
    return await offer_link(database, shop, **{"price": None, "plans": Plans(tuple(plans)), **offered})


async def choose(desk: Desk, link: Link, chosen: str = "", quantity: int = 1, press: str = "") -> Link:
    """A customer opens a payment link, chooses, and is led to the checkout; its link."""
    opened = open_link(desk.vault, LinkTo.SALE, link.token(desk.vault))
    found = await find_payment_link(desk.database, opened)
    choice = read_choice(found, chosen, str(quantity), press or secrets.token_hex(16))
    return await buy_by_link(desk, found, choice, real_now=utc_now())


async def open_page(web: httpx.AsyncClient, form: Mapping[str, Value]) -> str:
    """A browser is sent to the checkout's door with a shop's signed form;
    the path of the page that it gets.
    """
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await web.post("/payment/form", content=encode_form(form), headers=headers)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def charge_round(desk: Desk) -> None:
    """A worker charges what is due, and comes to every shop, however many others there are."""
    billing = BillingRun(desk)
    await billing.charge_due()
    while not billing.round_complete:
        await billing.charge_due()


async def press_pay(
    web: httpx.AsyncClient, path: str, number: str = GOOD, *, accept: str = "*/*", language: str = "", **typed: str
) -> httpx.Response:
    """A browser sends what was typed into the checkout's page;
    for a subscription, the box is ticked by `agree`.
    """
    headers = {"Accept": accept, **({"Accept-Language": language} if language else {})}
    return await web.post(f"{path}/pay", data={**TYPED, "number": number, **typed}, headers=headers)
