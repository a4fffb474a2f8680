"""Live payments, from the form to a clean check, with Stripe's adapter
and localstripe behind it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import aiohttp
import httpx
import pytest
from pydantic import SecretStr
from tests.adapters.acquirers.stripe.localstripe import SECRET_KEY, Front, running_localstripe
from tests.conftest import accept_waiting, submit_profile
from tests.proving import check
from tests.shopfront import open_page, press_pay, ships
from tests.web.checkout.test_paying import SHOP, leads_to, text_of

from paydesk.adapters.acquirers.interface import Approved
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.billing.charging import BillingRun, Side, queries
from paydesk.domain.merchants.merchant import Merchant, go_live, shop_of
from paydesk.domain.operations.merchants import resume_merchant, suspend_merchant
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import refund
from paydesk.equipment import live_acquirer
from paydesk.settings import Settings

OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
SignedForm = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
async def stripe() -> AsyncIterator[Front]:
    async with running_localstripe() as front:
        yield front


@pytest.fixture
def live(stripe: Front) -> dict[str, Any]:
    """The settings of a deployment that takes live payments."""
    key = SecretStr(SECRET_KEY)
    secret = SecretStr("i" * 40)
    live = {"live_acquirer": "stripe", "stripe_secret_key": key, "stripe_api_base": stripe.base_url}
    return live | {"idempotency_secret": secret}


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
    yield replace(desk, acquirers={**desk.acquirers, "stripe": acquirer}, live_acquirer="stripe")
    await acquirer.close()


async def live_payment(database: Database, merchant: Merchant) -> Any:
    return await database.fetchrow(
        """
        select p.id, p.state, p.live, a.acquirer, a.idempotency_key as key
          from payment p join payment_attempt a on a.merchant_id = p.merchant_id and a.payment_id = p.id
         where p.merchant_id = $1
         order by a.id desc
        """,
        merchant.id,
    )


async def test_a_live_merchants_customer_pays_through_the_live_acquirer(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, stripe: Front
) -> None:
    path = await open_page(live_web, signed_form())
    page = await live_web.get(path)
    assert "https://hooks.stripe.com" in page.headers["content-security-policy"]
    assert leads_to(await press_pay(live_web, path, "4242424242424242")) == SHOP
    paid = await live_payment(database, merchant)
    assert (paid["state"], paid["live"], paid["acquirer"]) == ("captured", True, "stripe")
    assert (await stripe.standing(paid["key"])).net == Decimal(10)
    found = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in found if finding.found] == []


async def test_a_live_decline_says_so_and_takes_nothing(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, stripe: Front
) -> None:
    path = await open_page(live_web, signed_form())
    answer = await press_pay(live_web, path, "4000000000000341")
    assert answer.status_code == 402
    assert "declined" in text_of(answer)
    assert (await stripe.standing((await live_payment(database, merchant))["key"])).net == 0


async def test_a_live_challenge_leads_to_the_bank_and_back(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, stripe: Front
) -> None:
    path = await open_page(live_web, signed_form())
    bank_page = leads_to(await press_pay(live_web, path, "4000000000003220"))
    assert bank_page.startswith(stripe.base_url)
    async with (
        aiohttp.ClientSession() as browser,
        browser.post(bank_page, data={"decision": "approve"}, allow_redirects=False) as decided,
    ):
        back = decided.headers["Location"]
    assert leads_to(await live_web.get(back)) == SHOP
    paid = await live_payment(database, merchant)
    assert paid["state"] == "captured"
    assert (await stripe.standing(paid["key"])).net == Decimal(10)


async def test_a_live_answer_that_is_lost_is_found_by_the_worker(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: Front,
) -> None:
    path = await open_page(live_web, signed_form())
    stripe.lose_answer_to = "/v1/payment_intents"
    await press_pay(live_web, path, "4242424242424242")
    assert (await live_payment(database, merchant))["state"] == "processing"
    await settle_due(live_desk, now=utc_now() + timedelta(minutes=1))
    paid = await live_payment(database, merchant)
    assert paid["state"] == "captured"
    assert (await stripe.standing(paid["key"])).net == Decimal(10)


async def test_a_live_refund_whose_answer_is_lost_is_finished_once(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: Front,
) -> None:
    await press_pay(live_web, await open_page(live_web, signed_form()), "4242424242424242")
    paid, shop = await live_payment(database, merchant), shop_of(merchant, live=True)
    stripe.lose_answer_to = "/v1/refunds"
    await refund(live_desk, shop, paid["id"], Decimal(4), requested_by="api", now=utc_now())
    assert (await live_payment(database, merchant))["state"] == "captured"
    await finish_movements(live_desk, now=utc_now() + timedelta(minutes=1))
    assert (await stripe.standing(paid["key"])).net == Decimal(6)
    assert (await live_payment(database, merchant))["state"] == "partially_refunded"
    found = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in found if finding.found] == []


async def test_live_goods_to_be_shipped_are_held_and_let_go_again(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: Front,
) -> None:
    await ships(database, shop_of(merchant, live=True))
    assert leads_to(await press_pay(live_web, await open_page(live_web, signed_form()), "4242424242424242")) == SHOP
    held = await live_payment(database, merchant)
    assert held["state"] == "authorized"
    assert (await stripe.standing(held["key"])).held == Decimal(10)
    await refund(live_desk, shop_of(merchant, live=True), held["id"], None, requested_by="api", now=utc_now())
    assert (await live_payment(database, merchant))["state"] == "voided"
    standing = await stripe.standing(held["key"])
    assert (standing.net, standing.held) == (Decimal(0), Decimal(0))


async def test_a_live_subscription_is_renewed_with_the_card_that_stripe_keeps(
    live_web: httpx.AsyncClient,
    live_desk: Desk,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: Front,
) -> None:
    club = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
    path = await open_page(live_web, signed_form(**club))
    assert leads_to(await press_pay(live_web, path, "4242424242424242", agree="en")) == SHOP
    due = await database.fetchval("select date_next from subscription where merchant_id = $1", merchant.id)
    (charge,) = await BillingRun(live_desk).claim([Side(shop_of(merchant, live=True), due)], utc_now())
    assert isinstance(await live_desk.acquirers["stripe"].charge_stored(charge.wish.purchase), Approved)
    assert (await stripe.standing(charge.wish.purchase.key)).net == Decimal(10)
    sent = [params for method, path, _, params in stripe.asked if (method, path) == ("POST", "/v1/payment_intents")]
    assert sent[-1]["off_session"] == "true"
    assert sent[-1]["customer"] == sent[-2]["customer"]


async def test_a_suspended_merchant_takes_no_live_payment_until_that_is_lifted(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, stripe: Front
) -> None:
    path = await open_page(live_web, signed_form())
    await suspend_merchant(database, COMMAND_LINE, merchant.id, reason="Goods don't arrive", now=utc_now())
    answer = await press_pay(live_web, path, "4242424242424242")
    assert answer.status_code == 409
    assert "can’t take payments at the moment" in text_of(answer)
    assert await live_payment(database, merchant) is None
    shown = await live_web.get(path)
    assert (shown.status_code, 'name="number"' in shown.text) == (409, False)
    assert "can’t take payments at the moment" in text_of(shown)
    german = await live_web.get(path, headers={"Accept-Language": "de"})
    assert "kann im Moment keine Zahlungen annehmen" in text_of(german)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    form = signed_form(merchant_order_id="another")
    assert (await live_web.post("/payment/form", data=form, headers=headers)).status_code == 409
    assert (await live_web.post("/sandbox/payment/form", data=form, headers=headers)).status_code == 303
    await resume_merchant(database, COMMAND_LINE, merchant.id, now=utc_now())
    assert leads_to(await press_pay(live_web, path, "4242424242424242")) == SHOP
    assert (await live_payment(database, merchant))["state"] == "captured"


async def is_due(database: Database, merchant: Merchant, at: datetime) -> bool:
    """Whether a biller would look at the merchant's live side."""
    rows = queries.sides_to_charge(database, real_now=at, after_merchant=merchant.id - 1, after_live=True, most=10)
    return any([row["due"] async for row in rows if row["merchant_id"] == merchant.id and row["live"]])


