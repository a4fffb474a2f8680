from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import breaking, set_back
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.banks import answering
from tests.lengths import at_length
from tests.shopfront import buy, go_on, ship, ships

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Declined,
    DeclineReason,
    Earlier,
    OutcomeUnknown,
    Voided,
)
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.domain.acquirers.leases import Unleased
from paydesk.domain.chargebacks.booking import record_dispute
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.merchants.customer_links import Link
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.payments.challenges import settle_challenge
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.refunding import refund
from paydesk.domain.payments.results import ConfirmWithBank
from paydesk.domain.payments.states import (
    ATTEMPT_TRANSITIONS,
    PAID,
    PAYMENT_TRANSITIONS,
    AttemptState,
    PaymentState,
)

Charges = Callable[[], list[Standing]]

VISA, DECLINED, ASKS_CUSTOMER = "4242424242424242", "4000000000000002", "4000000000003220"


def test_each_table_says_for_every_state_where_it_may_lead() -> None:
    assert set(PAYMENT_TRANSITIONS) == set(PaymentState)
    assert set(ATTEMPT_TRANSITIONS) == set(AttemptState)
    for ended in (AttemptState.APPROVED, AttemptState.DECLINED, AttemptState.VOIDED):
        assert not ATTEMPT_TRANSITIONS[ended]
    for paid in PAID:
        assert PaymentState.PROCESSING not in PAYMENT_TRANSITIONS[paid], "what is paid is never tried again"


async def test_the_schema_knows_the_same_states(database: Database) -> None:
    for table, states in (("payment", PaymentState), ("payment_attempt", AttemptState)):
        definition = await database.fetchval(
            "select pg_get_constraintdef(oid) from pg_constraint"
            " where conrelid = $1::text::regclass and contype = 'c' and conname = $2",
            table,
            f"{table}_state_is_known",
        )
        quoted = set(definition.split("'")[1::2])
        assert quoted == {str(state) for state in states}


async def test_the_guard_of_these_tests_refuses_what_the_tables_do_not_allow(till: Any, database: Database) -> None:
    await till.pay(await till.order(), VISA)
    with pytest.raises(asyncpg.RaiseError, match="payment may not go from captured to processing"):
        await breaking.say(database, "payment", {"merchant_id": till.shop.merchant_id}, state="processing")


async def test_the_statements_make_every_transition_of_the_tables_and_no_other(till: Any, database: Database) -> None:
    bank = till.honest
    deaf = till.at(LyingAcquirer(bank, Lies(lose_questions=1)))
    mute = till.at(LyingAcquirer(bank, Lies(lose_answers=1)))

    def decide(asked: Any, decision: str) -> None:
        bank.bank.decide(asked.url.rpartition("/")[2], decision)

    async def come_back(token: Link) -> None:
        checkout = await till.find(token)
        await settle_challenge(till.desk, checkout, checkout.attempt, now=utc_now())

    await breaking.say(database, "transition", {}, made=False)
    # Declined, tried again, challenged and left, captured.
    token = await till.order()
    for number in (DECLINED, ASKS_CUSTOMER, VISA):
        await till.pay(token, number)
    # Challenged and rejected, challenged and approved.
    token = await till.order()
    for decision in ("reject", "approve"):
        decide(await till.pay(token, ASKS_CUSTOMER), decision)
        await come_back(token)
    # Given up, then approved and voided: the question was late; a challenge was ended in vain.
    await deaf.pay(await till.order(), VISA)
    await till.settle(minutes=2)
    row = (await till.attempts())[-1]
    card = CardDetails(VISA, 12, 2040, "Ada Lovelace", "123")
    await bank.authorize(Purchase(row["idempotency_key"], row["amount"], "USD", card, True, row["not_after"]))
    await till.settle(hours=2)
    token = await till.order()
    asked = await till.pay(token, ASKS_CUSTOMER)
    ends_nothing = LyingAcquirer(bank, Lies())
    ends_nothing.end_challenge = _pretend  # type: ignore[method-assign]
    await till.at(ends_nothing).pay(token, DECLINED)
    decide(asked, "approve")
    await till.settle(seconds=6)
    # An authorization whose answer was lost, at once and after a challenge.
    for number in (VISA, ASKS_CUSTOMER):
        asked = await mute.pay(await till.order(), number)
        await breaking.say(database, "payment_attempt", {"state": "processing"}, capture=False)
        await till.settle(seconds=6)
    reference = (await till.attempts())[-1]["acquirer_reference"]
    bank.bank.decide(reference, "approve")
    await till.settle(minutes=16)
    await _by_slow_methods(till)
    await _after_the_payment(till, database)
    missing = await database.fetch("select row_of, was, became from transition where not made")
    assert [tuple(row) for row in missing] == []


