from __future__ import annotations

import html
import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests.shopfront import open_page, press_pay

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant

SignedForm = Callable[..., dict[str, Any]]
CountRows = Callable[[str], Awaitable[int]]
Charges = Callable[[], list[Standing]]

VISA, DECLINED, ASKS_CUSTOMER = "4242424242424242", "4000000000000002", "4000000000003220"
SHOP = "https://shop.example/thanks?order=1"
CLUB = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "6m"}
SET_UP_FEE = CLUB | {"recurring_trial_amount": "30.00", "recurring_trial_period": "1m"}
FREE = CLUB | {"recurring_trial_period": "14d"}
TERMS = "30.00 USD today for 1 month, then 10.00 USD every 6 months until you cancel"
CONSENT = f"I agree that Corner Shop charges this card for “Coffee club”: {TERMS}."


def text_of(answer: httpx.Response) -> str:
    return html.unescape(answer.text).replace("\u00a0", " ")


async def agreed(database: Database, merchant: Merchant) -> str:
    """The wording that is stored with the merchant's only subscription."""
    stored = await database.fetchval("select terms_agreed from subscription where merchant_id = $1", merchant.id)
    return str(stored).replace("\u00a0", " ")


async def told(database: Database, merchant: Merchant) -> list[dict[str, Any]]:
    """The payloads of the merchant's pingbacks, oldest first."""
    rows = await database.fetch("select payload from pingback where merchant_id = $1 order by id", merchant.id)
    return [json.loads(row["payload"], parse_float=Decimal) for row in rows]


async def test_the_page_states_the_terms_before_the_button(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form(**SET_UP_FEE))
    page = text_of(await web.get(path))
    assert "Subscribe to Coffee club" in page
    assert page.index(CONSENT) < page.index("Pay 30.00 USD</span>")
    assert page.count(TERMS) == 3, "beside the amount, and what is agreed to with a card and on the bank's page"
    german = text_of(await web.get(path, headers={"Accept-Language": "de-DE"}))
    assert "Heute 30,00 USD für 1 Monat, danach 10,00 USD alle 6 Monate, bis Sie kündigen" in german
    assert "30,00 USD bezahlen" in german


async def test_a_free_trial_says_that_nothing_is_charged_today(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form(**FREE))
    page = text_of(await web.get(path))
    for said in ("Free today", "Start free trial", "only verified, not charged", "Free for 14 days, then 10.00 USD"):
        assert said in page
    assert "0.00 USD" not in page.replace("10.00 USD", "")
    assert "Kostenlos testen" in text_of(await web.get(path, headers={"Accept-Language": "de"}))


async def test_a_one_time_payment_asks_for_no_agreement(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    page = await web.get(await open_page(web, signed_form()))
    assert 'name="agree"' not in page.text


@pytest.mark.parametrize("fields", [SET_UP_FEE, FREE, CLUB])
async def test_without_the_agreement_nothing_is_asked_of_the_bank(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, fields: dict[str, str]
) -> None:
    path = await open_page(web, signed_form(**fields))
    for typed in ({}, {"agree": ""}, {"agree": " "}, {"agree": "0"}, {"agree": "no"}, {"agree": "off"}):
        answer = await press_pay(web, path, **typed)
        assert answer.status_code == 400
        assert 'href="#agree"' in answer.text
        assert 'id="agree-error" hidden' not in answer.text
        assert answer.text.count(" autofocus") == 1
    problem = await press_pay(web, path, accept="application/json", language="de")
    assert problem.status_code == 400
    assert problem.json()["focus"] == "agree"
    assert "zuzustimmen" in problem.json()["errors"]["agree"]
    assert await count_rows("payment_attempt") == 0


async def test_what_was_agreed_to_is_kept_as_it_was_shown(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, charges: Charges
) -> None:
    path = await open_page(web, signed_form(**SET_UP_FEE))
    answer = await press_pay(web, path, agree="en-US,en;q=0.9")
    assert (answer.status_code, answer.headers["location"]) == (303, SHOP)
    assert await agreed(database, merchant) == CONSENT
    (charge,) = charges()
    assert charge.net == Decimal(30)


async def test_the_language_of_the_agreement_is_that_of_the_page_that_showed_it(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form(**SET_UP_FEE))
    page = await web.get(path, headers={"Accept-Language": "sv-SE, de;q=0.5"})
    shown = page.text.split('for="agree">')[1].split("</label>")[0]
    box = page.text.split('name="agree" value="')[1].split('"')[0]
    await press_pay(web, path, agree=box, language="en")
    assert await agreed(database, merchant) == html.unescape(shown).replace("\u00a0", " ")
    assert "Ich bin einverstanden" in shown


async def test_a_ticked_box_stays_ticked_when_the_card_is_declined(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    path = await open_page(web, signed_form(**SET_UP_FEE))
    declined = await press_pay(web, path, DECLINED, agree="en")
    assert declined.status_code == 402
    assert 'name="agree" value="en,en;q=0.9" checked' in declined.text
    assert 'q=0.9" checked' not in (await web.get(path)).text


async def test_a_box_that_says_no_language_of_ours_agrees_to_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form(**SET_UP_FEE))
    answer = await press_pay(web, path, agree="I agree to nothing <script>")
    assert (answer.status_code, 'href="#agree"' in answer.text) == (400, True)
    assert await database.fetchval("select count(*) from subscription where merchant_id = $1", merchant.id) == 0


async def test_the_agreement_survives_the_way_to_the_bank_and_back(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form(**SET_UP_FEE))
    bank_page = (await press_pay(web, path, ASKS_CUSTOMER, agree="en")).headers["location"]
    await web.post(bank_page, data={"decision": "approve"})
    assert (await web.get(f"{path}/result")).headers["location"] == SHOP
    assert await agreed(database, merchant) == CONSENT


async def test_a_free_trial_verifies_the_card_and_is_told_with_an_order_of_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, charges: Charges
) -> None:
    form = signed_form(**FREE)
    path = await open_page(web, form)
    assert (await press_pay(web, path, agree="en")).headers["location"] == SHOP
    assert charges() == []
    (payload,) = await told(database, merchant)
    order = payload["payment_order"]
    assert {name: order[name] for name in ("paid_amount", "fees", "merchant_net_revenue")} == {
        "paid_amount": 0,
        "fees": 0,
        "merchant_net_revenue": 0,
    }
    assert "payment_system" not in order
    assert "with_risk_check" not in payload
    assert payload["subscription"]["status"] == "Trial"
    assert payload["subscription"]["init_merchant_order_id"] == form["merchant_order_id"]
    paid = text_of(await web.get(path))
    assert "Your subscription is set up" in paid
    assert "Your card was verified, nothing was charged for the trial" in paid
    assert "Free for 14 days" in paid


