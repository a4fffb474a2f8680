"""`paydesk merchant guard`: the guard against card testing at one merchant, its own limits,
and a pause lifted.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.options import Live, MerchantId
from paydesk.commands.printing import AsJson, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business.card_guard import CardGuard, find_card_guard, lift_pause, tighten_some
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.card_guard import Counted, Limits, in_test_mode
from paydesk.equipment import card_limits

app = typer.Typer(help="The guard against card testing: see it, tighten it, end a pause.", no_args_is_help=True)

_OWN = "0 is the operator's again."


@app.command(epilog="Example: paydesk merchant guard show 1 --live --json")
@command
async def show(merchant_id: MerchantId, live: Live = False, as_json: AsJson = False) -> None:
    """Show how tries with cards have gone, how the merchant is guarded now, and by which limits."""
    async with deployment() as here:
        _show(await _find(here, Shop(merchant_id, live)), as_json=as_json)


@app.command("set", epilog="Example: paydesk merchant guard set 1 --live --card 5 --always-authenticate")
@command
async def set_(
    merchant_id: MerchantId,
    live: Live = False,
    checkout: Annotated[int | None, typer.Option(help=f"Attempts to pay one checkout. {_OWN}")] = None,
    address: Annotated[int | None, typer.Option(help=f"Failed tries an hour from one address. {_OWN}")] = None,
    card: Annotated[int | None, typer.Option(help=f"Failed tries an hour with one card. {_OWN}")] = None,
    wrong_cvc: Annotated[int | None, typer.Option(help=f"Wrong security codes a day for one card. {_OWN}")] = None,
    check: Annotated[
        int | None, typer.Option(help=f"Trials and changes of cards an hour with one card. {_OWN}")
    ] = None,
    declines: Annotated[
        int | None, typer.Option(help=f"Declines in ten minutes from which all are asked for 3-D Secure. {_OWN}")
    ] = None,
    always_authenticate: Annotated[
        bool | None,
        typer.Option("--always-authenticate/--as-needed", help="Whether everybody is asked for 3-D Secure."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Lower a merchant's limits below the operator's, which are settings;
    what is not named stays as it is.
    """
    given = {
        Counted.CHECKOUT: checkout,
        Counted.ADDRESS: address,
        Counted.CARD: card,
        Counted.WRONG_CVC: wrong_cvc,
        Counted.CHECK: check,
        Counted.DECLINES: declines,
    }
    changes = {kind: most for kind, most in given.items() if most is not None}
    if not changes and always_authenticate is None:
        raise Malformed("nothing to change; see: paydesk merchant guard set --help")
    shop = Shop(merchant_id, live)
    async with deployment() as here:
        await _find(here, shop)
        await tighten_some(
            here.database,
            COMMAND_LINE,
            shop,
            changes,
            _operators(here, shop),
            always_authenticate=always_authenticate,
            now=utc_now(),
        )
        _show(await _find(here, shop), as_json=as_json)


@app.command(epilog='Example: paydesk merchant guard lift 1 --live --note "a sale, and a bank that was down"')
@command
async def lift(
    merchant_id: MerchantId,
    live: Live = False,
    note: Annotated[str, typer.Option(help="Why, for the operators' log.")] = "",
    as_json: AsJson = False,
) -> None:
    """End a pause before its time: cards are taken again, with 3-D Secure for all,
    and its alarm is settled.
    """
    shop = Shop(merchant_id, live)
    async with deployment() as here:
        await _find(here, shop)
        await lift_pause(here.database, COMMAND_LINE, shop, now=utc_now(), note=note)
        _show(await _find(here, shop), as_json=as_json)


def _operators(here: Deployment, shop: Shop) -> Limits:
    limits = card_limits(here.settings)
    return limits if shop.live else in_test_mode(limits)


async def _find(here: Deployment, shop: Shop) -> CardGuard:
    return await find_card_guard(here.database, shop, _operators(here, shop), now=utc_now())


def _show(guard: CardGuard, *, as_json: bool) -> None:
    limits = [
        {"limit": str(kind), "holds": guard.holds(kind), "operator": guard.operators.most(kind),
         "own": guard.own.limits.get(kind)}
        for kind in Counted
    ]  # fmt: skip
    facts = {
        "state": str(guard.state),
        "always_authenticate": guard.own.always_authenticate,
        "authenticate_until": guard.authenticate_until,
        "paused_until": guard.paused_until,
    }
    if as_json:
        figures = [{**asdict(one), "span": int(one.span.total_seconds())} for one in guard.figures]
        show_json({**facts, "figures": figures, "limits": limits})
        return
    show_facts(facts.items())
    typer.echo()
    show_table(
        ("in the last", "tries", "declined", "stopped"),
        [(f"{one.span}", one.tries, one.declines, one.refused) for one in guard.figures],
    )
    typer.echo()
    show_table(("limit", "holds", "operator's", "own"), [tuple(one.values()) for one in limits])
