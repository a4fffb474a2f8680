"""Files of transfers for the operator's bank: made of what merchants have available, sent, and then
recorded. Live money alone; nothing here moves any by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import ROUND_DOWN, Decimal

import msgspec

from paydesk.adapters.bank_files import Transfer
from paydesk.adapters.vault import Sealed, Vault
from paydesk.core.bank_accounts import BankAccount
from paydesk.core.errors import Conflict, NotFound, PaydeskError
from paydesk.core.money import minor_digits
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.business.profiles import PURPOSE
from paydesk.domain.ledger.payouts import Sent, is_suspended
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.taking_turns import take_turn
from paydesk.domain.operations.payout_file_states import FileState
from paydesk.domain.operations.payouts import pay_out, was_dropped

queries = load_statements(__package__ or "", "payout_files.sql")

_LONGEST_END_TO_END = 35


@dataclass(frozen=True, slots=True)
class PayoutFile:
    """A file of transfers in one currency; amounts in main units, times UTC."""

    id: int
    currency: str
    state: FileState
    made_by: str
    made_at: datetime
    finished_at: datetime | None
    transfers: int
    total: Decimal
    left_open: int

    @property
    def name(self) -> str:
        """What the bank knows it by."""
        return f"PAYOUTS-{self.id}"


@dataclass(frozen=True, slots=True)
class Line:
    """One transfer of a file; `account` is None where the merchant has another one since."""

    file_id: int
    merchant_id: int
    merchant_name: str
    amount: Decimal
    currency: str
    payout_id: int | None
    open: bool
    account: BankAccount | None = field(repr=False)
    suspended: bool = False
    problem: str = ""

    @property
    def reference(self) -> str:
        """What both bank statements show, in the 35 characters of an EndToEndId (ISO 20022): ids of
        cells have up to 16 digits.
        """
        ids = f"{self.file_id}-{self.merchant_id}"
        return f"PAYOUT-{ids}" if len(ids) <= _LONGEST_END_TO_END - len("PAYOUT-") else f"P-{ids}"


@dataclass(frozen=True, slots=True)
class Sendable:
    """What a new file of a currency would send, to how many merchants."""

    currency: str
    merchants: int
    total: Decimal


@dataclass(frozen=True, slots=True)
class _Available:
    currency: str
    available: Decimal
    merchant_id: int
    accepted_at: datetime

    @property
    def whole(self) -> Decimal:
        """What can be sent: the ledger has finer parts than that."""
        return self.available.quantize(Decimal(1).scaleb(-minor_digits(self.currency)), ROUND_DOWN)


@dataclass(frozen=True, slots=True)
class _Made:
    id: int
    transfers: int


class _LineRow(msgspec.Struct, frozen=True):
    merchant_id: int
    merchant_name: str
    suspended: bool
    amount: Decimal
    currency: str
    payout_id: int | None
    open: bool
    account_holder: str | None
    iban_sealed: bytes | None
    vault_key_id: str | None


async def sendable(database: Database) -> list[Sendable]:
    """What new files would send, by currency."""
    sums: dict[str, Sendable] = {}
    for one in await _may_be_sent(database, None):
        before = sums.get(one.currency, Sendable(one.currency, 0, Decimal(0)))
        sums[one.currency] = Sendable(one.currency, before.merchants + 1, before.total + one.whole)
    return sorted(sums.values(), key=lambda one: one.currency)


async def _may_be_sent(database: Database, currency: str | None) -> list[_Available]:
    found = await records_of(_Available, queries.may_be_sent(database, currency=currency))
    return [one for one in found if one.whole > 0]


async def make_file(database: Database, actor: Actor, currency: str, request_key: str, *, now: datetime) -> int:
    """Make a file of all that may be sent in a currency, and return its id; the same wish again
    (`request_key`) is the same file.

    What is available is read while each merchant's row is held, as by any payout: what somebody
    pays out meanwhile is not sent by a file, too. Raises: Conflict if there is nothing to be sent.
    """
    made_by = f"person {actor.person_id}" if actor.person_id else "command"
    async with database.acquire() as connection, connection.transaction():
        held = {one.merchant_id for one in await _may_be_sent(connection, currency)}
        await take_turn(connection, *held)
        known = await queries.file_of_request(connection, request_key=request_key)
        if known is not None:
            return int(known)
        lines = [one for one in await _may_be_sent(connection, currency) if one.merchant_id in held]
        row = await queries.make_file(
            connection,
            currency=currency,
            request_key=request_key,
            made_by=made_by,
            merchant_ids=[one.merchant_id for one in lines],
            amounts=[one.whole for one in lines],
            accepted_ats=[one.accepted_at for one in lines],
            now=now,
        )
        made = record_if_any(_Made, row)
        if made is None:
            raise Conflict(worded("nothing in %(currency)s can be sent that is in no file yet", currency=currency))
        details: dict[str, object] = {"what": "file made", "currency": currency, "transfers": made.transfers}
        subject = f"payout file {made.id}"
        await record(connection, actor, Action.payout_changed, now=now, subject=subject, details=details)
    return made.id


async def list_files(database: Database, *, before: int, most: int) -> list[PayoutFile]:
    """The files, newest first, from below an id."""
    return await records_of(PayoutFile, queries.list_files(database, before=before, most=most))


async def find_file(database: Database, file_id: int) -> PayoutFile:
    """One file. Raises: NotFound."""
    found = await list_files(database, before=file_id + 1, most=1)
    if not found or found[0].id != file_id:
        raise NotFound(f"there is no payout file {file_id}")
    return found[0]


async def lines_of(database: Database, vault: Vault, file_id: int) -> list[Line]:
    """A file's transfers, by merchant. Who shows their accounts to an operator writes that down."""
    rows = await records_of(_LineRow, queries.lines_of(database, file_id=file_id))
    return [_line(vault, file_id, row) for row in rows]


