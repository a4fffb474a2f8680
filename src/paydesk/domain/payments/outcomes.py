"""Writing down what an acquirer said: one statement moves the payment,
posts to the ledger and queues the pingback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import msgspec

from paydesk.adapters.acquirers.interface import Approved, Challenged, DeclineReason, Pending
from paydesk.core.clock import utc_now
from paydesk.core.money import FeePlan, Split, split_payment
from paydesk.core.payment_systems import payment_system
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.reading_again import ALL_READ_AGAIN
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.alarms.setting_aside import Worked, set_aside, together
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.late_outcomes import look_at_late_approvals, look_at_late_declines
from paydesk.domain.payments.states import AttemptState
from paydesk.domain.payments.stored_cards import shown_brand
from paydesk.domain.payments.time_to_ship import REMINDED_BEFORE, SOONER_BY, TIME_TO_SHIP
from paydesk.domain.pingbacks import waking
from paydesk.domain.pingbacks.payload import PaymentReport, payment_envelope
from paydesk.domain.subscriptions.failed_renewals import EndedRenewal, record_failures
from paydesk.domain.subscriptions.reporting import (
    PaidVersion,
    ReportRow,
    begun_rows,
    is_recurring,
    moves_of,
    steps_after,
)
from paydesk.domain.subscriptions.rows import Report
from paydesk.domain.subscriptions.subscription_object import subscription_object

queries = load_statements(__package__ or "")
hosted = load_statements(__package__ or "", "hosting.sql")
one_time = load_statements(__package__ or "", "one_time.sql")

FIRST_SECOND_LOOK = timedelta(seconds=30)
"""When the janitor first makes sure that an attempt given up was not approved after all."""

CHALLENGE_LOOK = timedelta(minutes=15)
"""How long a customer may take with their bank before the janitor asks how it went."""

PAGE_LOOK = timedelta(minutes=1)
"""When the janitor first asks of a page of the acquirer's: its customer may pay there,
and not come back.
"""


@dataclass(frozen=True, slots=True)
class Approval:
    """An attempt that the acquirer says took (or holds) the money.

    `report` is what is told of it, if the statement that committed the intent has returned it
    already. `leads_back`: its customer waits for this very answer, and is led to the shop by it
    (returning.py).
    """

    shop: Shop
    attempt_id: int
    answer: Approved
    report: Report | None = None
    leads_back: bool = False


class _Moved(msgspec.Struct, frozen=True):
    """An attempt that was written down."""

    merchant_id: int
    live: bool
    payment_id: int
    attempt_id: int


class _NotKept(msgspec.Struct, frozen=True):
    """An attempt whose page should have kept what was paid with."""

    merchant_id: int
    live: bool
    attempt_id: int


@dataclass(frozen=True, slots=True)
class Ending:
    """An attempt that took nothing: declined, failed (never reached the acquirer) or abandoned
    (a challenge left).
    """

    shop: Shop
    attempt_id: int
    state: AttemptState
    reason: DeclineReason | str
    renewal: bool = False


async def record_approvals(database: Database, approvals: Sequence[Approval], *, now: datetime) -> set[int]:
    """Record approvals with their postings and pingbacks; returns the attempts that moved.
    Moves no money.

    An attempt that does not hold its payment any more is left alone and missing from the result:
    somebody was faster. A subscription that changed in the meantime is read again. One that can't
    be recorded is missing too, waits in the operator's list and is the janitor's; it stops
    no other.
    """
    await name_instruments(database, [(one.shop, one.attempt_id, one.answer) for one in approvals])
    recorded: set[int] = set()
    aside: Worked[Approval, _Try] = Worked()
    left = list(approvals)
    for _ in range(ALL_READ_AGAIN):
        worked = await together(left, partial(_record_approvals, database, now=now))
        aside.failed.extend(worked.failed)
        recorded |= {one.attempt_id for one in worked.results if one.moved}
        again = {one.attempt_id for one in worked.results if one.recurring and not one.moved}
        if not again:
            break
        left = [replace(approval, report=None) for approval in left if approval.attempt_id in again]
    await set_aside(database, aside, _named, doing=noted("its approval can't be recorded, the money is taken"))
    done = recorded | {approval.attempt_id for approval, _ in aside.failed}
    missing = [(one.shop, one.attempt_id) for one in approvals if one.attempt_id not in done]
    await look_at_late_approvals(database, missing)
    metrics.PAYMENTS.labels("approved").inc(len(recorded))
    return recorded


async def name_instruments(
    database: Database | Connection, paid: Sequence[tuple[Shop, int, Approved | Pending]]
) -> None:
    """Write down what attempts were paid with where only the acquirer saw it, for those who are
    told then. Moves no money.
    """
    named = [(shop, attempt_id, told.instrument) for shop, attempt_id, told in paid if told.instrument is not None]
    if named:
        rows = hosted.name_instruments(
            database,
            merchant_ids=[shop.merchant_id for shop, _, _ in named],
            lives=[shop.live for shop, _, _ in named],
            attempt_ids=[attempt_id for _, attempt_id, _ in named],
            brands=[shown_brand(instrument) for _, _, instrument in named],
            last4s=[instrument.last4 for _, _, instrument in named],
            wallets=[instrument.wallet for _, _, instrument in named],
            stored_references=[instrument.reference for _, _, instrument in named],
            exp_months=[instrument.exp_month for _, _, instrument in named],
            exp_years=[instrument.exp_year for _, _, instrument in named],
            authenticated=[instrument.authenticated for _, _, instrument in named],
            slow=[instrument.slow for _, _, instrument in named],
        )
        sure = {attempt_id for _, attempt_id, told in paid if isinstance(told, Approved)}
        alarms = [_nothing_kept(one) for one in await records_of(_NotKept, rows) if one.attempt_id in sure]
        await raise_alarms(database, alarms, now=utc_now())


def _nothing_kept(one: _NotKept) -> Alarm:
    why = noted("the acquirer told of what was paid with on its page, and kept nothing to charge again")
    return Alarm(AlarmKind.nothing_kept, f"attempt {one.attempt_id}", why, Shop(one.merchant_id, one.live))


async def record_within(connection: Connection, approval: Approval, *, subscription_id: int = 0, now: datetime) -> bool:
    """Record an approval within a transaction of the caller's; false if it is none any more.
    Moves no money.

    A subscription that it begins gets `subscription_id`, if that is given: the one that its shop
    was told before.
    """
    await name_instruments(connection, [(approval.shop, approval.attempt_id, approval.answer)])
    (row,) = await _reports(connection, [approval])
    if subscription_id and row.fresh_subscription_id is not None:
        row = msgspec.structs.replace(row, fresh_subscription_id=subscription_id)
    tried = await _record_approvals(connection, [replace(approval, report=row)], now=now)
    return all(one.moved for one in tried)


def _named(outcome: Approval | Ending) -> tuple[Shop, str]:
    """What an attempt is called in the operator's list."""
    return outcome.shop, f"attempt {outcome.attempt_id}"


