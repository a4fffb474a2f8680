"""What the simulated bank charges its account, and pays out: told alike whoever asks, and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from paydesk.adapters.acquirers.balance import BalanceLine, LineKind
from paydesk.adapters.acquirers.interface import Approved
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, Terms, parse_terms

TERMS = Terms(Decimal("1.4"), Decimal("0.25"), Decimal("0.10"), Decimal(15))
DAY = timedelta(days=1)


class Clock:
    """A clock that stands still until a test moves it."""

    at = datetime(2030, 5, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bank(tmp_path: Path, clock: Clock) -> Iterator[Bank]:
    record = Record(tmp_path / "record.sqlite")
    bank = Bank(record, now=clock)
    bank.balance.agree(TERMS, DAY)
    yield bank
    record.close()


def buy(bank: Bank, key: str, amount: str = "10", currency: str = "USD", *, capture: bool = True) -> str:
    card = CardDetails("4242424242424242", 12, 2040, "Ada Lovelace", "987")
    purchase = Purchase(key, Decimal(amount), currency, card, capture, bank._now() + timedelta(minutes=1))
    answer = bank.purchase(purchase, stored=False)
    assert isinstance(answer, Approved)
    return answer.reference


def lines(bank: Bank) -> list[BalanceLine]:
    return list(bank.balance.lines(bank._now() - 30 * DAY, "").lines)


def test_a_purchase_costs_what_was_agreed(bank: Bank) -> None:
    buy(bank, "a")
    (line,) = lines(bank)
    assert (line.kind, line.amount, line.fee, line.key) == (LineKind.CAPTURE, Decimal(10), Decimal("0.39"), "a")


def test_what_is_only_held_or_let_go_of_moves_nothing(bank: Bank) -> None:
    buy(bank, "held", capture=False)
    buy(bank, "free", capture=False)
    bank.void("void", "free")
    assert lines(bank) == []


def test_a_capture_refund_and_dispute_have_lines_of_their_own(bank: Bank) -> None:
    reference = buy(bank, "a", capture=False)
    bank.capture("c", reference, Decimal(10), "USD")
    bank.refund("r", reference, Decimal(4), "USD")
    dispute = bank.open_dispute("a", "fraudulent")
    bank.close_dispute(dispute, won=True)
    told = [(one.kind, one.amount, one.fee, one.key) for one in lines(bank)]
    assert told == [
        (LineKind.CAPTURE, Decimal(10), Decimal("0.39"), "a"),
        (LineKind.REFUND, Decimal(-4), Decimal("0.10"), "r"),
        (LineKind.CHARGEBACK, Decimal(-6), Decimal(15), ""),
        (LineKind.CHARGEBACK_REVERSAL, Decimal(6), Decimal(0), ""),
    ]


def test_terms_that_change_leave_what_was_charged(bank: Bank) -> None:
    buy(bank, "a")
    before = lines(bank)
    bank.balance.agree(Terms(Decimal(3)), DAY)
    buy(bank, "b")
    assert lines(bank)[:1] == before
    assert lines(bank)[1].fee == Decimal("0.30")


def test_a_day_is_paid_out_when_it_is_over_and_once(bank: Bank, clock: Clock) -> None:
    buy(bank, "a")
    buy(bank, "b", currency="EUR")
    assert bank.balance.payouts(clock.at - DAY, "").payouts == ()
    clock.at += DAY
    buy(bank, "c")
    made = bank.balance.payouts(clock.at - 2 * DAY, "").payouts
    assert [(one.currency, one.amount) for one in made] == [("USD", Decimal("9.61")), ("EUR", Decimal("9.61"))]
    of = bank.balance.lines_of(made[0].reference, "").lines
    assert [(one.key, one.net) for one in of] == [("a", Decimal("9.61")), ("", Decimal("-9.61"))]
    assert bank.balance.payouts(clock.at - 2 * DAY, "").payouts == made


def test_what_would_be_negative_is_carried_into_the_next_payout(bank: Bank, clock: Clock) -> None:
    reference = buy(bank, "a")
    clock.at += DAY
    (first,) = bank.balance.payouts(clock.at - 5 * DAY, "").payouts
    bank.refund("r", reference, Decimal(10), "USD")
    clock.at += DAY
    assert bank.balance.payouts(clock.at - 5 * DAY, "").payouts == (first,)
    buy(bank, "b", "20")
    clock.at += DAY
    second = bank.balance.payouts(clock.at - 5 * DAY, "").payouts[1]
    of = bank.balance.lines_of(second.reference, "").lines
    assert second.amount == Decimal("20") - Decimal("0.53") - Decimal("10.10")
    assert sum(one.net for one in of) == 0


def test_a_long_list_comes_in_pages(bank: Bank, clock: Clock) -> None:
    for number in range(150):
        buy(bank, f"k{number}")
    first = bank.balance.lines(clock.at - DAY, "")
    second = bank.balance.lines(clock.at - DAY, first.next)
    assert (len(first.lines), len(second.lines), second.next) == (100, 50, "")


@pytest.mark.parametrize("text", ["much", "1 2 3 4 5", "-1", "nan"])
def test_terms_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="four numbers"):
        parse_terms(text)
