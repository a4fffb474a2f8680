from __future__ import annotations

import pytest
from tests.banks import ObedientBank
from tests.till import Till

from paydesk.database.pool import Database


@pytest.fixture
def club(subscriber: Till, obedient: ObedientBank) -> Till:
    """Customers at the bank that obeys."""
    return subscriber.at(obedient)


async def test_no_index_is_written_when_a_charge_begins(database: Database) -> None:
    touched = await database.fetch(
        "select indexname from pg_indexes where tablename = 'subscription' and indexdef like '%charging_attempt_id%'"
    )
    assert touched == []


async def test_one_whose_bank_does_not_answer_is_passed_over_until_that_is_known(
    club: Till, obedient: ObedientBank
) -> None:
    subscription = await club.subscribe()
    obedient.lose = "question"
    await club.charge_due(subscription)
    obedient.lose = ""
    assert await club.passed_over() == []
    await club.settle_all(seconds=30)
    assert await club.passed_over() == [subscription.id]
    await club.settle_all(minutes=3)
    assert await club.passed_over() == []
    assert (await club.charge_due(subscription)).counter == 2
