"""What a payment means for its subscription: the version to write with it, and how its pingback shows it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.subscriptions.lifecycle import Package, Subscription, begin, paid
from paydesk.domain.subscriptions.rows import as_rows, package_of, subscription_of

queries = load_statements(__package__ or "")


@dataclass(frozen=True, slots=True)
class Step:
    """A version to write with a payment: for which period it paid, and the columns that only a new row needs."""

    version: Subscription
    period: int
    details: Mapping[str, Any]


async def steps_after(
    database: Database, rows: Sequence[Mapping[str, Any]], network_references: Mapping[int, str], *, now: datetime
) -> dict[int, Step]:
    """The steps that approved attempts bring about, by attempt; one-time payments have none. Moves no money.

    `rows` are those of `attempts_to_report`, or of `begin_renewals`, which carry the subscription as it stood then: if
    it has changed since, nothing is written over it. `network_references` are the acquirer's, by attempt.
    """
    beginning = [row for row in rows if not row["renewal"] and row["package_version_id"] is not None]
    renewing = [row for row in rows if row["renewal"]]
    steps: dict[int, Step] = {}
    if beginning:
        packages = await _packages(database, beginning)
        for row in beginning:
            package = packages[row["package_version_id"]]
            steps[row["attempt_id"]] = _beginning(row, package, network_references[row["attempt_id"]], now)
    if renewing:
        subscriptions = {row["subscription_id"]: subscription_of(row) for row in renewing if row.get("revision")}
        if unread := [row for row in renewing if row["subscription_id"] not in subscriptions]:
            subscriptions |= await find_all(
                database, [(row["merchant_id"], row["live"], row["subscription_id"]) for row in unread]
            )
        for row in renewing:
            version = paid(
                subscriptions[row["subscription_id"]],
                row["period_number"],
                at=now,
                tried_at=row["tried_at"],
                charge_until=row["charge_missed_until"],
            )
            steps[row["attempt_id"]] = Step(version, row["period_number"], {})
    return steps


async def _packages(database: Database, rows: Sequence[Mapping[str, Any]]) -> dict[int, Package]:
    found = queries.find_packages(
        database,
        merchant_ids=[row["merchant_id"] for row in rows],
        lives=[row["live"] for row in rows],
        version_ids=[row["package_version_id"] for row in rows],
    )
    return {row["package_version_id"]: package_of(row) async for row in found}


async def find_all(database: Database, names: Sequence[tuple[int, bool, int]]) -> dict[int, Subscription]:
    """The subscriptions with these merchants, sides and ids, by id."""
    found = queries.find_many(
        database,
        merchant_ids=[merchant_id for merchant_id, _, _ in names],
        lives=[live for _, live, _ in names],
        ids=[subscription_id for _, _, subscription_id in names],
    )
    return {row["id"]: subscription_of(row) async for row in found}


def _beginning(row: Mapping[str, Any], package: Package, network_reference: str, now: datetime) -> Step:
    """The subscription that a first payment begins, with what its renewals need years later."""
    version = begin(
        package,
        merchant_id=row["merchant_id"],
        live=row["live"],
        subscription_id=row["fresh_subscription_id"],
        payment_id=row["payment_id"],
        merchant_order_id=row["merchant_order_id"],
        email=row["email"],
        time_zone=row["time_zone"],
        at=now,
    )
    details = {
        "customer_id": row["customer_id"],
        "card_id": row["card_id"],
        "acquirer": row["acquirer"],
        "network_reference": network_reference,
        "terms_agreed": row["terms_agreed"],
        "portal_seed": secrets.token_hex(16),
        "sign_version": row["sign_version"],
        "key_id": row["key_id"],
        "pingback_url": row["form_url"],
    }
    return Step(version, version.next_period - 1, details)


def rows_to_write(steps: Sequence[Step]) -> str:
    """The steps' versions as the statement takes them."""
    details = [step.details for step in steps]
    return as_rows([step.version for step in steps], details if any(details) else ())
