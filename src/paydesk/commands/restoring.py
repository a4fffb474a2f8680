"""`paydesk restored`: what a database needs after it was put back to an earlier state, before it serves again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.reconciling import compared, show
from paydesk.commands.showing import AsJson, counted, show_json
from paydesk.domain.operations.restoring import GAP, begin_epoch

EXAMPLE = "Example: paydesk restored --since 3d"


@command
async def restored(
    since: Annotated[str, typer.Option(metavar="PERIOD", help="How old the backup is, with a day more.")] = "7d",
    gap: Annotated[int, typer.Option(min=1, max=10**12, help="How many ids of each kind are left out.")] = GAP,
    as_json: AsJson = False,
) -> None:
    """Begin anew after a restore or a failover that lost something; run it before anything serves.

    Ids go on behind a gap, so that none comes twice; then our books are compared with the acquirers' own lists. Exit
    status 1 if anything differs: see what the acquirers know and we don't before customers are let in. Moves no money.
    """
    async with deployment() as here:
        begun = await begin_epoch(here.database, gap=gap)
        found = await compared(here, since)
    differs = any(one.differences for one in found)
    if as_json:
        show_json(asdict(begun) | {"agrees": not differs, "acquirers": [asdict(one) for one in found]})
    else:
        typer.echo(f"epoch {begun.epoch}: {counted(begun.sequences, 'sequence')} go on behind a gap of {gap:,} ids")
        for one in found:
            show(one)
    if differs:
        raise typer.Exit(1)
