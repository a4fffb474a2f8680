"""Files of transfers for the operator's bank: make one of all that may be sent, take it to the
bank, and record it, or drop it if it was not sent.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from starlette.responses import Response

from paydesk.adapters.bank_files import transfers_file
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.money import parse_known_currency, written
from paydesk.core.paging import LARGEST_ID
from paydesk.core.spreadsheets import csv_line
from paydesk.core.wording import worded
from paydesk.domain.operations.machinery import people_by_words
from paydesk.domain.operations.payout_file_states import FileState
from paydesk.domain.operations.payout_files import (
    Line,
    PayoutFile,
    drop_file,
    find_file,
    lines_of,
    list_files,
    make_file,
    read_transfers,
    record_file,
    sendable,
)
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import ROWS, list_address
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.texts import mark

section = Section(FACE)
_FILES = "/operator/payouts/files"
_ONE = f"{_FILES}/{{file_id}}"
_SEPA = "EUR"
_COLUMNS = ("reference", "account_holder", "iban", "amount", "currency")

STATES: Mapping[FileState, tuple[str, str]] = {
    FileState.MADE: (mark("Made"), "yellow"),
    FileState.RECORDED: (mark("Recorded"), "green"),
    FileState.DROPPED: (mark("Dropped"), "secondary"),
}


@section.page(_FILES, needs=Access.operator)
async def show_files(visit: Visit) -> Response:
    """What may be sent, by currency, and the files that were made, newest first."""
    before = visit.form.number("before")
    found = await list_files(visit.database, before=before or LARGEST_ID, most=ROWS + 1)
    shown = found[:ROWS]
    return visit.page(
        "payout_files.html",
        sendable=await sendable(visit.database),
        request_key=secrets.token_hex(16),
        found=shown,
        names=await people_by_words(visit.database, (one.made_by for one in shown)),
        states=STATES,
        newest=_FILES if before else "",
        older=list_address(_FILES, {"before": shown[-1].id}) if len(found) > ROWS else "",
    )


@section.action(_FILES, needs=Access.operator, recent=True)
async def make(visit: Visit) -> Response:
    """Make a file of all that may be sent in a currency; a form that comes twice makes one."""
    visit.form.require_only("request", "currency")
    request_key = visit.form.text("request", 64)
    if not request_key:
        raise Malformed(worded("the form is incomplete; open its page again"))
    currency = parse_known_currency(visit.form.text("currency", 40))
    made = await make_file(visit.database, visit.session.operator, currency, request_key, now=visit.now)
    return visit.go(f"{_FILES}/{made}")


@section.page(_ONE, needs=Access.operator)
async def show_file(visit: Visit) -> Response:
    """One file with its transfers."""
    return await _page(visit, await find_file(visit.database, visit.number("file_id")))


async def _page(visit: Visit, file: PayoutFile, problems: list[Line] | None = None, status: int = 200) -> Response:
    return visit.page(
        "payout_file.html",
        status=status,
        file=file,
        names=await people_by_words(visit.database, [file.made_by]),
        state=STATES[file.state],
        lines=await lines_of(visit.database, visit.gate.vault, file.id),
        problems={one.merchant_id: one.problem for one in problems or []},
        may_be_sent=file.state is FileState.MADE and file.left_open == file.transfers,
        sepa=file.currency == _SEPA,
        payer=visit.services.payout_account,
        typed=written,
    )


@section.action(f"{_ONE}/sepa", needs=Access.operator, recent=True)
async def take_sepa(visit: Visit) -> Response:
    """The file as banks read it: the same one, however often it is taken."""
    file, payer = await find_file(visit.database, visit.number("file_id")), visit.services.payout_account
    if file.currency != _SEPA:
        raise Conflict(f"SEPA carries {_SEPA} alone; take the list as CSV")
    if payer is None:
        raise Conflict(worded("your own account is not set: PAYDESK_PAYOUT_NAME and PAYDESK_PAYOUT_IBAN"))
    transfers = await read_transfers(visit.database, visit.gate.vault, visit.session.operator, file, now=visit.now)
    content = transfers_file(file.name, payer, transfers, made_at=file.made_at, execute_on=file.made_at.date())
    return _download(content, f"{file.name.lower()}.xml", "application/xml")


@section.action(f"{_ONE}/csv", needs=Access.operator, recent=True)
async def take_csv(visit: Visit) -> Response:
    """The transfers as a list."""
    file = await find_file(visit.database, visit.number("file_id"))
    transfers = await read_transfers(visit.database, visit.gate.vault, visit.session.operator, file, now=visit.now)
    currency = file.currency
    rows = [(one.reference, one.to.holder, one.to.iban, written(one.amount, currency), currency) for one in transfers]
    content = "".join(csv_line(row) for row in (_COLUMNS, *rows)).encode()
    return _download(content, f"{file.name.lower()}.csv", "text/csv; charset=utf-8")


def _download(content: bytes, name: str, media_type: str) -> Response:
    """A file that is only ever saved, and kept by nobody between."""
    headers = {
        "Content-Disposition": f'attachment; filename="{name}"',
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(content, media_type=media_type, headers=headers)


@section.action(f"{_ONE}/record", needs=Access.operator, recent=True)
async def record_taken(visit: Visit) -> Response:
    """Record that the bank has taken it; what can't be recorded says why and may be tried again."""
    file = await find_file(visit.database, visit.number("file_id"))
    problems = await record_file(visit.database, visit.gate.vault, visit.session.operator, file, now=visit.now)
    if problems:
        return await _page(visit, await find_file(visit.database, file.id), problems, 409)
    return visit.go(f"{_FILES}/{file.id}", visit.texts.get("Recorded: each transfer is a payout."))


@section.action(f"{_ONE}/drop", needs=Access.operator, recent=True)
async def drop(visit: Visit) -> Response:
    """Say that it was not sent."""
    file_id = visit.number("file_id")
    await drop_file(visit.database, visit.session.operator, file_id, now=visit.now)
    return visit.go(f"{_FILES}/{file_id}", visit.texts.get("Dropped: another file may send its money."))
