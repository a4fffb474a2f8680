"""Payment links in the account: made, changed, switched, counted."""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from PIL import Image
from tests.shopfront import press_pay
from tests.web.account.conftest import Join, Visitor, fields_of, leads_to, text_of
from tests.web.checkout.test_buying import press

from paydesk.core.pictures import read_picture
from paydesk.domain.accounts.roles import Role

USUAL = {"title": "A mug", "description": "Holds tea", "currency": "eur", "price": "4,50", "most_quantity": "3"}
CLUB: dict[str, Any] = {"price": "", "monthly_price": "5", "most_quantity": "1"}


def picture() -> bytes:
    drawn = BytesIO()
    Image.new("RGB", (900, 600), (20, 90, 200)).save(drawn, "JPEG", comment=b"secret")
    return drawn.getvalue()


async def make(visitor: Visitor, content: bytes = b"", **typed: Any) -> httpx.Response:
    page = f"{visitor.merchant_path}/links/new"
    hidden = fields_of((await visitor.see(page)).text, page)
    return await visitor.web.post(page, data={**hidden, **USUAL, **typed}, files={"picture": ("a.jpg", content)})


async def change(visitor: Visitor, page: str, content: bytes = b"", **typed: Any) -> httpx.Response:
    hidden = fields_of((await visitor.see(page)).text, page)
    return await visitor.web.post(page, data={**hidden, **USUAL, **typed}, files={"picture": ("a.jpg", content)})


async def switch(visitor: Visitor, page: str, on: str) -> None:
    hidden = fields_of((await visitor.see(page)).text, f"{page}/switch")
    assert leads_to(await visitor.web.post(f"{page}/switch", data={**hidden, "on": on})) == page


async def path_of(visitor: Visitor, page: str) -> str:
    found = re.search(r'href="(http[^"]+/buy/[^"]+)"', (await visitor.see(page)).text)
    assert found is not None
    return urlsplit(found[1]).path


async def test_a_link_is_made_shared_and_sells(owner: Visitor) -> None:
    page = leads_to(await make(owner, picture(), most_sales="3"))
    shown = (await owner.see(page)).text
    path = await path_of(owner, page)
    drawn = re.search(r'src="(data:image/svg[^"]+)"', shown)
    assert drawn is not None
    assert "<svg" in unquote(drawn[1])
    assert path.startswith("/sandbox/buy/")
    offered = await owner.web.get(path)
    assert "€4.50" in offered.text
    src = re.search(r'<img class="offered" src="([^"]+)"', offered.text)
    assert src is not None
    small = await owner.web.get(src[1])
    seen = read_picture(small.content)
    assert seen is not None
    assert (seen.media_type, seen.width, seen.height) == ("image/webp", 480, 320)
    assert b"secret" not in small.content
    checkout = (await press(owner.web, path, offered.text, quantity="2")).headers["location"]
    assert "<img" in (await owner.web.get(checkout)).text
    await press_pay(owner.web, checkout)
    told = text_of(await owner.see(page))
    assert re.search(r"Sold 2 Left 1 Paid \S*9\.00", told), told
    assert "2 / 3" in text_of(await owner.see(f"{owner.merchant_path}/links"))


async def test_a_link_is_changed_and_switched_off_and_on(owner: Visitor) -> None:
    page = leads_to(await make(owner, picture()))
    path = await path_of(owner, page)
    await change(owner, page, title="A pot", price="9", most_quantity="1", currency="USD")
    shown = (await owner.web.get(path)).text
    assert "A pot" in shown
    assert "€9.00" in shown, "it keeps its currency"
    assert 'class="offered"' in shown, "it keeps its picture"
    await change(owner, page, remove_picture="1")
    assert 'class="offered"' not in (await owner.web.get(path)).text
    await switch(owner, page, "no")
    assert (await owner.web.get(path)).status_code == 410
    assert "Off" in text_of(await owner.see(f"{owner.merchant_path}/links"))
    await switch(owner, page, "yes")
    assert (await owner.web.get(path)).status_code == 200
    assert await path_of(owner, page) == path


async def test_a_subscription_is_sold_by_month_and_year(owner: Visitor) -> None:
    prices: dict[str, Any] = {"price": "", "monthly_price": "5", "yearly_price": "50", "most_quantity": "1"}
    path = await path_of(owner, leads_to(await make(owner, **prices)))
    assert (await owner.web.get(path)).text.count('type="radio"') == 2


