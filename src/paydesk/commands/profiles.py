"""`paydesk profile`: which merchants ask to go live, and the operator's answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.merchants import require_live_acquirer
from paydesk.commands.showing import AsJson, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.merchants.accounts import find_merchant
from paydesk.domain.merchants.profiles import (
    Profile,
    accept_profile,
    find_profile,
    refuse_profile,
    waiting_profiles,
)

app = typer.Typer(help="See merchants' business profiles, accept or refuse them.", no_args_is_help=True)

MerchantId = Annotated[int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant's id.")]


@app.command("list", epilog="Example: paydesk profile list")
@command
async def list_(as_json: AsJson = False) -> None:
    """List the profiles that wait for an answer, longest first."""
    async with deployment() as here:
        waiting = await waiting_profiles(here.database)
    if as_json:
        show_json([asdict(one) for one in waiting])
        return
    show_table(
        ("merchant", "name", "legal name", "country", "submitted"),
        [(one.merchant_id, one.merchant_name, one.legal_name, one.country, one.submitted_at) for one in waiting],
    )


@app.command(epilog="Example: paydesk profile show 1")
@command
async def show(merchant_id: MerchantId, as_json: AsJson = False) -> None:
    """Show what a merchant says about its business; of its bank account only the last digits."""
    async with deployment() as here:
        _print(await find_profile(here.database, merchant_id), as_json)


@app.command(epilog="Example: paydesk profile accept 1")
@command
async def accept(merchant_id: MerchantId, as_json: AsJson = False) -> None:
    """Accept a profile: the merchant may leave test mode from now on, and its team decides when."""
    async with deployment() as here:
        require_live_acquirer(here.settings, await find_merchant(here.database, merchant_id))
        await accept_profile(here.database, COMMAND_LINE, merchant_id, now=utc_now())
        _print(await find_profile(here.database, merchant_id), as_json)


@app.command(epilog='Example: paydesk profile refuse 1 --reason "The website can\'t be reached"')
@command
async def refuse(
    merchant_id: MerchantId,
    reason: Annotated[str, typer.Option(help="What the merchant has to change; its team reads this.")],
    as_json: AsJson = False,
) -> None:
    """Send a profile back with a reason."""
    async with deployment() as here:
        await find_merchant(here.database, merchant_id)
        await refuse_profile(here.database, COMMAND_LINE, merchant_id, reason=reason, now=utc_now())
        _print(await find_profile(here.database, merchant_id), as_json)


def _print(profile: Profile, as_json: bool) -> None:
    facts: dict[str, Any] = {
        "merchant_id": profile.merchant_id,
        "status": profile.status,
        **asdict(profile.details),
        "iban_last4": profile.iban_last4,
        "missing": list(profile.missing),
        "submitted_at": profile.submitted_at,
        "decided_at": profile.decided_at,
        "reason": profile.reason,
        "went_live_at": profile.went_live_at,
    }
    if as_json:
        show_json(facts)
    else:
        show_facts({**facts, "missing": ", ".join(profile.missing)}.items())
