"""Pricing pages in the account: packages chosen, changed, and what is wrong said beside them."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests import breaking
from tests.markup import Markup
from tests.shopfront import press_pay
from tests.web.account.conftest import Join, Visitor, fields_of, leads_to, text_of
from tests.web.account.test_payment_links import path_of, picture, switch

from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role

USUAL: dict[str, Any] = {"title": "Our plans", "description": "For every thirst", "most_quantity": "1"}


async def package(
    visitor: Visitor, name: str, price: str, unit: str = "m", of: str = "", **typed: str
) -> tuple[str, str]:
    """Make a package, or another version of one; the package's number and the version's."""
    page = f"{visitor.merchant_path}/subscriptions/packages/{of + '/version' if of else 'new'}"
    hidden = fields_of((await visitor.see(page)).text, page)
    told = {"name": name, "sku_id": name.lower(), "currency": "EUR", "price": price, "period_length": "1"}
    place = leads_to(await visitor.web.post(page, data={**hidden, **told, "period_unit": unit, **typed}))
    shown = await visitor.see(f"{visitor.merchant_path}/links/new/packages")
    versions = [int(one) for one in re.findall(r'name="version" value="(\d+)"', shown.text)]
    return place.rpartition("/")[2], str(max(versions))


async def make(visitor: Visitor, *versions: str, content: bytes = b"", **typed: Any) -> httpx.Response:
    page = f"{visitor.merchant_path}/links/new/packages"
    return await _post(visitor, page, versions, content, **typed)


async def change(visitor: Visitor, page: str, *versions: str, **typed: Any) -> httpx.Response:
    return await _post(visitor, page, versions, b"", **typed)


async def _post(visitor: Visitor, page: str, versions: tuple[str, ...], content: bytes, **typed: Any) -> httpx.Response:
    hidden = fields_of((await visitor.see(page)).text, page)
    sent = {**hidden, **USUAL, **typed, "version": list(versions)}
    return await visitor.web.post(page, data=sent, files={"picture": ("a.jpg", content)})


async def test_a_page_is_made_of_packages_shared_and_sells(owner: Visitor) -> None:
    club, monthly = await package(owner, "Club", "10")
    _, yearly = await package(owner, "Club", "100", "y", of=club)
    tea, cheap = await package(owner, "Tea", "4")
    about = {f"about-{club}": "A mug\r\nTea at cost", f"about-{tea}": "Tea at cost"}
    page = leads_to(await make(owner, monthly, yearly, cheap, content=picture(), most_sales="3", **about))
    path = await path_of(owner, page)
    shown = await owner.web.get(path)
    said = text_of(shown)
    assert said.index("Tea €4.00 every month") < said.index("Club €10.00 every month"), "the cheapest first"
    assert re.search(r"<li><bdi>A mug</bdi>\s*<li><bdi>Tea at cost</bdi>", shown.text)
    assert 'class="offered"' in shown.text
    pressed = re.search(r'name="press" value="(\w+)"', shown.text)
    assert pressed is not None
    led = await owner.web.post(path, data={"press": pressed[1], "version": yearly})
    await press_pay(owner.web, led.headers["location"], agree="en")
    assert re.search(r"Sold 1 Left 2 Paid \S*100\.00", text_of(await owner.see(page)))
    listed = text_of(await owner.see(f"{owner.merchant_path}/links"))
    assert "1 / 3" in listed
    assert "€4.00 / month, €10.00 / month …" in listed


async def test_without_a_package_the_way_to_make_one_stands_beside(owner: Visitor) -> None:
    shown = Markup((await owner.see(f"{owner.merchant_path}/links/new/packages")).text)
    assert "There is no package yet. Make one" in " ".join(shown.text.split())


async def test_what_was_taken_off_an_open_page_leads_to_nothing_else(owner: Visitor) -> None:
    _, dear = await package(owner, "Club", "10")
    _, cheap = await package(owner, "Tea", "4")
    page = leads_to(await make(owner, dear, cheap))
    path = await path_of(owner, page)
    pressed = re.search(r'name="press" value="(\w+)"', (await owner.web.get(path)).text)
    assert pressed is not None
    await change(owner, page, dear)
    answer = await owner.web.post(path, data={"press": pressed[1], "version": cheap})
    assert answer.status_code == 400
    assert "This is not offered any more. Choose again." in text_of(answer)
    assert "€10.00" in answer.text
    again = re.search(r'name="press" value="(\w+)"', answer.text)
    assert again is not None
    assert "/checkout/" in leads_to(await owner.web.post(path, data={"press": again[1]}))


async def test_the_only_package_of_an_open_page_leads_to_no_other(owner: Visitor) -> None:
    _, cheap = await package(owner, "Tea", "4")
    _, dear = await package(owner, "Club", "10")
    page = leads_to(await make(owner, cheap))
    path = await path_of(owner, page)
    opened = fields_of((await owner.web.get(path)).text, path)
    await change(owner, page, dear)
    answer = await owner.web.post(path, data=opened)
    assert answer.status_code == 400
    assert "This is not offered any more. Choose again." in text_of(answer)
    assert "€10.00 every month" in text_of(answer)
    led = leads_to(await owner.web.post(path, data=fields_of(answer.text, path)))
    assert "€10.00" in text_of(await owner.web.get(led))


async def test_it_keeps_what_was_chosen_and_is_changed(owner: Visitor) -> None:
    club, monthly = await package(owner, "Club", "10")
    about: dict[str, Any] = {f"about-{club}": "A mug"}
    page = leads_to(await make(owner, monthly, **about))
    form = (await owner.see(page)).text
    assert re.search(rf'name="version" value="{monthly}"\s*checked', form)
    assert re.search(r">\s*A mug\s*</textarea>", form)
    path = await path_of(owner, page)
    _, dearer = await package(owner, "Club", "12", of=club)
    assert "€10.00 every month" in text_of(await owner.web.get(path)), "until the new one is chosen"
    assert f"Club has a newer version: €12.00 / month, version {dearer}" in text_of(await owner.see(page))
    await change(owner, page, dearer, title="Our newest plans")
    now = text_of(await owner.web.get(path))
    assert "€12.00 every month" in now
    assert "newer version" not in text_of(await owner.see(page))
    await switch(owner, page, "no")
    assert (await owner.web.get(path)).status_code == 410
    await switch(owner, page, "yes")
    assert (await owner.web.get(path)).status_code == 200


async def test_who_makes_a_version_has_all_pages_sell_it_in_the_place_of_the_one_paid_as_often(owner: Visitor) -> None:
    club, monthly = await package(owner, "Club", "10")
    _, yearly = await package(owner, "Club", "100", "y", of=club)
    _, tea = await package(owner, "Tea", "4")
    first = await path_of(owner, leads_to(await make(owner, monthly, yearly, tea, title="Our plans")))
    second = await path_of(owner, leads_to(await make(owner, yearly, tea, title="By the year")))
    form = await owner.see(f"{owner.merchant_path}/subscriptions/packages/{club}/version")
    assert "Our plans, By the year" in text_of(form)
    assert not re.search(r'name="on_pages"[^>]*checked', form.text)
    await package(owner, "Club", "12", of=club, on_pages="1")
    assert "€12.00 every month" in text_of(await owner.web.get(first))
    for path in (first, second):
        assert "€100.00 every year" in text_of(await owner.web.get(path, params={"period": "1y"}))
    await package(owner, "Club", "13", of=club, currency="USD", on_pages="1")
    await package(owner, "Club", "14", of=club)
    assert "€12.00 every month" in text_of(await owner.web.get(first))
    await package(owner, "Club", "110", "y", of=club, on_pages="1")
    for path in (first, second):
        assert "€110.00 every year" in text_of(await owner.web.get(path, params={"period": "1y"}))
    await package(owner, "Club", "100", "y", of=club, on_pages="1")
    assert "€100.00 every year" in text_of(await owner.web.get(second)), "one that was there already, too"
    log = text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))
    assert "Our plans" in log


@pytest.mark.parametrize(
    ("versions", "typed", "said"),
    [
        ([], {}, "choose what is sold"),
        (["0"], {}, "is none of the choices"),
        (["999999999"], {}, "version 999999999 is none that can be sold here"),
        (["club", "dearer"], {}, "two versions of Club are paid as often as each other"),
        (["club", "dollars"], {}, "has one currency, not EUR and USD"),
        (["club"], {"most_quantity": "2"}, "one at a time; allow several of a thing"),
        (["club"], {"title": ""}, "The title is missing"),
        (["club"], {"about": "x" * 501}, "at most 500 characters"),
        (["club"], {"about": "mug\u202eguM"}, "plain text"),
        (["club"], {"success_url": "javascript:alert(1)"}, "scheme"),
    ],
)
async def test_what_can_not_be_sold_so_is_said_and_what_was_typed_stays(
    owner: Visitor, versions: list[str], typed: dict[str, Any], said: str
) -> None:
    club, first = await package(owner, "Club", "10")
    _, second = await package(owner, "Club", "12", of=club)
    _, dollars = await package(owner, "Tea", "4", currency="USD")
    known = {"club": first, "dearer": second, "dollars": dollars}
    named = {f"about-{club}" if name == "about" else name: value for name, value in typed.items()}
    answer = await make(owner, *(known.get(one, one) for one in versions), **named)
    assert answer.status_code == 400
    assert said.lower() in text_of(answer).lower(), text_of(answer)
    assert "is-invalid" in answer.text
    for one in versions:
        if one in known:
            assert re.search(rf'name="version" value="{known[one]}"\s*checked', answer.text)


async def test_a_live_version_of_before_whose_price_acquirers_refuse_is_sold_on_no_page(
    owner: Visitor, database: Database
) -> None:
    merchant_id = int(owner.merchant_path.rpartition("/")[2])
    await owner.send(f"{owner.merchant_path}/links", f"{owner.merchant_path}/mode", live="1")
    _, dinars = await package(owner, "Club", "10.13", currency="KWD")
    await breaking.say(database, "package_version", {"merchant_id": merchant_id}, price=Decimal("10.125"))
    answer = await make(owner, dinars)
    assert (answer.status_code, "Acquirers don't take 10.125 KWD" in text_of(answer)) == (400, True)
    await breaking.say(database, "package_version", {"merchant_id": merchant_id}, price=Decimal("10.130"))
    assert leads_to(await make(owner, dinars))


async def test_seven_packages_are_too_many(owner: Visitor) -> None:
    versions = [(await package(owner, f"Club {number}", str(number + 1)))[1] for number in range(7)]
    answer = await make(owner, *versions)
    assert (answer.status_code, "at most 6 packages" in text_of(answer)) == (400, True)
    assert leads_to(await make(owner, *versions[1:]))


async def test_several_are_sold_where_the_shop_allows_it(owner: Visitor, database: Database) -> None:
    _, monthly = await package(owner, "Club", "10")
    merchant_id = int(owner.merchant_path.rpartition("/")[2])
    await breaking.say(database, "merchant", {"id": merchant_id}, signs_quantities=True)
    path = await path_of(owner, leads_to(await make(owner, monthly, most_quantity="9")))
    assert 'max="9"' in (await owner.web.get(path)).text


async def test_what_another_shop_sells_is_none_of_ours(owner: Visitor, sign_up: Any) -> None:
    other = await sign_up("Another Shop")
    _, theirs = await package(other, "Club", "10")
    shown = Markup((await owner.see(f"{owner.merchant_path}/links/new/packages")).text)
    assert "There is no package yet. Make one" in " ".join(shown.text.split())
    answer = await make(owner, theirs)
    assert (answer.status_code, "none that can be sold here" in text_of(answer)) == (400, True)


async def test_who_may_only_look_makes_none(owner: Visitor, join: Join) -> None:
    _, monthly = await package(owner, "Club", "10")
    page = leads_to(await make(owner, monthly))
    viewer = await join(owner, Role.viewer)
    assert (await viewer.see(page)).status_code == 200
    assert (await viewer.see(f"{owner.merchant_path}/links/new/packages")).status_code == 403
    log = text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))
    assert f"version {monthly}" in log
