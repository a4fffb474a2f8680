"""A shop that names no `success_url` has no thank-you page:
ours says thanks, however the payment came about.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests.shopfront import TYPED, open_page, press_pay

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due

OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
SignedForm = Callable[..., dict[str, Any]]
Charges = Callable[[], list[Standing]]

VISA, MASTERCARD = "4242424242424242", "5555555555554444"
ASKS_CUSTOMER, ANSWER_LOST = "4000000000003220", "4000000000009987"
CLUB = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
THANKS = "Your payment to Corner Shop has been made."


async def payment_of(database: Database, merchant: Merchant) -> int:
    return int(await database.fetchval("select id from payment where merchant_id = $1", merchant.id))


async def thanked(web: httpx.AsyncClient, path: str) -> str:
    """The text of the thank-you page, which both of a checkout's addresses show."""
    shown = [await web.get(address) for address in (f"{path}/result", path)]
    assert [answer.status_code for answer in shown] == [200, 200]
    texts = [html.unescape(answer.text).replace("\u00a0", " ") for answer in shown]
    assert texts[0] == texts[1]
    return texts[0]


async def test_the_page_thanks_and_says_what_was_paid_to_whom_and_its_numbers(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, charges: Charges
) -> None:
    path = await open_page(web, signed_form(success_url=None, merchant_order_id="A-17"))
    answer = await press_pay(web, path)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{path}/result")
    text = await thanked(web, path)
    assert "<title>Thank you for your payment" in text
    payment = str(await payment_of(database, merchant))
    for part in (THANKS, "Corner Shop", "Golden Ticket", "10.00 USD", "A-17", "Payment number", payment):
        assert part in text
    assert "<a class=" not in text, "there is no shop's page to lead to"
    assert len(charges()) == 1


@pytest.mark.parametrize("version", [None, "v1", "v2"])
async def test_an_empty_success_url_is_none(
    web: httpx.AsyncClient, signed_form: SignedForm, version: str | None
) -> None:
    path = await open_page(web, signed_form(success_url="", sign_version=version))
    assert (await web.get(path)).status_code == 200
    await press_pay(web, path)
    assert THANKS in await thanked(web, path)


async def test_the_page_speaks_the_customers_language(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form(success_url=None))
    await press_pay(web, path)
    german = html.unescape((await web.get(path, headers={"Accept-Language": "de"})).text)
    assert "Vielen Dank für Ihre Zahlung" in german
    assert "Zahlungs\u00adnummer" in german


async def test_the_pages_javascript_is_led_there_too(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form(success_url=None))
    for number in (VISA, MASTERCARD):
        answer = await web.post(f"{path}/pay", data={**TYPED, "number": number}, headers={"Accept": "application/json"})
        assert (answer.status_code, answer.json()) == (200, {"redirect": f"{path}/result", "done": True})


async def test_a_confirmed_challenge_comes_back_to_it(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges
) -> None:
    path = await open_page(web, signed_form(success_url=None))
    bank_page = (await press_pay(web, path, ASKS_CUSTOMER)).headers["location"]
    back = (await web.post(bank_page, data={"decision": "approve"})).headers["location"]
    answer = await web.get(back, follow_redirects=True)
    assert THANKS in html.unescape(answer.text)
    assert THANKS in await thanked(web, path)
    assert len(charges()) == 1


async def test_an_outcome_that_comes_late_leads_to_it(
    web: httpx.AsyncClient, signed_form: SignedForm, desk: Desk, charges: Charges
) -> None:
    path = await open_page(web, signed_form(success_url=None))
    await press_pay(web, path, ANSWER_LOST)
    assert "We are checking with your bank" in (await web.get(f"{path}/result")).text
    await settle_due(desk, now=utc_now() + timedelta(seconds=6))
    assert (await web.get(f"{path}/status")).json() == {"state": "done", "url": f"{path}/result"}
    assert THANKS in await thanked(web, path)
    assert len(charges()) == 1


async def test_pressing_many_times_charges_once_and_thanks(
    open_web: OpenWeb, signed_form: SignedForm, charges: Charges
) -> None:
    web = await open_web(simulator_latency=0.05)
    path = await open_page(web, signed_form(success_url=None))
    answers = await asyncio.gather(*(press_pay(web, path, (VISA, MASTERCARD)[n % 2]) for n in range(8)))
    assert {answer.headers["location"] for answer in answers} == {f"{path}/result"}
    assert THANKS in await thanked(web, path)
    assert len(charges()) == 1


async def test_a_subscription_says_its_terms_and_what_was_paid_now(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    fee = {"recurring_trial_amount": "30.00", "recurring_trial_period": "7d"}
    path = await open_page(web, signed_form(success_url=None, **CLUB, **fee))
    await press_pay(web, path, agree="en")
    text = await thanked(web, path)
    assert "Your subscription is set up" in text
    assert "30.00 USD today for 7 days, then 10.00 USD every month" in text
    assert "<bdi>30.00 USD</bdi>" in text
    assert THANKS in text


async def test_a_free_trial_says_that_nothing_was_charged(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form(success_url=None, **CLUB, recurring_trial_period="7d"))
    await press_pay(web, path, agree="en")
    text = await thanked(web, path)
    assert "nothing was charged for the trial" in text
    assert THANKS not in text
    assert "Amount" not in text
