"""`paydesk subscription`: who pays what and when, and ending it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Annotated

import typer

from paydesk.commands import subscription_items
from paydesk.commands.connecting import Deployment, command, deployment
from paydesk.commands.money_desk import money_desk
from paydesk.commands.options import EitherSide, HowMany, Preview, SubscriptionId
from paydesk.commands.printing import AsJson, note, show_facts, show_json, show_table
from paydesk.commands.subscription_words import CHANGES, price_of, said_of, tell_difference
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unsure
from paydesk.core.money import written
from paydesk.core.paging import read_moment
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.billing.differences import ChangedAtOnce
from paydesk.domain.merchants.merchant import find_merchant, shop_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.operations.missed_periods import charge_all_missed, missed_periods
from paydesk.domain.operations.subscriptions_for_operator import newest_subscriptions, shop_of_subscription
from paydesk.domain.subscriptions.changing import Changed, cancel_later, cancel_now, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.for_api import SeenSubscription, find_subscription_for_api
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_object import change_object, price_text, subscription_object

app = typer.Typer(help="See, change, cancel and pause subscriptions.", no_args_is_help=True)
app.add_typer(subscription_items.app, name="item")


def _moment(text: str) -> datetime:
    """A moment, UTC unless it has a zone."""
    try:
        return read_moment(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


@app.command("list", epilog="Example: paydesk subscription list 1 --state Active --last 10")
@command
async def list_(
    merchant_id: Annotated[int | None, typer.Argument(metavar="[MERCHANT_ID]", min=1, help="All if left out.")] = None,
    state: Annotated[
        SubscriptionState | None, typer.Option(case_sensitive=False, help="Only those in this state.")
    ] = None,
    live: EitherSide = None,
    last: HowMany = 50,
    as_json: AsJson = False,
) -> None:
    """List the newest subscriptions, newest first."""
    async with deployment() as here:
        if merchant_id is not None:
            await find_merchant(here.database, merchant_id)
        found = await newest_subscriptions(here.database, merchant_id=merchant_id, live=live, state=state, most=last)
    if as_json:
        show_json([_listed(seen, here) for seen in found])
        return
    show_table(
        ("id", "merchant", "mode", "state", "package", "price", "customer", "paid", "failures", "next charge"),
        [_row(seen.subscription) for seen in found],
    )


@app.command(epilog="Example: paydesk subscription show 17 --json")
@command
async def show(subscription_id: SubscriptionId, as_json: AsJson = False) -> None:
    """Show a subscription as pingbacks show it, with the address of its customer's page."""
    async with deployment() as here:
        shop = await shop_of_subscription(here.database, subscription_id)
        seen = await find_subscription_for_api(here.database, shop, subscription_id)
    if as_json:
        show_json(_shown(seen, here))
    else:
        show_facts(_facts(seen, here))


@app.command(epilog="Example: paydesk subscription cancel 17 --at-period-end")
@command
async def cancel(
    subscription_id: SubscriptionId,
    at_period_end: Annotated[
        bool, typer.Option("--at-period-end", help="Let it end with the period that is paid; until then: undo.")
    ] = False,
    preview: Preview = False,
    as_json: AsJson = False,
) -> None:
    """Cancel a subscription at once: nothing is charged any more,
    and the merchant is told, once.
    """
    act = cancel_later if at_period_end else cancel_now
    await _change(subscription_id, partial(act, by="merchant"), preview=preview, as_json=as_json)


