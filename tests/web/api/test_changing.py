"""Cancelling with the period, undoing, pausing and resuming, as a merchant's server asks for it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import httpx
import pytest
from tests import set_back
from tests.till import Till

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.changing import carry_out_due
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk_client import Gateway


@pytest.fixture
def club(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)


@pytest.fixture
async def member(club: Till) -> Subscription:
    return await club.subscribe()


@pytest.fixture
def headers(gateway: Gateway) -> dict[str, str]:
    return {"X-ApiKey": gateway.private_key}


def path(member: Subscription, wish: str) -> str:
    return f"/api/v1/subscriptions/{member.id}/{wish}"


def seconds(at: datetime | None) -> int:
    assert at is not None
    return int(at.timestamp())


async def ask(
    web: httpx.AsyncClient, member: Subscription, wish: str, headers: dict[str, str], **body: Any
) -> dict[str, Any]:
    response = await web.post(path(member, wish), json=body, headers=headers)
    assert response.status_code == 200, response.text
    data: dict[str, Any] = response.json()["data"]
    return data


async def test_a_preview_says_exactly_what_then_happens(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str]
) -> None:
    seen = await ask(web, member, "cancel", headers, preview=True)
    assert (seen["preview"], seen["status"], seen["date_next"]) == (True, "Active", 0)
    assert seen["change_request"]["at"] == seconds(member.date_next)
    assert (seen["charged_now"], seen["next_charge_at"], seen["next_charge_amount"]) == ("0.00", 0, "0.00")
    shown = (await web.get(f"/api/v1/subscriptions/{member.id}", headers=headers)).json()["data"]
    assert (shown["change_request"], shown["cancel_delay"]) == (None, 0)
    done = await ask(web, member, "cancel", headers)
    assert done["preview"] is False
    assert done["change_request"]["at"] == seen["change_request"]["at"]
    assert abs(done["cancel_delay"] - seen["cancel_delay"]) <= 60


async def test_undone_it_is_charged_as_before(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str]
) -> None:
    await ask(web, member, "cancel", headers)
    seen = await ask(web, member, "undo", headers, preview=True)
    assert (seen["next_charge_at"], seen["next_charge_amount"]) == (seconds(member.date_next), "10.00")
    kept = await ask(web, member, "undo", headers)
    assert (kept["date_next"], kept["change_request"], kept["cancel_delay"]) == (seconds(member.date_next), None, 0)


async def test_a_pause_until_a_day_says_what_is_charged_after_it(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str]
) -> None:
    until = datetime.now(UTC) + timedelta(days=60)
    paused = await ask(web, member, "pause", headers, until=until.isoformat())
    assert paused["change_request"]["type"] == "resume"
    assert paused["change_request"]["at"] == int(until.timestamp())
    assert paused["status"] == "Active"
    assert abs(paused["next_charge_at"] - seconds(member.date_next) - 60 * 86400) <= 60
    assert paused["next_charge_amount"] == "10.00"
    resumed = await ask(web, member, "resume", headers)
    assert abs(resumed["date_next"] - seconds(member.date_next)) <= 60


async def test_a_pause_and_another_rhythm_miss_no_period_and_an_outage_does(
    web: httpx.AsyncClient, headers: dict[str, str], club: Till
) -> None:
    begins = datetime(2028, 3, 1, 12, tzinfo=UTC)
    await clock_shows(club, begins)
    member = await club.subscribe()
    await clock_shows(club, begins + timedelta(days=9))
    await ask(web, member, "pause", headers)
    await clock_shows(club, begins + timedelta(days=69))
    resumed = await ask(web, member, "resume", headers)
    assert abs(resumed["date_next"] - datetime(2028, 5, 31, 12, tzinfo=UTC).timestamp()) <= 60
    assert resumed["missed_periods"] == 0
    await clock_shows(club, datetime(2028, 8, 1, tzinfo=UTC))
    assert await club.charge(datetime(2028, 8, 1, tzinfo=UTC)) == 1
    charged = await ask(web, member, "change", headers, price="20.00", period="2m")
    assert (charged["missed_periods"], charged["date_next"]) == (2, charged["change_request"]["at"])
    await clock_shows(club, datetime(2028, 9, 1, tzinfo=UTC))
    assert await club.charge(datetime(2028, 9, 1, tzinfo=UTC)) == 0
    await carry_out_due(club.database, real_now=datetime.now(UTC))
    assert (await club.now(member)).package.terms.period.length == 2
    assert (await ask(web, member, "undo", headers))["missed_periods"] == 2
    assert await club.problems() == []


async def clock_shows(club: Till, at: datetime) -> None:
    """It is this moment on the merchant's test side."""
    await set_back.clock_runs_ahead(club.database, club.shop.merchant_id, at - datetime.now(UTC))


