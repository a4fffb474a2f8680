"""The merchant's staff: ships, gives back, or forgets what was paid, as soon as a pingback tells
of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Any

import asyncpg

from paydesk.database.pool import AWAY
from paydesk_client import Gateway
from paydesk_client.calls import ApiError

PART = Decimal("0.30")
AT_ONCE = 12
_AWAY = (0, 502, 503, 504)
_PAUSE = 0.4
_SAME_CALL = "still being made"
"""What the service says while the first call with the same Idempotency-Key may be under way."""


class Wish(StrEnum):
    """What the staff do with an order: the first are captured by the payment,
    the others must be shipped for that.
    """

    KEEP = "keep"
    GIVE_BACK_A_PART = "give back a part"
    GIVE_BACK_ALL = "give back all, in two parts at once"
    SHIP = "ship"
    SHIP_AND_GIVE_BACK_A_PART = "ship, then give back a part"
    CANCEL = "give back all instead of shipping"
    SHIP_OR_CANCEL = "ship and give back all at once"
    FORGET = "forget until its time is over"


CAPTURED_AT_ONCE = (Wish.KEEP, Wish.GIVE_BACK_A_PART, Wish.GIVE_BACK_ALL)
SHIPPED = (Wish.SHIP, Wish.SHIP_AND_GIVE_BACK_A_PART, Wish.CANCEL, Wish.SHIP_OR_CANCEL, Wish.FORGET)


def halves(price: Decimal) -> list[Decimal]:
    """A price in two parts."""
    half = (price / 2).quantize(Decimal("0.01"))
    return [half, price - half]


def ends(wish: Wish, price: Decimal) -> dict[str, list[Decimal]]:
    """The states in which a payment may end, each with what was given back of it then."""
    match wish:
        case Wish.KEEP | Wish.SHIP:
            return {"captured": []}
        case Wish.GIVE_BACK_A_PART | Wish.SHIP_AND_GIVE_BACK_A_PART:
            return {"partially_refunded": [PART]}
        case Wish.GIVE_BACK_ALL:
            return {"refunded": halves(price)}
        case Wish.SHIP_OR_CANCEL:
            return {"captured": [], "voided": [price], "refunded": [price]}
        case Wish.CANCEL | Wish.FORGET:
            return {"voided": [price]}


@dataclass(frozen=True, slots=True)
class Task:
    """One order's wish, and the shop that it was ordered from."""

    wish: Wish
    price: Decimal
    gateway: Gateway


class Staff:
    """Does what is wished with each order once, however often it must ask;
    `wrong` collects impossible answers.
    """

    def __init__(self, tasks: dict[str, Task], database_url: str) -> None:
        self.tasks = tasks
        self.wrong: list[str] = []
        self._database_url = database_url
        self._orders: dict[str, asyncio.Task[None]] = {}
        self._threads = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="staff")

    @property
    def is_busy(self) -> bool:
        """Whether something is left to do."""
        return not all(task.done() for task in self._orders.values())

    def hear(self, payload: dict[str, Any]) -> None:
        """Begin with an order when its payment is told for the first time."""
        order = payload["payment_order"]["merchant_order_id"]
        if payload["event"] == "payment" and order in self.tasks and order not in self._orders:
            self._orders[order] = asyncio.create_task(self._do(order, payload["payment_order"]["id"]))

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Staff]:
        """At work for the length of a block."""
        try:
            yield self
        finally:
            for task in self._orders.values():
                task.cancel()
            await asyncio.gather(*self._orders.values(), return_exceptions=True)
            self._threads.shutdown(cancel_futures=True)

    def failures(self) -> list[str]:
        """What went wrong with the staff themselves."""
        return [f"{order}: {task.exception()!r}" for order, task in self._orders.items() if task.exception()]

    async def _do(self, order: str, payment_id: int) -> None:
        task = self.tasks[order]
        give_back = partial(self._give_back, order, payment_id)
        match task.wish:
            case Wish.GIVE_BACK_A_PART:
                await give_back(PART)
            case Wish.GIVE_BACK_ALL:
                await asyncio.gather(*(give_back(part, number) for number, part in enumerate(halves(task.price))))
            case Wish.SHIP:
                await self._ship(order, payment_id)
            case Wish.SHIP_AND_GIVE_BACK_A_PART:
                await self._ship(order, payment_id)
                await give_back(PART)
            case Wish.CANCEL:
                await give_back(None)
            case Wish.SHIP_OR_CANCEL:
                await asyncio.gather(self._ship(order, payment_id), give_back(None))
            case Wish.FORGET:
                await self._forget(order)

    async def _ship(self, order: str, payment_id: int) -> None:
        deliveries = self.tasks[order].gateway.deliveries()
        confirm = partial(
            deliveries.confirm, payment_id, "order_shipped", carrier_type="DHL", carrier_tracking_id=f"parcel-{order}"
        )
        refused = await self._insist(confirm)
        if refused and self.tasks[order].wish is not Wish.SHIP_OR_CANCEL:
            self.wrong.append(f"{order} can't be shipped: {refused}")

    async def _give_back(self, order: str, payment_id: int, amount: Decimal | None, number: int = 0) -> None:
        """Give back until it is done; what is not captured yet is asked
        for anew under another key.
        """
        payments, tries = self.tasks[order].gateway.payments(), 0
        while True:
            key = f"{order}-{number}-{tries}"
            refused = await self._insist(partial(payments.refund, payment_id, amount, idempotency_key=key))
            if not refused or self.tasks[order].wish is Wish.SHIP_OR_CANCEL:
                return
            if "being captured" not in refused and "not captured yet" not in refused:
                self.wrong.append(f"{order} can't be refunded: {refused}")
                return
            # While a capture is under way the same key may be sent again.
            tries += "not captured yet" in refused
            await asyncio.sleep(_PAUSE)

    async def _insist(self, call: Callable[[], object]) -> str:
        """Make the same call until it is answered; the words of a refusal, empty if it was done."""
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads, call)
            except ApiError as error:
                if error.status not in _AWAY and _SAME_CALL not in error.message:
                    return str(error)
                await asyncio.sleep(_PAUSE)
            else:
                return ""

    async def _forget(self, order: str) -> None:
        """Let an order's week be over."""
        while True:
            try:
                connection = await asyncpg.connect(self._database_url, timeout=5)
                try:
                    await connection.execute(
                        "update payment set ship_by = now(), shipping_due_at = now()"
                        " where merchant_order_id = $1 and state = 'authorized'",
                        order,
                    )
                    return
                finally:
                    await connection.close(timeout=5)
            except (*AWAY, asyncpg.PostgresError):
                await asyncio.sleep(_PAUSE)
