"""What commands that move money say while payments are held,
and the one that an operator needs just then.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests import breaking
from tests.commands.test_reconciling import forgotten, take
from tests.commands.test_refunds import kept, payment
from tests.commands.test_test_clock import shown
from tests.sweeping import database, database_url

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.operations.history import hold, read

__all__ = ["database", "database_url", "forgotten", "payment"]

TOLD = "paydesk: payments are held: restored. Nothing was begun and nobody charged; try again in a minute"


@pytest.fixture(autouse=True)
async def _nothing_of_other_tests(database: Database) -> None:
    """What others paid is at banks of their own, which the one of these tests knows nothing of."""
    await breaking.paid_elsewhere(database)


async def hold_all(database: Database) -> None:
    epoch = (await read(database)).beat.epoch
    assert await hold(database, epoch=epoch, above=epoch, because="restored", since=utc_now()) is not None


async def test_a_refund_is_made_once_it_is_lifted(
    paydesk: Any, payment: int, environment: dict[str, str], database: Database
) -> None:
    await hold_all(database)
    refused = await paydesk("refund", payment, "--key", "one")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith(TOLD)
    assert kept(environment) == Decimal(10)
    assert await database.fetchval("select count(*) from movement where payment_id = $1", payment) == 0
    assert (await paydesk("hold", "accept", "looked at")).status == 0
    given = await paydesk("refund", payment, "--key", "one", "--json")
    assert (given.status, given.result["status"]) == (0, "reversal_refunded")
    assert kept(environment) == 0


async def test_a_test_clock_stays_where_it_is(
    paydesk: Any, account: dict[str, Any], subscription: int, database: Database
) -> None:
    await hold_all(database)
    refused = await paydesk("clock", "advance", account["id"], "31d")
    assert (refused.status, refused.out) == (1, "")
    assert refused.err.startswith(TOLD)
    clock = await shown(paydesk, account["id"])
    assert (clock["ahead_seconds"], clock["moving"]) == (0.0, False)
    assert (await paydesk("hold", "accept", "looked at")).status == 0
    moved = await paydesk("clock", "advance", account["id"], "31d", "--json")
    assert moved.result["counts"]["payment"] == 1
    assert [event["subscription_id"] for event in moved.result["events"]][-1] == subscription


async def test_what_nobody_has_in_the_books_is_given_back_all_the_same(
    paydesk: Any, account: dict[str, Any], forgotten: Path, database: Database, environment: dict[str, str]
) -> None:
    take(forgotten, await database.fetchval("select tag from deployment"))
    assert kept(environment) == Decimal(10)
    await hold_all(database)
    given = await paydesk("undo", "forgotten", "--acquirer", "simulator", "--yes", "--json")
    assert (given.status, given.result["amount"]) == (0, 10), given.err
    assert kept(environment) == 0
    assert (await paydesk("hold", "show", "--json")).result["held"]
