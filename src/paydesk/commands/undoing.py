"""`paydesk undo`: gives back a purchase that an acquirer has and our books don't."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.printing import AsJson, show_facts, show_json
from paydesk.commands.reconciling import acquirers_of, named_acquirers
from paydesk.core.clock import utc_now
from paydesk.core.money import written
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.operations.giving_back import find_stray, give_back, settle_given_back
from paydesk.domain.payments.desk import Desk

EXAMPLE = "Example: paydesk undo 0f8a2c4e-6b1d-4f3a-9c57-2e8d1b7a6c40 --acquirer stripe"


@command
async def undo(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Its key, as `paydesk reconcile` names it.")],
    acquirer: Annotated[str, typer.Option(help="Where it was made.")],
    settled: Annotated[
        str, typer.Option(metavar="HOW", help="The acquirer will not, and its customer has the money in another way.")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give back all of a purchase that an acquirer has and our books don't,
    such as one of an order paid twice.

    What is in our books is given back by `paydesk refund`. The merchant is told nothing: tell them.

    With --settled nothing is given back: it ends what the acquirer refuses to undo, as the alarm
    `contradiction` names it, once the acquirer has refused again.
    """
    async with deployment() as here, acquirers_of(here) as desk:
        await named_acquirers(desk, acquirer)
        if settled:
            await _settle(desk, acquirer, key, settled, as_json=as_json)
            return
        stray = await find_stray(desk, acquirer, key)
        amount = f"{written(stray.amount, stray.currency)} {stray.currency}"
        if not yes:
            question = f"Give back {amount}, taken at {acquirer} for order {stray.merchant_order_id!r}?"
            typer.confirm(question, abort=True, err=True)
        given = await give_back(desk, acquirer, key, actor=COMMAND_LINE, now=utc_now())
    if as_json:
        show_json(asdict(given))
    else:
        show_facts([("order", given.merchant_order_id), ("reference", given.reference), ("given back", amount)])


async def _settle(desk: Desk, acquirer: str, key: str, how: str, *, as_json: bool) -> None:
    """End what the acquirer will not undo; say so if it has undone it after all."""
    ended = await settle_given_back(desk, acquirer, key, how, actor=COMMAND_LINE, now=utc_now())
    if as_json:
        show_json({"settled": ended is not None, "given_back": ended is None})
    elif ended is None:
        typer.echo(f"{acquirer} has given it back after all: its customer must not have it a second time")
    else:
        typer.echo(f"{written(ended.amount, ended.currency)} {ended.currency} for {ended.merchant_order_id}: settled")
