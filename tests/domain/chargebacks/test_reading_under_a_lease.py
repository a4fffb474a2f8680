"""One worker at a time reads an acquirer's disputes: whoever is taken over between what they read
and what they write of it writes nothing more, and the next one writes all of it once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, set_back
from tests.banks import ending_in
from tests.domain.chargebacks.telling import Books, beside_a_telling_bank
from tests.sweeping import database, database_url
from tests.taking_over import Hanging

from paydesk.adapters.acquirers.disputes import DisputeStatus
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.acquirers import waiting
from paydesk.domain.chargebacks import booking, reading_acquirers, waiting_disputes
from paydesk.domain.chargebacks.for_api import purchase_of
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

__all__ = ["database", "database_url"]

Buy = Callable[..., Awaitable[int]]
SOME, DAY = timedelta(minutes=5), timedelta(hours=25)
TABLES = (
    "alarm",
    "chargeback",
    "dispute_reading",
    "dispute_waiting",
    "ledger_posting",
    "payment",
    "pingback",
)
TOLD = {"asked": "lost", "forgotten": "open", "known": "open", "new": "open", "waited": "open"}

POINTS: dict[str, tuple[object, str]] = {
    "before a dispute is booked": (reading_acquirers, "record_dispute"),
    "before it is looked for": (booking.queries, "find_charged_back"),
    "before its step is written": (booking.queries, "book"),
    "before its step is an alarm": (booking, "raise_alarms"),
    "before a merchant's answer is noted": (booking.queries, "note_answer"),
    "before what waited is over": (waiting, "settle_alarms"),
    "before what waits is an alarm": (waiting, "raise_alarms"),
    "before what is not known here waits": (waiting_disputes.queries, "keep_unknown"),
    "before what waits is looked for": (waiting_disputes, "due"),
    "before other cells are asked": (waiting_disputes, "heard_of"),
    "before it is tried later": (waiting_disputes.queries, "try_later"),
    "before old ones are forgotten": (waiting_disputes.queries, "forget"),
    "before one is noted as asked for": (reading_acquirers.queries, "asked"),
}


@pytest.fixture
async def torn(desk: Desk, shop: Shop, database: Database, buy: Buy) -> AsyncIterator[Books]:
    """Books of which a bank has all to tell that may be written: disputes that are news, were told
    otherwise, waited, can't be booked, are to be asked for, and are not known any more.
    """
    await set_back.no_disputes_left(database)
    books = await beside_a_telling_bank(desk, shop, await buy())
    keys = {name: (await purchase_of(database, shop, await buy(order=name))).key for name in TOLD}
    two = Decimal(2)
    old = {name: books.dispute("2.00", reference=name, of_key=key) for name, key in keys.items()}
    await books.hear(old["asked"], old["forgotten"], old["known"], replace(old["waited"], of_key="nobody's"))
    answer_by = utc_now() + DAY
    known = replace(old["known"], respond_by=answer_by)
    books.teller.stands = {"asked": replace(old["asked"], status=DisputeStatus.LOST), "known": known}
    in_euro = replace(old["new"], currency="EUR", taken=two, returned=Decimal(0))
    books.teller.pages.append([known, in_euro, old["waited"], books.dispute("3.00", reference="odd", of_key="nobody")])
    yield books
    await books.in_order()


async def read(books: Books) -> int:
    """A day later a worker reads."""
    return await read_disputes(books.desk, now=utc_now() + DAY)


async def leased(books: Books, until: datetime) -> None:
    await breaking.say(books.database, "dispute_reading", {"acquirer": "simulator"}, leased_until=until)


async def all_of(books: Books) -> dict[str, Any]:
    """All that a reading may have written."""
    return {table: [dict(row) for row in await books.database.fetch(f"select * from {table}")] for table in TABLES}


async def written_once(books: Books) -> None:
    """All that the bank had to tell is in the books, once."""
    stands = await books.database.fetch(
        "select acquirer_reference, state, respond_by, takes from chargeback where merchant_id = $1",
        books.shop.merchant_id,
    )
    assert {row["acquirer_reference"]: row["state"] for row in stands} == TOLD
    assert [row["acquirer_reference"] for row in stands if row["respond_by"]] == ["known"]
    assert {row["takes"] for row in stands} == {1}
    assert [one["event"] for one in await books.told_of_chargebacks()] == ["chargeback"] * len(TOLD)
    assert sorted(await books.kinds()) == ["dispute_reckoned", "dispute_unknown", "dispute_waits"]
    assert await books.waiting() == ["no attempt to pay has the key that it names"]
    times = await books.database.fetch("select subject, times, settled_at is null as is_open from alarm")
    assert {row["times"] for row in times if row["is_open"]} == {1}
    assert await books.database.fetchval("select place from dispute_reading") == "5"


@pytest.mark.parametrize("point", POINTS.values(), ids=list(POINTS))
async def test_whoever_is_taken_over_before_they_write_writes_nothing_more(
    torn: Books, monkeypatch: pytest.MonkeyPatch, point: tuple[object, str]
) -> None:
    then = list[dict[str, Any]]()

    async def take_over() -> None:
        await leased(torn, utc_now() + SOME)
        then.append(await all_of(torn))

    hanging = Hanging(torn.database, take_over)
    with monkeypatch.context() as slow:
        hanging.at(slow, *point)
        await read(torn)
        await hanging.is_over()
    assert [await all_of(torn)] == then
    await leased(torn, utc_now() - SOME)
    await read(torn)
    await written_once(torn)


async def test_what_becomes_of_a_page_and_that_it_was_read_is_written_together(
    torn: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("alarm", "dispute_reading", "dispute_waiting")

    async def kept() -> list[Any]:
        whole = await all_of(torn)
        # What waits is tried all the same.
        whole["dispute_waiting"] = [
            {name: one[name] for name in ("acquirer_reference", "told", "reason")} for one in whole["dispute_waiting"]
        ]
        return [[one for one in whole[name] if one.get("kind") != "dispute_reckoned"] for name in names]

    before = await kept()
    with monkeypatch.context() as broken:
        broken.setattr(reading_acquirers.queries, "move_on", ending_in(KeyError("place")))
        assert await read(torn) == 2, "each dispute stands by itself"
    assert await kept() == before
    await read(torn)
    await written_once(torn)


async def test_nothing_is_held_in_the_database_while_the_bank_is_asked(
    torn: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[str]()

    def listening(name: str) -> Callable[..., Awaitable[Any]]:
        honest = getattr(torn.teller, name)

        async def answer(*given: Any) -> Any:
            await torn.database.fetch("select from dispute_reading for update nowait")
            idle = "select count(*) from pg_stat_activity where datname = current_database() and state = $1"
            if await torn.database.fetchval(idle, "idle in transaction") == 0:
                asked.append(name)
            return await honest(*given)

        return answer

    for name in ("disputes", "find_dispute"):
        monkeypatch.setattr(torn.teller, name, listening(name))
    known = torn.teller.stands["known"]
    torn.teller.pages.append([replace(known, at=known.at - DAY, status=DisputeStatus.INQUIRY)])
    await read(torn)
    assert asked.count("find_dispute") == 4, "of one that was told otherwise before, and three that are not over"


async def test_whoever_comes_while_another_writes_leaves_it_to_them_at_once(torn: Books) -> None:
    await leased(torn, utc_now() + SOME)
    async with torn.database.acquire() as other, other.transaction():
        await other.execute("select from dispute_reading for update")
        assert await asyncio.wait_for(read(torn), 30) == 0