@app.command("change", epilog="Example: paydesk subscription change 17 --price 30.00 --period 1m")
@command
async def change_(
    subscription_id: SubscriptionId,
    version: Annotated[
        int | None,
        typer.Option(min=1, max=2**53 - 1, metavar="ID", help="A package_version_id sold before; else its own."),
    ] = None,
    price: Annotated[str | None, typer.Option(help="What a period costs then, in its currency.")] = None,
    period: Annotated[str | None, typer.Option(help="How long a period is then: 30d, 2w, 6m, 1y.")] = None,
    quantity: Annotated[str | None, typer.Option(help="Of how many it is then; the price is that of one.")] = None,
    sku: Annotated[str | None, typer.Option(help="Another package, with its --name and --price.")] = None,
    name: Annotated[str | None, typer.Option(help="What the package is called.")] = None,
    now_: Annotated[
        bool, typer.Option("--now", help="At once, with nothing charged or given back for the period that is paid.")
    ] = False,
    prorate: Annotated[
        bool,
        typer.Option("--prorate", help="With --now: the next charge has the difference for the rest of the period."),
    ] = False,
    charge: Annotated[
        bool,
        typer.Option("--charge", help="With --now: the difference is charged now, the plan changes once it is paid."),
    ] = False,
    no_credit: Annotated[
        bool,
        typer.Option("--no-credit", help="With --charge: a period that begins now is charged whole."),
    ] = False,
    preview: Preview = False,
    as_json: AsJson = False,
) -> None:
    """Let a subscription go on as another package, or at another price, from its next period on
    (until then: undo), or --now.
    """
    if (version, price, period, quantity, sku, name) == (None,) * 6:
        raise typer.BadParameter("say what it is to become: --version, --price, --period, --quantity, --sku or --name")
    if (prorate or charge) and not now_:
        raise typer.BadParameter("--prorate and --charge are for a change --now; with its period nothing is prorated")
    if no_credit and not charge:
        raise typer.BadParameter("--no-credit is for a period that begins now (--now --charge)")
    if prorate and charge:
        raise typer.BadParameter("the difference is for the next charge (--prorate), or charged now (--charge)")
    prorating = Prorating.NEXT_CHARGE if prorate else Prorating.NONE
    plan = Plan(version, sku_id=sku, name=name, price=price, period=period, quantity=quantity)
    if charge:
        charged = partial(AtOnce, subscription_id, plan, by="merchant", credited=not no_credit, preview=preview)
        await _change_and_charge(charged, as_json=as_json)
        return

    async def wish(database: Database, shop: Shop, subscription_id: int, *, now: datetime, preview: bool) -> Changed:
        act = partial(change_plan, database, shop, subscription_id, plan, by="merchant", at_once=now_)
        return await act(now=now, prorating=prorating, preview=preview)

    await _change(subscription_id, wish, preview=preview, as_json=as_json)


@app.command("undo", epilog="Example: paydesk subscription undo 17")
@command
async def undo_(subscription_id: SubscriptionId, preview: Preview = False, as_json: AsJson = False) -> None:
    """Let a subscription go on as it was that was to end with its period, or to change its plan."""
    await _change(subscription_id, undo, preview=preview, as_json=as_json)


@app.command("pause", epilog="Example: paydesk subscription pause 17 --until 2027-03-01")
@command
async def pause_(
    subscription_id: SubscriptionId,
    until: Annotated[
        datetime | None,
        typer.Option(parser=_moment, metavar="WHEN", help="When it goes on by itself (UTC); else it is resumed."),
    ] = None,
    preview: Preview = False,
    as_json: AsJson = False,
) -> None:
    """Pause a subscription: nothing is charged, and what was paid lasts longer by the pause."""
    await _change(subscription_id, partial(pause, until=until, by="merchant"), preview=preview, as_json=as_json)


@app.command("resume", epilog="Example: paydesk subscription resume 17")
@command
async def resume_(subscription_id: SubscriptionId, preview: Preview = False, as_json: AsJson = False) -> None:
    """End a subscription's pause."""
    await _change(subscription_id, resume, preview=preview, as_json=as_json)


async def _change(
    subscription_id: int, wish: Callable[..., Awaitable[Changed]], *, preview: bool, as_json: bool
) -> None:
    """Carry out what is wanted of a subscription, or show what would come of it."""
    async with deployment() as here:
        shop = await shop_of_subscription(here.database, subscription_id)
        now = await shop_time(here.database, shop, real_now=utc_now())
        changed = await wish(here.database, shop, subscription_id, now=now, preview=preview)
        seen = await find_subscription_for_api(here.database, shop, subscription_id)
    _tell(here, seen, ChangedAtOnce(changed), preview=preview, as_json=as_json)


async def _change_and_charge(wished: Callable[..., AtOnce], *, as_json: bool) -> None:
    """Change a plan now, and charge the difference. Moves money."""
    async with deployment(moves_money=True) as here, money_desk(here) as desk:
        real_now = utc_now()
        wish = wished(now=real_now)
        shop = await shop_of_subscription(here.database, wish.subscription_id)
        wish = replace(wish, now=await shop_time(here.database, shop, real_now=real_now))
        try:
            done = await change_and_charge(desk, shop, wish)
        except Unsure as error:
            raise Unsure(
                f"it is not known whether the difference of subscription {wish.subscription_id} was begun: the "
                "database went away over it. Once it answers, run the same command again: it is refused while that "
                "is under way, and takes nothing for a plan that holds already"
            ) from error
        seen = await find_subscription_for_api(here.database, shop, wish.subscription_id)
    _tell(here, seen, done, preview=wish.preview, as_json=as_json)


