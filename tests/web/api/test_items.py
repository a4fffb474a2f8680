"""One-off items of subscriptions, as a merchant's server asks for them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.till import Till

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk_client import Gateway

SETUP = {"amount": "4.00", "description": "Set-up"}


@pytest.fixture
async def member(desk: Desk, shop: Shop) -> Subscription:
    return await Till(desk, shop).subscribe()


@pytest.fixture
def headers(gateway: Gateway) -> dict[str, str]:
    return {"X-ApiKey": gateway.private_key}


def path(member: Subscription, below: str = "") -> str:
    return f"/api/v1/subscriptions/{member.id}/items{below}"


async def test_a_preview_says_what_is_charged_and_adds_nothing(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str]
) -> None:
    seen = (await web.post(path(member), json=SETUP | {"preview": True}, headers=headers)).json()["data"]
    assert (seen["item"], seen["preview"], seen["next_charge_amount"], seen["balance"]) == (None, True, "14.00", 4)
    assert (await web.get(path(member), headers=headers)).json() == {"success": True, "data": []}
    done = (await web.post(path(member), json=SETUP, headers=headers)).json()["data"]
    assert (done["next_charge_amount"], done["next_charge_at"]) == ("14.00", seen["next_charge_at"])
    (listed,) = (await web.get(path(member), headers=headers)).json()["data"]
    assert listed == done["item"]
    assert (listed["amount"], listed["currency"], listed["status"], listed["payment_id"]) == (4, "USD", "waiting", None)


async def test_taken_back_it_is_charged_no_more(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], desk: Desk, shop: Shop
) -> None:
    item = (await web.post(path(member), json=SETUP, headers=headers)).json()["data"]["item"]
    for _ in range(2):
        back = await web.post(path(member, f"/{item['id']}/take_back"), headers=headers)
        assert back.status_code == 200, back.text
        assert back.json()["data"]["item"]["status"] == "taken_back"
        assert back.json()["data"]["next_charge_amount"] == "10.00"
    assert await find_balance(desk.database, shop, member.id) == 0


async def test_one_key_is_one_item(web: httpx.AsyncClient, member: Subscription, headers: dict[str, str]) -> None:
    keyed = headers | {"Idempotency-Key": "once"}
    first, again = [(await web.post(path(member), json=SETUP, headers=keyed)).json() for _ in range(2)]
    assert first == again
    other = await web.post(path(member), json=SETUP | {"amount": "5.00"}, headers=keyed)
    assert other.status_code in (409, 422), other.text
    assert len((await web.get(path(member), headers=headers)).json()["data"]) == 1


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"description": "Set-up"}, "amount is missing"),
        ({"amount": "4.00"}, "description is missing"),
        (SETUP | {"amount": "0"}, "greater than 0"),
        (SETUP | {"amount": "-4"}, "not a plain decimal"),
        (SETUP | {"amount": "4.001"}, "decimal"),
        (SETUP | {"amount": True}, "amount is missing"),
        (SETUP | {"amount": "9" * 40}, "amount"),
        (SETUP | {"amount": 1e300}, "amount"),
        (SETUP | {"description": " "}, "blank"),
        (SETUP | {"description": "x" * 1100}, "at most"),
        (SETUP | {"description": 7}, "no text"),
        (SETUP | {"quantity": 2}, "no field"),
        (SETUP | {"preview": "maybe"}, "preview"),
    ],
)
async def test_what_makes_no_sense_is_refused_by_its_name_and_adds_nothing(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], body: dict[str, Any], named: str
) -> None:
    refused = await web.post(path(member), json=body, headers=headers)
    assert refused.status_code == 400, refused.text
    assert named in refused.json()["message"]
    assert (await web.get(path(member), headers=headers)).json()["data"] == []


async def test_another_merchant_finds_none(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], database: Database, vault: Vault
) -> None:
    other = await create_merchant(database, vault, name="Other", email="other@shop.example", now=utc_now())
    item = (await web.post(path(member), json=SETUP, headers=headers)).json()["data"]["item"]
    foreign = {"X-ApiKey": other.private_key}
    asked = [
        await web.get(path(member), headers=foreign),
        await web.post(path(member), json=SETUP, headers=foreign),
        await web.post(path(member, f"/{item['id']}/take_back"), headers=foreign),
    ]
    assert [one.status_code for one in asked] == [404] * 3
    for wrong in ("/0/take_back", "/x/take_back", f"/{'9' * 30}/take_back"):
        assert (await web.post(path(member, wrong), headers=headers)).status_code == 404
    (kept,) = (await web.get(path(member), headers=headers)).json()["data"]
    assert kept["status"] == "waiting"
