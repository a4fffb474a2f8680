"""Compares bank, books and shop on what came after payments: disputes, checks of new cards,
and payouts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import Any

from tests.faults.afterwards import SENT
from tests.faults.stage import Stage

from paydesk.adapters.acquirers.simulator import Record
from paydesk.adapters.acquirers.simulator.record import Kind, Operation
from paydesk.database.pool import Database, connected

DISPUTED = """
select p.id as payment_id, p.merchant_order_id as order_name, p.state as payment_state, s.state as subscription_state,
       c.acquirer_reference as reference, c.state, c.taken, c.returned,
       (select sum(e.amount)
          from ledger_entry e
         where e.merchant_id = p.merchant_id and e.payment_id = p.id and e.account = 'acquirer') as posted, p.amount
  from payment p
  left join chargeback c on c.merchant_id = p.merchant_id and c.payment_id = p.id
  left join subscription s on s.merchant_id = p.merchant_id and s.id = p.subscription_id
"""
CHANGED = """
select s.init_merchant_order_id as order_name, c.idempotency_key as key, c.state, s.card_id = c.card_id as charged,
       s.network_reference, new.last4, new.number_sealed is not null as kept,
       new.stored_reference
  from card_change c
  join subscription s on s.merchant_id = c.merchant_id and s.id = c.subscription_id
  join card new on new.merchant_id = c.merchant_id and new.id = c.card_id
"""
ENDS = {Kind.DISPUTE: "open", Kind.DISPUTE_WON: "won", Kind.DISPUTE_LOST: "lost"}


async def differences(stage: Stage, changing: Collection[str], paid_out: Collection[str]) -> list[str]:
    """What bank, books and shop say differently; orders whose member took another card,
    or that were paid out.
    """
    record = Record(stage.record)
    done = list(record.operations())
    record.close()
    async with connected(stage.settings.database_url, most=2) as database:
        return [
            *_of_disputes(done, await _keys(database), await database.fetch(DISPUTED), stage.receiver.accepted),
            *_of_cards(done, await database.fetch(CHANGED), changing),
            *_of_payouts(await _payouts(database), paid_out),
            *[f"left over: {dict(row)}" for row in await _left(database)],
        ]


async def _keys(database: Database) -> dict[str, str]:
    """The orders by the keys of their purchases."""
    rows = await database.fetch(
        "select a.idempotency_key as key, p.merchant_order_id as order_name from payment p"
        " join payment_attempt a on a.merchant_id = p.merchant_id and a.id = p.attempt_id"
    )
    return {row["key"]: row["order_name"] for row in rows}


async def _payouts(database: Database) -> list[Any]:
    rows: list[Any] = await database.fetch(
        "select o.reference, o.amount, (select -sum(e.amount) from ledger_entry e"
        " where e.merchant_id = o.merchant_id and e.payout_id = o.id and e.account = 'bank') as posted from payout o"
    )
    return rows


async def _left(database: Database) -> list[Any]:
    """What should have ended by now, and what is told twice (a pingback may be sent twice,
    if its answer is lost).
    """
    rows: list[Any] = await database.fetch(
        "select 'pingback' as what, event as which, state from pingback where state <> 'acknowledged'"
        " union all select 'dispute', acquirer_reference, reason from dispute_waiting"
        " union all select 'card change', id::text, state from card_change where lookup_at is not null"
        " union all select 'doubled pingback', min(id)::text, event from pingback"
        " group by payment_id, subscription_id, event having count(*) > 1"
    )
    return rows


def _of_disputes(
    done: list[Operation], keys: dict[str, str], rows: list[Any], accepted: list[dict[str, Any]]
) -> Iterator[str]:
    """Each dispute stands in the books as at the bank, once, and the shop has heard of each step
    and of no other.
    """
    last = {line.reference: line for line in done if line.kind in ENDS}
    heard = set(map(_heard, accepted))
    known = Counter(row["reference"] for row in rows if row["reference"])
    for reference, line in last.items():
        order, state = keys[line.of_key or ""], ENDS[line.kind]
        if known[reference] != 1:
            yield f"the bank took {line.amount} back for {order}, and {known[reference]} chargebacks are in the books"
            continue
        row = next(row for row in rows if row["reference"] == reference)
        returned = line.amount if state == "won" else Decimal(0)
        if (row["state"], row["taken"], row["returned"]) != (state, line.amount, returned):
            yield f"{order} is {state} at the bank, in the books {dict(row)}"
        if row["posted"] != row["amount"] - line.amount + returned:
            yield f"{order}: the bank took back {line.amount} and returned {returned}, the ledger has {row['posted']}"
        if (row["payment_state"] == "charged_back") != (state != "won"):
            yield f"{order} is {row['payment_state']}, and its dispute {state}"
        if row["subscription_state"] not in (None, "Cancelled"):
            yield f"{order} is disputed, and its subscription {row['subscription_state']}"
        expected = {
            "chargeback": True,
            "chargeback_reversed": state == "won",
            "subscription_cancelled": row["subscription_state"] is not None,
        }
        for event, is_due in expected.items():
            if ((event, row["payment_id"]) in heard) != is_due:
                yield f"the shop heard of {event} of {order}: {not is_due}"
    for reference in known.keys() - last.keys():
        yield f"the books have a dispute {reference} that the bank does not know"


def _heard(payload: dict[str, Any]) -> tuple[str, int]:
    """The event of a pingback, and the payment that it is about."""
    if "payment_order" in payload:
        return payload["event"], payload["payment_order"]["id"]
    return payload["event"], payload["subscription"]["recurring_id"]


def _of_cards(done: list[Operation], rows: list[Any], changing: Collection[str]) -> Iterator[str]:
    """The card that is charged is the one that the bank has approved last,
    and nobody else's number is kept.
    """
    checks = (Kind.AUTHORIZE, Kind.CHALLENGE, Kind.PAGE)
    checked = {line.of_key: line for line in done if line.kind in checks and not line.amount}
    approved = {line.of_key: line.reference for line in done if line.kind is Kind.APPROVE or line.result == "approved"}
    by_key = {row["key"]: row for row in rows}
    for key, line in checked.items():
        if key not in by_key:
            yield f"lost: the bank checked a card ending in {line.last4} under a key that we don't know"
    for key, row in by_key.items():
        # What goes on after others gave it up is checked for nothing: no money is concerned, and
        # the member asks again.
        if row["state"] != "failed" and (row["state"] == "approved") != (key in approved):
            yield f"{row['order_name']}: the bank approved the check {key in approved}, the change is {row['state']}"
        if row["kept"] and not row["charged"]:
            yield f"{row['order_name']}: the number ending in {row['last4']} is kept, and never charged"
        if row["charged"] and row["network_reference"] not in (f"network_{approved.get(key)}", row["stored_reference"]):
            yield f"{row['order_name']} is charged under {row['network_reference']}"
    replaced = {row["order_name"] for row in rows if row["charged"] and (row["kept"] or row["stored_reference"])}
    for order in set(changing) - replaced:
        yield f"{order} is still charged to the old card"


def _of_payouts(rows: list[Any], paid_out: Collection[str]) -> Iterator[str]:
    """What was sent once is in the books once, and has left the balance once."""
    times = Counter(row["reference"] for row in rows)
    for order in paid_out:
        if times[order] != 1:
            yield f"{SENT} USD were sent for {order} once, and are in the books {times[order]} times"
    for row in rows:
        if row["posted"] != row["amount"]:
            yield f"{row['amount']} were sent for {row['reference']}, and {row['posted']} left the balance"
