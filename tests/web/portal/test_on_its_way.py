"""What a customer reads while the money of a renewal is on its way, and what they may do."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from tests.web.portal.conftest import Subscriber, text_of
from tests.web.portal.test_paying import link_for

from paydesk.adapters.acquirers.interface import Pending
from paydesk.core.clock import utc_now
from paydesk.domain.billing.charging import BillingRun, Side
from paydesk.domain.payments.pending import OnItsWay, record_pending

SURE_BY = utc_now() + timedelta(days=9)


async def send_off(subscriber: Subscriber) -> None:
    """The next charge is made, and its bank takes some days over it."""
    due = (await subscriber.now()).date_next
    assert due is not None
    (charge,) = await BillingRun(subscriber.desk).claim([Side(subscriber.shop, due)], utc_now())
    on_its_way = OnItsWay(subscriber.shop, charge.attempt_id, Pending("debit", SURE_BY))
    assert await record_pending(subscriber.desk.database, [on_its_way], now=utc_now())


@pytest.fixture
async def waiting(subscriber: Subscriber) -> Subscriber:
    await send_off(subscriber)
    return subscriber


async def test_the_portal_says_so_and_by_when(waiting: Subscriber) -> None:
    shown = await waiting.page()
    assert re.search(r"Your payment of .+ is on its way\.", shown)
    assert f"until {SURE_BY:%B} {SURE_BY.day}, {SURE_BY.year} at the latest" in shown
    assert "just now" not in shown
    assert "Next charge" not in shown


async def test_it_can_be_cancelled_and_that_one_stands(waiting: Subscriber) -> None:
    assert "that one stands if your bank pays it" in await waiting.page(below="/cancel")
    assert (await waiting.cancel()).status_code == 303
    assert "One charge had begun before" in await waiting.page()


async def test_after_a_failure_the_mail_s_link_asks_nobody_to_pay_again(failing: Subscriber) -> None:
    payer = await link_for(failing)
    await send_off(failing)
    shown = text_of(await payer.see())
    assert "Your payment is on its way" in shown
    assert "<form" not in shown
    assert (await payer.see("/status")).json()["state"] == "done"
    assert "failed" not in (await failing.page()).partition("Payments")[0]
