"""Refunds and disputes in any order, at a bank written from the documents of real ones:
it lies, delays, repeats.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, example, given, seed, settings
from hypothesis import strategies as st
from tests import set_back
from tests.domain.payments.counter import Teller, Till
from tests.domain.payments.documented import DocumentedBank
from tests.lengths import at_length, long, longer
from tests.proving import check
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus
from paydesk.adapters.acquirers.interface import OutcomeUnknown, Refused
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.chargebacks import booking, reading_acquirers
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.ledger.balances import balances
from paydesk.domain.merchants.merchant import create_merchant, shop_of
from paydesk.domain.payments import movements
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.intents import Movement
from paydesk.domain.payments.movement_outcomes import Answer

__all__ = ["database", "database_url"]

FEE = 15
SEEDS = [1, *(pytest.param(number, marks=long) for number in (2, 3))]
MOST = 20
UNHURRIED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
Step = tuple[Any, ...]

which = st.integers(0, 2)
shares = st.sampled_from(("1", "1", "0.4", "0.25", "1.037"))
ways = st.sampled_from(("won", "partly", "partly", "partly", "again", "lost", "dropped"))
refunds = st.tuples(
    st.just("refund"), which, st.sampled_from((None, "0.3", "0.5", "1")), st.sampled_from(("", "question", "answer"))
)
steps = st.one_of(
    refunds,
    st.tuples(st.just("dispute"), which, shares, st.booleans()),
    st.tuples(st.just("decide"), which, which, ways),
    st.tuples(st.just("garble"), st.integers(0, 50)),
    st.just(("arrive",)),
    st.just(("read",)),
    st.just(("finish",)),
    st.just(("settle",)),
    st.tuples(st.just("wait"), st.sampled_from((1, 7, 180))),
    st.tuples(st.just("at once"), which, st.sampled_from(("0.5", "1"))),
)


@st.composite
def disputed(draw: Callable[[st.SearchStrategy[Any]], Any]) -> list[Step]:
    """A dispute's whole life: read at each stage or not, decided once or twice,
    and told as it stood before.
    """
    number = draw(which)
    life: list[Step] = [("dispute", number, draw(shares), draw(st.booleans()))]
    for _ in range(draw(st.integers(1, 2))):
        life += [("arrive",), ("read",)] if draw(st.booleans()) else []
        life.append(("decide", number, draw(which), draw(ways)))
    life += [("arrive",), ("garble", draw(st.integers(0, 50)))]
    return [*life, *draw(st.sampled_from(([], [("read",)])))]


@st.composite
def plans(draw: Callable[[st.SearchStrategy[Any]], Any]) -> list[Step]:
    """Lives of disputes, one at least, and a refund at a bank in trouble, with other things between
    and after them.
    """
    others = st.lists(st.one_of(steps, refunds), max_size=3)
    plan: list[Step] = [draw(refunds), *draw(disputed())]
    for life in draw(st.lists(disputed(), max_size=2)):
        plan += [*draw(others), *life]
    return [*plan, *draw(others)]


banks = st.sampled_from(("stripe", "stripe", "mollie"))
chances = st.integers(0, 999)


class Counter(Till):
    """A till whose bank keeps its own account."""

    @property
    def documented(self) -> DocumentedBank:
        return cast("DocumentedBank", self.teller)

    async def take(self, step: tuple[Any, ...]) -> None:
        """Do one step, and see that the books are in order."""
        match step:
            case ("refund", int(number), share, str(trouble)):
                self.documented.lose = trouble
                await self._give_back(number, share)
                self.documented.lose = ""
            case ("at once", int(number), str(share)):
                self.documented.dispute(await self._key(number), Decimal(share))
                await asyncio.gather(self._give_back(number, share), self.read(), self._give_back(number, None))
            case ("wait", int(days)):
                await self.wait(days=days)
            case ("read" | "finish" | "settle" as name,):
                workers: dict[str, Callable[[], Awaitable[object]]] = {
                    "read": self.read,
                    "finish": partial(self.finish, minutes=1),
                    "settle": self.settle,
                }
                await workers[name]()
            case _:
                await self._at_the_bank(step)
                return
        await self.in_order()

    async def _at_the_bank(self, step: tuple[Any, ...]) -> None:
        """Something happens at the bank, and nobody at Paydesk does anything."""
        bank = self.documented
        match step:
            case ("dispute", int(number), str(share), bool(inquiry)):
                bank.dispute(await self._key(number), Decimal(share), inquiry=inquiry)
            case ("decide", int(number), int(one), str(how)):
                bank.decide(await self._key(number), one, how)
            case ("garble", int(number)):
                bank.garble(number)
            case ("arrive",):
                bank.arrive()

    async def _key(self, number: int) -> str:
        return await self.key_of(list(self.prices)[number % len(self.prices)])

    async def _give_back(self, number: int, share: str | None) -> None:
        payment_id = list(self.prices)[number % len(self.prices)]
        amount = share and str((self.prices[payment_id] * Decimal(share)).quantize(Decimal("0.01")))
        await self.refund(payment_id, amount)

    async def in_order(self) -> None:
        """`paydesk check` finds nothing, whatever is under way."""
        found = await check(self.database, now=self.now, merchant_id=self.shop.merchant_id)
        wrong = [(one.rule.statement, one.differences) for one in found if one.found]
        assert not [one for one in wrong if one[0] not in ("outcomes_known", "dates_in_range")], wrong

    async def come_to_rest(self) -> None:
        """The bank tells all that it kept back, and once more how things stood before;
        what was begun is finished.
        """
        self.documented.arrive()
        await self.read()
        self.documented.garble(0)
        for _ in range(5):
            await set_back.movements_let_go(self.database)
            if not await self.finish(hours=30):
                break
        await self.read()

    async def agree(self) -> None:
        """At rest bank and books say the same of each payment and dispute,
        and the merchant has what is left.
        """
        await self.in_order()
        assert await self.database.fetchval("select count(*) from dispute_waiting") == 0
        payments, has = await self.payments(), Decimal(0)
        for payment in payments.values():
            account = self.documented.accounts[payment["idempotency_key"]]
            assert payment["refunding"] == 0
            assert (payment["refunded"], payment["charged_back"]) == (account.refunded, account.away)
            assert payment["owed"] == account.amount - account.refunded - account.away
            rows = await self.database.fetch(
                "select acquirer_reference, state, taken, returned, fee from chargeback where payment_id = $1",
                payment["id"],
            )
            booked = {row["acquirer_reference"]: (row["state"], row["taken"] - row["returned"]) for row in rows}
            assert booked == {
                one.reference: (one.status, (one.taken or 0) - (one.returned or 0)) for one in account.disputes.values()
            }
            fees = sum(FEE for one in account.disputes.values() if one.taken)
            assert sum(row["fee"] for row in rows) == fees
            has += payment["owed"] - (payment["fees"] - payment["fees_taken"]) - fees
        (balance,) = await balances(self.database, self.shop)
        assert balance.pending + balance.available + balance.reserve == has


@longer
@settings(
    max_examples=at_length(MOST, 4), deadline=None, derandomize=True, database=None, suppress_health_check=UNHURRIED
)
@example(
    by="stripe",
    plan=[
        ("refund", 0, "0.5", "answer"), ("dispute", 0, "1.037", False), ("read",), ("decide", 0, 0, "won"),
        ("decide", 0, 0, "again"), ("read",), ("garble", 0), ("decide", 0, 0, "partly"), ("finish",),
    ],
    seed=0,
)  # fmt: skip
@example(
    by="mollie",
    plan=[
        ("dispute", 0, "0.4", False), ("dispute", 0, "0.4", False), ("read",), ("refund", 0, None, ""),
        ("decide", 0, 1, "won"),
    ],
    seed=0,
)  # fmt: skip
@example(
    by="stripe",
    plan=[
        ("dispute", 0, "1", False), ("arrive",), ("read",), ("decide", 0, 0, "won"), ("arrive",), ("read",),
        ("garble", 0),
    ],
    seed=0,
)  # fmt: skip
@given(by=banks, plan=plans(), seed=chances)
async def test_bank_and_books_agree_whatever_is_refunded_and_disputed(
    database: Database, vault: Vault, by: str, plan: list[Step], seed: int
) -> None:
    await play(database, vault, by, plan, seed)


async def play(database: Database, vault: Vault, by: str, plan: list[Step], seed: int) -> None:
    """A fresh merchant and bank go through a plan, and agree at its end."""
    await set_back.no_disputes_left(database)
    merchant = await create_merchant(database, vault, name="Mugs", email="m@shop.example", now=utc_now())
    bank = DocumentedBank(by, Random(seed))
    desk = Desk(database, vault, {"simulator": bank})
    counter = Counter(database, desk, shop_of(merchant, live=False), cast("Teller", bank))
    for price in ("10.00", "7.77"):
        await counter.sell(price)
    for step in plan:
        await counter.take(step)
    await counter.come_to_rest()
    await counter.agree()


def drawn(number: int) -> list[tuple[str, list[Step], int]]:
    """The plans that chance makes of the strategies, the same ones for the same number."""
    found: list[tuple[str, list[Step], int]] = []

    @seed(number)
    @settings(max_examples=MOST, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=UNHURRIED)
    @given(banks, plans(), chances)
    def collect(by: str, plan: list[Step], chance: int) -> None:
        found.append((by, plan, chance))

    collect()
    return found


def believe_what_is_stale(planted: pytest.MonkeyPatch) -> None:
    """How things stood before is taken for how they stand, without asking."""
    honest = booking.record_dispute

    async def record(*said: Any, now: datetime, confirmed: bool = False) -> Any:
        return await honest(*said, now=now, confirmed=True)

    planted.setattr(reading_acquirers, "record_dispute", record)


def take_a_lost_answer_for_a_refusal(planted: pytest.MonkeyPatch) -> None:
    """A refund whose answer was lost counts as never made."""
    honest = movements._ask

    async def ask(desk: Desk, movement: Movement) -> Answer | None:
        try:
            return await honest(desk, movement)
        except OutcomeUnknown as error:
            return Refused(str(error))

    planted.setattr(movements, "_ask", ask)


def forget_what_came_back_of_a_lost_dispute(planted: pytest.MonkeyPatch) -> None:
    """A dispute that is lost is taken for lost in full."""
    honest = booking.record_dispute

    async def record(database: Any, acquirer: str, told: Dispute, **about: Any) -> Any:
        if told.status is DisputeStatus.LOST:
            told = replace(told, returned=Decimal(0))
        return await honest(database, acquirer, told, **about)

    planted.setattr(reading_acquirers, "record_dispute", record)


@pytest.mark.parametrize("number", SEEDS)
@pytest.mark.parametrize(
    "plant",
    [believe_what_is_stale, take_a_lost_answer_for_a_refusal, forget_what_came_back_of_a_lost_dispute],
    ids=lambda plant: plant.__name__,
)
async def test_chance_alone_finds_a_planted_bug(
    database: Database, vault: Vault, plant: Callable[[pytest.MonkeyPatch], None], number: int
) -> None:
    async def play_all() -> None:
        for by, plan, chance in drawn(number):
            await play(database, vault, by, plan, chance)

    with pytest.MonkeyPatch.context() as planted:
        plant(planted)
        with pytest.raises(AssertionError):
            await play_all()


async def test_what_a_bank_never_told_is_found_by_asking(database: Database, vault: Vault) -> None:
    await set_back.no_disputes_left(database)
    merchant = await create_merchant(database, vault, name="Mugs", email="m@shop.example", now=utc_now())
    bank = DocumentedBank("stripe", Random(3))
    desk = Desk(database, vault, {"simulator": bank})
    counter = Counter(database, desk, shop_of(merchant, live=False), cast("Teller", bank))
    key = await counter.key_of(await counter.sell("10.00"))
    bank.dispute(key, Decimal(1))
    bank.arrive()
    await counter.read()
    bank.decide(key, 0, "partly")
    (dispute,) = bank.accounts[key].disputes.values()
    assert dispute.status is DisputeStatus.LOST
    bank.told, bank.late = bank.told[:1], []
    await counter.read()
    with pytest.raises(AssertionError):
        await counter.agree()
    await database.execute("update chargeback set asked_at = asked_at - interval '2 days'")
    await read_disputes(desk, now=utc_now())
    await counter.agree()
