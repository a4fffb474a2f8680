"""`paydesk reconcile`: compares our books with what the acquirers' own lists say."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated

import typer
from dateutil.relativedelta import relativedelta

from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.printing import AsJson, counted, note, progress, show_json, shown
from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound, Unavailable
from paydesk.core.periods import parse_period
from paydesk.domain.acquirers.accounts import not_here
from paydesk.domain.operations.differences import Adopted, Difference, Reconciled
from paydesk.domain.operations.reconciling import reconcile as compare
from paydesk.domain.payments.desk import Desk
from paydesk.domain.proceeds.for_operator import OpenFinding, list_findings
from paydesk.domain.proceeds.reading import read_proceeds
from paydesk.equipment import accounts_open, live_acquirer, payment_desk, test_acquirer

EXAMPLE = "Example: paydesk reconcile --since 7d --fix"


@command
async def reconcile(
    since: Annotated[str, typer.Option(metavar="PERIOD", help="How far back: a number and d, w, m or y.")] = "2d",
    acquirer: Annotated[str, typer.Option(help="Only this acquirer; all if left out.")] = "",
    fix: Annotated[
        bool, typer.Option("--fix", help="Write into our books what acquirers know and the database forgot.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare purchases and refunds with the acquirers' own lists, and what they keep and pay out
    with our books; exit status 1 if anything differs in the end.

    Moves no money, but with --fix and PAYDESK_GIVE_BACK_PAID_TWICE what was paid twice. What
    differs stands in the list of alarms until both agree.
    """
    async with deployment() as here:
        found = await compared(here, since, acquirer, fix=fix)
        findings = await _findings(here, [one.acquirer for one in found])
    agrees = not any(one.differences for one in found) and not any(findings.values())
    if as_json:
        told = [asdict(one) | {"findings": _told(findings[one.acquirer])} for one in found]
        show_json({"agrees": agrees, "acquirers": told})
    else:
        for one in found:
            show(one)
            for each in findings[one.acquirer]:
                typer.echo(f"  {shown(f'{each.kind} {each.subject}: {each.reason}. {each.advice}')}")
    if not agrees:
        raise typer.Exit(1)


async def _findings(here: Deployment, names: list[str]) -> dict[str, list[OpenFinding]]:
    """What differs of what acquirers keep and pay out, as their balances are now."""
    async with acquirers_of(here) as desk:
        await read_balances(desk, names, patience=timedelta(days=here.settings.payout_days))
    return {name: await list_findings(here.database, acquirer=name) for name in names}


async def read_balances(desk: Desk, names: list[str], *, patience: timedelta) -> None:
    """Read balances now, unless somebody else does; one that can't be read is named."""
    for name in names:
        try:
            await read_proceeds(desk, name, patience=patience, now=utc_now(), every=timedelta(0))
        except Unavailable as error:
            note(error.message)


def _told(findings: list[OpenFinding]) -> list[dict[str, object]]:
    return [asdict(one) | {"advice": one.advice} for one in findings]


async def compared(here: Deployment, since: str, acquirer: str = "", *, fix: bool = False) -> list[Reconciled]:
    """What comparing with one acquirer, or with all, came to, so far back as a period such
    as `7d` says.

    With `fix` what our books have forgotten is adopted.

    Raises: Malformed, NotFound, Unavailable.
    """
    now = utc_now()
    begin = back_from(now, since)
    async with acquirers_of(here) as desk:
        return [await _compare(desk, name, begin, now, fix=fix) for name in await named_acquirers(desk, acquirer)]


def back_from(now: datetime, since: str) -> datetime:
    """The time that is as long ago as a period such as `7d` says. Raises: Malformed."""
    period = parse_period(since, "--since")
    return now - relativedelta(**{f"{period.unit}s": period.length})  # type: ignore[arg-type]


@asynccontextmanager
async def acquirers_of(here: Deployment) -> AsyncIterator[Desk]:
    """A desk of the deployment, whose acquirers are let go of in the end."""
    banks = (test_acquirer(here.settings), live_acquirer(here.settings))
    desk = payment_desk(here.settings, here.database, here.vault, *banks)
    try:
        async with accounts_open(desk):
            yield desk
    finally:
        for each in desk.acquirers.values():
            await each.close()


async def named_acquirers(desk: Desk, acquirer: str) -> list[str]:
    """The acquirers to compare with: those of this cell alone. Raises: NotFound."""
    elsewhere = await not_here(desk.database)
    here = [name for name in desk.acquirers if name not in elsewhere]
    if acquirer and acquirer not in here:
        raise NotFound(f'there is no acquirer "{acquirer[:40]}" here, only {", ".join(here)}')
    return [acquirer] if acquirer else here


async def _compare(desk: Desk, name: str, since: datetime, now: datetime, *, fix: bool) -> Reconciled:
    """Compare with one acquirer, whose pages nobody counts before they are read."""
    with progress(f"Comparing with {name}", None) as step:
        return await compare(desk, name, since=since, now=now, told=step, fix=fix)


def show(found: Reconciled) -> None:
    """Print what comparing with one acquirer's list came to."""
    read = f"{counted(found.purchases, 'purchase')} and {counted(found.refunds, 'refund')} of {found.acquirer}"
    foreign = f", {found.foreign} of other software" if found.foreign else ""
    adopted = f"{len(found.adopted)} adopted, " if found.adopted else ""
    typer.echo(f"{read} read{foreign}: {adopted}{counted(len(found.differences), 'difference')}")
    for written in found.adopted:
        typer.echo(f"  adopted: {_line(written)}")
    for over in found.ended:
        typer.echo(f"  ended: {shown(f'{over.what} {over.reference}: {over.reason}')}")
    for one in found.differences:
        typer.echo(f"  {_line(one)}")
    for one in found.accepted:
        typer.echo(f"  accepted: {_line(one)}")


def _line(one: Difference | Adopted) -> str:
    whose = f" (merchant {one.merchant_id}, payment {one.payment_id})" if one.merchant_id is not None else ""
    return shown(f"{one.what} {one.reference or one.key}{whose}: {one.reason}")
