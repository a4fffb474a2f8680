"""What a form's order is made of, where its account has switched that on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests import breaking
from tests.conftest import CountRows, OpenWeb
from tests.domain.coupons.test_coupons import coupon
from tests.servers import answering
from tests.shopfront import open_page, press_pay
from tests.till import Till
from tests.web.api.test_checkouts import picture

from paydesk.domain.merchants.ignored_fields import ignored_fields
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk_client.signature import Version, canonical_string, encode_form

SignedForm = Callable[..., dict[str, Any]]

MUG = {"name": "Mug <b>", "unit_price": "4.00", "quantity": 2}
TEA = {"name": "Tea", "unit_price": "2.00"}
BOTH = json.dumps([MUG, TEA])
CLUB = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}


async def switch(till: Till, on: bool, **more: bool) -> None:
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, signs_line_items=on, **more)


@pytest.fixture
async def till(desk: Desk, shop: Shop) -> Till:
    made = Till(desk, shop)
    await switch(made, True)
    return made


def lines_of(page: httpx.Response) -> str:
    """The words of the page's list of what is bought; empty if it has none."""
    found = re.search(r'<ul class="items"[^>]*>(.*?)</ul>', page.text, re.S)
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split()) if found else ""


async def post(web: httpx.AsyncClient, form: dict[str, Any], *, accept: str = "application/json") -> httpx.Response:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": accept}
    return await web.post("/payment/form", content=encode_form(form), headers=headers)


@pytest.mark.parametrize("version", ["v1", "v2"])
async def test_the_page_shows_each_with_its_price_and_the_amount_is_charged(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, version: Version
) -> None:
    page = await open_page(web, signed_form(line_items=BOTH, sign_version=version))
    shown = lines_of(await web.get(page))
    assert shown == "Mug &lt;b&gt; 2 × 4.00 USD 8.00 USD Tea 2.00 USD Total 10.00 USD"
    assert (await press_pay(web, page)).status_code == 303
    assert [row["amount"] for row in await till.payments()] == [10]


async def test_without_the_switch_a_form_is_read_as_before(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    await switch(till, False)
    for given in (BOTH, "none", "", "[", ["1"]):
        page = await open_page(web, signed_form(line_items=given, sign_version="v1"))
        assert lines_of(await web.get(page)) == ""
    ignored = await till.database.fetch("select name from ignored_field where merchant_id = $1", till.shop.merchant_id)
    assert "line_items" in {row["name"] for row in ignored}


async def test_an_empty_one_is_none(web: httpx.AsyncClient, till: Till, signed_form: SignedForm) -> None:
    assert lines_of(await web.get(await open_page(web, signed_form(line_items=" ")))) == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("[", "line_items is no JSON"),
        ("[NaN]", "NaN is no number"),
        ("[" * 5000, "line_items is no JSON"),
        ("9" * 5000, "line_items is no JSON"),
        ("null", "a list of at least one item"),
        ("[]", "a list of at least one item"),
        ("{}", "a list of at least one item"),
        (json.dumps([MUG]), "cost 8 USD in all, but amount is 10"),
        (json.dumps([MUG, {**TEA, "price": "2.00"}]), "has no field"),
        (json.dumps([MUG, {**TEA, "unit_price": 2}]), "line_items[1].unit_price is missing, or is no text"),
        (json.dumps([MUG, {**TEA, "quantity": 1.0}]), "line_items[1].quantity must be a whole number"),
        (json.dumps([MUG, {**TEA, "quantity": True}]), "line_items[1].quantity must be a whole number"),
        (json.dumps([MUG, {**TEA, "name": "tea\u202eaet"}]), "control character"),
        (json.dumps([MUG, {**TEA, "name": "tea\ud800"}]), "surrogates not allowed"),
        (json.dumps([MUG, {**TEA, "unit_price": "2\ud800"}]), "surrogates not allowed"),
        (json.dumps([MUG, {**TEA, "\udfff": "2.00"}]), "surrogates not allowed"),
        (json.dumps([MUG, {**TEA, "name": "\U0001f375"}]).replace("2.00", "2.001"), "has 3 decimals"),
        (json.dumps([MUG, {**TEA, "unit_price": "2\x00"}]), "is not a plain decimal number"),
        (json.dumps([MUG, {**TEA, "picture_url": "file:///etc/passwd"}]), "line_items[1].picture_url"),
        ('[{"name": "A", "unit_price": "1.00", "unit_price": "10.00"}]', "names a field of an item twice"),
        (["[]"], "line_items must be a single value"),
    ],
)
async def test_what_is_wrong_is_refused_by_its_name_and_logged(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, count_rows: CountRows, given: Any, said: str
) -> None:
    answer = await post(web, signed_form(line_items=given, sign_version="v1"))
    assert (answer.status_code, said in answer.json()["message"]) == (400, True), answer.text
    assert await count_rows("checkout") == 0
    logged = await till.database.fetch("select reason from rejected_form where merchant_id = $1", till.shop.merchant_id)
    assert len(logged) == 1