async def _by_slow_methods(till: Any) -> None:
    """Transfers arrive, come to nothing, and are found pending after the database was put back."""
    till = await till.offering_slow_methods()
    acquirer = till.desk.acquirers["simulator"]

    async def transfer(token: Link, way: Way) -> None:
        led = await go_on(till.desk, token)
        assert isinstance(led, ConfirmWithBank)
        till.bank.pages.pay(led.url.rpartition("/")[2], way, "")
        checkout = await till.find(token)
        await settle_challenge(till.desk, checkout, checkout.attempt, now=utc_now())

    for way in (Way.TRANSFER, Way.FAILING_TRANSFER):
        await transfer(await till.order(), way)
        await till.settle(hours=49)
    token = await till.order("forgotten")
    await transfer(token, Way.TRANSFER)
    await breaking.forget(
        till.desk.database, till.shop.merchant_id, "hosted_page", "payment_attempt", "payment", "customer", "card"
    )
    await go_on(till.desk, token)

    async def declined(key: str, since: datetime | None = None) -> Earlier:
        earlier: Earlier = await acquirer.look_back(key, since)
        return replace(earlier, finding=Declined(DeclineReason.DECLINED))

    await till.at(answering(acquirer, look_back=declined)).settle(hours=1)


async def _after_the_payment(till: Any, database: Database) -> None:
    """Ship and don't ship, refund in one and in parts, dispute and win, send refunds back."""
    shop, desk, bank = till.shop, till.desk, till.bank

    async def sell() -> int:
        return await buy(desk, shop)

    async def give_back(payment_id: int, *amounts: str) -> int:
        for amount in amounts:
            await refund(desk, shop, payment_id, Decimal(amount), requested_by="test", now=utc_now())
        return payment_id

    await ships(database, shop)
    unwilling = LyingAcquirer(till.desk.acquirers["simulator"], Lies())
    unwilling.capture = _refuse  # type: ignore[assignment,method-assign]
    with pytest.raises(Conflict, match="not today"):
        await ship(till.at(unwilling).desk, shop, await sell())
    now = utc_now()
    await act_on_due(desk, real_now=now, merchant_id=shop.merchant_id, at=now + timedelta(days=7))
    await ship(desk, shop, await sell())
    await ships(database, shop, shipped=False)
    await give_back(await sell(), "10")
    await give_back(await sell(), "4", "6")
    await set_back.banks_tell_again(database)
    for payment_id in (await sell(), await give_back(await sell(), "4")):
        key = await database.fetchval("select idempotency_key from payment_attempt where payment_id = $1", payment_id)
        reference = bank.open_dispute(key, "fraudulent")
        await read_disputes(desk, now=utc_now())
        bank.close_dispute(reference, won=True)
        await read_disputes(desk, now=utc_now())
    # The simulated bank takes back no more than is left; others do.
    payment_id = await give_back(await sell(), "10")
    key = await database.fetchval("select idempotency_key from payment_attempt where payment_id = $1", payment_id)
    for status in (DisputeStatus.OPEN, DisputeStatus.WON):
        dispute = Dispute("twice", key, Decimal(10), "USD", "fraudulent", status, utc_now())
        await record_dispute(Unleased(database).holding, "simulator", dispute, now=utc_now(), confirmed=True)
    # Refunds that come back: of one its only one, of one a part and then the rest.
    await set_back.banks_tell_of_refunds_again(database)
    for payment_id in (await give_back(await sell(), "10"), await give_back(await sell(), "4", "6")):
        made = await database.fetch(
            "select acquirer_reference from movement where payment_id = $1 order by id", payment_id
        )
        for row in made:
            bank.fail_refund(row["acquirer_reference"], "unknown")
            await read_failed_refunds(desk, now=utc_now())