async def test_another_change_takes_its_place_and_the_answer_says_so(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str]
) -> None:
    ending = await ask(web, member, "cancel", headers)
    paused = await ask(web, member, "pause", headers)
    assert paused["replaced"] == ending["change_request"]
    assert (paused["change_request"]["at"], paused["next_charge_at"]) == (0, 0)


async def test_a_call_under_one_key_is_answered_alike(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], club: Till
) -> None:
    named = {**headers, "Idempotency-Key": "leave-1"}
    first = await web.post(path(member, "cancel"), headers=named)
    await ask(web, member, "undo", headers)
    again = await web.post(path(member, "cancel"), headers=named)
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
    assert (await club.now(member)).change is None


async def test_many_at_once_leave_one_change(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], club: Till
) -> None:
    answers = await asyncio.gather(*(web.post(path(member, "cancel"), headers=headers) for _ in range(8)))
    assert {one.status_code for one in answers} <= {200, 409}
    assert [row["state"] for row in await club.rows("subscription_change")] == ["open"]


async def test_now_is_at_once(web: httpx.AsyncClient, member: Subscription, headers: dict[str, str]) -> None:
    seen = await ask(web, member, "cancel", headers, at="now", preview="true")
    assert seen["status"] == "Cancelled"
    assert (await ask(web, member, "undo", headers))["status"] == "Active"
    assert (await ask(web, member, "cancel", headers, at="now"))["status"] == "Cancelled"


async def test_the_old_path_ends_at_once_as_ever(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], club: Till
) -> None:
    await ask(web, member, "cancel", headers)
    response = await web.post(f"/api/subscription/{member.id}/cancel", headers=headers)
    assert response.json()["data"]["status"] == "Cancelled"
    assert [event for event in await club.events() if event != "payment"] == ["subscription_cancelled"]


@pytest.mark.parametrize(
    ("wish", "body", "field"),
    [
        ("cancel", {"preveiw": True}, "preveiw"),
        ("cancel", {"at": "tomorrow"}, "at is not"),
        ("undo", {"preview": "maybe"}, "preview is not"),
        ("pause", {"until": "soon"}, "until"),
        ("pause", {"until": 1}, "until"),
        ("pause", {"until": [2]}, "until"),
        ("resume", {"at": "now"}, 'no field "at"'),
    ],
)
async def test_what_is_mistyped_is_named_and_changes_nothing(
    web: httpx.AsyncClient,
    member: Subscription,
    headers: dict[str, str],
    club: Till,
    wish: str,
    body: dict[str, Any],
    field: str,
) -> None:
    response = await web.post(path(member, wish), json=body, headers=headers)
    assert response.status_code == 400
    assert field in response.json()["message"]
    assert await club.now(member) == member


async def test_while_it_is_charged_it_is_a_conflict(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], club: Till, desk: Desk
) -> None:
    assert member.date_next is not None
    await club.die_after_claim(member.date_next)
    for wish in ("cancel", "pause"):
        response = await web.post(path(member, wish), headers=headers)
        assert response.status_code == 409
        assert "being charged" in response.json()["message"]
    assert await BillingRun(desk).charge_due(merchant_id=club.shop.merchant_id, at=member.date_next) == 0


async def test_nobody_elses(web: httpx.AsyncClient, headers: dict[str, str]) -> None:
    for wish in ("cancel", "undo", "pause", "resume"):
        response = await web.post(f"/api/v1/subscriptions/18/{wish}", headers=headers)
        assert response.status_code == 404


