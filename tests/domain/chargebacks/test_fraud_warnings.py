"""An issuer's warning of fraud is one alarm of its payment, once, and moves no money."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.banks import answering, ending_in
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.fraud_warnings import FraudWarning
from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.cells.fencing import close, fence, find_fence, forget, say_moved
from paydesk.domain.chargebacks.fraud_warnings import is_warned_of, read_fraud_warnings
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.operations.alarms import settle_alarm
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund

__all__ = ["database", "database_url"]

Buy = Callable[..., Awaitable[int]]


async def keys_of(database: Database, shop: Shop, payment_id: int) -> tuple[str, str]:
    """The key of a payment's attempt, and the tag of its merchant."""
    row = await database.fetchrow(
        "select a.idempotency_key, m.key_tag from payment_attempt a join merchant m on m.id = a.merchant_id"
        " where a.merchant_id = $1 and a.payment_id = $2",
        shop.merchant_id,
        payment_id,
    )
    assert row is not None
    return row["idempotency_key"], row["key_tag"]


async def alarm_on(database: Database, payment_id: int) -> int:
    which = "select id from alarm where kind = 'fraud_warned' and subject = 'payment ' || $1::bigint"
    return int(await database.fetchval(which, payment_id))


async def alarms(database: Database, payment_id: int) -> list[tuple[int, bool, str, bool, int]]:
    rows = await database.fetch(
        "select merchant_id, live, subject, settled_at is null as is_open, times from alarm"
        " where kind = 'fraud_warned' and subject = 'payment ' || $1::bigint order by id",
        payment_id,
    )
    return [tuple(row.values()) for row in rows]


