from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking, shopfront
from tests.banks import answering, ending_in
from tests.domain.operations.books import FOUR, Books
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.database.pool import Database
from paydesk.domain.ledger.checking import RuleResult
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.reconciling import SETTLED
from paydesk.domain.operations.witnessing import LIST_RULES, compare_lists

__all__ = ["database", "database_url"]

KNOWN, AGREES, LISTED = "listed_money_known", "listed_money_agrees", "approved_money_listed"


async def witnessed(books: Books, *, merchant_id: int | None = None, most: int = 20) -> dict[str, RuleResult]:
    """What each rule of the lists comes to, some minutes after everything was written down."""
    now = utc_now()
    found = await compare_lists(
        books.desk,
        since=now - timedelta(hours=1),
        now=now + 2 * SETTLED,
        merchant_id=merchant_id,
        most=most,
        told=lambda: None,
    )
    return {one.rule.statement: one for one in found}


async def broken(books: Books, **asked: Any) -> dict[str, int]:
    """How often each rule is broken."""
    return {name: one.found for name, one in (await witnessed(books, **asked)).items() if one.found}


async def test_every_rule_is_said_also_where_nothing_was_ever_sold(books: Books) -> None:
    await breaking.paid_elsewhere(books.database)
    nobody = books.at(answering(books.desk.acquirers["simulator"]))
    found = await witnessed(nobody, merchant_id=0)
    assert list(found) == [rule.statement for rule in LIST_RULES.values()] == [KNOWN, AGREES, LISTED]
    assert all((one.found, one.differences) == (0, ()) for one in found.values())


async def test_books_that_agree_break_no_rule(books: Books) -> None:
    await books.give(FOUR)
    await books.another("yen", currency="JPY", amount="1200")
    assert await broken(books) == {}


async def test_a_payment_that_our_books_forgot_is_no_merchants_and_named_by_the_banks_reference(books: Books) -> None:
    reference = (await books.attempt())["acquirer_reference"]
    await books.forget()
    found = (await witnessed(books))[KNOWN]
    (difference,) = found.differences
    assert (difference.merchant_id, difference.table, difference.id) == (None, "purchase at simulator", reference)
    assert await broken(books) == {KNOWN: 1}


async def test_sums_that_differ_are_found_in_their_own_currency(books: Books) -> None:
    yen = await books.another("yen", currency="JPY", amount="1200")
    await yen.say(refunded=200)
    found = (await witnessed(books))[AGREES]
    (difference,) = found.differences
    assert difference.detail == "0 JPY were given back there, and 200 JPY in our books"


async def test_what_only_our_books_know_is_found(books: Books) -> None:
    await breaking.say(
        books.database, "payment_attempt", {"merchant_id": books.shop.merchant_id}, idempotency_key="never sent"
    )
    assert await broken(books) == {KNOWN: 1, LISTED: 1}
    assert await broken(books, merchant_id=books.shop.merchant_id) == {LISTED: 1}, "what is nobody's is not the shop's"


async def test_one_merchant_may_be_looked_at_alone(books: Books, other_shop: Shop) -> None:
    await shopfront.buy(books.desk, other_shop)
    await breaking.say(books.database, "payment", {"merchant_id": other_shop.merchant_id}, refunded=1)
    assert await broken(books, merchant_id=books.shop.merchant_id) == {}
    assert await broken(books, merchant_id=other_shop.merchant_id) == await broken(books) == {AGREES: 1}


async def test_no_more_are_kept_than_asked_for_and_all_are_counted(books: Books) -> None:
    for _ in range(2):
        await books.another()
    await breaking.say(books.database, "payment", {"merchant_id": books.shop.merchant_id}, refunded=1)
    found = (await witnessed(books, most=2))[AGREES]
    assert (found.found, len(found.differences)) == (3, 2)


async def test_looking_changes_nothing(books: Books, database: Database) -> None:
    await books.say(refunded=1)
    before = await books.listed(), await database.fetch("select * from reconciliation")
    assert await broken(books) == {AGREES: 1}
    assert (await books.listed(), await database.fetch("select * from reconciliation")) == before
    assert await books.states() == ["captured"]


async def test_what_is_forgotten_is_not_adopted_by_looking(books: Books) -> None:
    await books.forget()
    for _ in range(2):
        assert await broken(books) == {KNOWN: 1}
    assert await books.states() == []


@pytest.mark.parametrize("error", [OutcomeUnknown("no answer"), AcquirerRefused("no such list")])
@pytest.mark.parametrize("call", ["list_purchases", "list_refunds"])
async def test_a_list_that_can_not_be_read_is_no_list_without_differences(
    books: Books, call: str, error: Exception
) -> None:
    silent = answering(books.desk.acquirers["simulator"], **{call: ending_in(error)})
    with pytest.raises(Unavailable, match=f"the list of simulator can't be read: {error}"):
        await witnessed(books.at(silent))


async def test_a_bank_that_lists_less_than_it_has_is_asked_by_key(books: Books) -> None:
    honest = books.desk.acquirers["simulator"]

    async def cut_short(*asked: Any) -> Any:
        page = await honest.list_purchases(*asked)
        return type(page)((), page.next)

    assert await broken(books.at(answering(honest, list_purchases=cut_short))) == {}
    mute = answering(honest, list_purchases=cut_short, find=ending_in(OutcomeUnknown("no answer")))
    assert await broken(books.at(mute)) == {LISTED: 1}


async def test_the_live_side_is_compared_as_the_test_side_is(books: Books) -> None:
    live = replace(books, shop=replace(books.shop, live=True), desk=replace(books.desk, live_acquirer="simulator"))
    sold = await live.another("sold live", amount="25.00")
    assert await broken(sold) == {}
    await sold.say(refunded=Decimal(25))
    assert await broken(sold) == {AGREES: 1}
    assert sold.payment_id in [one.payment_id for one in await sold.differences()]
