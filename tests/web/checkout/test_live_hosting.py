"""Live payments on Stripe's own page, from the form to a clean check,
with a stand-in of ours behind the adapter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests import breaking, set_back
from tests.conftest import accept_waiting, submit_profile
from tests.proving import check
from tests.shopfront import charge_round, open_page, press_pay, ship, ships
from tests.standins.stripe_checkout import StripeCheckout, running
from tests.web.checkout.test_hosting import press_continue
from tests.web.checkout.test_paying import SHOP, leads_to, text_of

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, go_live, shop_of
from paydesk.domain.operations.reconciling import reconcile
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.idempotency_keys import pads_of
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.refunding import refund
from paydesk.equipment import live_acquirer
from paydesk.settings import Settings

OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
SignedForm = Callable[..., dict[str, Any]]

VISA = {"type": "card", "card": {"brand": "visa", "last4": "4242", "wallet": {"type": "google_pay"}}}


@pytest.fixture
async def stripe() -> AsyncIterator[StripeCheckout]:
    async with running(utc_now) as started:
        yield started
        assert started.wrong == []


@pytest.fixture
def live(stripe: StripeCheckout) -> dict[str, Any]:
    return {
        "live_acquirer": "stripe",
        "stripe_secret_key": SecretStr("sk_test_standin"),
        "stripe_api_base": stripe.base_url,
        "stripe_checkout": True,
        "stripe_webhook_secret": SecretStr("whsec_a, whsec_b"),
        "idempotency_secret": SecretStr("i" * 40),
    }


@pytest.fixture
async def live_web(
    open_web: OpenWeb, live: dict[str, Any], database: Database, merchant: Merchant
) -> httpx.AsyncClient:
    await submit_profile(database, merchant.id)
    await accept_waiting(database, merchant.id)
    await go_live(database, merchant.id, now=utc_now())
    return await open_web(**live)


@pytest.fixture
async def live_desk(desk: Desk, settings: Settings, live: dict[str, Any]) -> AsyncIterator[Desk]:
    """What a worker of that deployment works with."""
    acquirer = live_acquirer(settings.model_copy(update=live))
    assert acquirer is not None
    secret = live["idempotency_secret"].get_secret_value()
    acquirers = {**desk.acquirers, "stripe": acquirer}
    yield replace(desk, acquirers=acquirers, live_acquirer="stripe", pads=pads_of(secret.encode()))
    await acquirer.close()


async def attempt(database: Database, merchant: Merchant) -> Any:
    return await database.fetchrow(
        """
        select p.id, p.state, a.idempotency_key as key, a.acquirer_reference as reference, c.brand, c.last4, c.wallet
          from payment p
          join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id
          join card c on c.merchant_id = p.merchant_id and c.id = p.card_id
         where p.merchant_id = $1
        """,
        merchant.id,
    )


async def test_an_ordinary_account_takes_a_payment_without_a_card_number(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, stripe: StripeCheckout
) -> None:
    path = await open_page(live_web, signed_form())
    page = await live_web.get(path)
    assert "cc-number" not in page.text
    assert "https://checkout.stripe.com" in page.headers["content-security-policy"]
    address = leads_to(await press_continue(live_web, path))
    assert address == f"{stripe.base_url}/c/pay/{next(iter(stripe.sessions))}"
    stripe.pay(address.rpartition("/")[2], VISA)
    assert leads_to(await live_web.get(f"{path}/result")) == SHOP
    paid = await attempt(database, merchant)
    assert tuple(paid)[1:2] + tuple(paid)[4:] == ("captured", "visa", "4242", "google_pay")
    assert stripe.taken(paid["key"]) == 1000
    found = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in found if finding.found] == []


async def test_a_payment_made_there_is_refunded(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: StripeCheckout,
) -> None:
    path = await open_page(live_web, signed_form())
    stripe.pay(leads_to(await press_continue(live_web, path)).rpartition("/")[2], VISA)
    await live_web.get(f"{path}/result")
    paid = await attempt(database, merchant)
    await refund(live_desk, shop_of(merchant, live=True), paid["id"], Decimal(4), requested_by="api", now=utc_now())
    assert stripe.taken(paid["key"]) == 600


async def test_a_lost_answer_leads_to_the_one_page_that_was_made(
    live_web: httpx.AsyncClient, live_desk: Desk, signed_form: SignedForm, stripe: StripeCheckout
) -> None:
    path = await open_page(live_web, signed_form())
    stripe.loses = 1
    assert leads_to(await press_continue(live_web, path)) == f"{path}/result"
    await settle_due(live_desk, now=utc_now() + timedelta(seconds=10))
    assert len(stripe.sessions) == 1
    (made,) = stripe.sessions.values()
    assert (await live_web.get(f"{path}/status")).json()["url"] == made["url"]


async def test_no_card_that_somebody_posts_is_sent(
    live_web: httpx.AsyncClient, signed_form: SignedForm, stripe: StripeCheckout
) -> None:
    path = await open_page(live_web, signed_form())
    assert leads_to(await press_pay(live_web, path)) == path
    assert not [path for path, _, body in stripe.asked if body]


@pytest.mark.parametrize(
    ("trial", "first", "later"),
    [({}, 1000, 2000), ({"recurring_trial_period": "14d"}, 0, 1000)],
    ids=["paid at once", "after a free trial"],
)
async def test_a_subscription_begins_there_and_renews_by_what_is_kept(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: StripeCheckout,
    trial: dict[str, str],
    first: int,
    later: int,
) -> None:
    form = signed_form(recurring_name="Club", recurring_sku_id="club", recurring_period="1m", **trial)
    path = await open_page(live_web, form)
    page = text_of(await live_web.get(path))
    assert "charges what I pay with for “Club”" in page
    assert (await live_web.post(f"{path}/continue", data={"email": "ada@example.com"})).status_code == 400
    typed = {"email": "ada@example.com", "agree": "en"}
    address = leads_to(await live_web.post(f"{path}/continue", data=typed))
    assert stripe.pay(address.rpartition("/")[2], VISA)
    leads_to(await live_web.get(f"{path}/result"))
    assert sum(one["amount_received"] for one in stripe.intents.values()) == first
    subscription_id = await database.fetchval("select id from subscription where merchant_id = $1", merchant.id)
    await set_back.renewal_due(database, subscription_id)
    await charge_round(live_desk)
    assert sum(one["amount_received"] for one in stripe.intents.values()) == later
    assert [one["email"] for one in stripe.customers] == ["ada@example.com"]
    found = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in found if finding.found] == []


@pytest.mark.parametrize("goods", ["shipped", "let go"])
async def test_shipped_goods_are_held_there_until_the_shipment_or_the_end_of_the_hold(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: StripeCheckout,
    goods: str,
) -> None:
    shop = shop_of(merchant, live=True)
    await ships(database, shop)
    path = await open_page(live_web, signed_form())
    name = leads_to(await press_continue(live_web, path)).rpartition("/")[2]
    assert not stripe.pay(name, {"type": "ideal", "ideal": {}})
    assert stripe.pay(name, VISA)
    assert leads_to(await live_web.get(f"{path}/result")) == SHOP
    held = await attempt(database, merchant)
    assert (held["state"], stripe.held(held["key"]), stripe.taken(held["key"])) == ("authorized", 1000, 0)
    if goods == "shipped":
        await ship(live_desk, shop, held["id"])
        await refund(live_desk, shop, held["id"], Decimal(4), requested_by="api", now=utc_now())
    else:
        await refund(live_desk, shop, held["id"], None, requested_by="api", now=utc_now())
    assert (stripe.held(held["key"]), stripe.taken(held["key"])) == (0, 600 if goods == "shipped" else 0)
    found = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in found if finding.found] == []


async def test_a_page_that_a_restored_database_forgot_is_expired_and_its_order_paid_on_another(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: StripeCheckout,
) -> None:
    path = await open_page(live_web, signed_form())
    forgotten = leads_to(await press_continue(live_web, path)).rpartition("/")[2]
    await breaking.forget(database, merchant.id, "hosted_page", "payment_attempt", "payment", "customer", "card")
    now = utc_now()
    asked: dict[str, Any] = {"since": now - timedelta(hours=1), "now": now, "fix": True}
    found = await reconcile(live_desk, "stripe", **asked)
    assert ([one.reference for one in found.ended], found.differences) == ([forgotten], [])
    assert not stripe.pay(forgotten, VISA)
    another = leads_to(await press_continue(live_web, path)).rpartition("/")[2]
    assert another != forgotten
    assert stripe.pay(another, VISA)
    assert leads_to(await live_web.get(f"{path}/result")) == SHOP
    paid = await attempt(database, merchant)
    assert (paid["state"], stripe.taken(paid["key"])) == ("captured", 1000)
    again = await reconcile(live_desk, "stripe", **asked)
    assert (again.ended, again.differences) == ([], [])


async def test_what_was_paid_on_a_forgotten_page_is_adopted(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: StripeCheckout,
) -> None:
    path = await open_page(live_web, signed_form())
    forgotten = leads_to(await press_continue(live_web, path)).rpartition("/")[2]
    assert stripe.pay(forgotten, VISA)
    await breaking.forget(database, merchant.id, "hosted_page", "payment_attempt", "payment", "customer", "card")
    now = utc_now()
    found = await reconcile(live_desk, "stripe", since=now - timedelta(hours=1), now=now, fix=True)
    assert ([one.what for one in found.adopted], found.ended, found.differences) == (["purchase"], [], [])
    paid = await attempt(database, merchant)
    assert (paid["state"], paid["brand"], paid["last4"], paid["wallet"]) == ("captured", "visa", "4242", "google_pay")
    problems = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in problems if finding.found] == []
