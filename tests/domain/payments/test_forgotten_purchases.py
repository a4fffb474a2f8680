"""A key that meets an older purchase: adopted, held for a person, or passed over;
never charged beside it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.adapters.acquirers.simulator.lying import LyingAcquirer
from tests.banks import answering
from tests.shopfront import MONTHLY
from tests.standings import standings
from tests.till import Till

from paydesk.adapters.acquirers.interface import Challenged, KeyUsed, Outcome, OutcomeUnknown
from paydesk.adapters.acquirers.marks import PurchaseKind
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.periods import Period
from paydesk.domain.payments.refunding import refund
from paydesk.domain.payments.results import Paid, Unsettled
from paydesk.domain.subscriptions.subscription_terms import Terms

VISA, MASTERCARD, DECLINED, CHALLENGED = "4242424242424242", "5555555555554444", "4000000000000002", "4000000000003220"


async def forget(till: Till) -> None:
    """The database is put back to what it was before the last order was paid or refused:
    it knows the order alone.
    """
    database, merchant_id = till.desk.database, till.shop.merchant_id
    for statement in (
        "delete from pingback where merchant_id = $1",
        "delete from ledger_entry where merchant_id = $1",
        "delete from payment_attempt where merchant_id = $1",
        "delete from payment where merchant_id = $1",
    ):
        await database.execute(statement, merchant_id)


def taken(bank: Bank) -> list[Standing]:
    return [one for one in standings(bank.record.operations()).values() if one.captured]


async def alarms(till: Till) -> list[str]:
    rows = await till.desk.database.fetch(
        "select kind from alarm where merchant_id = $1 and settled_at is null", till.shop.merchant_id
    )
    return [row["kind"] for row in rows]


@pytest.mark.parametrize("number", [VISA, MASTERCARD])
async def test_what_was_paid_before_is_adopted_whatever_card_is_typed_now(till: Till, bank: Bank, number: str) -> None:
    token = await till.order("mug")
    assert await till.pay(token, VISA) == Paid()
    await forget(till)
    assert await till.pay(token, number) == Paid()
    assert len(taken(bank)) == 1
    (attempt,) = await till.attempts()
    assert (attempt["state"], attempt["acquirer_reference"]) == ("approved", taken(bank)[0].reference)


async def test_what_is_adopted_has_the_id_again_that_its_shop_was_told(till: Till) -> None:
    token = await till.order("mug")
    assert await till.pay(token, VISA) == Paid()
    told = await _told(till)
    await forget(till)
    assert await till.pay(token, MASTERCARD) == Paid()
    assert await _told(till) == told
    (attempt,) = await till.attempts()
    assert attempt["payment_id"] == told["id"]


async def test_what_has_its_id_again_is_found_by_who_paid_and_by_what(till: Till) -> None:
    token = await till.order("mug")
    assert await till.pay(token, VISA) == Paid()
    told = await _told(till)
    await forget(till)
    # Another payment has an id meanwhile, so that the next one is another than before.
    await till.pay(await till.order("other"), VISA)
    assert await till.pay(token, MASTERCARD) == Paid()
    assert await _told(till) == told
    (payment,) = [row for row in await _payments(till) if row["merchant_order_id"] == "mug"]
    for asked, theirs in (("payments_of_customer", "customer_id"), ("payments_with_card", "card_id")):
        found = await till.desk.database.fetch(
            f"select payment_id from {asked}($1, $2, $3)", till.shop.merchant_id, till.shop.live, payment[theirs]
        )
        assert [row["payment_id"] for row in found] == [told["id"]]
    assert await till.problems() == []


async def test_an_id_that_is_anothers_by_now_stays_theirs(till: Till) -> None:
    token = await till.order("mug")
    await till.pay(token, VISA)
    told = await _told(till)
    await forget(till)
    await till.pay(await till.order("other"), VISA)
    database, merchant_id = till.desk.database, till.shop.merchant_id
    for table, column in (("payment", "id"), ("payment_attempt", "payment_id"), ("pingback", "payment_id")):
        await database.execute(f"update {table} set {column} = $1 where merchant_id = $2", told["id"], merchant_id)
    assert await till.pay(token, VISA) == Paid()
    (other,) = [row["id"] for row in await _payments(till) if row["merchant_order_id"] == "other"]
    assert other == told["id"]


async def test_a_renewal_that_is_adopted_has_its_id_again(till: Till) -> None:
    club = till
    subscription = await club.subscribe()
    due = subscription.date_next
    assert due is not None
    await club.charge(due)
    before = [row["id"] for row in await _payments(till)]
    await _forget_renewal(till, subscription.id, due)
    await club.charge(due)
    assert [row["id"] for row in await _payments(till)] == before


async def _payments(till: Till) -> list[Any]:
    found = await till.desk.database.fetch(
        "select id, merchant_order_id, customer_id, card_id from payment where merchant_id = $1 order by id",
        till.shop.merchant_id,
    )
    return list(found)


async def _told(till: Till) -> Any:
    """The order as the newest pingback tells of it, without its time."""
    payload = await till.desk.database.fetchval(
        "select payload from pingback where merchant_id = $1 order by id desc limit 1", till.shop.merchant_id
    )
    return {key: value for key, value in json.loads(payload)["payment_order"].items() if key != "date"}


async def test_an_order_whose_amount_changed_is_held_and_not_charged(till: Till, bank: Bank) -> None:
    await till.pay(await till.order("mug"), VISA)
    await forget(till)
    token = await till.order("mug", amount=Decimal("12.00"))
    assert await till.pay(token, VISA) == Unsettled()
    await till.settle(minutes=5)
    assert (await till.state(), await till.attempt_states()) == ("processing", ["processing"])
    assert [one.captured for one in taken(bank)] == [Decimal(10)]
    assert await alarms(till) == ["order_held"]


async def test_a_decline_of_before_is_not_shown_to_the_card_typed_now(till: Till, bank: Bank) -> None:
    token = await till.order("mug")
    for _ in range(2):
        await till.pay(token, DECLINED)
    await forget(till)
    assert await till.pay(token, VISA) == Paid()
    (attempt,) = await till.attempts()
    assert attempt["number"] == 3
    assert len(taken(bank)) == 1


async def test_an_approval_behind_declines_is_adopted(till: Till, bank: Bank) -> None:
    token = await till.order("mug")
    await till.pay(token, DECLINED)
    await till.pay(token, VISA)
    await forget(till)
    assert await till.pay(token, MASTERCARD) == Paid()
    assert len(taken(bank)) == 1


async def test_after_ten_numbers_nothing_more_is_tried(till: Till, bank: Bank) -> None:
    till = replace(till, desk=replace(till.desk, limits=replace(till.desk.limits, attempts_per_checkout=100)))
    token = await till.order("mug")
    for _ in range(10):
        await till.pay(token, DECLINED)
    await forget(till)
    assert await till.pay(token, VISA) == Unsettled()
    await till.settle(minutes=5)
    assert await till.attempt_states() == ["failed"]
    assert await till.pay(token, VISA) == Paid()
    assert len(taken(bank)) == 1


async def test_an_open_challenge_of_before_is_ended(till: Till, bank: Bank) -> None:
    token = await till.order("mug")
    await till.pay(token, CHALLENGED)
    await forget(till)
    assert await till.pay(token, VISA) == Paid()
    assert len(taken(bank)) == 1
    assert not [one for one in standings(bank.record.operations()).values() if isinstance(one.finding(), Challenged)]


async def test_what_can_not_be_found_yet_stays_pending(till: Till, bank: Bank) -> None:
    token = await till.order("mug")
    await till.pay(token, VISA)
    await forget(till)

    async def not_yet(_key: str) -> None:
        """Its list is slow to know."""

    slow = till.at(answering(SimulatedAcquirer(bank, base_url="http://pay.test"), look_back=not_yet))
    assert await slow.pay(token, MASTERCARD) == Unsettled()
    await till.settle(seconds=30)
    assert await till.state() == "captured"
    assert len(taken(bank)) == 1


def dying(bank: Bank) -> LyingAcquirer:
    """The process dies once it has sent a purchase."""
    honest = SimulatedAcquirer(bank, base_url="http://pay.test")

    async def die(purchase: Purchase) -> Outcome:
        with suppress(KeyUsed):
            await (honest.charge_stored if purchase.card is None else honest.authorize)(purchase)
        raise OutcomeUnknown("killed")

    return answering(honest, authorize=die, charge_stored=die)


@pytest.mark.parametrize(
    ("before", "state", "attempt"), [(DECLINED, "declined", "failed"), (VISA, "captured", "approved")]
)
async def test_the_janitor_takes_no_old_decline_for_an_answer(
    till: Till, bank: Bank, before: str, state: str, attempt: str
) -> None:
    token = await till.order("mug")
    await till.pay(token, before)
    await forget(till)
    deaf = till.at(dying(bank))
    assert await deaf.pay(token, before) == Unsettled()
    await till.settle(seconds=10)
    await till.settle(minutes=5)
    assert (await till.state(), await till.attempt_states()) == (state, [attempt])
    (row,) = await till.attempts()
    assert row["decline_reason"] in ("", "processing_error")


YEARLY = replace(MONTHLY, period=Period(1, "year"))


@pytest.mark.parametrize("dies", [False, True], ids=["at once", "by the janitor"])
@pytest.mark.parametrize(
    ("terms", "state"), [(MONTHLY, "captured"), (YEARLY, "processing"), (None, "processing")], ids=str
)
async def test_an_order_of_other_terms_is_held_and_not_adopted(
    till: Till, bank: Bank, terms: Terms | None, state: str, dies: bool
) -> None:
    await till.pay(await till.order("club", terms=MONTHLY), VISA)
    for statement in ("update payment set subscription_id = null", "delete from subscription"):
        await till.desk.database.execute(f"{statement} where merchant_id = $1", till.shop.merchant_id)
    await forget(till)
    token = await till.order("club", terms=terms)
    deaf = till.at(dying(bank))
    said = await (deaf if dies else till).pay(token, VISA)
    assert said == (Unsettled() if dies or state == "processing" else Paid())
    await till.settle(minutes=5)
    assert await till.state() == state
    assert len(taken(bank)) == 1
    assert await alarms(till) == (["order_held"] if state == "processing" else [])


async def charged_before(till: Till, bank: Bank, number: str, terms: str | None = None) -> datetime:
    """A subscription whose first renewal, due then, was put to the bank before,
    which we have forgotten.
    """
    subscription = await till.subscribe()
    key = await till.desk.database.fetchval(
        "select idempotency_key from payment_attempt where merchant_id = $1", till.shop.merchant_id
    )
    first = await till.desk.database.fetchval("select derived_key($1, $2)", till.desk.pads, f"renewal {key} 2 1")
    kept = bank.record.mark(key)
    assert kept is not None
    assert kept[1] is not None
    mark = replace(kept[1], kind=PurchaseKind.RENEWAL, period=2, terms=kept[1].terms if terms is None else terms)
    until, card = utc_now() + timedelta(seconds=30), CardDetails(number, 12, 2040, "Ada Lovelace")
    bank.purchase(
        Purchase(first, MONTHLY.price, "USD", card, True, until, network_reference="first", mark=mark), stored=True
    )
    assert subscription.date_next is not None
    return subscription.date_next


async def test_a_renewal_that_was_declined_before_takes_the_next_number(till: Till, bank: Bank) -> None:
    due = await charged_before(till, bank, DECLINED)
    await till.charge(due)
    row = (await till.attempts())[-1]
    assert (row["state"], row["number"]) == ("approved", 2)


@pytest.mark.parametrize("dies", [False, True], ids=["by the billing", "by the janitor"])
@pytest.mark.parametrize(("terms", "state"), [(None, "approved"), ("other", "processing")], ids=str)
async def test_a_renewal_of_other_terms_is_held_and_not_adopted(
    till: Till, bank: Bank, terms: str | None, state: str, dies: bool
) -> None:
    due = await charged_before(till, bank, VISA, terms)
    deaf = till.at(dying(bank))
    await (deaf if dies else till).charge(due)
    await till.settle(minutes=5)
    row = (await till.attempts())[-1]
    assert (row["state"], row["number"]) == (state, 1)
    assert len(taken(bank)) == 2
    assert await alarms(till) == ([] if terms is None else ["order_held"])


async def test_an_old_order_is_looked_for_before_it_is_sent(till: Till, bank: Bank) -> None:
    token = await till.order("mug")
    await till.pay(token, VISA)
    await forget(till)
    await till.desk.database.execute(
        "update checkout set created_at = created_at - interval '25 hours' where merchant_id = $1",
        till.shop.merchant_id,
    )
    later = Bank(bank.record, now=lambda: utc_now() + timedelta(hours=25))
    aged = till.at(SimulatedAcquirer(later, base_url="http://pay.test"))
    assert await aged.pay(token, VISA) == Paid()
    assert len(taken(bank)) == 1


async def test_a_renewal_long_due_is_looked_for_before_it_is_sent(till: Till, bank: Bank) -> None:
    club = till
    subscription = await club.subscribe()
    due = subscription.date_next
    assert due is not None
    await club.charge(due)
    later = Bank(bank.record, now=lambda: utc_now() + timedelta(hours=25))
    assert len(taken(bank)) == 2
    await _forget_renewal(till, subscription.id, due)
    aged = till.at(SimulatedAcquirer(later, base_url="http://pay.test"))
    await aged.charge(due + timedelta(hours=25))
    assert len(taken(bank)) == 2
    row = (await till.attempts())[-1]
    assert row["state"] == "approved"


async def _forget_renewal(till: Till, subscription_id: int, due: Any) -> None:
    database, merchant_id = till.desk.database, till.shop.merchant_id
    renewals = "(select id from payment where merchant_id = $1 and renewal)"
    await database.execute(f"delete from pingback where merchant_id = $1 and payment_id in {renewals}", merchant_id)
    await database.execute(f"delete from ledger_entry where merchant_id = $1 and payment_id in {renewals}", merchant_id)
    await database.execute(
        f"delete from payment_attempt where merchant_id = $1 and payment_id in {renewals}", merchant_id
    )
    await database.execute("delete from payment where merchant_id = $1 and renewal", merchant_id)
    await breaking.say(
        database,
        "subscription",
        {"id": subscription_id},
        date_next=due,
        next_period=2,
        counter=1,
        paid_number_counter=1,
    )


async def give_back(till: Till, amount: str, key: str | None = None) -> Any:
    payment_id = await till.desk.database.fetchval(
        "select id from payment where merchant_id = $1", till.shop.merchant_id
    )
    asked = Decimal(amount)
    return await refund(till.desk, till.shop, payment_id, asked, requested_by="api", request_key=key, now=utc_now())


async def forget_refunds(till: Till) -> None:
    """The database is put back to what it was before money was given back."""
    async with till.desk.database.acquire() as connection, connection.transaction():
        await connection.execute("alter table payment disable trigger guarded")
        for statement in (
            "delete from pingback where merchant_id = $1 and event <> 'payment'",
            "delete from ledger_entry where merchant_id = $1 and kind <> 'capture'",
            "delete from movement where merchant_id = $1",
            "update payment set state = 'captured', refunded = 0, refunding = 0, pending_taken = 0, reserve_taken = 0,"
            " fees_taken = 0 where merchant_id = $1",
        ):
            await connection.execute(statement, till.shop.merchant_id)
        await connection.execute("alter table payment enable trigger guarded")


async def movements(till: Till) -> list[tuple[Decimal, str]]:
    rows = await till.desk.database.fetch(
        "select amount, state from movement where merchant_id = $1 order by id", till.shop.merchant_id
    )
    return [(row["amount"], row["state"]) for row in rows]


async def test_a_forgotten_refund_of_another_amount_is_recorded_as_it_was(till: Till, bank: Bank) -> None:
    await till.pay(await till.order(), VISA)
    await give_back(till, "6.00")
    await forget_refunds(till)
    given = await give_back(till, "3.00")
    assert (given.amount, given.total) == (Decimal(3), Decimal(9))
    assert await movements(till) == [(Decimal(6), "done"), (Decimal(3), "done")]
    assert taken(bank)[0].refunded == Decimal(9)


async def test_a_callers_key_of_a_forgotten_refund_stands_for_that(till: Till, bank: Bank) -> None:
    await till.pay(await till.order(), VISA)
    await give_back(till, "6.00", "K1")
    await forget_refunds(till)
    with pytest.raises(Conflict):
        await give_back(till, "3.00", "K1")
    assert await movements(till) == [(Decimal(6), "done")]
    assert (await give_back(till, "6.00", "K1")).total == Decimal(6)
    assert taken(bank)[0].refunded == Decimal(6)


async def test_a_refund_of_an_old_payment_is_looked_for_before_it_is_made(till: Till, bank: Bank) -> None:
    await till.pay(await till.order(), VISA)
    await give_back(till, "4.00", "K1")
    await forget_refunds(till)
    await till.desk.database.execute(
        "update payment set paid_at = paid_at - interval '25 hours' where merchant_id = $1", till.shop.merchant_id
    )
    later = Bank(bank.record, now=lambda: utc_now() + timedelta(hours=25))
    aged = till.at(SimulatedAcquirer(later, base_url="http://pay.test"))
    assert (await give_back(aged, "4.00", "K1")).total == Decimal(4)
    assert taken(bank)[0].refunded == Decimal(4)
