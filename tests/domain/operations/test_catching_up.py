from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest
from tests.banks import answering
from tests.domain.operations.books import FOUR, TEN, Books
from tests.shopfront import ships
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.disputes import FailedRefundPage
from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.domain.acquirers.leases import Unleased
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations import catching_up
from paydesk.domain.operations.alarms import list_alarms
from paydesk.domain.operations.catching_up import catch_up
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.found_movements import record_refund

__all__ = ["database", "database_url"]


async def reference(books: Books) -> str:
    """What the bank calls the payment."""
    return str((await books.attempt())["acquirer_reference"])


async def refund_there(books: Books, amount: Decimal, currency: str = "USD") -> str:
    """The bank gives back under a key that our books don't know; what it calls that."""
    return books.bank.refund(secrets.token_hex(8), await reference(books), amount, currency)


async def caught_up(books: Books) -> list[str]:
    """What a comparison writes into our books, in words."""
    return [one.reason for one in (await books.compare(fix=True)).adopted]


@pytest.fixture
async def held(books: Books) -> Books:
    """An order that waits for its shipment: the bank holds the money."""
    await ships(books.database, books.shop)
    return await books.another("held")


async def test_nothing_that_differs_is_nothing_to_record(books: Books) -> None:
    within = Unleased(books.database).holding
    assert [one async for one in catch_up(books.desk, "simulator", [], within=within, now=utc_now())] == []
    assert await caught_up(books) == []


async def test_a_refund_that_only_the_bank_knows_is_recorded_once(books: Books) -> None:
    await refund_there(books, FOUR)
    said = f"a refund of 4.00 USD of payment {books.payment_id}"
    assert await caught_up(books) == [said]
    assert await caught_up(books) == []
    assert (await books.states(), await books.reasons()) == (["partially_refunded"], [])
    assert await books.problems() == []


async def test_a_refund_made_by_hand_at_the_bank_is_known_by_its_reference(books: Books) -> None:
    await refund_there(books, FOUR)
    honest = books.desk.acquirers["simulator"]

    async def without_keys(*asked: Any) -> Any:
        page = await honest.list_refunds(*asked)
        return replace(page, refunds=tuple(replace(one, key="") for one in page.refunds))

    by_hand = books.at(answering(honest, list_refunds=without_keys))
    said = f"a refund of 4.00 USD of payment {books.payment_id}, in the acquirer's own pages"
    assert [await caught_up(by_hand) for _ in range(2)] == [[said], []]
    assert (await books.states(), await books.problems()) == (["partially_refunded"], [])


def telling_by_hand(books: Books, made: str) -> Books:
    """At a bank that has no key of ours for this refund."""
    honest = books.desk.acquirers["simulator"]

    def without_key(one: Any) -> Any:
        return replace(one, key="") if one.reference == made else one

    async def list_refunds(*asked: Any) -> Any:
        page = await honest.list_refunds(*asked)
        return replace(page, refunds=tuple(map(without_key, page.refunds)))

    async def failed_refunds(*asked: Any) -> Any:
        page = await honest.failed_refunds(*asked)
        return replace(page, refunds=tuple(map(without_key, page.refunds)))

    return books.at(answering(honest, list_refunds=list_refunds, failed_refunds=failed_refunds))


async def test_a_refund_made_by_hand_that_comes_back_is_the_merchants_money_again(books: Books) -> None:
    made = await refund_there(books, FOUR)
    by_hand = telling_by_hand(books, made)
    await caught_up(by_hand)
    assert await books.states() == ["partially_refunded"]
    books.bank.fail_refund(made, "expired_or_canceled_card")
    await read_failed_refunds(by_hand.desk, now=utc_now())
    assert (await books.states(), await by_hand.reasons(), await books.problems()) == (["captured"], [], [])


async def test_a_refund_made_by_hand_that_fails_before_it_was_recorded_is_nothing(books: Books) -> None:
    made = await refund_there(books, FOUR)
    by_hand = telling_by_hand(books, made)
    books.bank.fail_refund(made, "expired_or_canceled_card")
    for _ in range(2):
        await read_failed_refunds(by_hand.desk, now=utc_now())
    assert await caught_up(by_hand) == []
    assert (await books.states(), await by_hand.reasons(), await books.problems()) == (["captured"], [], [])
    assert await list_alarms(books.database, Page(100), kind=AlarmKind.refund_unknown) == []


async def test_a_refund_made_by_hand_that_fails_while_the_list_is_read_comes_back_once(books: Books) -> None:
    # What the list said before it failed is recorded after that was told, and is told but once; so
    # it is if its merchant is on the way between two cells when it is told.
    made = await refund_there(books, FOUR)
    by_hand = telling_by_hand(books, made)
    before = await by_hand.desk.acquirers["simulator"].list_refunds(utc_now() - timedelta(days=1), "")
    books.bank.fail_refund(made, "expired_or_canceled_card")
    await read_failed_refunds(by_hand.desk, now=utc_now())

    async def as_before(*_asked: Any) -> Any:
        return before

    await caught_up(by_hand.at(answering(by_hand.desk.acquirers["simulator"], list_refunds=as_before)))
    assert await books.states() == ["partially_refunded"]

    async def nothing_new(*_asked: Any) -> Any:
        return FailedRefundPage((), "")

    silent = by_hand.at(answering(by_hand.desk.acquirers["simulator"], failed_refunds=nothing_new))
    assert [await read_failed_refunds(silent.desk, now=utc_now()) for _ in range(2)] == [1, 0]
    assert (await books.states(), await by_hand.reasons(), await books.problems()) == (["captured"], [], [])


