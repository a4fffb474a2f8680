"""A payment link's page, as a customer meets it."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests import breaking
from tests.conftest import CountRows, OpenWeb
from tests.shopfront import DECLINED, offer_link, press_pay
from tests.web.conftest import standing_still

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.web.checkout import buying
from paydesk.web.minute_budgets import MinuteBudget

HOSTILE = '"><script>alert(1)</script>{{ 7*7 }}%(x)s'


@pytest.fixture
def offered(desk: Desk, shop: Shop) -> Callable[..., Any]:
    """Make a link; the path of its page, and the link."""

    async def offer(side: Shop = shop, **offer: Any) -> tuple[str, Link]:
        link = await offer_link(desk.database, side, **offer)
        return f"/buy/{link.token(desk.vault)}", link

    return offer


def form_of(page: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)"', page))


async def press(web: httpx.AsyncClient, path: str, page: str | None = None, **typed: str) -> httpx.Response:
    """Press the button of the link's page."""
    shown = (await web.get(path)).text if page is None else page
    return await web.post(path, data={**form_of(shown), **typed})


async def test_a_link_leads_to_the_checkout_where_it_is_paid(web: httpx.AsyncClient, offered: Any) -> None:
    path, _ = await offered(most_quantity=3, description="Holds tea\nand coffee")
    shown = await web.get(path)
    assert shown.status_code == 200
    assert shown.headers["cache-control"] == "no-store"
    for said in ("A mug", "Holds tea\nand coffee", "10.00\u00a0USD", 'max="3"', "Continue to payment", "Corner Shop"):
        assert said in shown.text
    led = await press(web, path, shown.text, quantity="2")
    assert led.status_code == 303
    checkout = led.headers["location"]
    assert re.fullmatch(r"/checkout/[a-z0-9-]+", checkout)
    assert "20.00" in (await web.get(checkout)).text
    assert (await press_pay(web, checkout)).headers["location"] == "https://shop.example/thanks"


async def test_the_button_may_be_pressed_twice(web: httpx.AsyncClient, offered: Any, count_rows: CountRows) -> None:
    path, _ = await offered()
    page = (await web.get(path)).text
    first, second = [(await press(web, path, page)).headers["location"] for _ in range(2)]
    assert first == second
    assert await count_rows("checkout") == 1
    assert (await press(web, path)).headers["location"] != first


async def test_a_subscription_is_chosen_by_month_or_year(web: httpx.AsyncClient, offered: Any) -> None:
    path, _ = await offered(price=None, monthly_price=Decimal("5.00"), yearly_price=Decimal("50.00"))
    shown = (await web.get(path)).text
    assert "5.00 USD today, then 5.00 USD every month until you cancel" in shown.replace("\u00a0", " ")
    assert shown.count('type="radio"') == 2
    assert 'id="quantity"' not in shown
    led = await press(web, path, shown, rhythm="yearly")
    assert "50.00 USD every year" in (await web.get(led.headers["location"])).text.replace("\u00a0", " ")
    assert (await press(web, path, shown, rhythm="weekly")).status_code == 400


async def test_sold_out_is_said_on_the_link_and_on_a_checkout_that_came_too_late(
    web: httpx.AsyncClient, offered: Any, charges: Callable[[], list[Standing]]
) -> None:
    path, _ = await offered(most_sales=1)
    pages = [(await web.get(path)).text for _ in range(3)]
    early, late = [(await press(web, path, page)).headers["location"] for page in pages[:2]]
    assert (await press_pay(web, late, DECLINED)).status_code == 402
    await press_pay(web, early)
    for answer in (await web.get(path), await press(web, path, pages[2]), await web.get(late)):
        assert (answer.status_code, "Sold out" in answer.text) == (409, True)
    told = await press_pay(web, late)
    assert (told.status_code, "Sold out" in told.text, "You have not been charged" in told.text) == (409, True, True)
    by_script = await press_pay(web, late, accept="application/json")
    assert by_script.json() == {"redirect": late}
    assert len(charges()) == 1


async def test_no_more_can_be_chosen_than_are_left(web: httpx.AsyncClient, offered: Any) -> None:
    path, _ = await offered(most_quantity=5, most_sales=3)
    shown = await web.get(path)
    assert 'max="3"' in shown.text
    refused = await press(web, path, shown.text, quantity="4")
    assert (refused.status_code, "Choose a number from 1 to 3." in refused.text) == (400, True)
    assert 'aria-invalid="true"' in refused.text


