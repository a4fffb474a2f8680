"""Comparing what was entered of an acquirer's balance with our books, and keeping what differs
until both agree or an operator takes it as it is. Moves no money.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from paydesk.core.money import written
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.leases import Within
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.payments.found_movements import key_by_hand
from paydesk.domain.proceeds.findings import ADVICE, Finding, FindingKind, subject_of
from paydesk.domain.proceeds.judging import (
    LINE_FINDINGS,
    PAYOUT_FINDINGS,
    BookedAttempt,
    BookedChargeback,
    BookedRefund,
    Books,
    EnteredLine,
    EnteredPayout,
    Fee,
    Verdict,
    judge,
    judge_payout,
)

queries = load_statements(__package__ or "", "matching.sql")

_BATCH = 500
_LATELY = timedelta(days=14)
"""How long a payout may still fail, or be told otherwise."""
_SLACK = timedelta(days=35)
"""How far each look for missing payments goes back beyond where the last one ended:
what is held is captured up to a month after it was sent."""
_MOST_MISSING = 1000
"""How many of them are named at a time: if there are more, one cause has them all."""
_MISSING = frozenset({FindingKind.NOT_TOLD, FindingKind.NOT_PAID_OUT})
_BY = "the acquirer's balance and our books agree"


@dataclass(frozen=True, slots=True)
class _Key:
    key: str


@dataclass(frozen=True, slots=True)
class _Missing:
    """A payment that the balance, or its payouts, lack; `is_told` if the balance has it."""

    key: str
    merchant_id: int
    live: bool
    payment_id: int
    amount: Decimal
    currency: str
    captured_at: datetime
    is_told: bool


@dataclass(frozen=True, slots=True)
class _OpenMissing:
    kind: FindingKind
    subject: str


@dataclass(frozen=True, slots=True)
class _Come:
    """What became of a payment that was missing."""

    key: str
    is_told: bool
    is_paid: bool
    is_taken: bool


@dataclass(frozen=True, slots=True)
class _Recorded:
    kind: FindingKind
    subject: str
    reason: str
    payout: str | None
    merchant_id: int | None
    live: bool | None
    payment_id: int | None


@dataclass(frozen=True, slots=True)
class _Untaken(_Recorded):
    acquirer: str


@dataclass(frozen=True, slots=True)
class _Settled:
    kind: str
    subject: str


async def examine_lines(database: Database, acquirer: str, *, within: Within, now: datetime) -> None:
    """Compare all lines that were not compared yet, or differed, a batch at a time."""
    fees = {one.currency: one for one in await records_of(Fee, queries.fees(database, acquirer=acquirer))}
    after, is_over = "", False
    while not is_over:
        rows = queries.to_examine(database, acquirer=acquirer, after=after, most=_BATCH)
        lines = await records_of(EnteredLine, rows)
        is_over = len(lines) < _BATCH
        if lines:
            books = await _books(database, acquirer, lines, fees)
            await _keep(within, acquirer, {one.id: judge(one, books, now=now) for one in lines}, now=now)
            after = lines[-1].id


async def _books(database: Database, acquirer: str, lines: Sequence[EnteredLine], fees: Mapping[str, Fee]) -> Books:
    """What our books have of some lines."""
    back = [key_by_hand(one.source) for one in lines if one.source]
    keys = _named(each for one in lines for each in (one.key, one.refund_key or ""))
    taken = _named([*(one.taken_under for one in lines), *(one.removesuffix(":void") for one in keys)])
    sources = _named(one.source for one in lines)
    attempts = queries.attempts_named(database, acquirer=acquirer, keys=taken)
    refunds = queries.refunds_named(database, acquirer=acquirer, keys=[*keys, *back])
    chargebacks = queries.chargebacks_named(database, acquirer=acquirer, references=sources)
    forgotten = queries.forgotten(database, acquirer=acquirer, keys=_named([*taken, *keys]))
    return Books(
        {one.key: one for one in await records_of(BookedAttempt, attempts)},
        {one.key: one for one in await records_of(BookedRefund, refunds)},
        {one.reference: one for one in await records_of(BookedChargeback, chargebacks)},
        frozenset(one.key for one in await records_of(_Key, forgotten)),
        fees,
    )


def _named(keys: Iterable[str]) -> list[str]:
    return sorted({key for key in keys if key})


async def _keep(within: Within, acquirer: str, verdicts: Mapping[str, Verdict], *, now: datetime) -> None:
    """Keep what came of some lines; those of which nobody knows yet are compared again."""
    known = {name: one for name, one in verdicts.items() if not one.is_open}
    if not known:
        return
    booked = [one.booked for one in known.values()]
    findings = [finding for one in known.values() for finding in one.findings]
    await keep_findings(within, acquirer, findings, list(known), LINE_FINDINGS, now=now)
    # Last: what was not kept is compared once more.
    async with within() as connection:
        await queries.examined(
            connection,
            acquirer=acquirer,
            lines=list(known),
            merchant_ids=[one.merchant_id if one else None for one in booked],
            lives=[one.live if one else None for one in booked],
            payment_ids=[one.payment_id if one else None for one in booked],
        )


async def examine_payouts(database: Database, acquirer: str, *, within: Within, now: datetime) -> None:
    """Compare the payouts of late, and those that differed, with their lines."""
    rows = queries.payouts_to_examine(database, acquirer=acquirer, since=now - _LATELY)
    payouts = await records_of(EnteredPayout, rows)
    findings = [finding for one in payouts for finding in judge_payout(one)]
    names = [one.reference for one in payouts]
    await keep_findings(within, acquirer, findings, names, PAYOUT_FINDINGS, now=now)


async def look_for_missing(
    database: Database,
    acquirer: str,
    *,
    within: Within,
    began_at: datetime,
    read_to: datetime,
    patience: timedelta,
    now: datetime,
) -> None:
    """Name payments of ours that the balance, or its payouts, lack after so long.

    What was paid before `began_at`, when the balance was read first, is not looked for; `read_to`
    is up to when it was read before.
    """
    open_ones = await records_of(
        _OpenMissing, queries.open_missing(database, acquirer=acquirer, kinds=[str(kind) for kind in _MISSING])
    )
    keys = _named(one.subject for one in open_ones)
    come = {one.key: one for one in await records_of(_Come, queries.since_come(database, acquirer=acquirer, keys=keys))}
    over = {
        kind: [one.subject for one in open_ones if one.kind is kind and _is_over(kind, come[one.subject])]
        for kind in _MISSING
    }
    for kind, subjects in over.items():
        await keep_findings(within, acquirer, [], subjects, frozenset({kind}), now=now)
    since, until = max(began_at, read_to - patience - _SLACK), now - patience
    rows = queries.missing(database, acquirer=acquirer, since=since, until=until, most=_MOST_MISSING)
    findings = [_missing(one) for one in await records_of(_Missing, rows)]
    await keep_findings(within, acquirer, findings, [], frozenset(), now=now)


def _is_over(kind: FindingKind, come: _Come) -> bool:
    return not come.is_taken or (come.is_told if kind is FindingKind.NOT_TOLD else come.is_paid)


def _missing(one: _Missing) -> Finding:
    amount, day = f"{written(one.amount, one.currency)} {one.currency}", f"{one.captured_at:%Y-%m-%d}"
    if one.is_told:
        kind, reason = (
            FindingKind.NOT_PAID_OUT,
            noted("%(amount)s, captured at %(day)s, are in the balance, and in no payout", amount=amount, day=day),
        )
    else:
        kind, reason = (
            FindingKind.NOT_TOLD,
            noted("%(amount)s, captured at %(day)s, are not in the balance", amount=amount, day=day),
        )
    return Finding(kind, one.key, reason, None, one.merchant_id, one.live, one.payment_id)


async def keep_findings(
    within: Within,
    acquirer: str,
    findings: Sequence[Finding],
    looked_at: Sequence[str],
    kinds: frozenset[FindingKind],
    *,
    now: datetime,
) -> None:
    """Keep what differs, with an alarm for what is news, and settle what was found of `kinds` about
    the subjects `looked_at` and is no more.
    """
    distinct = {(one.kind, one.subject): one for one in findings}
    async with within() as connection:
        settled = queries.settle_findings(
            connection,
            acquirer=acquirer,
            subjects=list(looked_at),
            kinds=[str(kind) for kind in kinds],
            still_kinds=[str(kind) for kind, _ in distinct],
            still_subjects=[subject for _, subject in distinct],
            now=now,
        )
        gone = [subject_of(FindingKind(one.kind), one.subject, acquirer) for one in await records_of(_Settled, settled)]
        each = list(distinct.values())
        recorded = queries.record_findings(
            connection,
            acquirer=acquirer,
            kinds=[str(one.kind) for one in each],
            subjects=[one.subject for one in each],
            payouts=[one.payout for one in each],
            merchant_ids=[one.merchant_id for one in each],
            lives=[one.live for one in each],
            payment_ids=[one.payment_id for one in each],
            reasons=[one.reason for one in each],
            now=now,
        )
        news = await records_of(_Recorded, recorded)
        await raise_alarms(connection, [_alarm(one, acquirer) for one in news], now=now)
        if gone:
            await settle_alarms(connection, AlarmKind.proceeds_differ, gone, shop=None, by=_BY, now=now)


async def tell_again(connection: Connection, acquirers: Sequence[str], *, now: datetime) -> None:
    """Raise the alarms of what differs at accounts that have come here with what was found of them:
    only what is news raises one by itself.
    """
    untaken = await records_of(_Untaken, queries.untaken(connection, acquirers=list(acquirers)))
    await raise_alarms(connection, [_alarm(one, one.acquirer) for one in untaken], now=now)


def _alarm(one: _Recorded, acquirer: str) -> Alarm:
    details = {"payout": one.payout, "merchant": one.merchant_id, "payment": one.payment_id}
    reason = f"{one.reason}. {ADVICE[one.kind]}"
    return Alarm(AlarmKind.proceeds_differ, subject_of(one.kind, one.subject, acquirer), reason, None, details)
