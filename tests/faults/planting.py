"""Bugs that can be planted into a process under test, to prove that the plays find them."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any

import asyncpg
from tests.breaking import say
from tests.faults.fail_points import come_by

BUGS = "FAULTS_BUGS"
"""Names, in the environment, the statements whose bug is planted, separated by commas."""

PROCESSES = "FAULTS_PROCESSES"
"""How many forks of a process run, in the environment; one if it does not say."""

_open: ContextVar[list[tuple[Any, Any]]] = ContextVar("_open")


def settled(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call to the bank, after which the intents that were left open for it are committed
    at last.
    """

    @wraps(call)
    async def answered(*named: Any, **names: Any) -> Any:
        answer = await call(*named, **names)
        await _commit()
        return answer

    return answered


async def _commit() -> None:
    """Commit what this task left open."""
    waiting = _open.get([])
    while waiting:
        connection, transaction = waiting.pop()
        await transaction.commit()
        await connection.close()


def _drawn(names: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with another secret for keys each time:
    else the bank knows the wish by its key, and saves us.
    """
    return {**names, "pads": os.urandom(128)} if "pads" in names else names


def planted(point: str, run: Callable[..., Any]) -> Callable[..., Any]:
    """The statement with its bug, if one is wanted."""
    return BUG_OF[point](run) if point in os.environ.get(BUGS, "").split(",") else run


def _committed_late(run: Callable[..., Any]) -> Callable[..., Any]:
    """The intent is written under a key that nobody makes again,
    but committed only once the bank has answered.
    """

    async def opened() -> Any:
        connection = await asyncpg.connect(os.environ["PAYDESK_DATABASE_URL"])
        transaction = connection.transaction()
        await transaction.start()
        _open.set([(connection, transaction)])
        return connection

    if inspect.isasyncgenfunction(run):

        @wraps(run)
        async def rows(_database: Any, **names: Any) -> AsyncIterator[Any]:
            begun = [row async for row in run(await opened(), **_drawn(names))]
            if not begun:
                await _commit()
            for row in begun:
                yield row

        return rows

    @wraps(run)
    async def result(_database: Any, **names: Any) -> Any:
        begun = await run(await opened(), **_drawn(names))
        if begun is None:
            await _commit()
        return begun

    return result


def _told_afterwards(run: Callable[..., Any]) -> Callable[..., Any]:
    """The outcome is written without its pingback, which a second statement adds."""

    @wraps(run)
    async def rows(database: Any, **names: Any) -> AsyncIterator[Any]:
        async with database.acquire() as connection, connection.transaction():
            moved = [row async for row in run(connection, **names)]
            untold = await connection.fetch(
                "delete from pingback p using payment_attempt a where a.merchant_id = p.merchant_id"
                " and a.payment_id = p.payment_id and a.id = any($1) returning to_jsonb(p)::text as row",
                names["attempt_ids"],
            )
        await come_by("after payments.record_approvals")
        for one in untold:
            await database.execute(
                "insert into pingback select * from jsonb_populate_record(null::pingback, $1::jsonb)", one["row"]
            )
        for row in moved:
            yield row

    return rows


def _taken_away(run: Callable[..., Any]) -> Callable[..., Any]:
    """A pingback that is claimed is taken off the list at once, instead of being leased
    until it is recorded.
    """

    @wraps(run)
    async def rows(database: Any, **names: Any) -> AsyncIterator[Any]:
        claimed = [row async for row in run(database, **names)]
        await database.execute(
            "update pingback set state = 'acknowledged' where id = any($1)",
            [row["id"] for row in claimed if row["id"] is not None],
        )
        for row in claimed:
            yield row

    return rows


def _passed_by(run: Callable[..., Any]) -> Callable[..., Any]:
    """The place in the bank's list of disputes is left behind, in a transaction of its own,
    before the dispute that stands there is booked.
    """

    @wraps(run)
    async def result(database: Any, **names: Any) -> Any:
        found = await run(database, **names)
        await say(database, "dispute_reading", {}, place="1000000")
        await database.execute("commit; begin")
        return found

    return result


def _overlooked(run: Callable[..., Any]) -> Callable[..., Any]:
    """Whoever looks finds nothing, though it is there."""

    @wraps(run)
    async def result(database: Any, **names: Any) -> None:
        await run(database, **names)

    return result


BUG_OF: Mapping[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "payments.begin_attempt": _committed_late,
    "movements.begin_refund": _committed_late,
    "movements.begin_void": _committed_late,
    "deliveries.record_delivery": _committed_late,
    "charging.begin_renewals": _committed_late,
    "payments.record_approvals": _told_afterwards,
    "pingbacks.claim": _taken_away,
    "chargebacks.find_charged_back": _passed_by,
    "replacing_cards.begin_card_change": _committed_late,
    "balances.payout_of_reference": _overlooked,
}
