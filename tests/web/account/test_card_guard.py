"""What a merchant sees of card testing, and how it asks for more than the operator does,
never for less.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from tests import set_back
from tests.web.account.conftest import Join, Visitor, leads_to, text_of
from tests.web.account.selling import GOOD, seller_of

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import Role
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

DECLINED = "4000000000000002"


def page_of(visitor: Visitor) -> str:
    return f"{visitor.merchant_path}/settings/cards"


async def look_at_live(visitor: Visitor, database: Database) -> Shop:
    """The visitor's merchant may be live, and they look at that side."""
    merchant_id = int(visitor.merchant_path.split("/")[2])
    await set_back.went_live(database, merchant_id)
    await database.execute(
        "update account_session s set merchant_id = b.merchant_id, live = true"
        "  from membership b where b.person_id = s.person_id and b.merchant_id = $1",
        merchant_id,
    )
    return Shop(merchant_id, live=True)


async def test_the_page_counts_tries_declines_and_what_was_stopped(owner: Visitor, desk: Desk) -> None:
    seller = seller_of(desk, owner)
    leads_to(await owner.send(page_of(owner), page_of(owner), address="2"))
    for number in (GOOD, DECLINED, DECLINED, DECLINED):
        await seller.sell(f"order-{number}", number=number)
        await desk.finish()
    text = text_of(await owner.see(page_of(owner)))
    assert "10 minutes 3 2 67 % 1" in text
    assert "Normal" in text


async def test_limits_of_ones_own_hold_and_are_kept_in_the_log(owner: Visitor, desk: Desk) -> None:
    page = page_of(owner)
    assert leads_to(await owner.send(page, page, card="1", always_authenticate="1")) == page
    shown = await owner.see(page)
    assert 'name="card" type="text" value="1"' in shown.text
    assert "as you have chosen" in text_of(shown)
    seller = seller_of(desk, owner)
    payment = await seller.sell()
    assert await seller.state(payment) == "challenged"
    log = text_of(await owner.see(f"{owner.merchant_path}/settings/audit"))
    assert "Changed the limits against card testing" in log
    for change in ("one card: operator → 1", "Ask everybody for 3-D Secure: No → Yes", "Test data: Yes"):
        assert change in log
    assert leads_to(await owner.send(page, page)) == page
    assert "as you have chosen" not in text_of(await owner.see(page)), "taken back to the operator's"


async def test_a_box_that_says_no_asks_nobody(owner: Visitor) -> None:
    refused = await owner.send(page_of(owner), page_of(owner), always_authenticate="0")
    assert (refused.status_code, 'id="e-always_authenticate"' in refused.text) == (400, True)
    assert not re.search(r'name="always_authenticate"[^>]*checked', (await owner.see(page_of(owner))).text)


async def test_saving_what_is_there_logs_nothing(owner: Visitor, desk: Desk) -> None:
    leads_to(await owner.send(page_of(owner), page_of(owner)))
    assert await seller_of(desk, owner).audited("card_guard_changed") == []


@pytest.mark.parametrize("typed", ["0", "21", "-1", "1.5", "x", "99999999", "１", "1e1", " 1 2"])
async def test_a_live_limit_is_lowered_and_never_raised(owner: Visitor, database: Database, typed: str) -> None:
    shop, page = await look_at_live(owner, database), page_of(owner)
    answer = await owner.send(page, page, card=typed, address="3")
    assert answer.status_code == 400, text_of(answer)
    assert 'id="e-card"' in answer.text
    assert 'value="3"' in answer.text, "what was typed stays"
    assert await database.fetchval("select count(*) from card_guard where merchant_id = $1", shop.merchant_id) == 0


async def test_the_operators_live_limits_are_named(owner: Visitor, database: Database) -> None:
    await look_at_live(owner, database)
    text = text_of(await owner.see(page_of(owner)))
    for words in ("The operator's: 10.", "The operator's: 30.", "The operator's: 20.", "The operator's: 50."):
        assert words in text
    assert "Forget the tries" not in text


async def test_who_may_not_change_settings_sees_figures_and_limits(
    owner: Visitor, join: Join, database: Database
) -> None:
    for role in (Role.viewer, Role.support):
        member = await join(owner, role)
        shown = await member.see(page_of(owner))
        assert "Attempts to pay one checkout" in text_of(shown)
        assert 'name="always_authenticate"' not in shown.text
    developer = await join(owner, Role.developer)
    assert leads_to(await developer.send(page_of(owner), page_of(owner), card="5")) == page_of(owner)


async def test_a_developer_changes_no_live_limits(owner: Visitor, join: Join, database: Database) -> None:
    developer = await join(owner, Role.developer)
    token = await developer.see(page_of(owner))
    csrf = token.text.partition('name="csrf" value="')[2].partition('"')[0]
    await look_at_live(owner, database)
    answer = await developer.web.post(page_of(owner), data={"csrf": csrf, "card": "1"})
    assert answer.status_code == 403
    assert 'name="card"' not in (await developer.see(page_of(owner))).text


async def test_the_test_side_begins_anew_and_the_live_one_does_not(
    owner: Visitor, desk: Desk, database: Database
) -> None:
    seller, page = seller_of(desk, owner), page_of(owner)
    leads_to(await owner.send(page, page, address="1"))
    await seller.sell("order-1", number=DECLINED)
    assert await seller.state(await seller.sell("order-1")) == "declined", "stopped"
    await set_back.times(
        database, "card_guard", {"merchant_id": seller.shop.merchant_id}, paused_until=utc_now() + timedelta(hours=1)
    )
    assert "Paused" in text_of(await owner.see(page))
    assert leads_to(await owner.send(page, f"{page}/anew")) == page
    text = text_of(await owner.see(page))
    assert "Normal" in text
    assert "10 minutes 0 0 – 0" in text
    assert await seller.state(await seller.sell("order-1")) == "captured"
    csrf = (await owner.see(page)).text.partition('name="csrf" value="')[2].partition('"')[0]
    await look_at_live(owner, database)
    assert (await owner.web.post(f"{page}/anew", data={"csrf": csrf})).status_code == 403
