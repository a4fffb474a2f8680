"""A free trial that begins without a card: what its page asks for, and what comes of it."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.shopfront import open_page, press_pay

from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, change_merchant

SignedForm = Callable[..., dict[str, Any]]

SHOP = "https://shop.example/thanks?order=1"
CLUB = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
FREE = CLUB | {"recurring_trial_period": "14d"}
TERMS = "Free for 14 days, after that only if you give a card: 10.00 USD every month until you cancel"
CONSENT = f"I agree to try “Coffee club” by Corner Shop: {TERMS}."


def text_of(answer: httpx.Response) -> str:
    return html.unescape(answer.text).replace("\u00a0", " ")


async def press_start(web: httpx.AsyncClient, path: str, **typed: str) -> httpx.Response:
    return await web.post(f"{path}/start", data={"email": "ada@example.com", "agree": "en", **typed})


@pytest.fixture
async def path(web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant) -> str:
    """The page of a free trial at a shop that asks for no card."""
    await change_merchant(database, merchant.id, trials_without_card=True)
    return await open_page(web, signed_form(**FREE))


async def test_the_page_asks_for_an_address_and_no_card(web: httpx.AsyncClient, path: str) -> None:
    page = text_of(await web.get(path))
    for said in ("Free today", "Start free trial", "No card is needed", CONSENT):
        assert said in page
    assert 'name="number"' not in page
    assert "verified" not in page
    assert page.index(CONSENT) < page.index('<button class="main">')
    assert "Eine Karte ist nicht nötig" in text_of(await web.get(path, headers={"Accept-Language": "de"}))


async def test_it_begins_and_leads_to_the_shop(
    web: httpx.AsyncClient, path: str, database: Database, merchant: Merchant, charges: Any
) -> None:
    answer = await press_start(web, path)
    assert (answer.status_code, answer.headers["location"]) == (303, SHOP)
    row = await database.fetchrow("select * from subscription where merchant_id = $1", merchant.id)
    assert row["terms_agreed"].replace("\u00a0", " ") == CONSENT
    assert charges() == []
    again = await press_start(web, path)
    assert again.headers["location"] == f"{path}/result"
    done = text_of(await web.get(f"{path}/result"))
    assert "Your subscription is set up" in done
    assert "Nothing was charged for the trial" in done
    assert "verified" not in done
    assert await database.fetchval("select count(*) from subscription where merchant_id = $1", merchant.id) == 1


@pytest.mark.parametrize(
    ("typed", "field"),
    [({"email": ""}, "page-email"), ({"email": "nobody"}, "page-email"), ({"agree": ""}, "page-agree")],
)
async def test_what_is_missing_is_said_and_nothing_begins(
    web: httpx.AsyncClient, path: str, database: Database, merchant: Merchant, typed: dict[str, str], field: str
) -> None:
    answer = await press_start(web, path, **typed)
    assert answer.status_code == 400
    assert f'href="#{field}"' in answer.text
    assert await database.fetchval("select count(*) from payment where merchant_id = $1", merchant.id) == 0


async def test_where_it_was_switched_off_meanwhile_the_page_asks_for_a_card(
    web: httpx.AsyncClient, path: str, database: Database, merchant: Merchant
) -> None:
    await change_merchant(database, merchant.id, trials_without_card=False)
    answer = await press_start(web, path)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert 'name="number"' in (await web.get(path)).text


async def test_who_has_typed_a_card_before_it_was_switched_on_has_given_it(
    web: httpx.AsyncClient, path: str, database: Database, merchant: Merchant
) -> None:
    answer = await press_pay(web, path, agree="en")
    assert (answer.status_code, answer.headers["location"]) == (303, SHOP)
    row = await database.fetchrow("select * from subscription where merchant_id = $1", merchant.id)
    assert row["date_next"] is not None
    assert "charges this card" in row["terms_agreed"]


async def test_a_trial_that_costs_something_asks_for_a_card(
    web: httpx.AsyncClient, path: str, signed_form: SignedForm
) -> None:
    costs = await open_page(web, signed_form(merchant_order_id="2", recurring_trial_amount="1.00", **FREE))
    assert 'name="number"' in (await web.get(costs)).text
    answer = await press_start(web, costs)
    assert (answer.status_code, answer.headers["location"]) == (303, costs)


async def test_a_reload_of_the_buttons_address_leads_to_the_page(web: httpx.AsyncClient, path: str) -> None:
    answer = await web.get(f"{path}/start")
    assert (answer.status_code, answer.headers["location"]) == (303, path)
