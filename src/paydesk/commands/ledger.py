"""`paydesk balance`, `paydesk ledger export` and `paydesk payout`:
what a merchant has, and how it came to be.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import IO, Annotated, Literal

import msgspec
import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import HowMany, Live
from paydesk.commands.printing import AsJson, note, progress, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed, SetupError
from paydesk.core.money import parse_known_currency, parse_typed, plain_number, written
from paydesk.core.paging import EARLIEST, LATEST, Page, read_moment
from paydesk.core.spreadsheets import csv_line
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.ledger.balances import Posting, balances, count_postings, reserve_calendar, statement
from paydesk.domain.ledger.payouts import LONGEST_REASON, Payout, Sent, list_payouts
from paydesk.domain.merchants.idempotent_calls import check_request_key
from paydesk.domain.merchants.merchant import find_merchant, shop_of
from paydesk.domain.operations.payouts import pay_out, read_bank_account
from paydesk.standard_streams import is_full, is_unwritten

ledger = typer.Typer(help="A merchant's statement.", no_args_is_help=True)
payouts = typer.Typer(help="Money that was sent to merchants.", no_args_is_help=True)

MerchantId = Annotated[int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant's id.")]
Format = Literal["csv", "jsonl"]

_FILES = Path("/proc/self/fd")
_COLUMNS = tuple(Posting.__slots__)
_encoder = msgspec.json.Encoder(decimal_format="number")


@command
async def balance(merchant_id: MerchantId, live: Live = False, as_json: AsJson = False) -> None:
    """Show what a merchant has, by currency: pending, available, and reserve with the days
    of its release.
    """
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        releases = await reserve_calendar(here.database, shop)
        held = await balances(here.database, shop)
    if as_json:
        show_json({"balances": [asdict(one) for one in held], "reserve_releases": [asdict(one) for one in releases]})
        return
    show_table(
        ("currency", "pending", "available", "reserve"),
        [
            (one.currency, *(written(part, one.currency) for part in (one.pending, one.available, one.reserve)))
            for one in held
        ],
    )
    if releases:
        typer.echo()
        show_table(
            ("reserve released on", "currency", "amount"),
            [(r.day, r.currency, written(r.amount, r.currency)) for r in releases],
        )


@ledger.command(epilog="Example: paydesk ledger export 1 --live --from 2026-01-01 --to 2026-02-01 --output january.csv")
@command
async def export(
    merchant_id: MerchantId,
    live: Live = False,
    since: Annotated[str, typer.Option("--from", help="First moment, like 2026-01-01 (UTC).")] = "",
    until: Annotated[str, typer.Option("--to", help="Moment before which it ends.")] = "",
    form: Annotated[Format, typer.Option("--format", help="Comma-separated values, or a JSON object a line.")] = "csv",
    output: Annotated[Path | None, typer.Option(help="File to write; standard output if left out.")] = None,
) -> None:
    """Write every posting of a period, oldest first:
    gross + fees = pending + available + reserve on each line.

    The lines add up to the difference of the balances at the two ends of the period.
    """
    begin, end = _moment(since, "--from", EARLIEST), _moment(until, "--to", LATEST)
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        total = await count_postings(here.database, shop, since=begin, until=end)
        with ExitStack() as stack:
            file = stack.enter_context(_writing(output)) if output is not None else sys.stdout
            step = stack.enter_context(progress("Writing", total))
            postings = statement(here.database, shop, since=begin, until=end)
            lines = await _write(file, form, postings, step)
            file.flush()
    note(f"{lines} postings written")


@payouts.command(epilog="Example: paydesk payout record 1 125.00 USD --reference TRF-2026-0117 --live")
@command
async def record(
    merchant_id: MerchantId,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="How much, like 125.00.")],
    currency: Annotated[str, typer.Argument(metavar="CURRENCY", help="Which currency, like USD.")],
    reference: Annotated[str, typer.Option(help="What the merchant's bank statement shows.")],
    key: Annotated[str, typer.Option(help="Your name for this transfer, if its reference is not its own.")] = "",
    despite_wait: Annotated[
        str, typer.Option(help="Why it is recorded although a new bank account waits; the audit log keeps it.")
    ] = "",
    has_left: Annotated[
        str,
        typer.Option(
            help="How you know that the bank has sent it, like its statement: recorded whatever is available, and "
            "though the merchant is suspended; the audit log keeps it."
        ),
    ] = "",
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Record that you have sent a merchant money, out of its available balance.
    Sends nothing itself.

    The same transfer again is recorded once: the reference says which it is, or the key.
    """
    known = parse_known_currency(currency, "CURRENCY")
    wish = f"command {check_request_key(key, '--key')}" if key else None
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        sent = Sent(
            parse_typed(amount, known, "AMOUNT"),
            known,
            reference,
            "command",
            wish,
            repeats=wish is not None,
            despite_wait=(has_left.strip() or despite_wait.strip())[:LONGEST_REASON],
            has_left=bool(has_left.strip()),
        )
        payout = await pay_out(here.database, COMMAND_LINE, shop, sent, now=utc_now())
    if payout.again:
        note("this was recorded before; another transfer needs a reference of its own, or a --key")
    if as_json:
        show_json(asdict(payout))
    else:
        show_facts(_facts(payout))


