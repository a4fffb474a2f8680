"""A bank says one thing of a movement and then another:
one word stands, and a person hears of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.databases import until_waiting

from paydesk.adapters.acquirers.interface import Moved, Refused
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import movement_outcomes
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.intents import Movement, MovementRow, movement_of
from paydesk.domain.payments.movement_outcomes import Answer, record_answers
from paydesk.domain.payments.movements import LEASE
from paydesk.domain.payments.refunding import refund

Buy = Callable[[], Awaitable[int]]
Said = list[tuple[Movement, Answer]]


@pytest.fixture
async def two_refunds(desk: Desk, shop: Shop, database: Database, buy: Buy) -> list[Movement]:
    """Two refunds of 2 USD of one payment, begun and in the janitor's hands."""
    payment_id = await buy()
    lost = LyingAcquirer(desk.acquirers["simulator"], Lies(lose_questions=1.0))
    for _ in range(2):
        away = replace(desk, acquirers={"simulator": lost})
        await refund(away, shop, payment_id, Decimal(2), requested_by="api", now=utc_now())
    later = utc_now() + timedelta(minutes=2)
    claimed = movement_outcomes.queries.claim_movements(database, now=later, most=10, lease=LEASE)
    return [movement_of(row) for row in await records_of(MovementRow, claimed)]


async def how_it_stands(database: Database, movement: Movement) -> tuple[Any, ...]:
    """The payment's sums, and its movements' states."""
    payment = await database.fetchrow(
        "select * from payment where merchant_id = $1 and id = $2", movement.shop.merchant_id, movement.payment_id
    )
    rows = await database.fetch(
        "select state from movement where merchant_id = $1 and payment_id = $2 order by id",
        movement.shop.merchant_id,
        movement.payment_id,
    )
    assert payment is not None
    return (payment["state"], payment["refunded"], payment["refunding"], sorted(row["state"] for row in rows))


async def alarms(database: Database, shop: Shop) -> list[tuple[str, str]]:
    rows = await database.fetch(
        "select kind, subject from alarm where merchant_id = $1 and settled_at is null", shop.merchant_id
    )
    return [(row["kind"], row["subject"]) for row in rows]


async def test_of_a_refusal_and_a_success_at_the_same_moment_one_stands(
    database: Database, shop: Shop, two_refunds: list[Movement]
) -> None:
    one, _ = two_refunds
    async with database.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        refused = movement_outcomes.queries.record_refusals(
            connection, merchant_ids=[one.shop.merchant_id], lives=[False], movement_ids=[one.id], refusals=["no"],
            now=utc_now(),
        )  # fmt: skip
        assert [row["movement_id"] async for row in refused] == [one.id]
        other = asyncio.create_task(record_answers(database, [(one, Moved("re_1"))], now=utc_now()))
        await until_waiting(database, other, query="%movement m%")
        await transaction.commit()
    assert await other == set()
    assert await how_it_stands(database, one) == ("captured", 0, 2, ["processing", "refused"])
    assert await alarms(database, shop) == [("contradiction", f"refund {one.id}")]


async def test_a_success_after_a_refusal_and_the_other_way_round_are_alarms(
    database: Database, shop: Shop, two_refunds: list[Movement]
) -> None:
    one, other = two_refunds
    first: Said = [(one, Refused("no")), (other, Moved("re_2"))]
    assert await record_answers(database, first, now=utc_now()) == {one.id, other.id}
    before = await how_it_stands(database, one)
    assert before == ("partially_refunded", 2, 0, ["done", "refused"])
    for _ in range(2):
        turned: Said = [(one, Moved("re_1")), (other, Refused("no"))]
        assert await record_answers(database, turned, now=utc_now()) == set()
    assert await how_it_stands(database, one) == before
    expected = [("contradiction", f"refund {one.id}"), ("contradiction", f"refund {other.id}")]
    assert sorted(await alarms(database, shop)) == sorted(expected)


async def test_what_somebody_else_recorded_in_the_same_words_is_no_alarm(
    database: Database, shop: Shop, two_refunds: list[Movement]
) -> None:
    one, other = two_refunds
    same: Said = [(one, Refused("no")), (other, Moved("re_2"))]
    assert await record_answers(database, same, now=utc_now()) == {one.id, other.id}
    assert await record_answers(database, same, now=utc_now()) == set()
    assert await alarms(database, shop) == []


async def test_many_who_record_the_opposite_at_once_never_wait_for_each_other_for_ever(
    database: Database, shop: Shop, two_refunds: list[Movement]
) -> None:
    words: list[Answer] = [Moved("re"), Refused("no")]
    answers: list[Said] = [[(one, word) for one in two_refunds] for word in words for _ in range(6)]
    answers += [list(reversed(one)) for one in answers]
    written = await asyncio.gather(*(record_answers(database, said, now=utc_now()) for said in answers))
    assert sorted(movement_id for ids in written for movement_id in ids) == sorted(one.id for one in two_refunds)
    state, refunded, refunding, states = await how_it_stands(database, two_refunds[0])
    assert (refunding, refunded) == (0, 2 * states.count("done"))
    assert state == ("partially_refunded" if refunded else "captured")
