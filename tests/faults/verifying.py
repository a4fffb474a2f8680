"""Compares what four witnesses say: the bank's own record, the ledger, the merchant's pingbacks, and the customers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.faults.stage import Stage

from paydesk.adapters.acquirers.simulator import Record
from paydesk.adapters.acquirers.simulator.standing import standings
from paydesk.database.pool import Database, connected


@dataclass(frozen=True, slots=True)
class Testimony:
    """Everything is by order reference; amounts in the main unit, one currency.

    `never_seen_as_paid` says what those customers did last; `taken` lists the nets of all purchases of an order at the
    bank; `strays` are purchases under keys that our database has never heard of; `told` lists payment id and amount of
    each pingback that the merchant acknowledged.
    """

    prices: dict[str, Decimal]
    never_seen_as_paid: dict[str, str]
    taken: dict[str, list[Decimal]]
    held: list[str]
    strays: list[Decimal]
    posted: dict[str, Decimal]
    states: dict[str, str]
    payment_ids: dict[str, int]
    told: dict[str, set[tuple[int, Decimal]]]
    open_attempts: int
    pingback_states: Counter[str]


async def hear(stage: Stage) -> Testimony:
    """Ask all witnesses."""
    async with connected(stage.settings.database_url, most=2) as database:
        return await _hear(stage, database)


async def _hear(stage: Stage, database: Database) -> Testimony:
    orders = {
        row["idempotency_key"]: row["merchant_order_id"]
        for row in await database.fetch(
            "select a.idempotency_key, p.merchant_order_id from payment_attempt a"
            " join payment p on p.merchant_id = a.merchant_id and p.id = a.payment_id"
        )
    }
    bank = standings(Record(stage.record).operations())
    taken: dict[str, list[Decimal]] = {}
    for key, purchase in bank.items():
        if purchase.net and key in orders:
            taken.setdefault(orders[key], []).append(purchase.net)
    payments = await database.fetch("select id, merchant_order_id, state from payment")
    told: dict[str, set[tuple[int, Decimal]]] = {}
    for payload in stage.receiver.accepted:
        order = payload["payment_order"]
        told.setdefault(order["merchant_order_id"], set()).add((order["id"], Decimal(str(order["paid_amount"]))))
    return Testimony(
        prices={customer.order: Decimal(customer.amount) for customer in stage.crowd.customers},
        never_seen_as_paid={customer.order: ", ".join(customer.trail) for customer in stage.crowd.unpaid},
        taken=taken,
        held=[key for key, purchase in bank.items() if purchase.held],
        strays=[purchase.net for key, purchase in bank.items() if purchase.net and key not in orders],
        posted=await _by_order(
            database,
            "select p.merchant_order_id, sum(e.amount) as value from ledger_entry e join payment p"
            " on p.merchant_id = e.merchant_id and p.id = e.payment_id where e.account = 'acquirer' group by 1",
        ),
        states={row["merchant_order_id"]: row["state"] for row in payments},
        payment_ids={row["merchant_order_id"]: row["id"] for row in payments},
        told=told,
        open_attempts=await database.fetchval("select count(*) from payment_attempt where lookup_at is not null"),
        pingback_states=Counter(row["state"] for row in await database.fetch("select state from pingback")),
    )


async def _by_order(database: Database, statement: str) -> dict[str, Any]:
    return {row["merchant_order_id"]: row["value"] for row in await database.fetch(statement)}


def contradictions(said: Testimony) -> list[str]:
    """What is lost, doubled or told differently; empty if all witnesses agree that every order was paid once."""
    return [*_of_money(said), *_of_orders(said), *_of_ends(said)]


def _of_money(said: Testimony) -> Iterator[str]:
    for amount in said.strays:
        yield f"lost: the bank took {amount} under a key that we don't know"
    for key in said.held:
        yield f"lost: the bank holds money under {key}"
    for order, nets in said.taken.items():
        if len(nets) > 1:
            yield f"doubled: the bank took {nets} for {order}"


def _of_orders(said: Testimony) -> Iterator[str]:
    for order, price in said.prices.items():
        taken = sum(said.taken.get(order, []), Decimal(0))
        if taken != price:
            yield f"{order} costs {price}, the bank took {taken}"
        if said.posted.get(order) != price:
            yield f"{order} costs {price}, the ledger has {said.posted.get(order)}"
        if said.states.get(order) != "captured":
            yield f"{order} is {said.states.get(order)}"
        expected = {(said.payment_ids.get(order), price)}
        if said.told.get(order) != expected:
            yield f"the merchant was told {said.told.get(order)} of {order}, not {expected}"
        if order in said.never_seen_as_paid:
            yield f"the customer never saw that {order} is paid: {said.never_seen_as_paid[order]}"
    for order in said.told.keys() - said.prices.keys():
        yield f"the merchant was told of {order}, which nobody ordered"


def _of_ends(said: Testimony) -> Iterator[str]:
    if said.open_attempts:
        yield f"{said.open_attempts} attempts are still looked up"
    if set(said.pingback_states) - {"acknowledged"}:
        yield f"pingbacks are left over: {dict(said.pingback_states)}"
