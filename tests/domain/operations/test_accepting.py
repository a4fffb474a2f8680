"""Differences that an operator can explain and takes as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from tests.domain.operations.books import Books
from tests.domain.operations.conftest import After
from tests.shopfront import buy
from tests.sweeping import database, database_url

from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed, NotFound
from paydesk.core.paging import Page
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.operations.accepting import accept_difference, take_back
from paydesk.domain.operations.alarms import ListedAlarm, alarms_waiting, list_alarms
from paydesk.domain.payments.idempotency_keys import pads_of
from paydesk.domain.payments.results import Paid

__all__ = ["database", "database_url"]

MASTERCARD = "5555555555554444"
WHY = "given back by bank transfer on 3 May"


async def _order(books: Books) -> None:
    await books.order("mug")


async def _pay(books: Books) -> None:
    await buy(books.desk, books.shop, "mug")


async def open_one(books: Books) -> ListedAlarm:
    """The one difference that waits."""
    (only,) = await list_alarms(books.database, Page(100), kind=AlarmKind.not_reconciled)
    return only


async def accept(books: Books) -> ListedAlarm:
    one = await open_one(books)
    await accept_difference(books.database, COMMAND_LINE, one.id, WHY, now=utc_now())
    return one


async def accepted(books: Books) -> list[ListedAlarm]:
    return await list_alarms(books.database, Page(100), kind=AlarmKind.not_reconciled, accepted=True)


async def test_what_was_accepted_is_no_alarm_any_more_and_stays_listed_with_who_and_why(books: Books) -> None:
    await books.say(refunded=1)
    await books.compare()
    one = await accept(books)
    for _ in range(2):
        found = await books.compare()
        assert (found.differences, [each.reason for each in found.accepted]) == ([], [one.reason])
        assert await books.listed() == []
    (kept,) = await accepted(books)
    assert (kept.id, kept.accepted_by, kept.accepted_why) == (one.id, "command line", WHY)
    assert (await alarms_waiting(books.database, most=10), kept.settled_at) == (0, None)
    entry = await books.database.fetchrow(
        "select subject, details from audit_entry where action = 'difference_accepted' order by id desc limit 1"
    )
    assert (entry["subject"], json.loads(entry["details"])) == (
        f"alarm {one.id}",
        {"about": one.subject, "accepted": one.reason, "note": WHY},
    )


async def test_it_waits_again_as_a_new_one_once_it_says_something_else(books: Books) -> None:
    await books.say(refunded=1)
    await books.compare()
    await books.compare()
    one = await accept(books)
    await books.say(refunded=2)
    (different,) = (await books.compare()).differences
    again = await open_one(books)
    assert (again.reason, again.times, await accepted(books)) == (different.reason, 1, [])
    assert again.raised_at > one.raised_at


async def test_it_is_over_once_both_agree(books: Books) -> None:
    await books.say(refunded=1)
    await books.compare()
    await accept(books)
    await books.say(refunded=0)
    await books.compare()
    assert (await accepted(books), await books.listed()) == ([], [])
    (over,) = await list_alarms(books.database, Page(100), kind=AlarmKind.not_reconciled, settled=True)
    assert over.settled_by == "the acquirer's list and our books agree"


async def test_what_was_paid_twice_is_accepted_and_then_neither_given_back_nor_charged_beside(after: After) -> None:
    async with after(_pay, known=_order) as (till, before):
        (key,) = [row["idempotency_key"] for row in before["attempts"]]
        elsewhere = replace(till, desk=replace(till.desk, pads=pads_of(b"another secret")))
        assert await elsewhere.pay(await till.order("mug"), MASTERCARD) == Paid()
        await till.compare(fix=True)
        one = await accept(till)
        assert one.subject == f"purchase {key} at simulator"
        willing = replace(till, desk=replace(till.desk, gives_back_paid_twice=True))
        for fix in (True, False, True):
            found = await willing.compare(fix=fix)
            assert (found.differences, [each.key for each in found.accepted]) == ([], [key])
            assert await till.listed() == []
        assert till.taken() == [(Decimal(10), Decimal(0))] * 2
        assert await till.database.fetchval(
            """
            select was_forgotten($1, 'simulator', 'order ' || key_tag || ' test ' || test_generation || ' ', 1, ' mug')
              from merchant where id = $2
            """,
            till.desk.pads,
            till.shop.merchant_id,
        ), "what waits for nobody is still not charged beside"


async def test_an_acceptance_that_meets_a_reading_is_not_lost(books: Books) -> None:
    await books.say(refunded=1)
    (one,) = (await books.compare()).differences
    await accept(books)
    # Read before it was accepted, and told after it.
    await raise_alarms(books.database, [one.alarm], now=utc_now())
    assert (await books.listed(), len(await accepted(books))) == ([], 1)


async def test_what_was_accepted_can_wait_again(books: Books) -> None:
    await books.say(refunded=1)
    await books.compare()
    one = await accept(books)
    await take_back(books.database, COMMAND_LINE, one.id, now=utc_now())
    assert [each.id for each in await list_alarms(books.database, Page(100))] == [one.id]
    assert len((await books.compare()).differences) == 1
    with pytest.raises(NotFound, match="no difference that was accepted"):
        await take_back(books.database, COMMAND_LINE, one.id, now=utc_now())


async def test_of_two_hands_one_accepts_and_only_with_a_reason(books: Books) -> None:
    await books.say(refunded=1)
    await books.compare()
    one = await open_one(books)
    for note in ("", "  ", "two\nlines", "x" * 501):
        with pytest.raises(Malformed, match="say why"):
            await accept_difference(books.database, COMMAND_LINE, one.id, note, now=utc_now())
    await accept(books)
    with pytest.raises(NotFound, match="can be accepted"):
        await accept_difference(books.database, COMMAND_LINE, one.id, WHY, now=utc_now())


async def test_nothing_but_a_difference_can_be_accepted(books: Books) -> None:
    await raise_alarms(books.database, [Alarm(AlarmKind.contradiction, "payment 8", "look")], now=utc_now())
    (other,) = await list_alarms(books.database, Page(100), kind=AlarmKind.contradiction)
    with pytest.raises(NotFound, match="can be accepted"):
        await accept_difference(books.database, COMMAND_LINE, other.id, WHY, now=utc_now())
