"""Subscriptions: by state, one with its schedule and history, cancelling;
and the packages that are sold.
"""

from __future__ import annotations

from functools import partial

from starlette.responses import Response

from paydesk.core.errors import Conflict
from paydesk.core.paging import LARGEST_ID
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.billing.for_customer import past_payments
from paydesk.domain.business import acting
from paydesk.domain.business.portal_plans import offer_plan
from paydesk.domain.business.subscriptions_for_team import (
    FAILING,
    cards_charged,
    charges_ahead,
    count_subscriptions,
    failing_subscriptions,
    find_subscription_for_team,
    list_differences,
    list_package_versions,
    list_packages,
    search_subscriptions,
)
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.items import list_items, takes_items
from paydesk.domain.subscriptions.moving import list_moves
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.web.account import subscription_items, subscription_words
from paydesk.web.account.face import FACE
from paydesk.web.account.subscription_story import future_of, past_of
from paydesk.web.console import payment_words
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import (
    COUNTED,
    ROWS,
    count_shown,
    list_address,
    mark_of,
    page_asked,
    searched,
)
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_SUBSCRIPTIONS = "/account/{merchant_id}/subscriptions"
_ONE = f"{_SUBSCRIPTIONS}/{{subscription_id}}"
_OFFERED = mark("Customers may change to it on their page.")
_NOT_OFFERED = mark("It is not offered on customers’ pages any more.")


@section.page(_SUBSCRIPTIONS, needs=Permission.view)
async def show_subscriptions(visit: Visit) -> Response:
    """A page of the list, newest first: of one state, those whose charges fail
    (a search looks at all), or all.
    """
    asked_state, text = visit.form.text("status", 40), searched(visit)
    state = SubscriptionState(asked_state) if asked_state in set(SubscriptionState) else None
    if asked_state == FAILING:
        text = ""
        found = await failing_subscriptions(visit.database, visit.shop, page_asked(visit))
    else:
        found = await search_subscriptions(visit.database, visit.shop, text, state, page_asked(visit))
    shown, path = found[:ROWS], visit.url("subscriptions")
    asked = {"q": text, "status": FAILING if asked_state == FAILING else state or ""}
    last = shown[-1].subscription if len(found) > ROWS else None
    listed = [one.subscription for one in shown]
    return visit.page(
        "subscriptions.html",
        subscriptions=listed,
        cards=await cards_charged(visit.database, visit.shop, listed),
        instrument_words=payment_words.instrument_words,
        views=_views(visit, text),
        current=list_address(path, asked),
        counts={} if text else await _counts(visit),
        words=subscription_words,
        price_of=partial(subscription_words.price_words, visit),
        asked=asked,
        now=await visit.shop_now(),
        newest=list_address(path, asked) if visit.form.text("before") else "",
        older=list_address(path, {**asked, "before": mark_of(last.created_at, last.id)}) if last else "",
    )


def _views(visit: Visit, text: str) -> list[tuple[str, str]]:
    """The list of each state, with the same search."""
    path = visit.url("subscriptions")
    states = [(str(state), named[0]) for state, named in payment_words.SUBSCRIPTION_STATES.items()]
    views = [("", mark("All")), *states, (FAILING, mark("Payment failing"))]
    return [(list_address(path, {"q": text, "status": value}), visit.texts.get(name)) for value, name in views]


async def _counts(visit: Visit) -> dict[str, str]:
    """How many subscriptions are in each view that is cheap to count, by its address:
    not the active ones, of which there are most.
    """
    states = [FAILING, *(str(one) for one in SubscriptionState if one is not SubscriptionState.ACTIVE)]
    numbers = await count_subscriptions(visit.database, visit.shop, states, COUNTED + 1)
    path = visit.url("subscriptions")
    return {list_address(path, {"status": state}): count_shown(number) for state, number in numbers.items()}


