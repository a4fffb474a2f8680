"""`paydesk proceeds`: what acquirers keep and pay out, and what differs of it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import HowMany
from paydesk.commands.printing import AsJson, note, show_json, show_table
from paydesk.commands.reconciling import acquirers_of, back_from, named_acquirers, read_balances
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.core.money import written
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.operations.acquirer_rules import parse_bound
from paydesk.domain.operations.proceeds import Correction, accept_finding, correct_finding, take_back_correction
from paydesk.domain.proceeds.for_operator import OpenFinding, list_bank_payouts, list_findings, list_margins

app = typer.Typer(
    help="What acquirers keep of payments and pay out to your bank, and what differs of it.", no_args_is_help=True
)

OneAcquirer = Annotated[str, typer.Option(help="Only this acquirer; all if left out.")]


@app.command(epilog="Example: paydesk proceeds read --acquirer stripe")
@command
async def read(acquirer: OneAcquirer = "", as_json: AsJson = False) -> None:
    """Read the acquirers' balances now, and compare them; workers do so every hour.

    Exit status 1 if anything differs. Moves no money.
    """
    async with deployment() as here, acquirers_of(here) as desk:
        names = await named_acquirers(desk, acquirer)
        await read_balances(desk, names, patience=timedelta(days=here.settings.payout_days))
        found = [one for name in names for one in await list_findings(here.database, acquirer=name)]
    if as_json:
        show_json({"agrees": not found, "findings": [asdict(one) | {"advice": one.advice} for one in found]})
    else:
        _show_findings(found, as_json=False)
    if found:
        raise typer.Exit(1)


@app.command("list", epilog="Example: paydesk proceeds list --json")
@command
async def list_(
    acquirer: OneAcquirer = "",
    accepted: Annotated[bool, typer.Option("--accepted", help="Those that were accepted, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what differs, the newest first, with its reasons."""
    async with deployment() as here:
        found = await list_findings(here.database, acquirer=acquirer or None, accepted=accepted)
    _show_findings(found, as_json=as_json)


@app.command(epilog='Example: paydesk proceeds accept 17 --note "they corrected it in June"')
@command
async def accept(
    finding_id: Annotated[int, typer.Argument(metavar="ID", min=1, max=2**53 - 1, help="The id of a finding.")],
    why: Annotated[str, typer.Option("--note", help="Why it may stay so, for the operators' log.")],
) -> None:
    """Take a finding as it is; it stays quiet while it says the same."""
    async with deployment() as here:
        await accept_finding(here.database, COMMAND_LINE, finding_id, why, now=utc_now())
    note(f"finding {finding_id} is accepted")


@app.command(epilog='Example: paydesk proceeds correct 17 --less 0.05 --fee --note "their fee was 0.30, not 0.25"')
@command
async def correct(
    finding_id: Annotated[int, typer.Argument(metavar="ID", min=1, max=2**53 - 1, help="The id of a finding.")],
    more: Annotated[str, typer.Option(metavar="AMOUNT", help="What the acquirer owes more than our books say.")] = "",
    less: Annotated[str, typer.Option(metavar="AMOUNT", help="What it owes less.")] = "",
    fee: Annotated[bool, typer.Option("--fee", help="It is a fee: it counts among the costs.")] = False,
    why: Annotated[str, typer.Option("--note", help="Why, for the operators' log.")] = "",
    take_back: Annotated[bool, typer.Option("--take-back", help="Post the opposite of what was posted so.")] = False,
    as_json: AsJson = False,
) -> None:
    """Set your own books right by a posting beside what was told, in the currency of what differs;
    the finding is accepted by that. Moves no money, and changes no merchant's books.
    """
    correction = None if take_back else _correction(more, less, is_fee=fee)
    async with deployment() as here:
        if correction is None:
            done = await take_back_correction(here.database, COMMAND_LINE, finding_id, now=utc_now())
        else:
            done = await correct_finding(here.database, COMMAND_LINE, finding_id, correction, why, now=utc_now())
    if as_json:
        show_json(asdict(done))
    else:
        posted = f"{written(done.corrected, done.corrected_currency)} {done.corrected_currency}"
        note(f"{posted} are posted for finding {finding_id}")


def _correction(more: str, less: str, *, is_fee: bool) -> Correction:
    """What was typed. Raises: Malformed."""
    if bool(more) == bool(less):
        raise Malformed("say what the acquirer owes --more, or --less, than our books say", "more")
    amount = parse_bound(more or less, "--more" if more else "--less")
    if amount <= 0:
        raise Malformed("an amount is above 0: --less takes away", "less")
    return Correction(amount if more else -amount, is_fee)


@app.command(epilog="Example: paydesk proceeds payouts --acquirer stripe --last 10")
@command
async def payouts(acquirer: OneAcquirer = "", last: HowMany = 50, as_json: AsJson = False) -> None:
    """List the payouts to your bank, the newest first."""
    async with deployment() as here:
        found = await list_bank_payouts(here.database, acquirer=acquirer or None, most=last)
    if as_json:
        show_json([asdict(one) for one in found])
        return
    rows = [
        (one.acquirer, one.reference, one.at, one.currency, one.amount, one.state, one.lines, one.findings)
        for one in found
    ]
    show_table(("acquirer", "payout", "at", "currency", "amount", "state", "lines", "findings"), rows)


@app.command(epilog="Example: paydesk proceeds margins --since 3m")
@command
async def margins(
    since: Annotated[str, typer.Option(metavar="PERIOD", help="How far back: a number and d, w, m or y.")] = "3m",
    as_json: AsJson = False,
) -> None:
    """Show what is left of merchants' fees after the acquirers' costs, by account and month."""
    now = utc_now()
    begin = back_from(now, since).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    async with deployment() as here:
        found = await list_margins(here.database, since=begin, until=now)
    if as_json:
        show_json([asdict(one) | {"margin": one.margin} for one in found])
        return
    rows = [(f"{one.month:%Y-%m}", one.acquirer, one.currency, one.income, one.cost, one.margin) for one in found]
    show_table(("month", "acquirer", "currency", "our fees", "cost", "margin"), rows)


def _show_findings(found: list[OpenFinding], *, as_json: bool) -> None:
    if as_json:
        show_json([asdict(one) | {"advice": one.advice} for one in found])
        return
    rows = [
        (one.id, one.acquirer, one.kind, one.subject, one.payout, one.payment_id, one.reason, one.advice, one.found_at)
        for one in found
    ]
    titles = ("id", "acquirer", "finding", "about", "payout", "payment", "reason", "what to do", "since")
    show_table(titles, rows)
