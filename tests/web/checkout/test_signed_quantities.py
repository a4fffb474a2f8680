"""Several of a thing that a shop's form sells, where its account has switched that on."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import breaking
from tests.domain.coupons.test_coupons import coupon, mrr
from tests.shopfront import open_page, press_pay, subscription_of
from tests.till import Till
from tests.web.checkout.test_coupons import words

from paydesk.core.clock import utc_now
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.subscription_object import subscription_object
from paydesk_client import Gateway
from paydesk_client.signature import Version, canonical_string, encode_form, sign

SignedForm = Callable[..., dict[str, Any]]

CLUB = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}
EXAMPLE = {
    "api_key": "95b682bafc8837b1e80e5fe940cb5731",
    "amount": "5.00",
    "currency": "EUR",
    "description": "Golden Ticket",
    "merchant_order_id": "5d00c568c5b2b",
    **CLUB,
    "recurring_quantity": "3",
}
KEY = "9c4d4efcfe74317c5df7d564cfe9565t"
PAGE = (Path(__file__).parents[3] / "docs" / "integrate.md").read_text()
THRICE = "3 × 10.00 USD = 30.00 USD"


async def switch(till: Till, on: bool) -> None:
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, signs_quantities=on)


@pytest.fixture
async def till(desk: Desk, shop: Shop) -> Till:
    made = Till(desk, shop)
    await switch(made, True)
    return made


async def amounts(till: Till) -> list[Decimal]:
    return [row["amount"] for row in await till.payments()]


async def post(web: httpx.AsyncClient, form: dict[str, Any]) -> httpx.Response:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return await web.post("/payment/form", content=encode_form(form), headers=headers)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_the_price_of_one_and_of_all_is_shown_and_that_of_all_is_charged(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, version: Version
) -> None:
    form = signed_form(**CLUB, recurring_quantity="3", sign_version=version)
    page = await open_page(web, form)
    agreed = f"charges this card for “Coffee club”: {THRICE} today, then {THRICE} every month until you cancel."
    assert agreed in words(await web.get(page))
    assert (await press_pay(web, page, agree="en")).status_code == 303
    begun = await subscription_of(till.database, till.shop, form["merchant_order_id"])
    assert begun.package.terms.name == "Coffee club"
    told = subscription_object(begun)
    assert (told["price"], told["quantity"], told["unit_price"]) == ("30.00", 3, "10.00")
    await till.charge_due(begun)
    assert await amounts(till) == [Decimal(30), Decimal(30)]
    assert await mrr(till) == [("new", Decimal(30))]
    assert await till.problems() == []


async def test_a_trial_costs_as_many_times_as_much(web: httpx.AsyncClient, till: Till, signed_form: SignedForm) -> None:
    trial = {"recurring_trial_amount": "1.00", "recurring_trial_period": "1w"}
    page = await open_page(web, signed_form(**CLUB, **trial, recurring_quantity="3"))
    shown = words(await web.get(page))
    assert f"3 × 1.00 USD = 3.00 USD today for 1 week, then {THRICE} every month until you cancel" in shown
    assert (await press_pay(web, page, agree="en")).status_code == 303
    assert await amounts(till) == [Decimal(3)]


async def test_the_same_total_for_one_and_for_several_are_two_versions(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    """Whoever pays 30.00 for one is not told of three."""
    for more in ({"recurring_quantity": "3"}, {"amount": "30.00"}, {"amount": "15.00", "recurring_quantity": "2"}):
        form = signed_form(**CLUB, **more)
        page = await open_page(web, form)
        shown = words(await web.get(page))
        assert (THRICE in shown) == (more == {"recurring_quantity": "3"})
        assert (await press_pay(web, page, agree="en")).status_code == 303
        terms = (await subscription_of(till.database, till.shop, form["merchant_order_id"])).package.terms
        assert (terms.price, terms.quantity) == (Decimal(30), int(more.get("recurring_quantity", 1)))
    assert await till.problems() == []


async def test_one_of_a_thing_is_told_as_ever(web: httpx.AsyncClient, till: Till, signed_form: SignedForm) -> None:
    form = signed_form(**CLUB, recurring_quantity="1")
    page = await open_page(web, form)
    assert "×" not in words(await web.get(page))
    assert (await press_pay(web, page, agree="en")).status_code == 303
    told = subscription_object(await subscription_of(till.database, till.shop, form["merchant_order_id"]))
    assert not {"quantity", "unit_price"} & set(told)


async def test_without_the_switch_a_form_is_read_as_before(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    await switch(till, False)
    for given in ("3", "none", ""):
        page = await open_page(web, signed_form(**CLUB, recurring_quantity=given))
        assert "10.00 USD today, then 10.00 USD every month" in words(await web.get(page))
    ignored = await till.database.fetch("select name from ignored_field where merchant_id = $1", till.shop.merchant_id)
    assert "recurring_quantity" in {row["name"] for row in ignored}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({**CLUB, "recurring_quantity": "0"}, "recurring_quantity “0” is not a whole number from 1 to 10000"),
        ({**CLUB, "recurring_quantity": "10001"}, "is not a whole number from 1 to 10000"),
        ({**CLUB, "recurring_quantity": "1.5"}, "is not a whole number from 1 to 10000"),
        ({**CLUB, "recurring_quantity": "-2"}, "is not a whole number from 1 to 10000"),
        ({**CLUB, "recurring_quantity": ["3"]}, "recurring_quantity must be a single value"),
        ({"recurring_quantity": "3"}, "recurring_quantity is for subscriptions"),
        ({**CLUB, "amount": "999999999999.00", "recurring_quantity": "2"}, "2 times the price is larger than"),
    ],
)
async def test_a_form_with_a_wrong_quantity_is_refused_and_logged(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, fields: dict[str, Any], said: str
) -> None:
    answer = await post(web, signed_form(**fields, sign_version="v1"))
    shown = words(answer).replace("&#34;", '"').replace("“", '"').replace("”", '"')
    assert (answer.status_code, said.replace("“", '"').replace("”", '"') in shown) == (400, True), shown
    logged = await till.database.fetch("select * from rejected_form where merchant_id = $1", till.shop.merchant_id)
    assert len(logged) == 1


@pytest.mark.parametrize("switched_on", [True, False])
async def test_a_quantity_can_not_be_moved_into_another_value_or_out_of_one(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, switched_on: bool
) -> None:
    """The text of version 2 is the same for both; neither way of writing it is taken."""
    await switch(till, switched_on)
    form = signed_form(**CLUB, recurring_quantity="3", sign_version="v2")
    moved = {**form, "recurring_period": "1m;recurring_quantity=3"}
    del moved["recurring_quantity"]
    assert canonical_string(moved, "v2") == canonical_string(form, "v2")
    answer = await post(web, moved)
    assert answer.status_code == 400
    assert "recurring_quantity=" in words(answer)


@pytest.mark.parametrize(
    ("given", "charged"),
    [({"percent": "50"}, ["15", "30"]), ({"amount": "5", "currency": "USD"}, ["25", "30"])],
)
async def test_a_coupon_is_taken_off_the_price_of_all_of_them(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, given: dict[str, str], charged: list[str]
) -> None:
    await coupon(till, **given, periods="1")
    form = signed_form(**CLUB, recurring_quantity="3")
    page = await open_page(web, form)
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, types_coupons=True)
    reduced = (await web.post(f"{page}/coupon", data={"code": "half"})).headers["location"]
    assert f"then {THRICE} every month until you cancel" in words(await web.get(reduced))
    assert (await press_pay(web, reduced, agree="en")).status_code == 303
    begun = await subscription_of(till.database, till.shop, form["merchant_order_id"])
    assert (begun.package.terms.name, begun.package.terms.quantity) == ("Coffee club", 3)
    await till.charge_due(begun)
    assert await amounts(till) == [Decimal(one) for one in charged]
    assert await till.problems() == []


async def test_another_price_is_of_the_whole_and_another_rhythm_keeps_how_many(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    form = signed_form(**CLUB, recurring_quantity="3")
    await press_pay(web, await open_page(web, form), agree="en")
    begun = await subscription_of(till.database, till.shop, form["merchant_order_id"])
    for plan, expected in ((Plan(price="20.00"), (Decimal(20), 1)), (Plan(period="2m"), (Decimal(30), 3))):
        seen = await change_plan(till.database, till.shop, begun.id, plan, by="merchant", now=utc_now(), preview=True)
        change = seen.subscription.change
        assert change is not None
        assert change.package is not None
        assert (change.package.terms.price, change.package.terms.quantity) == expected


async def test_the_api_tells_of_how_many_it_is_and_prorates_the_whole(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, gateway: Gateway
) -> None:
    form = signed_form(**CLUB, recurring_quantity="3")
    await press_pay(web, await open_page(web, form), agree="en")
    begun = await subscription_of(till.database, till.shop, form["merchant_order_id"])
    path, headers = f"/api/v1/subscriptions/{begun.id}", {"X-ApiKey": gateway.private_key}
    shown = (await web.get(path, headers=headers)).json()["data"]
    assert (shown["price"], shown["quantity"], shown["unit_price"]) == ("30.00", 3, "10.00")
    body = {"price": "60.00", "when": "now", "proration_behavior": "next_charge", "preview": True}
    changed = (await web.post(f"{path}/change", json=body, headers=headers)).json()["data"]
    assert changed["price"] == "60.00"
    assert "quantity" not in changed
    assert Decimal(changed["prorated"]).quantize(Decimal("0.01")) == Decimal(30)


@pytest.mark.parametrize(
    ("body", "expected", "moved"),
    [
        ({"quantity": 5}, ("50.00", 5, "10.00", "20.00"), ("expansion", Decimal(20))),
        ({"quantity": 2}, ("20.00", 2, "10.00", "-10.00"), ("contraction", Decimal(-10))),
        ({"quantity": "4", "price": "12.00"}, ("48.00", 4, "12.00", "18.00"), ("expansion", Decimal(18))),
        ({"quantity": 1}, ("10.00", None, None, "-20.00"), ("contraction", Decimal(-20))),
    ],
)
async def test_how_many_it_is_of_is_changed_as_a_plan_is(
    web: httpx.AsyncClient,
    till: Till,
    signed_form: SignedForm,
    gateway: Gateway,
    body: dict[str, Any],
    expected: tuple[str, int | None, str | None, str],
    moved: tuple[str, Decimal],
) -> None:
    form = signed_form(**CLUB, recurring_quantity="3")
    await press_pay(web, await open_page(web, form), agree="en")
    begun = await subscription_of(till.database, till.shop, form["merchant_order_id"])
    path, headers = f"/api/v1/subscriptions/{begun.id}/change", {"X-ApiKey": gateway.private_key}
    wish = {**body, "when": "now", "proration_behavior": "next_charge"}
    for preview in (True, False):
        told = (await web.post(path, json={**wish, "preview": preview}, headers=headers)).json()["data"]
        shown = (told["price"], told.get("quantity"), told.get("unit_price"))
        assert (*shown, f"{Decimal(told['prorated']):.2f}") == expected
    assert (await mrr(till))[1:] == [moved]
    await till.charge_due(await till.now(begun))
    # What it costs more or less for the rest of the period, and the new price.
    assert sum(await amounts(till)) == Decimal(30) + max(Decimal(0), Decimal(expected[0]) + Decimal(expected[3]))
    assert await till.problems() == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0, 'quantity "0" is not a whole number from 1 to 10000'),
        (10001, "is not a whole number from 1 to 10000"),
        (True, "quantity is not text"),
        (2.5, "quantity is not text"),
    ],
)
async def test_a_quantity_that_is_none_changes_nothing(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, gateway: Gateway, given: object, said: str
) -> None:
    form = signed_form(**CLUB, recurring_quantity="3")
    await press_pay(web, await open_page(web, form), agree="en")
    begun = await subscription_of(till.database, till.shop, form["merchant_order_id"])
    path, headers = f"/api/v1/subscriptions/{begun.id}/change", {"X-ApiKey": gateway.private_key}
    answer = await web.post(path, json={"quantity": given}, headers=headers)
    assert answer.status_code in {400, 422}
    assert said in answer.json()["message"]
    assert await till.now(begun) == begun


async def test_check_finds_a_price_that_is_not_that_of_all_of_them(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    form = signed_form(**CLUB, recurring_quantity="3")
    await press_pay(web, await open_page(web, form), agree="en")
    begun = await subscription_of(till.database, till.shop, form["merchant_order_id"])
    for wrong in ({"unit_price": 9}, {"quantity": 2}, {"unit_price": None}):
        version = {"id": begun.package.version_id}
        await breaking.say(till.database, "package_version", version, **wrong)
        assert "quantities_kept" in {said.partition(":")[0] for said in await till.problems()}
        await breaking.say(till.database, "package_version", version, quantity=3, unit_price=10)


@pytest.mark.parametrize(
    ("signs_as", "version"), [({}, "v1"), ({"sign_version": "v1"}, "v1"), ({"sign_version": "v2"}, "v2")]
)
def test_the_vectors_of_the_docs_are_right(signs_as: dict[str, str], version: Version) -> None:
    shown = re.search(r"### Several of a thing\n(.*?)\n## ", PAGE, re.S)
    assert shown is not None
    assert f"`{sign({**EXAMPLE, **signs_as}, KEY, version)}`" in shown[1]
    assert canonical_string({**EXAMPLE, "sign_version": "v2"}, "v2") in shown[1].replace("\n", "")
