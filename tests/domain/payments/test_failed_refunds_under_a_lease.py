"""One worker at a time reads which refunds failed: whoever is taken over between what they read and
what they write of it writes nothing more, and the next one writes all of it once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, set_back
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.banks import answering, ending_in
from tests.proving import check
from tests.sweeping import database, database_url
from tests.taking_over import Hanging
from tests.till import Till

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.acquirers import waiting
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import failed_refunds, waiting_refunds
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.failed_refunds import ALARM_AFTER, read_failed_refunds

__all__ = ["database", "database_url"]

SOME, LONG = timedelta(minutes=5), ALARM_AFTER + timedelta(minutes=5)
MADE, ON_ITS_WAY, REFUSED = Decimal(4), Decimal(3), Decimal(2)
TABLES = (
    *("alarm", "failed_refund_reading", "failed_refund_waiting", "ledger_posting", "movement", "payment"),
    "pingback",
)

POINTS: dict[str, tuple[object, str]] = {
    "before a failed refund is looked for": (failed_refunds.queries, "failed_refund"),
    "before it is booked back": (failed_refunds.queries, "record_failed_refund"),
    "before it is refused": (failed_refunds, "_refuse"),
    "before what nobody knows waits": (waiting_refunds.queries, "keep"),
    "before what waits is looked for": (waiting_refunds, "due"),
    "before other cells are asked": (waiting_refunds, "heard_of"),
    "before what nobody knows is an alarm": (waiting, "raise_alarms"),
    "before it is tried later": (waiting_refunds.queries, "try_later"),
    "before what can't be recorded is set aside": (failed_refunds, "set_aside"),
    "before it is said that they are read": (failed_refunds, "settle_alarms"),
    "before old ones are forgotten": (waiting_refunds.queries, "forget"),
}


def silent(torn: Till) -> Till:
    """The till of a worker to whom the bank tells nothing."""
    bank = answering(torn.honest, failed_refunds=ending_in(OutcomeUnknown("nobody answers")))
    return torn.at(bank)


@pytest.fixture
async def torn(desk: Desk, shop: Shop, database: Database, buy: Callable[[], Awaitable[int]]) -> AsyncIterator[Till]:
    """A shop whose bank sends back a refund that was made, one whose answer was lost, one that
    nobody knows, and one that the database refuses; for long it could not be asked.
    """
    await set_back.banks_tell_of_refunds_again(database)
    await breaking.no_alarms(database)
    till = Till(desk, shop, await buy())
    lost = till.at(LyingAcquirer(till.honest, Lies(lose_answers=1.0)))
    for at, amount in ((till, MADE), (till, REFUSED), (lost, ON_ITS_WAY)):
        await at.give(amount)
    keys = await database.fetch(
        "select idempotency_key from movement where merchant_id = $1 and kind = 'refund' order by id", shop.merchant_id
    )
    for row in keys:
        made = till.bank.record.decided(row["idempotency_key"])
        assert made is not None
        till.bank.fail_refund(made.reference, "expired_or_canceled_card")
    reference = await database.fetchval(
        "select acquirer_reference from payment_attempt where merchant_id = $1", shop.merchant_id
    )
    till.bank.fail_refund(till.bank.refund(f"by hand {shop.merchant_id}", reference, Decimal(1), "USD"), "unknown")
    for later in (timedelta(0), LONG):
        await read_failed_refunds(silent(till).desk, now=utc_now() + later)
    condition = f"merchant_id = {shop.merchant_id} and state = 'failed' and amount = {REFUSED}"
    async with breaking.refusing(database, "movement", condition):
        yield till
    wrong = await check(database, now=utc_now(), merchant_id=shop.merchant_id)
    assert [one.rule.statement for one in wrong if one.found] == []


async def read(torn: Till) -> int:
    return await read_failed_refunds(torn.desk, now=utc_now() + LONG)


async def leased(torn: Till, until: datetime) -> None:
    await breaking.say(torn.database, "failed_refund_reading", {"acquirer": "simulator"}, leased_until=until)


async def all_of(torn: Till) -> dict[str, Any]:
    """All that a reading may have written."""
    return {table: [dict(row) for row in await torn.database.fetch(f"select * from {table}")] for table in TABLES}


def taken_over(torn: Till, then: list[dict[str, Any]]) -> Hanging:
    """A worker who is taken over, by one who writes nothing yet; `then` is what stands by then."""

    async def take_over() -> None:
        await leased(torn, utc_now() + SOME)
        then.append(await all_of(torn))

    return Hanging(torn.database, take_over)


async def written_once(torn: Till) -> None:
    """All that the bank has told is in the books, once, or in the operator's list."""
    rows = await torn.rows("movement")
    assert {row["amount"]: row["state"] for row in rows if row["kind"] == "refund"} == {
        MADE: "failed",
        REFUSED: "done",
        ON_ITS_WAY: "refused",
    }
    payment = await torn.payment()
    assert (payment["state"], payment["refunded"], payment["refunding"]) == ("partially_refunded", REFUSED, 0)
    events = [one["event"] for one in await torn.told()]
    assert events.count("refund_failed") == 1
    assert sorted(kind for kind, _ in await torn.alarms()) == ["refund_unknown", "set_aside"]


@pytest.mark.parametrize("point", POINTS.values(), ids=list(POINTS))
async def test_whoever_is_taken_over_before_they_write_writes_nothing_more(
    torn: Till, monkeypatch: pytest.MonkeyPatch, point: tuple[object, str]
) -> None:
    then = list[dict[str, Any]]()
    hanging = taken_over(torn, then)
    with monkeypatch.context() as slow:
        hanging.at(slow, *point)
        await read(torn)
        await hanging.is_over()
    assert [await all_of(torn)] == then
    await leased(torn, utc_now() - SOME)
    await read(torn)
    await written_once(torn)


async def test_whoever_was_taken_over_does_not_say_that_the_bank_can_not_be_read(
    torn: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    await read(torn)
    then = list[dict[str, Any]]()
    hanging = taken_over(torn, then)
    with monkeypatch.context() as slow:
        hanging.at(slow, failed_refunds.queries, "reading_stands")
        await read_failed_refunds(silent(torn).desk, now=utc_now() + 3 * LONG)
        await hanging.is_over()
    assert [await all_of(torn)] == then


async def test_whoever_comes_while_another_writes_leaves_it_to_them_at_once(torn: Till) -> None:
    await leased(torn, utc_now() + SOME)
    async with torn.database.acquire() as other, other.transaction():
        await other.execute("select from failed_refund_reading for update")
        assert await asyncio.wait_for(read(torn), 30) == 0
