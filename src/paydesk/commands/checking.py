"""`paydesk check`: proves that payments, ledger, pingbacks and the simulated bank's own
record agree.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from paydesk.adapters.acquirers.simulator import Record
from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.printing import AsJson, counted, note, progress, show_json, shown
from paydesk.commands.reconciling import acquirers_of, back_from
from paydesk.core.clock import utc_now
from paydesk.core.errors import SetupError
from paydesk.database.pool import Database
from paydesk.domain.ledger.checking import BrokenRow, CheckScope, RuleResult, count_open, findings
from paydesk.domain.merchants.merchant import find_merchant
from paydesk.domain.operations.witnessing import compare_lists
from paydesk.settings import Settings, load_settings
from paydesk.web.checkout.page_comparing import FILES, NotReached, differences, fetch

EXAMPLE = "Example: paydesk check --json"


@command
async def check(
    merchant: Annotated[int | None, typer.Option(min=1, help="Only this merchant; all if left out.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Differences printed per rule.")] = 20,
    simulator_record: Annotated[
        Path | None,
        typer.Option(help="The simulated bank's record, if it runs in a process of its own."),
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Compare with the acquirers' own lists, too.")] = False,
    since: Annotated[str, typer.Option(metavar="PERIOD", help="How far back --live reads the lists.")] = "2d",
    pages: Annotated[
        bool,
        typer.Option("--pages", help="Instead, compare the payment page at the public address with what was built."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that nothing is lost or doubled; exit status 1 if anything differs."""
    if pages:
        await _check_pages(as_json=as_json)
        return
    async with deployment() as here:
        if merchant is not None:
            await find_merchant(here.database, merchant)
        record = _record(here.settings, simulator_record)
        with closing(record) if record is not None else nullcontext():
            scope = CheckScope(utc_now(), merchant, record, most, here.settings.retention_months)
            found = await _apply(here.database, scope)
        if live:
            found += await _compare_lists(here, since, merchant, most)
        unsettled = await count_open(here.database, merchant)
    if as_json:
        show_json(_report(found, unsettled, record))
    else:
        _show(found, unsettled)
    if any(finding.found for finding in found):
        raise typer.Exit(1)


async def _check_pages(*, as_json: bool) -> None:
    """Compare the payment page, which needs no database:
    it works wherever this release is installed.
    """
    address = load_settings(as_running=True).address
    try:
        found = await differences(address, fetch)
    except NotReached as error:
        raise SetupError(f"{error}; PAYDESK_BASE_URL is where customers get it") from error
    if as_json:
        show_json({"address": address, "same": not found, "differences": found})
    else:
        for one in found:
            typer.echo(one)
        if not found:
            typer.echo(f"same: {address} serves the payment page that was built, and {len(FILES)} files of card pages")
    if found:
        raise typer.Exit(1)


def _record(settings: Settings, given: Path | None) -> Record | None:
    """The simulated bank's record; None if it is elsewhere or there is none yet,
    and a note says so.

    Raises: SetupError if the given file is not there or is no record.
    """
    path = given or (None if settings.simulator_url else settings.simulator_record)
    if path is not None and path.is_file():
        try:
            return Record(path)
        except sqlite3.Error as error:
            raise SetupError(f"{path} is not a simulated bank's record: {error}") from error
    if given is not None:
        raise SetupError(f"there is no record {given}; give the file that the simulated bank was started with")
    place = f"there is no record {path}" if path is not None else f"it runs at {settings.simulator_url}"
    note(f"the simulated bank is not compared: {place}; give its file with --simulator-record")
    return None


async def _apply(database: Database, scope: CheckScope) -> list[RuleResult]:
    found = []
    with progress("Checking rules", len(scope.rules)) as step:
        async for finding in findings(database, scope):
            found.append(finding)
            step()
    return found


async def _compare_lists(here: Deployment, since: str, merchant: int | None, most: int) -> list[RuleResult]:
    """What the acquirers' own lists say against our books. Raises: Malformed, Unavailable."""
    now = utc_now()
    begin = back_from(now, since)
    async with acquirers_of(here) as desk:
        with progress("Comparing with the acquirers", None) as step:
            return await compare_lists(desk, since=begin, now=now, merchant_id=merchant, most=most, told=step)


def _report(found: list[RuleResult], unsettled: int, record: Record | None) -> dict[str, object]:
    return {
        "clean": not any(finding.found for finding in found),
        "open_outcomes": unsettled,
        "simulator_record": str(record.path) if record is not None else None,
        "left_out": _left_out(found),
        "rules": [
            {
                "name": finding.rule.statement,
                "rule": finding.rule.words,
                "found": finding.found,
                "differences": finding.differences,
            }
            for finding in found
        ],
    }


def _show(found: list[RuleResult], unsettled: int) -> None:
    for finding in found:
        if finding.found:
            typer.echo(f"{counted(finding.found, 'row')} against the rule: {finding.rule.words}")
            for difference in finding.differences:
                typer.echo(f"  {_line(difference)}")
            if finding.found > len(finding.differences):
                typer.echo(f"  and {finding.found - len(finding.differences)} more")
    if left_out := _left_out(found):
        note(f"the simulated bank serves other cells, or deployments, too; left out: {counted(left_out, 'purchase')}")
    if unsettled:
        note(f"still open, in the janitor's care: {counted(unsettled, 'outcome')}")
    if not any(finding.found for finding in found):
        typer.echo(f"clean: {len(found)} rules hold")


def _left_out(found: list[RuleResult]) -> int:
    return max((finding.left_out for finding in found), default=0)


def _line(difference: BrokenRow) -> str:
    whose = f" of merchant {difference.merchant_id}" if difference.merchant_id is not None else ""
    return f"{difference.table} {difference.id}{whose}: {shown(difference.detail)}"