class Banks:
    """What banks warn of, each under its account's name, and a worker that reads them."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.unread: dict[str, str] = {}

    async def tell(self, *told: FraudWarning | Exception) -> None:
        """The bank warns of these, or says what is wrong."""
        await self.tell_each(simulator=told)

    async def tell_each(self, **banks: tuple[FraudWarning | Exception, ...]) -> None:
        """As `tell`, of several accounts, in this order."""
        honest = self.desk.acquirers["simulator"]
        acquirers = {name: answering(honest, fraud_warnings=self._telling(told)) for name, told in banks.items()}
        await read_fraud_warnings(replace(self.desk, acquirers=acquirers), now=utc_now(), unread=self.unread)

    def _telling(self, told: tuple[FraudWarning | Exception, ...]) -> Callable[..., Awaitable[Any]]:
        async def tell(_since: datetime) -> tuple[FraudWarning, ...]:
            return tuple(one for one in told if isinstance(one, FraudWarning))

        return next((ending_in(one) for one in told if isinstance(one, Exception)), tell)


@pytest.fixture
def banks(desk: Desk) -> Banks:
    return Banks(desk)


async def warning_of(database: Database, shop: Shop, payment_id: int, **changes: Any) -> FraudWarning:
    key, tag = await keys_of(database, shop, payment_id)
    return replace(FraudWarning("issfr_1", key, tag, "made_with_stolen_card", may_be_averted=True), **changes)


async def open_ones(database: Database, payment_id: int) -> list[bool]:
    return [one[3] for one in await alarms(database, payment_id)]


@pytest.mark.parametrize("tagged", [True, False])
async def test_it_is_an_alarm_of_its_payment_once(
    database: Database, shop: Shop, buy: Buy, banks: Banks, *, tagged: bool
) -> None:
    payment_id = await buy()
    told = await warning_of(database, shop, payment_id, **({} if tagged else {"of_merchant": ""}))
    assert not await is_warned_of(database, shop, payment_id)
    await banks.tell(told)
    await banks.tell(told, replace(told, reference="issfr_2"))
    only = (shop.merchant_id, shop.live, f"payment {payment_id}", True, 1)
    assert await alarms(database, payment_id) == [only]
    assert await is_warned_of(database, shop, payment_id)
    await settle_alarm(database, COMMAND_LINE, await alarm_on(database, payment_id), now=utc_now())
    await banks.tell(told)
    assert await alarms(database, payment_id) == [(*only[:3], False, 1)], "whoever looked after it hears of it no more"
    assert await is_warned_of(database, shop, payment_id), "its merchant still may"
    state = "select state from payment where id = $1"
    assert await database.fetchval(state, payment_id) == "captured", "no money moves"


async def test_workers_that_read_it_at_once_raise_one_alarm(
    database: Database, shop: Shop, buy: Buy, banks: Banks
) -> None:
    payment_id = await buy()
    told = await warning_of(database, shop, payment_id)
    await asyncio.gather(*(banks.tell(told) for _ in range(3)))
    assert await open_ones(database, payment_id) == [True]
    await asyncio.gather(*(banks.tell(replace(told, may_be_averted=False)) for _ in range(3)))
    assert await open_ones(database, payment_id) == [False]


async def test_it_settles_itself_once_nothing_can_be_averted(
    database: Database, shop: Shop, buy: Buy, banks: Banks
) -> None:
    payment_id, other = await buy(), await buy(order="A-2")
    told = await warning_of(database, shop, payment_id)
    await banks.tell(told, await warning_of(database, shop, other))
    await banks.tell(OutcomeUnknown("down"))
    assert await open_ones(database, payment_id) == [True]
    await banks.tell(replace(told, may_be_averted=False))
    assert await open_ones(database, payment_id) == [False]
    assert not await is_warned_of(database, shop, payment_id)
    assert await open_ones(database, other) == [True]


async def test_it_settles_itself_by_our_books_however_long_ago_it_was_told(
    desk: Desk, database: Database, shop: Shop, buy: Buy, banks: Banks
) -> None:
    payment_id, other = await buy(), await buy(order="A-2")
    told, of_other = [await warning_of(database, shop, one) for one in (payment_id, other)]
    await banks.tell(told, of_other)
    await refund(desk, shop, payment_id, None, requested_by="api", now=utc_now())
    await banks.tell()
    assert await open_ones(database, payment_id) == [False]
    assert await open_ones(database, other) == [True]


async def test_what_was_refunded_before_it_was_told_raises_nothing(
    desk: Desk, database: Database, shop: Shop, buy: Buy, banks: Banks
) -> None:
    payment_id = await buy()
    await refund(desk, shop, payment_id, None, requested_by="api", now=utc_now())
    await banks.tell(await warning_of(database, shop, payment_id))
    assert await alarms(database, payment_id) == []


async def test_what_is_not_known_or_is_anothers_raises_nothing(
    database: Database, shop: Shop, buy: Buy, banks: Banks
) -> None:
    payment_id = await buy()
    told = await warning_of(database, shop, payment_id)
    await banks.tell(
        replace(told, of_key="no key of ours"),
        replace(told, of_key="no\x00key", of_merchant="\x00"),
        replace(told, of_merchant="another"),
        replace(told, may_be_averted=False),
    )
    assert banks.unread == {}
    assert await alarms(database, payment_id) == []


async def test_who_has_gone_to_another_cell_is_told_of_there(
    database: Database, shop: Shop, buy: Buy, banks: Banks
) -> None:
    payment_id = await buy()
    told = await warning_of(database, shop, payment_id)
    await fence(database, shop.merchant_id, other_cell=7, tables=GUARDED)
    await close(database, shop.merchant_id, patience=0)
    fenced = await find_fence(database, shop.merchant_id)
    assert fenced is not None
    assert fenced.closed_at is not None
    await say_moved(database, shop.merchant_id, closed_at=fenced.closed_at)
    await banks.tell(told)
    assert await alarms(database, payment_id) == []
    assert banks.unread == {}
    await forget(database, shop.merchant_id, tables=GUARDED)
    await banks.tell(told)
    assert await open_ones(database, payment_id) == [True]


async def test_an_account_that_can_not_be_read_is_logged_once_and_stops_no_other(
    database: Database, shop: Shop, buy: Buy, banks: Banks
) -> None:
    payment_id = await buy()
    told = await warning_of(database, shop, payment_id)
    with capture_logs() as logs:
        for why in (AcquirerRefused("no"), AcquirerRefused("no"), ValueError("senseless")):
            await banks.tell_each(other=(why,), simulator=(told,))
        await banks.tell_each(other=(), simulator=(told,))
    assert [one["why"] for one in logs if one["log_level"] == "warning"] == [
        "AcquirerRefused: no",
        "ValueError: senseless",
    ]
    assert await open_ones(database, payment_id) == [True]
    assert banks.unread == {}
