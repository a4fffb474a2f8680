"""Hundreds of races over the money of one payment each:
here, in the ledger and at the bank the same one wins.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from tests import set_back
from tests.domain.payments.counter import Teller, Till
from tests.lengths import at_length, long, longer

from paydesk.adapters.acquirers.simulator import Bank, Record
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.database.pool import Database
from paydesk.domain.deliveries.confirming import Confirmed, Result
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import Refund, RefundStatus

pytestmark = longer


@pytest.fixture
async def counter(desk: Desk, shop: Shop, database: Database, tmp_path: Path) -> AsyncIterator[Till]:
    """A till that must be in order when the test is over."""
    await set_back.banks_tell_again(database)
    record = Record(tmp_path / "races.sqlite")
    teller = Teller(Bank(record), Random(7))
    till = Till(database, Desk(database, desk.vault, {"simulator": teller}), shop, teller)
    yield till
    await till.come_to_rest()
    await till.agree()
    record.close()


async def sold(counter: Till, races: int, *, shipped: bool = False) -> list[int]:
    return [await counter.sell(shipped=shipped) for _ in range(races)]


async def race(*deeds: Awaitable[object], seed: int = 0) -> list[object]:
    """All at once, in an order left to chance."""
    order = list(range(len(deeds)))
    Random(len(deeds) + seed).shuffle(order)
    answers = dict(zip(order, await asyncio.gather(*(deeds[place] for place in order)), strict=True))
    return [answers[place] for place in range(len(deeds))]


@long
async def test_of_shipment_void_and_deadline_exactly_one_wins(counter: Till) -> None:
    won = Counter[str]()
    # A machine that is busy may let one of them win a whole round: as many as it takes.
    for number in range(30):
        won += await _race_for_shipments(counter, number)
        if number >= at_length(9, 4) and min(won["shipment"], won["void"], won["deadline"]) > 0:
            return
    raise AssertionError(won)


async def _race_for_shipments(counter: Till, number: int) -> Counter[str]:
    """Who won how often, one of three for each of some orders."""
    paid = await sold(counter, 15, shipped=True)
    answers = await race(
        *(counter.ship(payment_id) for payment_id in paid),
        *(counter.refund(payment_id) for payment_id in paid),
        *(counter.deadlines(days=8) for _ in range(5)),
        seed=number,
    )
    done, won = await counter.done_at_the_bank(), Counter[str]()
    for payment_id, shipped, given in zip(paid, answers[: len(paid)], answers[len(paid) :], strict=False):
        if isinstance(shipped, Confirmed):
            assert shipped.result is Result.CAPTURED
            # A refund may come after the capture, and then it is one.
            after = [Kind.REFUND] if isinstance(given, Refund) else []
            assert done[payment_id] == [Kind.AUTHORIZE, Kind.CAPTURE, *after]
            won["shipment"] += 1
        else:
            assert done[payment_id] == [Kind.AUTHORIZE, Kind.VOID]
            won["void" if isinstance(given, Refund) else "deadline"] += 1
    return won


async def test_of_twenty_refunds_only_what_was_taken_is_given_back(counter: Till) -> None:
    chance = Random(3)
    paid = await sold(counter, at_length(15, 6))
    wishes = [
        (payment_id, chance.choice((None, f"{chance.randint(1, 500) / 100:.2f}", "1.50")))
        for payment_id in paid
        for _ in range(20)
    ]
    answers = await race(*(counter.refund(payment_id, amount) for payment_id, amount in wishes))
    given = dict.fromkeys(paid, Decimal(0))
    for (payment_id, _), answer in zip(wishes, answers, strict=True):
        if isinstance(answer, Refund):
            assert answer.status is not RefundStatus.PROCESSING
            given[payment_id] += answer.amount
    assert {payment_id: one.refunded for payment_id, one in (await counter.at_the_bank()).items()} == given
    assert all(0 < total <= 10 for total in given.values())


@long
async def test_refunds_disputes_and_their_ends_agree(counter: Till) -> None:
    paid = await sold(counter, at_length(80, 40))
    for _ in range(2):
        await race(
            *(counter.refund(payment_id, "4.00") for payment_id in paid),
            *(counter.dispute(payment_id) for payment_id in paid),
            *(counter.refund(payment_id, "0.01") for payment_id in paid),
            *(counter.decide(payment_id, won=bool(payment_id % 2)) for payment_id in paid),
            *(counter.read() for _ in range(20)),
        )
    await counter.come_to_rest()
    rows = (await counter.payments()).values()
    assert {row["state"] for row in rows if row["id"] % 2 == 0} == {"charged_back"}
    # Which of the two refunds came before its dispute is chance: the race had more than one end.
    assert len({row["refunded"] for row in rows}) > 1


async def test_money_that_becomes_available_while_it_is_given_back_is_counted_once(counter: Till) -> None:
    paid = await sold(counter, at_length(100, 40))
    for days in (7, 180):
        await counter.wait(days=days)
        await race(
            *(counter.settle() for _ in range(8)),
            *(counter.refund(payment_id, "2.50") for payment_id in paid),
            *(counter.dispute(payment_id) for payment_id in paid[::3]),
            *(counter.read() for _ in range(8)),
        )
        while await counter.settle():
            pass
    rows = (await counter.payments()).values()
    assert all(row["settled_at"] and (row["reserve_released_at"] or row["reserve_taken"]) for row in rows)


@long
async def test_the_same_confirmation_at_once_is_one_capture(counter: Till) -> None:
    paid = await sold(counter, at_length(80, 30), shipped=True)
    answers = await race(*(counter.ship(payment_id) for payment_id in paid for _ in range(3)))
    assert {answer.result for answer in answers if isinstance(answer, Confirmed)} == {Result.CAPTURED}
    assert len({answer.delivery_id for answer in answers if isinstance(answer, Confirmed)}) == len(paid)
    assert set(map(tuple, (await counter.done_at_the_bank()).values())) == {(Kind.AUTHORIZE, Kind.CAPTURE)}


async def test_the_same_key_at_once_is_one_refund(counter: Till) -> None:
    paid = await sold(counter, at_length(80, 30))
    asked = [payment_id for payment_id in paid for _ in range(4)]
    answers = await race(*(counter.refund(payment_id, "2.00", key=f"key-{payment_id}") for payment_id in asked))
    ids = {(answer.payment_id, answer.reference_id) for answer in answers if isinstance(answer, Refund)}
    assert len(answers) == sum(isinstance(answer, Refund) for answer in answers)
    assert len(ids) == len(paid)
    assert {one.refunded for one in (await counter.at_the_bank()).values()} == {Decimal(2)}


@pytest.mark.parametrize("lose", ["", "question", "answer"])
async def test_janitors_and_the_call_itself_record_it_once(counter: Till, lose: str) -> None:
    each = at_length(40, 16)
    captured, held = await sold(counter, each), await sold(counter, each, shipped=True)
    counter.teller.lose = lose
    await race(
        *(counter.refund(payment_id, "3.00") for payment_id in captured for _ in range(2)),
        *(counter.ship(payment_id) for payment_id in held[::2]),
        *(counter.refund(payment_id) for payment_id in held[1::2]),
        *(counter.finish(minutes=1) for _ in range(12)),
    )
    counter.teller.lose = ""
    await race(*(counter.finish(minutes=3) for _ in range(4)))
    await counter.come_to_rest()
    assert {one.refunded for one in (await counter.at_the_bank()).values()} == {Decimal(0), Decimal(6)}