async def test_refunds_are_recorded_in_the_order_in_which_they_were_made(books: Books) -> None:
    for amount in (FOUR, Decimal(1), Decimal(5)):
        await refund_there(books, amount)
    said = await caught_up(books)
    assert [one.split(" of ")[1] for one in said] == ["4.00 USD", "1.00 USD", "5.00 USD"]
    assert (await books.states(), await books.problems()) == (["refunded"], [])


async def test_a_refund_in_a_currency_without_decimals_is_the_whole_sum(books: Books) -> None:
    yen = await books.another("yen", currency="JPY", amount="1200")
    await refund_there(yen, Decimal(1200), "JPY")
    assert [one.split(" of payment")[0] for one in await caught_up(yen)] == ["a refund of 1200 JPY"]
    assert (await yen.states(), await yen.problems()) == (["captured", "refunded"], [])


async def test_a_refund_that_failed_at_the_bank_is_not_recorded(books: Books) -> None:
    made = await refund_there(books, FOUR)
    books.bank.fail_refund(made, "lost_or_stolen_card")
    assert await caught_up(books) == []
    assert await books.states() == ["captured"]


async def test_a_capture_and_a_void_of_what_was_held_are_recorded(held: Books) -> None:
    left = await held.another("left")
    taken, key = await reference(held), str((await left.attempt())["idempotency_key"])
    held.bank.capture("captured there", taken, TEN, "USD")
    held.bank.void("let go of there", key)
    said = {one.partition(" of ")[0] for one in await caught_up(held)}
    assert said == {"the capture", "the void"}
    assert await held.states() == ["captured", "captured", "voided"]
    assert (await held.reasons(), await held.problems()) == ([], [])


async def test_a_capture_of_a_part_is_left_for_an_operator(held: Books) -> None:
    held.bank.capture("a part", await reference(held), FOUR, "USD")
    assert await caught_up(held) == []
    assert await held.states() == ["captured", "authorized"]
    assert await held.reasons() == ["it is captured there, and only authorized in our books"]


async def test_a_payment_that_stands_otherwise_by_now_is_left_as_it_is(held: Books) -> None:
    held.bank.capture("captured there", await reference(held), TEN, "USD")
    await held.say(state="voided")
    assert await caught_up(held) == []
    assert await held.states() == ["captured", "voided"]


async def test_a_refund_of_more_than_our_books_have_left_is_left_as_it_is(books: Books) -> None:
    await refund_there(books, TEN)
    await books.say(refunded=4)
    assert await caught_up(books) == []
    assert len(await books.reasons()) == 2


async def test_each_merchant_gets_its_own(books: Books, other_shop: Shop) -> None:
    other = await replace(books, shop=other_shop).another("theirs")
    for each, amount in ((books, FOUR), (other, Decimal(3))):
        await refund_there(each, amount)
    found = (await books.compare(fix=True)).adopted
    assert {(one.merchant_id, one.payment_id) for one in found} == {
        (books.shop.merchant_id, books.payment_id),
        (other.shop.merchant_id, other.payment_id),
    }
    for each, left in ((books, FOUR), (other, Decimal(3))):
        given = "select refunded from payment where merchant_id = $1"
        assert await books.database.fetchval(given, each.shop.merchant_id) == left
        assert await each.problems() == []


async def test_the_live_side_catches_up_and_the_test_side_stays(books: Books) -> None:
    live = replace(books, shop=replace(books.shop, live=True), desk=replace(books.desk, live_acquirer="simulator"))
    sold = await live.another("sold live")
    await refund_there(sold, TEN)
    assert len(await caught_up(sold)) == 1
    assert (await sold.states(), await books.states()) == (["refunded"], ["captured"])


async def test_one_that_can_not_be_recorded_keeps_nobody_from_the_others(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await books.another("another")
    for each in (books, other):
        await refund_there(each, FOUR)
    breaks_for(monkeypatch, books, ValueError("nobody can work it out"))
    assert await caught_up(books) == [f"a refund of 4.00 USD of payment {other.payment_id}"]
    assert await books.states() == ["captured", "partially_refunded"]
    monkeypatch.undo()
    assert len(await caught_up(books)) == 1, "it is tried again at the next reading"


async def test_a_database_that_goes_away_is_no_refund_that_does_not_fit(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refund_there(books, FOUR)
    breaks_for(monkeypatch, books, asyncpg.ConnectionDoesNotExistError("away"))
    with pytest.raises(asyncpg.ConnectionDoesNotExistError):
        await caught_up(books)
    monkeypatch.undo()
    assert len(await caught_up(books)) == 1


async def test_a_list_that_says_another_currency_is_not_believed(books: Books) -> None:
    await refund_there(books, FOUR)
    honest = books.desk.acquirers["simulator"]

    async def in_euro(*asked: Any) -> Any:
        page = await honest.list_refunds(*asked)
        return replace(page, refunds=tuple(replace(one, currency="EUR") for one in page.refunds))

    assert await caught_up(books.at(answering(honest, list_refunds=in_euro))) == []
    assert await books.states() == ["captured"]


async def test_an_attempt_that_does_not_hold_its_payment_gets_nothing(held: Books) -> None:
    """What was paid a second time and undone is not the payment's."""
    held.bank.capture("captured there", await reference(held), TEN, "USD")
    await held.say(attempt_id=0)
    assert await caught_up(held) == []
    assert await held.states() == ["captured", "authorized"]


def breaks_for(monkeypatch: pytest.MonkeyPatch, books: Books, error: Exception) -> None:
    """Recording anything of this payment ends in an error."""
    record: Callable[..., Awaitable[bool]] = record_refund

    async def breaks(within: Any, held: Any, listed: Any, **named: Any) -> bool:
        if held.payment_id == books.payment_id:
            raise error
        return await record(within, held, listed, **named)

    monkeypatch.setattr(catching_up, "record_refund", breaks)
