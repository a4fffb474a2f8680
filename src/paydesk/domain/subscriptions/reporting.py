"""What a payment means for its subscription: the version to write with it,
and how its pingback shows it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.subscriptions.lifecycle import Subscription, begin, paid
from paydesk.domain.subscriptions.rows import (
    NO_ACCOUNT,
    Moves,
    OrderReport,
    PackageRow,
    Packages,
    RenewalRow,
    Report,
    SubscriptionRow,
    as_moved,
    as_rows,
    package_of,
    subscription_of,
)
from paydesk.domain.subscriptions.subscription_terms import Package

queries = load_statements(__package__ or "")


class ReportRow(OrderReport, frozen=True):
    """Of an order or a renewal whose approval is recorded some time after its intent:
    a row of `attempts_to_report`.
    """

    charge_missed_until: datetime | None
    tried_at: datetime


class PaidVersion(msgspec.Struct, frozen=True, gc=False):
    """A version to write with a payment: for which period it paid,
    and the columns that only a new row needs.
    """

    version: Subscription
    period: int
    details: Mapping[str, object]


async def steps_after(
    database: Database, rows: Sequence[Report], network_references: Mapping[int, str], *, now: datetime
) -> dict[int, PaidVersion]:
    """The steps that approved attempts bring about, by attempt; one-time payments have none, nor
    has what belongs to a test side that was started anew. Moves no money.

    `rows` of `begin_renewals` carry the subscription as it stood then: if it has changed since,
    nothing is written over it. `network_references` are the acquirer's, by attempt.
    """
    beginning = [row for row in rows if isinstance(row, OrderReport) and not row.renewal and is_recurring(row)]
    renewing = [row for row in rows if isinstance(row, ReportRow | RenewalRow) and row.renewal]
    steps: dict[int, PaidVersion] = {}
    if beginning:
        packages = await _packages(database, beginning)
        for first in beginning:
            if package := packages.get(first.package_version_id or 0):
                steps[first.attempt_id] = _beginning(first, package, network_references[first.attempt_id], now)
    if renewing:
        packages_of = Packages()
        subscriptions = {
            row.id: subscription_of(row, packages_of.of(row)) for row in renewing if isinstance(row, RenewalRow)
        }
        if unread := [row for row in renewing if row.subscription_id not in subscriptions]:
            names = [(row.merchant_id, row.live, row.subscription_id or 0) for row in unread]
            subscriptions |= await find_all(database, names)
        for row in renewing:
            assert row.subscription_id is not None, "a renewal is of a subscription"
            assert row.period_number is not None, "a renewal is of a period"
            if row.subscription_id not in subscriptions:
                continue
            version = paid(
                subscriptions[row.subscription_id],
                row.period_number,
                at=now,
                tried_at=row.tried_at,
                charge_until=row.charge_missed_until,
            )
            steps[row.attempt_id] = PaidVersion(version, row.period_number, {})
    return steps


def is_recurring(row: Report) -> bool:
    """Whether a payment is for a subscription."""
    return row.renewal or (isinstance(row, OrderReport) and row.package_version_id is not None)


async def _packages(database: Database, rows: Sequence[Report]) -> dict[int, Package]:
    found = queries.find_packages(
        database,
        merchant_ids=[row.merchant_id for row in rows],
        lives=[row.live for row in rows],
        version_ids=[row.package_version_id for row in rows],
    )
    return {row.package_version_id: package_of(row) for row in await records_of(PackageRow, found)}


async def find_all(database: Database, names: Sequence[tuple[int, bool, int]]) -> dict[int, Subscription]:
    """The subscriptions with these merchants, sides and ids, by id."""
    found = queries.find_many(
        database,
        merchant_ids=[merchant_id for merchant_id, _, _ in names],
        lives=[live for _, live, _ in names],
        ids=[subscription_id for _, _, subscription_id in names],
    )
    return {row.id: subscription_of(row) for row in await records_of(SubscriptionRow, found)}


def _beginning(row: OrderReport, package: Package, network_reference: str, now: datetime) -> PaidVersion:
    """The subscription that a first payment begins, with what its renewals need years later."""
    assert row.fresh_subscription_id is not None, "what is agreed to has the id of its subscription"
    version = begin(
        package,
        merchant_id=row.merchant_id,
        live=row.live,
        subscription_id=row.fresh_subscription_id,
        payment_id=row.payment_id,
        merchant_order_id=row.merchant_order_id,
        email=row.email,
        time_zone=row.time_zone,
        at=now,
        has_card=row.acquirer != NO_ACCOUNT,
    )
    details = {
        "customer_id": row.customer_id,
        "card_id": row.card_id,
        "acquirer": row.acquirer,
        "network_reference": network_reference,
        "terms_agreed": row.terms_agreed,
        "portal_seed": secrets.token_hex(16),
        "sign_version": row.sign_version,
        "key_id": row.key_id,
        "pingback_url": row.form_url,
    }
    return PaidVersion(version, version.next_period - 1, details)


def begun_rows(steps: Iterable[PaidVersion]) -> str:
    """The versions of subscriptions that begin, as the rows that the statement inserts."""
    begun = [step for step in steps if step.details]
    return as_rows([step.version for step in begun], [step.details for step in begun])


def moves_of(steps: Iterable[PaidVersion | None]) -> Moves:
    """The versions of subscriptions that go on, as the arrays that the statement writes."""
    return as_moved([None if step is None or step.details else step.version for step in steps])
