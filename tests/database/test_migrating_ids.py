"""The step of the schema that makes ids end in 8 runs on a database that has given other ids before."""

from __future__ import annotations

import pytest
from tests.databases import unguarded

from paydesk.database.migrating import known_migrations
from paydesk.database.pool import Database

STEP = next(step for step in known_migrations() if step.number == 65)


@pytest.mark.parametrize(
    ("given", "following"), [(8, 18), (9, 18), (10, 18), (17, 18), (18, 28), (13330, 13338), (2**40, 2**40 + 2)]
)
@pytest.mark.parametrize("sequence", ["payment_id_seq", "subscription_id_seq"])
async def test_new_ids_begin_above_the_highest_that_was_given(
    database: Database, sequence: str, given: int, following: int
) -> None:
    async with database.acquire() as connection:
        change = connection.transaction()
        await change.start()
        # What other tests left in this database has ids of its own.
        async with unguarded(connection, again=False):
            await connection.execute("delete from payment")
            await connection.execute("delete from subscription")
        await connection.execute(f"alter sequence {sequence} increment by 1 minvalue 1 start with 1")
        await connection.fetchval(f"select setval('{sequence}', {given})")
        await connection.execute(STEP.sql)
        drawn = [await connection.fetchval(f"select nextval('{sequence}')") for _ in range(2)]
        await change.rollback()
    assert drawn == [following, following + 10]


async def test_a_row_above_its_sequence_counts_too(database: Database) -> None:
    async with database.acquire() as connection:
        change = connection.transaction()
        await change.start()
        async with unguarded(connection, again=False):
            await connection.execute("delete from payment")
        # A sequence that was altered is put back with the transaction; setval alone never is.
        await connection.execute("alter sequence payment_id_seq increment by 1 minvalue 1 start with 1")
        await connection.execute("select setval('payment_id_seq', 8)")
        merchant = await connection.fetchval(
            "insert into merchant (name, email, created_at) values ('Shop', 'a@shop.example', now()) returning id"
        )
        await connection.execute(
            "insert into payment (merchant_id, live, id, merchant_order_id, checkout_id, customer_id, card_id, state,"
            " amount, currency, attempt_id, sign_version, key_id, created_at)"
            " values ($1, false, 7003, 'A', 1, 1, 1, 'captured', 1, 'USD', 1, 'v1', 1, now())",
            merchant,
        )
        await connection.execute(STEP.sql)
        drawn = await connection.fetchval("select nextval('payment_id_seq')")
        await change.rollback()
    assert drawn == 7008
