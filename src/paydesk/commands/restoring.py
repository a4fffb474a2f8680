"""`paydesk restored`: what a database needs after it was put back to an earlier state,
before it serves again.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paydesk.commands.connecting import AGAIN, Deployment, command, deployment
from paydesk.commands.printing import AsJson, counted, note, show_json
from paydesk.commands.reconciling import compared, show
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.periods import occurrence, parse_period
from paydesk.domain.operations.copying import is_a_copy, make_harmless
from paydesk.domain.operations.history import read
from paydesk.domain.operations.holding import hold_restored, lift_if_whole
from paydesk.domain.operations.remembered_accounts import AccountsMemory, accounts_file, lost_accounts
from paydesk.domain.operations.restoring import GAP
from paydesk.equipment import accounts_open, live_acquirer, payment_desk, test_acquirer

EXAMPLE = "Examples: paydesk restored --since 3d; paydesk restored --copy"
_QUESTION = "Make this database a copy for staging? It never takes live payments again, and nothing takes that back"


@command
async def restored(
    since: Annotated[str, typer.Option(metavar="PERIOD", help="How old the backup is, with a day more.")] = "7d",
    gap: Annotated[int, typer.Option(min=1, max=10**12, help="How many ids of each kind are left out.")] = GAP,
    copy: Annotated[bool, typer.Option("--copy", help="It is a copy beside its deployment, for staging.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before --copy.")] = False,
    as_json: AsJson = False,
) -> None:
    """Begin anew after a restore or a failover that lost something; run it before anything serves.

    Ids go on behind a gap, so that none comes twice, and nothing that moves money is begun; then
    our books are compared with the acquirers' own lists, and what was forgotten is adopted. Once
    nothing differs the hold ends. Exit status 1 if anything still does: workers compare again every
    minute, or you take what is left with `paydesk hold accept`. Moves no money.

    With --copy the database is a copy for good: no live payment is taken, charged, given back or
    reported in it.
    """
    back_to = occurrence(utc_now(), parse_period(since, "--since"), -1)
    once_more = AGAIN if copy else "run the same command again: it leaves one more gap in the ids at worst"
    async with deployment(again=once_more) as here:
        if copy:
            await _make_copy(here, gap, yes=yes, as_json=as_json)
            return
        begun = await hold_restored(here.database, since=back_to, gap=gap)
        memory = AccountsMemory(accounts_file(here.settings.data_dir))
        is_live = bool(here.settings.live_acquirer)
        await memory.compare(here.database, await read(here.database), is_live=is_live)
        found = await compared(here, since, fix=here.settings.adopt_forgotten)
        lost = await lost_accounts(here.database)
        for missed in lost:
            note(missed.why)
        differs = bool(lost) or any(one.differences for one in found) or await _differs_now(here)
    if as_json:
        show_json(asdict(begun) | {"agrees": not differs, "acquirers": [asdict(one) for one in found]})
    else:
        typer.echo(f"epoch {begun.epoch}: {counted(begun.sequences, 'sequence')} go on behind a gap of {gap:,} ids")
        for one in found:
            show(one)
        if differs:
            note("nothing that moves money is begun until both agree, or you take what is left: paydesk hold accept")
    if differs:
        raise typer.Exit(1)


async def _differs_now(here: Deployment) -> bool:
    """Whether anything differs, also of what was just made; the hold ends if nothing does."""
    desk = payment_desk(
        here.settings, here.database, here.vault, test_acquirer(here.settings), live_acquirer(here.settings)
    )
    try:
        async with accounts_open(desk):
            return bool(await lift_if_whole(desk, await read(here.database)))
    finally:
        for each in desk.acquirers.values():
            await each.close()


async def _make_copy(here: Deployment, gap: int, *, yes: bool, as_json: bool) -> None:
    """Declare a copy, once its user has agreed.

    Raises: Conflict, also where live payments are taken.
    """
    if here.settings.live_acquirer:
        raise Conflict(
            f"PAYDESK_LIVE_ACQUIRER={here.settings.live_acquirer} is set: are these the settings of the deployment "
            "that takes live payments? A copy takes none, so give it settings of its own first"
        )
    if not yes and not await is_a_copy(here.database):
        typer.confirm(_QUESTION, abort=True, err=True)
    copied = await make_harmless(here.database, gap=gap)
    if as_json:
        show_json(asdict(copied))
    elif copied.declared:
        unsent = f"{counted(copied.pingbacks, 'pingback')} and {counted(copied.mails, 'mail')}"
        typer.echo(f"a copy from now on: {unsent} are not sent, {counted(copied.merchants, 'live merchant')} suspended")
    else:
        typer.echo("it was made a copy before; nothing was changed")
