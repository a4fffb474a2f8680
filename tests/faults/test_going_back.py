"""Whatever a database forgets: the bank, our books and the shop say the same in the end,
and nobody pays twice.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.faults.customers import APPROVED, DECLINED, LOST_ANSWER, SECURE, Customer, Later, Plan
from tests.faults.going_back import keep_copy, put_back
from tests.faults.keeping import PART, Wish, halves
from tests.faults.merchant import Receiver
from tests.faults.renewing import Club, club_staged, renewal_contradictions, until_nothing_is_due
from tests.faults.settling import settle
from tests.faults.stage import PAYDESK, Cast, Order, Stage, staged
from tests.faults.test_plays import check
from tests.faults.verifying import contradictions, hear
from tests.lengths import at_length, long, longer
from tests.processes import eventually

from paydesk.database.pool import connected
from paydesk.domain.operations import history
from paydesk.domain.operations.history import Beat
from paydesk.domain.operations.memory_file import memory_file, recall

pytestmark = pytest.mark.faults

MEMBERS = at_length(20, 6)
PAID = Plan((APPROVED,))
LOST = Plan((LOST_ANSWER,))
ASKED = Plan((SECURE,), ("approve",))


@dataclass(slots=True)
class Returning(Customer):
    """A customer who comes back to a link that may be dead by now:
    the shop then sends them with its form again.

    While they `hesitate` they leave the bank's page open, and answer it when they come back.
    """

    hesitates: bool = False
    bank_page: str = ""

    async def opens(self) -> None:
        """Come to the payment page, and look at it."""
        self._link = await self._order()

    async def browse(self, url: str) -> None:
        await Customer.browse(self, self.bank_page or url)

    async def _confirm(self, url: str) -> str:
        if self.hesitates:
            self.bank_page = url
            raise Later
        self.bank_page = ""
        return await Customer._confirm(self, url)

    def _unexpected(self, url: str, status: int) -> Later:
        if status != 404:
            return Customer._unexpected(self, url, status)
        self._link = ""
        return Later()


def expect(stage: Stage, order: Order, *, hesitates: bool = False) -> Returning:
    """The customer of an order, who may come from now on."""
    made = stage.expect(order)
    customer = Returning(made.order, made.amount, made.plan, made.gateway, made.web, hesitates=hesitates)
    stage.crowd.customers[-1] = customer
    return customer


class Ledger:
    """The shop's own table of payments, with a unique index on their ids."""

    def __init__(self) -> None:
        self.orders: dict[int, str] = {}
        self.clashes: list[str] = []

    def take(self, payload: Mapping[str, Any]) -> None:
        """Write a pingback down. Raises: KeyError for an id that is another order's."""
        order = payload["payment_order"]
        if self.orders.setdefault(order["id"], order["merchant_order_id"]) != order["merchant_order_id"]:
            self.clashes.append(f"payment {order['id']} is of {self.orders[order['id']]}, not {payload}")
            raise KeyError(order["id"])


@long
async def test_a_failover_that_forgets_costs_nobody_money(tmp_path: Path) -> None:
    ledger = Ledger()
    async with staged(tmp_path, Cast(command=PAYDESK)) as stage:
        stage.receiver.tell = ledger.take
        async with stage.working():
            leave_open = await _known(stage)
            await _told(stage, ledger, 4)
            await keep_copy(stage.postgres)
            leave_open += await _forgotten(stage, leave_open)
            await _told(stage, ledger, 11)
            await _given_back(stage, ledger)
            refunds = ("partial_refund", "refund")
            await eventually(lambda: _heard(stage, *refunds) == 3, "refunds are told", stage.workers[0].tail)

            for kept in (stage.web, *stage.workers):
                kept.kill_all()
            await put_back(stage.postgres)
            found = json.loads(await _command(stage, "restored", "--since", "1d", "--json"))
            # Whoever was first has adopted what was forgotten: the command, or a worker that saw it
            # by itself.
            assert found["agrees"], found
            await eventually(lambda: len(stage.web.ready) == 1, "the web service is back", stage.web.tail)
            for customer in leave_open:
                customer.hesitates = False
            late = expect(stage, Order("late", PAID))
            # The processes that were started again see within a second that nothing is held
            # any more.
            while not await late.visit():  # noqa: ASYNC110 (people send no event)
                await asyncio.sleep(0.1)
        await settle(stage)
        await _command(stage, "reconcile", "--since", "1d", "--fix")

        contradicted = contradictions(await hear(stage))
        assert not contradicted, "\n".join(contradicted)
        assert (ledger.clashes, stage.staff.wrong, stage.staff.failures()) == ([], [], [])
        assert await check(stage) == ""
        assert [wrong for customer in stage.crowd.customers for wrong in customer.wrong] == []
        assert stage.receiver.forged == 0
        assert await stage.web.stop() == 0


async def _known(stage: Stage) -> list[Returning]:
    """What the database will remember: orders that are paid, and pages that are open,
    whose customers come back.
    """
    wishes = {"kept": Wish.KEEP, "part": Wish.GIVE_BACK_A_PART, "all": Wish.GIVE_BACK_ALL}
    for order, wish in wishes.items():
        assert await expect(stage, Order(order, PAID, wish)).visit()
    assert await expect(stage, Order("shipped", PAID, Wish.SHIP, "mugs")).visit()
    await expect(stage, Order("unanswered", LOST)).visit()
    asked = expect(stage, Order("asked", ASKED), hesitates=True)
    await asked.visit()
    opened = [
        expect(stage, Order(f"opened {n}", plan), hesitates=plan is ASKED) for n, plan in enumerate((PAID, LOST, ASKED))
    ]
    refused = expect(stage, Order("refused", Plan((DECLINED, APPROVED))))
    for customer in (*opened, refused):
        await customer.opens()
    return [asked, *opened, refused]


