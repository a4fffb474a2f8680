"""Packages side by side, as a customer meets them: without a script, in their language."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests import breaking
from tests.conftest import CountRows
from tests.domain.selling.test_plans import SEATS, YEARLY
from tests.shopfront import MONTHLY, offer_packages, press_pay

from paydesk.core.periods import Period
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

HOSTILE = '"><script>alert(1)</script>{{ 7*7 }}%(x)s'
SEATS_BY_YEAR = replace(SEATS, price=Decimal("40.00"), period=Period(1, "year"), trial=None, limit=0)


@pytest.fixture
def offered(desk: Desk, shop: Shop) -> Callable[..., Any]:
    """Make a page of packages; its path."""

    async def offer(*sold: Any, **offer: Any) -> str:
        link = await offer_packages(desk.database, shop, *sold, **{"title": "Our plans", **offer})
        return f"/buy/{link.token(desk.vault)}"

    return offer


@pytest.fixture
async def path(offered: Any) -> str:
    """Of two packages, each by month and year."""
    return str(await offered([MONTHLY, YEARLY], [SEATS, SEATS_BY_YEAR]))


def plans_of(page: httpx.Response) -> dict[str, str]:
    """The words of each package that the page shows, by its name."""
    shown = re.findall(r'<form method="post"(.*?)</form>', page.text, re.S)
    words = [" ".join(re.sub(r"<[^>]+>", " ", "<" + one).split()) for one in shown]
    return {str(re.search(r"<h2><bdi>(.*?)</bdi>", one)[1]): said for one, said in zip(shown, words, strict=True)}  # type: ignore[index]


def form_of(page: httpx.Response, name: str) -> dict[str, str]:
    """What is hidden in the form of a package."""
    (form,) = [one for one in re.findall(r"<form .*?</form>", page.text, re.S) if f"<bdi>{name}</bdi>" in one]
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)"', form))


async def subscribe(web: httpx.AsyncClient, path: str, name: str, *, period: str = "", **typed: str) -> httpx.Response:
    """Press the button of a package."""
    shown = await web.get(path, params={"period": period} if period else {})
    return await web.post(path, data={**form_of(shown, name), **typed})


async def test_they_stand_side_by_side_and_lead_to_the_checkout(web: httpx.AsyncClient, path: str) -> None:
    shown = await web.get(path)
    assert shown.status_code == 200
    assert shown.headers["cache-control"] == "no-store"
    assert "<script" not in shown.text
    plans = plans_of(shown)
    assert list(plans) == ["Coffee club", "Seats"]
    assert "10.00 USD every month 10.00 USD today, then 10.00 USD every month until you cancel" in plans["Coffee club"]
    assert "4.00 USD every month 1.00 USD today for 2 weeks, then 4.00 USD every month" in plans["Seats"]
    led = await subscribe(web, path, "Seats")
    assert led.status_code == 303
    checkout = await web.get(led.headers["location"])
    assert "Subscribe to Seats" in checkout.text
    assert (await press_pay(web, led.headers["location"], agree="en")).status_code == 303


async def test_the_switch_is_links_that_work_without_a_script(web: httpx.AsyncClient, path: str) -> None:
    by_month = await web.get(path)
    links = re.findall(r'<a href="([^"]+)"( aria-current="true")?>(every \w+)</a>', by_month.text)
    assert [(words, bool(here)) for _, here, words in links] == [("every month", True), ("every year", False)]
    by_year = await web.get(links[1][0])
    assert "100.00 USD every year" in plans_of(by_year)["Coffee club"]
    assert "40.00 USD every year" in plans_of(by_year)["Seats"]
    led = await subscribe(web, path, "Coffee club", period="1y")
    assert "100.00\u00a0USD every year" in (await web.get(led.headers["location"])).text
    for wrong in ("2m", "", "<", "1" * 500):
        assert plans_of(await web.get(path, params={"period": wrong})) == plans_of(by_month)


async def test_a_package_that_is_paid_in_one_way_alone_stands_in_each(web: httpx.AsyncClient, offered: Any) -> None:
    path = await offered([MONTHLY, YEARLY], [SEATS])
    shown = plans_of(await web.get(path, params={"period": "1y"}))
    assert "100.00 USD every year" in shown["Coffee club"]
    assert "4.00 USD every month" in shown["Seats"]


async def test_where_all_are_paid_alike_there_is_no_switch(web: httpx.AsyncClient, offered: Any) -> None:
    assert "<nav" not in (await web.get(await offered([MONTHLY], [SEATS]))).text


async def test_one_package_alone_is_a_link_as_any_other(web: httpx.AsyncClient, offered: Any) -> None:
    path = await offered([MONTHLY, YEARLY])
    shown = await web.get(path)
    assert shown.text.count('type="radio"') == 2
    versions = re.findall(r'name="version" value="(\d+)"', shown.text)
    press = re.findall(r'name="press" value="(\w+)"', shown.text)[0]
    led = await web.post(path, data={"press": press, "version": versions[1]})
    assert "100.00\u00a0USD every year" in (await web.get(led.headers["location"])).text


async def test_of_one_version_alone_nothing_has_to_be_chosen(web: httpx.AsyncClient, offered: Any) -> None:
    path = await offered([MONTHLY])
    shown = await web.get(path)
    assert "radio" not in shown.text
    assert "10.00 USD today, then 10.00 USD every month until you cancel" in shown.text.replace("\u00a0", " ")
    pressed = re.findall(r'name="press" value="(\w+)"', shown.text)[0]
    led = await web.post(path, data={"press": pressed})
    assert "Subscribe to Coffee club" in (await web.get(led.headers["location"])).text


async def test_how_many_is_chosen_where_the_shop_sells_several(
    web: httpx.AsyncClient, offered: Any, desk: Desk, shop: Shop
) -> None:
    path = await offered([MONTHLY, YEARLY], [SEATS, SEATS_BY_YEAR], most_quantity=5)
    assert "Quantity" not in (await web.get(path)).text
    await breaking.say(desk.database, "merchant", {"id": shop.merchant_id}, signs_quantities=True)
    led = await subscribe(web, path, "Coffee club", quantity="3", period="1y")
    assert "3 × 100.00\u00a0USD = 300.00\u00a0USD" in (await web.get(led.headers["location"])).text
    for wrong in ("6", "0", "x", "9" * 400):
        refused = await subscribe(web, path, "Coffee club", quantity=wrong, period="1y")
        assert refused.status_code == 400
        assert "Choose a number from 1 to 5." in refused.text
        assert "100.00 USD every year" in plans_of(refused)["Coffee club"], "the switch stays where it was"


async def test_sold_out_is_said_for_the_whole_page(web: httpx.AsyncClient, offered: Any) -> None:
    path = await offered([MONTHLY], [SEATS], most_sales=1)
    early, late = [await subscribe(web, path, name) for name in ("Coffee club", "Seats")]
    page = await web.get(path)
    assert (await press_pay(web, early.headers["location"], agree="en")).status_code == 303
    for answer in (
        await web.get(path),
        await web.post(path, data=form_of(page, "Seats")),
        await press_pay(web, late.headers["location"], agree="en"),
    ):
        assert (answer.status_code, "Sold out" in answer.text) == (409, True)


@pytest.mark.parametrize("typed", [{"version": "0"}, {"version": ""}, {"version": "9" * 40}, {"press": ""}])
async def test_what_the_page_would_not_post_makes_no_checkout(
    web: httpx.AsyncClient, path: str, count_rows: CountRows, typed: dict[str, str]
) -> None:
    assert (await subscribe(web, path, "Seats", **typed)).status_code == 400
    assert await count_rows("checkout") == 0


async def test_words_of_the_shop_are_words_and_nothing_else(web: httpx.AsyncClient, offered: Any) -> None:
    path = await offered([replace(MONTHLY, name=HOSTILE)], [SEATS], title=HOSTILE, description=HOSTILE)
    shown = await web.get(path)
    assert "<script" not in shown.text
    assert "{{ 7*7 }}" in shown.text
    assert "script-src 'self'" in shown.headers["content-security-policy"]


@pytest.mark.parametrize("language", ["de", "fr", "es", "it", "pl", "pt", "tr", "vi", "zh", "ja", "ar"])
async def test_it_speaks_the_customers_language(
    web: httpx.AsyncClient, offered: Any, desk: Desk, shop: Shop, language: str
) -> None:
    await breaking.say(desk.database, "merchant", {"id": shop.merchant_id}, signs_quantities=True)
    path = await offered([MONTHLY, YEARLY], [SEATS], most_quantity=3)
    shown = (await web.get(path, headers={"Accept-Language": language})).text
    assert f'lang="{language}"' in shown
    for english in ("Quantity", "Subscribe to", "every month", "until you cancel", "Terms", "Test mode"):
        assert english not in shown


async def test_the_first_view_is_light(web: httpx.AsyncClient, offered: Any) -> None:
    about = "\n".join(["All that you need"] * 20)
    many = [[replace(MONTHLY, sku_id=f"p{number}"), replace(YEARLY, sku_id=f"p{number}")] for number in range(6)]
    path = await offered(*many, description="words " * 300)
    page = await web.get(path)
    assert len(page.content) + 6 * len(about) < 20_000
