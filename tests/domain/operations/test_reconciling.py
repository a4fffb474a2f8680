"""The bank's own list beside our books: what it knows and we don't, and the other way round."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.banks import answering, ending_in
from tests.domain.operations.books import Books
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.operations import reconciling
from paydesk.domain.operations.reconciling import reconcile

__all__ = ["database", "database_url"]

FOUR = Decimal(4)


async def test_books_that_agree_are_no_news(books: Books) -> None:
    await books.give(FOUR)
    found = await books.compare()
    assert (found.purchases, found.refunds, found.foreign, found.differences) == (1, 1, 0, [])
    assert await books.listed() == []


async def test_money_that_our_books_forgot_is_found_by_its_mark(books: Books) -> None:
    key = (await books.attempt())["idempotency_key"]
    await books.forget()
    (found,) = await books.differences()
    assert (found.what, found.key, found.merchant_id) == ("purchase", key, None)
    assert f"payment {books.payment_id}" in found.reason
    assert await books.listed() == [f"purchase {key} at simulator"]


async def test_what_the_bank_lacks_is_found_too(books: Books) -> None:
    await breaking.say(
        books.database, "payment_attempt", {"merchant_id": books.shop.merchant_id}, idempotency_key="never sent"
    )
    reasons = {one.key: one.reason for one in await books.differences()}
    assert (
        reasons["never sent"]
        == "it is approved in our books, and the acquirer neither lists it nor knows it by its key"
    )
    assert len(reasons) == 2, "and what the bank has under its key is not in our books"


@pytest.mark.parametrize(
    ("table", "wrong", "reason"),
    [
        ("payment", {"refunded": 1}, "0.00 USD were given back there, and 1.00 USD"),
        ("payment_attempt", {"amount": 11}, "it is of 10.00 USD, and of 11.0000 USD"),
        ("payment_attempt", {"currency": "EUR"}, "it is of 10.00 USD, and of 10.0000"),
        ("payment_attempt", {"state": "failed"}, "it has 10.00 USD of the customer's"),
        ("payment", {"state": "voided"}, "it has 10.00 USD, and is voided in our books"),
        ("payment", {"state": "authorized"}, "it is captured there, and only authorized"),
    ],
)
async def test_each_way_to_differ_is_named_and_settles_itself_once_mended(
    books: Books, table: str, wrong: dict[str, Any], reason: str
) -> None:
    row = await books.database.fetchrow(f"select * from {table} where merchant_id = $1", books.shop.merchant_id)
    await breaking.say(books.database, table, {"merchant_id": books.shop.merchant_id}, **wrong)
    (said,) = await books.reasons()
    assert said.startswith(reason)
    assert len(await books.listed()) == 1
    await breaking.say(
        books.database, table, {"merchant_id": books.shop.merchant_id}, **{name: row[name] for name in wrong}
    )
    assert (await books.reasons(), await books.listed()) == ([], [])


async def test_a_refund_that_our_books_don_t_know_is_found(books: Books) -> None:
    reference = (await books.attempt())["acquirer_reference"]
    books.bank.refund("made in the bank's own pages", reference, FOUR, "USD")
    assert sorted(await books.reasons()) == [
        "4.00 USD were given back by it, and our books don't know it",
        "4.00 USD were given back there, and 0.00 USD in our books",
    ]


async def test_a_refund_that_failed_at_the_bank_and_not_here_is_found(books: Books) -> None:
    movement = (await books.give(FOUR)).reference_id
    key = await books.database.fetchval(
        "select idempotency_key from movement where merchant_id = $1 and id = $2", books.shop.merchant_id, movement
    )
    made = books.bank.record.decided(key)
    assert made is not None
    books.bank.fail_refund(made.reference, "lost_or_stolen_card")
    assert "it is not made there, and done in our books" in await books.reasons()


async def test_a_refund_of_a_test_side_that_was_emptied_since_is_no_difference(books: Books) -> None:
    await books.give(FOUR)
    key = (await books.attempt())["idempotency_key"]
    await books.forget()
    emptied = "insert into forgotten_attempt (merchant_id, acquirer, idempotency_key) values ($1, 'simulator', $2)"
    await books.database.execute(emptied, books.shop.merchant_id, key)
    assert await books.reasons() == []


async def test_workers_share_the_hourly_reading_and_measure_it(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    await breaking.never_reconciled(books.database)
    await books.say(refunded=1)
    monkeypatch.setattr(reconciling, "SETTLED", timedelta(seconds=-1))
    for _ in range(2):
        await reconciling._reconcile_when_due(books.desk, "simulator", now=utc_now())
    row = await books.database.fetchrow("select * from reconciliation")
    assert (row["differences"], row["leased_until"]) == (1, None)
    (alarm,) = await books.database.fetch("select times from alarm where kind = 'not_reconciled'")
    assert alarm["times"] == 1, "the second worker finds it done"
    await books.say(refunded=0)
    now = utc_now()
    for back, left in ((timedelta(hours=1), 1), (timedelta(days=2), 0)):
        await reconcile(books.desk, "simulator", since=now - back, now=now)
        assert await books.database.fetchval("select differences from reconciliation") == left


async def test_a_list_that_can_t_be_read_is_said(books: Books) -> None:
    silent = answering(books.desk.acquirers["simulator"], list_purchases=ending_in(OutcomeUnknown("no answer")))
    with pytest.raises(Unavailable, match="the list of simulator can't be read: no answer"):
        await books.at(silent).compare()
