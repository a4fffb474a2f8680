"""What an operator says about acquirers' fees and payouts: what an account costs by its contract,
and which findings stay as they are; each with a line in the audit log. Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from paydesk.core.errors import Malformed, NotFound
from paydesk.core.money import parse_known_currency, plain_number
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.payments.desk import Desk
from paydesk.domain.proceeds.findings import FindingKind, subject_of

queries = load_statements(__package__ or "", "proceeds.sql")

LONGEST_NOTE: Final = 500
_AGAIN: Final = timedelta(days=62)
"""How far back payments are held against a contract that was set."""
_MOST_RATE, _MOST_FIXED = Decimal(100), Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Contract:
    """What a payment costs at an account, in one currency: `rate` percent, and `fixed`."""

    acquirer: str
    currency: str
    rate: Decimal
    fixed: Decimal
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Accepted:
    acquirer: str
    kind: FindingKind
    subject: str
    reason: str


async def accept_finding(database: Database, actor: Actor, finding_id: int, note: str, *, now: datetime) -> None:
    """Take a finding as it is: its alarm is settled, and it stays quiet while it says the same.

    Raises: Malformed without a note, NotFound if no such finding is open.
    """
    why = note.strip()
    if not why or len(why) > LONGEST_NOTE or not why.isprintable():
        raise Malformed(f"say why in a note of at most {LONGEST_NOTE} characters", "note")
    who = f"person {actor.person_id}" if actor.person_id is not None else "command line"
    async with database.acquire() as connection, connection.transaction():
        row = await queries.accept(connection, id=finding_id, by=who, why=why, now=now)
        taken = record_if_any(_Accepted, row)
        if taken is None:
            raise NotFound(f"there is no open finding {finding_id}")
        subject = subject_of(taken.kind, taken.subject, taken.acquirer)
        await settle_alarms(
            connection, AlarmKind.proceeds_differ, [subject], shop=None, by="an operator accepted it", now=now
        )
        details: dict[str, object] = {"accepted": subject, "reason": taken.reason, "note": why}
        await record(connection, actor, Action.acquirer_changed, now=now, subject=taken.acquirer, details=details)


async def set_fee(desk: Desk, actor: Actor, wanted: Contract, *, now: datetime) -> None:
    """Say what a payment costs at an account; those of the last two months are compared with it.

    Raises: Malformed, NotFound.
    """
    currency = parse_known_currency(wanted.currency)
    _known(desk, wanted.acquirer)
    if not 0 <= wanted.rate <= _MOST_RATE or not 0 <= wanted.fixed <= _MOST_FIXED:
        raise Malformed("a contract is 0 to 100 percent, and a sum that is not negative", "rate")
    async with desk.database.acquire() as connection, connection.transaction():
        named = {"acquirer": wanted.acquirer, "currency": currency}
        await queries.set_fee(connection, **named, rate=wanted.rate, fixed=wanted.fixed, now=now)
        await queries.compare_again(connection, **named, since=now - _AGAIN)
        fee = f"{plain_number(wanted.rate):f} % + {plain_number(wanted.fixed):f} {currency}"
        details: dict[str, object] = {"fee": fee}
        await record(connection, actor, Action.acquirer_changed, now=now, subject=wanted.acquirer, details=details)


async def remove_fee(desk: Desk, actor: Actor, acquirer: str, currency: str, *, now: datetime) -> None:
    """Compare the fees of an account in a currency no more. Raises: Malformed, NotFound."""
    known = parse_known_currency(currency)
    named = {"acquirer": acquirer, "currency": known}
    async with desk.database.acquire() as connection, connection.transaction():
        if await queries.remove_fee(connection, **named) is None:
            raise NotFound(f"no fee is set for {known} at {acquirer[:40]}")
        await queries.compare_again(connection, **named, since=now - _AGAIN)
        details: dict[str, object] = {"fee": f"none in {known}"}
        await record(connection, actor, Action.acquirer_changed, now=now, subject=acquirer, details=details)


async def list_fees(database: Database) -> list[Contract]:
    """What was set, by account and currency."""
    return await records_of(Contract, queries.list_fees(database))


def _known(desk: Desk, acquirer: str) -> None:
    if acquirer not in desk.acquirers:
        raise NotFound(f'there is no account "{acquirer[:40]}" here, only {", ".join(desk.acquirers)}')
