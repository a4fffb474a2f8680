"""Chargebacks at Mollie: each taken when it is made, and given again when it is reversed."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from tests.adapters.acquirers.mollie.conftest import MARK, Till

from paydesk.adapters.acquirers.disputes import DisputeStatus
from paydesk.adapters.acquirers.interface import AcquirerRefused


async def test_several_of_one_payment_are_told_each_with_what_it_took(till: Till) -> None:
    key, name = await till.paid()
    for value in ("6.00", "4.00"):
        till.pass_to(till.clock.now + timedelta(minutes=1))
        till.account.do("charge_back", name, value)
    page = await till.acquirer.disputes("")
    assert [(one.of_key, one.taken, one.returned, one.status) for one in page.disputes] == [
        (key, Decimal(6), Decimal(0), DisputeStatus.OPEN),
        (key, Decimal(4), Decimal(0), DisputeStatus.OPEN),
    ]
    assert page.disputes[0].reason == "Account identifier incorrect"
    assert page.disputes[0].of_merchant == MARK.merchant


async def test_a_reversal_is_told_though_it_was_made_long_ago(till: Till) -> None:
    _, name = await till.paid()
    chargeback = till.account.do("charge_back", name, "10.00")
    place = (await till.acquirer.disputes("")).next
    for days in (20, 40):
        till.pass_to(till.clock.now + timedelta(days=days))
        place = (await till.acquirer.disputes(place)).next
    till.pass_to(till.clock.now + timedelta(hours=1))
    assert not (await till.acquirer.disputes(place)).disputes
    till.account.do("reverse", chargeback)
    (told,) = (await till.acquirer.disputes(place)).disputes
    assert (told.status, told.taken, told.returned) == (DisputeStatus.WON, Decimal(10), Decimal(10))
    assert await till.acquirer.find_dispute(told.reference) == told


async def test_a_reader_comes_to_an_end_and_reads_again_some_minutes_later(till: Till) -> None:
    _, name = await till.paid()
    till.account.do("charge_back", name, "10.00")
    page = await till.acquirer.disputes("")
    assert page.disputes
    assert not (await till.acquirer.disputes(page.next)).disputes
    till.pass_to(till.clock.now + timedelta(minutes=11))
    assert (await till.acquirer.disputes(page.next)).disputes


async def test_after_half_a_year_one_counts_as_lost(till: Till) -> None:
    _, name = await till.paid()
    till.account.do("charge_back", name, "10.00")
    (told,) = (await till.acquirer.disputes("")).disputes
    till.pass_to(till.clock.now + timedelta(days=184))
    found = await till.acquirer.find_dispute(told.reference)
    assert found is not None
    assert found.status is DisputeStatus.LOST


async def test_what_is_none_is_not_found_and_no_cursor_is_refused(till: Till) -> None:
    for reference in ("tr_0000000009.chb_000009", "du_1", "tr_1/../../methods"):
        assert await till.acquirer.find_dispute(reference) is None
    with pytest.raises(AcquirerRefused):
        await till.acquirer.disputes("no cursor")
    with pytest.raises(AcquirerRefused, match="dashboard"):
        await till.acquirer.submit_evidence("tr_1.chb_1", "it was delivered", {})