def _tell(here: Deployment, seen: SeenSubscription, done: ChangedAtOnce, *, preview: bool, as_json: bool) -> None:
    """Say what came of a wish, or would come of it."""
    changed, difference = done.changed, done.difference
    subscription = changed.subscription
    if as_json:
        charged = {"charged_now": price_text(difference.amount, subscription.package.terms.currency)}
        charge = {"id": difference.payment_id, "status": "processing" if difference.is_open else "successful"}
        more = {"preview": preview, "replaced": change_object(subscription, changed.replaced)}
        whole = _shown(replace(seen, subscription=subscription), here) | more | charged
        show_json(whole | {"charge": charge if difference.payment_id else None})
        return
    typer.echo(said_of(subscription))
    if changed.carried_out is not None or changed.proration is not None:
        typer.echo(f"at once it is of {subscription.package.terms.name}, {price_of(subscription.package.terms)}")
    tell_difference(changed, difference, preview=preview)
    if changed.replaced is not None:
        note(f"this takes the place of: {CHANGES[changed.replaced.type]}")
    if preview:
        note("this is a preview: nothing was changed")


@app.command(epilog="Example: paydesk subscription missed 1 --charge-all")
@command
async def missed(
    merchant_id: Annotated[int, typer.Argument(metavar="MERCHANT_ID", min=1, help="The merchant's id.")],
    charge_all: Annotated[
        bool, typer.Option("--charge-all", help="Have all of it charged, instead of one period of each.")
    ] = False,
    live: Annotated[bool, typer.Option("--live/--test", help="Which side is shown; the choice holds for both.")] = True,
    as_json: AsJson = False,
) -> None:
    """Show what is due after a suspension or an outage: one period of each subscription is charged,
    the rest skipped.

    Before workers run again, or the suspension is lifted, --charge-all has every period charged
    that is due by now.
    """
    async with deployment() as here:
        shop = shop_of(await find_merchant(here.database, merchant_id), live=live)
        now = utc_now()
        found = await missed_periods(here.database, shop, now=await shop_time(here.database, shop, real_now=now))
        if charge_all:
            await charge_all_missed(here.database, COMMAND_LINE, merchant_id, now=now)
    if as_json:
        show_json([asdict(one) | {"skipped": 0 if charge_all else one.skipped} for one in found])
        return
    show_table(
        ("currency", "subscriptions due", "one period each", "periods due", "all of them"),
        [
            (
                one.currency,
                one.subscriptions,
                written(one.once, one.currency),
                one.periods,
                written(one.all_amount, one.currency),
            )
            for one in found
        ],
    )
    note("every period that is due is charged" if charge_all else "one period of each is charged, the rest is skipped")


def _listed(seen: SeenSubscription, here: Deployment) -> dict[str, object]:
    """A subscription in a list for scripts: whose it is, too."""
    subscription = seen.subscription
    return {"merchant_id": subscription.merchant_id, "live": subscription.live} | _shown(seen, here)


def _shown(seen: SeenSubscription, here: Deployment) -> dict[str, object]:
    """The subscription object, where its customer manages it,
    and how many periods were never charged.
    """
    return subscription_object(seen.subscription, with_init=True) | {
        "portal_url": _portal_url(seen, here),
        "missed_periods": seen.subscription.missed,
    }


def _portal_url(seen: SeenSubscription, here: Deployment) -> str:
    base = here.settings.address if seen.subscription.live else here.settings.sandbox_address
    return f"{base}/portal/{seen.portal.token(here.vault)}"


def _row(subscription: Subscription) -> tuple[object, ...]:
    return (
        subscription.id,
        subscription.merchant_id,
        _mode(subscription),
        subscription.state,
        subscription.package.terms.sku_id,
        price_of(subscription.package.terms),
        subscription.email,
        subscription.paid_number_counter,
        subscription.failures,
        subscription.date_next,
    )


def _facts(seen: SeenSubscription, here: Deployment) -> list[tuple[str, object]]:
    subscription = seen.subscription
    terms = subscription.package.terms
    return [
        ("id", subscription.id),
        ("merchant", subscription.merchant_id),
        ("mode", _mode(subscription)),
        ("state", subscription.state),
        ("package", f"{terms.name} ({terms.sku_id})"),
        ("price", price_of(terms)),
        ("trial", f"{terms.trial.period.length} {terms.trial.period.unit}" if terms.trial else None),
        ("payments at most", terms.limit or None),
        ("customer", subscription.email),
        ("first order", subscription.init_merchant_order_id),
        ("payments made", subscription.paid_number_counter),
        ("periods missed", subscription.missed or None),
        ("failures", subscription.failures),
        ("since", subscription.date_start),
        ("last paid", subscription.date_paid),
        ("next charge", subscription.date_next),
        ("ends", subscription.date_end),
        ("to come", said_of(subscription) if subscription.change else None),
        ("cancelled", subscription.date_cancelled),
        ("cancelled by", subscription.cancelled_by),
        ("stopped", subscription.date_stopped),
        ("expired", subscription.date_expired),
        ("customer's page", _portal_url(seen, here)),
    ]


def _mode(subscription: Subscription) -> str:
    return "live" if subscription.live else "test"