async def test_renewals_of_a_suspended_merchant_wait(
    live_web: httpx.AsyncClient, live_desk: Desk, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    club = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
    path = await open_page(live_web, signed_form(**club))
    assert leads_to(await press_pay(live_web, path, "4242424242424242", agree="en")) == SHOP
    due = await database.fetchval("select date_next from subscription where merchant_id = $1", merchant.id)
    await suspend_merchant(database, COMMAND_LINE, merchant.id, reason="Goods don't arrive", now=utc_now())
    run = BillingRun(live_desk)
    assert not await is_due(database, merchant, due)
    assert await run.claim([Side(shop_of(merchant, live=True), due)], utc_now()) == []
    row = await database.fetchrow(
        "select state, failures, date_next from subscription where merchant_id = $1", merchant.id
    )
    assert (row["state"], row["failures"], row["date_next"]) == ("Active", 0, due)
    await resume_merchant(database, COMMAND_LINE, merchant.id, now=utc_now())
    assert await is_due(database, merchant, due)
    assert len(await run.claim([Side(shop_of(merchant, live=True), due)], utc_now())) == 1


async def test_without_a_live_acquirer_a_live_customer_is_told_and_nothing_is_stored(
    open_web: OpenWeb, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    await submit_profile(database, merchant.id)
    await accept_waiting(database, merchant.id)
    await go_live(database, merchant.id, now=utc_now())
    web = await open_web()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await web.post("/payment/form", data=signed_form(), headers=headers)
    if answer.status_code == 303:
        answer = await press_pay(web, answer.headers["location"], "4242424242424242")
    assert answer.status_code == 503
    assert await live_payment(database, merchant) is None


async def test_the_sandbox_of_a_live_merchant_stays_with_the_simulated_bank(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await live_web.post("/sandbox/payment/form", data=signed_form(), headers=headers)
    assert leads_to(await press_pay(live_web, answer.headers["location"], "4242424242424242")) == SHOP
    paid = await live_payment(database, merchant)
    assert (paid["state"], paid["live"], paid["acquirer"]) == ("captured", False, "simulator")


async def test_without_a_standby_nothing_is_begun_where_the_operator_wants_that(
    live_web: httpx.AsyncClient,
    open_web: OpenWeb,
    live: dict[str, Any],
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: Front,
) -> None:
    path = await open_page(live_web, signed_form())
    holding = await open_web(**live, without_standby="hold")
    for accept in ("*/*", "application/json"):
        answer = await press_pay(holding, path, "4242424242424242", accept=accept)
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["retry-after"]) > 0
    assert "payments are held" in answer.json()["message"]
    assert await live_payment(database, merchant) is None
    taken = await open_web(**live, without_standby="hold", allow_async=True)
    assert leads_to(await press_pay(taken, path, "4242424242424242")) == SHOP
