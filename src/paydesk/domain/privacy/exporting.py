"""Handing out all that is stored of a customer, as they may ask for.
Moves no money, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, Actor, record
from paydesk.domain.privacy.belongings import Found, Subject, find_person, orders_of

queries = load_statements(__package__ or "", "exporting.sql")

BY_ID = (
    "customers", "cards", "checkouts", "payments", "attempts", "subscriptions", "changes", "movements", "chargebacks",
    "deliveries", "pingbacks", "shoppers", "instruments",
)  # fmt: skip
"""Kinds of rows that are known by their ids."""

Export = Mapping[str, Sequence[Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A row of any table, as JSON."""

    row: Mapping[str, object]


async def export(database: Database, subject: Subject, *, actor: Actor = COMMAND_LINE, now: datetime) -> Export:
    """All rows about somebody, by kind; the audit log keeps that they were handed out.
    `now` is real time, UTC.

    Raises: NotFound.
    """
    rows: dict[str, list[Mapping[str, object]]] = {}
    async with database.acquire() as connection, connection.transaction():
        sides = await find_person(connection, subject)
        for found in sides:
            for kind, more in (await _of_side(connection, found)).items():
                rows.setdefault(kind, []).extend(more)
        emails, patterns, wholes = (_of_both(sides, way) for way in ("emails", "patterns", "wholes"))
        mails = queries.export_mails(
            connection, merchant_id=subject.merchant_id, emails=emails, patterns=patterns, wholes=wholes
        )
        rows["mails"] = [one.row for one in await records_of(_Stored, mails)]
        if not any(rows.values()):
            raise NotFound(f"merchant {subject.merchant_id} has nothing of this customer")
        for customer in [one for found in sides for one in found.customers]:
            named = f"customer {customer}"
            await record(
                connection, actor, Action.customer_exported, now=now, merchant_id=subject.merchant_id, subject=named
            )
    return rows


def _of_both(sides: Sequence[Found], way: str) -> list[str]:
    """How mails about somebody are found, who may have another name on each side: a mail is of
    no side.
    """
    return sorted({text for found in sides for text in getattr(found, way)})


async def _of_side(connection: Connection, found: Found) -> dict[str, list[Mapping[str, object]]]:
    side, texts = found.side, found.texts
    orders = await orders_of(connection, found)
    stored = {
        kind: await records_of(
            _Stored, getattr(queries, f"export_{kind}")(connection, **side, ids=getattr(found, kind))
        )
        for kind in BY_ID
    }
    shop = found.shop
    files = queries.export_evidence_files(
        connection, merchant_id=shop.merchant_id, live=shop.live, ids=found.chargebacks
    )
    stored["evidence_files"] = await records_of(_Stored, files)
    attempts = queries.export_pingback_attempts(connection, **side, ids=found.pingbacks)
    stored["pingback_attempts"] = await records_of(_Stored, attempts)
    forms = queries.export_refused_forms(connection, **side, orders=orders, **texts)
    stored["refused_forms"] = await records_of(_Stored, forms)
    charges = queries.export_charges(
        connection,
        merchant_id=shop.merchant_id,
        live=shop.live,
        payments=found.payments,
        instruments=found.instruments,
    )
    stored["saved_card_charges"] = await records_of(_Stored, charges)
    calls = queries.export_api_calls(connection, **side, **texts)
    stored["api_calls"] = await records_of(_Stored, calls)
    return {kind: [one.row for one in rows] for kind, rows in stored.items()}
