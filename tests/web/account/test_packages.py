"""Packages that are made in the account, and other versions of them."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from tests.web.account.conftest import Join, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller
from tests.web.account.test_subscriptions import seller as seller
from tests.web.account.test_subscriptions import subscribe

from paydesk.domain.accounts.roles import Role

USUAL = {
    "name": "Tea club",
    "sku_id": "tea",
    "currency": "eur",
    "price": "9,50",
    "period_length": "2",
    "period_unit": "w",
    "trial_length": "10",
    "trial_unit": "d",
    "trial_price": "",
    "payments": "12",
}


def packages(visitor: Visitor) -> str:
    return f"{visitor.merchant_path}/subscriptions/packages"


async def send(visitor: Visitor, page: str, **typed: Any) -> httpx.Response:
    hidden = fields_of((await visitor.see(page)).text, page)
    return await visitor.web.post(page, data={**hidden, **USUAL, **typed})


async def versions(visitor: Visitor, page: str) -> str:
    return text_of(await visitor.see(page)).replace("\u00a0", " ")


async def test_a_package_is_made_and_gets_another_version_for_new_customers(owner: Visitor) -> None:
    new = f"{packages(owner)}/new"
    page = leads_to(await send(owner, new))
    assert re.fullmatch(rf"{packages(owner)}/\d+", page)
    assert re.search(r"€9\.50 / 2 weeks \d+ newest Tea club €0\.00 / 10 days 12 0", await versions(owner, page))
    assert re.search(r"€9\.50 / 2 weeks , Tea club Tea club 0 1 [\w ,]+ tea", await versions(owner, packages(owner)))
    form = (await owner.see(f"{page}/version")).text
    for name, value in (("name", "Tea club"), ("price", "9.5"), ("currency", "EUR"), ("payments", "12")):
        assert re.search(rf'name="{name}"[^>]* value="{value}"', form), name
    assert 'name="sku_id"' not in form
    assert leads_to(await send(owner, f"{page}/version", price="12", trial_length="", sku_id="other")) == page
    shown = await versions(owner, page)
    assert re.search(r"€12\.00 / 2 weeks \d+ newest Tea club none 12 0", shown)
    assert re.search(r"€9\.50 / 2 weeks \d+ Tea club €0\.00 / 10 days 12 0", shown)
    assert "SKU tea" in shown


async def test_sent_twice_it_is_made_once(owner: Visitor, seller: Seller) -> None:
    new = f"{packages(owner)}/new"
    page = leads_to(await send(owner, new))
    assert leads_to(await send(owner, new)) == page
    assert "has just these terms already" in await versions(owner, page)
    for _ in range(2):
        assert leads_to(await send(owner, f"{page}/version", price="12")) == page
    assert (await versions(owner, page)).count("Offer") == 2
    assert await seller.audited("settings_changed") == [f"package {page.rpartition('/')[2]}"] * 2


async def test_what_runs_keeps_its_version(owner: Visitor, seller: Seller) -> None:
    await subscribe(seller)
    listed = (await owner.see(packages(owner))).text
    page = re.findall(r'href="([^"]+/packages/\d+)"', listed)[0]
    await send(owner, f"{page}/version", name="Coffee club", currency="USD", price="15", period_length="1")
    assert re.search(r"10.00 USD / month \d+ Coffee club none ∞ 1", await versions(owner, page))


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"name": " "}, "name"),
        ({"sku_id": "\u0007"}, "sku_id"),
        ({"currency": "EEK"}, "currency"),
        ({"price": "0"}, "price"),
        ({"price": "9.555"}, "price"),
        ({"period_length": "11", "period_unit": "y"}, "period_length"),
        ({"period_unit": "x"}, "period_length"),
        ({"trial_length": "0"}, "trial_length"),
        ({"trial_length": "", "trial_price": "1"}, "trial_length"),
        ({"trial_price": "-1"}, "trial_price"),
        ({"trial_price": "1,000"}, "trial_price"),
        ({"trial_price": "5.000", "currency": "jpy", "price": "900"}, "trial_price"),
        ({"payments": "0"}, "payments"),
        ({"payments": "9999"}, "payments"),
        ({"payments": "²"}, "payments"),
    ],
)
async def test_what_is_wrong_is_said_at_its_field(owner: Visitor, typed: dict[str, str], field: str) -> None:
    answer = await send(owner, f"{packages(owner)}/new", **typed)
    assert answer.status_code == 400
    assert f'is-invalid" id="f-{field}"' in answer.text
    assert "No packages yet." in text_of(await owner.see(packages(owner)))


async def test_a_trial_for_nothing_is_free_however_nothing_is_written(owner: Visitor) -> None:
    page = leads_to(await send(owner, f"{packages(owner)}/new", trial_length="7", trial_unit="d", trial_price="0.000"))
    assert "€0.00 / 7 days" in await versions(owner, page)


async def test_a_sku_that_is_taken_is_said(owner: Visitor) -> None:
    new = f"{packages(owner)}/new"
    await send(owner, new)
    answer = await send(owner, new, price="40")
    assert (answer.status_code, "There is a package tea already" in answer.text) == (409, True)


async def test_a_live_price_that_acquirers_refuse_is_said_beside_its_field_and_what_was_typed_stays(
    owner: Visitor,
) -> None:
    await owner.send(packages(owner), f"{owner.merchant_path}/mode", live="1")
    new, dinars = f"{packages(owner)}/new", {"currency": "kwd", "name": "Tea for all"}
    page = leads_to(await send(owner, new, sku_id="of before", currency="KWD"))
    for path in (new, f"{page}/version"):
        for field, typed in (("price", {"price": "10.125"}), ("trial_price", {"trial_price": "1.005"})):
            refused = await send(owner, path, **dinars, **typed)
            assert refused.status_code == 400
            assert f'is-invalid" id="f-{field}"' in refused.text
            assert f"Acquirers don't take {typed[field]} KWD" in text_of(refused)
            assert refused.text.count("is-invalid") == 1
            for name, value in (("name", "Tea for all"), ("payments", "12"), (field, typed[field])):
                assert re.search(rf'name="{name}"[^>]* value="{re.escape(value)}"', refused.text), name
    assert (await versions(owner, page)).count("Offer") == 1, "nothing was made"
    assert leads_to(await send(owner, f"{page}/version", **dinars, price="10.13")) == page


async def test_only_who_may_set_things_makes_them(owner: Visitor, join: Join) -> None:
    page = leads_to(await send(owner, f"{packages(owner)}/new"))
    viewer = await join(owner, Role.viewer)
    for path in (f"{packages(owner)}/new", f"{page}/version"):
        assert (await viewer.see(path)).status_code == 403
        assert path not in (await viewer.see(page)).text
    assert (await owner.see(f"{packages(owner)}/999/version")).status_code == 404
