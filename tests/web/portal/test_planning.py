"""A customer changes the plan on its page, or how many it is of: what comes of it is shown first,
then that is done once, and no more.
"""

from __future__ import annotations

import asyncio
import html
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pytest
from tests import set_back
from tests.breaking import say
from tests.web.portal.conftest import leads_to, text_of
from tests.web.portal.test_changes import day, press

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.domain.billing import foreseeing
from paydesk.domain.merchants.customer_ways import PortalPlans
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.subscriptions.changing import cancel_later, carry_out_due, pause
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.packages import agree_package, find_version, offer
from paydesk.web.portal import planning


async def offering(subscriber: Any, name: str, price: str, *, limit: int = 0, currency: str = "USD") -> int:
    """Offer a plan on customers' pages; its version's id."""
    own = (await subscriber.now()).package.terms
    terms = replace(own, sku_id=name.lower(), name=name, price=Decimal(price), limit=limit, currency=currency)
    database, shop = subscriber.desk.database, subscriber.shop
    await agree_package(database, shop, terms, now=utc_now())
    package = await find_version(database, shop, terms)
    assert package is not None
    await offer(database, shop, package.id, package.version_id, offered=True)
    return int(package.version_id)


async def let(subscriber: Any, plans: PortalPlans = PortalPlans.BOTH, *, quantities: bool = False) -> None:
    """What the merchant lets customers do."""
    named = (subscriber.desk.database, subscriber.shop.merchant_id)
    await change_merchant(*named, portal_plans=plans, portal_quantities=quantities)


def agreed_to(answer: Any) -> dict[str, str]:
    """The form of what was shown, agreed to."""
    assert answer.status_code == 200, text_of(answer)
    fields = dict(re.findall(r'<input type="hidden" name="([a-z]+)" value="([^"]*)">', answer.text))
    return {**{name: html.unescape(value) for name, value in fields.items()}, "agreed": "1"}


async def preview(subscriber: Any, **chosen: str) -> Any:
    return await subscriber.web.post(subscriber.path + "/plan", data=chosen)


async def choose(subscriber: Any, **chosen: str) -> Any:
    """Choose a plan, see what comes of it, and agree to that."""
    return await preview(subscriber, **agreed_to(await preview(subscriber, **chosen)))


async def paid(subscriber: Any) -> list[Decimal]:
    """What was taken, in turn."""
    taken = "select amount from payment where merchant_id = $1 and paid_at is not null and amount > 0 order by id"
    return [row["amount"] for row in await subscriber.desk.database.fetch(taken, subscriber.shop.merchant_id)]


async def test_the_customer_chooses_another_plan_and_takes_it_back(subscriber: Any) -> None:
    before = await subscriber.now()
    assert "Change the plan" not in await subscriber.page()
    pro, basic = await offering(subscriber, "Pro", "30.00"), await offering(subscriber, "Basic", "5.00")
    asked = await subscriber.page(below="/plan")
    assert f"The plan that you choose begins on {day(before.date_next)}" in asked
    assert asked.index("Basic, 5.00\xa0USD every month until") < asked.index("Pro, 30.00\xa0USD every month until")
    seen = await preview(subscriber, plan=str(pro))
    shown = text_of(seen)
    assert f"30.00\xa0USD on {day(before.date_next)}" in shown
    assert "0.00\xa0USD" in shown
    assert (await subscriber.now()).change is None
    for _ in range(2):
        assert leads_to(await preview(subscriber, **agreed_to(seen))) == subscriber.path
    page = await subscriber.page()
    assert f"From {day(before.date_next)} on it is: Pro, 30.00\xa0USD every month until you cancel" in page
    kept = (
        f"If you keep the present plan, {before.package.terms.price:.2f}\xa0USD is charged on {day(before.date_next)}"
    )
    assert kept in page
    assert "Keep the present plan" in page
    assert "Pro," not in await subscriber.page(below="/plan")
    await choose(subscriber, plan=str(basic))
    assert "on it is: Basic, 5.00" in await subscriber.page()
    await press(subscriber, "/undo")
    after = await subscriber.now()
    assert (after.change, after.date_next, after.package) == (None, before.date_next, before.package)


async def test_a_plan_that_was_chosen_is_charged_from_the_next_period_on(subscriber: Any) -> None:
    before = await subscriber.now()
    pro = await offering(subscriber, "Pro", "30.00")
    await choose(subscriber, plan=str(pro))
    database, shop = subscriber.desk.database, subscriber.shop
    await carry_out_due(database, real_now=utc_now(), merchant_id=shop.merchant_id, at=before.date_next)
    assert await subscriber.charge(before.date_next) == 1
    taken = await database.fetchval(
        "select amount from payment where merchant_id = $1 order by id desc limit 1", shop.merchant_id
    )
    assert taken == Decimal("30.00")