@dataclass(frozen=True, slots=True)
class _Try:
    """What came of an approval: whether it was written down,
    and whether it is for a subscription.
    """

    attempt_id: int
    moved: bool
    recurring: bool


async def _record_approvals(database: Database, approvals: Sequence[Approval], *, now: datetime) -> list[_Try]:
    """One try, of all or of nothing."""
    answers = {approval.attempt_id: approval.answer for approval in approvals}
    leading = {approval.attempt_id for approval in approvals if approval.leads_back}
    rows: list[Report] = [approval.report for approval in approvals if approval.report is not None]
    if unread := [approval for approval in approvals if approval.report is None]:
        rows += await _reports(database, unread)
    references = {attempt_id: answer.network_reference for attempt_id, answer in answers.items()}
    steps = await steps_after(database, rows, references, now=now)
    if gone := {row.attempt_id for row in rows if is_recurring(row)} - steps.keys():
        await _require_gone(database, [approval for approval in approvals if approval.attempt_id in gone])
        rows = [row for row in rows if row.attempt_id not in gone]
    splits = [split_payment(row.amount, FeePlan(row.rate, row.fixed, row.reserve_rate)) for row in rows]
    paid = {
        "merchant_ids": [row.merchant_id for row in rows],
        "lives": [row.live for row in rows],
        "attempt_ids": [row.attempt_id for row in rows],
        "acquirer_references": [answers[row.attempt_id].reference for row in rows],
        "network_references": [answers[row.attempt_id].network_reference for row in rows],
        "nets": [split.net for split in splits],
        "reserves": [split.reserve for split in splits],
        "fees": [split.fees for split in splits],
        "send_to": [row.send_to for row in rows],
        "pingback_formats": [row.body_format for row in rows],
        "payloads": [
            _envelope(row, split, steps.get(row.attempt_id), answers[row.attempt_id], now)
            for row, split in zip(rows, splits, strict=True)
        ],
        "leads_back": [row.attempt_id in leading for row in rows],
        "hold_untils": [answers[row.attempt_id].hold_until for row in rows],
        "time_to_ship": TIME_TO_SHIP,
        "reminded_before": REMINDED_BEFORE,
        "sooner_by": SOONER_BY,
        "now": now,
    }
    if steps:
        moved = queries.record_approvals(database, **paid, **_moves(rows, steps))
    else:
        moved = one_time.record_approvals(database, **paid)
    written = {row.attempt_id for row in await records_of(_Moved, moved)}
    waking.told()
    return [_Try(row.attempt_id, row.attempt_id in written, row.attempt_id in steps) for row in rows]


async def _require_gone(database: Database, approvals: Sequence[Approval]) -> None:
    """Make sure that payments without what they are for went with a test side that was started
    anew: there is nothing to record of them, and their money is a test's.
    """
    if left := [row.attempt_id for row in await _reports(database, approvals)]:
        raise LookupError(f"what attempts {left} paid for is not there")


