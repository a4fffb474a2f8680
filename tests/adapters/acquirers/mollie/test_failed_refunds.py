"""Refunds that come to nothing at Mollie after they were made."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from tests.adapters.acquirers.mollie.conftest import Till

from paydesk.adapters.acquirers.disputes import FailedRefund
from paydesk.adapters.acquirers.interface import UnderWay


async def test_one_of_the_dashboard_that_is_canceled_before_it_goes_out_is_told_by_its_name(till: Till) -> None:
    # Mollie: a refund that is queued, or pending, can be canceled until it is processed.
    _, name = await till.paid()
    till.account.do("set", refund_status="queued")
    made = till.account.do("give_back", name, "4.00")
    (listed,) = (await till.acquirer.list_refunds(till.clock.now, "")).refunds
    assert (listed.key, listed.reference, listed.made) == ("", made, True)
    till.account.do("change_refund", made, "canceled")
    (told,) = (await till.acquirer.failed_refunds("")).refunds
    assert (told.reference, told.key, told.amount, told.reason) == (made, "", Decimal(4), "canceled")


@pytest.mark.parametrize("status", ["failed", "canceled"])
async def test_one_that_comes_to_nothing_later_is_told(till: Till, status: str) -> None:
    _, name = await till.paid()
    made = await till.acquirer.refund("back", name, Decimal(4), "EUR")
    first = await till.acquirer.failed_refunds("")
    assert not first.refunds
    till.account.do("change_refund", made, status)
    till.pass_to(till.clock.now + timedelta(days=5))
    page = await till.acquirer.failed_refunds(first.next)
    (told,) = page.refunds
    assert (told.reference, told.key, told.amount, told.reason) == (made, "back", Decimal(4), status)
    assert not (await till.acquirer.failed_refunds(page.next)).refunds


async def test_one_that_was_to_undo_a_payment_is_told_until_another_is_made(till: Till) -> None:
    key, _ = await till.paid()
    till.account.do("set", refund_status="queued")
    assert await till.acquirer.undo("void", key) == UnderWay()
    (first,) = (await till.acquirer.list_refunds(till.clock.now, "")).refunds
    till.account.do("change_refund", first.reference, "canceled")
    (told,) = (await till.acquirer.failed_refunds("")).refunds
    assert (told.reference, told.key) == (first.reference, "void")
    assert await till.acquirer.undo("void", key) == UnderWay()
    assert (await till.acquirer.failed_refunds("")).refunds == ()


async def test_one_that_waited_for_months_and_was_canceled_then_is_told(till: Till) -> None:
    # Mollie: a refund is queued for as long as the balance does not cover it, and may be canceled
    # as long as it is.
    _, name = await till.paid()
    till.account.do("set", refund_status="queued")
    made = await till.acquirer.refund("back", name, Decimal(4), "EUR")
    place = (await till.acquirer.failed_refunds("")).next
    till.pass_to(till.clock.now + timedelta(days=90))
    place = (await till.acquirer.failed_refunds(place)).next
    till.account.do("change_refund", made, "canceled")
    told: list[FailedRefund] = []
    for _ in range(49):
        till.pass_to(till.clock.now + timedelta(minutes=30))
        page = await till.acquirer.failed_refunds(place)
        place, told = page.next, [*told, *page.refunds]
    assert {(one.reference, one.key, one.reason) for one in told} == {(made, "back", "canceled")}