async def test_only_what_the_shop_offers_is_to_be_chosen(subscriber: Any) -> None:
    before = await subscriber.now()
    await offering(subscriber, "Elsewhere", "5.00", currency="EUR")
    assert "Change the plan" not in await subscriber.page()
    pro = await offering(subscriber, "Pro", "30.00")
    await offering(subscriber, "Over", "5.00", limit=1)
    asked = await subscriber.page(below="/plan")
    assert "Pro" in asked
    assert "Over" not in asked
    assert "Elsewhere" not in asked
    for plan in ("", "x", "0", str(before.package.version_id), str(10**30)):
        await press(subscriber, "/plan", plan=plan, agreed="1")
        assert (await subscriber.now()).change is None
    await subscriber.web.get(f"{subscriber.path}/plan?plan={pro}")
    assert (await subscriber.now()).change is None


@pytest.mark.parametrize("state", ["failing", "ending", "paused", "cancelled"])
async def test_no_plan_is_chosen_for_what_does_not_go_on(subscriber: Any, state: str) -> None:
    pro = await offering(subscriber, "Pro", "30.00")
    assert "Change the plan" in await subscriber.page()
    database, shop = subscriber.desk.database, subscriber.shop
    if state == "failing":
        await say(database, "subscription", {"id": subscriber.id}, failures=1)
    elif state == "ending":
        await cancel_later(database, shop, subscriber.id, by="merchant", now=utc_now())
    elif state == "paused":
        await pause(database, shop, subscriber.id, by="customer", now=utc_now())
    else:
        await subscriber.cancel()
    before = (await subscriber.now()).change
    assert "Change the plan" not in await subscriber.page()
    await press(subscriber, "/plan", plan=str(pro), agreed="1")
    assert (await subscriber.now()).change == before


async def test_what_the_merchant_has_planned_is_not_replaced_by_a_choice(subscriber: Any) -> None:
    pro = await offering(subscriber, "Pro", "30.00")
    planned = Plan(sku_id="dear", name="Dear", price="99.00")
    await change_plan(subscriber.desk.database, subscriber.shop, subscriber.id, planned, by="merchant", now=utc_now())
    assert "Change the plan" not in await subscriber.page()
    await press(subscriber, "/plan", plan=str(pro), agreed="1")
    change = (await subscriber.now()).change
    assert change.package.terms.name == "Dear"


