"""`paydesk alarm`: what waits for a person, with its reason; settling what was looked after,
and accepting differences that can be explained.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import HowMany, side_word
from paydesk.commands.printing import AsJson, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.operations.accepting import accept_difference, take_back
from paydesk.domain.operations.alarms import list_alarms, settle_alarm

app = typer.Typer(help="What can't be booked, contradicts or is held: see it, and settle it.", no_args_is_help=True)


@app.command("list", epilog="Example: paydesk alarm list --kind set_aside --json")
@command
async def list_(
    kind: Annotated[AlarmKind | None, typer.Option(help="Only those of this kind.")] = None,
    settled: Annotated[bool, typer.Option("--settled", help="The settled ones instead.")] = False,
    accepted: Annotated[bool, typer.Option("--accepted", help="Differences that were accepted instead.")] = False,
    last: HowMany = 50,
    as_json: AsJson = False,
) -> None:
    """List the alarms that wait for a person, newest first, with their reasons."""
    async with deployment() as here:
        found = await list_alarms(here.database, Page(last), kind=kind, settled=settled, accepted=accepted)
    if as_json:
        show_json([asdict(one) for one in found])
        return
    show_table(
        ("id", "merchant", "mode", "kind", "about", "reason", "times", "since", "last", "settled by", "accepted"),
        [
            (
                one.id,
                one.merchant_id or None,
                side_word(one.live if one.merchant_id else None),
                one.kind,
                one.subject,
                one.reason,
                one.times,
                one.raised_at,
                one.last_at,
                one.settled_by,
                f"{one.accepted_by}: {one.accepted_why}" if one.accepted_at else None,
            )
            for one in found
        ],
    )


@app.command(epilog='Example: paydesk alarm settle 17 --note "refunded by hand at the bank"')
@command
async def settle(
    alarm_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="The id of an open alarm.")],
    note: Annotated[str, typer.Option(help="What was done, for the operators' log.")] = "",
    as_json: AsJson = False,
) -> None:
    """Settle an alarm whose cause was looked after; if it happens again, it is raised again."""
    async with deployment() as here:
        await settle_alarm(here.database, COMMAND_LINE, alarm_id, now=utc_now(), note=note)
    if as_json:
        show_json({"settled": [alarm_id]})
    else:
        typer.echo(f"alarm {alarm_id} is settled")


@app.command(epilog='Example: paydesk alarm accept 17 --note "given back by bank transfer on 3 May"')
@command
async def accept(
    alarm_id: Annotated[
        int, typer.Argument(metavar="ID", min=1, max=2**53 - 1, help="The id of an open alarm `not_reconciled`.")
    ],
    why: Annotated[str, typer.Option("--note", help="Why it may stay so, for the operators' log.")] = "",
    back: Annotated[bool, typer.Option("--take-back", help="Let one that was accepted wait again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take a difference from an acquirer's list as it is, because you can explain it.

    Moves no money. It is no alarm while it says the same, and stays in `paydesk alarm list
    --accepted`.
    """
    async with deployment() as here:
        if back:
            await take_back(here.database, COMMAND_LINE, alarm_id, now=utc_now())
        else:
            await accept_difference(here.database, COMMAND_LINE, alarm_id, why, now=utc_now())
    if as_json:
        show_json({"taken_back" if back else "accepted": [alarm_id]})
    else:
        typer.echo(f"alarm {alarm_id} waits again" if back else f"alarm {alarm_id} is accepted")
