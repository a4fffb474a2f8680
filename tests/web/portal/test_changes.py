"""What customers do with a subscription themselves, as far as its merchant allows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests import set_back
from tests.breaking import say
from tests.web.portal.conftest import Subscribe

from paydesk.core.clock import utc_now
from paydesk.domain.merchants.customer_ways import PortalCancels
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.subscriptions.changing import cancel_later, carry_out_due, pause
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan


async def let(subscriber: Any, cancels: PortalCancels = PortalCancels.NOW, *, pauses: bool = False) -> None:
    database, merchant_id = subscriber.desk.database, subscriber.shop.merchant_id
    await change_merchant(database, merchant_id, portal_cancels=cancels, portal_pauses=pauses)


async def press(subscriber: Any, below: str, **typed: str) -> Any:
    answer = await subscriber.web.post(subscriber.path + below, data=typed or {"pressed": "1"})
    assert answer.status_code == 303
    return answer


def day(at: Any) -> str:
    return f"{at:%B} {at.day}, {at.year}"


async def test_it_ends_with_the_period_if_the_merchant_wants_that(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.PERIOD_END)
    before = await subscriber.now()
    asked = await subscriber.page(below="/cancel")
    assert f"Let it end on {day(before.date_next)}" in asked
    assert "from this moment on" not in asked
    # A page of before, or a forged form, asks for the end at once: this merchant does not offer it.
    await press(subscriber, "/cancel", when="now")
    assert (await subscriber.now()).state == "Active"
    page = await subscriber.page()
    assert f"This subscription ends on {day(before.date_next)}. Nothing is charged any more." in page
    assert "/cancel" not in page
    assert await subscriber.events() == []
    assert await subscriber.charge(before.date_next) == 0


async def test_the_customer_takes_it_back(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.PERIOD_END)
    before = await subscriber.now()
    await press(subscriber, "/cancel")
    page = await subscriber.page()
    assert "If you keep it," in page
    assert f"is charged on {day(before.date_next)}, as before." in page
    for _ in range(2):
        await press(subscriber, "/undo")
    assert (await subscriber.now()).date_next == before.date_next
    assert "Keep the subscription" not in await subscriber.page()


async def test_the_customer_chooses_where_both_are_offered(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.BOTH)
    asked = await subscriber.page(below="/cancel")
    assert "Let it end on" in asked
    assert "from this moment on" in asked
    await press(subscriber, "/cancel", when="period_end")
    await press(subscriber, "/cancel", when="now")
    assert (await subscriber.now()).state == "Cancelled"
    assert await subscriber.events() == ["subscription_cancelled"]


async def test_what_was_chosen_and_cannot_be_read_ends_nothing(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.BOTH)
    answer = await press(subscriber, "/cancel", when="period-end")
    assert answer.headers["location"].endswith("/cancel"), "asked anew"
    now = await subscriber.now()
    assert (now.state, now.change) == ("Active", None)
    assert await subscriber.events() == []


async def test_pressed_twice_it_still_ends_with_the_period(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.BOTH)
    for _ in range(2):
        await press(subscriber, "/cancel", when="period_end")
    now = await subscriber.now()
    assert (now.state, now.change.type) == ("Active", "cancel")
    assert await subscriber.events() == []


async def test_at_the_end_it_is_over_once(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.PERIOD_END)
    end = (await subscriber.now()).date_next
    await press(subscriber, "/cancel")
    for _ in range(2):
        await carry_out_due(
            subscriber.desk.database, real_now=utc_now(), merchant_id=subscriber.shop.merchant_id, at=end
        )
    assert await subscriber.events() == ["subscription_cancelled"]
    assert "This subscription was cancelled on" in await subscriber.page()
    await press(subscriber, "/undo")
    assert (await subscriber.now()).state == "Cancelled"


async def test_what_has_no_paid_period_can_always_be_cancelled_at_once(failing: Any) -> None:
    await let(failing, PortalCancels.PERIOD_END)
    failed_at = (await failing.now()).date_next
    await set_back.clock_runs_ahead(failing.desk.database, failing.shop.merchant_id, failed_at - utc_now())
    assert "from this moment on" in await failing.page(below="/cancel")
    await press(failing, "/cancel")
    assert (await failing.now()).state == "Cancelled"


async def test_who_may_resume_a_failing_one_reads_when_its_plan_tries_it_again(subscribe: Subscribe) -> None:
    failing = await subscribe("4000000000000341")
    database, merchant_id = failing.desk.database, failing.shop.merchant_id
    await let(failing, pauses=True)
    await change_merchant(database, merchant_id, dunning_hours=(240,))
    due = (await failing.now()).date_next
    assert due is not None
    await set_back.clock_runs_ahead(database, merchant_id, due - utc_now())
    assert await failing.charge(due) == 1
    tried_again = (await failing.now()).date_next
    await press(failing, "/pause")
    assert f"is charged on {day(tried_again)}." in await failing.page()
    await press(failing, "/undo")
    assert (await failing.now()).date_next == tried_again


async def test_an_end_with_the_period_that_is_offered_no_more_is_asked_for_again(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.BOTH)
    await subscriber.page(below="/cancel")
    await let(subscriber, PortalCancels.NOW)
    answer = await press(subscriber, "/cancel", when="period_end")
    assert answer.headers["location"] == f"{subscriber.path}/cancel"
    assert (await subscriber.now()).state == "Active"


@pytest.mark.parametrize("months", ["", "2", "99", "x"])
async def test_it_is_paused_and_resumed(subscriber: Any, months: str) -> None:
    await let(subscriber, pauses=True)
    before = await subscriber.now()
    assert "Pause Coffee club?" in await subscriber.page(below="/pause")
    for _ in range(2):
        await press(subscriber, "/pause", months=months)
    paused = await subscriber.now()
    assert paused.paused
    assert (paused.change.due_at is not None) is (months == "2")
    page = await subscriber.page()
    assert "This subscription is paused until" in page
    assert "If you resume it now," in page
    assert ">Paused<" in page
    await press(subscriber, "/undo")
    after = await subscriber.now()
    assert not after.paused
    assert abs(after.date_next - before.date_next) < timedelta(minutes=1)


async def test_where_the_merchant_does_not_let_them_nothing_happens(subscriber: Any) -> None:
    assert "/pause" not in await subscriber.page()
    assert (await subscriber.web.get(subscriber.path + "/pause")).status_code == 303
    await press(subscriber, "/pause")
    assert not (await subscriber.now()).paused
    await press(subscriber, "/cancel", when="period_end")
    assert (await subscriber.now()).change is None
    await press(subscriber, "/cancel", when="now")
    assert (await subscriber.now()).state == "Cancelled"


@pytest.mark.parametrize("wish", [cancel_later, pause])
async def test_what_the_merchant_wanted_is_not_the_customers_to_undo(subscriber: Any, wish: Any) -> None:
    await let(subscriber, PortalCancels.PERIOD_END, pauses=True)
    await wish(subscriber.desk.database, subscriber.shop, subscriber.id, by="merchant", now=utc_now())
    page = await subscriber.page()
    assert "/undo" not in page
    await press(subscriber, "/undo")
    assert (await subscriber.now()).change is not None


async def test_while_a_charge_is_made_it_says_to_try_again(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.PERIOD_END, pauses=True)
    await say(subscriber.desk.database, "subscription", {"id": subscriber.id}, charging_attempt_id=1)
    answer = await press(subscriber, "/pause")
    assert answer.headers["location"] == f"{subscriber.path}?busy"
    assert "A payment is being made just now, so nothing was changed." in await subscriber.page(below="?busy")
    assert not (await subscriber.now()).paused


async def test_undoing_and_pausing_are_never_a_get(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.BOTH, pauses=True)
    for below in ("/pause?months=1", "/undo"):
        await subscriber.web.get(subscriber.path + below)
    assert (await subscriber.now()).change is None


async def test_another_plan_is_announced_and_then_shown(subscriber: Any) -> None:
    await let(subscriber, PortalCancels.PERIOD_END, pauses=True)
    before = await subscriber.now()
    plan = Plan(sku_id="pro", name="Pro", price="30.00")
    database, shop = subscriber.desk.database, subscriber.shop
    await change_plan(database, shop, before.id, plan, by="merchant", now=utc_now())
    page = await subscriber.page()
    announced = f"From {day(before.date_next)} on it is: Pro, 30.00\xa0USD every month until you cancel"
    assert announced in page
    assert f"30.00\xa0USD on {day(before.date_next)}" in page
    assert "This subscription ends" not in page
    # What its merchant has asked for the customer does not take back; the rest they may do.
    assert "/undo" not in page
    assert "/cancel" in page
    assert "/pause" in page
    await carry_out_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=before.date_next)
    assert await subscriber.charge(before.date_next) == 1
    page = await subscriber.page()
    assert "30.00\xa0USD every month until you cancel" in page
    assert "today" not in page
