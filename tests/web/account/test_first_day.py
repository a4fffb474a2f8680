"""The list of a first day: every line is true, and the first test checkout needs no code."""

from __future__ import annotations

import re

import httpx
import pytest
from tests import breaking, set_back
from tests.conftest import accept_waiting, submit_profile
from tests.web.account.conftest import Join, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import POOR, Seller, seller_of
from tests.web.account.test_branding import save as save_branding
from tests.web.account.test_settings import merchant_id, settings
from tests.web.account.test_settings import save as save_profile
from tests.web.conftest import Hold

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.payments.desk import Desk

STEPS = ("checkout", "branding", "keys", "payment", "pingback", "profile", "live")


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


def overview(visitor: Visitor) -> str:
    return f"{visitor.merchant_path}/overview"


def done(answer: httpx.Response) -> set[str]:
    """What is ticked, of the list that the page shows."""
    lines = re.findall(r'<li class="day-step( done)?">', answer.text)
    assert len(lines) == len(STEPS), text_of(answer)
    return {step for step, is_done in zip(STEPS, lines, strict=True) if is_done}


async def open_checkout(visitor: Visitor) -> str:
    page = overview(visitor)
    return leads_to(await visitor.send(page, f"{page}/test-checkout"))


async def test_each_line_is_ticked_once_it_is_true(owner: Visitor, seller: Seller) -> None:
    page = overview(owner)
    assert done(await owner.see(page)) == set()
    await open_checkout(owner)
    assert done(await owner.see(page)) == {"checkout"}
    await save_branding(owner, accent="#0a7d3c")
    await owner.send(f"{owner.merchant_path}/developers/keys/first")
    assert done(await owner.see(page)) == {"checkout", "branding", "keys"}
    await seller.sell("poor", number=POOR)
    assert "payment" not in done(await owner.see(page)), "nothing was paid"
    await seller.sell("A-1")
    assert "pingback" not in done(await owner.see(page)), "nobody has answered"
    await set_back.acknowledged(seller.database, {"merchant_id": seller.shop.merchant_id})
    assert done(await owner.see(page)) == {"checkout", "branding", "keys", "payment", "pingback"}
    await submit_profile(seller.database, seller.shop.merchant_id)
    shown = await owner.see(page)
    assert "profile" in done(shown)
    assert "Your first day: 6 of 7 done" in text_of(shown)
    await accept_waiting(seller.database, seller.shop.merchant_id)
    assert "live" not in done(await owner.see(page)), "its forms still count as test"
    await change_merchant(seller.database, seller.shop.merchant_id, test_mode=False)
    assert "Your first day" not in text_of(await owner.see(page)), "nothing is left to do"


async def test_a_test_checkout_opens_without_code_and_leads_back(owner: Visitor, database: Database) -> None:
    address = await open_checkout(owner)
    shown = await owner.see(address)
    assert shown.status_code == 200
    assert "10.00" in text_of(shown)
    columns = "live, success_url, email, key_id, parameters ->> 'api_key' as api_key"
    row = await database.fetchrow(f"select {columns} from checkout where merchant_id = $1", merchant_id(owner))
    assert row["live"] is False
    assert row["success_url"].endswith(overview(owner))
    assert row["email"] == owner.email
    key = await database.fetchval("select public_key from merchant_key where id = $1", row["key_id"])
    assert row["api_key"] == key


async def test_a_test_checkout_is_test_money_even_while_live_data_are_looked_at(
    owner: Visitor, database: Database
) -> None:
    await set_back.went_live(database, merchant_id(owner))
    await change_merchant(database, merchant_id(owner), test_mode=False)
    page = overview(owner)
    mode = f"{owner.merchant_path}/mode"
    fields = fields_of((await owner.see(page)).text, mode)
    await owner.web.post(f"{mode}/look", data={**fields, "live": "1"})
    assert "real payments" in text_of(await owner.see(page))
    await open_checkout(owner)
    assert await database.fetchval("select not bool_or(live) from checkout where merchant_id = $1", merchant_id(owner))


async def test_the_list_is_put_away_for_the_team_and_stays_away(owner: Visitor, join: Join) -> None:
    page = overview(owner)
    colleague = await join(owner, Role.developer)
    assert done(await colleague.see(page)) == set()
    assert leads_to(await owner.send(page, f"{page}/first-day")) == page
    for visitor in (owner, colleague):
        shown = text_of(await visitor.see(page))
        assert "Your first day" not in shown
        assert "Go to Developers" in shown


async def test_putting_it_away_twice_is_told_once_in_the_log(owner: Visitor, database: Database) -> None:
    page = overview(owner)
    fields = fields_of((await owner.see(page)).text, f"{page}/first-day")
    for _ in range(2):
        assert leads_to(await owner.web.post(f"{page}/first-day", data=fields)) == page
    told = "select count(*) from audit_entry where merchant_id = $1 and subject = 'first day'"
    assert await database.fetchval(told, merchant_id(owner)) == 1


async def test_who_can_do_nothing_of_it_sees_no_list(owner: Visitor, join: Join) -> None:
    page = overview(owner)
    for role in (Role.viewer, Role.support):
        visitor = await join(owner, role)
        assert "Your first day" not in text_of(await visitor.see(page))
        token = fields_of((await visitor.see("/account/security")).text, "/account/logout")
        for action in ("test-checkout", "first-day"):
            assert (await visitor.web.post(f"{page}/{action}", data=token)).status_code == 403, (role, action)


async def test_a_shop_that_takes_real_money_has_its_first_day_behind_it(hold: Hold, desk: Desk, owner: Visitor) -> None:
    shop = merchant_id(owner)
    await set_back.went_live(desk.database, shop)
    seller = seller_of(desk, owner)
    assert "Your first day" in text_of(await owner.see(overview(owner)))
    payment = await seller.sell("A-1")
    await hold.looked()
    await breaking.say(desk.database, "payment", {"merchant_id": shop, "id": payment}, live=True)
    assert "Your first day" not in text_of(await owner.see(overview(owner)))


async def test_the_live_side_says_what_is_missing_instead_of_a_test_card(owner: Visitor, database: Database) -> None:
    page = overview(owner)
    await owner.send(settings(owner, "profile"), legal_name="Corner Shop Ltd", city="Berlin")
    await owner.send(page, f"{owner.merchant_path}/mode", live="1")
    shown = await owner.see(page)
    assert "Profile: 2 of 11." in text_of(shown)
    assert "buy something with a test card" not in text_of(shown)
    assert f'href="{settings(owner, "profile")}"' in shown.text
    of_shop = {"merchant_id": merchant_id(owner)}
    await save_profile(owner)
    await breaking.say(database, "business_profile", of_shop, status="submitted", submitted_at=utc_now())
    assert "We look at your business profile" in text_of(await owner.see(page))
    await accept_waiting(database, merchant_id(owner), now=utc_now())
    assert "still count as test" in text_of(await owner.see(page))