def _moves(rows: Sequence[Report], steps: Mapping[int, PaidVersion]) -> dict[str, object]:
    """What becomes of the subscriptions that payments are for, null where one is for none."""
    moves = moves_of(steps.get(row.attempt_id) for row in rows)
    return {
        "subscription_ids": [step.version.id if (step := steps.get(row.attempt_id)) else None for row in rows],
        "period_numbers": [step.period if (step := steps.get(row.attempt_id)) else None for row in rows],
        "revisions": moves.revision,
        "states": moves.state,
        "next_periods": moves.next_period,
        "dates_next": moves.date_next,
        "failures": moves.failures,
        "counters": moves.counter,
        "paid_number_counters": moves.paid_number_counter,
        "dates_active": moves.date_active,
        "dates_paid": moves.date_paid,
        "dates_end": moves.date_end,
        "skipped": moves.skipped,
        "fresh": begun_rows(steps.values()),
    }


async def _reports(database: Database, approvals: Sequence[Approval]) -> list[ReportRow]:
    """What is told of approvals whose intent was committed some time ago, or has changed since."""
    asked = queries.attempts_to_report(
        database,
        merchant_ids=[approval.shop.merchant_id for approval in approvals],
        lives=[approval.shop.live for approval in approvals],
        attempt_ids=[approval.attempt_id for approval in approvals],
    )
    return await records_of(ReportRow, asked)


def _envelope(row: Report, split: Split, step: PaidVersion | None, answer: Approved, now: datetime) -> str:
    """The pingback's text: of a one-time payment, or of one for a subscription."""
    report = PaymentReport(
        payment_id=row.payment_id,
        merchant_order_id=row.merchant_order_id,
        currency=row.currency,
        split=split,
        at=now,
        first_name=row.first_name,
        last_name=row.last_name,
        username=row.username,
        country=row.country,
        email=row.email,
        payment_system=payment_system(shown_brand(answer.instrument) if answer.instrument else ""),
    )
    return payment_envelope(report, subscription_object(step.version, with_init=True) if step else None)


async def record_endings(
    database: Database, endings: Sequence[Ending], *, now: datetime, real_now: datetime | None = None
) -> set[int]:
    """Record attempts that took nothing, so that the customer may try again;
    returns those that moved.

    A renewal moves its subscription too: it is due again later, or stops. What was not plainly
    declined is looked up again, for an approval that may still turn up. `now` is the shops' time;
    `real_now` differs from it under a test clock: acquirers live in real time. One that can't be
    recorded waits in the operator's list and stops no other. Moves no money.
    """
    real_now = real_now or now
    at_checkout = [ending for ending in endings if not ending.renewal]
    renewals = [ending for ending in endings if ending.renewal]
    worked = await together(at_checkout, partial(_record_at_checkout, database, now=now, real_now=real_now))
    await set_aside(database, worked, _named, doing=noted("its end can't be recorded"))
    recorded = set(worked.results)
    if renewals:
        ended = [
            EndedRenewal(one.shop, one.attempt_id, str(one.state), str(one.reason), _look_again(one, real_now))
            for one in renewals
        ]
        recorded |= await record_failures(database, ended, now=now)
    for ending in endings:
        if ending.attempt_id in recorded:
            metrics.PAYMENTS.labels(str(ending.state)).inc()
    missing = [one for one in endings if one.state is AttemptState.DECLINED and one.attempt_id not in recorded]
    await look_at_late_declines(database, [(one.shop, one.attempt_id) for one in missing])
    return recorded


def _look_again(ending: Ending, real_now: datetime) -> datetime | None:
    """When the janitor makes sure that an attempt that was given up was not approved after all."""
    pauses = {AttemptState.FAILED: FIRST_SECOND_LOOK, AttemptState.ABANDONED: timedelta(seconds=5)}
    pause = pauses.get(ending.state)
    return None if pause is None else real_now + pause


async def _record_at_checkout(
    database: Database, endings: Sequence[Ending], *, now: datetime, real_now: datetime
) -> set[int]:
    moved = queries.record_declines(
        database,
        merchant_ids=[ending.shop.merchant_id for ending in endings],
        lives=[ending.shop.live for ending in endings],
        attempt_ids=[ending.attempt_id for ending in endings],
        states=[str(ending.state) for ending in endings],
        reasons=[str(ending.reason) for ending in endings],
        lookup_ats=[_look_again(ending, real_now) for ending in endings],
        now=now,
    )
    return {row.attempt_id for row in await records_of(_Moved, moved)}


async def record_challenge(
    database: Database,
    shop: Shop,
    attempt_id: int,
    answer: Challenged,
    *,
    look_in: timedelta = CHALLENGE_LOOK,
    now: datetime,
) -> bool:
    """Record that the bank wants to see the customer; false if the attempt has moved on.
    Moves no money.

    `now` is real time (UTC): the janitor asks the acquirer by it.
    """
    row = await queries.record_challenge(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        attempt_id=attempt_id,
        acquirer_reference=answer.reference,
        challenge_url=answer.url,
        lookup_at=now + look_in,
    )
    return row is not None