@pytest.mark.parametrize("switched_on", [True, False])
async def test_lines_can_not_be_moved_into_another_value_or_out_of_one(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, switched_on: bool
) -> None:
    """The text of version 2 is the same for both; neither way of writing it is taken."""
    await switch(till, switched_on)
    form = signed_form(line_items=BOTH, sign_version="v2")
    before = max(name for name in form if name < "line_items" and name != "hash")
    moved = {**form, before: f"{form[before]};line_items={BOTH}"}
    del moved["line_items"]
    assert canonical_string(moved, "v2") == canonical_string(form, "v2")
    answer = await post(web, moved)
    assert (answer.status_code, "line_items=" in answer.json()["message"]) == (400, True), answer.text
    hidden = json.dumps([{**MUG, "unit_price": "5.00", "name": "Mug;merchant_order_id=another"}])
    unsigned = {**form, "line_items": hidden}
    assert (await post(web, unsigned)).status_code == 400


async def test_a_picture_is_fetched_once_and_shown_from_here(
    open_web: OpenWeb, till: Till, signed_form: SignedForm
) -> None:
    web = await open_web(outbound_allow="127.0.0.0/8")
    with answering(body=picture()) as (server, seen):
        form = signed_form(line_items=json.dumps([MUG, {**TEA, "picture_url": f"{server}/tea.png"}]))
        page = await open_page(web, form)
        assert await open_page(web, form) == page
        assert [one.path for one in seen] == ["/tea.png"]
    shown = (await web.get(page)).text
    (source,) = re.findall(r'<img src="([^"]+)" alt="" width="48"', shown)
    assert server not in shown
    assert (await web.get(source)).headers["content-type"] == "image/webp"


async def test_a_picture_that_can_not_be_had_stops_no_sale_and_private_networks_are_never_asked(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm, count_rows: CountRows
) -> None:
    with answering(body=picture()) as (server, seen):
        items = [{**MUG, "picture_url": server}, {**TEA, "picture_url": "http://10.0.0.1/"}]
        page = await open_page(web, signed_form(line_items=json.dumps(items)))
        assert seen == []
    assert "<img" not in (await web.get(page)).text
    assert await count_rows("item_picture") == 0
    assert (await press_pay(web, page)).status_code == 303
    told = {one.name.partition(": ")[0]: one.name for one in await ignored_fields(till.database, till.shop)}
    assert told["line_items[0].picture_url"].endswith("address not allowed: 127.0.0.1 (loopback)")
    assert "address not allowed: 10.0.0.1" in told["line_items[1].picture_url"]


async def test_why_a_picture_was_left_out_is_told_to_the_shop(
    open_web: OpenWeb, till: Till, signed_form: SignedForm
) -> None:
    web = await open_web(outbound_allow="127.0.0.0/8")
    with answering(404) as (gone, _), answering(body=b"no picture") as (odd, _):
        items = [{**MUG, "picture_url": f"{gone}/mug.png"}, {**TEA, "picture_url": f"{odd}/tea.png"}]
        await open_page(web, signed_form(line_items=json.dumps(items)))
    told = {one.name for one in await ignored_fields(till.database, till.shop)}
    assert "line_items[0].picture_url: the server answered 404, not 200" in told
    assert any(one.startswith("line_items[1].picture_url: ") for one in told)
    assert not any("mug.png" in one for one in told)


async def test_a_coupon_stands_between_what_they_cost_and_what_is_paid(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    await coupon(till, percent="50")
    await switch(till, True, types_coupons=True)
    page = await open_page(web, signed_form(**CLUB, line_items=BOTH))
    assert "Subtotal" not in lines_of(await web.get(page))
    reduced = (await web.post(f"{page}/coupon", data={"code": "half"})).headers["location"]
    assert lines_of(await web.get(reduced)).endswith("Subtotal 10.00 USD Coupon HALF −5.00 USD Total 5.00 USD")
    assert (await press_pay(web, reduced, agree="en")).status_code == 303
    assert [row["amount"] for row in await till.payments()] == [5]


async def test_with_a_quantity_they_cost_what_is_charged(
    web: httpx.AsyncClient, till: Till, signed_form: SignedForm
) -> None:
    await switch(till, True, signs_quantities=True)
    seats = json.dumps([{"name": "Seat", "unit_price": "10.00", "quantity": 3}])
    page = await open_page(web, signed_form(**CLUB, recurring_quantity="3", line_items=seats))
    assert lines_of(await web.get(page)).startswith("Seat 3 × 10.00 USD 30.00 USD")
    one = json.dumps([{"name": "Seat", "unit_price": "10.00"}])
    answer = await post(web, signed_form(**CLUB, recurring_quantity="3", line_items=one))
    assert (answer.status_code, "amount is 30" in answer.json()["message"]) == (400, True)
