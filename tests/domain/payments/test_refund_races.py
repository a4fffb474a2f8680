"""Hundreds of races of a refund with whatever else may move its payment's money;
the bank's record is the witness.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal

import pytest
from tests.lengths import at_length, long, longer
from tests.shopfront import ships
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.payments.refunding import Refund, RefundStatus

pytestmark = longer

RACES = at_length(120, 40)


async def line_up(till: Till, races: int = RACES) -> list[int]:
    """The ids of so many fresh payments of 10 USD."""
    return [await till.sell() for _ in range(races)]


async def refund(till: Till, payment_id: int, amount: str | None = None) -> Refund | str:
    """A refund, or the words in which it was refused."""
    try:
        return await till.give_back(payment_id, amount)
    except (Malformed, Conflict) as error:
        return error.message


async def ship(till: Till, payment_id: int) -> bool:
    """A confirmed shipment captures; whether it got through."""
    try:
        await till.confirm(payment_id)
    except Conflict:
        return False
    return True


async def dispute(till: Till, key: str) -> None:
    """The customer's bank takes back what is left, and workers read of it."""
    await asyncio.to_thread(till.bank.open_dispute, key, "fraudulent")
    await read_disputes(till.desk, now=utc_now())


@pytest.fixture(autouse=True)
async def _bank_and_ledger_agree(till: Till) -> AsyncIterator[None]:
    yield
    bank = till.standings()
    for payment in (await till.payments_owed()).values():
        assert payment["refunding"] == 0
        assert payment["moving_id"] is None
        assert bank[payment["idempotency_key"]].net == payment["owed"], dict(payment)
    open_ones = await till.database.fetchval(
        "select count(*) from movement where merchant_id = $1 and state = 'processing'", till.shop.merchant_id
    )
    assert open_ones == 0
    assert await till.problems() == []


@long
async def test_refund_against_refund(till: Till) -> None:
    paid = await line_up(till)
    asked = [(payment_id, amount) for payment_id in paid for amount in ("6.00", "5.00", None, "10.00")]
    answers = await asyncio.gather(*(refund(till, *one) for one in asked))
    given = dict.fromkeys(paid, Decimal(0))
    for (payment_id, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, Refund):
            assert answer.status is not RefundStatus.PROCESSING
            given[payment_id] += answer.amount
    assert {payment_id: row["refunded"] for payment_id, row in (await till.payments_owed()).items()} == given
    assert set(given.values()) <= {Decimal(5), Decimal(6), Decimal(10)}


async def test_refund_against_chargeback(till: Till) -> None:
    paid = await line_up(till)
    keys = {payment_id: row["idempotency_key"] for payment_id, row in (await till.payments_owed()).items()}
    racing = [
        deed
        for payment_id in paid
        for deed in (
            refund(till, payment_id, "4.00"),
            dispute(till, keys[payment_id]),
            refund(till, payment_id, "3.00"),
        )
    ]
    await asyncio.gather(*racing)
    # One that met a refund under way waits some seconds before it is tried again.
    await read_disputes(till.desk, now=utc_now() + timedelta(minutes=10))
    states = set()
    for payment in (await till.payments_owed()).values():
        states.add((payment["state"], payment["refunded"]))
        assert payment["refunded"] + payment["charged_back"] == 10
        assert payment["reserve_taken"] == payment["reserve"]
    assert {state for state, _ in states} == {"charged_back"}
    assert {refunded for _, refunded in states} <= {Decimal(0), Decimal(3), Decimal(4), Decimal(7)}


async def test_refund_against_shipment(till: Till) -> None:
    await ships(till.database, till.shop)
    paid = await line_up(till)
    shipments = [ship(till, payment_id) for payment_id in paid]
    refunds = [refund(till, payment_id) for payment_id in paid]
    pairs = [deed for pair in zip(refunds, shipments, strict=True) for deed in pair]
    answers = await asyncio.gather(*pairs)
    payments = await till.payments_owed()
    for payment_id, given, shipped in zip(paid, answers[::2], answers[1::2], strict=True):
        payment = payments[payment_id]
        if shipped:
            # A refund that came after the capture gave its money back; one that came just then
            # was refused.
            assert payment["state"] == ("refunded" if isinstance(given, Refund) else "captured")
            assert isinstance(given, Refund) or "just being captured" in str(given)
        else:
            assert payment["state"] == "voided"
