"""What every acquirer promises of the balance that it keeps for us, whoever it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.standins import mollie_balance, stripe_balance

from paydesk.adapters.acquirers.balance import Balance, BalanceLine, BankPayout, LineKind, PayoutState
from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.adapters.acquirers.mollie import MollieAcquirer
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer, Terms
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.stripe.objects import metadata_of

FEE = Decimal("0.29")
DAY = timedelta(days=1)


@dataclass
class Counter:
    """A balance, and what moves it: payments of 10 EUR under a key, each for the same fee, and
    payouts of all that is there.
    """

    balance: Balance
    now: Callable[[], datetime]
    sell: Callable[[str], None]
    pay_out: Callable[[], None]

    async def lines(self, since: timedelta = 30 * DAY) -> list[BalanceLine]:
        """All movements, with our keys."""
        found, after, is_over = list[BalanceLine](), "", False
        while not is_over:
            page = await self.balance.lines(self.now() - since, after)
            found += page.lines
            after, is_over = page.next, not page.next
        return list(await self.balance.with_keys(found))

    async def payouts(self) -> list[BankPayout]:
        found, after, is_over = list[BankPayout](), "", False
        while not is_over:
            page = await self.balance.payouts(self.now() - 30 * DAY, after)
            found += page.payouts
            after, is_over = page.next, not page.next
        return found

    async def lines_of(self, payout: str) -> list[BalanceLine]:
        found, after, is_over = list[BalanceLine](), "", False
        while not is_over:
            page = await self.balance.lines_of(payout, after)
            found += page.lines
            after, is_over = page.next, not page.next
        return found


def told_by(acquirer: Acquirer) -> Balance:
    assert acquirer.balance is not None
    return acquirer.balance


@pytest.fixture
async def simulators(tmp_path: Path) -> AsyncIterator[Counter]:
    at = [datetime(2030, 5, 2, 12, tzinfo=UTC)]
    record = Record(tmp_path / "record.sqlite")
    bank = Bank(record, now=lambda: at[0])
    bank.balance.agree(Terms(Decimal(0), FEE), DAY)

    def sell(key: str) -> None:
        card = CardDetails("4242424242424242", 12, 2040, "Ada Lovelace", "987")
        bank.purchase(Purchase(key, Decimal(10), "EUR", card, True, at[0] + timedelta(minutes=1)), stored=False)

    def pay_out() -> None:
        at[0] += DAY
        # It pays out what is there when somebody looks and a day is over.
        bank.balance.payouts(at[0] - DAY, "")

    acquirer = SimulatedAcquirer(bank, base_url="http://pay.test")
    yield Counter(told_by(acquirer), lambda: at[0], sell, pay_out)
    await acquirer.close()


@pytest.fixture
async def stripes() -> AsyncIterator[Counter]:
    async with stripe_balance.running() as account:
        acquirer = StripeAcquirer("sk_test_1", api_base=account.base_url)

        def sell(key: str) -> None:
            account.charge(1000, fee=29, metadata=metadata_of(key, datetime(2030, 1, 1, tzinfo=UTC), None))

        def pay_out() -> None:
            account.pay_out()

        yield Counter(told_by(acquirer), lambda: datetime.fromtimestamp(account.time, UTC), sell, pay_out)
        await acquirer.close()
        assert account.wrong == []


@pytest.fixture
async def mollies() -> AsyncIterator[Counter]:
    async with mollie_balance.running() as account:
        acquirer = MollieAcquirer("live_standin access_standin", api_base=account.base_url)
        sold = list[str]()

        def sell(key: str) -> None:
            sold.append(key)
            account.move("payment", "10.00", "0.29", paymentId=account.pay("10.00", key))

        def pay_out() -> None:
            account.settle(f"{len(sold) * (10 - FEE):.2f}")
            sold.clear()

        yield Counter(told_by(acquirer), lambda: account.time, sell, pay_out)
        await acquirer.close()


@pytest.fixture(params=["simulators", "stripes", "mollies"])
def counter(request: pytest.FixtureRequest) -> Counter:
    found: Counter = request.getfixturevalue(request.param)
    return found


async def test_each_payment_is_told_once_with_its_fee_and_our_key(counter: Counter) -> None:
    for number in range(3):
        counter.sell(f"key-{number}")
    found = await counter.lines()
    assert {(one.kind, one.amount, one.fee, one.currency) for one in found} == {
        (LineKind.CAPTURE, Decimal(10), FEE, "EUR")
    }
    assert sorted(one.key for one in found) == ["key-0", "key-1", "key-2"]
    assert len({one.id for one in found}) == 3


async def test_a_line_is_called_the_same_whenever_it_is_read(counter: Counter) -> None:
    counter.sell("key-0")
    before = await counter.lines()
    counter.sell("key-1")
    assert {one.id for one in before} < {one.id for one in await counter.lines()}


async def test_a_payout_is_of_the_lines_since_the_one_before_to_the_cent(counter: Counter) -> None:
    counter.sell("key-0")
    counter.pay_out()
    counter.sell("key-1")
    counter.sell("key-2")
    counter.pay_out()
    counter.sell("key-3")
    made = sorted(await counter.payouts(), key=lambda one: one.amount)
    assert [(one.amount, one.currency, one.is_traced) for one in made] == [
        (10 - FEE, "EUR", True),
        (2 * (10 - FEE), "EUR", True),
    ]
    assert PayoutState.FAILED not in {one.state for one in made}
    for payout, payments in zip(made, (1, 2), strict=True):
        of = await counter.lines_of(payout.reference)
        captured = [one for one in of if one.kind is LineKind.CAPTURE]
        assert (len(captured), sum(one.net for one in captured)) == (payments, payout.amount)
        assert sum(one.net for one in of if one.kind is LineKind.PAYOUT) in (0, -payout.amount)


async def test_nothing_that_was_not_asked_for_is_told(counter: Counter) -> None:
    assert (await counter.lines(), await counter.payouts()) == ([], [])
