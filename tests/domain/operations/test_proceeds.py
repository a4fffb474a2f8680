"""The operator's own books are set right by postings beside what acquirers told."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest
from tests import breaking
from tests.domain.proceeds.conftest import FEE, Proceeds, proceeds
from tests.domain.proceeds.test_matching import CONTRACT
from tests.proving import check
from tests.sweeping import database, database_url

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.paging import Page
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.ledger.balances import balances
from paydesk.domain.operations.alarms import list_alarms
from paydesk.domain.operations.proceeds import Correction, correct_finding, set_fee, take_back_correction
from paydesk.domain.proceeds.for_operator import OpenFinding, list_findings

__all__ = ["database", "database_url", "proceeds"]

DIME = Decimal("0.10")
TOO_LITTLE = Correction(-DIME)
NOTE = "they took it as a loan"


async def differing(proceeds: Proceeds, *, of_fee: bool = False) -> OpenFinding:
    """The bank has ten cents less of the payment than our books say, or keeps ten more of it."""
    if of_fee:
        await set_fee(proceeds.desk, COMMAND_LINE, CONTRACT, now=utc_now())
        proceeds.balance.told = [await proceeds.capture(fee=FEE + DIME)]
    else:
        proceeds.balance.told = [await proceeds.capture(amount=Decimal(10) - DIME)]
    await proceeds.read()
    (found,) = await list_findings(proceeds.database)
    return found


async def correct(
    proceeds: Proceeds, finding_id: int, correction: Correction = TOO_LITTLE, note: str = NOTE
) -> Decimal:
    done = await correct_finding(proceeds.database, COMMAND_LINE, finding_id, correction, note, now=utc_now())
    return done.corrected


async def take_back(proceeds: Proceeds, finding_id: int) -> None:
    await take_back_correction(proceeds.database, COMMAND_LINE, finding_id, now=utc_now())


async def alarms(proceeds: Proceeds) -> list[str]:
    found = await list_alarms(proceeds.database, Page(100), kind=AlarmKind.proceeds_differ)
    return [one.subject for one in found]


async def broken(proceeds: Proceeds) -> list[str]:
    """What `paydesk check` says of the operator's books."""
    found = await check(proceeds.database, now=utc_now())
    return [row.detail for one in found for row in one.differences if one.rule.statement == "corrections_posted"]


@pytest.mark.parametrize("of_fee", [False, True], ids=["an amount", "a fee"])
async def test_a_correction_is_posted_beside_what_was_told_and_sums_to_zero(proceeds: Proceeds, of_fee: bool) -> None:
    found = await differing(proceeds, of_fee=of_fee)
    before, owed = await proceeds.entries(), await balances(proceeds.database, proceeds.shop)
    assert await correct(proceeds, found.id, Correction(-DIME, is_fee=of_fee)) == -DIME
    after = await proceeds.entries()
    posted = {key: after.get(key, 0) - before.get(key, 0) for key in {*before, *after}}
    other = "acquirer_fees" if of_fee else "other"
    assert {key: amount for key, amount in posted.items() if amount} == {
        ("acquirer", "USD"): -DIME,
        (other, "USD"): DIME,
    }
    assert sum(after.values()) == 0
    assert await balances(proceeds.database, proceeds.shop) == owed, "merchants' books stay as they are"
    assert (await proceeds.findings(), await alarms(proceeds), await broken(proceeds)) == ([], [], [])
    await proceeds.read()
    assert (await proceeds.findings(), await proceeds.entries()) == ([], after), "it stays quiet, and as it is"


async def test_pressed_twice_and_by_two_at_once_it_is_posted_once(proceeds: Proceeds) -> None:
    found = await differing(proceeds)
    came = await asyncio.gather(*(correct(proceeds, found.id) for _ in range(4)), return_exceptions=True)
    assert came.count(-DIME) == 1
    assert all("is corrected by -0.1 USD already" in str(one) for one in came if one != -DIME)
    assert (await proceeds.entries())["other", "USD"] == DIME


async def test_what_was_posted_by_mistake_is_taken_back_once_and_differs_again(proceeds: Proceeds) -> None:
    found = await differing(proceeds)
    before = await proceeds.entries()
    await correct(proceeds, found.id, Correction(DIME))
    await take_back(proceeds, found.id)
    with pytest.raises(NotFound):
        await take_back(proceeds, found.id)
    assert await proceeds.entries() == before
    assert [one.id for one in await list_findings(proceeds.database)] == [found.id]
    assert len(await alarms(proceeds)) == 1
    assert await broken(proceeds) == []
    await correct(proceeds, found.id)
    assert (await proceeds.entries())["other", "USD"] == DIME


async def test_a_correction_of_what_agrees_by_itself_since_is_named_until_it_is_taken_back(proceeds: Proceeds) -> None:
    found = await differing(proceeds)
    before = await proceeds.entries()
    await correct(proceeds, found.id)
    await breaking.say(
        proceeds.database, "payment_attempt", {"merchant_id": proceeds.shop.merchant_id}, amount=Decimal(10) - DIME
    )
    await proceeds.read()
    assert await broken(proceeds) == ["is corrected by -0.10, and agrees by itself now: take that back"]
    with pytest.raises(Conflict):
        await correct(proceeds, found.id)
    await take_back(proceeds, found.id)
    assert (await broken(proceeds), await proceeds.entries(), await alarms(proceeds)) == ([], before, [])
    with pytest.raises(Conflict, match="is over"):
        await correct(proceeds, found.id)


@pytest.mark.parametrize(
    ("amount", "note", "field"),
    [("0", NOTE, "amount"), ("0.00001", NOTE, "amount"), ("NaN", NOTE, "amount"), ("1", " ", "note")],
)
async def test_an_amount_that_is_none_or_no_reason_posts_nothing(
    proceeds: Proceeds, amount: str, note: str, field: str
) -> None:
    found = await differing(proceeds)
    before = await proceeds.entries()
    with pytest.raises(Malformed) as refused:
        await correct(proceeds, found.id, Correction(Decimal(amount)), note)
    assert refused.value.fields == (field,)
    with pytest.raises(NotFound):
        await correct(proceeds, found.id + 1000)
    assert (await proceeds.entries(), len(await alarms(proceeds))) == (before, 1)


async def test_a_posting_without_its_finding_is_named(proceeds: Proceeds) -> None:
    found = await differing(proceeds)
    await correct(proceeds, found.id)
    await breaking.say(proceeds.database, "proceeds_finding", {"id": found.id}, corrected=Decimal("-0.2"))
    assert await broken(proceeds) == ["is corrected by -0.2, and its postings come to -0.10"]
