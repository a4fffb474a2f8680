from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.shopfront import open_page, press_pay

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant

SignedForm = Callable[..., dict[str, Any]]


@pytest.fixture
async def paid(web: httpx.AsyncClient, signed_form: SignedForm) -> str:
    """The path of a checkout that is paid."""
    path = await open_page(web, signed_form())
    assert (await press_pay(web, path)).status_code == 303
    return path


async def refund(web: httpx.AsyncClient, database: Database, merchant: Merchant, **amount: str) -> None:
    payment_id = await database.fetchval("select id from payment where merchant_id = $1", merchant.id)
    headers = {"X-ApiKey": merchant.private_key}
    answered = await web.post(f"/payment/{payment_id}/refund", headers=headers, data=amount)
    assert answered.status_code == 200, answered.text


async def test_a_refunded_order_says_that_the_money_was_given_back(
    web: httpx.AsyncClient, paid: str, database: Database, merchant: Merchant
) -> None:
    await refund(web, database, merchant)
    for path in (paid, f"{paid}/result"):
        shown = await web.get(path)
        assert shown.status_code == 409
        text = html.unescape(shown.text)
        assert "Your money was given back" in text
        assert "This order is paid" not in text
    german = await web.get(paid, headers={"Accept-Language": "de"})
    assert "Ihr Geld wurde zurückgegeben" in html.unescape(german.text)


async def test_a_refunded_order_can_t_be_paid_again(
    web: httpx.AsyncClient,
    paid: str,
    database: Database,
    merchant: Merchant,
    charges: Callable[[], list[Standing]],
) -> None:
    await refund(web, database, merchant)
    answered = await press_pay(web, paid)
    assert answered.status_code == 409
    by_script = await press_pay(web, paid, accept="application/json")
    assert "payment" not in by_script.json()
    assert charges() == []


async def test_a_partly_refunded_order_is_still_paid(
    web: httpx.AsyncClient, paid: str, database: Database, merchant: Merchant
) -> None:
    await refund(web, database, merchant, amount="4.00")
    assert "This order is paid" in html.unescape((await web.get(paid)).text)
