"""Live payments, from the form to a clean check, with Stripe's adapter and localstripe behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import aiohttp
import httpx
import pytest
from pydantic import SecretStr
from tests.adapters.acquirers.stripe.localstripe import SECRET_KEY, Front, running_localstripe
from tests.web.checkout.test_paying import SHOP, checkout, leads_to, pay, text_of

from paydesk.app import live_acquirer
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.ledger.checking import check
from paydesk.domain.merchants.accounts import Merchant, go_live
from paydesk.domain.payments.janitor import settle_due
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
    return {"live_acquirer": "stripe", "stripe_secret_key": key, "stripe_api_base": stripe.base_url}


@pytest.fixture
async def live_web(
    open_web: OpenWeb, live: dict[str, Any], database: Database, merchant: Merchant
) -> httpx.AsyncClient:
    await go_live(database, merchant.id, now=utc_now())
    return await open_web(**live)


async def live_payment(database: Database, merchant: Merchant) -> Any:
    return await database.fetchrow(
        """
        select p.state, p.live, a.acquirer, a.idempotency_key as key
          from payment p join payment_attempt a on a.merchant_id = p.merchant_id and a.payment_id = p.id
         where p.merchant_id = $1
         order by a.id desc
        """,
        merchant.id,
    )


async def test_a_live_merchants_customer_pays_through_the_live_acquirer(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, stripe: Front
) -> None:
    path = await checkout(live_web, signed_form())
    page = await live_web.get(path)
    assert "https://hooks.stripe.com" in page.headers["content-security-policy"]
    assert leads_to(await pay(live_web, path, "4242424242424242")) == SHOP
    paid = await live_payment(database, merchant)
    assert (paid["state"], paid["live"], paid["acquirer"]) == ("captured", True, "stripe")
    assert (await stripe.standing(paid["key"])).net == Decimal(10)
    found = await check(database, now=utc_now(), merchant_id=merchant.id)
    assert [finding.rule.statement for finding in found if finding.found] == []


async def test_a_live_decline_says_so_and_takes_nothing(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, stripe: Front
) -> None:
    path = await checkout(live_web, signed_form())
    answer = await pay(live_web, path, "4000000000000341")
    assert answer.status_code == 402
    assert "declined" in text_of(answer)
    assert (await stripe.standing((await live_payment(database, merchant))["key"])).net == 0


async def test_a_live_challenge_leads_to_the_bank_and_back(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, stripe: Front
) -> None:
    path = await checkout(live_web, signed_form())
    bank_page = leads_to(await pay(live_web, path, "4000000000003220"))
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
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    stripe: Front,
    settings: Settings,
    live: dict[str, Any],
    desk: Any,
) -> None:
    path = await checkout(live_web, signed_form())
    stripe.lose_answer_to = "/v1/payment_intents"
    await pay(live_web, path, "4242424242424242")
    assert (await live_payment(database, merchant))["state"] == "processing"
    acquirer = live_acquirer(settings.model_copy(update=live))
    assert acquirer is not None
    desk.acquirers["stripe"] = acquirer
    await settle_due(desk, now=utc_now() + timedelta(minutes=1))
    await acquirer.close()
    paid = await live_payment(database, merchant)
    assert paid["state"] == "captured"
    assert (await stripe.standing(paid["key"])).net == Decimal(10)


async def test_without_a_live_acquirer_a_live_customer_is_told_and_nothing_is_stored(
    open_web: OpenWeb, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    await go_live(database, merchant.id, now=utc_now())
    web = await open_web()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await web.post("/payment/form", data=signed_form(), headers=headers)
    if answer.status_code == 303:
        answer = await pay(web, answer.headers["location"], "4242424242424242")
    assert answer.status_code == 503
    assert await live_payment(database, merchant) is None


async def test_the_sandbox_of_a_live_merchant_stays_with_the_simulated_bank(
    live_web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await live_web.post("/sandbox/payment/form", data=signed_form(), headers=headers)
    assert leads_to(await pay(live_web, answer.headers["location"], "4242424242424242")) == SHOP
    paid = await live_payment(database, merchant)
    assert (paid["state"], paid["live"], paid["acquirer"]) == ("captured", False, "simulator")