def _line(vault: Vault, file_id: int, row: _LineRow) -> Line:
    account = None
    if row.iban_sealed is not None and row.vault_key_id is not None:
        sealed = Sealed(row.vault_key_id, row.iban_sealed)
        opened = vault.open(sealed, purpose=PURPOSE, merchant_id=row.merchant_id, row_id=row.merchant_id)
        account = BankAccount(row.account_holder or row.merchant_name, opened.decode())
    transfer = row.amount, row.currency, row.payout_id, row.open
    return Line(file_id, row.merchant_id, row.merchant_name, *transfer, account, row.suspended)


async def read_transfers(
    database: Database, vault: Vault, actor: Actor, file: PayoutFile, *, now: datetime
) -> list[Transfer]:
    """A file's transfers to be sent; each merchant's log says who has read where they go.

    Raises: Conflict if the file is no longer to be sent, or a merchant was suspended since it was
        made, or has another bank account.
    """
    if file.state is not FileState.MADE or file.left_open < file.transfers:
        raise Conflict(f"payout file {file.id} is {file.state}: it is not to be sent any more")
    lines = await lines_of(database, vault, file.id)
    if (suspended := next((one for one in lines if one.suspended), None)) is not None:
        raise is_suspended(suspended.merchant_id)
    transfers = [Transfer(one.account, one.amount, one.reference) for one in lines if one.account is not None]
    if len(transfers) < len(lines):
        others = ", ".join(f"{one.merchant_name} ({one.merchant_id})" for one in lines if one.account is None)
        raise Conflict(
            worded(
                "the bank account of %(others)s is not the one any more that file %(id)s was made for: "
                "drop the file, unless the bank has it, and make another",
                others=others,
                id=file.id,
            )
        )
    # Nobody reads them unless the logs say so.
    await queries.note_reading(
        database,
        file_id=file.id,
        person_id=actor.person_id,
        operator=actor.operator,
        client_address=actor.client_address,
        action=Action.bank_account_read,
        now=now,
    )
    return transfers


async def record_file(database: Database, vault: Vault, actor: Actor, file: PayoutFile, *, now: datetime) -> list[Line]:
    """Record that the bank has taken a file: each of its transfers is a payout, once, however often
    this is asked for. Returns those that can't be recorded, with why. Moves no money itself.

    Each merchant's row is held for itself, as by any payout. Who is suspended since was sent it all
    the same. Raises: Conflict if it was dropped.
    """
    if file.state is FileState.DROPPED:
        raise was_dropped(file.id)
    problems = []
    for line in await lines_of(database, vault, file.id):
        if line.open:
            problem = await _record_line(database, actor, line, now=now)
            problems += [replace(line, problem=problem)] if problem else []
    return problems


async def _record_line(database: Database, actor: Actor, line: Line, *, now: datetime) -> str:
    """Record one transfer; why that can't be, empty if it is."""
    sent = Sent(
        line.amount,
        line.currency,
        line.reference,
        f"person {actor.person_id}" if actor.person_id else "command",
        f"payout file {line.file_id}",
        despite_wait=f"it was sent with payout file {line.file_id}",
        has_left=True,
    )
    try:
        await pay_out(database, actor, Shop(line.merchant_id, live=True), sent, now=now, by_file=line.file_id)
    except PaydeskError as error:
        return error.message
    return ""


async def drop_file(database: Database, actor: Actor, file_id: int, *, now: datetime) -> None:
    """Say that a file was not sent: its money may be sent by another one. A second time changes
    nothing.

    Raises: NotFound; Conflict if something of it is recorded.
    """
    async with database.acquire() as connection, connection.transaction():
        await queries.hold_file(connection, file_id=file_id)
        if await queries.drop_file(connection, file_id=file_id, now=now) is None:
            found = await find_file(connection, file_id)
            if found.state is FileState.DROPPED:
                return
            raise Conflict(worded("transfers of payout file %(file_id)s are recorded, so it was sent", file_id=file_id))
        await record(
            connection,
            actor,
            Action.payout_changed,
            now=now,
            subject=f"payout file {file_id}",
            details={"what": "file dropped"},
        )
