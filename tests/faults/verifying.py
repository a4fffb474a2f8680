"""Compares what four witnesses say: the bank's own record, the ledger, the merchant's pingbacks,
and the customers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.faults.keeping import Task, ends
from tests.faults.stage import Stage
from tests.standings import standings

from paydesk.adapters.acquirers.simulator import Record
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.database.pool import Database, connected


@dataclass(frozen=True, slots=True)
class Testimony:
    """Everything is by order reference; amounts in the main unit, one currency.

    `never_seen_as_paid` says what those customers did last; `taken` lists what the bank took by
    each purchase of an order, and `given_back` what it gave back or let go of, one by one; `strays`
    are purchases and `stray_movements` captures, voids and refunds under keys that our database has
    never heard of; `told` lists payment id and amount of each pingback that the merchant
    acknowledged, and `told_back` the amount of each refund by its reference.
    """

    tasks: dict[str, Task]
    never_seen_as_paid: dict[str, str]
    taken: dict[str, list[Decimal]]
    given_back: dict[str, list[Decimal]]
    held: list[str]
    strays: list[Decimal]
    stray_movements: list[str]
    posted: dict[str, Decimal]
    states: dict[str, str]
    payment_ids: dict[str, int]
    told: dict[str, set[tuple[int, Decimal]]]
    told_back: dict[str, dict[int, Decimal]]
    open_attempts: int
    open_movements: int
    pingback_states: Counter[str]


async def hear(stage: Stage, *records: Path) -> Testimony:
    """Ask all witnesses; also the banks of other accounts, by their records."""
    async with connected(stage.settings.database_url, most=2) as database:
        return await _hear(stage, database, [stage.record, *records])


async def _hear(stage: Stage, database: Database, records: Sequence[Path]) -> Testimony:
    orders = {
        row["idempotency_key"]: row["merchant_order_id"]
        for row in await database.fetch(
            "select a.idempotency_key, p.merchant_order_id from payment_attempt a"
            " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id"
        )
    }
    ours = {row["idempotency_key"] for row in await database.fetch("select idempotency_key from movement")}
    operations = [done for record in records for done in Record(record).operations()]
    operations += await stage.live.operations() if stage.live is not None else []
    bank = standings(operations)
    taken: dict[str, list[Decimal]] = {}
    for key, purchase in bank.items():
        if purchase.captured and key in orders:
            taken.setdefault(orders[key], []).append(purchase.captured)
    given_back: dict[str, list[Decimal]] = {}
    stray_movements = []
    # An approval that turns up late is undone under a key that follows from its purchase's.
    # Of one that let go of what it held an acquirer may not tell the key.
    known = ours | {f"{key}:void" for key in orders} | {None}
    for done in operations:
        if done.kind in (Kind.CAPTURE, Kind.REFUND, Kind.VOID) and done.key not in known:
            stray_movements.append(f"{done.kind} of {done.amount}")
        if done.kind is Kind.REFUND or (done.kind is Kind.VOID and done.key in ours | {None}):
            given_back.setdefault(orders.get(done.of_key or "", "what we forgot"), []).append(done.amount)
    payments = await database.fetch("select id, merchant_order_id, state from payment")
    told, told_back = _told(stage.receiver.accepted)
    return Testimony(
        tasks=dict(stage.staff.tasks),
        never_seen_as_paid={customer.order: ", ".join(customer.trail) for customer in stage.crowd.unpaid},
        taken=taken,
        given_back=given_back,
        held=[key for key, purchase in bank.items() if purchase.held],
        strays=[purchase.net for key, purchase in bank.items() if purchase.net and key not in orders],
        stray_movements=stray_movements,
        posted=await _by_order(
            database,
            "select p.merchant_order_id, sum(e.amount) as value from ledger_entry e join payment p"
            " on p.merchant_id = e.merchant_id and p.id = e.payment_id where e.account = 'acquirer' group by 1",
        ),
        states={row["merchant_order_id"]: row["state"] for row in payments},
        payment_ids={row["merchant_order_id"]: row["id"] for row in payments},
        told=told,
        told_back=told_back,
        open_attempts=await database.fetchval("select count(*) from payment_attempt where lookup_at is not null"),
        open_movements=await database.fetchval("select count(*) from movement where lookup_at is not null"),
        pingback_states=Counter(row["state"] for row in await database.fetch("select state from pingback")),
    )


def _told(
    accepted: list[dict[str, Any]],
) -> tuple[dict[str, set[tuple[int, Decimal]]], dict[str, dict[int, Decimal]]]:
    """What the merchant heard of payments, and of what was given back."""
    told: dict[str, set[tuple[int, Decimal]]] = {}
    told_back: dict[str, dict[int, Decimal]] = {}
    for payload in accepted:
        order = payload["payment_order"]
        name = order["merchant_order_id"]
        if payload["event"] == "payment":
            told.setdefault(name, set()).add((order["id"], Decimal(str(order["paid_amount"]))))
        else:
            told_back.setdefault(name, {})[order["reference_id"]] = Decimal(str(order["refund_amount"]))
    return told, told_back


async def _by_order(database: Database, statement: str) -> dict[str, Any]:
    return {row["merchant_order_id"]: row["value"] for row in await database.fetch(statement)}


def contradictions(said: Testimony) -> list[str]:
    """What is lost, doubled or told differently; empty if all witnesses agree on what became
    of every order.
    """
    return [*_of_money(said), *_of_movements(said), *_of_orders(said), *_of_ends(said)]


def _of_money(said: Testimony) -> Iterator[str]:
    for amount in said.strays:
        yield f"lost: the bank took {amount} under a key that we don't know"
    for key in said.held:
        yield f"lost: the bank holds money under {key}"
    for order, nets in said.taken.items():
        if len(nets) > 1:
            yield f"doubled: the bank took {nets} for {order}"


def _of_movements(said: Testimony) -> Iterator[str]:
    """What the bank gave back is what should be, and the state,
    the ledger and the merchant say the same.
    """
    for stray in said.stray_movements:
        yield f"lost movement: the bank made a {stray} under a key that we don't know"
    for order, task in said.tasks.items():
        state = said.states.get(order, "")
        expected = ends(task.wish, task.price).get(state)
        if expected is None:
            yield f"{order} ({task.wish}) is {state}"
            continue
        given = said.given_back.get(order, [])
        if sorted(given) != sorted(expected):
            yield f"{order} ({task.wish}) is {state}, the bank gave back {given}"
        if sorted(said.told_back.get(order, {}).values()) != sorted(expected):
            yield f"{order} ({task.wish}) is {state}, the merchant was told {said.told_back.get(order)}"
        taken = Decimal(0) if state == "voided" else task.price - sum(expected)
        if said.posted.get(order, Decimal(0)) != taken:
            yield f"{order} ({task.wish}) is {state}, the ledger has {said.posted.get(order)}"


def _of_orders(said: Testimony) -> Iterator[str]:
    for order, task in said.tasks.items():
        price, taken = task.price, sum(said.taken.get(order, []), Decimal(0))
        if taken != (0 if said.states.get(order) == "voided" else price):
            yield f"{order} costs {price}, the bank took {taken}"
        expected = {(said.payment_ids.get(order), price)}
        if said.told.get(order) != expected:
            yield f"the merchant was told {said.told.get(order)} of {order}, not {expected}"
        if order in said.never_seen_as_paid:
            yield f"the customer never saw that {order} is paid: {said.never_seen_as_paid[order]}"
    for order in said.told.keys() - said.tasks.keys():
        yield f"the merchant was told of {order}, which nobody ordered"


def _of_ends(said: Testimony) -> Iterator[str]:
    if said.open_attempts or said.open_movements:
        yield f"{said.open_attempts} attempts and {said.open_movements} movements are still looked up"
    if set(said.pingback_states) - {"acknowledged"}:
        yield f"pingbacks are left over: {dict(said.pingback_states)}"
