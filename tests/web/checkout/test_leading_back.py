"""Where a customer is led after paying: to the shop once, into an app by a button,
to a stranger's only knowingly.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests import breaking, set_back
from tests.shopfront import open_page, press_pay

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.core.urls import is_systems_own
from paydesk.database.pool import Database
from paydesk.domain.merchants.app_schemes import parse_app_schemes
from paydesk.domain.merchants.customer_links import LinkTo, open_link
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import find_checkout
from paydesk.domain.payments.returning import Way, way_back

SignedForm = Callable[..., dict[str, Any]]

SHOP, APP = "https://shop.example/thanks?order=1", "shopapp://paid?x=1"
SECURE = "4000000000003220"


async def add_owner(database: Database, merchant: Merchant, *, confirmed: bool) -> None:
    """Give the account an owner, as signing up does; by then the address is not confirmed."""
    person = await set_back.somebody(database, confirmed=confirmed)
    await set_back.member(database, merchant.id, person)


def shown(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return html.unescape(re.sub(r"(?<=>)\s*\n\s*|\s*\n\s*(?=<)", "", answer.text))


async def test_a_customer_is_led_back_once_and_later_by_a_button(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    path = await open_page(web, signed_form())
    assert (await press_pay(web, path)).headers["location"] == SHOP
    for address in (path, f"{path}/result", f"{path}/result"):
        assert f'<a class="main" href="{SHOP}">Continue to Corner Shop</a>' in shown(await web.get(address))
    assert (await press_pay(web, path)).headers["location"] == f"{path}/result"


async def test_coming_back_from_the_bank_leads_on_once(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form())
    bank_page = (await press_pay(web, path, SECURE)).headers["location"]
    await web.post(bank_page, data={"decision": "approve"})
    answers = await asyncio.gather(*(web.get(f"{path}/result") for _ in range(8)))
    # Whoever comes just as another answer is written down may be led to our own page first.
    onwards = [to for answer in answers if (to := answer.headers.get("location", path)) != path]
    assert len(onwards) == 1
    assert {answer.status_code for answer in answers} <= {200, 303}


async def test_an_app_is_opened_by_a_button(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form(success_url=APP))
    assert "shopapp" not in (await web.get(path)).headers["content-security-policy"]
    for _ in range(2):
        assert (await press_pay(web, path)).headers["location"] == f"{path}/result"
        assert f'<a class="main" href="{APP}">Continue to Corner Shop</a>' in shown(await web.get(f"{path}/result"))


@pytest.mark.parametrize("url", [APP, "ShopApp://paid?x=1"])
async def test_an_app_that_the_account_has_named_is_opened_at_once(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, url: str
) -> None:
    await change_merchant(database, merchant.id, app_schemes=["ShopApp://"])
    path = await open_page(web, signed_form(success_url=url))
    assert "shopapp:" in (await web.get(path)).headers["content-security-policy"]
    assert (await press_pay(web, path)).headers["location"] == url
    assert url in shown(await web.get(f"{path}/result"))


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://user@evil.example:8443/login?next=shop", "https://evil.example:8443"),
        ("https://paypäl.example/x", "https://xn--paypl-jra.example"),
        (APP, "shopapp:"),
    ],
)
async def test_a_shop_that_nobody_stands_behind_yet_says_where_its_button_leads(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant, url: str, named: str
) -> None:
    await add_owner(database, merchant, confirmed=False)
    await change_merchant(database, merchant.id, app_schemes=["shopapp"])
    path = await open_page(web, signed_form(success_url=url))
    page = await web.get(path)
    assert url.partition("//")[2].partition("/")[0] not in html.unescape(page.text), "nor before it is paid"
    assert (await press_pay(web, path)).headers["location"] == f"{path}/result"
    for address in (path, f"{path}/result"):
        text = shown(await web.get(address))
        assert f"The button leads to another site: {named}." in text
        assert f'href="{url}"' in text
        assert f">Continue to {named}</a>" in text
        assert "Continue to Corner Shop" not in text


async def test_the_way_back_is_the_same_in_test_mode_as_in_live(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault
) -> None:
    path = await open_page(web, signed_form())
    link = open_link(vault, LinkTo.CHECKOUT, path.rpartition("/")[2])
    found = await find_checkout(database, link, now=utc_now())
    sides = [replace(found, shop=Shop(found.shop.merchant_id, live)) for live in (False, True)]
    for confirmed, url, way in ((True, SHOP, Way.ITSELF), (True, APP, Way.BUTTON), (False, SHOP, Way.NAMED)):
        assert [way_back(replace(one, merchant_confirmed=confirmed, success_url=url)) for one in sides] == [way, way]


async def test_one_owner_with_a_confirmed_address_is_enough(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    await add_owner(database, merchant, confirmed=False)
    await add_owner(database, merchant, confirmed=True)
    path = await open_page(web, signed_form())
    assert (await press_pay(web, path)).headers["location"] == SHOP


async def test_a_checkout_from_before_never_links_what_is_refused_now(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form())
    await breaking.say(database, "checkout", {"merchant_id": merchant.id}, success_url="search-ms:query=x")
    assert (await press_pay(web, path)).headers["location"] == f"{path}/result"
    text = shown(await web.get(f"{path}/result"))
    assert "Thank you for your payment" in text
    assert "search-ms" not in text


def test_schemes_are_kept_in_one_form() -> None:
    assert parse_app_schemes([" ShopApp://", "shopapp", "com.shop.app:", ""]) == ("com.shop.app", "shopapp")


@pytest.mark.parametrize("name", ["https", "http://x", "javascript", "MS-Word", "intent", "shop app", "1app", "a" * 65])
def test_what_is_no_apps_own_scheme_is_refused(name: str) -> None:
    with pytest.raises(Malformed, match="not the scheme of an app of your own"):
        parse_app_schemes([name])


def test_a_shop_has_ten_apps_at_most() -> None:
    with pytest.raises(Malformed, match="at most 10"):
        parse_app_schemes([f"app{n}" for n in range(11)])


@pytest.mark.parametrize("scheme", ["shopapp", "com.shop.app", "web+shop", "fb123", "chromeshop", "https"])
def test_shops_and_apps_are_not_taken_for_the_systems_own(scheme: str) -> None:
    assert not is_systems_own(scheme)
