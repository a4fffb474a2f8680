"""`paydesk merchant suspend` and `resume`: whether live payments of an account may begin."""

from __future__ import annotations

from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import MerchantId
from paydesk.commands.printing import AsJson, note, show_json
from paydesk.core.clock import utc_now
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.operations.merchants import resume_merchant, suspend_merchant


@command
async def suspend(
    merchant_id: MerchantId,
    reason: Annotated[str, typer.Option(help="The merchant's team reads this.")],
    as_json: AsJson = False,
) -> None:
    """Let no live checkout and no live charge of a merchant begin;
    renewals wait, and everything else goes on.
    """
    async with deployment() as here:
        await suspend_merchant(here.database, COMMAND_LINE, merchant_id, reason=reason, now=utc_now())
    _say_standing(merchant_id, suspended=True, as_json=as_json)


@command
async def resume(
    merchant_id: MerchantId,
    charge_all_periods: Annotated[
        bool,
        typer.Option("--charge-all-periods", help="Charge all that was missed; see: paydesk subscription missed ID"),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Lift a suspension: of each subscription that fell due meanwhile one period is charged,
    the rest is skipped.
    """
    async with deployment() as here:
        await resume_merchant(here.database, COMMAND_LINE, merchant_id, all_periods=charge_all_periods, now=utc_now())
    _say_standing(merchant_id, suspended=False, as_json=as_json)


def _say_standing(merchant_id: int, *, suspended: bool, as_json: bool) -> None:
    if as_json:
        show_json({"id": merchant_id, "suspended": suspended})
    else:
        note(f"merchant {merchant_id} is {'suspended' if suspended else 'not suspended any more'}")
