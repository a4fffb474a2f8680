"""`paydesk check` names what is wrong with a subscription, and finds nothing wrong
with a sound one.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.banks import ObedientBank
from tests.domain.ledger.corruption import Corruption
from tests.proving import check
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.ledger.checking import SUBSCRIPTION_RULES, RuleResult
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.changing import carry_out_due
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.subscription_terms import Trial

HOUR = timedelta(hours=1)


@pytest.fixture
async def subscriber(corruptible: Database, vault: Vault) -> Till:
    """A merchant with one subscription, renewed twice."""
    merchant = await create_merchant(corruptible, vault, name="Club", email="o@shop.example", now=utc_now())
    desk = Desk(corruptible, vault, {"simulator": ObedientBank()})
    subscriber = Till(desk, shop_of(merchant, live=False))
    subscription = await subscriber.subscribe()
    for _ in range(2):
        await subscriber.charge_due(subscription)
    return subscriber


async def checked(subscriber: Till) -> dict[str, RuleResult]:
    found = await check(subscriber.desk.database, now=utc_now(), merchant_id=subscriber.shop.merchant_id)
    return {finding.rule.statement: finding for finding in found}


async def details(subscriber: Till) -> list[str]:
    return [one.detail for finding in (await checked(subscriber)).values() for one in finding.differences]


PAYMENT_OF = "update payment set {change} where merchant_id = $1 and period_number = {period} returning subscription_id"
SUBSCRIPTION = "update subscription set {change} where merchant_id = $1 returning id"
CHANGE = (
    "with s as (select * from subscription where merchant_id = $1), c as (insert into subscription_change"
    " (merchant_id, live, subscription_id, type, state, due_at, asked_by, since, created_at, finished_at)"
    " select merchant_id, live, id, '{type}', '{state}', coalesce({end}, now()), 'api', '2000-01-01', '2000-01-01',"
    " {end} from s returning id) select {named} from s cross join c"
)
PLAN = (
    "with s as (select * from subscription where merchant_id = $1), v as (insert into package_version"
    " (merchant_id, live, package_id, name, currency, price, period_length, period_unit, created_at)"
    " select merchant_id, live, package_id, name, currency, price + 1, period_length, period_unit, created_at"
    " from package_version where merchant_id = $1 returning id), c as (insert into subscription_change"
    " (merchant_id, live, subscription_id, type, state, due_at, asked_by, since, created_at, finished_at,"
    " package_version_id, period_number)"
    " select s.merchant_id, s.live, s.id, 'change', 'done', now(), 'api', now(), now(), now(), {plan}, {period}"
    " from s cross join v returning id) select id from c"
)
"""A change of plan that was carried out, to one that costs more."""
CORRUPTIONS = (
    *(
        Corruption("periods_paid", "subscription", PAYMENT_OF.format(change=change, period=period))
        for change, period in (("period_number = 7", 3), ("period_number = 0", 1), ("paid_at = null", 2))
    ),
    Corruption("periods_paid", "subscription", SUBSCRIPTION.format(change="next_period = next_period + 1")),
    Corruption(
        "periods_paid",
        "payment",
        "update payment set subscription_id = 0 where merchant_id = $1 and period_number = 2 returning id",
    ),
    *(
        Corruption("counters_agree", "subscription", SUBSCRIPTION.format(change=change))
        for change in ("counter = 2", "paid_number_counter = 4", "date_paid = null")
    ),
    Corruption(
        "counters_agree",
        "package_version",
        "update package_version set subscriptions_count = 5 where merchant_id = $1 returning id",
    ),
    Corruption(
        "counters_agree",
        "subscription_package",
        "update subscription_package set subscriptions_count = 5 where merchant_id = $1 returning id",
    ),
    *(
        Corruption("subscriptions_stand", "subscription", SUBSCRIPTION.format(change=change))
        for change in (
            "date_next = null",
            "state = 'Trial'",
            "state = 'Expired', date_next = null",
            "state = 'Cancelled', date_next = null",
            "date_stopped = now()",
            "date_active = null",
            "charging_attempt_id = 0",
            "date_end = now()",
        )
    ),
    Corruption(
        "subscriptions_stand",
        "subscription",
        PAYMENT_OF.format(change="state = 'processing'", period=3),
    ),
    *(
        Corruption("dunning_kept", "subscription", SUBSCRIPTION.format(change=f"failures = 1, dunning = '{plan}'"))
        for plan in (
            '{"left": [6], "tries": 2, "by_reason": false, "failures": 1}',
            '{"left": [6, 6], "tries": 2, "by_reason": false, "failures": 1}',
        )
    ),
    Corruption("balances_add_up", "subscription", SUBSCRIPTION.format(change="balance = 1")),
    Corruption("changes_agree", "subscription", SUBSCRIPTION.format(change="change_id = 0, date_next = null")),
    Corruption("changes_agree", "subscription", CHANGE.format(type="cancel", state="open", end="null", named="s.id")),
    *(
        Corruption(
            "changes_agree", "subscription_change", CHANGE.format(type=kind, state="done", end=end, named="c.id")
        )
        for kind, end in (("cancel", "now()"), ("resume", "timestamptz '2100-01-01'"))
    ),
    Corruption(
        "changes_agree",
        "subscription_change",
        CHANGE.format(type="cancel", state="undone", end="timestamptz '2100-01-01'", named="c.id"),
    ),
    Corruption("changes_agree", "subscription_change", PLAN.format(plan="v.id", period=9)),
    Corruption(
        "changes_agree",
        "subscription_change",
        PLAN.format(plan="s.package_version_id", period=2).replace(
            "with s", "with p as (update payment set amount = 11 where merchant_id = $1 and period_number = 2), s"
        ),
    ),
    Corruption("changes_agree", "subscription_change", PLAN.format(plan="0", period=9)),
    Corruption("trials_without_card", "subscription", SUBSCRIPTION.format(change="acquirer = ''")),
    Corruption(
        "trials_without_card",
        "payment_attempt",
        "with a as (select max(id) as id from payment_attempt where merchant_id = $1)"
        " update payment_attempt p set acquirer = '' from a where p.merchant_id = $1 and p.id = a.id returning p.id",
    ),
    Corruption(
        "trials_without_card",
        "subscription_change",
        CHANGE.format(type="cancel", state="done", end="now()", named="c.id").replace("'api'", "'no_card'"),
    ),
    Corruption(
        "numbers_needed", "card", "update subscription set date_next = null where merchant_id = $1 returning card_id"
    ),
    Corruption(
        "numbers_needed",
        "card",
        "update card set refused_as = 'stolen_card' where merchant_id = $1 returning id",
    ),
    Corruption(
        "ends_reported",
        "subscription",
        SUBSCRIPTION.format(change="state = 'Cancelled', date_next = null, date_cancelled = now()"),
    ),
    Corruption(
        "ends_reported",
        "subscription",
        "insert into pingback (merchant_id, live, event, subscription_id, url, sign_version, key_id, format, payload,"
        " state, due_at, created_at) select merchant_id, live, 'subscription_cancelled', id, null, sign_version,"
        " key_id, 'json', '{}', 'waiting', now(), now() from subscription where merchant_id = $1"
        " returning subscription_id",
    ),
)


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda it: f"{it.rule}-{it.sql[7:60]}")
async def test_a_corrupted_subscription_is_named_by_its_rule(subscriber: Till, corruption: Corruption) -> None:
    assert await details(subscriber) == []
    named = await subscriber.desk.database.fetchval(corruption.sql, subscriber.shop.merchant_id)
    finding = (await checked(subscriber))[corruption.rule]
    assert (corruption.table, named) in {(one.table, one.id) for one in finding.differences}


def test_every_rule_for_subscriptions_is_seen_to_fail() -> None:
    assert {corruption.rule for corruption in CORRUPTIONS} == {rule.statement for rule in SUBSCRIPTION_RULES}


async def test_a_cancellation_that_is_reported_as_a_stop_is_named(subscriber: Till) -> None:
    database, shop = subscriber.desk.database, subscriber.shop
    found = await database.fetchval("select id from subscription where merchant_id = $1", shop.merchant_id)
    await cancel(database, shop, found, by="api", now=utc_now())
    assert await details(subscriber) == []
    await database.execute(
        "update pingback set event = 'subscription_stopped' where merchant_id = $1 and event <> 'payment'",
        shop.merchant_id,
    )
    assert "subscription_stopped is reported" in (await details(subscriber))[0]


async def test_a_clock_put_back_before_a_plan_is_changed_is_no_fault(subscriber: Till) -> None:
    """The period before was charged by a clock that ran ahead, and the change is by a right one."""
    begun = await subscriber.subscribe(order="club-2")
    assert begun.date_next is not None
    await subscriber.charge(begun.date_next + 9 * HOUR)
    named = (subscriber.database, subscriber.shop, begun.id)
    await change_plan(*named, Plan(price="30.00"), by="api", now=begun.date_next + HOUR)
    await carry_out_and_charge(subscriber, begun)
    assert await details(subscriber) == []


async def test_a_clock_put_back_once_a_plan_is_changed_is_no_fault(subscriber: Till) -> None:
    """It is changed late by a clock that ran ahead, and charged a little late by the right one."""
    begun = await subscriber.subscribe(order="club-2")
    assert begun.date_next is not None
    named = (subscriber.database, subscriber.shop, begun.id)
    await change_plan(*named, Plan(price="30.00"), by="api", now=begun.date_start + HOUR)
    await carry_out_and_charge(subscriber, begun, late=9 * HOUR)
    assert await details(subscriber) == []


async def carry_out_and_charge(till: Till, begun: Subscription, *, late: timedelta = HOUR) -> None:
    """The plan is changed so late, and its first period charged one hour after it was due."""
    current = await till.now(begun)
    assert current.date_next is not None
    at = current.date_next + late
    changed = await carry_out_due(till.database, real_now=utc_now(), merchant_id=till.shop.merchant_id, at=at)
    assert changed == 1
    await till.charge(current.date_next + HOUR)
    now = await till.now(begun)
    assert (now.package.terms.price, now.counter) == (Decimal(30), current.counter + 1)


async def test_subscriptions_of_every_kind_are_clean(subscriber: Till) -> None:
    free = replace(MONTHLY, trial=Trial(Decimal(0), Period(14, "day")), limit=2)
    subscription = await subscriber.subscribe(free, order="club-2")
    assert await details(subscriber) == []
    await subscriber.charge_due(subscription)
    await subscriber.subscribe(replace(MONTHLY, limit=1), order="club-3")
    await subscriber.subscribe(replace(MONTHLY, name="Tea club"), order="club-4")
    assert await details(subscriber) == []