@section.page(_ONE, needs=Permission.view)
async def show_subscription(visit: Visit) -> Response:
    """One subscription: what was agreed, what comes, what was.
    Its portal's link is for those who may cancel.
    """
    seen = await find_subscription_for_team(visit.database, visit.shop, visit.number("subscription_id"))
    past = await past_payments(visit.database, seen.subscription)
    balance = await find_balance(visit.database, visit.shop, seen.subscription.id)
    ahead = charges_ahead(seen.subscription, balance=balance)
    services = visit.services
    base = services.address if visit.shop.live else services.sandbox_address
    return visit.part(
        "subscription.html",
        "news",
        seen=seen,
        subscription=seen.subscription,
        terms=seen.subscription.package.terms,
        ahead=ahead,
        older=past.older,
        items=await list_items(visit.database, visit.shop, seen.subscription.id),
        item_states=subscription_items.STATES,
        takes_items=takes_items(seen.subscription),
        differences=await list_differences(visit.database, visit.shop, seen.subscription.id),
        payment_states=payment_words.PAYMENT_STATES,
        instrument=payment_words.instrument_words(seen.brand, seen.last4),
        words=subscription_words,
        to_come=future_of(visit, seen.subscription, ahead),
        lines=past_of(visit, seen.subscription, past.shown),
        price=subscription_words.price_words(visit, seen.subscription.package.terms),
        period_words=partial(subscription_words.period_words, visit),
        per_words=partial(subscription_words.per_words, visit),
        portal=f"{base}/portal/{seen.portal.token(services.desk.vault)}"
        if visit.can(Permission.cancel_subscription)
        else "",
        now=await visit.shop_now(),
    )


@section.page(f"{_ONE}/cancel", needs=Permission.cancel_subscription)
async def ask_to_cancel(visit: Visit) -> Response:
    """Whether to cancel it."""
    seen = await find_subscription_for_team(visit.database, visit.shop, visit.number("subscription_id"))
    page = visit.url(f"subscriptions/{seen.subscription.id}")
    if not seen.subscription.running:
        return visit.go(page, visit.texts.get("This subscription has ended already."), "info")
    text = visit.texts.get("Nothing is charged to %(email)s any more. What was paid stays paid; it can't be resumed.")
    name = seen.subscription.package.terms.name
    return visit.ask(
        visit.texts.get("Cancel the subscription to %(name)s?") % {"name": name},
        text=text % {"email": seen.subscription.email or seen.name},
        button=visit.texts.get("Cancel the subscription"),
        back=page,
    )


@section.action(f"{_ONE}/cancel", needs=Permission.cancel_subscription)
async def cancel(visit: Visit) -> Response:
    """Cancel it at once."""
    subscription_id = visit.number("subscription_id")
    await acting.cancel_subscription(
        visit.database, visit.session, subscription_id, shop_now=await visit.shop_now(), now=visit.now
    )
    page = visit.url(f"subscriptions/{subscription_id}")
    return visit.go(page, visit.texts.get("The subscription is cancelled; your server is told."))


@section.page("/account/{merchant_id}/subscriptions/packages", needs=Permission.view)
async def show_packages(visit: Visit) -> Response:
    """What is sold as a subscription, newest first."""
    before = visit.form.number("before")
    found = await list_packages(visit.database, visit.shop, before=before or LARGEST_ID, most=ROWS + 1)
    shown, path = found[:ROWS], visit.url("subscriptions/packages")
    return visit.page(
        "packages.html",
        packages=shown,
        price_of=partial(subscription_words.price_words, visit),
        newest=path if before else "",
        older=list_address(path, {"before": shown[-1].package.id}) if len(found) > ROWS else "",
    )


@section.page("/account/{merchant_id}/subscriptions/packages/{package_id}", needs=Permission.view)
async def show_one_package(visit: Visit) -> Response:
    """A package's versions; what runs keeps the version that it was taken out on."""
    return await _package_page(visit)


async def _package_page(visit: Visit, error: str = "", status: int = 200) -> Response:
    versions = await list_package_versions(visit.database, visit.shop, visit.number("package_id"))
    return visit.page(
        "package.html",
        status=status,
        error=error,
        versions=versions,
        newest=versions[0].package,
        price_of=partial(subscription_words.price_words, visit),
        period_words=partial(subscription_words.period_words, visit),
        per_words=partial(subscription_words.per_words, visit),
        moves=await list_moves(visit.database, visit.shop, versions[0].package.id),
        move_states=subscription_words.MOVE_STATES,
    )


@section.action("/account/{merchant_id}/subscriptions/packages/{package_id}/offer", needs=Permission.manage_settings)
async def offer(visit: Visit) -> Response:
    """Let customers change to a version on their page, or not any more."""
    package_id, version_id = visit.number("package_id"), visit.form.number("version") or 0
    visit.form.require_only("version", "on")
    on = visit.form.one_of("on", "yes", "no") == "yes"
    try:
        await offer_plan(visit.gate, visit.session, visit.shop, package_id, version_id, on=on, now=visit.now)
    except Conflict as error:
        return await _package_page(visit, str(error), error.status)
    page = visit.url(f"subscriptions/packages/{package_id}")
    return visit.go(page, visit.texts.get(_OFFERED if on else _NOT_OFFERED))