async def test_a_change_of_plan_is_previewed_made_and_taken_back(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], club: Till
) -> None:
    plan = {"sku_id": "pro", "name": "Pro", "price": "30.00", "period": "1y", "when": "period_end"}
    seen = await ask(web, member, "change", headers, preview=True, **plan)
    assert (seen["preview"], seen["price"], seen["change_request"]["price"]) == (True, "10.00", "30.00")
    assert (seen["charged_now"], seen["next_charge_amount"]) == ("0.00", "30.00")
    assert seen["next_charge_at"] == seen["date_next"] == seconds(member.date_next)
    assert (await club.now(member)).change is None
    done = await ask(web, member, "change", headers, **plan)
    coming = done["change_request"]
    assert (coming["type"], coming["requested_by"], coming["package"]["period_type"]) == ("change", "api", "year")
    assert coming["package_version_id"] != done["package_version_id"]
    shown = (await web.get(f"/api/v1/subscriptions/{member.id}", headers=headers)).json()["data"]
    assert shown["change_request"] == coming
    kept = await ask(web, member, "undo", headers)
    assert (kept["change_request"], kept["date_next"]) == (None, seconds(member.date_next))
    named = await ask(web, member, "change", headers, package_version_id=coming["package_version_id"])
    assert named["change_request"]["package"]["sku_id"] == "pro"


async def test_a_plan_changes_now_as_its_preview_said_and_nothing_is_charged(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], club: Till
) -> None:
    plan = {"price": "30.00", "when": "now"}
    seen = await ask(web, member, "change", headers, preview=True, **plan)
    assert await club.now(member) == member
    done = await ask(web, member, "change", headers, **plan)
    for one in (seen, done):
        assert (one["price"], one["change_request"], one["charged_now"]) == ("30.00", None, "0.00")
        assert (one["next_charge_at"], one["next_charge_amount"]) == (seconds(member.date_next), "30.00")
    shown = (await web.get(f"/api/v1/subscriptions/{member.id}", headers=headers)).json()["data"]
    assert (shown["price"], shown["date_next"]) == ("30.00", seconds(member.date_next))
    assert len(await club.payments()) == 1
    refused = await web.post(path(member, "change"), json={**plan, "period": "1y"}, headers=headers)
    assert refused.status_code == 409
    assert "of another length" in refused.json()["message"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "package_version_id"),
        ({"preview": True}, "package_version_id"),
        ({"price": 30}, "price"),
        ({"price": "30.001"}, "price"),
        ({"price": "30.00", "when": "tomorrow"}, "when is not one of period_end, now"),
        ({"when": "now"}, "package_version_id"),
        ({"package_version_id": "club"}, "package_version_id"),
        ({"package_version_id": True}, "package_version_id"),
        ({"package_version_id": 99}, "package_version_id"),
        ({"sku_id": "pro", "price": "30.00"}, "sku_id"),
        ({"name": " ", "price": "30.00"}, "name"),
        ({"period": "1"}, "period"),
        ({"amount": "30.00"}, "amount"),
    ],
)
async def test_a_change_of_plan_says_which_field_is_wrong(
    web: httpx.AsyncClient, member: Subscription, headers: dict[str, str], body: dict[str, Any], field: str
) -> None:
    response = await web.post(path(member, "change"), json=body, headers=headers)
    assert response.status_code == 400
    assert field in response.json()["message"]


async def test_a_prorated_change_says_what_the_next_charge_takes(
    web: httpx.AsyncClient, club: Till, member: Subscription, headers: dict[str, str]
) -> None:
    wish = {"price": "30.00", "when": "now", "proration_behavior": "next_charge"}
    seen = (await web.post(path(member, "change"), json={**wish, "preview": True}, headers=headers)).json()["data"]
    assert (seen["charged_now"], seen["balance"]) == ("0.00", seen["prorated"])
    assert 19.9 < seen["prorated"] <= 20
    assert float(seen["next_charge_amount"]) == pytest.approx(30 + seen["prorated"], abs=0.01)
    once = headers | {"Idempotency-Key": "prorated-1"}
    done, again = [await web.post(path(member, "change"), json=wish, headers=once) for _ in range(2)]
    assert done.json() == again.json()
    kept = "select from subscription_proration where merchant_id = $1"
    assert len(await club.database.fetch(kept, club.shop.merchant_id)) == 1
    assert (await web.post(path(member, "change"), json=wish, headers=headers)).json()["data"]["prorated"] == 0
    for refused in ({**wish, "when": "period_end"}, {**wish, "proration_behavior": "always"}):
        answer = await web.post(path(member, "change"), json=refused, headers=headers)
        assert answer.status_code == 400
        assert "proration_behavior" in answer.json()["message"]
    assert await club.problems() == []