@pytest.mark.parametrize(
    "typed",
    [
        {"quantity": "0"},
        {"quantity": "1e1"},
        {"quantity": "9" * 5000},
        {"quantity": "١"},
        {"press": ""},
        {"press": "x" * 32},
        {"quantity[]": "1", "quantity": "-1"},
    ],
)
async def test_what_the_page_would_not_post_makes_no_checkout(
    web: httpx.AsyncClient, offered: Any, count_rows: CountRows, typed: dict[str, str]
) -> None:
    path, _ = await offered(most_quantity=5)
    answer = await press(web, path, **typed)
    assert answer.status_code in (400, 413), answer.status_code
    assert await count_rows("checkout") == 0


async def test_words_of_the_shop_are_words_and_nothing_else(web: httpx.AsyncClient, offered: Any) -> None:
    path, _ = await offered(title=HOSTILE, description=HOSTILE, most_sales=1)
    shown = await web.get(path)
    checkout = (await press(web, path, shown.text)).headers["location"]
    for page in (shown, await web.get(checkout)):
        assert "<script>alert" not in page.text
        assert "{{ 7*7 }}" in page.text
        assert "script-src 'self'" in page.headers["content-security-policy"]


async def test_a_link_that_is_off_or_suspended_says_so(
    web: httpx.AsyncClient, offered: Any, desk: Desk, shop: Shop, count_rows: CountRows
) -> None:
    path, link = await offered()
    page = (await web.get(path)).text
    await breaking.say(desk.database, "payment_link", {"id": link.row_id}, active=False)
    for answer in (await web.get(path), await press(web, path, page)):
        assert (answer.status_code, "not for sale at the moment" in answer.text) == (410, True)
    assert await count_rows("checkout") == 0


@pytest.mark.parametrize("way", [{}, {"price": None, "monthly_price": Decimal("5.00")}], ids=["once", "monthly"])
async def test_a_link_whose_currency_was_withdrawn_is_not_for_sale(
    web: httpx.AsyncClient, offered: Any, desk: Desk, count_rows: CountRows, way: dict[str, Any]
) -> None:
    path, link = await offered(most_quantity=5, **way)
    page = (await web.get(path)).text
    await breaking.say(desk.database, "payment_link", {"id": link.row_id}, currency="BGN")
    for answer in (await press(web, path, page), await web.get(path)):
        assert (answer.status_code, "not for sale at the moment" in answer.text) == (410, True), answer.text
        assert "Choose a number" not in answer.text
    assert await count_rows("checkout") == 0


async def test_a_wrong_link_is_no_page_and_the_sandbox_knows_no_live_one(
    web: httpx.AsyncClient, offered: Any, shop: Shop
) -> None:
    path, _ = await offered()
    assert (await web.get(f"/sandbox{path}")).status_code == 200
    live, _ = await offered(Shop(shop.merchant_id, live=True))
    assert (await web.get(live)).status_code == 200
    for wrong in (
        f"/sandbox{live}",
        path[:-1] + ("0" if path[-1] != "0" else "1"),
        "/buy/x",
        path.replace("buy", "checkout"),
        f"/buy/t{2 * 10**13 + 1:x}-{'0' * 48}",
        f"/buy/t{'f' * 14}-{'0' * 48}",
        f"/buy/t{shop.merchant_id:x}-{'f' * 48}",
    ):
        assert (await web.get(wrong)).status_code == 404, wrong
        if "/buy/" in wrong:
            assert (await web.post(wrong, data={})).status_code == 404, wrong


async def test_in_the_sandbox_everything_stays_there(web: httpx.AsyncClient, offered: Any) -> None:
    path, _ = await offered()
    shown = (await web.get(f"/sandbox{path}")).text
    assert f'action="/sandbox{path}"' in shown
    assert "No real money moves here" in shown
    led = await press(web, f"/sandbox{path}", shown)
    assert led.headers["location"].startswith("/sandbox/checkout/")


async def test_one_address_makes_only_so_many_checkouts_a_minute(
    open_web: OpenWeb, offered: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buying, "_presses", MinuteBudget(everybody=100, each=2))
    path, _ = await offered()
    web = await open_web(wire=standing_still())
    statuses = [(await press(web, path)).status_code for _ in range(3)]
    assert statuses == [303, 303, 429]


@pytest.mark.parametrize("language", ["de", "fr", "es", "it", "pl", "pt", "tr", "vi", "zh", "ja", "ar"])
async def test_it_speaks_the_customers_language(web: httpx.AsyncClient, offered: Any, language: str) -> None:
    path, _ = await offered(most_quantity=2)
    shown = (await web.get(path, headers={"Accept-Language": language})).text
    assert f'lang="{language}"' in shown
    assert "Quantity" not in shown
    assert "Continue to payment" not in shown


async def test_the_first_view_is_light(web: httpx.AsyncClient, offered: Any) -> None:
    path, _ = await offered(most_quantity=2, description="words " * 300)
    assert len((await web.get(path)).content) < 8_000