async def test_a_link_says_whether_coupons_may_be_typed(owner: Visitor) -> None:
    coupons = f"{owner.merchant_path}/coupons"
    hidden = fields_of((await owner.see(coupons)).text, coupons)
    await owner.web.post(coupons, data={**hidden, "types_coupons": "1"})
    hidden = fields_of((await owner.see(f"{coupons}/new")).text, f"{coupons}/new")
    await owner.web.post(f"{coupons}/new", data={**hidden, "code": "spring", "percent": "10"})
    page = leads_to(await make(owner, **CLUB))
    path = await path_of(owner, page)
    without = (await press(owner.web, path)).headers["location"]
    assert 'name="code"' not in (await owner.web.get(without)).text
    refused = await owner.web.post(f"{without}/coupon", data={"code": "spring"})
    assert refused.headers["location"] == without, "not by another way either"
    await change(owner, page, coupons="1", **CLUB)
    assert re.search(r'name="coupons"[^>]*checked', (await owner.see(page)).text)
    checkout = (await press(owner.web, path)).headers["location"]
    reduced = await owner.web.post(f"{checkout}/coupon", data={"code": "spring"})
    assert "4.50" in (await owner.web.get(reduced.headers["location"])).text


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"title": " "}, "The title is missing"),
        ({"title": "mug\u202eguM"}, "plain text"),
        ({"title": "x" * 256}, "at most 255"),
        ({"price": ""}, "A price is missing"),
        ({"price": "0"}, 'The price "0" must be greater than 0'),
        ({"price": "1,000"}, "thousands"),
        ({"price": "-1"}, "not a plain decimal"),
        ({"currency": "EURO"}, "ISO 4217"),
        ({"monthly_price": "5"}, "paid once, or by month"),
        ({"price": "", "monthly_price": "5"}, "one at a time"),
        ({"most_quantity": "0"}, "from 1 to"),
        ({"most_sales": "many"}, "from 1 to"),
        ({"most_sales": "9" * 30}, "from 1 to"),
        ({"success_url": "javascript:alert(1)"}, "scheme"),
        ({"success_url": "shop.example"}, "The address must be an absolute URL"),
    ],
)
async def test_what_can_not_be_sold_so_is_said_beside_its_field(
    owner: Visitor, typed: dict[str, Any], said: str
) -> None:
    answer = await make(owner, **typed)
    assert answer.status_code == 400
    assert said in text_of(answer), text_of(answer)
    assert "is-invalid" in answer.text


@pytest.mark.parametrize("content", [b"<svg onload=alert(1)>", b"GIF89a" + bytes(50), picture()[:200]])
async def test_what_is_no_picture_is_refused(owner: Visitor, content: bytes) -> None:
    answer = await make(owner, content)
    assert (answer.status_code, "is-invalid" in answer.text) == (400, True)


async def test_another_side_and_another_shop_have_other_links(owner: Visitor, sign_up: Any) -> None:
    page = leads_to(await make(owner))
    other = await sign_up("Another Shop")
    number = page.rpartition("/")[2]
    assert (await other.see(f"{other.merchant_path}/links/{number}")).status_code == 404
    assert (await other.see(page)).status_code == 404
    assert "A mug" not in (await other.see(f"{other.merchant_path}/links")).text


async def test_who_may_only_look_changes_nothing(owner: Visitor, join: Join) -> None:
    page = leads_to(await make(owner))
    viewer = await join(owner, Role.viewer)
    shown = await viewer.see(page)
    assert shown.status_code == 200
    assert "Switch it off" not in shown.text
    assert "Change it" not in shown.text
    assert (await viewer.see(f"{owner.merchant_path}/links/new")).status_code == 403


async def test_a_live_price_that_acquirers_refuse_is_said_beside_its_field(owner: Visitor) -> None:
    dinars: dict[str, Any] = {"currency": "kwd", "price": "10.125"}
    assert leads_to(await make(owner, **dinars))
    await owner.send(f"{owner.merchant_path}/links", f"{owner.merchant_path}/mode", live="1")
    refused = await make(owner, **dinars)
    assert refused.status_code == 400
    assert "Acquirers don't take 10.125 KWD" in text_of(refused)
    page = leads_to(await make(owner, **{**dinars, "price": "10.13"}))
    assert (await change(owner, page, **dinars)).status_code == 400
    assert (await make(owner, **{**CLUB, "currency": "kwd", "monthly_price": "1.005"})).status_code == 400


async def test_each_change_is_in_the_audit_log(owner: Visitor) -> None:
    page = leads_to(await make(owner))
    await switch(owner, page, "no")
    log = text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))
    assert log.count(f"payment link {page.rpartition('/')[2]}") == 2


@pytest.mark.parametrize("on", ["garbage", "", "1"])
async def test_a_switch_that_says_neither_yes_nor_no_leaves_a_link_on(owner: Visitor, on: str) -> None:
    page = leads_to(await make(owner))
    refused = await owner.send(page, f"{page}/switch", on=on)
    assert refused.status_code == 400
    assert f'"{on}" is none of the choices' in text_of(refused)
    assert "Switch it off" in text_of(await owner.see(page))


async def test_a_box_that_says_no_is_not_taken_for_a_yes(owner: Visitor) -> None:
    refused = await make(owner, coupons="0")
    assert (refused.status_code, 'id="e-coupons"' in refused.text) == (400, True)
    page = leads_to(await make(owner, picture()))
    refused = await change(owner, page, remove_picture="0")
    assert (refused.status_code, 'id="e-remove_picture"' in refused.text) == (400, True)
    assert 'name="remove_picture"' in (await owner.see(page)).text, "the picture stays"


async def test_a_limit_that_is_misspelt_or_said_twice_makes_no_link_without_it(owner: Visitor) -> None:
    for typed, said in (
        ({"most_sale": "1"}, 'There is no field "most_sale"'),
        ({"price": ["4", "5"]}, 'The field "price" was sent twice'),
    ):
        refused = await make(owner, **typed)
        assert refused.status_code == 400
        assert said in text_of(refused)
    assert "A mug" not in text_of(await owner.see(f"{owner.merchant_path}/links"))
    page = leads_to(await make(owner, most_sales="3"))
    assert (await change(owner, page, most_sale="9")).status_code == 400
    assert 'value="3"' in (await owner.see(page)).text
