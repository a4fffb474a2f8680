"""Refunds and undoing at Mollie: once under a key, never more than was taken."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from tests.adapters.acquirers.mollie.conftest import Till

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Captured,
    KeyUsed,
    Moved,
    NothingHeld,
    OutcomeUnknown,
    Refused,
    UnderWay,
    Voided,
)


async def test_a_refund_is_made_once_even_after_mollie_has_forgotten_its_key(till: Till) -> None:
    key, name = await till.paid()
    till.account.do("set", loses=1)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.refund("back", name, Decimal(4), "EUR", 9)
    till.pass_to(till.clock.now + timedelta(hours=3))
    reference = await till.acquirer.refund("back", name, Decimal(4), "EUR", 9)
    assert await till.acquirer.find_movement("back", key, name) == Moved(reference, Decimal(4))
    assert till.account.taken(key) == 6


async def test_a_key_of_another_refund_is_refused(till: Till) -> None:
    _, name = await till.paid()
    await till.acquirer.refund("back", name, Decimal(4), "EUR")
    with pytest.raises(KeyUsed):
        await till.acquirer.refund("back", name, Decimal(5), "EUR")


@pytest.mark.parametrize(("amount", "currency"), [("10.01", "EUR"), ("1", "USD"), ("0", "EUR"), ("0.001", "EUR")])
async def test_what_cant_be_refunded_is_refused(till: Till, amount: str, currency: str) -> None:
    key, name = await till.paid()
    with pytest.raises(AcquirerRefused):
        await till.acquirer.refund("back", name, Decimal(amount), currency)
    assert till.account.taken(key) == 10


async def test_more_than_is_left_is_refused(till: Till) -> None:
    key, name = await till.paid()
    await till.acquirer.refund("one", name, Decimal(6), "EUR")
    with pytest.raises(AcquirerRefused, match="4 is left"):
        await till.acquirer.refund("two", name, Decimal(5), "EUR")
    assert till.account.taken(key) == 4


async def test_what_failed_is_refused_and_its_money_may_be_given_back_under_another_key(till: Till) -> None:
    key, name = await till.paid()
    made = await till.acquirer.refund("one", name, Decimal(10), "EUR")
    till.account.do("change_refund", made, "failed")
    assert await till.acquirer.find_movement("one", key, name) == Refused(f"Mollie's refund {made} is failed")
    with pytest.raises(AcquirerRefused, match="failed"):
        await till.acquirer.refund("one", name, Decimal(10), "EUR")
    await till.acquirer.refund("two", name, Decimal(10), "EUR")
    assert till.account.taken(key) == 0


@pytest.mark.parametrize("status", ["queued", "pending", "processing", "refunded"])
async def test_a_refund_that_mollie_has_taken_is_made(till: Till, status: str) -> None:
    key, name = await till.paid()
    till.account.do("set", refund_status=status)
    made = await till.acquirer.refund("one", name, Decimal(10), "EUR")
    assert await till.acquirer.find_movement("one", key, name) == Moved(made)


async def test_what_a_bank_has_taken_back_is_not_refunded(till: Till) -> None:
    _, name = await till.paid()
    chargeback = till.account.do("charge_back", name, "10.00")
    with pytest.raises(AcquirerRefused, match="charged back"):
        await till.acquirer.refund("back", name, Decimal(10), "EUR")
    with pytest.raises(AcquirerRefused, match="charged back"):
        await till.acquirer.undo("void", "key-1")
    till.account.do("reverse", chargeback)
    assert await till.acquirer.undo("void", "key-1") == UnderWay()


async def test_a_movement_that_was_never_asked_for_is_not_found(till: Till) -> None:
    key, name = await till.paid()
    assert await till.acquirer.find_movement("back", key, name) == NothingHeld()


async def test_an_undoing_is_found_and_finds_itself_done_in_another_process(till: Till) -> None:
    key, name = await till.paid()
    till.account.do("set", loses=1)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.undo("void", key)
    other = till.restarted()
    till.pass_to(till.clock.now + timedelta(hours=3))
    assert await other.undo("void", key) == UnderWay()
    assert await other.find_movement("void", key, name) == UnderWay()
    (made,) = till.account.see()["refunds"]
    till.account.do("change_refund", made, "refunded")
    assert await other.undo("void", key) == Voided()
    assert await other.find(key) == Voided()
    assert isinstance(await other.find_movement("void", key, name), Moved)
    await other.close()
    assert till.account.taken(key) == 0


@pytest.mark.parametrize("status", ["queued", "pending", "processing"])
async def test_an_undoing_is_under_way_until_its_customer_has_the_money(till: Till, status: str) -> None:
    key, name = await till.paid()
    till.account.do("set", refund_status=status)
    for _ in range(3):
        assert await till.acquirer.undo("void", key) == UnderWay()
    for ask in (till.acquirer.find, till.acquirer.look_back):
        with pytest.raises(OutcomeUnknown, match="is giving"):
            await ask(key)
    (made,) = till.account.see()["refunds"]
    till.account.do("change_refund", made, "refunded")
    assert await till.acquirer.undo("void", key) == Voided()
    assert await till.acquirer.void("void", key) == Voided()
    assert await till.acquirer.end_challenge(key) == Voided()
    assert (till.account.taken(key), len(till.account.see()["refunds"])) == (0, 1)
    assert name


@pytest.mark.parametrize("status", ["failed", "canceled"])
async def test_an_undoing_that_came_to_nothing_is_made_anew_and_then_an_operator_is_told(
    till: Till, status: str
) -> None:
    key, _ = await till.paid()
    for number in range(3):
        assert await till.acquirer.undo("void", key) == UnderWay()
        made = till.account.see()["refunds"]
        assert len(made) == number + 1
        till.account.do("change_refund", list(made)[-1], status)
        assert till.account.taken(key) == 10
        assert isinstance(await till.acquirer.find(key), Approved), "nothing is undone"
    with pytest.raises(AcquirerRefused, match="give its customer the money back another way"):
        await till.acquirer.undo("void", key)
    assert len(till.account.see()["refunds"]) == 3


async def test_an_undoing_that_failed_once_is_done_in_the_end(till: Till) -> None:
    key, _ = await till.paid()
    await till.acquirer.undo("void", key)
    till.account.do("change_refund", next(iter(till.account.see()["refunds"])), "failed")
    till.account.do("set", refund_status="refunded", loses=1)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.undo("void", key)
    assert await till.acquirer.undo("void", key) == Voided()
    assert (till.account.taken(key), len(till.account.see()["refunds"])) == (0, 2)
    # What compares the list with our books knows an undoing by its key, whichever refund it is.
    listed = (await till.acquirer.list_refunds(till.clock.now, "")).refunds
    assert [one.key for one in listed] == ["void", "void"]


async def test_what_was_refunded_is_not_undone(till: Till) -> None:
    key, name = await till.paid()
    await till.acquirer.refund("back", name, Decimal(1), "EUR")
    with pytest.raises(AcquirerRefused, match="refunded"):
        await till.acquirer.undo("void", key)
    assert till.account.taken(key) == 9


async def test_a_void_never_gives_back(till: Till) -> None:
    key, name = await till.paid()
    assert await till.acquirer.void("void", key) == Captured(name, Decimal(10))
    assert isinstance(await till.acquirer.end_challenge(key), Approved)
    assert till.account.taken(key) == 10


async def test_an_open_payment_is_ended_where_that_can_be_and_else_nobody_knows(till: Till) -> None:
    wanted = till.wanted()
    page = await till.acquirer.open_page(wanted)
    with pytest.raises(OutcomeUnknown, match="can't end"):
        await till.acquirer.undo("void", wanted.key)
    till.account.do("set", cancelable=page.reference)
    assert await till.acquirer.end_challenge(wanted.key) == Voided()


async def test_what_mollie_has_no_trace_of_is_never_called_undone(till: Till) -> None:
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.undo("void", "never seen")
    assert await till.acquirer.find("never seen") == NothingHeld()