async def test_a_free_trial_by_a_bank_account_speaks_of_no_card(
    web: httpx.AsyncClient, signed_form: SignedForm, bank: Bank
) -> None:
    path = await open_page(web, signed_form(**FREE))
    led = await web.post(f"{path}/continue", data={"email": "ada@example.com", "agree": "en"})
    page = led.headers["location"].rpartition("/")[2]
    bank.pages.pay(page, Way.BANK, "")
    bank.pages.decide(page, approve=True)
    assert (await web.get(f"{path}/result")).headers["location"] == SHOP
    paid = text_of(await web.get(path))
    assert "Nothing was charged for the trial" in paid
    assert "Your card" not in paid


async def test_the_first_payment_tells_the_whole_subscription(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    before = int(utc_now().timestamp())
    await press_pay(web, await open_page(web, signed_form(**SET_UP_FEE, recurring_duration="12")), agree="en")
    (payload,) = await told(database, merchant)
    subscription = payload["subscription"]
    begun = subscription["date_start"]
    assert before <= begun <= utc_now().timestamp()
    assert subscription == {
        "id": subscription["id"],
        "u_email": "ada@example.com",
        "recurring_id": payload["payment_order"]["id"],
        "status": "Trial",
        "cancel_delay": 0,
        "currency_code": "USD",
        "trial": 1,
        "trial_price": "30.00",
        "trial_period_length": 1,
        "trial_period_type": "month",
        "counter": 0,
        "limit": 12,
        "failures": 0,
        "period_length": 6,
        "period_type": "month",
        "billing_type": 1,
        "price": "10.00",
        "date_active": 0,
        "date_start": begun,
        "date_next": subscription["date_next"],
        "date_end": 0,
        "date_paid": begun,
        "date_expired": 0,
        "date_cancelled": 0,
        "date_stopped": 0,
        "created_at": begun,
        "package_version_id": subscription["package_version_id"],
        "change_request": None,
        "package": {
            "id": subscription["package"]["id"],
            "sku_id": "club",
            "name": "Coffee club",
            "currency_code": "USD",
            "period_length": 6,
            "period_type": "month",
            "recurring_limit": 12,
            "trial": 1,
            "trial_price": "30.00",
            "trial_period_length": 1,
            "trial_period_type": "month",
            "price": "10.00",
            "discount_price": None,
            "active": 1,
            "subscriptions_count": 1,
        },
        "paid_number_counter": 1,
        "init_merchant_order_id": payload["payment_order"]["merchant_order_id"],
    }
    assert 28 * 86400 <= subscription["date_next"] - begun <= 31 * 86400


async def test_name_and_sku_are_told_as_they_were_sent(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    fields = CLUB | {"recurring_name": "Café 👩‍🍳 & <b>Club</b>\r\n", "recurring_sku_id": " a  b/7 "}
    path = await open_page(web, signed_form(**fields))
    assert "<b>Club" not in (await web.get(path)).text
    await press_pay(web, path, agree="en")
    (payload,) = await told(database, merchant)
    package = payload["subscription"]["package"]
    assert (package["name"], package["sku_id"]) == ("Café 👩‍🍳 & <b>Club</b>", " a  b/7 ")


async def test_other_terms_make_another_version_of_the_package_and_both_count_their_subscriptions(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    for fields in (CLUB, CLUB, CLUB | {"amount": "12.00"}, CLUB | {"recurring_sku_id": "other"}):
        await press_pay(web, await open_page(web, signed_form(**fields)), agree="en")
    first, second, dearer, other = [payload["subscription"] for payload in await told(database, merchant)]
    assert first["package_version_id"] == second["package_version_id"] != dearer["package_version_id"]
    assert first["package"]["id"] == second["package"]["id"] == dearer["package"]["id"] != other["package"]["id"]
    assert (first["price"], dearer["price"]) == ("10.00", "12.00")
    counts = [one["package"]["subscriptions_count"] for one in (first, second, dearer, other)]
    assert counts == [1, 2, 3, 1]
