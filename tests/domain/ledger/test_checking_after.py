"""`paydesk check` after the payment: each rule is clean on real life,
and names the row when it is corrupted.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, set_back
from tests.domain.ledger.corruption import Corruption
from tests.proving import check
from tests.shopfront import ships

from paydesk.core.clock import utc_now
from paydesk.domain.chargebacks.for_api import purchase_of
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.ledger.checking import AFTER_RULES, RuleResult
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.payments.refunding import refund

APPROVED = "4242424242424242"
CHARGED_BACK = "4000000000000259"


async def checked(till: Any) -> dict[str, RuleResult]:
    found = await check(
        till.database, now=utc_now(), merchant_id=till.shop.merchant_id, record=till.bank.record, most=20
    )
    return {finding.rule.statement: finding for finding in found}


async def broken(till: Any) -> set[str]:
    return {name for name, finding in (await checked(till)).items() if finding.found}


async def payment_of(till: Any) -> int:
    return int(
        await till.database.fetchval("select max(id) from payment where merchant_id = $1", till.shop.merchant_id)
    )


async def captured(till: Any) -> None:
    await till.sell()


async def refunded_in_part(till: Any) -> None:
    await till.sell()
    await refund(till.desk, till.shop, await payment_of(till), Decimal("4.00"), requested_by="api", now=utc_now())


async def charged_back(till: Any) -> None:
    await set_back.banks_tell_again(till.database)
    await till.pay(await till.order(), CHARGED_BACK)
    await read_disputes(till.desk, now=utc_now())


async def authorized(till: Any) -> None:
    await ships(till.database, till.shop)
    await till.sell()


async def voided(till: Any) -> None:
    await authorized(till)
    await refund(till.desk, till.shop, await payment_of(till), None, requested_by="api", now=utc_now())


async def test_all_that_comes_after_a_payment_is_clean(till: Any) -> None:
    for happens in (captured, refunded_in_part, charged_back, authorized, voided):
        await happens(till)
        assert await broken(till) == set()
    for days in (8, 181):
        at = utc_now() + timedelta(days=days)
        await settle_due(till.database, real_now=utc_now(), merchant_id=till.shop.merchant_id, at=at)
        assert await broken(till) == set()


CORRUPTIONS = (
    Corruption(
        "funds_agree", "payment", "update payment set reserve_taken = 0.1 where merchant_id = $1 returning id", captured
    ),
    Corruption(
        "funds_agree", "payment", "update payment set settled_at = now() where merchant_id = $1 returning id", captured
    ),
    Corruption(
        "reversals_add_up",
        "payment",
        "update payment set refunded = 1, state = 'partially_refunded' where merchant_id = $1 returning id",
        captured,
    ),
    Corruption(
        "reversals_add_up",
        "payment",
        "delete from movement where merchant_id = $1 returning payment_id",
        refunded_in_part,
    ),
    Corruption(
        "reversals_add_up", "payment", "update payment set refunding = 1 where merchant_id = $1 returning id", captured
    ),
    Corruption(
        "reversals_add_up",
        "payment",
        "update payment set state = 'captured' where merchant_id = $1 returning id",
        charged_back,
    ),
    Corruption(
        "movements_agree", "payment", "update payment set moving_id = 1 where merchant_id = $1 returning id", authorized
    ),
    Corruption(
        "movements_agree", "payment", "delete from movement where merchant_id = $1 returning payment_id", voided
    ),
    Corruption(
        "movements_agree",
        "movement",
        "update payment set state = 'authorized' where merchant_id = $1"
        " returning (select id from movement where merchant_id = $1)",
        voided,
    ),
    Corruption(
        "reversals_reported",
        "movement",
        "delete from pingback where merchant_id = $1 and event = 'partial_refund' returning reversal_id",
        refunded_in_part,
    ),
    Corruption(
        "reversals_reported",
        "chargeback",
        "delete from pingback where merchant_id = $1 and event = 'chargeback' returning reversal_id",
        charged_back,
    ),
    Corruption(
        "chargebacks_posted",
        "payment",
        "insert into ledger_entry (merchant_id, live, posting_id, kind, payment_id, account, currency, amount, at)"
        " select p.merchant_id, p.live, nextval('ledger_posting_id_seq'), 'chargeback_fee', p.id, e.account, 'USD',"
        " e.amount, now() from payment p, (values ('available', 15), ('fees', -15)) as e (account, amount)"
        " where p.merchant_id = $1 returning payment_id",
        captured,
    ),
    Corruption(
        "chargebacks_posted",
        "payment",
        "update chargeback set fee = 14 where merchant_id = $1 returning payment_id",
        charged_back,
    ),
    Corruption(
        "chargebacks_posted",
        "chargeback",
        "update chargeback set state = 'inquiry', closed_at = null where merchant_id = $1 returning id",
        charged_back,
    ),
    Corruption(
        "authorizations_stand",
        "payment",
        "update payment set shipping_due_at = null where merchant_id = $1 returning id",
        authorized,
    ),
    Corruption(
        "authorizations_stand",
        "payment",
        "update payment set ship_by = now(), shipping_due_at = now() where merchant_id = $1 returning id",
        captured,
    ),
    Corruption(
        "closings_agree",
        "balance_closing",
        "insert into balance_closing (merchant_id, live, currency, account, amount)"
        " values ($1, true, 'USD', 'available', -5) returning account || ' ' || currency",
        captured,
    ),
)


@pytest.mark.parametrize("corruption", CORRUPTIONS, ids=lambda it: f"{it.rule}-{it.table}-{it.after.__name__}")
async def test_a_corrupted_row_is_named_by_its_rule(till: Any, corruption: Corruption) -> None:
    await corruption.after(till)
    assert await broken(till) == set()
    named = await till.database.fetchval(corruption.sql, till.shop.merchant_id)
    finding = (await checked(till))[corruption.rule]
    assert (corruption.table, named) in {(difference.table, difference.id) for difference in finding.differences}


def test_every_rule_is_seen_to_fail() -> None:
    assert {corruption.rule for corruption in CORRUPTIONS} == {rule.statement for rule in AFTER_RULES}


async def test_a_chargeback_that_was_read_but_not_recorded_is_named(till: Any) -> None:
    await captured(till)
    till.bank.open_dispute((await purchase_of(till.database, till.shop, await payment_of(till))).key, "fraudulent")
    await set_back.banks_tell_again(till.database)
    assert await broken(till) == set(), "nobody has read the bank's news yet"
    place = till.bank.disputes("").next
    await till.database.execute("insert into dispute_reading (acquirer, place) values ('simulator', $1)", place)
    assert await broken(till) == {"chargebacks_at_bank"}


async def test_a_chargeback_that_came_after_the_last_reading_is_news(till: Any) -> None:
    await captured(till)
    await set_back.banks_tell_again(till.database)
    await read_disputes(till.desk, now=utc_now() + timedelta(minutes=10))
    till.bank.open_dispute((await purchase_of(till.database, till.shop, await payment_of(till))).key, "fraudulent")
    assert await broken(till) == set(), "a reading that began after the check, and was over before the bank took it"


async def test_a_chargeback_that_waits_is_named_once_an_operator_was_told(till: Any) -> None:
    await authorized(till)
    payment_id = await payment_of(till)
    key = (await purchase_of(till.database, till.shop, payment_id)).key
    reference = await till.database.fetchval(
        "select acquirer_reference from payment_attempt where idempotency_key = $1", key
    )
    till.bank.capture(f"{key}-capture", reference, Decimal("10.00"), "USD")
    till.bank.open_dispute(key, "fraudulent")
    await set_back.banks_tell_again(till.database)
    await set_back.no_disputes_left(till.database)
    for minutes, is_named in ((0, False), (61, True)):
        await read_disputes(till.desk, now=utc_now() + timedelta(minutes=minutes))
        assert ("chargebacks_at_bank" in await broken(till)) is is_named


async def test_a_refund_that_the_bank_does_not_know_is_named(till: Any) -> None:
    await refunded_in_part(till)
    await breaking.say(till.database, "payment", {"merchant_id": till.shop.merchant_id}, refunded=5)
    assert "approved_money_at_bank" in await broken(till)


async def test_a_refund_whose_outcome_is_unknown_for_a_day_is_named(till: Any) -> None:
    await refunded_in_part(till)
    for hours, is_named in ((23, False), (25, True)):
        await till.database.execute(
            "update movement set state = 'processing', finished_at = null, lookup_at = now(),"
            " created_at = now() - make_interval(hours => $2) where merchant_id = $1",
            till.shop.merchant_id,
            hours,
        )
        assert ("outcomes_known" in await broken(till)) is is_named
    await breaking.say(
        till.database,
        "movement",
        {"merchant_id": till.shop.merchant_id},
        state="done",
        finished_at=utc_now(),
        lookup_at=None,
    )
