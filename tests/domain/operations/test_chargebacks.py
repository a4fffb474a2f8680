from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from tests import set_back, shopfront
from tests.domain.chargebacks.telling import OPEN, Books, beside_a_telling_bank
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.disputes import DisputeStatus
from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.for_api import Chargeback
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.chargebacks import list_waiting, reckon
from paydesk.domain.payments.desk import Desk

__all__ = ["database", "database_url"]

WON, LOST = DisputeStatus.WON, DisputeStatus.LOST


@pytest.fixture
async def books(desk: Desk, shop: Shop, database: Database) -> Books:
    """A payment of 10 USD, and a bank that will tell of disputes over it."""
    await set_back.no_disputes_left(database)
    return await beside_a_telling_bank(desk, shop, await shopfront.buy(desk, shop))


async def reckoned(books: Books, worth: str, shop: Shop | None = None) -> Chargeback:
    """An operator says what the shop's only chargeback is worth."""
    (found,) = await books.chargebacks()
    return await reckon(books.database, shop or books.shop, found.id, Decimal(worth), now=utc_now())


async def test_nothing_waits_where_no_bank_has_told_anything(books: Books) -> None:
    assert await list_waiting(books.database, most=10) == []
    await books.hear(books.dispute("10.00"))
    assert await list_waiting(books.database, most=10) == [], "and what was booked does not wait"


async def test_what_waits_is_listed_oldest_first_as_it_was_told_last(books: Books) -> None:
    now = utc_now()
    first = books.dispute("10.00", of_key="nobody's", reference="dp_b")
    second = books.dispute("3.00", of_key="nobody's", reference="dp_a", currency="EUR")
    await books.hear(first, now=now)
    await books.hear(second, now=now + timedelta(minutes=1))
    found = await list_waiting(books.database, most=10)
    assert [(one.told, one.acquirer) for one in found] == [(first, "simulator"), (second, "simulator")]
    assert all(one.reason == "no attempt to pay has the key that it names" for one in found)
    assert [one.told.reference for one in await list_waiting(books.database, most=1)] == ["dp_b"]
    lost = replace(first, status=LOST)
    await books.hear(lost, now=now + timedelta(minutes=2))
    (again, _) = await list_waiting(books.database, most=10)
    assert (again.told, again.first_at) == (lost, found[0].first_at)


async def test_how_often_it_was_tried_and_when_next_is_listed(books: Books) -> None:
    now = utc_now()
    await books.hear(books.dispute("10.00", of_key="nobody's"), now=now)
    (first,) = await list_waiting(books.database, most=10)
    assert first.next_at is not None
    assert first.first_at == first.last_at < first.next_at
    await read_disputes(books.desk, now=first.next_at)
    (second,) = await list_waiting(books.database, most=10)
    assert (first.tries, second.tries, second.first_at) == (1, 2, first.first_at)
    assert second.next_at is not None
    assert second.next_at - second.last_at > first.next_at - first.last_at, "the longer it waits the rarer it is tried"


async def test_what_waits_stays_listed_while_the_bank_does_not_answer(books: Books) -> None:
    await books.hear(books.dispute("10.00", of_key="nobody's"))
    books.teller.silent = OutcomeUnknown("no answer")
    await read_disputes(books.desk, now=utc_now() + timedelta(minutes=1))
    assert len(await list_waiting(books.database, most=10)) == 1


async def test_a_dispute_in_another_currency_is_worth_what_the_operator_says(books: Books) -> None:
    await books.hear(books.dispute("9.20", currency="EUR"))
    assert await books.taken_back() == ("charged_back", Decimal(0), Decimal(10))
    assert await books.kinds() == ["dispute_reckoned"]
    after = await reckoned(books, "9.90")
    assert (after.amount, after.currency) == (Decimal("9.90"), "USD")
    assert (after.disputed_amount, after.disputed_currency) == (Decimal("9.20"), "EUR")
    assert (await books.taken_back(), await books.kinds()) == (("charged_back", Decimal(0), Decimal("9.90")), [])
    await books.in_order()


async def test_the_operator_may_say_it_again_and_the_difference_is_booked(books: Books) -> None:
    await books.hear(books.dispute("9.20", currency="EUR"))
    before = await books.merchants()
    await reckoned(books, "9.00")
    lower = await books.merchants()
    await reckoned(books, "8.00")
    assert await books.merchants() - lower == Decimal(1)
    assert lower - before == Decimal(1)
    await books.in_order()


async def test_a_currency_without_decimals_is_reckoned_too(books: Books) -> None:
    await books.hear(books.dispute("1500", currency="JPY"))
    after = await reckoned(books, "9.70")
    assert (after.disputed_amount, after.disputed_currency, after.amount) == (Decimal(1500), "JPY", Decimal("9.70"))
    await books.in_order()


async def test_what_was_won_takes_nothing_whatever_it_is_worth(books: Books) -> None:
    await books.hear(books.dispute("9.20", currency="EUR"), books.dispute("9.20", WON, currency="EUR"))
    await reckoned(books, "9.90")
    assert await books.taken_back() == ("captured", Decimal(0), Decimal(0))
    await books.in_order()


async def test_a_chargeback_in_the_payments_own_currency_is_left_as_it_is(books: Books) -> None:
    await books.hear(books.dispute("10.00"))
    before = await books.chargebacks()
    with pytest.raises(Conflict, match="is in USD, as its payment is: there is nothing to reckon"):
        await reckoned(books, "9.00")
    assert await books.chargebacks() == before


async def test_neither_another_merchant_nor_the_other_side_has_it(books: Books, other_shop: Shop) -> None:
    await books.hear(books.dispute("9.20", currency="EUR"))
    before = await books.taken_back()
    for stranger in (other_shop, replace(books.shop, live=True)):
        with pytest.raises(NotFound):
            await reckoned(books, "9.90", stranger)
    with pytest.raises(NotFound):
        await reckon(books.database, books.shop, 10**12, Decimal(1), now=utc_now())
    assert await books.taken_back() == before


async def test_only_the_alarm_of_the_chargeback_that_was_reckoned_is_settled(
    books: Books, desk: Desk, other_shop: Shop
) -> None:
    other = await beside_a_telling_bank(desk, other_shop, await shopfront.buy(desk, other_shop))
    for each, reference in ((books, "dp_1"), (other, "dp_2")):
        told = each.dispute("9.20", OPEN, currency="EUR", reference=reference)
        await set_back.banks_tell_again(each.database)
        await each.hear(told)
    assert await books.kinds() == ["dispute_reckoned"] * 2
    await reckoned(books, "9.90")
    assert await books.kinds() == ["dispute_reckoned"]
    assert await other.taken_back() == ("charged_back", Decimal(0), Decimal(10))