@payouts.command(epilog="Example: paydesk payout account 1 --json")
@command
async def account(merchant_id: MerchantId, as_json: AsJson = False) -> None:
    """Show the bank account to pay a merchant out to, with its whole IBAN;
    the audit log keeps that it was read.
    """
    async with deployment() as here:
        found = await read_bank_account(here.database, here.vault, COMMAND_LINE, merchant_id, now=utc_now())
    if as_json:
        show_json(asdict(found))
    else:
        show_facts([("merchant", found.merchant_id), ("account holder", found.holder), ("IBAN", found.written)])


@payouts.command("list", epilog="Example: paydesk payout list 1 --live")
@command
async def list_(
    merchant_id: MerchantId,
    live: Live = False,
    last: HowMany = 50,
    as_json: AsJson = False,
) -> None:
    """List the newest payouts, newest first."""
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        found = await list_payouts(here.database, shop, Page(last))
    if as_json:
        show_json([{name: value for name, value in asdict(one).items() if name != "again"} for one in found])
        return
    show_table(
        ("id", "at", "amount", "currency", "reference", "recorded by"),
        [
            (one.id, one.at, written(one.amount, one.currency), one.currency, one.reference, one.recorded_by)
            for one in found
        ],
    )


def _moment(text: str, name: str, default: datetime) -> datetime:
    if not text:
        return default
    try:
        return read_moment(text)
    except ValueError as error:
        raise Malformed(f"{name}: {error}") from error


@contextmanager
def _writing(path: Path) -> Iterator[IO[str]]:
    """What takes a file's name once it is whole, however many write it at once, and leaves nothing
    else behind; a device, a pipe or stdout is written to as it is.

    Raises: SetupError if it can't be made.
    """
    with _told_of(path):
        before = _found(path)
    if before is not None and os.path.samestat(before, os.fstat(1)):
        yield sys.stdout
        return
    if before is not None and not stat.S_ISREG(before.st_mode):
        with _told_of_disk(path), _opened(path, path) as file:
            yield file
        return
    whole = path.resolve()
    # Of a long name a part: it would have no room for what tells several apart.
    part = whole.with_name(f"{whole.name[:50]}.{token_hex(4)}.part")
    nameless = _nameless(whole.parent)
    try:
        with _told_of_disk(path), nameless or _opened(part, path) as file:
            with _told_of(path):
                _like(before, file.fileno())
            yield file
            with _told_of(path):
                file.flush()
                os.fsync(file.fileno())
                if nameless is not None:
                    # Only with a folder the link is to the file, and not to the link in /proc.
                    os.link(_FILES / str(file.fileno()), part, src_dir_fd=file.fileno())
        with _told_of(path):
            part.replace(whole)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Name the file that can't be written as the operator did. Raises: SetupError."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise
        raise SetupError(f"cannot write {path}: {error.strerror}") from error


@contextmanager
def _told_of_disk(path: Path) -> Iterator[None]:
    """Name the file whose disk fails while it is written: what the database raises meanwhile is
    another thing. Raises: SetupError.
    """
    try:
        yield
    except OSError as error:
        if is_full(error) or not is_unwritten(error):
            raise
        raise SetupError(f"cannot write {path}: {error.strerror}") from error


def _found(path: Path) -> os.stat_result | None:
    """What a path leads to now; None if that is nothing yet."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _like(before: os.stat_result | None, file: int) -> None:
    """Let a file be read by whoever may read the one that it replaces, and by nobody else."""
    if before is not None:
        with suppress(PermissionError):
            os.fchown(file, before.st_uid, before.st_gid)
        os.fchmod(file, stat.S_IMODE(before.st_mode))


def _opened(path: Path, named: Path) -> IO[str]:
    """A file to write. Raises: SetupError with the name that was given."""
    with _told_of(named):
        return path.open("w", encoding="utf-8", newline="")


def _nameless(folder: Path) -> IO[str] | None:
    """A file in a folder that is gone with its process, unless it is given a name before;
    None where there is none.
    """
    if not _FILES.is_dir():
        return None
    try:
        made = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError:
        return None
    return os.fdopen(made, "w", encoding="utf-8", newline="")


async def _write(file: IO[str], form: Format, postings: AsyncIterator[Posting], step: Callable[[], None]) -> int:
    """Write the lines one after the other, however many; returns how many."""
    if form == "csv":
        file.write(csv_line(_COLUMNS, end="\n"))
    lines = 0
    async for posting in postings:
        if form == "csv":
            file.write(csv_line(_cells(posting), end="\n"))
        else:
            file.write(_encoder.encode(_plain(posting)).decode() + "\n")
        lines += 1
        step()
    return lines


def _cells(posting: Posting) -> list[object]:
    """A posting's line: times in ISO 8601, UTC; amounts as plain numbers;
    nothing for what there is none of.
    """
    values = asdict(_plain(posting)) | {"at": posting.at.isoformat(), "kind": str(posting.kind)}
    return [values[name] for name in _COLUMNS]


def _plain(posting: Posting) -> Posting:
    """The posting with its amounts as the API writes them: 10, not 10.0000."""
    return replace(
        posting,
        gross=plain_number(posting.gross),
        fees=plain_number(posting.fees),
        pending=plain_number(posting.pending),
        available=plain_number(posting.available),
        reserve=plain_number(posting.reserve),
    )


def _facts(payout: Payout) -> list[tuple[str, object]]:
    return [
        ("payout", payout.id),
        ("amount", f"{written(payout.amount, payout.currency)} {payout.currency}"),
        ("reference", payout.reference),
        ("at", payout.at),
    ]
