"""A coupon that is typed on the checkout page."""

from __future__ import annotations

import re
from decimal import Decimal

import httpx
import pytest
from tests import breaking, set_back
from tests.changing import change
from tests.conftest import OpenWeb
from tests.domain.coupons.test_coupons import coupon
from tests.shopfront import MONTHLY, press_pay
from tests.till import Till
from tests.web.conftest import standing_still

from paydesk.domain.coupons.keeping import switch_coupon
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.web.checkout import coupons
from paydesk.web.minute_budgets import MinuteBudget


@pytest.fixture
async def till(desk: Desk, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Till:
    monkeypatch.setattr(coupons, "_presses", MinuteBudget(everybody=100, each=60))
    await set_back.no_codes_counted(desk.database)
    await breaking.say(desk.database, "merchant", {"id": shop.merchant_id}, types_coupons=True)
    return Till(desk, shop)


async def page_of(till: Till) -> str:
    return f"/checkout/{(await till.order(terms=MONTHLY)).token(till.desk.vault)}"


async def apply(web: httpx.AsyncClient, page: str, code: str = "half") -> httpx.Response:
    return await web.post(f"{page}/coupon", data={"code": code})


def words(response: httpx.Response) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", response.text).replace("\u00a0", " ").split())


async def test_the_price_is_shown_before_it_is_agreed_to_and_paid(web: httpx.AsyncClient, till: Till) -> None:
    await coupon(till, percent="50", periods="3")
    page = await page_of(till)
    led = await apply(web, page)
    assert led.status_code == 303
    reduced = led.headers["location"]
    shown = words(await web.get(reduced))
    assert "Coupon HALF: 5.00 USD instead of 10.00 USD" in shown
    terms = "5.00 USD today, then 5.00 USD every month for 2 months, then 10.00 USD every month until you cancel"
    assert f"I agree that Corner Shop charges this card for “Coffee club”: {terms}." in shown
    assert (await press_pay(web, reduced, agree="en")).status_code == 303
    assert [row["amount"] for row in await till.payments()] == [Decimal(5)]
    assert "10.00" in words(await web.get(page))
    assert (await web.get(reduced)).status_code == 200


async def test_what_leaves_nothing_is_shown_as_free_for_so_long_and_takes_a_card(
    web: httpx.AsyncClient, till: Till
) -> None:
    await coupon(till, percent="100", periods="3")
    reduced = (await apply(web, await page_of(till))).headers["location"]
    shown = words(await web.get(reduced))
    for said in ("Free today", "Coupon HALF: 0.00 USD instead of 10.00 USD", "only verified, not charged"):
        assert said in shown
    assert (
        "charges this card for “Coffee club”: Free for 3 months, then 10.00 USD every month until you cancel." in shown
    )
    assert "trial" not in shown
    assert (await press_pay(web, reduced, agree="en")).status_code == 303
    assert [row["amount"] for row in await till.payments()] == [0]
    done = words(await web.get(f"{reduced}/result"))
    assert "Nothing was charged today" in done
    assert "trial" not in done


async def test_the_page_leads_back_to_the_price_without_it(web: httpx.AsyncClient, till: Till) -> None:
    await coupon(till)
    page = await page_of(till)
    reduced = (await apply(web, page)).headers["location"]
    assert f'<a href="{page}">Pay without it</a>' in (await web.get(reduced)).text
    assert 'name="code"' in (await web.get(page)).text
    assert (await apply(web, reduced)).headers["location"] == reduced


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({}, "other", "There is no such coupon."),
        ({}, "", "There is no such coupon."),
        ({}, '"><script>', "There is no such coupon."),
        ({"skus": ("tea",)}, "half", "This coupon is not for this order."),
        ({"amount": "5", "currency": "EUR"}, "half", "This coupon is not for this order."),
    ],
)
async def test_what_does_not_fit_is_said_on_the_page(
    web: httpx.AsyncClient, till: Till, given: dict[str, object], code: str, said: str
) -> None:
    await coupon(till, **given)
    answer = await apply(web, await page_of(till), code)
    assert (answer.status_code, said in words(answer)) == (409, True)


async def test_one_that_is_used_up_meanwhile_leads_on_without_it(web: httpx.AsyncClient, till: Till) -> None:
    made = await coupon(till)
    page = await page_of(till)
    reduced = (await apply(web, page)).headers["location"]
    await switch_coupon(till.database, till.shop, made.id, on=False)
    pressed = await press_pay(web, reduced, agree="en")
    assert (pressed.status_code, await till.payments()) == (409, [])
    shown = await web.get(reduced)
    assert f'<a class="main" href="{page}">Go on without the coupon</a>' in shown.text
    assert "You have not been charged." in words(shown)


async def test_who_has_used_it_is_told_so(web: httpx.AsyncClient, till: Till) -> None:
    await coupon(till, percent="50", most_per_customer="1")
    for expected in (303, 409):
        reduced = (await apply(web, await page_of(till))).headers["location"]
        pressed = await press_pay(web, reduced, agree="en")
        assert pressed.status_code == expected
    assert "You have used this coupon before" in words(pressed)
    assert len(await till.payments()) == 1


async def test_codes_are_not_found_by_guessing_whatever_process_answers(
    web: httpx.AsyncClient, till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch, "paydesk.domain.coupons.guessing", "TRIES_OF_CLIENT", 3)
    await coupon(till)
    page = await page_of(till)
    assert [(await apply(web, page, f"guess-{number}")).status_code for number in range(3)] == [409] * 3
    monkeypatch.setattr(coupons, "_presses", MinuteBudget(everybody=100, each=60))
    refused = await apply(web, page)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert (await web.get(page)).status_code == 200


async def test_one_process_reads_so_many_presses(
    open_web: OpenWeb, till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coupons, "_presses", MinuteBudget(everybody=100, each=1))
    page = await page_of(till)
    web = await open_web(wire=standing_still())
    assert [(await apply(web, page)).status_code for _ in range(2)] == [409, 429]


async def test_nothing_is_typed_where_the_account_does_not_allow_it(web: httpx.AsyncClient, till: Till) -> None:
    await coupon(till)
    await breaking.say(till.database, "merchant", {"id": till.shop.merchant_id}, types_coupons=False)
    page = await page_of(till)
    assert 'name="code"' not in (await web.get(page)).text
    assert (await apply(web, page)).headers["location"] == page
    once = f"/checkout/{(await till.order()).token(till.desk.vault)}"
    assert 'name="code"' not in (await web.get(once)).text
