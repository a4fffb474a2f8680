"""Changes of a subscription that come later: another plan, ending with its period, pausing,
and back.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, date, datetime, time
from functools import partial

from starlette.responses import Response

from paydesk.core.errors import Malformed
from paydesk.core.periods import zone_named
from paydesk.core.wording import worded
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.billing.differences import ChangedAtOnce
from paydesk.domain.billing.foreseeing import Foreseen, foreseen, shown
from paydesk.domain.business import acting
from paydesk.domain.business.subscriptions_for_team import (
    SubscriptionForTeam,
    find_subscription_for_team,
    list_packages,
)
from paydesk.domain.merchants.idempotent_calls import check_request_key
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.changing import Changed, cancel_later, pause, resume, undo
from paydesk.domain.subscriptions.changing_plans import Plan, Prorating, change_plan
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.web.account.face import FACE
from paydesk.web.account.subscription_words import price_words
from paydesk.web.console.forms import Form
from paydesk.web.console.guards import Section, field_errors
from paydesk.web.console.problems import error_words
from paydesk.web.console.visit import Visit

section = Section(FACE)
_ONE = "/account/{merchant_id}/subscriptions/{subscription_id}"
_NEEDS = Permission.cancel_subscription
_NOW, _NEXT, _CHARGE = "now", "next", "charge"
"""When its plan is to change, if not with its period: without proration, the next charge has the
difference, or that is charged now.
"""
_REQUEST_KEY = 16
_LONGEST_KEY = 64
_MOST_PACKAGES = 200
"""How many packages there are to choose from, the newest."""


async def _seen(visit: Visit) -> SubscriptionForTeam:
    return await find_subscription_for_team(visit.database, visit.shop, visit.number("subscription_id"))


def _page(visit: Visit) -> str:
    return visit.url(f"subscriptions/{visit.number('subscription_id')}")


async def _foreseen(visit: Visit, changed: Changed | ChangedAtOnce) -> Foreseen:
    """What a previewed wish comes to."""
    done = changed if isinstance(changed, ChangedAtOnce) else ChangedAtOnce(changed)
    return foreseen(done, await find_balance(visit.database, visit.shop, visit.number("subscription_id")), preview=True)


async def _previewed(visit: Visit, wish: acting.Wish) -> Changed:
    """What would come of a wish. Raises: Conflict."""
    return await wish(
        visit.database, visit.shop, visit.number("subscription_id"), now=await visit.shop_now(), preview=True
    )


async def _carried_out(visit: Visit, wish: acting.Wish) -> Subscription:
    subscription_id, shop_now = visit.number("subscription_id"), await visit.shop_now()
    changed = await acting.change_subscription(
        visit.database, visit.session, subscription_id, wish, shop_now=shop_now, now=visit.now
    )
    return changed.subscription


def _charged(visit: Visit, comes: Foreseen) -> dict[str, str]:
    """What is charged next, and when, for a sentence."""
    moment = visit.moment(comes.next_at) if comes.next_at else "–"
    return {"price": visit.money(comes.next_amount, comes.currency), "moment": moment}


async def _ask_to_go_on(
    visit: Visit, wish: acting.Wish, title: str, text: str, button: str, uncharged: str = ""
) -> Response:
    """Ask before a subscription goes on, with what is charged then; `uncharged` is said instead
    where nothing is.
    """
    changed = await _previewed(visit, wish)
    if not changed.moved:
        return visit.go(_page(visit))
    after = changed.subscription
    if uncharged and after.date_next is None:
        text = uncharged
    return visit.ask(
        title % {"name": after.package.terms.name},
        text=text % _charged(visit, await _foreseen(visit, changed)),
        button=button,
        back=_page(visit),
        danger=False,
    )


@section.page(f"{_ONE}/end", needs=_NEEDS)
async def ask_to_end(visit: Visit) -> Response:
    """Whether it shall end with the period that is paid, and when that is."""
    ended = (await _previewed(visit, partial(cancel_later, by="merchant"))).subscription
    if not ended.running or ended.change is None or ended.change.due_at is None:
        return visit.go(f"{_page(visit)}/cancel")
    text = visit.texts.get("It ends on %(moment)s and is not charged any more. Until then you can keep it after all.")
    return visit.ask(
        visit.texts.get("Let the subscription to %(name)s end with its period?") % {"name": ended.package.terms.name},
        text=text % {"moment": visit.moment(ended.change.due_at)},
        button=visit.texts.get("Let it end with its period"),
        back=_page(visit),
    )


@section.action(f"{_ONE}/end", needs=_NEEDS)
async def end(visit: Visit) -> Response:
    """Let it end with its period."""
    await _carried_out(visit, partial(cancel_later, by="merchant"))
    return visit.go(_page(visit), visit.texts.get("It is not charged any more. Your server is told when it has ended."))


@section.page(f"{_ONE}/change", needs=_NEEDS)
async def ask_for_plan(visit: Visit) -> Response:
    """What its next period shall be of."""
    seen = await _seen(visit)
    if not seen.subscription.running:
        return visit.go(_page(visit), visit.texts.get("This subscription has ended already."), "info")
    return await _plan_page(visit, seen)


async def _plan_page(
    visit: Visit,
    seen: SubscriptionForTeam,
    planned: ChangedAtOnce | None = None,
    errors: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    """The form, or what would come of it: `planned`, to be agreed to."""
    terms = seen.subscription.package.terms
    listed = await list_packages(visit.database, visit.shop, most=_MOST_PACKAGES)
    offered = [one.package for one in listed if one.package.terms.currency == terms.currency]
    return visit.page(
        "subscription_change.html",
        status=status,
        subscription=seen.subscription,
        page=_page(visit),
        now_is=price_words(visit, terms),
        packages=[(one.version_id, f"{one.terms.name}, {price_words(visit, one.terms)}") for one in offered],
        typed={name: visit.form.text(name, 40) for name in ("version", "price", "quantity", "period", "when")},
        # What was declined is another wish when it is sent again.
        request_key=(visit.form.text("request_key", _LONGEST_KEY) if planned else "") or _fresh_key(),
        at=(await visit.shop_now()).isoformat(),
        revision=seen.subscription.revision,
        comes=await _in_words(visit, planned) if planned else {},
        errors=errors or {},
    )


async def _in_words(visit: Visit, planned: ChangedAtOnce) -> dict[str, str]:
    """What would come of another plan, for a sentence; `how` says which."""
    comes, due = await _foreseen(visit, planned), planned.difference
    terms = planned.changed.subscription.as_charged_next.package.terms
    currency, when = terms.currency, visit.form.text("when", 40)
    known = [
        ("begins", comes.begins and comes.charged_now),
        ("credited", comes.begins),
        ("charged", comes.charged_now),
        ("counts", due.taken_up),
        ("settled", when in (_NEXT, _CHARGE)),
        ("now", when == _NOW),
    ]
    return {
        "how": next((name for name, holds in known if holds), "later"),
        "name": terms.name,
        "plan": price_words(visit, terms),
        "now": visit.money(comes.charged_now, currency),
        "counts": visit.money(due.taken_up, currency),
        "later": visit.money(comes.prorated, currency),
        **_charged(visit, comes),
    }


def _fresh_key() -> str:
    return secrets.token_urlsafe(_REQUEST_KEY)


@section.action(f"{_ONE}/change", needs=_NEEDS)
async def change_its_plan(visit: Visit) -> Response:
    """Show what would come of another plan, and have it come once that is agreed to."""
    seen, form, when = await _seen(visit), visit.form, visit.form.text("when", 40)
    try:
        _require_known(form)
    except Malformed as error:
        return await _plan_page(visit, seen, None, field_errors(visit, error, "version", "when"), error.status)
    plan = Plan(
        form.number("version"),
        price=form.text("price", 40) or None,
        period=form.text("period", 40).lower() or None,
        quantity=form.text("quantity", 40) or None,
    )
    how = Prorating.NEXT_CHARGE if when == _NEXT else Prorating.NONE
    wish = partial(change_plan, plan=plan, by="merchant", at_once=when in (_NOW, _NEXT), prorating=how)
    try:
        if when == _CHARGE:
            return await _charge_difference(visit, seen, plan)
        if not form.has("agreed"):
            return await _to_agree(visit, seen, ChangedAtOnce(await _previewed(visit, wish)))
        await _carried_out(visit, wish)
    except Malformed as error:
        named = field_errors(visit, error, "version", "price", "quantity", "period")
        return await _plan_page(visit, seen, None, named, error.status)
    get = visit.texts.get
    said = get("It is of the other plan now.") if when else get("Its next period is of the other plan.")
    return visit.go(_page(visit), said)


def _require_known(form: Form) -> None:
    """Make sure that all of a plan's form was read, and says nothing but what it offers.

    Raises: Malformed, naming the field.
    """
    form.require_only(
        *("version", "price", "period", "quantity", "when", "request_key", "at", "revision"), boxes=("agreed",)
    )
    form.one_of("when", "", _NOW, _NEXT, _CHARGE)
    if form.text("version", 40) and form.number("version") is None:
        raise Malformed(worded("there is no such version; choose one of the list"), "version")


async def _to_agree(visit: Visit, seen: SubscriptionForTeam, previewed: ChangedAtOnce) -> Response:
    """What would come of another plan, if anything does."""
    if not previewed.changed.moved:
        return visit.go(_page(visit), visit.texts.get("That is its plan already."), "info")
    return await _plan_page(visit, seen, previewed)


async def _charge_difference(visit: Visit, seen: SubscriptionForTeam, plan: Plan) -> Response:
    """Show what another plan charges now, and charge what was shown, lately, once, however often
    that is agreed to.
    """
    get, desk, form, shop_now = visit.texts.get, visit.services.desk, visit.form, await visit.shop_now()
    key = check_request_key(form.text("request_key", _LONGEST_KEY), "request_key")
    at_once = AtOnce(seen.subscription.id, plan, by="merchant", now=shop_now)
    agreed = shown(form.text("at", 40), form.text("revision", 10), now=shop_now) if form.has("agreed") else None
    if agreed is None:
        return await _to_agree(visit, seen, await change_and_charge(desk, visit.shop, replace(at_once, preview=True)))
    visit.require_recent()
    wish = replace(at_once, now=agreed.at, revision=agreed.revision, request_key=f"account {key}")
    try:
        done = await acting.charge_difference(desk, visit.session, wish, now=visit.now)
    except NotCharged as error:
        return await _plan_page(visit, seen, None, {"": error_words(visit.texts, error)}, error.status)
    said = get("It is of the other plan now.")
    if done.difference.is_open:
        said = get("The bank has not answered yet. The plan changes once it is paid.")
    return visit.go(_page(visit), said)


@section.page(f"{_ONE}/undo", needs=_NEEDS)
async def ask_to_keep(visit: Visit) -> Response:
    """Whether it shall go on, and what is charged then."""
    get = visit.texts.get
    title, button = get("Keep the subscription to %(name)s?"), get("Keep the subscription")
    text = get("It goes on as before: %(price)s is charged on %(moment)s.")
    return await _ask_to_go_on(visit, undo, title, text, button)


@section.action(f"{_ONE}/undo", needs=_NEEDS)
async def keep(visit: Visit) -> Response:
    """Keep it."""
    await _carried_out(visit, undo)
    return visit.go(_page(visit), visit.texts.get("The subscription goes on."))


@section.page(f"{_ONE}/pause", needs=_NEEDS)
async def ask_to_pause(visit: Visit) -> Response:
    """Whether it shall be paused, and until when."""
    seen = await _seen(visit)
    if not seen.subscription.running:
        return visit.go(_page(visit), visit.texts.get("This subscription has ended already."), "info")
    return _pause_page(visit, seen)


def _pause_page(
    visit: Visit, seen: SubscriptionForTeam, errors: dict[str, str] | None = None, status: int = 200
) -> Response:
    return visit.page(
        "subscription_pause.html",
        status=status,
        subscription=seen.subscription,
        page=_page(visit),
        until=visit.form.text("until", 40),
        errors=errors or {},
    )


@section.action(f"{_ONE}/pause", needs=_NEEDS)
async def pause_it(visit: Visit) -> Response:
    """Pause it."""
    seen = await _seen(visit)
    try:
        until = _beginning(visit.form.text("until", 40), seen.subscription.time_zone)
        await _carried_out(visit, partial(pause, until=until, by="merchant"))
    except Malformed as error:
        return _pause_page(visit, seen, field_errors(visit, error, "until"), error.status)
    return visit.go(_page(visit), visit.texts.get("The subscription is paused; nothing is charged."))


def _beginning(text: str, time_zone: str) -> datetime | None:
    """When a day begins in a time zone (UTC); None without one. Raises: Malformed."""
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
        return datetime.combine(day, time(), zone_named(time_zone)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Malformed(worded("until is no day; write it like 2027-03-01"), "until") from error


@section.page(f"{_ONE}/resume", needs=_NEEDS)
async def ask_to_resume(visit: Visit) -> Response:
    """Whether it shall go on now, and what is charged then."""
    get = visit.texts.get
    title, button = get("Resume the subscription to %(name)s?"), get("Resume the subscription")
    text = get("What was left of its period runs on. %(price)s is charged next on %(moment)s.")
    uncharged = get("What was left of its period runs on. Nothing is charged any more.")
    return await _ask_to_go_on(visit, resume, title, text, button, uncharged)


@section.action(f"{_ONE}/resume", needs=_NEEDS)
async def resume_it(visit: Visit) -> Response:
    """Resume it."""
    await _carried_out(visit, resume)
    return visit.go(_page(visit), visit.texts.get("The subscription goes on."))
