"""The lying acquirer of the tests loses what it is told to lose, and nothing else."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer

from paydesk.adapters.acquirers.interface import Approved, Moved, NothingHeld, OutcomeUnknown
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def purchase(key: str) -> Purchase:
    card = CardDetails("4242424242424242", 12, 2030, "Ada Lovelace", "123")
    return Purchase(key, Decimal(10), "USD", card, True, NOON + timedelta(hours=1))


@pytest.fixture
def honest(record: Record) -> SimulatedAcquirer:
    return SimulatedAcquirer(Bank(record, now=lambda: NOON), base_url="http://bank.test")


async def lost(liar: LyingAcquirer, count: int) -> list[bool]:
    results = []
    for number in range(count):
        try:
            await liar.authorize(purchase(str(number)))
        except OutcomeUnknown:
            results.append(True)
        else:
            results.append(False)
    return results


async def test_a_lost_answer_is_one_to_a_charge_that_was_made(honest: SimulatedAcquirer, record: Record) -> None:
    liar = LyingAcquirer(honest, Lies(lose_answers=1))
    assert await lost(liar, 3) == [True] * 3
    assert len(list(record.operations())) == 3
    assert isinstance(await liar.find("0"), Approved)


async def test_a_lost_question_never_reaches_the_bank(honest: SimulatedAcquirer, record: Record) -> None:
    assert await lost(LyingAcquirer(honest, Lies(lose_questions=1)), 3) == [True] * 3
    assert list(record.operations()) == []


async def test_the_same_seed_loses_the_same_answers(honest: SimulatedAcquirer) -> None:
    first = await lost(LyingAcquirer(honest, Lies(lose_answers=0.5, seed=7)), 20)
    assert first == await lost(LyingAcquirer(honest, Lies(lose_answers=0.5, seed=7)), 20)
    assert set(first) == {True, False}


async def test_a_purchase_is_hidden_for_its_time(honest: SimulatedAcquirer) -> None:
    time = [100.0]
    liar = LyingAcquirer(honest, Lies(hide_for=5), clock=lambda: time[0])
    outcome = await liar.authorize(purchase("one"))
    assert await liar.find("one") == NothingHeld()
    time[0] += 5
    assert await liar.find("one") == outcome


async def test_a_refund_is_hidden_for_its_time(honest: SimulatedAcquirer) -> None:
    time = [100.0]
    liar = LyingAcquirer(honest, Lies(hide_for=5), clock=lambda: time[0])
    outcome = await liar.authorize(purchase("one"))
    assert isinstance(outcome, Approved)
    refund = await liar.refund("refund", outcome.reference, Decimal(1), "USD")
    assert await liar.find_movement("refund", "one", outcome.reference) == NothingHeld()
    time[0] += 5
    assert await liar.find_movement("refund", "one", outcome.reference) == Moved(refund)
