"""`paydesk profile`: which merchants ask to go live or to change their profile,
and the operator's answer.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.merchants import require_live_acquirer
from paydesk.commands.printing import AsJson, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.core.paging import read_moment
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business import profile_changes
from paydesk.domain.business.profile_changes import ProfileChange
from paydesk.domain.business.profiles import Profile, find_profile, waiting_profiles
from paydesk.domain.merchants.merchant import find_merchant

app = typer.Typer(
    help="See merchants' business profiles and what they want to change, accept or refuse it.", no_args_is_help=True
)

MerchantId = Annotated[int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant's id.")]


Seen = Annotated[
    str,
    typer.Option(help="Answer only what waits since this moment, as `paydesk profile show` says; else whatever does."),
]


@app.command("list", epilog="Example: paydesk profile list")
@command
async def list_(as_json: AsJson = False) -> None:
    """List the profiles and changes that wait for an answer, longest first."""
    async with deployment() as here:
        waiting = await waiting_profiles(here.database)
    if as_json:
        show_json([asdict(one) for one in waiting])
        return
    show_table(
        ("merchant", "name", "legal name", "country", "asks for", "submitted"),
        [
            (
                one.merchant_id,
                one.merchant_name,
                one.legal_name,
                one.country,
                "a change" if one.change else "going live",
                one.submitted_at,
            )
            for one in waiting
        ],
    )


@app.command(epilog="Example: paydesk profile show 1")
@command
async def show(merchant_id: MerchantId, as_json: AsJson = False) -> None:
    """Show what a merchant says about its business, and what it wants to change;
    of bank accounts the last digits.
    """
    async with deployment() as here:
        await _print(here.database, merchant_id, as_json)


@app.command(epilog="Example: paydesk profile accept 1")
@command
async def accept(
    merchant_id: MerchantId,
    seen: Seen = "",
    despite: Annotated[
        str, typer.Option(help="Why a profile is accepted of which something is missing; the audit log keeps it.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Accept what waits: a profile, so that the merchant may leave test mode,
    or a change of an accepted one.

    A profile of which something is missing is named so, and only accepted with --despite.

    Payouts to a new bank account wait for PAYDESK_IBAN_WAIT_DAYS days.
    """
    async with deployment() as here:
        await require_live_acquirer(here, await find_merchant(here.database, merchant_id))
        waiting = await _seen(here.database, merchant_id, seen)
        try:
            await profile_changes.accept(
                here.database,
                COMMAND_LINE,
                merchant_id,
                seen=waiting,
                despite=despite,
                iban_wait=here.settings.iban_wait,
                now=utc_now(),
            )
        except Malformed as error:
            raise Malformed(f"{error.message}, with --despite", *error.fields) from error
        await _print(here.database, merchant_id, as_json)


@app.command(epilog='Example: paydesk profile refuse 1 --reason "The website can\'t be reached"')
@command
async def refuse(
    merchant_id: MerchantId,
    reason: Annotated[str, typer.Option(help="What the merchant has to change; its team reads this.")],
    seen: Seen = "",
    as_json: AsJson = False,
) -> None:
    """Send what waits back with a reason; an accepted profile stays in force."""
    async with deployment() as here:
        await find_merchant(here.database, merchant_id)
        waiting = await _seen(here.database, merchant_id, seen)
        await profile_changes.refuse(
            here.database, COMMAND_LINE, merchant_id, seen=waiting, reason=reason, now=utc_now()
        )
        await _print(here.database, merchant_id, as_json)


async def _seen(database: Database, merchant_id: int, seen: str) -> datetime:
    try:
        return read_moment(seen) if seen else await profile_changes.seen_now(database, merchant_id)
    except ValueError as error:
        raise Malformed(f"--seen: {error}") from error


def _waits_since(profile: Profile, change: ProfileChange | None) -> str:
    """The moment for --seen, to the microsecond."""
    since = change.proposed_at if change else profile.submitted_at if profile.status == "submitted" else None
    return since.isoformat() if since else ""


async def _print(database: Database, merchant_id: int, as_json: bool) -> None:
    profile = await find_profile(database, merchant_id)
    change = await profile_changes.waiting_change(database, merchant_id)
    differences = change.differences(profile) if change else []
    facts: dict[str, object] = {
        "merchant_id": profile.merchant_id,
        "status": profile.status,
        **asdict(profile.details),
        "iban_last4": profile.iban_last4,
        "missing": list(profile.missing),
        "submitted_at": profile.submitted_at,
        "decided_at": profile.decided_at,
        "reason": profile.reason,
        "payouts_from": profile.payouts_from,
        "went_live_at": profile.went_live_at,
        "seen": _waits_since(profile, change),
        "change": {name: {"accepted": old, "proposed": new} for name, old, new in differences},
    }
    if as_json:
        show_json(facts)
    else:
        changed = {f"change of {name}": f"{old} -> {new}" for name, old, new in differences}
        show_facts({**facts, "missing": ", ".join(profile.missing), "change": len(differences), **changed}.items())
