"""The bank's own list beside our books: what it knows and we don't, and the other way round."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.banks import answering, ending_in
from tests.domain.operations.books import Books
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.interface import CardDetails, OutcomeUnknown, Purchase
from paydesk.adapters.acquirers.listing import PurchasePage
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.operations import reading, reconciling
from paydesk.domain.operations.reconciling import reconcile

__all__ = ["database", "database_url"]

FOUR = Decimal(4)


async def test_books_that_agree_are_no_news(books: Books) -> None:
    await books.give(FOUR)
    found = await books.compare()
    assert (found.purchases, found.refunds, found.foreign, found.differences) == (1, 1, 0, [])
    assert await books.alarms() == []


async def test_money_that_our_books_forgot_is_found_by_its_mark(books: Books) -> None:
    key = (await books.attempt())["idempotency_key"]
    await books.forget()
    (found,) = await books.differences()
    assert (found.what, found.key, found.merchant_id) == ("purchase", key, None)
    assert f"payment {books.payment_id}" in found.reason
    assert await books.alarms() == [f"purchase {key} at simulator"]


async def test_what_the_bank_lacks_is_found_too(books: Books) -> None:
    await breaking.say(books.database, "payment_attempt", books.shop.merchant_id, idempotency_key="never sent")
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
    await breaking.say(books.database, table, books.shop.merchant_id, **wrong)
    (said,) = await books.reasons()
    assert said.startswith(reason)
    assert len(await books.alarms()) == 1
    await breaking.say(books.database, table, books.shop.merchant_id, **{name: row[name] for name in wrong})
    assert (await books.reasons(), await books.alarms()) == ([], [])


async def test_a_refund_that_our_books_don_t_know_is_found(books: Books) -> None:
    reference = (await books.attempt())["acquirer_reference"]
    books.bank.refund("made in the bank's own pages", reference, FOUR, "USD")
    assert sorted(await books.reasons()) == [
        "4.00 USD were given back by it, and our books don't know it",
        "4.00 USD were given back there, and 0.00 USD in our books",
    ]


async def test_a_refund_that_failed_at_the_bank_and_not_here_is_found(books: Books) -> None:
    movement = await books.give(FOUR)
    key = await books.database.fetchval(
        "select idempotency_key from movement where merchant_id = $1 and id = $2", books.shop.merchant_id, movement
    )
    made = books.bank.record.decided(key)
    assert made is not None
    books.bank.fail_refund(made.reference, "lost_or_stolen_card")
    assert "it is not made there, and done in our books" in await books.reasons()


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


async def test_a_refund_of_a_test_side_that_was_emptied_since_is_no_difference(books: Books) -> None:
    await books.give(FOUR)
    key = (await books.attempt())["idempotency_key"]
    await books.forget()
    emptied = "insert into forgotten_attempt (merchant_id, acquirer, idempotency_key) values ($1, 'simulator', $2)"
    await books.database.execute(emptied, books.shop.merchant_id, key)
    assert await books.reasons() == []


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
    monkeypatch.setattr(reading, "_PAUSES", (0.0,))
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


async def test_workers_share_the_hourly_reading_and_measure_it(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    await books.database.execute("delete from reconciliation")
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
