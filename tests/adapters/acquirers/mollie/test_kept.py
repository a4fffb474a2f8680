"""Later charges at Mollie, by what it keeps of a first payment."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from tests.adapters.acquirers.mollie.conftest import MARK, Till

from paydesk.adapters.acquirers.hosted_pages import PageState
from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.interface import (
    Approved,
    Declined,
    DeclineReason,
    NothingHeld,
    OutcomeUnknown,
    Pending,
    Voided,
)
from paydesk.adapters.acquirers.mollie import kept
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase


async def kept_at(till: Till, **changes: Any) -> str:
    """What is kept of a page that was paid."""
    wanted = till.wanted(keep=True, **changes)
    page = await till.acquirer.open_page(wanted)
    assert till.account.do("pay", page.reference)
    instrument = (await till.acquirer.find_page(wanted.key, page.reference)).instrument
    assert instrument is not None
    assert (instrument.exp_month, instrument.exp_year) == (12, 2031)
    return instrument.reference


def charge(till: Till, reference: str) -> Purchase:
    nobodys = CardDetails("", 0, 0, "")
    until = till.clock.now + timedelta(minutes=1)
    return Purchase("charge", Decimal(7), "EUR", nobodys, True, until, stored_reference=reference, mark=MARK)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch, till: Till) -> Till:
    """A till that looks but once whether a charge is decided."""
    monkeypatch.setattr(till.acquirer._kept, "_pauses", ())
    return till


async def test_a_lost_answer_is_found_by_another_process(till: Till) -> None:
    purchase = charge(till, await kept_at(till))
    till.account.do("set", loses=1)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.charge_stored(purchase)
    other = till.restarted()
    found = await other.find(purchase.key, purchase.not_after)
    await other.close()
    assert isinstance(found, Approved)
    assert found.until == purchase.not_after
    assert till.account.taken(purchase.key) == 7


@pytest.mark.parametrize("then", ["paid", "failed"])
async def test_one_that_is_on_its_way_is_unknown_until_it_is_decided(hasty: Till, then: str) -> None:
    purchase = charge(hasty, await kept_at(hasty))
    hasty.account.do("set", recurring_status="pending")
    with pytest.raises(OutcomeUnknown):
        await hasty.acquirer.charge_stored(purchase)
    with pytest.raises(OutcomeUnknown):
        await hasty.acquirer.find(purchase.key, purchase.not_after)
    hasty.account.do("settle", "tr_0000000002", then)
    found = await hasty.acquirer.find(purchase.key, purchase.not_after)
    assert isinstance(found, Approved if then == "paid" else Declined)


async def test_one_that_is_decided_within_moments_is_waited_for(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    purchase = charge(till, await kept_at(till))
    till.account.do("set", recurring_status="open")

    async def settle(seconds: float) -> None:
        till.account.do("settle", "tr_0000000002", "paid")

    monkeypatch.setattr(kept, "asyncio", SimpleNamespace(sleep=settle))
    assert isinstance(await till.acquirer.charge_stored(purchase), Approved)


async def test_a_charge_that_fails_is_a_decline_with_its_reason(till: Till) -> None:
    purchase = charge(till, await kept_at(till))
    till.account.do("set", recurring_status="failed")
    assert await till.acquirer.charge_stored(purchase) == Declined(DeclineReason.INSUFFICIENT_FUNDS)


async def test_what_was_let_go_of_is_a_decline(till: Till) -> None:
    reference = await kept_at(till, amount=Decimal(0))
    assert await till.acquirer.undo("void", "key-1") == Voided()
    assert await till.acquirer.undo("void", "key-1") == Voided()
    assert await till.acquirer.charge_stored(charge(till, reference)) == Declined(DeclineReason.DECLINED)


async def test_after_its_time_a_key_takes_nothing_and_keeps_what_it_took(till: Till) -> None:
    reference = await kept_at(till)
    taken = charge(till, reference)
    first = await till.acquirer.charge_stored(taken)
    till.pass_to(taken.not_after + timedelta(seconds=1))
    assert await till.acquirer.charge_stored(taken) == first
    never = Purchase("never", Decimal(7), "EUR", taken.card, True, taken.not_after, stored_reference=reference)
    assert await till.acquirer.charge_stored(never) == Declined(DeclineReason.TOO_LATE)
    assert await till.acquirer.find("never", taken.not_after) == NothingHeld()
    assert till.account.taken("never") == 0


async def test_what_was_only_kept_is_no_purchase_of_the_list(till: Till) -> None:
    await kept_at(till, amount=Decimal(0))
    assert (await till.acquirer.list_purchases(till.clock.now, "")).purchases == ()


class TestDebits:
    """An account that was paid from is charged by SEPA direct debit later, where that is wanted."""

    async def kept(self, till: Till, method: str = "ideal") -> Instrument:
        wanted = till.wanted(keep=True, slow=True)
        page = await till.acquirer.open_page(wanted)
        assert till.account.do("pay", page.reference, method)
        instrument = (await till.acquirer.find_page(wanted.key, page.reference)).instrument
        assert instrument is not None
        return instrument

    @pytest.mark.parametrize(
        ("changes", "offered"),
        [({"slow": True}, True), ({}, False), ({"slow": True, "amount": Decimal(0)}, False)],
        ids=["slow", "prompt alone", "for nothing"],
    )
    async def test_accounts_are_offered_only_where_slow_methods_are_wanted(
        self, till: Till, changes: dict[str, Any], offered: bool
    ) -> None:
        page = await till.acquirer.open_page(till.wanted(keep=True, **changes))
        (asked,) = [body for _, path, _, body in till.account.see()["asked"] if path == "/v2/payments"]
        assert page.state is PageState.OPEN
        assert ('"ideal"' in asked) is offered
        assert "directdebit" not in asked

    async def test_none_is_offered_in_another_currency(self, till: Till) -> None:
        await till.acquirer.open_page(till.wanted(keep=True, slow=True, currency="USD"))
        (asked,) = [body for _, path, _, body in till.account.see()["asked"] if path == "/v2/payments"]
        assert '"ideal"' not in asked

    async def test_what_was_paid_from_is_kept_and_slow(self, till: Till) -> None:
        instrument = await self.kept(till)
        assert (instrument.kind, instrument.slow, bool(instrument.reference)) == (InstrumentKind.BANK, True, True)

    @pytest.mark.parametrize(
        ("then", "reason", "came"),
        [
            ("paid", "", None),
            ("failed", "AM04", DeclineReason.INSUFFICIENT_FUNDS),
            ("failed", "AC04", DeclineReason.CLOSED_ACCOUNT),
            ("failed", "MS03", DeclineReason.DECLINED),
        ],
    )
    async def test_a_later_charge_is_pending_until_its_bank_has_decided(
        self, till: Till, then: str, reason: str, came: DeclineReason | None
    ) -> None:
        purchase = charge(till, (await self.kept(till)).reference)
        answer = await till.acquirer.charge_stored(purchase)
        assert isinstance(answer, Pending)
        assert answer.until is not None
        assert timedelta(days=13) < answer.until - till.clock.now <= timedelta(days=14)
        assert await till.acquirer.find(purchase.key, purchase.not_after) == answer
        earlier = await till.acquirer.look_back(purchase.key)
        assert earlier is not None
        assert earlier.finding == answer
        assert till.account.taken(purchase.key) == 0
        till.account.do("settle", answer.reference, then, reason)
        found = await till.acquirer.find(purchase.key, purchase.not_after)
        assert isinstance(found, Approved) if came is None else found == Declined(came)
        assert till.account.taken(purchase.key) == (7 if came is None else 0)

    async def test_a_lost_answer_is_found_pending(self, till: Till) -> None:
        purchase = charge(till, (await self.kept(till)).reference)
        till.account.do("set", loses=1)
        with pytest.raises(OutcomeUnknown):
            await till.acquirer.charge_stored(purchase)
        other = till.restarted()
        found = await other.find(purchase.key, purchase.not_after)
        await other.close()
        assert isinstance(found, Pending)