async def _refuse(*_: Any) -> None:
    raise AcquirerRefused("not today")


async def _pretend(of_key: str) -> Voided:
    return Voided()


DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("pay"), st.sampled_from([0, 1]), st.sampled_from([VISA, DECLINED, ASKS_CUSTOMER])),
        st.tuples(st.just("bank"), st.sampled_from(["approve", "reject", "close"])),
        st.tuples(st.just("return"), st.sampled_from([0, 1])),
        st.tuples(st.just("settle"), st.sampled_from([6.0, 70.0, 120.0, 1000.0, 4000.0])),
    ),
    max_size=12,
)
ODDS = st.sampled_from([0.0, 0.3, 0.6])


@settings(deadline=None, max_examples=at_length(40, 6), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deeds=DEEDS, seed=st.integers(0, 999), questions=ODDS, answers=ODDS, hide_for=st.sampled_from([0.0, 1e9]))
async def test_whatever_happens_in_whatever_order_an_order_is_charged_once_or_not_at_all(
    till: Any,
    vault: Any,
    database: Database,
    charges: Charges,
    deeds: list[tuple[Any, ...]],
    seed: int,
    questions: float,
    answers: float,
    hide_for: float,
) -> None:
    # Each example has a merchant of its own; the bank is shared, so only this merchant's
    # keys count.
    merchant = await create_merchant(database, vault, name="Shop", email="o@shop.example", now=utc_now())
    bank = till.honest
    honest = type(till)(till.desk, shop_of(merchant, live=False))
    lies = Lies(lose_questions=questions, lose_answers=answers, hide_for=hide_for, seed=seed)
    lied_to = honest.at(LyingAcquirer(bank, lies))
    tokens = [await honest.order("the order"), await honest.order("the order")]
    for deed in deeds:
        await _do(lied_to, bank, tokens, deed)
    for hours in (2, 4, 8, 16, 30, 31):
        await honest.settle(hours=hours)
    attempts = await honest.attempts()
    keys = {row["idempotency_key"] for row in attempts}
    taken = [charge for charge in charges() if charge.key in keys]
    approved = [row["idempotency_key"] for row in attempts if row["state"] == "approved"]
    assert [charge.key for charge in taken] == approved
    assert len(taken) <= 1
    assert not {row["state"] for row in attempts} & {"processing", "challenged", "voiding"}
    count = "select count(*) from pingback where merchant_id = $1"
    assert await database.fetchval(count, merchant.id) == len(taken)
    entries = "select coalesce(sum(amount), 0) from ledger_entry where merchant_id = $1"
    assert await database.fetchval(entries, merchant.id) == 0


async def _do(till: Any, bank: Any, tokens: list[Link], deed: tuple[Any, ...]) -> None:
    """One deed of a customer, the bank's page, or the janitor."""
    match deed:
        case ("pay", which, number):
            try:
                await till.pay(tokens[which], number)
            except Conflict:
                return
        case ("bank", decision):
            for row in await till.attempts():
                if row["acquirer_reference"].startswith("challenge_"):
                    bank.bank.decide(row["acquirer_reference"], decision)
        case ("return", which):
            checkout = await till.find(tokens[which])
            if checkout.standing == "challenged":
                try:
                    await settle_challenge(till.desk, checkout, checkout.attempt, now=utc_now())
                except (Conflict, OutcomeUnknown):
                    return
        case ("settle", seconds):
            await till.settle(seconds=seconds)
