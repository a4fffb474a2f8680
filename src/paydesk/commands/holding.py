"""`paydesk hold`: why nothing that moves money is begun, and ending that."""

from __future__ import annotations

from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.printing import AsJson, note, show_facts, show_json
from paydesk.core.clock import utc_now
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.operations.history import Reading, read
from paydesk.domain.operations.holding import accept as lift_hold
from paydesk.domain.operations.remembered_accounts import missed_accounts

app = typer.Typer(help="Nothing that moves money is begun: see why, and end it.", no_args_is_help=True)


@app.command("show", epilog="Example: paydesk hold show --json")
@command
async def show_hold(as_json: AsJson = False) -> None:
    """Say whether anything is held, since when, why, back to when acquirers' lists are compared,
    and which accounts are missed.
    """
    async with deployment() as here:
        is_live = bool(here.settings.live_acquirer)
        reading, lost = await read(here.database), await missed_accounts(here.database, is_live=is_live)
    if as_json:
        missed = [one.account for one in lost]
        show_json({"held": bool(reading.held_because), **_facts(reading), "missed_accounts": missed})
    elif reading.held_because:
        show_facts((name.replace("_", " "), value) for name, value in _facts(reading).items())
        for one in lost:
            note(one.why)
    else:
        typer.echo("nothing is held")


def _facts(reading: Reading) -> dict[str, object]:
    back_to = reading.look_since if reading.held_because else None
    return {
        "because": reading.held_because,
        "since": reading.held_at,
        "compared_back_to": back_to,
        "epoch": reading.beat.epoch,
        "server": reading.place,
    }


@app.command(epilog='Example: paydesk hold accept "payment 13330 was given back by hand at the bank"')
@command
async def accept(
    words: Annotated[str, typer.Argument(metavar="WHY", help="Why what is left may be taken, for the operators' log.")],
    as_json: AsJson = False,
) -> None:
    """End the hold though acquirers' lists and our books still differ:
    money may be moved from then on.

    What differs stays in the list of alarms. Look at each first: what only an acquirer knows may be
    charged again.
    """
    async with deployment() as here:
        is_live = bool(here.settings.live_acquirer)
        why = await lift_hold(here.database, COMMAND_LINE, words, is_live=is_live, now=utc_now())
    if as_json:
        show_json({"lifted": True, "because": why})
    else:
        typer.echo(f"no longer held: {why}")
