"""A coupon that a shop signs into its form, where its account has switched that on."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import breaking
from tests.domain.coupons.test_coupons import coupon
from tests.shopfront import open_page, press_pay
from tests.till import Till
from tests.web.checkout.test_coupons import words

from paydesk.domain.coupons.keeping import switch_coupon
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
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
    "recurring_coupon": "SPRING",
}
KEY = "9c4d4efcfe74317c5df7d564cfe9565t"
PAGE = (Path(__file__).parents[3] / "docs" / "integrate.md").read_text()


@pytest.fixture
async def till(desk: Desk, shop: Shop) -> Till:
    await breaking.say(desk.database, "merchant", {"id": shop.merchant_id}, signs_coupons=True)
    return Till(desk, shop)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_a_form_brings_its_coupon(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, version: Version
) -> None:
    await coupon(till, percent="50", most_uses="1", periods="1")
    form = signed_form(**CLUB, recurring_coupon="half", sign_version=version)
    page = await open_page(web, form)
    assert "5.00 USD today, then 10.00 USD every month until you cancel" in words(await web.get(page))
    assert (await press_pay(web, page, agree="en")).status_code == 303
    assert [row["amount"] for row in await till.payments()] == [Decimal(5)]
    # The same form again leads to the same page, though the coupon is used up by it.
    assert await open_page(web, form) == page
    assert (await web.get(page)).status_code == 200


async def test_without_the_switch_a_form_is_read_as_before(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    await coupon(till)
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, signs_coupons=False)
    for given in ("half", "none such", ""):
        page = await open_page(web, signed_form(**CLUB, recurring_coupon=given))
        assert "10.00 USD today" in words(await web.get(page))
    ignored = await till.database.fetch("select name from ignored_field where merchant_id = $1", till.shop.merchant_id)
    assert "recurring_coupon" in {row["name"] for row in ignored}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({**CLUB, "recurring_coupon": "other"}, "recurring_coupon: there is no coupon other"),
        ({**CLUB, "recurring_coupon": "half", "recurring_sku_id": "tea"}, "is not for the package tea"),
        ({"recurring_coupon": "half"}, "coupons are for subscriptions"),
        ({**CLUB, "recurring_coupon": ["half"]}, "recurring_coupon must be a single value"),
    ],
)
async def test_a_form_with_a_wrong_coupon_is_refused_and_logged(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, fields: dict[str, Any], said: str
) -> None:
    await coupon(till, skus=("club",))
    form = signed_form(**fields, sign_version="v1")
    answer = await web.post(
        "/payment/form", content=encode_form(form), headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert (answer.status_code, said in words(answer)) == (400, True), words(answer)
    logged = await till.database.fetch("select * from rejected_form where merchant_id = $1", till.shop.merchant_id)
    assert len(logged) == 1


async def test_one_that_is_over_leaves_the_usual_price_and_says_so(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    made = await coupon(till)
    await switch_coupon(till.database, till.shop, made.id, on=False)
    page = await open_page(web, signed_form(**CLUB, recurring_coupon="half"))
    shown = words(await web.get(page))
    assert "This coupon can’t be used, not any more or not now." in shown
    assert "10.00 USD today" in shown


@pytest.mark.parametrize("switched_on", [True, False])
async def test_a_coupon_can_not_be_moved_into_another_value_or_out_of_one(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, switched_on: bool
) -> None:
    """The text of version 2 is the same for both; neither way of writing it is taken."""
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, signs_coupons=switched_on)
    form = signed_form(**CLUB, recurring_coupon="half", sign_version="v2", pingback_url="https://shop.example/told")
    moved = {**form, "pingback_url": f"{form['pingback_url']};recurring_coupon=half"}
    del moved["recurring_coupon"]
    assert canonical_string(moved, "v2") == canonical_string(form, "v2")
    answer = await web.post("/payment/form", data=moved)
    assert answer.status_code == 400
    assert "recurring_coupon=" in words(answer)


@pytest.mark.parametrize(
    ("signs_as", "version"), [({}, "v1"), ({"sign_version": "v1"}, "v1"), ({"sign_version": "v2"}, "v2")]
)
def test_the_vectors_of_the_docs_are_right(signs_as: dict[str, str], version: Version) -> None:
    shown = re.search(r"### A coupon in the form\n(.*?)\n## ", PAGE, re.S)
    assert shown is not None
    assert f"`{sign({**EXAMPLE, **signs_as}, KEY, version)}`" in shown[1]
    assert canonical_string({**EXAMPLE, "sign_version": "v2"}, "v2") in shown[1].replace("\n", "")