async def test_the_difference_is_charged_now_once_for_a_key(
    web: httpx.AsyncClient, club: Till, member: Subscription, headers: dict[str, str]
) -> None:
    wish = {"price": "30.00", "when": "now", "proration_behavior": "charge_now"}
    seen = await ask(web, member, "change", headers, **wish, preview=True)
    assert (seen["charged_now"], seen["price"], seen["charge"]) == ("20.00", "30.00", None)
    assert (seen["balance"], seen["next_charge_at"]) == (seen["prorated"] - 20, seconds(member.date_next))
    once = headers | {"Idempotency-Key": "upgrade-1"}
    done, again = [await web.post(path(member, "change"), json=wish, headers=once) for _ in range(2)]
    assert (done.status_code, again.json()) == (200, done.json())
    data = done.json()["data"]
    assert (data["charged_now"], data["price"], data["charge"]["status"]) == ("20.00", "30.00", "successful")
    assert data["next_charge_amount"] == "30.00"
    (told,) = await club.told(data["charge"]["id"])
    assert told["payment_order"]["merchant_order_id"] == "club-1:plan-1"
    assert await club.problems() == []


async def test_declined_nothing_changes_and_the_answer_says_why(
    web: httpx.AsyncClient, club: Till, headers: dict[str, str]
) -> None:
    member = await club.subscribe(number="4000000000000341")
    wish = {"price": "30.00", "when": "now", "proration_behavior": "charge_now"}
    answer = await web.post(path(member, "change"), json=wish, headers=headers)
    assert answer.status_code == 402
    assert "keeps its plan" in answer.json()["message"]
    assert await club.now(member) == member


async def test_an_unknown_charge_is_a_202_until_the_bank_has_said(
    web: httpx.AsyncClient, club: Till, member: Subscription, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = SimulatedAcquirer.charge_stored

    async def losing(acquirer: SimulatedAcquirer, purchase: Purchase) -> NoReturn:
        await honest(acquirer, purchase)
        raise OutcomeUnknown("the answer was lost")

    monkeypatch.setattr(SimulatedAcquirer, "charge_stored", losing)
    wish = {"price": "30.00", "when": "now", "proration_behavior": "charge_now"}
    once = headers | {"Idempotency-Key": "upgrade-1"}
    for _ in range(2):
        answer = await web.post(path(member, "change"), json=wish, headers=once)
        data = answer.json()["data"]
        assert (answer.status_code, data["charge"]["status"], data["price"]) == (202, "processing", "10.00")
    await club.settle_all(minutes=1)
    answer = await web.post(path(member, "change"), json=wish, headers=once)
    data = answer.json()["data"]
    assert (answer.status_code, data["charge"]["status"], data["price"]) == (200, "successful", "30.00")
    assert await club.problems() == []


async def test_another_period_begins_now_if_its_charge_is_asked_for(
    web: httpx.AsyncClient, club: Till, member: Subscription, headers: dict[str, str]
) -> None:
    wish = {"price": "100.00", "period": "1y", "when": "now"}
    for refused in (wish, {**wish, "proration_behavior": "next_charge"}):
        answer = await web.post(path(member, "change"), json=refused, headers=headers)
        assert (answer.status_code, "of another length" in answer.json()["message"]) == (409, True)
    whole = await ask(web, member, "change", headers, **wish, proration_behavior="none", preview=True)
    assert (whole["charged_now"], whole["balance"], whole["next_charge_amount"]) == ("100.00", 0, "100.00")
    wish["proration_behavior"] = "charge_now"
    seen = await ask(web, member, "change", headers, **wish, preview=True)
    done = await ask(web, member, "change", headers, **wish)
    assert done["charge"]["status"] == "successful"
    for data in (seen, done):
        assert (data["charged_now"], data["next_charge_amount"], data["counter"]) == ("90.00", "100.00", 2)
        assert (data["prorated"] + 10, data["balance"]) == (data["balance"], data["prorated"] + 10)
    assert seconds(member.date_next) + 300 * 86_400 < seen["next_charge_at"] <= done["next_charge_at"]
    assert await club.problems() == []
