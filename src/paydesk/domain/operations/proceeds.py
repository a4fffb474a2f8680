"""What an operator says about acquirers' fees and payouts: contracts, findings that stay as they
are, and what sets our books right; each with a line in the audit log. Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from paydesk.core.errors import Malformed, NotFound
from paydesk.core.money import parse_known_currency, plain_number
from paydesk.core.wording import noted, plural
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms, settle_alarms
from paydesk.domain.payments.desk import Desk
from paydesk.domain.proceeds import correcting
from paydesk.domain.proceeds.correcting import Corrected
from paydesk.domain.proceeds.findings import ADVICE, FindingKind, subject_of

queries = load_statements(__package__ or "", "proceeds.sql")

LONGEST_NOTE: Final = 500
_AGAIN: Final = timedelta(days=62)
"""How far back payments are held against a contract that was set."""
_MOST_RATE, _MOST_FIXED = Decimal(100), Decimal(1_000_000)
_DECIMALS: Final = 4


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
    why = _checked_note(note)
    async with database.acquire() as connection, connection.transaction():
        row = await queries.accept(connection, id=finding_id, by=_who(actor), why=why, now=now)
        taken = record_if_any(_Accepted, row)
        if taken is None:
            raise NotFound(f"there is no open finding {finding_id}")
        subject = subject_of(taken.kind, taken.subject, taken.acquirer)
        await settle_alarms(
            connection, AlarmKind.proceeds_differ, [subject], shop=None, by=noted("an operator accepted it"), now=now
        )
        details: dict[str, object] = {"accepted": subject, "reason": taken.reason, "note": why}
        await record(connection, actor, Action.acquirer_changed, now=now, subject=taken.acquirer, details=details)


@dataclass(frozen=True, slots=True)
class Correction:
    """What our books are set right by: `amount` is what the acquirer owes more than they say
    (negative: less), as a fee that it kept (`is_fee`), or for another reason.
    """

    amount: Decimal
    is_fee: bool = False


async def correct_finding(
    database: Database, actor: Actor, finding_id: int, correction: Correction, note: str, *, now: datetime
) -> Corrected:
    """Set the operator's own books right where an acquirer's balance differs from them.
    Moves no money.

    By a posting that sums to zero; what was told first stays. The finding is taken as it is by
    that, and a second call posts nothing.

    Raises: Malformed without a note, or for an amount that is none; NotFound; Conflict if the
    finding is over, or is corrected already.
    """
    why = _checked_note(note)
    _check_amount(correction.amount)
    account = "acquirer_fees" if correction.is_fee else "other"
    async with database.acquire() as connection, connection.transaction():
        done = await correcting.correct(
            connection, finding_id, correction.amount, against=account, by=_who(actor), why=why, now=now
        )
        await settle_alarms(
            connection,
            AlarmKind.proceeds_differ,
            [done.named],
            shop=None,
            by=noted("an operator corrected it"),
            now=now,
        )
        await _write_down(connection, actor, done, {"note": why, "as": account}, now=now)
    return done


async def take_back_correction(database: Database, actor: Actor, finding_id: int, *, now: datetime) -> Corrected:
    """Post the opposite of what a finding was corrected by; if it differs still it is open again.
    Moves no money.

    Raises: NotFound if no such finding is corrected.
    """
    async with database.acquire() as connection, connection.transaction():
        done = await correcting.take_back(connection, finding_id, now=now)
        if done.settled_at is None:
            details = {"payout": done.payout, "merchant": done.merchant_id, "payment": done.payment_id}
            reason = f"{done.reason}. {ADVICE[done.kind]}"
            alarm = Alarm(AlarmKind.proceeds_differ, done.named, reason, None, details)
            await raise_alarms(connection, [alarm], now=now)
        await _write_down(connection, actor, done, {"taken back": True}, now=now)
    return done


async def _write_down(
    connection: Connection, actor: Actor, done: Corrected, said: dict[str, object], *, now: datetime
) -> None:
    amount = f"{plain_number(done.corrected):f} {done.corrected_currency}"
    details: dict[str, object] = {"corrected": done.named, "by": amount, "reason": done.reason, **said}
    await record(connection, actor, Action.acquirer_changed, now=now, subject=done.acquirer, details=details)


def _check_amount(amount: Decimal) -> None:
    """Make sure that an amount may be posted. Raises: Malformed."""
    if not amount.is_finite() or not 0 < abs(amount) <= _MOST_FIXED or amount != round(amount, _DECIMALS):
        raise Malformed(
            plural(
                "a correction is not zero, and has at most %(count)s decimal",
                "a correction is not zero, and has at most %(count)s decimals",
                count=_DECIMALS,
            ),
            "amount",
        )


def _checked_note(note: str) -> str:
    """An operator's reason. Raises: Malformed."""
    why = note.strip()
    if not why or len(why) > LONGEST_NOTE or not why.isprintable():
        raise Malformed(
            plural(
                "say why in a note of at most %(count)s character",
                "say why in a note of at most %(count)s characters",
                count=LONGEST_NOTE,
            ),
            "note",
        )
    return why


def _who(actor: Actor) -> str:
    return f"person {actor.person_id}" if actor.person_id is not None else "command line"


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
