from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, shopfront
from tests.banks import answering
from tests.domain.operations.books import FOUR, Books
from tests.domain.operations.conftest import After
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.listing import PurchasePage
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations import reading_lists
from paydesk.domain.operations.differences import DifferenceKind
from paydesk.domain.operations.reconciling import SETTLED, reconcile

__all__ = ["database", "database_url"]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is asked for again at once, three times."""
    monkeypatch.setattr(reading_lists, "_PAUSES", (0.0, 0.0, 0.0))


def listing(books: Books, page: Callable[[Any, str], Any]) -> Books:
    """The books beside a bank whose list of purchases has two pages, each given by `page`."""
    honest = books.desk.acquirers["simulator"]

    async def list_purchases(since: datetime, after: str) -> PurchasePage:
        whole: PurchasePage = page(await honest.list_purchases(since, ""), after)
        return replace(whole, next="" if after else "middle")

    return books.at(answering(honest, list_purchases=list_purchases))


async def test_other_software_on_the_account_is_counted_and_left_alone(books: Books) -> None:
    card = CardDetails("4242424242424242", 12, 2030, "Ada Lovelace", "987")
    mark = Mark("another deployment", 1, "shop", False, PurchaseKind.ORDER, "A-1")
    asked = {"amount": Decimal(7), "currency": "USD", "card": card, "capture": True}
    not_after = utc_now() + timedelta(minutes=1)
    books.bank.purchase(Purchase(key="theirs", not_after=not_after, mark=mark, **asked), stored=False)  # type: ignore[arg-type]
    theirs = books.bank.record.decided("theirs")
    assert theirs is not None
    books.bank.refund("of theirs", theirs.reference, FOUR, "USD")
    found = await books.compare()
    assert (found.purchases, found.refunds, found.foreign, found.differences) == (2, 1, 2, [])


async def test_an_answer_that_is_lost_in_the_middle_of_a_list_is_asked_for_again(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, asked = books.bank.list_purchases, list[str]()

    def list_purchases(since: datetime, after: str) -> PurchasePage:
        asked.append(after)
        if asked == ["", "middle"]:
            raise OutcomeUnknown("too many requests")
        return replace(honest(since, ""), next="" if after else "middle")

    monkeypatch.setattr(books.bank, "list_purchases", list_purchases)
    monkeypatch.setattr(reading_lists, "_PAUSES", (0.0,))
    assert ((await books.compare()).differences, asked) == ([], ["", "middle", "middle"])


async def test_what_slid_to_another_page_between_two_readings_is_still_found(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    await books.say(refunded=1)
    honest, read = books.bank.list_purchases, [0]

    def list_purchases(*asked: Any) -> PurchasePage:
        read[0] += 1
        return honest(*asked) if read[0] == 1 else PurchasePage((), "")

    monkeypatch.setattr(books.bank, "list_purchases", list_purchases)
    assert await books.reasons() == ["0.00 USD were given back there, and 1.00 USD in our books"]


async def test_what_is_young_or_still_open_is_no_difference(books: Books) -> None:
    await books.say(refunded=1)
    now = utc_now()
    young = await reconcile(books.desk, "simulator", since=now - timedelta(hours=1), now=now)
    assert young.differences == []
    await books.say(refunding=1)
    assert await books.reasons() == []


async def test_what_moves_between_two_readings_is_no_difference(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    await books.say(refunded=1)
    honest, read = books.bank.list_purchases, [0]

    def list_purchases(*asked: Any) -> Any:
        read[0] += 1
        if read[0] == 2:
            reference = books.bank.record.decided(key)
            assert reference is not None
            books.bank.refund("meanwhile", reference.reference, Decimal(1), "USD")
        return honest(*asked)

    key = (await books.attempt())["idempotency_key"]
    monkeypatch.setattr(books.bank, "list_purchases", list_purchases)
    assert [one for one in await books.differences() if one.what == "purchase"] == []


async def test_empty_lists_beside_empty_books_are_a_page_each_and_nothing_else(books: Books) -> None:
    await breaking.paid_elsewhere(books.database)
    told, now = [0], utc_now()

    def count() -> None:
        told[0] += 1

    found = await reconcile(books.desk, "simulator", since=now, now=now + 2 * SETTLED, told=count)
    assert (found.purchases, found.refunds, found.foreign, found.differences, found.adopted) == (0, 0, 0, [], [])
    assert told == [3], "one of purchases, one of refunds and one of pages to pay on"


async def test_each_page_is_compared(books: Books) -> None:
    other = await books.another()
    keys = [(await one.attempt())["idempotency_key"] for one in (books, other)]
    await breaking.say(books.database, "payment", {"merchant_id": books.shop.merchant_id}, refunded=1)

    def page(whole: PurchasePage, after: str) -> PurchasePage:
        return replace(whole, purchases=tuple(one for one in whole.purchases if one.key == keys[bool(after)]))

    found = await listing(books, page).compare()
    assert (found.purchases, sorted(one.key for one in found.differences)) == (2, sorted(keys))


@pytest.mark.usefixtures("no_pauses")
async def test_a_bank_that_falls_silent_in_the_middle_is_given_up_after_the_last_pause(books: Books) -> None:
    asked: list[str] = []

    def page(whole: PurchasePage, after: str) -> PurchasePage:
        asked.append(after)
        if after:
            raise OutcomeUnknown("too many requests")
        return whole

    with pytest.raises(Unavailable, match="too many requests"):
        await listing(books, page).compare()
    assert asked == ["", *["middle"] * 4]
    assert await books.listed() == []


@pytest.mark.usefixtures("no_pauses")
async def test_a_first_page_that_gives_no_answer_is_said_at_once(books: Books) -> None:
    asked: list[str] = []

    def silent(_whole: PurchasePage, after: str) -> PurchasePage:
        asked.append(after)
        raise OutcomeUnknown("no answer")

    with pytest.raises(Unavailable):
        await listing(books, silent).compare()
    assert asked == [""]


async def test_what_our_books_do_not_know_is_never_too_young(books: Books) -> None:
    await books.forget()
    now = utc_now()
    found = await reconcile(books.desk, "simulator", since=now - timedelta(hours=1), now=now)
    assert [one.kind for one in found.differences] == [DifferenceKind.UNKNOWN_HERE]


async def test_a_database_that_went_back_is_known_by_what_the_bank_has_more(after: After) -> None:
    async def pay(till: Books) -> None:
        await shopfront.buy(till.desk, till.shop, "forgotten", amount="25.00", currency="EUR")

    async with after(pay) as (till, before):
        (found,) = (await till.compare()).differences
        (attempt,) = before["attempts"]
        assert (found.kind, found.key, found.merchant_id) == (
            DifferenceKind.UNKNOWN_HERE,
            attempt["idempotency_key"],
            None,
        )
        assert "order forgotten, payment" in found.reason
        assert found.reason.endswith(" EUR)")


async def test_one_way_alone_does_not_ask_for_what_the_list_lacks(books: Books) -> None:
    await breaking.say(
        books.database, "payment_attempt", {"merchant_id": books.shop.merchant_id}, idempotency_key="never sent"
    )
    now = utc_now()
    for both_ways, kinds in (
        (True, {DifferenceKind.UNKNOWN_HERE, DifferenceKind.UNKNOWN_THERE}),
        (False, {DifferenceKind.UNKNOWN_HERE}),
    ):
        since, later = now - timedelta(hours=1), now + 2 * SETTLED
        found = await reconcile(books.desk, "simulator", since=since, now=later, both_ways=both_ways)
        assert {one.kind for one in found.differences} == kinds


async def test_a_declined_purchase_that_nobody_here_knows_is_no_matter(books: Books) -> None:
    await shopfront.pay(books.desk, await shopfront.order(books.database, books.shop), shopfront.DECLINED)
    await books.forget()
    assert len(await books.differences()) == 1, "the one that took money, and no other"


async def test_both_sides_of_two_merchants_are_compared_in_one_reading(books: Books, other_shop: Shop) -> None:
    desk = replace(books.desk, live_acquirer="simulator")
    sides = [
        await replace(books, desk=desk, shop=replace(shop, live=live)).another(
            f"{live}", currency=currency, amount="50"
        )
        for shop in (books.shop, other_shop)
        for live, currency in ((True, "USD"), (False, "JPY"))
    ]
    for one in sides[::3]:
        await one.say(refunded=1)
    found = await books.compare()
    assert found.purchases == 5
    assert {(one.merchant_id, one.payment_id) for one in found.differences} == {
        (one.shop.merchant_id, one.payment_id) for one in sides[::3]
    }
