from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.web.api.conftest import subscribe

from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant

PATH = "/api/v1/test_clock"


@pytest.mark.parametrize("body", [{"json": {"advance": "93d"}}, {"data": {"advance": "93d"}}])
async def test_what_falls_due_happens_and_is_told(server: Any, customers: Any, body: dict[str, Any]) -> None:
    subscription = await subscribe(customers, "club-1")
    answered = await server.call("POST", PATH, **body)
    assert answered.status_code == 200, answered.text
    journey = answered.json()["data"]
    assert journey["now"] - journey["started_at"] == pytest.approx(93 * 86400, abs=60)
    # The last of the four payments was made less than the seven days ago after which money settles.
    assert journey["counts"] == {"payment": 3, "settlement": 3}
    assert [event["subscription_id"] for event in journey["events"]] == [subscription.id] * 6
    moments = [event["at"] for event in journey["events"] if event["what"] == "payment"]
    assert [event["at"] for event in journey["events"]] == sorted(event["at"] for event in journey["events"])
    assert moments[0] == int(subscription.date_next.timestamp())
    shown = (await server.get(f"/api/v1/subscriptions/{subscription.id}"))["data"]
    assert (shown["paid_number_counter"], shown["date_paid"]) == (4, moments[2])
    assert len((await server.get("/api/v1/payments"))["data"]) == 4


async def test_a_cancelled_subscription_stays_quiet_for_years(server: Any, customers: Any) -> None:
    subscription = await subscribe(customers)
    await server.call("POST", f"/api/subscription/{subscription.id}/cancel")
    journey = (await server.call("POST", PATH, json={"advance": "2y"})).json()["data"]
    assert journey["counts"] == {"settlement": 1, "reserve_release": 1}, "only what was paid before moves on"


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ({"json": {}}, "advance"),
        ({"json": {"advance": 31}}, "advance"),
        ({"json": {"advance": "31"}}, "advance"),
        ({"json": {"advance": "-1d"}}, "advance"),
        ({"json": {"advance": "11y"}}, "advance"),
        ({"json": {"advance": None}}, "advance"),
        ({"data": {"advance[a]": "1d"}}, "advance"),
        ({"json": {"advance": "1d", "merchant_id": 7}}, "merchant_id"),
        ({}, "advance"),
    ],
)
async def test_a_malformed_period_is_refused_by_name(server: Any, body: dict[str, Any], name: str) -> None:
    answered = await server.call("POST", PATH, **body)
    assert answered.status_code == 400
    assert name in answered.json()["message"]


async def test_live_data_has_no_clock(server: Any, database: Database, merchant: Merchant) -> None:
    await set_back.went_live(database, merchant.id)
    assert (await server.call("POST", PATH, json={"advance": "1d"})).status_code == 409
    ahead = await database.fetchval("select test_clock from merchant where id = $1", merchant.id)
    assert ahead == timedelta(0)
    assert (await server.call("POST", "/sandbox" + PATH, json={"advance": "1d"})).status_code == 200


async def test_nobody_else_moves_it(web: httpx.AsyncClient, merchant: Merchant) -> None:
    for headers in ({}, {"X-ApiKey": merchant.public_key}):
        assert (await web.post(PATH, json={"advance": "1d"}, headers=headers)).status_code == 401
