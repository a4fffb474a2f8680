"""Writing down what an acquirer said: one statement moves the payment, posts to the ledger and queues the pingback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.adapters.acquirers.interface import Approved, Challenged, DeclineReason
from paydesk.core.money import FeePlan, split_payment
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.states import AttemptState
from paydesk.domain.pingbacks.destinations import Account, destination
from paydesk.domain.pingbacks.payload import PaymentReport, payment_envelope

queries = load_statements(__package__ or "")

FIRST_SECOND_LOOK = timedelta(hours=1)
"""When the janitor first makes sure that an attempt given up was not approved after all."""

CHALLENGE_LOOK = timedelta(minutes=15)
"""How long a customer may take with their bank before the janitor asks how it went."""


@dataclass(frozen=True, slots=True)
class Approval:
    """An attempt that the acquirer says took (or holds) the money."""

    shop: Shop
    attempt_id: int
    answer: Approved


@dataclass(frozen=True, slots=True)
class Ending:
    """An attempt that took nothing: declined, failed (never reached the acquirer) or abandoned (a challenge left)."""

    shop: Shop
    attempt_id: int
    state: AttemptState
    reason: DeclineReason


async def record_approvals(database: Database, approvals: Sequence[Approval], *, now: datetime) -> set[int]:
    """Record approvals with their postings and pingbacks; returns the attempts that moved. Moves no money.

    An attempt that does not hold its payment any more is left alone and missing from the result: somebody was faster.
    """
    by_attempt = {approval.attempt_id: approval for approval in approvals}
    asked = queries.attempts_to_report(
        database,
        merchant_ids=[approval.shop.merchant_id for approval in approvals],
        lives=[approval.shop.live for approval in approvals],
        attempt_ids=[approval.attempt_id for approval in approvals],
    )
    rows = [row async for row in asked]
    splits = [split_payment(row["amount"], FeePlan(row["rate"], row["fixed"], row["reserve_rate"])) for row in rows]
    accounts = [
        Account(
            pingback_url=row["account_url"],
            test_pingback_url=row["test_pingback_url"],
            went_live_at=row["went_live_at"],
        )
        for row in rows
    ]
    reports = [
        PaymentReport(
            payment_id=row["payment_id"],
            merchant_order_id=row["merchant_order_id"],
            currency=row["currency"],
            split=split,
            at=now,
            first_name=row["first_name"],
            last_name=row["last_name"],
            username=row["username"],
            country=row["country"],
            email=row["email"],
        )
        for row, split in zip(rows, splits, strict=True)
    ]
    moved = queries.record_approvals(
        database,
        merchant_ids=[row["merchant_id"] for row in rows],
        lives=[row["live"] for row in rows],
        attempt_ids=[row["attempt_id"] for row in rows],
        acquirer_references=[by_attempt[row["attempt_id"]].answer.reference for row in rows],
        network_references=[by_attempt[row["attempt_id"]].answer.network_reference for row in rows],
        nets=[split.net for split in splits],
        reserves=[split.reserve for split in splits],
        fees=[split.fees for split in splits],
        pingback_urls=[
            destination(row["form_url"], account, live=row["live"]) for row, account in zip(rows, accounts, strict=True)
        ],
        pingback_formats=["json" if row["sign_version"] == "v2" else row["pingback_format"] for row in rows],
        payloads=[payment_envelope(report) for report in reports],
        now=now,
    )
    recorded = {row["attempt_id"] async for row in moved}
    metrics.PAYMENTS.labels("approved").inc(len(recorded))
    return recorded


async def record_endings(database: Database, endings: Sequence[Ending], *, now: datetime) -> set[int]:
    """Record attempts that took nothing, so that the customer may try again; returns those that moved.

    What was not plainly declined is looked up again later, for an approval that may still turn up. Moves no money.
    """
    second_look = {AttemptState.FAILED: now + FIRST_SECOND_LOOK, AttemptState.ABANDONED: now + timedelta(seconds=5)}
    moved = queries.record_declines(
        database,
        merchant_ids=[ending.shop.merchant_id for ending in endings],
        lives=[ending.shop.live for ending in endings],
        attempt_ids=[ending.attempt_id for ending in endings],
        states=[str(ending.state) for ending in endings],
        reasons=[str(ending.reason) for ending in endings],
        lookup_ats=[second_look.get(ending.state) for ending in endings],
        now=now,
    )
    recorded = {row["attempt_id"] async for row in moved}
    for ending in endings:
        if ending.attempt_id in recorded:
            metrics.PAYMENTS.labels(str(ending.state)).inc()
    return recorded


async def record_challenge(
    database: Database, shop: Shop, attempt_id: int, answer: Challenged, *, now: datetime
) -> bool:
    """Record that the bank wants to see the customer; false if the attempt has moved on. Moves no money."""
    row = await queries.record_challenge(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        attempt_id=attempt_id,
        acquirer_reference=answer.reference,
        challenge_url=answer.url,
        lookup_at=now + CHALLENGE_LOOK,
    )
    return row is not None
