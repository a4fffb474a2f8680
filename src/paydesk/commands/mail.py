"""`paydesk mail`: which mails wait, went out or were given up,
and sending one of the last once more.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import HowMany, side_word
from paydesk.commands.printing import AsJson, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.operations.mails import MailState, masked, newest_mails, resend_mail

app = typer.Typer(help="See the outbox of mails, and resend those that were given up.", no_args_is_help=True)


@app.command("list", epilog="Example: paydesk mail list --state failed --last 10")
@command
async def list_(
    state: Annotated[MailState | None, typer.Option(help="Only those in this state.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Whole addresses, instead of a…@shop.example.")] = False,
    last: HowMany = 50,
    as_json: AsJson = False,
) -> None:
    """List the newest mails, newest first; those that are due by when they are tried next."""
    async with deployment() as here:
        found = await newest_mails(here.database, state=state, most=last)
    shown = found if full else [masked(one) for one in found]
    if as_json:
        show_json([asdict(one) for one in shown])
        return
    show_table(
        ("id", "merchant", "mode", "kind", "to", "state", "tries", "queued", "next try", "error"),
        [
            (
                one.id,
                one.merchant_id or None,
                side_word(one.live),
                one.kind,
                one.recipient,
                one.state,
                one.attempts,
                one.created_at,
                one.due_at if one.state is MailState.DUE else None,
                one.last_error,
            )
            for one in shown
        ],
    )


@app.command(epilog="Example: paydesk mail resend 17")
@command
async def resend(
    mail_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="The id of a mail that was given up.")],
    as_json: AsJson = False,
) -> None:
    """Send a mail that was given up once more, at once, with today's date."""
    async with deployment() as here:
        await resend_mail(here.database, COMMAND_LINE, mail_id, now=utc_now())
    if as_json:
        show_json({"resent": [mail_id]})
    else:
        typer.echo(f"mail {mail_id} is sent again now; see: paydesk mail list")
