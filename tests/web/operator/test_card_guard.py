"""A pause for card testing, as an operator ends it."""

from __future__ import annotations

from datetime import timedelta

from tests.web.account.conftest import Visitor, fields_of, leads_to, text_of

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.card_guard import Limits, count_declines


async def test_an_operator_ends_a_pause_and_its_alarm_with_it(
    operator: Visitor, database: Database, shop: Shop
) -> None:
    page = f"/operator/merchants/{shop.merchant_id}"
    live = Shop(shop.merchant_id, live=True)
    await _paused(database, live)
    assert "Paused" in text_of(await operator.see(page))
    assert leads_to(await operator.send(page, f"{page}/lift")) == page
    shown = text_of(await operator.see(page))
    assert "Cards are taken again" in shown
    assert "3-D Secure for all" in shown
    settled = await database.fetchval(
        "select settled_by from alarm where merchant_id = $1 and live and kind = 'card_testing'", shop.merchant_id
    )
    assert settled.startswith("person ")
    audited = await database.fetchrow(
        "select operator, subject from audit_entry where merchant_id = $1 and action = 'card_pause_lifted'",
        shop.merchant_id,
    )
    assert audited is not None
    assert (audited["operator"], audited["subject"]) == (True, "card guard")
    # Declines of before the lift must not bring the pause back with the next one.
    await count_declines(database, [live], lambda _: Limits(declines_before_challenge=4), now=utc_now())
    paused = await database.fetchval("select paused_until from card_guard where merchant_id = $1", shop.merchant_id)
    assert paused is None


async def _paused(database: Database, shop: Shop) -> None:
    """Most tries of the last minutes were declined, also with 3-D Secure asked of everybody."""
    limits = Limits(declines_before_challenge=4)
    for minutes in (6, 3):
        at = utc_now() - timedelta(minutes=minutes)
        for _ in range(4):
            await count_declines(database, [shop], lambda _: limits, now=at)


async def test_there_is_no_pause_to_end_twice(operator: Visitor, database: Database, shop: Shop) -> None:
    page = f"/operator/merchants/{shop.merchant_id}"
    await _paused(database, Shop(shop.merchant_id, live=True))
    form = fields_of((await operator.see(page)).text, f"{page}/lift")
    assert leads_to(await operator.web.post(f"{page}/lift", data=form)) == page
    assert (await operator.web.post(f"{page}/lift", data=form)).status_code == 409
    assert (await operator.web.post(f"{page}/lift", data={**form, "side": "test"})).status_code == 409
