"""How an operator reads what differs: each difference is one line of the list, under one name."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tests import breaking
from tests.sweeping import database, database_url

from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import raise_alarms, settle_alarms
from paydesk.domain.operations.alarms import ListedAlarm, list_alarms
from paydesk.domain.operations.differences import Difference, DifferenceKind, Reconciled, subject_of

__all__ = ["database", "database_url"]

FOUND = Difference(
    "stripe", "purchase", "7-abc", "pi_1", "it is of 10.00 USD, and of 11.00 USD", DifferenceKind.DIFFERS, 3, 12
)


@pytest.fixture(autouse=True)
async def _empty_list(database: Database) -> None:
    await breaking.no_alarms(database)


async def listed(database: Database, *found: Difference) -> list[ListedAlarm]:
    """The operator's list after this was found."""
    await raise_alarms(database, [one.alarm for one in found], now=utc_now())
    return await list_alarms(database, Page(50))


async def test_nothing_that_differs_is_an_empty_list(database: Database) -> None:
    assert Reconciled("stripe").differences == []
    assert await listed(database) == []


async def test_a_difference_is_a_line_with_its_reason_and_where_to_look(database: Database) -> None:
    (line,) = await listed(database, FOUND)
    assert (line.kind, line.subject) == (AlarmKind.not_reconciled, "purchase 7-abc at stripe")
    assert line.reason == FOUND.reason
    assert line.details == {"reference": "pi_1", "merchant": 3, "payment": 12}
    assert line.merchant_name is None, "it is the operator's, whichever merchant it is of"


async def test_what_was_made_in_the_acquirers_own_pages_is_called_by_its_reference(database: Database) -> None:
    by_hand = replace(FOUND, what="refund", key="", reference="re_9", kind=DifferenceKind.UNKNOWN_HERE)
    (line,) = await listed(database, by_hand)
    assert line.subject == by_hand.subject == "refund re_9 at stripe"


async def test_what_nobody_here_knows_names_no_merchant(database: Database) -> None:
    (line,) = await listed(
        database, replace(FOUND, merchant_id=None, payment_id=None, kind=DifferenceKind.UNKNOWN_HERE)
    )
    assert line.details == {"reference": "pi_1", "merchant": None, "payment": None}


async def test_the_same_found_again_is_the_same_line(database: Database) -> None:
    await listed(database, FOUND)
    (line,) = await listed(database, replace(FOUND, reason="it is captured there, and only authorized in our books"))
    assert (line.times, line.reason) == (2, "it is captured there, and only authorized in our books")


@pytest.mark.parametrize("other", [{"acquirer": "mollie"}, {"what": "refund"}, {"key": "7-abd"}])
async def test_what_is_something_else_is_another_line(database: Database, other: dict[str, str]) -> None:
    assert len(await listed(database, FOUND, replace(FOUND, **other))) == 2  # type: ignore[arg-type]


async def test_what_agrees_again_is_settled_under_the_name_that_it_was_raised_by(database: Database) -> None:
    await listed(database, FOUND, replace(FOUND, acquirer="mollie"))
    subject, later = subject_of("purchase", "7-abc", "stripe"), utc_now() + timedelta(minutes=1)
    await settle_alarms(database, AlarmKind.not_reconciled, [subject], shop=None, by="both agree", now=later)
    assert [one.subject for one in await list_alarms(database, Page(50))] == ["purchase 7-abc at mollie"]
    (settled,) = await list_alarms(database, Page(50), settled=True)
    assert (settled.subject, settled.settled_by) == (subject, "both agree")
