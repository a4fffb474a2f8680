"""`paydesk coupon`: what takes something off the price of subscriptions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import HowMany, Live
from paydesk.commands.printing import AsJson, show_json, show_table, shown
from paydesk.core.clock import utc_now
from paydesk.core.money import plain_number, written
from paydesk.core.paging import LARGEST_ID, LATEST, Page, Place, read_moment
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business.coupons_for_team import make_coupon_by, switch_coupon_by
from paydesk.domain.coupons.coupons import Coupon, read_terms
from paydesk.domain.coupons.keeping import list_coupons
from paydesk.domain.merchants.merchant import find_merchant, shop_of

app = typer.Typer(help="Make coupons, see them, and switch them off.", no_args_is_help=True)

MerchantId = Annotated[int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant's id.")]


def _moment(text: str) -> datetime:
    """A moment, UTC unless it has a zone."""
    try:
        return read_moment(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.command("list", epilog="Example: paydesk coupon list 1 --live")
@command
async def list_(merchant_id: MerchantId, live: Live = False, last: HowMany = 50, as_json: AsJson = False) -> None:
    """List a merchant's coupons, newest first, with how often they were used."""
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        found = await list_coupons(here.database, shop, Page(last, Place(LATEST, LARGEST_ID)))
    if as_json:
        show_json([_coupon(one) for one in found])
        return
    show_table(
        ("id", "code", "takes off", "payments", "uses", "until", "state"),
        [
            (
                one.id,
                one.code,
                _off(one),
                one.periods or "all",
                f"{one.uses} / {one.most_uses}" if one.most_uses else one.uses,
                one.valid_until,
                "on" if one.active else "off",
            )
            for one in found
        ],
    )


@app.command(epilog="Example: paydesk coupon add 1 SPRING --percent 20 --periods 3")
@command
async def add(
    merchant_id: MerchantId,
    code: Annotated[str, typer.Argument(metavar="CODE", help="What customers type, in any case.")],
    percent: Annotated[str, typer.Option(help="What it takes off, at most 100.")] = "",
    amount: Annotated[str, typer.Option(help="Or how much, with its --currency.")] = "",
    currency: Annotated[str, typer.Option(help="Of the subscriptions that it is for.")] = "",
    periods: Annotated[int | None, typer.Option(min=1, help="For how many payments; all if left out.")] = None,
    valid_from: Annotated[
        datetime | None, typer.Option("--from", parser=_moment, metavar="WHEN", help="From when on (UTC).")
    ] = None,
    valid_until: Annotated[
        datetime | None, typer.Option("--until", parser=_moment, metavar="WHEN", help="Until when (UTC).")
    ] = None,
    most_uses: Annotated[int | None, typer.Option(min=1, help="How often in all.")] = None,
    most_per_customer: Annotated[int | None, typer.Option(min=1, help="How often by one e-mail address.")] = None,
    sku: Annotated[list[str] | None, typer.Option(help="For this package alone; may be given again.")] = None,
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Make a coupon, which can be used at once; the same one that is there is not made again."""
    numbers = {"periods": periods, "most_uses": most_uses, "most_per_customer": most_per_customer}
    given = {"code": code, "percent": percent, "amount": amount, "currency": currency.upper()}
    given |= {name: str(number) for name, number in numbers.items() if number is not None}
    terms = read_terms(given, tuple(sku or ()), valid_from=valid_from, valid_until=valid_until)
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        made = await make_coupon_by(here.database, COMMAND_LINE, shop, terms, now=utc_now())
    _tell(made, as_json=as_json)


@app.command("switch-off", epilog="Example: paydesk coupon switch-off 1 5")
@command
async def switch_off(
    merchant_id: MerchantId,
    coupon_id: Annotated[int, typer.Argument(metavar="COUPON_ID", min=1, max=LARGEST_ID, help="The coupon's id.")],
    live: Live = False,
    as_json: AsJson = False,
) -> None:
    """Let nobody use a coupon any more; who has used it keeps what they agreed to."""
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        switched = await switch_coupon_by(here.database, COMMAND_LINE, shop, coupon_id, on=False, now=utc_now())
    _tell(switched, as_json=as_json)


def _tell(coupon: Coupon, *, as_json: bool) -> None:
    if as_json:
        show_json(_coupon(coupon))
        return
    state = "can be used" if coupon.active else "is off"
    until = f" until {shown(coupon.valid_until)}" if coupon.active and coupon.valid_until else ""
    typer.echo(f"coupon {coupon.id} ({coupon.code}, {_off(coupon)} off) {state}{until}")


def _off(coupon: Coupon) -> str:
    if coupon.amount is not None and coupon.currency is not None:
        return f"{written(coupon.amount, coupon.currency)} {coupon.currency}"
    return f"{coupon.percent:f} %"


def _coupon(coupon: Coupon) -> dict[str, object]:
    """A coupon for scripts, as the API names it."""
    return {
        "id": coupon.id,
        "code": coupon.code,
        "percent": None if coupon.percent is None else plain_number(coupon.percent),
        "amount": None if coupon.amount is None else plain_number(coupon.amount),
        "currency": coupon.currency,
        "periods": coupon.periods,
        "valid_from": coupon.valid_from,
        "valid_until": coupon.valid_until,
        "most_uses": coupon.most_uses,
        "most_per_customer": coupon.most_per_customer,
        "sku_ids": coupon.skus,
        "active": coupon.active,
        "uses": coupon.uses,
        "created_at": coupon.created_at,
    }
