"""What an acquirer keeps, and pays out, enters the operator's books once, however it is told."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests import breaking
from tests.domain.proceeds.conftest import FEE, Proceeds
from tests.standins import stripe_balance
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.balance import BalanceLine, LineKind, PayoutState
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.stripe.objects import KEY
from paydesk.adapters.acquirers.wrapping import PassingAcquirer
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.domain.ledger.balances import balances
from paydesk.domain.proceeds import reading

__all__ = ["database", "database_url"]

NET = 10 - FEE


async def test_the_fee_is_a_cost_and_the_money_arrives(proceeds: Proceeds) -> None:
    proceeds.pays_out(await proceeds.capture())
    assert await proceeds.read()
    usd = {account: amount for (account, _), amount in (await proceeds.entries()).items()}
    assert usd == {"acquirer_fees": FEE, "acquirer": -10, "bank": NET}
    assert await proceeds.findings() == []


async def test_what_is_on_its_way_is_not_at_the_bank(proceeds: Proceeds) -> None:
    made = proceeds.pays_out(await proceeds.capture(), state=PayoutState.ON_ITS_WAY)
    await proceeds.read()
    assert (await proceeds.entries())["under_way", "USD"] == NET
    proceeds.balance.paid_out = [replace(made, state=PayoutState.ARRIVED)]
    await proceeds.read()
    assert (await proceeds.entries())["bank", "USD"] == NET
    assert ("under_way", "USD") not in await proceeds.entries()


async def test_a_payout_that_fails_after_it_arrived_is_the_acquirers_again(proceeds: Proceeds) -> None:
    made = proceeds.pays_out(await proceeds.capture())
    await proceeds.read()
    back = BalanceLine("txn_back", LineKind.PAYOUT_RETURN, made.at, NET, Decimal(0), "USD", source=made.reference)
    proceeds.balance.told.append(back)
    proceeds.balance.paid_out = [replace(made, state=PayoutState.FAILED)]
    await proceeds.read()
    assert await proceeds.entries() == {("acquirer_fees", "USD"): FEE, ("acquirer", "USD"): -FEE}
    assert [kind for kind, _ in await proceeds.findings()] == ["payout_failed"]


async def test_merchants_balances_stay_as_they_are(proceeds: Proceeds) -> None:
    before = await balances(proceeds.database, proceeds.shop)
    proceeds.pays_out(await proceeds.capture())
    await proceeds.read()
    assert await balances(proceeds.database, proceeds.shop) == before


async def test_the_same_list_read_twice_and_by_two_at_once_enters_once(proceeds: Proceeds) -> None:
    proceeds.pays_out(await proceeds.capture())
    await asyncio.gather(*(proceeds.read() for _ in range(4)))
    once = await proceeds.entries()
    await proceeds.read()
    assert await proceeds.entries() == once
    assert once["acquirer_fees", "USD"] == FEE


async def test_a_worker_that_dies_between_two_pages_leaves_nothing_out(proceeds: Proceeds) -> None:
    lines = [replace(await proceeds.capture(), id=f"txn_{number}", is_ours=False, of_key="") for number in range(7)]
    proceeds.pays_out(*lines)
    for pages in range(8):
        proceeds.balance.breaks_after = pages
        with pytest.raises(Unavailable):
            await proceeds.read()
    proceeds.balance.breaks_after = None
    await proceeds.read()
    assert (await proceeds.entries())["acquirer_fees", "USD"] == 7 * FEE
    assert await proceeds.findings() == []


async def test_another_worker_does_not_read_at_the_same_time_nor_too_soon(proceeds: Proceeds) -> None:
    assert await proceeds.read()
    assert not await proceeds.read(every=timedelta(hours=1))


async def test_money_that_was_changed_is_booked_in_both_currencies(proceeds: Proceeds) -> None:
    told = await proceeds.capture(fee=Decimal("0.35"))
    told = replace(told, currency="EUR", amount=Decimal("9.20"), of_amount=Decimal(10), of_currency="USD")
    proceeds.balance.told = [told]
    await proceeds.read()
    assert await proceeds.entries() == {
        ("exchange", "USD"): 10,
        ("acquirer", "USD"): -10,
        ("acquirer", "EUR"): Decimal("8.85"),
        ("exchange", "EUR"): Decimal("-9.20"),
        ("acquirer_fees", "EUR"): Decimal("0.35"),
    }
    assert await proceeds.findings() == []


async def test_what_stripe_tells_is_matched_with_late_lines_refunds_and_disputes(proceeds: Proceeds) -> None:
    (attempt,) = await proceeds.rows("payment_attempt", proceeds.payment_id)
    await proceeds.give(Decimal(4))
    (refund,) = await proceeds.rows("movement", proceeds.payment_id)
    async with stripe_balance.running() as account:
        account.time = int((utc_now() - timedelta(days=2)).timestamp())
        stripe = StripeAcquirer("sk_test_1", api_base=account.base_url)
        bank = proceeds.desk.acquirers["simulator"]
        assert isinstance(bank, PassingAcquirer)
        bank.balance = stripe.balance
        charge = account.charge(1000, "usd", fee=39, metadata={KEY: attempt["idempotency_key"]})
        account.most = 2
        await proceeds.read()
        account.refund(charge["source"], 400, {KEY: refund["idempotency_key"]})
        account.charge(700, "usd", fee=30)
        account.own_fee(5, "usd")
        # A line that comes later than the next ones, and is older than what was read.
        account.time -= 20 * 86400
        account.charge(100, "usd", fee=10)
        account.time += 21 * 86400
        account.pay_out(currency="usd")
        await proceeds.read()
        await proceeds.read()
        await stripe.close()
        assert account.wrong == []
    assert await proceeds.findings() == []
    entries = await proceeds.entries()
    assert entries["acquirer_fees", "USD"] == Decimal("0.84")
    assert entries["bank", "USD"] == Decimal("13.16")


POINTS = ("new_lines", "enter_lines", "enter_payouts", "examine_lines", "examine_payouts", "look_for_missing")


class Killed(Exception):
    """The process is gone."""


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("acted", [False, True], ids=["before", "after"])
async def test_whoever_dies_at_any_point_leaves_books_that_come_out_the_same(
    proceeds: Proceeds, monkeypatch: pytest.MonkeyPatch, point: str, acted: bool
) -> None:
    proceeds.pays_out(await proceeds.capture(), amount=Decimal("9.60"))
    honest = getattr(reading, point)

    async def dying(*given: Any, **named: Any) -> Any:
        if acted:
            await honest(*given, **named)
        raise Killed

    monkeypatch.setattr(reading, point, dying)
    with pytest.raises(Killed):
        await proceeds.read()
    monkeypatch.setattr(reading, point, honest)
    await proceeds.read()
    usd = {account: amount for (account, _), amount in (await proceeds.entries()).items()}
    assert usd == {"acquirer_fees": FEE, "acquirer": Decimal("-9.99"), "bank": Decimal("9.60")}
    assert [kind for kind, _ in await proceeds.findings()] == ["sum_differs"]


async def test_a_worker_that_was_killed_holds_the_balance_no_longer_than_its_lease(proceeds: Proceeds) -> None:
    await proceeds.read()
    held = {"acquirer": "simulator"}
    await breaking.say(proceeds.database, "balance_reading", held, leased_until=utc_now() + timedelta(minutes=5))
    assert not await proceeds.read()
    await breaking.say(proceeds.database, "balance_reading", held, leased_until=utc_now() - timedelta(minutes=5))
    assert await proceeds.read()


@pytest.mark.parametrize("finishes", [False, True], ids=["has begun", "has ended"])
@pytest.mark.parametrize("point", [one for one in POINTS if not one.startswith("enter")])
async def test_whoever_was_taken_over_enters_nothing_more_and_says_so(
    proceeds: Proceeds, monkeypatch: pytest.MonkeyPatch, point: str, finishes: bool
) -> None:
    """Whoever enters holds the lease until that is done: nobody takes it meanwhile."""
    proceeds.pays_out(await proceeds.capture(), amount=Decimal("9.60"))
    honest, then = getattr(reading, point), list[Any]()

    async def late(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(reading, point, honest)
        held = {"acquirer": "simulator"}
        await breaking.say(proceeds.database, "balance_reading", held, leased_until=utc_now() - timedelta(minutes=5))
        if finishes:
            await asyncio.gather(proceeds.read(), proceeds.read())
        else:
            theirs = utc_now() + timedelta(minutes=5)
            await breaking.say(proceeds.database, "balance_reading", held, leased_until=theirs)
        then.append(await entered(proceeds))
        return await honest(*given, **named)

    monkeypatch.setattr(reading, point, late)
    with pytest.raises(Unavailable, match="simulator is read by another worker"):
        await proceeds.read()
    assert [await entered(proceeds)] == then
    if finishes:
        assert (await proceeds.entries())["bank", "USD"] == Decimal("9.60")
        assert [kind for kind, _ in await proceeds.findings()] == ["sum_differs"]


async def entered(proceeds: Proceeds) -> dict[str, list[dict[str, Any]]]:
    """All that a reading may have written."""
    tables = ("balance_reading", "balance_line", "bank_payout", "operator_entry", "proceeds_finding", "alarm")
    return {name: [dict(row) for row in await proceeds.database.fetch(f"select * from {name}")] for name in tables}
