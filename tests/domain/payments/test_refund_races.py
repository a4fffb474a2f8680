"""Hundreds of races of a refund with whatever else may move its payment's money;
the bank's record is the witness.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import pytest
from tests import shopfront
from tests.lengths import at_length, longer
from tests.proving import check
from tests.shopfront import buy, ship, ships
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.refunding import Refund, RefundStatus

pytestmark = longer

RACES = at_length(120, 40)


class Track:
    """Payments to race over."""

    def __init__(self, till: Any, bank: Bank) -> None:
        self.till, self.bank, self.desk, self.shop = till, bank, till.desk, till.shop
        self.database: Database = till.desk.database

    async def line_up(self, races: int = RACES) -> list[int]:
        """The ids of so many fresh payments of 10 USD."""
        return [await buy(self.desk, self.shop) for _ in range(races)]

    async def refund(self, payment_id: int, amount: str | None = None) -> Refund | str:
        """A refund, or the words in which it was refused."""
        try:
            return await shopfront.give_back(self.desk, self.shop, payment_id, amount)
        except (Malformed, Conflict) as error:
            return error.message

    async def ship(self, payment_id: int) -> bool:
        """A confirmed shipment captures; whether it got through."""
        try:
            await ship(self.desk, self.shop, payment_id)
        except Conflict:
            return False
        return True

    async def dispute(self, key: str) -> None:
        """The customer's bank takes back what is left, and workers read of it."""
        await asyncio.to_thread(self.bank.open_dispute, key, "fraudulent")
        await read_disputes(self.desk, now=utc_now())

    async def payments(self) -> dict[int, Any]:
        """Each payment with its key at the bank and what the ledger says that the acquirer owes
        for it.
        """
        rows = await self.database.fetch(
            "select p.*, a.idempotency_key, (select coalesce(sum(amount), 0) from ledger_entry e"
            " where e.merchant_id = p.merchant_id and e.payment_id = p.id and e.account = 'acquirer') as owed"
            " from payment p join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id"
            " where p.merchant_id = $1",
            self.shop.merchant_id,
        )
        return {row["id"]: row for row in rows}

    def at_the_bank(self) -> dict[str, Standing]:
        return standings(self.bank.record.operations())


@pytest.fixture
def track(till: Any, bank: Bank) -> Track:
    return Track(till, bank)


@pytest.fixture(autouse=True)
async def _bank_and_ledger_agree(track: Track, database: Database, shop: Shop) -> AsyncIterator[None]:
    yield
    bank = track.at_the_bank()
    for payment in (await track.payments()).values():
        assert payment["refunding"] == 0
        assert payment["moving_id"] is None
        assert bank[payment["idempotency_key"]].net == payment["owed"], dict(payment)
    open_ones = await database.fetchval(
        "select count(*) from movement where merchant_id = $1 and state = 'processing'", shop.merchant_id
    )
    assert open_ones == 0
    findings = await check(database, now=utc_now(), merchant_id=shop.merchant_id, record=track.bank.record)
    assert [finding.differences for finding in findings if finding.found] == []


async def test_refund_against_refund(track: Track) -> None:
    paid = await track.line_up()
    asked = [(payment_id, amount) for payment_id in paid for amount in ("6.00", "5.00", None, "10.00")]
    answers = await asyncio.gather(*(track.refund(*one) for one in asked))
    given = dict.fromkeys(paid, Decimal(0))
    for (payment_id, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, Refund):
            assert answer.status is not RefundStatus.PROCESSING
            given[payment_id] += answer.amount
    assert {payment_id: row["refunded"] for payment_id, row in (await track.payments()).items()} == given
    assert set(given.values()) <= {Decimal(5), Decimal(6), Decimal(10)}


async def test_refund_against_chargeback(track: Track) -> None:
    paid = await track.line_up()
    keys = {payment_id: row["idempotency_key"] for payment_id, row in (await track.payments()).items()}
    racing = [
        deed
        for payment_id in paid
        for deed in (
            track.refund(payment_id, "4.00"),
            track.dispute(keys[payment_id]),
            track.refund(payment_id, "3.00"),
        )
    ]
    await asyncio.gather(*racing)
    await read_disputes(track.desk, now=utc_now())
    states = set()
    for payment in (await track.payments()).values():
        states.add((payment["state"], payment["refunded"]))
        assert payment["refunded"] + payment["charged_back"] == 10
        assert payment["reserve_taken"] == payment["reserve"]
    assert {state for state, _ in states} == {"charged_back"}
    assert {refunded for _, refunded in states} <= {Decimal(0), Decimal(3), Decimal(4), Decimal(7)}


async def test_refund_against_shipment(track: Track) -> None:
    await ships(track.database, track.shop)
    paid = await track.line_up()
    shipments = [track.ship(payment_id) for payment_id in paid]
    refunds = [track.refund(payment_id) for payment_id in paid]
    pairs = [deed for pair in zip(refunds, shipments, strict=True) for deed in pair]
    answers = await asyncio.gather(*pairs)
    payments = await track.payments()
    for payment_id, given, shipped in zip(paid, answers[::2], answers[1::2], strict=True):
        payment = payments[payment_id]
        if shipped:
            # A refund that came after the capture gave its money back; one that came just then
            # was refused.
            assert payment["state"] == ("refunded" if isinstance(given, Refund) else "captured")
            assert isinstance(given, Refund) or "just being captured" in str(given)
        else:
            assert payment["state"] == "voided"
