"""`paydesk subscription item`: what the next charge has besides the price, once."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Annotated

import typer

from paydesk.commands.connecting import again_under, command, deployment
from paydesk.commands.options import Preview, SubscriptionId
from paydesk.commands.printing import AsJson, note, show_json, show_table, shown
from paydesk.commands.subscription_words import item_facts
from paydesk.core.clock import utc_now
from paydesk.core.money import parse_typed, written
from paydesk.domain.merchants.idempotent_calls import check_request_key
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.operations.subscriptions_for_operator import shop_of_subscription
from paydesk.domain.payments.requests import read_description
from paydesk.domain.subscriptions import items
from paydesk.domain.subscriptions.for_api import find_subscription_for_api
from paydesk.domain.subscriptions.subscription_object import price_text

app = typer.Typer(help="Charge something once, with a subscription's next charge.", no_args_is_help=True)


@app.command(
    epilog='Examples: paydesk subscription item add 17 5.00 "Set-up"; '
    'paydesk subscription item add 17 5.00 "Set-up" --key set-up-17'
)
@command
async def add(
    subscription_id: SubscriptionId,
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="How much, in the subscription's currency.")],
    description: Annotated[str, typer.Argument(metavar="DESCRIPTION", help="What the customer reads of it.")],
    preview: Preview = False,
    key: Annotated[str, typer.Option(help="Your name for this item: run again under it, it is charged once.")] = "",
    as_json: AsJson = False,
) -> None:
    """Have a subscription's next charge take an amount besides its price, once.

    One of the same amount and description that no charge was tried with yet is the same item.
    """
    named = check_request_key(key, "--key") if key else ""
    call = shlex.join(["paydesk", "subscription", "item", "add", str(subscription_id), amount, description])
    async with deployment() as here:
        shop = await shop_of_subscription(here.database, subscription_id)
        now = await shop_time(here.database, shop, real_now=utc_now())
        seen = await find_subscription_for_api(here.database, shop, subscription_id)
        read = parse_typed(amount, seen.subscription.package.terms.currency)
        wanted = items.WantedItem(read, read_description({"description": description}))
        done = None if named else await items.find_waiting(here.database, shop, subscription_id, wanted)
        if done is None:
            wish = named or await items.key_of_repeats(here.database, shop, subscription_id, wanted)
            act = partial(items.add_item, here.database, shop, subscription_id, wanted, by="merchant")
            with again_under(wish, f"{call} --preview" if preview else call):
                done = await act(request_key=f"command {wish}", now=now, preview=preview)
                _tell_item(done, preview=preview, as_json=as_json)
        else:
            _tell_item(done, preview=preview, as_json=as_json)
    if done.item is not None and not done.moved:
        note("this was added before; another one needs " + ("another key" if named else "a --key"))


@app.command(epilog="Example: paydesk subscription item take-back 17 4")
@command
async def take_back(
    subscription_id: SubscriptionId,
    item_id: Annotated[int, typer.Argument(metavar="ITEM_ID", min=1, max=2**53 - 1, help="As `list` shows it.")],
    preview: Preview = False,
    as_json: AsJson = False,
) -> None:
    """Have an item not be charged after all that no charge was tried with."""
    async with deployment() as here:
        shop = await shop_of_subscription(here.database, subscription_id)
        now = await shop_time(here.database, shop, real_now=utc_now())
        done = await items.take_back_item(here.database, shop, subscription_id, item_id, now=now, preview=preview)
    _tell_item(done, preview=preview, as_json=as_json)


@app.command("list", epilog="Example: paydesk subscription item list 17")
@command
async def list_(subscription_id: SubscriptionId, as_json: AsJson = False) -> None:
    """List a subscription's one-off items, newest first."""
    async with deployment() as here:
        shop = await shop_of_subscription(here.database, subscription_id)
        seen = await find_subscription_for_api(here.database, shop, subscription_id)
        found = await items.list_items(here.database, shop, subscription_id)
    currency = seen.subscription.package.terms.currency
    if as_json:
        show_json([item_facts(one, currency) for one in found])
        return
    rows = [
        (one.id, f"{written(one.amount, currency)} {currency}", one.state, one.payment_id, one.description)
        for one in found
    ]
    show_table(("id", "amount", "status", "payment", "description"), rows)


def _tell_item(done: items.ItemDone, *, preview: bool, as_json: bool) -> None:
    """Say what comes with the next charge now, or would."""
    currency = done.subscription.package.terms.currency
    amount = price_text(done.next_amount, currency)
    if as_json:
        item = item_facts(done.item, currency) if done.item else None
        show_json(
            {"item": item, "preview": preview, "balance": done.balance}
            | {"next_charge_at": done.next_at, "next_charge_amount": amount}
        )
        return
    if done.item is not None:
        typer.echo(f"item {done.item.id}, {written(done.item.amount, currency)} {currency}, is {done.item.state}")
    typer.echo(f"the next charge of subscription {done.subscription.id} is {amount} {currency}, {shown(done.next_at)}")
    if preview:
        note("this is a preview: nothing was changed")
