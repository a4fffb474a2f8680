"""Refunds that the customer's bank sends back after they were made."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, set_back, shopfront
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.banks import answering, ending_in
from tests.proving import check
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.disputes import FailedRefund
from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import failed_refunds
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import Refund, refunds_of

__all__ = ["database", "database_url"]

TEN, FOUR, ZERO = Decimal(10), Decimal(4), Decimal(0)
WHY = "expired_or_canceled_card"


@dataclass(frozen=True, slots=True)
class Returned:
    """A paid order, and a bank that may send its refunds back."""

    desk: Desk
    shop: Shop
    bank: Bank
    payment_id: int

    async def give(self, amount: Decimal | None = None, key: str | None = None) -> Refund:
        return await shopfront.give_back(self.desk, self.shop, self.payment_id, amount, key=key)

    async def send_back(self, given: Refund) -> None:
        """The customer's bank does not take a refund."""
        row = await self.desk.database.fetchrow(
            "select * from movement where merchant_id = $1 and id = $2", self.shop.merchant_id, given.reference_id
        )
        assert row is not None
        made = self.bank.record.decided(row["idempotency_key"])
        assert made is not None
        self.bank.fail_refund(made.reference, WHY)

    async def read(self, **later: float) -> int:
        return await read_failed_refunds(self.desk, now=utc_now() + timedelta(**later))

    async def payment(self) -> Any:
        return await self.desk.database.fetchrow(
            "select * from payment where merchant_id = $1 and id = $2", self.shop.merchant_id, self.payment_id
        )

    async def standing(self) -> tuple[str, Decimal, Decimal]:
        row = await self.payment()
        return row["state"], row["refunded"], row["refunding"]

    async def told(self) -> list[dict[str, Any]]:
        rows = await self.desk.database.fetch(
            "select payload from pingback where merchant_id = $1 and payment_id = $2 order by id",
            self.shop.merchant_id,
            self.payment_id,
        )
        return [json.loads(row["payload"], parse_float=Decimal) for row in rows]

    async def alarms(self) -> list[tuple[str, str]]:
        rows = await self.desk.database.fetch("select kind, subject from alarm where settled_at is null order by id")
        return [(row["kind"], row["subject"]) for row in rows]

    async def problems(self) -> list[Any]:
        """What `paydesk check` finds, the bank's record as its witness."""
        found = await check(
            self.desk.database, now=utc_now(), merchant_id=self.shop.merchant_id, record=self.bank.record
        )
        return [finding.differences for finding in found if finding.found]


@pytest.fixture
async def order(desk: Desk, shop: Shop, bank: Bank, database: Database, buy: Callable[[], Awaitable[int]]) -> Returned:
    await set_back.banks_tell_of_refunds_again(database)
    await breaking.no_alarms(database)
    return Returned(desk, shop, bank, await buy())


async def test_it_is_booked_back_and_told_once(order: Returned) -> None:
    given = await order.give(FOUR)
    await order.send_back(given)
    assert [await order.read() for _ in range(3)] == [1, 0, 0]
    assert await order.standing() == ("captured", ZERO, ZERO)
    (told,) = (one for one in await order.told() if one["event"] == "refund_failed")
    said = told["payment_order"]
    assert said["status"] == "successful"
    assert (said["refund_amount"], said["total_refunded_amount"], said["reason"]) == (FOUR, 0, WHY)
    assert said["reference_id"] == given.reference_id
    (line,) = await refunds_of(order.desk.database, order.shop, order.payment_id)
    assert (line.state, line.amount) == ("failed", FOUR)
    assert await order.problems() == []


async def test_its_posting_gives_the_merchant_what_came_back(order: Returned) -> None:
    await order.send_back(await order.give(FOUR))
    await order.read()
    rows = await order.desk.database.fetch(
        "select account, amount from ledger_entry where merchant_id = $1 and kind = 'refund_failure'",
        order.shop.merchant_id,
    )
    assert {row["account"]: row["amount"] for row in rows} == {"acquirer": FOUR, "available": -FOUR}


async def test_fees_that_it_had_returned_are_due_again(order: Returned) -> None:
    database, merchant_id = order.desk.database, order.shop.merchant_id

    async def balances() -> dict[str, Decimal]:
        rows = await database.fetch(
            "select account, sum(amount) as amount from ledger_entry where merchant_id = $1 group by account",
            merchant_id,
        )
        return {row["account"]: row["amount"] for row in rows}

    await change_merchant(database, merchant_id, fees_returned=True)
    before = await balances()
    first, second = await order.give(Decimal("3.33")), await order.give()
    assert (await balances())["fees"] == 0
    for given in (first, second):
        await order.send_back(given)
        assert await order.read() == 1
        assert await order.problems() == []
    assert (await balances())["fees"] == before["fees"]
    assert (await order.payment())["fees_taken"] == 0
    await order.give()
    assert (await balances())["fees"] == 0
    assert (await order.payment())["fees_taken"] == -before["fees"]
    assert await order.problems() == []


