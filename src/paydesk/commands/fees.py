"""`paydesk fees`: what a merchant pays in each currency."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer

from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.options import MerchantId
from paydesk.commands.printing import AsJson, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.core.money import parse_currency, plain_number
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.merchants.merchant import find_merchant
from paydesk.domain.operations.fees import SHOWN, fee_amounts, follow_the_rule, set_fee_amounts

app = typer.Typer(help="Show and set the amounts of a merchant's fees per currency.", no_args_is_help=True)

Currency = Annotated[str, typer.Argument(metavar="CURRENCY", help="Which currency, like JPY.")]


@app.command(epilog="Example: paydesk fees show 1 --json")
@command
async def show(merchant_id: MerchantId, as_json: AsJson = False) -> None:
    """Show what a merchant pays per currency: its own amounts, and some by the rule."""
    async with deployment() as here:
        await _show(here, merchant_id, as_json=as_json)


@app.command("set", epilog="Example: paydesk fees set 1 JPY --fixed 30 --chargeback-fee 1500")
@command
async def set_(
    merchant_id: MerchantId,
    currency: Currency,
    fixed: Annotated[str, typer.Option(help="The fixed part of each payment, in main units of the currency.")],
    chargeback_fee: Annotated[str, typer.Option(help="The fee of a chargeback.")],
    as_json: AsJson = False,
) -> None:
    """Set what a merchant pays in a currency from now on."""
    amounts = {"fixed": _number(fixed, "--fixed"), "chargeback_fee": _number(chargeback_fee, "--chargeback-fee")}
    async with deployment() as here:
        await set_fee_amounts(here.database, COMMAND_LINE, merchant_id, currency, **amounts, now=utc_now())
        await _show(here, merchant_id, currency, as_json=as_json)


@app.command(epilog="Example: paydesk fees usual 1 JPY")
@command
async def usual(merchant_id: MerchantId, currency: Currency, as_json: AsJson = False) -> None:
    """Let a merchant pay in a currency what its plan says by the rule again."""
    async with deployment() as here:
        await follow_the_rule(here.database, COMMAND_LINE, merchant_id, currency, now=utc_now())
        await _show(here, merchant_id, currency, as_json=as_json)


async def _show(here: Deployment, merchant_id: int, currency: str = "", *, as_json: bool) -> None:
    await find_merchant(here.database, merchant_id)
    wanted = sorted({*SHOWN, parse_currency(currency)} if currency else SHOWN)
    found = await fee_amounts(here.database, merchant_id, wanted)
    if as_json:
        show_json([asdict(one) for one in found])
        return
    show_table(
        ["currency", "fixed part", "chargeback", "set by"],
        [
            [one.currency, f"{plain_number(one.fixed):f}", f"{plain_number(one.chargeback_fee):f}",
             "hand" if one.own else "the rule"]
            for one in found
        ],
    )  # fmt: skip


def _number(text: str, name: str) -> Decimal:
    try:
        number = Decimal(text) if text.isascii() and len(text) <= 20 else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite():
        raise Malformed(f'{name} "{text[:20]}" is not a number; write it like 0.30', name)
    return number
