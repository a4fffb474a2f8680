"""`paydesk refund`: an operator gives a customer's money back."""

from __future__ import annotations

import secrets
from dataclasses import asdict
from decimal import Decimal
from typing import Annotated

import typer

from paydesk.commands.connecting import again_under, command, deployment
from paydesk.commands.money_desk import money_desk
from paydesk.commands.printing import AsJson, note, show_facts, show_json
from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.core.money import parse_typed, written
from paydesk.database.pool import Database
from paydesk.domain.merchants.idempotent_calls import check_request_key
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.payments.asked_again import mark_answered
from paydesk.domain.payments.for_api import SeenPayment, find_payment
from paydesk.domain.payments.refunding import Refund, RefundStatus, shop_of_payment
from paydesk.domain.payments.refunding import refund as give_back

EXAMPLE = "Examples: paydesk refund 13330; paydesk refund 13330 --amount 4.00 --json"


@command
async def refund(
    payment_id: Annotated[int, typer.Argument(metavar="PAYMENT_ID", min=1, max=2**53 - 1, help="The payment's id.")],
    amount: Annotated[str | None, typer.Option(help="How much, like 4.00; all that is left if left out.")] = None,
    merchant: Annotated[int | None, typer.Option(min=1, help="Only if it is this merchant's.")] = None,
    live: Annotated[bool | None, typer.Option("--live/--test", help="Only if it is on this side.")] = None,
    key: Annotated[str, typer.Option(help="Your name for this refund: run again under it, money moves once.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before live money is given back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a payment's money back, a part or all of it, and tell the merchant;
    what is only held is let go.

    One that was broken off before it said what it did is the same refund, run again within a day.
    """
    wish = check_request_key(key, "--key") if key else secrets.token_hex(16)
    async with deployment(moves_money=True) as here:
        shop = await _shop(here.database, payment_id, merchant, live)
        seen, _ = await find_payment(here.database, shop, payment_id)
        part = parse_typed(amount, seen.currency, "--amount") if amount is not None else None
        if shop.live and not yes:
            typer.confirm(_question(shop, seen, part), abort=True, err=True)
        async with money_desk(here) as desk:
            now = await shop_time(here.database, shop, real_now=utc_now())
            call = f"paydesk refund {payment_id}{'' if amount is None else f' --amount {part}'}"
            given: Refund | None = None
            # A repeat has the key of what it repeats: under its own, money would move once more.
            with again_under(wish, call, has_key=lambda: bool(key) or (given is not None and not given.again)):
                given = await give_back(
                    desk,
                    shop,
                    payment_id,
                    part,
                    requested_by="operator",
                    request_key=f"command {wish}",
                    told_later=not key,
                    now=now,
                )
                _show(given, named=bool(key), as_json=as_json)
            if not key:
                await mark_answered(here.database, shop, given.reference_id)


async def _shop(database: Database, payment_id: int, merchant: int | None, live: bool | None) -> Shop:
    """Whose payment it is.

    Raises: NotFound, also if it is not where it was said to be.
    """
    shop = await shop_of_payment(database, payment_id)
    if merchant not in (None, shop.merchant_id) or live not in (None, shop.live):
        side = "live" if shop.live else "test"
        raise NotFound(f"payment {payment_id} is another one: a {side} payment of merchant {shop.merchant_id}")
    return shop


def _question(shop: Shop, seen: SeenPayment, part: Decimal | None) -> str:
    what = "all that is left" if part is None else f"{part} {seen.currency}"
    return (
        f"Give back {what} of live payment {seen.id}, order {seen.merchant_order_id!r} of merchant {shop.merchant_id}?"
    )


def _show(given: Refund, *, named: bool, as_json: bool) -> None:
    if as_json:
        show_json({name: value for name, value in asdict(given).items() if name != "again"})
    else:
        show_facts(
            [
                ("payment", given.payment_id),
                ("order", given.merchant_order_id),
                ("reference", given.reference_id),
                ("status", given.status),
                ("given back", f"{written(given.amount, given.currency)} {given.currency}"),
                ("in all", f"{given.total} {given.currency}"),
            ]
        )
    if given.again:
        more = "needs another key" if named else "of the same amount is the same call once more"
        note(f"this was begun before; another refund {more}")
    if given.status is RefundStatus.PROCESSING:
        note("the bank has not answered yet; a worker finds out, and a pingback tells the merchant")