async def test_of_a_whole_refund_in_parts_the_others_stay(order: Returned) -> None:
    first, second = await order.give(FOUR), await order.give()
    assert (await order.standing())[0] == "refunded"
    await order.send_back(first)
    assert await order.read() == 1
    assert await order.standing() == ("partially_refunded", TEN - FOUR, ZERO)
    assert (await order.told())[-1]["payment_order"]["status"] == "reversal_refunded_partially"
    await order.send_back(second)
    assert await order.read() == 1
    assert await order.standing() == ("captured", ZERO, ZERO)
    assert await order.problems() == []


async def test_it_can_be_given_back_again_under_another_key(order: Returned) -> None:
    await order.send_back(await order.give(key="one"))
    await order.read()
    with pytest.raises(Conflict, match="came back"):
        await order.give(key="one")
    again = await order.give(key="two")
    assert (again.total, (await order.standing())[0]) == (TEN, "refunded")
    assert await order.problems() == []


async def test_a_refund_that_failed_before_it_was_recorded_is_refused(order: Returned) -> None:
    lost = LyingAcquirer(order.desk.acquirers["simulator"], Lies(lose_answers=1.0))
    given = await replace(order, desk=replace(order.desk, acquirers={"simulator": lost})).give(FOUR)
    assert given.status == "processing"
    await order.send_back(given)
    assert await order.read() == 1
    assert await order.standing() == ("captured", ZERO, ZERO)
    await finish_movements(order.desk, now=utc_now() + timedelta(minutes=2))
    assert await order.standing() == ("captured", ZERO, ZERO)
    assert [one["event"] for one in await order.told()] == ["payment"]
    assert await order.problems() == []


async def test_of_a_refund_that_failed_the_janitor_finds_that_it_is_refused(order: Returned) -> None:
    lost = LyingAcquirer(order.desk.acquirers["simulator"], Lies(lose_answers=1.0))
    given = await replace(order, desk=replace(order.desk, acquirers={"simulator": lost})).give(FOUR)
    await order.send_back(given)
    await finish_movements(order.desk, now=utc_now() + timedelta(minutes=2))
    assert await order.standing() == ("captured", ZERO, ZERO)
    assert await order.read() == 0


async def test_an_account_that_muted_it_is_not_told(order: Returned) -> None:
    await change_merchant(order.desk.database, order.shop.merchant_id, muted=["refund_failed"])
    await order.send_back(await order.give(FOUR))
    assert await order.read() == 1
    assert [one["event"] for one in await order.told()] == ["payment", "partial_refund"]
    assert await order.problems() == []


async def test_one_that_nobody_knows_is_an_alarm_and_stops_no_other(order: Returned) -> None:
    purchase = await order.desk.database.fetchrow(
        "select * from payment_attempt where merchant_id = $1", order.shop.merchant_id
    )
    assert purchase is not None
    by_hand = order.bank.refund("by hand", purchase["acquirer_reference"], Decimal(1), "USD")
    order.bank.fail_refund(by_hand, "unknown")
    await order.send_back(await order.give(FOUR))
    assert await order.read() == 1
    assert await order.alarms() == [("refund_unknown", by_hand)]
    assert (await order.standing())[0] == "captured"


async def test_an_acquirer_that_can_t_be_read_for_hours_is_an_alarm_until_it_can(order: Returned) -> None:
    assert await order.read() == 0
    silent = answering(order.desk.acquirers["simulator"], failed_refunds=ending_in(OutcomeUnknown("nobody answers")))
    away = replace(order, desk=replace(order.desk, acquirers={"simulator": silent}))
    await away.read(hours=5)
    assert await order.alarms() == []
    await away.read(hours=7)
    assert await order.alarms() == [("refunds_unread", "simulator")]
    assert await order.read(hours=8) == 0
    assert await order.alarms() == []


async def test_one_that_can_not_be_recorded_is_kept_and_stops_no_other(
    order: Returned, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = await order.give(FOUR)
    record, broken = failed_refunds.record_failed, True

    async def breaks(database: Database, acquirer: str, failed: FailedRefund, *, now: datetime) -> bool:
        if broken and failed.amount == FOUR:
            raise ValueError("nobody can work it out")
        return await record(database, acquirer, failed, now=now)

    monkeypatch.setattr(failed_refunds, "record_failed", breaks)
    await order.send_back(given)
    assert await order.read() == 0
    await order.send_back(await order.give(Decimal(1)))
    assert await order.read() == 1, "the one behind it is booked"
    ((kind, _),) = await order.alarms()
    assert kind == "set_aside"
    broken = False
    assert await order.read() == 1, "it is told again"
    assert await order.standing() == ("captured", ZERO, ZERO)
    assert await order.read() == 0
    assert await order.problems() == []


async def test_an_answer_that_makes_no_sense_keeps_nobody_from_the_other_acquirers(order: Returned) -> None:
    honest = order.desk.acquirers["simulator"]
    both = {"senseless": answering(honest, failed_refunds=ending_in(KeyError("status"))), "simulator": honest}
    await order.send_back(await order.give(FOUR))
    assert await replace(order, desk=replace(order.desk, acquirers=both)).read() == 1
    assert await order.alarms() == [("refunds_unread", "senseless")]
