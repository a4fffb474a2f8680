"""Mollie's lists: part by part, as far back as was asked for, ours known by their marks."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from tests.adapters.acquirers.mollie.conftest import MARK, Till

from paydesk.adapters.acquirers.interface import Approved, Earlier
from paydesk.adapters.acquirers.listing import PurchaseState


async def test_payments_are_listed_part_by_part_since_a_time(till: Till) -> None:
    await till.paid()
    since = till.clock.now + timedelta(minutes=1)
    till.pass_to(since)
    made = [(await till.paid())[1] for _ in range(3)]
    till.account.do("set", part=2)
    found, after = [], ""
    while True:
        page = await till.acquirer.list_purchases(since, after)
        found += [one.reference for one in page.purchases]
        if not (after := page.next):
            break
    assert found == made[::-1]


async def test_a_payment_stands_in_the_list_as_it_stands_now(till: Till) -> None:
    key, name = await till.paid()
    await till.acquirer.refund("back", name, Decimal(4), "EUR", 9)
    open_one = await till.acquirer.open_page(till.wanted())
    listed = {one.reference: one for one in (await till.acquirer.list_purchases(till.clock.now, "")).purchases}
    paid = listed[name]
    assert (paid.key, paid.state, paid.captured, paid.refunded) == (
        key,
        PurchaseState.CAPTURED,
        Decimal(10),
        Decimal(4),
    )
    assert (paid.mark, paid.last4) == (MARK, "4242")
    assert (listed[open_one.reference].state, listed[open_one.reference].captured) == (PurchaseState.OPEN, Decimal(0))


async def test_refunds_are_listed_with_whose_they_are(till: Till) -> None:
    key, name = await till.paid()
    await till.acquirer.refund("back", name, Decimal(4), "EUR", 9)
    (listed,) = (await till.acquirer.list_refunds(till.clock.now, "")).refunds
    assert (listed.key, listed.of_key, listed.of_reference, listed.number) == ("back", key, name, 9)
    assert (listed.made, listed.mark, listed.amount) == (True, MARK, Decimal(4))
    till.account.do("change_refund", listed.reference, "canceled")
    assert not (await till.acquirer.list_refunds(till.clock.now, "")).refunds[0].made


async def test_a_payment_that_was_forgotten_is_found_by_its_key(till: Till) -> None:
    key, name = await till.paid()
    till.account.do("set", part=1)
    for _ in range(2):
        await till.paid()
    other = till.restarted()
    earlier = Earlier(Approved(name), Decimal(10), "EUR", True, MARK)
    assert await other.look_back(key, till.clock.now) == earlier
    await other.close()
    later = till.restarted()
    assert await later.look_back(key, till.clock.now + timedelta(hours=1)) is None
    await later.close()