async def test_at_once_what_was_shown_is_charged_once_however_often_it_is_pressed(subscriber: Any) -> None:
    await let(subscriber)
    pro = await offering(subscriber, "Pro", "30.00")
    asked = await subscriber.page(below="/plan")
    assert "The next page shows what you pay, and when." in asked
    seen = await preview(subscriber, plan=str(pro), when="now")
    assert "You pay now" in text_of(seen)
    amount = Decimal(re.findall(r"Change the plan and pay ([0-9.]+)", text_of(seen))[0])
    assert Decimal(19) < amount <= Decimal(20)
    assert (await subscriber.now()).package.terms.price == 10
    answers = await asyncio.gather(*(preview(subscriber, **agreed_to(seen)) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {303}
    now = await subscriber.now()
    assert (now.package.terms.name, now.change) == ("Pro", None)
    assert await paid(subscriber) == [Decimal(10), amount]
    page = await subscriber.page(below="?changed")
    assert "Your plan has changed." in page
    assert f"{amount}\xa0USD" in page
    receipts = re.findall(r"(/receipt/[0-9]+)", page)
    assert f"{amount}\xa0USD" in await subscriber.page(below=receipts[0])


async def test_what_was_shown_long_ago_is_shown_anew(subscriber: Any) -> None:
    await let(subscriber, PortalPlans.NOW)
    pro = await offering(subscriber, "Pro", "30.00")
    seen = agreed_to(await preview(subscriber, plan=str(pro)))
    late = foreseeing.HELD + timedelta(minutes=1)
    await set_back.clock_runs_ahead(subscriber.desk.database, subscriber.shop.merchant_id, late)
    again = await preview(subscriber, **seen)
    assert "You pay now" in text_of(again)
    for at in ("", "never", "2001-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00", "2027-01-01T00:00:00"):
        assert "You pay now" in text_of(await preview(subscriber, **{**seen, "at": at}))
    assert await paid(subscriber) == [Decimal(10)]
    assert leads_to(await preview(subscriber, **agreed_to(again))) == f"{subscriber.path}?changed"


async def test_what_has_changed_since_it_was_shown_is_not_charged(subscriber: Any) -> None:
    await let(subscriber)
    pro = await offering(subscriber, "Pro", "30.00")
    seen = agreed_to(await preview(subscriber, plan=str(pro), when="now"))
    dear = Plan(price="90.00")
    named = (subscriber.desk.database, subscriber.shop, subscriber.id, dear)
    await change_plan(*named, by="api", now=utc_now(), at_once=True)
    assert leads_to(await preview(subscriber, **seen)) == f"{subscriber.path}?busy"
    assert ((await subscriber.now()).package.terms.price, await paid(subscriber)) == (90, [Decimal(10)])


async def test_a_plan_shown_for_the_next_period_does_not_hold_at_once_and_is_shown_anew(subscriber: Any) -> None:
    pro = await offering(subscriber, "Pro", "30.00")
    seen = agreed_to(await preview(subscriber, plan=str(pro)))
    await let(subscriber, PortalPlans.NOW)
    anew = await preview(subscriber, **seen)
    assert (await subscriber.now()).package.terms.price == 10
    assert await paid(subscriber) == [Decimal(10)]
    await preview(subscriber, **agreed_to(anew))
    assert (await subscriber.now()).package.terms.price == 30


async def test_so_many_of_what_costs_more_meanwhile_are_shown_anew(subscriber: Any) -> None:
    await let(subscriber, quantities=True)
    seen = agreed_to(await preview(subscriber, quantity="3", when="later"))
    named = (subscriber.desk.database, subscriber.shop, subscriber.id, Plan(price="90.00"))
    await change_plan(*named, by="api", now=utc_now(), at_once=True)
    anew = await preview(subscriber, **seen)
    assert "3 × 90.00\xa0USD = 270.00\xa0USD" in text_of(anew)
    assert (await subscriber.now()).change is None
    await preview(subscriber, **agreed_to(anew))
    change = (await subscriber.now()).change
    assert change.package.terms.price == 270


async def test_a_dearer_plan_that_is_declined_changes_nothing_and_is_not_tried_for_ever(subscribe: Any) -> None:
    subscriber = await subscribe("4000000000000341")
    await let(subscriber)
    before = await subscriber.now()
    pro = await offering(subscriber, "Pro", "30.00")
    for _ in range(planning.MOST_DECLINED):
        answer = await choose(subscriber, plan=str(pro), when="now")
        assert answer.status_code == 402
        assert "Your payment was declined, so nothing was taken" in text_of(answer)
    assert (await choose(subscriber, plan=str(pro), when="now")).status_code == 429
    assert (await subscriber.now()).date_next == before.date_next
    assert (await subscriber.now()).package.terms == before.package.terms


@pytest.mark.parametrize(
    ("number", "said"),
    [("4242424242424242", "Your plan has changed."), ("4000000000000341", "Your payment was declined, so nothing was")],
)
async def test_who_waits_for_the_bank_sees_what_it_says_at_last(
    subscribe: Any, monkeypatch: pytest.MonkeyPatch, number: str, said: str
) -> None:
    subscriber = await subscribe(number)
    await let(subscriber)
    pro = await offering(subscriber, "Pro", "30.00")

    charge = SimulatedAcquirer.charge_stored

    async def lost(acquirer: Any, purchase: Any) -> None:
        await charge(acquirer, purchase)
        raise OutcomeUnknown("the answer was lost")

    seen = agreed_to(await preview(subscriber, plan=str(pro), when="now"))
    with monkeypatch.context() as bank:
        bank.setattr(SimulatedAcquirer, "charge_stored", lost)
        waiting = f"?waiting={quote(seen['key'])}"
        for _ in range(2):
            assert leads_to(await preview(subscriber, **seen)) == f"{subscriber.path}{waiting}"
    page = await subscriber.page(below=waiting)
    assert "Your bank has not answered yet. Your plan changes by itself" in page
    assert f'<noscript><meta http-equiv="refresh" content="4; url={waiting}&looked=1"></noscript>' in page
    status = f"{subscriber.path}/status{waiting}"
    assert f'id="checking" data-status="{status}"' in page, "scripts ask by themselves"
    assert (await subscriber.web.get(status)).json() == {"state": "processing"}
    later = await subscriber.page(below=f"{waiting}&looked=9")
    assert f'content="30; url={waiting}&looked=10">' in later
    assert (await subscriber.now()).package.terms.price == 10
    while await settle_due(subscriber.desk, now=utc_now() + timedelta(minutes=3)):
        pass
    page = await subscriber.page(below=waiting)
    assert (said in page, '<meta http-equiv="refresh"' in page, 'id="checking"' in page) == (True, False, False)
    assert (await subscriber.web.get(status)).json() == {"state": "done", "url": f"{subscriber.path}{waiting}"}
    assert (await subscriber.web.get(f"{status}%22%0d&looked=9")).json()["url"].endswith("%22%0D")
    assert said not in await subscriber.page(below="?waiting=another")
    assert said not in await subscriber.page(below="?waiting=%00")


async def test_a_cheaper_plan_lowers_the_next_payments(subscriber: Any) -> None:
    await let(subscriber)
    basic = await offering(subscriber, "Basic", "4.00")
    seen = await preview(subscriber, plan=str(basic), when="now")
    assert "is taken off your next payments. It is not paid out." in text_of(seen)
    await preview(subscriber, **agreed_to(seen))
    assert ((await subscriber.now()).package.terms.name, await paid(subscriber)) == ("Basic", [Decimal(10)])
    assert "0.00\xa0USD on" in await subscriber.page()


async def test_a_year_begins_now_less_what_was_not_used(subscriber: Any) -> None:
    await let(subscriber, PortalPlans.NOW)
    own = (await subscriber.now()).package.terms
    database, shop = subscriber.desk.database, subscriber.shop
    yearly = replace(own, sku_id="year", name="Yearly", price=Decimal(100), period=Period(1, "year"))
    await agree_package(database, shop, yearly, now=utc_now())
    package = await find_version(database, shop, yearly)
    assert package is not None
    await offer(database, shop, package.id, package.version_id, offered=True)
    seen = await preview(subscriber, plan=str(package.version_id))
    assert "A new period begins now." in text_of(seen)
    assert "100.00\xa0USD on" in text_of(seen)
    await preview(subscriber, **agreed_to(seen))
    now = await subscriber.now()
    assert (now.package.terms.name, now.counter) == ("Yearly", 2)
    first, second = await paid(subscriber)
    assert (first, Decimal(90) <= second < Decimal(91)) == (Decimal(10), True)
    page = await subscriber.page()
    assert f"{second:.2f}\xa0USD" in page
    assert "0.00\xa0USD" in page


async def test_how_many_it_is_of_is_the_customers_choice_where_that_is_allowed(subscriber: Any) -> None:
    await let(subscriber, quantities=True)
    asked = await subscriber.page(below="/plan")
    assert "How many of Coffee club?" in asked
    assert 'value="1"' in asked
    for wrong in ("0", "x", "1.5", "10001"):
        answer = await preview(subscriber, quantity=wrong, when="now")
        assert (answer.status_code, "Give a whole number from 1 to 10000." in text_of(answer)) == (400, True)
    seen = await preview(subscriber, quantity="3", when="later")
    assert "3 × 10.00\xa0USD = 30.00\xa0USD" in text_of(seen)
    await preview(subscriber, **agreed_to(seen))
    change = (await subscriber.now()).change
    assert (change.package.terms.quantity, change.by) == (3, "customer")
    await press(subscriber, "/undo")
    await choose(subscriber, quantity="3", when="now")
    now = await subscriber.now()
    assert (now.package.terms.quantity, now.package.terms.price) == (3, Decimal(30))


async def test_where_it_is_not_allowed_neither_now_nor_a_number_is_taken(subscriber: Any) -> None:
    await let(subscriber, PortalPlans.PERIOD_END)
    pro = await offering(subscriber, "Pro", "30.00")
    asked = await subscriber.page(below="/plan")
    assert 'name="quantity"' not in asked
    assert 'name="when"' not in asked
    await choose(subscriber, plan=str(pro), when="now", quantity="7")
    now = await subscriber.now()
    assert (now.package.terms.price, now.change.package.terms.quantity) == (10, 1)
    assert await paid(subscriber) == [Decimal(10)]


async def test_by_what_takes_days_nothing_holds_at_once(subscriber: Any) -> None:
    await let(subscriber, PortalPlans.NOW)
    pro = await offering(subscriber, "Pro", "30.00")
    await say(subscriber.desk.database, "card", {"merchant_id": subscriber.shop.merchant_id}, slow=True)
    assert "The plan that you choose begins on" in await subscriber.page(below="/plan")
    await choose(subscriber, plan=str(pro))
    assert (await subscriber.now()).change.package.terms.name == "Pro"
