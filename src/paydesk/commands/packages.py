"""`paydesk package`: what is sold as a subscription, and moving what runs to another version."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from paydesk.commands.connecting import command, deployment
from paydesk.commands.options import HowMany, Live
from paydesk.commands.printing import AsJson, note, show_facts, show_json, show_table
from paydesk.core.clock import utc_now
from paydesk.core.money import written
from paydesk.core.paging import LARGEST_ID
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business.package_moves import move_by, take_back_by
from paydesk.domain.business.subscriptions_for_team import list_package_versions, list_packages
from paydesk.domain.merchants.merchant import find_merchant, shop_of
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.subscriptions.moving import MovePreview, PackageMove, carry_on, find_move, list_moves, preview_move
from paydesk.domain.subscriptions.subscription_object import price_text
from paydesk.domain.subscriptions.subscription_terms import Package, Terms

app = typer.Typer(help="See packages, and move subscriptions to other versions.", no_args_is_help=True)

MerchantId = Annotated[int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant's id.")]
MoveId = Annotated[int, typer.Argument(metavar="MOVE_ID", min=1, max=LARGEST_ID, help="The move's id.")]


@app.command("list", epilog="Example: paydesk package list 1 --package 7")
@command
async def list_(
    merchant_id: MerchantId,
    package: Annotated[
        int | None, typer.Option(metavar="ID", min=1, max=LARGEST_ID, help="The versions of this one.")
    ] = None,
    live: Live = False,
    last: HowMany = 50,
    as_json: AsJson = False,
) -> None:
    """List a merchant's packages by their newest versions, or the versions of one, newest first."""
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        if package is None:
            listed = await list_packages(here.database, shop, most=last)
            found = [(one.package, one.package.subscriptions_count) for one in listed]
        else:
            versions = await list_package_versions(here.database, shop, package)
            found = [(one.package, one.taken) for one in versions[:last]]
    if as_json:
        show_json([_version(one) | {"subscriptions": count} for one, count in found])
        return
    show_table(
        ("package", "version", "sku", "name", "price", "payments", "subscriptions"),
        [
            (
                one.id,
                one.version_id,
                one.terms.sku_id,
                one.terms.name,
                _price(one.terms),
                one.terms.limit or "no limit",
                count,
            )
            for one, count in found
        ],
    )


@app.command(epilog="Example: paydesk package move 1 --from 3 --to 9 --dry-run")
@command
async def move(
    merchant_id: MerchantId,
    from_: Annotated[
        int, typer.Option("--from", metavar="VERSION_ID", min=1, max=LARGEST_ID, help="What is on this version …")
    ],
    to: Annotated[
        int, typer.Option(metavar="VERSION_ID", min=1, max=LARGEST_ID, help="… goes on as this one, of its currency.")
    ],
    live: Live = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would come of it, and move nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let subscriptions go on as another version, each from its next period on;
    until then: take-back.

    Broken off, workers go on with it; `moves` lists what has come of it, where there is nothing
    left to move.
    """
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        now = utc_now()
        shop_now = await shop_time(here.database, shop, real_now=now)
        seen = await preview_move(here.database, shop, from_, to, now=shop_now)
        if not as_json:
            show_facts(_seen(seen))
        if dry_run:
            moved = None
            note("this is a preview: nothing was moved")
        else:
            begun = await move_by(here.database, COMMAND_LINE, shop, from_, to, shop_now=shop_now, now=now)
            while await carry_on(here.database, real_now=utc_now(), merchant_id=merchant_id, move_id=begun.id):
                pass
            moved = await find_move(here.database, shop, begun.id)
            note(f"move {moved.id}: {moved.planned} are planned")
    if as_json:
        show_json(_preview(seen) | {"preview": dry_run, "move": None if moved is None else asdict(moved)})


@app.command(epilog="Example: paydesk package moves 1 --live")
@command
async def moves(merchant_id: MerchantId, live: Live = False, last: HowMany = 20, as_json: AsJson = False) -> None:
    """List a merchant's moves, newest first, with what has come of them."""
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        found = await list_moves(here.database, shop, most=last)
    if as_json:
        show_json([asdict(one) for one in found])
        return
    show_table(
        ("move", "from version", "to version", "state", "to move", "planned", "to come", "moved", "begun"),
        [_row(one) for one in found],
    )


@app.command("take-back", epilog="Example: paydesk package take-back 1 4")
@command
async def take_back(merchant_id: MerchantId, move_id: MoveId, live: Live = False, as_json: AsJson = False) -> None:
    """Take back what is still to come of a move: those subscriptions go on as they are."""
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        await take_back_by(here.database, COMMAND_LINE, shop, move_id, now=utc_now())
        while await carry_on(here.database, real_now=utc_now(), merchant_id=merchant_id, move_id=move_id):
            pass
        move = await find_move(here.database, shop, move_id)
    if as_json:
        show_json(asdict(move))
    else:
        typer.echo(f"move {move.id} is taken back: {move.planned} were planned, {move.done} had moved")


def _price(terms: Terms) -> str:
    return _amount_each(terms, written(terms.price, terms.currency))


def _amount_each(terms: Terms, amount: str) -> str:
    """An amount, with how often it is paid."""
    return f"{amount} {terms.currency} / {terms.period.length}{terms.period.unit[0]}"


def _seen(seen: MovePreview) -> list[tuple[str, object]]:
    """What would come of a move, for people."""
    return [
        ("subscriptions", seen.subscriptions),
        ("pay now", _amount_each(seen.before.terms, written(seen.paid_before, seen.before.terms.currency))),
        ("pay then", _amount_each(seen.after, written(seen.paid_after, seen.after.currency))),
        ("first", seen.first_at),
        ("last", seen.last_at),
        *((f"stay: {reason.replace('_', ' ')}", count) for reason, count in seen.stay.items()),
    ]


def _preview(seen: MovePreview) -> dict[str, object]:
    """The same for scripts."""
    currency = seen.before.terms.currency
    return {
        "subscriptions": seen.subscriptions,
        "currency": currency,
        "paid_before": price_text(seen.paid_before, currency),
        "paid_after": price_text(seen.paid_after, currency),
        "first_at": seen.first_at,
        "last_at": seen.last_at,
        "stay": {str(reason): count for reason, count in seen.stay.items()},
    }


def _version(package: Package) -> dict[str, object]:
    terms = package.terms
    return {
        "package_id": package.id,
        "package_version_id": package.version_id,
        "sku_id": terms.sku_id,
        "name": terms.name,
        "price": price_text(terms.price, terms.currency),
        "currency": terms.currency,
        "period": f"{terms.period.length}{terms.period.unit[0]}",
        "payments": terms.limit,
    }


def _row(move: PackageMove) -> tuple[object, ...]:
    return (
        move.id,
        move.from_version_id,
        move.to_version_id,
        move.state.replace("_", " "),
        move.subscriptions,
        move.planned,
        move.waiting,
        move.done,
        move.created_at,
    )
