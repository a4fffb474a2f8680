"""Coupons in the account."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests import breaking
from tests.web.account.conftest import Visitor, fields_of, leads_to, text_of

from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.coupons.keeping import list_coupons
from paydesk.domain.merchants.shop import Shop

USUAL = {"code": "spring", "percent": "12,5", "periods": "3", "most_uses": "10", "valid_until": "2099-12-31"}


async def make(visitor: Visitor, **typed: Any) -> httpx.Response:
    page = f"{visitor.merchant_path}/coupons/new"
    hidden = fields_of((await visitor.see(page)).text, page)
    return await visitor.web.post(page, data={**hidden, **USUAL, **typed})


async def test_a_coupon_is_made_and_switched_off_and_on(owner: Visitor) -> None:
    page = f"{owner.merchant_path}/coupons"
    assert leads_to(await make(owner)) == page
    assert re.search(r"12\.50 % On SPRING .*3 0 / 10 – Dec 31, 2099", text_of(await owner.see(page)))
    shown = (await owner.see(page)).text
    switch = re.search(rf'action="({page}/\d+/switch)"', shown)
    assert switch is not None
    for on, state in (("no", "Off SPRING .* Switch on"), ("yes", "On SPRING .* Switch off")):
        hidden = fields_of((await owner.see(page)).text, switch[1])
        assert leads_to(await owner.web.post(switch[1], data={**hidden, "on": on})) == page
        assert re.search(state, text_of(await owner.see(page)))
    log = text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))
    assert "coupon" in log


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"percent": ""}, "percent"),
        ({"valid_until": "never"}, "valid_until"),
        ({"code": "a b"}, "code"),
        ({"code": ""}, "code"),
        ({"percent": "", "amount": "1,000", "currency": "usd"}, "amount"),
        ({"percent": "", "amount": "5.000", "currency": "jpy"}, "amount"),
    ],
)
async def test_what_is_wrong_is_said_at_its_field(owner: Visitor, typed: dict[str, str], field: str) -> None:
    answer = await make(owner, **typed)
    assert answer.status_code == 400
    assert f'is-invalid" id="f-{field}"' in answer.text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"valid_from": "2030-02-02", "valid_until": "2030-02-01"}, "The last day comes before the first."),
        ({"sku_ids": "x" * 300}, "A package has 300 characters"),
        ({"sku_ids": "\n".join(f"sku-{one}" for one in range(51))}, "51 packages are named, at most 50 are accepted."),
        ({"most_uses": "many"}, "The number of uses must be a whole number"),
        ({"most_per_customer": "0"}, "The number of uses must be a whole number"),
        ({"periods": "1.5"}, "The number of payments must be a whole number"),
    ],
)
async def test_what_is_wrong_is_said_in_words_of_the_page(owner: Visitor, typed: dict[str, str], said: str) -> None:
    assert said in text_of(await make(owner, **typed))


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize(("field", "day"), [("valid_from", "0001-01-01"), ("valid_until", "9999-12-31")])
async def test_days_at_the_edges_of_the_calendar_are_none(owner: Visitor, zone: str, field: str, day: str) -> None:
    fields = {"name": "Ada Lovelace", "language": "en", "time_zone": zone}
    assert leads_to(await owner.send("/account/security", "/account/security/profile", **fields))
    answer = await make(owner, **{"valid_until": "", field: day})
    assert answer.status_code == 400
    assert f'is-invalid" id="f-{field}"' in answer.text


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
async def test_days_at_the_edges_that_were_taken_once_are_listed(owner: Visitor, database: Database, zone: str) -> None:
    fields = {"name": "Ada Lovelace", "language": "en", "time_zone": zone}
    assert leads_to(await owner.send("/account/security", "/account/security/profile", **fields))
    await make(owner)
    first, last = datetime(1, 1, 1, 6, tzinfo=UTC), datetime(9999, 12, 31, 18, tzinfo=UTC)
    where = {"merchant_id": int(owner.merchant_path.split("/")[2])}
    await breaking.say(database, "coupon", where, valid_from=first, valid_until=last)
    assert "9999" in text_of(await owner.see(f"{owner.merchant_path}/coupons"))


async def test_many_long_names_of_packages_are_kept_whole(owner: Visitor, database: Database) -> None:
    skus = [f"sku-{number}-{'s' * 240}" for number in range(50)]
    assert leads_to(await make(owner, sku_ids="\r\n".join(skus)))
    shop = Shop(int(owner.merchant_path.split("/")[2]), live=False)
    (made,) = await list_coupons(database, shop, Page(1))
    assert made.skus == skus


async def test_numbers_of_packages_below_each_other_are_no_card_number(owner: Visitor, database: Database) -> None:
    assert leads_to(await make(owner, sku_ids="4242\r\n4242\r\n4242\r\n4242\r\n7"))
    shop = Shop(int(owner.merchant_path.split("/")[2]), live=False)
    (made,) = await list_coupons(database, shop, Page(1))
    assert made.skus == ["4242", "7"]
    refused = await make(owner, code="other", sku_ids="4242 4242 4242 4242")
    assert "A package holds what looks like a card number" in text_of(refused)
    assert "4242 4242" not in refused.text


async def test_a_code_that_is_taken_is_said(owner: Visitor) -> None:
    await make(owner)
    answer = await make(owner, percent="40")
    assert (answer.status_code, "There is a coupon SPRING already" in answer.text) == (409, True)


async def test_a_live_amount_that_acquirers_refuse_is_said_beside_its_field(owner: Visitor) -> None:
    await owner.send(f"{owner.merchant_path}/coupons", f"{owner.merchant_path}/mode", live="1")
    answer = await make(owner, percent="", amount="1.125", currency="kwd")
    assert answer.status_code == 400
    assert 'is-invalid" id="f-amount"' in answer.text
    assert "Acquirers don't take 1.125 KWD" in text_of(answer)
    assert answer.text.count("is-invalid") == 1
    assert leads_to(await make(owner, percent="", amount="1.13", currency="kwd"))


async def test_customers_may_type_them_once_that_is_allowed(owner: Visitor) -> None:
    page = f"{owner.merchant_path}/coupons"
    hidden = fields_of((await owner.see(page)).text, page)
    await owner.web.post(page, data={**hidden, "types_coupons": "1"})
    assert re.search(r'name="types_coupons"[^>]*checked', (await owner.see(page)).text)


async def test_a_box_that_says_no_is_not_taken_for_a_yes(owner: Visitor) -> None:
    page = f"{owner.merchant_path}/coupons"
    refused = await owner.send(page, types_coupons="1", signs_coupons="0")
    assert (refused.status_code, 'id="e-signs_coupons"' in refused.text) == (400, True)
    assert not re.search(r'name="types_coupons"[^>]*checked', (await owner.see(page)).text)


@pytest.mark.parametrize("on", ["garbage", "", "YES", "yes and no"])
async def test_a_switch_that_says_neither_yes_nor_no_leaves_a_coupon_on(owner: Visitor, on: str) -> None:
    page = f"{owner.merchant_path}/coupons"
    await make(owner)
    switch = re.search(rf'action="({page}/\d+/switch)"', (await owner.see(page)).text)
    assert switch is not None
    refused = await owner.send(page, switch[1], on=on)
    assert refused.status_code == 400
    assert f'"{on}" is none of the choices' in text_of(refused)
    assert "On SPRING" in text_of(await owner.see(page))


async def test_a_limit_that_is_misspelt_makes_no_coupon_without_it(owner: Visitor) -> None:
    refused = await make(owner, most_use="1")
    assert refused.status_code == 400
    assert 'There is no field "most_use" in this form' in text_of(refused)
    assert "SPRING" not in text_of(await owner.see(f"{owner.merchant_path}/coupons"))
