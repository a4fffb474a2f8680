"""One-off items of a subscription: what its next charge has besides its price, once."""

from __future__ import annotations

import secrets
from functools import partial

from starlette.responses import Response

from paydesk.core.errors import Conflict, Malformed
from paydesk.core.money import parse_typed
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.business import acting
from paydesk.domain.business.subscriptions_for_team import SubscriptionForTeam, find_subscription_for_team
from paydesk.domain.merchants.idempotent_calls import check_request_key
from paydesk.domain.payments.requests import read_description
from paydesk.domain.subscriptions.items import (
    ItemDone,
    ItemState,
    WantedItem,
    add_item,
    find_item,
    take_back_item,
)
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_ONE = "/account/{merchant_id}/subscriptions/{subscription_id}/items"
_NEEDS = Permission.cancel_subscription
_REQUEST_KEY = 16
_LONGEST_KEY = 64

STATES = {
    ItemState.WAITING: (mark("Planned"), "yellow"),
    ItemState.CHARGED: (mark("Charged"), "green"),
    ItemState.TAKEN_BACK: (mark("Taken back"), ""),
    ItemState.DROPPED: (mark("Not charged: the subscription has ended"), ""),
}
"""What became of an item, in words, with a tone."""


async def _seen(visit: Visit) -> SubscriptionForTeam:
    return await find_subscription_for_team(visit.database, visit.shop, visit.number("subscription_id"))


def _page(visit: Visit) -> str:
    return visit.url(f"subscriptions/{visit.number('subscription_id')}")


@section.page(_ONE, needs=_NEEDS)
async def ask_for_item(visit: Visit) -> Response:
    """What its next charge shall have besides."""
    seen = await _seen(visit)
    if not seen.subscription.running:
        return visit.go(_page(visit), visit.texts.get("This subscription has ended already."), "info")
    return _form_page(visit, seen)


def _form_page(
    visit: Visit,
    seen: SubscriptionForTeam,
    planned: ItemDone | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    """The form, or what would come of it: `planned`, to be agreed to."""
    currency = seen.subscription.package.terms.currency
    comes: dict[str, str] = {}
    if planned is not None:
        wanted = _wanted(visit, currency)
        comes = {
            "item": wanted.description,
            "amount": visit.money(wanted.amount, currency),
            "price": visit.money(planned.next_amount, currency),
            "moment": visit.moment(planned.next_at) if planned.next_at else "",
        }
    return visit.page(
        "subscription_item.html",
        status=status,
        subscription=seen.subscription,
        page=_page(visit),
        currency=currency,
        typed={name: visit.form.text(name, 1100) for name in ("amount", "description")},
        request_key=(visit.form.text("request_key", _LONGEST_KEY) if planned else "")
        or secrets.token_urlsafe(_REQUEST_KEY),
        comes=comes,
        errors=errors or {},
    )


def _wanted(visit: Visit, currency: str) -> WantedItem:
    """The item that is typed. Raises: Malformed, naming the field."""
    amount = parse_typed(visit.form.text("amount", 40), currency)
    return WantedItem(amount, read_description({"description": visit.form.text("description", 1100)}))


@section.action(_ONE, needs=_NEEDS)
async def add_it(visit: Visit) -> Response:
    """Show what is charged with it, and add it once that is agreed to, however often."""
    seen = await _seen(visit)
    key = check_request_key(visit.form.text("request_key", _LONGEST_KEY), "request_key")
    subscription_id, shop_now = seen.subscription.id, await visit.shop_now()
    try:
        visit.form.require_only("amount", "description", "request_key", boxes=("agreed",))
        wanted = _wanted(visit, seen.subscription.package.terms.currency)
        wish = partial(add_item, wanted=wanted, by="merchant", request_key=f"account {key}")
        if not visit.form.has("agreed"):
            planned = await wish(visit.database, visit.shop, subscription_id, now=shop_now, preview=True)
            return _form_page(visit, seen, planned)
        await acting.change_items(
            visit.database, visit.session, subscription_id, wish, shop_now=shop_now, now=visit.now
        )
    except Malformed as error:
        return _form_page(visit, seen, None, field_errors(visit, error, "amount", "description"), error.status)
    return visit.go(_page(visit), visit.texts.get("It comes with the next charge."))


@section.page(f"{_ONE}/{{item_id}}/take-back", needs=_NEEDS)
async def ask_to_take_back(visit: Visit) -> Response:
    """Whether an item shall not be charged after all."""
    seen = await _seen(visit)
    item = await find_item(visit.database, visit.shop, seen.subscription.id, visit.number("item_id"))
    if not item.may_be_taken_back:
        return visit.go(_page(visit), visit.texts.get("It can’t be taken back any more."), "info")
    currency = seen.subscription.package.terms.currency
    get = visit.texts.get
    return visit.ask(
        get("Take back “%(item)s”?") % {"item": item.description},
        text=get("The next charge is without these %(amount)s.") % {"amount": visit.money(item.amount, currency)},
        button=get("Take it back"),
        back=_page(visit),
        danger=False,
    )


@section.action(f"{_ONE}/{{item_id}}/take-back", needs=_NEEDS)
async def take_it_back(visit: Visit) -> Response:
    """Take it back."""
    subscription_id, item_id = visit.number("subscription_id"), visit.number("item_id")
    wish = partial(take_back_item, item_id=item_id)
    try:
        await acting.change_items(
            visit.database, visit.session, subscription_id, wish, shop_now=await visit.shop_now(), now=visit.now
        )
    except Conflict:
        return visit.go(_page(visit), visit.texts.get("It can’t be taken back any more."), "info")
    return visit.go(_page(visit), visit.texts.get("It is not charged."))