async def _forgotten(stage: Stage, opened: list[Returning]) -> list[Returning]:
    """What it will forget: who has a page open pays or is asked by the bank,
    and new orders are paid.
    """
    asked, *opened = opened
    asked.hesitates = False
    assert await asked.visit()
    fresh = [
        expect(stage, Order(f"fresh {n}", plan), hesitates=plan is ASKED) for n, plan in enumerate((PAID, LOST, ASKED))
    ]
    fresh.append(expect(stage, Order("given", PAID, Wish.GIVE_BACK_ALL)))
    for customer in (*opened, *fresh):
        await customer.visit()
    return fresh


async def _given_back(stage: Stage, ledger: Ledger) -> None:
    """What it will forget, too: parts that are given back, and a shipment."""
    payments = {order: number for number, order in ledger.orders.items()}
    await _give_back(stage, "part", payments["part"], PART)
    for name in ("all", "given"):
        await _give_back(stage, name, payments[name], halves(stage.staff.tasks[name].price)[0])
    await _ship(stage, payments["shipped"])


def _heard(stage: Stage, *events: str) -> int:
    """How many pingbacks of these events the shop has acknowledged."""
    return sum(payload["event"] in events for payload in stage.receiver.accepted)


async def _told(stage: Stage, ledger: Ledger, most: int) -> None:
    """Wait until the shop has heard of so many payments."""
    await eventually(lambda: len(ledger.orders) >= most, f"{most} payments are told", stage.workers[0].tail)


async def _give_back(stage: Stage, order: str, payment_id: int, amount: Decimal) -> None:
    """Ask once, under the key under which the staff will ask again."""
    payments = stage.staff.tasks[order].gateway.payments()
    await asyncio.to_thread(partial(payments.refund, payment_id, amount, idempotency_key=f"{order}-0-0"))


async def _ship(stage: Stage, payment_id: int) -> None:
    deliveries = stage.staff.tasks["shipped"].gateway.deliveries()
    parcel = "parcel-shipped"
    confirm = partial(deliveries.confirm, payment_id, "order_shipped", carrier_type="DHL", carrier_tracking_id=parcel)
    await asyncio.to_thread(confirm)


async def _command(stage: Stage | Club, *words: str, status: int = 0) -> str:
    """What a command says, which ends well."""
    running = await asyncio.create_subprocess_exec(
        *PAYDESK, *words, env=stage.env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, wrong = await running.communicate()
    assert running.returncode == status, said.decode() + wrong.decode()
    return said.decode()


@longer
@pytest.mark.parametrize(
    "alone", [pytest.param(False, id="after the command", marks=long), pytest.param(True, id="a worker alone")]
)
async def test_renewals_that_were_forgotten_are_not_charged_again(tmp_path: Path, *, alone: bool) -> None:
    ledger = Ledger()
    receiver = Receiver(random.Random(1), slow_for=0, moody=False)
    receiver.tell = ledger.take
    async with club_staged(tmp_path, MEMBERS, Cast(command=PAYDESK)) as club, receiver.listening() as address:
        receiver.gateways["club"] = club.gateway
        await _listen(club, f"{address}/club")
        copied = await _beat(club)
        await keep_copy(club.postgres)
        async with club.worker.running():
            await until_nothing_is_due(club)
            await eventually(lambda: _renewals(receiver) == MEMBERS, "renewals are told", club.worker.tail)
            # What is lost between two beats, on the same server, nobody can notice.
            await eventually(lambda: _remembered(club) > copied, "a beat is remembered", club.worker.tail)
            assert await club.worker.stop() == 0
        told = dict(ledger.orders)
        await put_back(club.postgres)
        if not alone:
            await _command(club, "restored", "--since", "1d")
        worker = club.another_worker()
        async with worker.running():
            await until_nothing_is_due(club)
            await eventually(lambda: _renewals(receiver) == 2 * MEMBERS, "renewals are told again", worker.tail)
            assert await worker.stop() == 0
        assert (await _beat(club)).epoch > copied.epoch
        assert await renewal_contradictions(club, MEMBERS) == []
        assert (ledger.orders, ledger.clashes) == (told, [])
        await _command(club, "reconcile", "--since", "1d")
        await _command(club, "check", "--simulator-record", str(club.record))


async def _beat(club: Club) -> Beat:
    """How far the database's history has come."""
    async with connected(club.settings.database_url, most=2) as database:
        return (await history.read(database)).beat


def _remembered(club: Club) -> Beat:
    """How far it had come when the worker last wrote that down."""
    memory = recall(memory_file(club.settings.data_dir))
    return memory.beat if memory else Beat(0, 0)


def _renewals(receiver: Receiver) -> int:
    """How often the shop was told of a renewal."""
    return sum(":" in payload["payment_order"]["merchant_order_id"] for payload in receiver.accepted)


async def _listen(club: Club, address: str) -> None:
    """The shop hears of what is charged from now on."""
    async with connected(club.settings.database_url, most=2) as database:
        await database.execute("update merchant set pingback_url = $1", address)
