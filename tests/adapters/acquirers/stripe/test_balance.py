"""Stripe's balance and payouts, as its own lists tell them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import stripe
from tests.standins import stripe_balance
from tests.standins.stripe_balance import StripeBalance

from paydesk.adapters.acquirers.balance import Balance, BalanceLine, LineKind, PayoutState
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.stripe.objects import KEY, VOID, metadata_of

MARK = Mark("tag", 1, "shop", False, PurchaseKind.ORDER, "A-1", payment_id=8)
OURS = metadata_of("key-1", datetime(2030, 1, 1, tzinfo=UTC), MARK)


@pytest.fixture
async def account() -> AsyncIterator[StripeBalance]:
    async with stripe_balance.running() as standin:
        yield standin
    assert standin.wrong == []


@pytest.fixture
async def balance(account: StripeBalance) -> AsyncIterator[Balance]:
    acquirer = StripeAcquirer("sk_test_1", api_base=account.base_url)
    assert acquirer.balance is not None
    yield acquirer.balance
    await acquirer.close()


async def all_lines(
    account: StripeBalance, balance: Balance, since: timedelta = timedelta(days=1)
) -> list[BalanceLine]:
    """All pages, the oldest line first."""
    found: list[BalanceLine] = []
    after, is_over = "", False
    while not is_over:
        page = await balance.lines(datetime.fromtimestamp(account.time, UTC) - since, after)
        found += page.lines
        after, is_over = page.next, not page.next
    return found[::-1]


async def test_a_charge_has_its_fee_and_our_key(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000, fee=40, metadata=OURS)
    (line,) = await all_lines(account, balance)
    assert (line.kind, line.amount, line.fee, line.currency) == (LineKind.CAPTURE, Decimal(10), Decimal("0.40"), "EUR")
    assert (line.id, line.source, line.purchase, line.key) == ("txn_1", "ch_1", "pi_ch_1", "key-1")
    assert (line.is_ours, line.deployment, line.of_amount) == (True, "tag", None)


async def test_a_charge_of_other_software_is_not_ours(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000)
    (line,) = await all_lines(account, balance)
    assert line.is_ours is False


async def test_a_currency_without_decimals_is_counted_in_its_units(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000, "jpy", fee=36, metadata=OURS)
    (line,) = await all_lines(account, balance)
    assert (line.amount, line.fee) == (Decimal(1000), Decimal(36))


async def test_a_charge_that_was_changed_has_both_sums(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000, "usd", fee=35, settled=(920, "eur", 0.92), metadata=OURS)
    (line,) = await all_lines(account, balance)
    assert (line.amount, line.currency, line.of_amount, line.of_currency) == (Decimal("9.2"), "EUR", Decimal(10), "USD")


async def test_refunds_disputes_and_fees_are_told_apart(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000, fee=40, metadata=OURS)
    account.refund("ch_1", 400, {KEY: "refund-1"})
    account.refund("ch_1", 100, {VOID: "key-1:void"})
    account.refund("ch_1", 50)
    dispute = account.dispute("ch_1", fee=2000)
    account.win(dispute["source"], fee=2000)
    account.own_fee(5)
    account.move("reserve_hold", "risk_reserved_funds", -300)
    told = [(one.kind, one.amount, one.fee, one.key) for one in (await all_lines(account, balance))[1:]]
    assert told == [
        (LineKind.REFUND, Decimal(-4), Decimal(0), "refund-1"),
        (LineKind.REFUND, Decimal(-1), Decimal(0), "key-1:void"),
        (LineKind.REFUND, Decimal("-0.5"), Decimal(0), ""),
        (LineKind.CHARGEBACK, Decimal(-10), Decimal(20), ""),
        (LineKind.CHARGEBACK_REVERSAL, Decimal(10), Decimal(-20), ""),
        (LineKind.FEE, Decimal(0), Decimal("0.05"), ""),
        (LineKind.OTHER, Decimal(-3), Decimal(0), ""),
    ]


async def test_a_debit_that_fails_goes_back_as_it_came(account: StripeBalance, balance: Balance) -> None:
    # Stripe: a delayed payment has a transaction of type `payment` when it is created, and another
    # one of type `payment_failure_refund` (`charge_failure`) if it fails later.
    account.charge(1000, "usd", settled=(920, "eur", 0.92), metadata=OURS)
    failed = account.fail_debit("ch_1")
    failed |= {"amount": -920, "net": -920, "currency": "eur"}
    taken, back = await all_lines(account, balance)
    assert (taken.kind, taken.amount, taken.of_amount) == (LineKind.CAPTURE, Decimal("9.2"), Decimal(10))
    assert (back.kind, back.amount, back.of_amount) == (LineKind.REFUND, Decimal("-9.2"), Decimal(-10))
    assert (back.purchase, back.key, back.type) == (taken.purchase, "", "payment_failure_refund")


async def test_what_a_capture_in_part_let_go_of_is_given_back(account: StripeBalance, balance: Balance) -> None:
    # Stripe: two transactions, one for the full amount of the authorization, and another reversing
    # the part that was not captured, of type `refund` (`partial_capture_reversal`).
    account.charge(1000, "usd", settled=(920, "eur", 0.92), metadata=OURS)
    account.capture_part("ch_1", 700)
    taken, back = await all_lines(account, balance)
    assert (taken.kind, taken.of_amount) == (LineKind.CAPTURE, Decimal(10))
    assert (back.kind, back.amount, back.key) == (LineKind.REFUND, Decimal(-3), "")


async def test_a_charge_of_a_part_is_of_that_part(account: StripeBalance, balance: Balance) -> None:
    # Stripe: since version 2025-03-31 the transaction of a capture is of what was captured.
    account.charge(1000, "usd", settled=(644, "eur", 0.92), metadata=OURS)
    account.sources["ch_1"] |= {"amount_captured": 700}
    (taken,) = await all_lines(account, balance)
    assert (taken.kind, taken.amount, taken.of_amount) == (LineKind.CAPTURE, Decimal("6.44"), Decimal(7))


async def test_all_lines_of_a_refund_or_dispute_name_the_payment(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000, metadata=OURS)
    account.refund("ch_1", 400)
    account.dispute("ch_1", fee=0)
    assert {one.purchase for one in await all_lines(account, balance)} == {"pi_ch_1"}


async def test_long_lists_come_in_pages_and_no_further_back_than_asked(
    account: StripeBalance, balance: Balance
) -> None:
    account.charge(100)
    account.time += 10 * 86400
    for _ in range(7):
        account.charge(1000)
    account.most = 3
    assert [one.id for one in await all_lines(account, balance)] == [f"txn_{number}" for number in range(2, 9)]


async def test_a_payout_tells_its_lines_its_own_among_them(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000, fee=40, metadata=OURS)
    account.refund("ch_1", 400)
    account.pay_out()
    account.charge(500)
    since = datetime.fromtimestamp(account.time, UTC)
    (made,) = (await balance.payouts(since, "")).payouts
    assert (made.reference, made.amount, made.currency) == ("po_1", Decimal("5.6"), "EUR")
    assert (made.state, made.is_traced, made.bank_reference) == (PayoutState.ARRIVED, True, "TRACEpo_1")
    lines = (await balance.lines_of("po_1", "")).lines
    assert {one.id for one in lines} == {"txn_1", "txn_2", "txn_3"}
    assert sum(one.net for one in lines) == 0


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("pending", PayoutState.ON_ITS_WAY),
        ("in_transit", PayoutState.ON_ITS_WAY),
        ("canceled", PayoutState.FAILED),
        ("failed", PayoutState.FAILED),
    ],
)
async def test_a_payout_is_as_far_as_stripe_says(
    account: StripeBalance, balance: Balance, status: str, state: PayoutState
) -> None:
    account.charge(1000)
    account.pay_out(status=status)
    (made,) = (await balance.payouts(datetime.fromtimestamp(account.time, UTC), "")).payouts
    assert made.state is state


async def test_a_payout_that_failed_is_in_the_balance_again(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000)
    account.fail(account.pay_out())
    back = (await all_lines(account, balance))[-1]
    assert (back.kind, back.amount, back.source) == (LineKind.PAYOUT_RETURN, Decimal(10), "po_1")


async def test_of_a_payout_by_hand_nobody_knows_the_lines(account: StripeBalance, balance: Balance) -> None:
    account.charge(1000)
    account.pay_out(automatic=False)
    (made,) = (await balance.payouts(datetime.fromtimestamp(account.time, UTC), "")).payouts
    assert not made.is_traced
    with pytest.raises(AcquirerRefused, match="automatic"):
        await balance.lines_of(made.reference, "")


@pytest.mark.parametrize(
    ("kind", "of"),
    [("charge", stripe.Charge), ("refund", stripe.Refund), ("dispute", stripe.Dispute), ("payout", stripe.Payout)],
)
def test_the_stand_in_answers_declared_fields_only(kind: str, of: Any) -> None:
    account = StripeBalance()
    account.charge(1000, fee=40)
    account.refund("ch_1", 100)
    account.dispute("ch_1", 15)
    account.pay_out()
    told = [one for one in account.sources.values() if one["object"] == kind]
    assert told
    assert set().union(*told) <= set(of.__annotations__) | {"metadata"}
    assert set().union(*account.transactions) <= set(stripe.BalanceTransaction.__annotations__)
