"""What goes on at the checkout while payments are held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.shopfront import open_page, press_pay
from tests.web.checkout.test_paying import ASKS_CUSTOMER, SHOP, VISA, leads_to
from tests.web.conftest import Hold

from paydesk.adapters.acquirers.simulator.purchase_state import Standing


@pytest.fixture(autouse=True)
def _held_later(hold: Hold) -> None:
    """It is there before a service is."""


async def test_an_order_that_comes_meanwhile_is_taken_in_and_paid_later(
    hold: Hold, web: httpx.AsyncClient, signed_form: Callable[..., dict[str, Any]]
) -> None:
    await hold.begin()
    path = await open_page(web, signed_form())
    assert (await web.get(path)).status_code == 200
    hold.is_told(await press_pay(web, path, VISA), "The payment service is taking a short break")
    hold.lift()
    assert leads_to(await press_pay(web, path, VISA)) == SHOP


async def test_who_comes_back_from_the_bank_has_paid(
    hold: Hold,
    web: httpx.AsyncClient,
    signed_form: Callable[..., dict[str, Any]],
    charges: Callable[[], list[Standing]],
    count_rows: Any,
) -> None:
    path = await open_page(web, signed_form())
    bank_page = leads_to(await press_pay(web, path, ASKS_CUSTOMER))
    back = leads_to(await web.post(bank_page, data={"decision": "approve"}))
    await hold.begin()
    assert leads_to(await web.get(back)) == SHOP
    assert len(charges()) == 1
    assert await count_rows("pingback") == 1
