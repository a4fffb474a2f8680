"""`paydesk customer`: what is stored of one customer, handed out or erased."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.printing import AsJson, counted, note, progress, show_facts, show_json, shown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed, NotFound
from paydesk.domain.merchants.merchant import find_merchant
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import Erasure
from paydesk.domain.privacy.erasing import erase as erase_customer
from paydesk.domain.privacy.erasures import ErasureList, still_there
from paydesk.domain.privacy.exporting import export as export_customer

app = typer.Typer(help="Hand out or erase what is stored of a customer.", no_args_is_help=True)

Email = Annotated[str, typer.Option(help="The customer's e-mail address.")]
Order = Annotated[str, typer.Option(help="Instead: an order; whoever paid or was to pay it is meant.")]


@app.command(epilog="Example: paydesk customer export 1 --email ada@example.com > ada.json")
@command
async def export(
    merchant_id: Annotated[
        int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant whose customer it is.")
    ],
    email: Email = "",
    order: Order = "",
) -> None:
    """Print all that is stored of a customer, as JSON by kind;
    it may be long, and belongs to nobody else.
    """
    subject = Subject(merchant_id, email, order)
    async with deployment() as here:
        await find_merchant(here.database, merchant_id)
        rows = await export_customer(here.database, subject, now=utc_now())
    show_json(rows)


@app.command(
    epilog="Examples: paydesk customer erase 1 --email ada@example.com; paydesk customer erase --again-from FILE"
)
@command
async def erase(
    merchant_id: Annotated[
        int | None, typer.Argument(metavar="[MERCHANT_ID]", min=1, help="The merchant whose customer it is.")
    ] = None,
    email: Email = "",
    order: Order = "",
    end: Annotated[bool, typer.Option("--end", help="Cancel the customer's running subscriptions first.")] = False,
    again_from: Annotated[
        Path | None, typer.Option(help="After a restore: erase again whom this list of erasures names.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask first.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase what is stored of a customer; the ledger, and what was paid, stay. It can't be undone.

    Refused while a subscription runs, a pingback is due or an outcome is not known.
    """
    if (merchant_id is None) == (again_from is None):
        raise Malformed("give either a merchant's id, or --again-from; see: paydesk customer erase --help")
    async with deployment() as here:
        if again_from is not None:
            done = await _erase_again(here, again_from)
        else:
            assert merchant_id is not None
            done = [await _erase(here, Subject(merchant_id, email, order), end=end, yes=yes)]
    if as_json:
        show_json(done if again_from is not None else done[0])
        return
    for erasure in done:
        show_facts([("merchant", erasure.merchant_id), *((kind, rows) for kind, rows in erasure.rows.items() if rows)])
    if again_from is not None:
        typer.echo(f"erased again: {counted(len(done), 'customer')}")


async def _erase(here: Deployment, subject: Subject, *, end: bool, yes: bool) -> Erasure:
    await find_merchant(here.database, subject.merchant_id)
    if not yes:
        typer.confirm("Erase this customer for good?", abort=True, err=True)
    now = utc_now()
    erasures = ErasureList(here.settings.erasures, here.vault)
    try:
        done = await erase_customer(
            here.database, subject, end=end, remember=lambda: erasures.remember(subject, now=now), now=now
        )
    except NotFound:
        # Who asks again, since the first time told nothing, is to hear that it is done.
        if (before := erasures.erased_at(subject)) is None:
            raise
        note(f"nothing is left of this customer, who was erased on {shown(before)}")
        return Erasure(subject.merchant_id)
    for one in done.orders_left:
        note(f"the shop's reference {one!r} holds a personal value, and stays: it names the order in the shop's books")
    return done


async def _erase_again(here: Deployment, path: Path) -> list[Erasure]:
    """Raises: SetupError if the list can't be read."""
    erasures = ErasureList(path, here.vault)
    lines = erasures.read()
    with progress("Looking through merchants", len({line.merchant_id for line in lines})) as step:
        subjects = await still_there(here.database, erasures, lines, report=step)
    with progress("Erasing again", len(subjects)) as step:
        done = []
        for subject in subjects:
            with suppress(NotFound):
                done.append(await erase_customer(here.database, subject, again=True, now=utc_now()))
            step()
    return done
