"""Mollie's balances and settlements, as its own lists tell them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from decimal import Decimal

import pytest
from mollie.models import EntityBalanceTransaction, EntitySettlement
from tests.standins import mollie_balance
from tests.standins.mollie_balance import MollieBalances

from paydesk.adapters.acquirers.balance import Balance, BalanceLine, LineKind, PayoutState
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.mollie import MollieAcquirer

DAY = timedelta(days=1)


@pytest.fixture
async def account() -> AsyncIterator[MollieBalances]:
    async with mollie_balance.running() as standin:
        yield standin


@pytest.fixture
async def balance(account: MollieBalances) -> AsyncIterator[Balance]:
    acquirer = MollieAcquirer("live_standin access_standin", api_base=account.base_url)
    assert acquirer.balance is not None
    yield acquirer.balance
    await acquirer.close()


async def all_lines(account: MollieBalances, balance: Balance, since: timedelta = DAY) -> list[BalanceLine]:
    """All pages with our keys, the oldest line first of each balance."""
    found: list[BalanceLine] = []
    after, is_over = "", False
    while not is_over:
        page = await balance.lines(account.time - since, after)
        found += page.lines
        after, is_over = page.next, not page.next
    return list(await balance.with_keys(found[::-1]))


async def test_without_an_access_token_nothing_is_told(account: MollieBalances) -> None:
    acquirer = MollieAcquirer("live_standin", api_base=account.base_url)
    assert acquirer.balance is None
    await acquirer.close()


async def test_a_token_that_may_not_read_balances_is_refused(account: MollieBalances) -> None:
    acquirer = MollieAcquirer("live_standin wrong_standin", api_base=account.base_url)
    assert acquirer.balance is not None
    with pytest.raises(AcquirerRefused, match="does not accept"):
        await acquirer.balance.lines(account.time, "")
    await acquirer.close()


async def test_a_payment_has_its_fee_and_our_key(account: MollieBalances, balance: Balance) -> None:
    account.move("payment", "10.00", "0.29", paymentId=account.pay("10.00", "key-1"))
    (line,) = await all_lines(account, balance)
    assert (line.kind, line.amount, line.fee, line.currency) == (LineKind.CAPTURE, Decimal(10), Decimal("0.29"), "EUR")
    assert (line.purchase, line.key, line.of_key, line.is_ours) == ("tr_0000000001", "key-1", "key-1", True)


async def test_a_payment_of_other_software_is_not_ours(account: MollieBalances, balance: Balance) -> None:
    account.move("payment", "10.00", paymentId=account.pay("10.00"))
    account.move("payment", "10.00", paymentId="tr_gone")
    assert [one.is_ours for one in await all_lines(account, balance)] == [False, False]


async def test_a_payment_in_another_currency_has_both_sums(account: MollieBalances, balance: Balance) -> None:
    account.move("payment", "9.20", "0.40", paymentId=account.pay("10.00", "key-1", currency="USD"))
    (line,) = await all_lines(account, balance)
    assert (line.amount, line.currency, line.of_amount, line.of_currency) == (Decimal("9.2"), "EUR", Decimal(10), "USD")


async def test_refunds_chargebacks_and_fees_are_told_apart(account: MollieBalances, balance: Balance) -> None:
    payment = account.pay("10.00", "key-1")
    refund = account.refund(payment, "4.00", "refund-1")
    account.move("refund", "-4.00", "0.25", paymentId=payment, refundId=refund)
    account.move("returned-refund", "4.00", paymentId=payment, refundId=refund)
    account.move("chargeback", "-10.00", "15.00", paymentId=payment, chargebackId="chb_1")
    account.move("chargeback-reversal", "10.00", paymentId=payment, chargebackId="chb_1")
    account.move("payment-fee", "-0.29", paymentId=payment)
    account.move("fee-prepayment", "-1.00")
    account.move("invoice-compensation", "0.90", invoiceId="inv_1")
    account.move("loan", "500.00")
    told = [(one.kind, one.amount, one.fee, one.source) for one in await all_lines(account, balance)]
    assert told == [
        (LineKind.REFUND, Decimal(-4), Decimal("0.25"), refund),
        (LineKind.REFUND_FAILURE, Decimal(4), Decimal(0), refund),
        (LineKind.CHARGEBACK, Decimal(-10), Decimal(15), f"{payment}.chb_1"),
        (LineKind.CHARGEBACK_REVERSAL, Decimal(10), Decimal(0), f"{payment}.chb_1"),
        (LineKind.FEE, Decimal(0), Decimal("0.29"), payment),
        (LineKind.FEE, Decimal(0), Decimal(1), ""),
        (LineKind.FEE, Decimal(0), Decimal("-0.9"), ""),
        (LineKind.OTHER, Decimal(500), Decimal(0), ""),
    ]
    (told_refund, *_) = await all_lines(account, balance)
    assert (told_refund.key, told_refund.of_key) == ("refund-1", "key-1")


async def test_a_debit_that_fails_goes_back_as_it_came(account: MollieBalances, balance: Balance) -> None:
    # Mollie: regular payment processing is `payment`, `capture` and `failed-payment`, the latter
    # with the payment's name alone.
    payment = account.pay("10.00", "key-1")
    account.move("payment", "10.00", paymentId=payment)
    account.move("failed-payment", "-10.00", "0.35", paymentId=payment)
    (_, back) = await all_lines(account, balance)
    assert (back.kind, back.amount, back.fee) == (LineKind.REFUND, Decimal(-10), Decimal("0.35"))
    assert (back.purchase, back.key, back.of_key, back.is_ours) == (payment, "", "key-1", True)


async def test_what_is_withheld_is_no_fee(account: MollieBalances, balance: Balance) -> None:
    details = {"fees": {"currency": "EUR", "value": "-0.29"}, "reservations": {"currency": "EUR", "value": "-1.00"}}
    account.move("payment", "10.00", "1.29", details=details, paymentId=account.pay("10.00", "key-1"))
    lines = await all_lines(account, balance)
    assert {(one.kind, one.amount, one.fee) for one in lines} == {
        (LineKind.CAPTURE, Decimal(10), Decimal("0.29")),
        (LineKind.OTHER, Decimal(-1), Decimal(0)),
    }
    assert len({one.id for one in lines}) == 2


async def test_all_balances_are_read_part_by_part(account: MollieBalances, balance: Balance) -> None:
    account.balances["bal_more"] = []
    account.move("topup", "1.00")
    account.time += 10 * DAY
    for number in range(5):
        account.move("topup", f"{number + 2}.00")
        account.move("topup", f"{number + 20}.00", balance="bal_more")
    account.part = 2
    assert sorted(one.amount for one in await all_lines(account, balance)) == [*range(2, 7), *range(20, 25)]


async def test_a_settlement_is_of_what_came_since_the_one_before(account: MollieBalances, balance: Balance) -> None:
    account.move("payment", "10.00", "0.29", paymentId=account.pay("10.00", "key-1"))
    account.settle("9.71")
    account.move("payment", "20.00", "0.40", paymentId=account.pay("20.00", "key-2"))
    account.move("payment-fee", "-0.10")
    second = account.settle("19.50")
    account.move("payment", "30.00", paymentId=account.pay("30.00", "key-3"))
    account.part = 2
    made = (await balance.payouts(account.time - DAY, "")).payouts[0]
    assert (made.reference, made.amount, made.state) == (second, Decimal("19.5"), PayoutState.ARRIVED)
    assert made.bank_reference == "1234567.2705.02"
    lines = (await balance.lines_of(second, "")).lines
    assert [one.net for one in lines] == [Decimal("-19.5"), Decimal("-0.1"), Decimal("19.6")]
    (first,) = [one for one in (await balance.lines_of("stl_000001", "")).lines if one.kind is LineKind.CAPTURE]
    assert first.net == Decimal("9.71")


async def test_the_stand_in_answers_declared_fields_only() -> None:
    account = MollieBalances()
    account.move("payment", "10.00", "0.29", details={}, paymentId=account.pay("10.00"))
    account.settle("9.71")
    for told, of in ((account.balances["bal_eur"], EntityBalanceTransaction), (account.settlements, EntitySettlement)):
        declared = {one.alias or name for name, one in of.model_fields.items()}
        assert set().union(*told) <= declared
        for one in told:
            of.model_validate({**one, "_links": {"self": {"href": "x", "type": "y"}}})
