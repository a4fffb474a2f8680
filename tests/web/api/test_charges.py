"""`POST /api/v1/charges` and the list of saved cards, as a merchant's server meets them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.shopfront import GOOD, become_known, save_card

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk_client import Gateway

PATH = "/api/v1/charges"


@pytest.fixture
async def card(desk: Desk, bank: Bank, shop: Shop) -> int:
    await set_back.no_codes_counted(desk.database)
    return await save_card(desk, bank, await become_known(desk, shop))


@pytest.fixture
def body(card: int) -> dict[str, Any]:
    return {
        "instrument_id": card,
        "merchant_order_id": "power-1",
        "amount": "20.00",
        "currency": "USD",
        "description": "Power for your car",
    }


@pytest.fixture
def headers(gateway: Gateway) -> dict[str, str]:
    return {"X-ApiKey": gateway.private_key, "Idempotency-Key": "charge-1"}


async def test_a_charge_is_answered_and_its_repeat_is_the_same(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], charges: Callable[[], list[Standing]]
) -> None:
    first = await web.post(PATH, json=body, headers=headers)
    assert first.status_code == 200, first.text
    data = first.json()["data"]
    assert (data["status"], data["amount"], data["merchant_order_id"]) == ("successful", 20, "power-1")
    again = await web.post(PATH, json=body, headers=headers)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert len(charges()) == 2


async def test_twenty_at_once_under_one_key_charge_once(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], charges: Callable[[], list[Standing]]
) -> None:
    answers = await asyncio.gather(*(web.post(PATH, json=body, headers=headers) for _ in range(20)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len(charges()) == 2


async def test_a_key_of_its_own_is_required(
    web: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str], charges: Callable[[], list[Standing]]
) -> None:
    del headers["Idempotency-Key"]
    answer = await web.post(PATH, json=body, headers=headers)
    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["message"]
    assert len(charges()) == 1


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"instrument_id": 999_999_999}, 404),
        ({"instrument_id": "x"}, 400),
        ({"instrument_id": True}, 400),
        ({"amount": "-1"}, 400),
        ({"amount": "1.001"}, 400),
        ({"amount": None}, 400),
        ({"currency": "EUR"}, 403),
        ({"amount": "50.01"}, 409),
        ({"merchant_order_id": ""}, 400),
        ({"description": "\u0000"}, 400),
        ({"email": "ada@example.com"}, 400),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_charged(
    web: httpx.AsyncClient,
    body: dict[str, Any],
    headers: dict[str, str],
    charges: Callable[[], list[Standing]],
    wrong: dict[str, Any],
    status: int,
) -> None:
    answer = await web.post(PATH, json={**body, **wrong}, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.json()["message"]
    assert len(charges()) == 1


async def test_a_decline_is_402_and_stays_so(
    web: httpx.AsyncClient, desk: Desk, bank: Bank, shop: Shop, body: dict[str, Any], headers: dict[str, str]
) -> None:
    fails = await save_card(desk, bank, await become_known(desk, shop), "4000000000000341")
    answers = [await web.post(PATH, json={**body, "instrument_id": fails}, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [402, 402]
    assert "declined" in answers[0].json()["message"]


async def test_the_list_shows_kind_last_digits_and_what_was_agreed(
    web: httpx.AsyncClient, card: int, headers: dict[str, str]
) -> None:
    answer = await web.get("/api/v1/instruments", params={"email": "ADA@example.com"}, headers=headers)
    (row,) = answer.json()["data"]
    assert (row["id"], row["brand"], row["last4"], row["email"]) == (card, "visa", "4242", "ada@example.com")
    later = row["later_charges"]
    assert (later["purpose"], later["limit"], later["currency"]) == ("what your car has charged", 50, "USD")
    assert later["authenticated"] is True
    assert "4242424242" not in answer.text
    none = await web.get("/api/v1/instruments", params={"email": "eve@example.com"}, headers=headers)
    assert none.json()["data"] == []


@pytest.mark.parametrize(("number", "later"), [(GOOD, 200), ("4000000000000341", 402)])
async def test_who_asks_again_learns_what_a_lost_answer_was(
    web: httpx.AsyncClient,
    desk: Desk,
    bank: Bank,
    shop: Shop,
    body: dict[str, Any],
    headers: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    number: str,
    later: int,
) -> None:
    await set_back.nothing_to_look_up(desk.database)
    card = await save_card(desk, bank, await become_known(desk, shop), number)
    honest = SimulatedAcquirer.charge_stored

    async def lost(acquirer: SimulatedAcquirer, purchase: Purchase) -> None:
        await honest(acquirer, purchase)
        raise OutcomeUnknown("the answer was lost")

    monkeypatch.setattr(SimulatedAcquirer, "charge_stored", lost)
    for _ in range(2):
        first = await web.post(PATH, json={**body, "instrument_id": card}, headers=headers)
        assert (first.status_code, first.json()["data"]["status"]) == (200, "processing")
    await settle_due(desk, now=utc_now() + timedelta(seconds=10))
    again = [await web.post(PATH, json={**body, "instrument_id": card}, headers=headers) for _ in range(2)]
    assert [one.status_code for one in again] == [later, later]
    assert again[0].json() == again[1].json()
    assert again[0].json().get("data", {}).get("status", "declined") in ("successful", "declined")
