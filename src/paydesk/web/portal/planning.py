"""What a customer chooses a subscription to be of: first what comes of it, then the change.

What was shown is what is charged: a change at once is worked out for the moment at which it was
shown, as long as that is not long ago and nothing has changed since.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from urllib.parse import quote

from starlette.responses import Response

from paydesk.core.errors import Conflict, Malformed
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.billing.charging_saved import NotCharged
from paydesk.domain.billing.differences import ChangedAtOnce, count_declined
from paydesk.domain.billing.foreseeing import foreseen, shown
from paydesk.domain.merchants.idempotent_calls import check_request_key
from paydesk.domain.payments.receiving import read_form
from paydesk.domain.subscriptions.changing_plans import Plan, change_plan
from paydesk.domain.subscriptions.packages import find_offered
from paydesk.domain.subscriptions.subscription_terms import Package
from paydesk.web.card_fields import text_of
from paydesk.web.portal import pages
from paydesk.web.portal.visiting import LARGEST_BODY, PortalVisit
from paydesk.web.visits import read_form_body
from paydesk_client.signature import Value

MOST_DECLINED = 5
"""So many charges for changes of one subscription may be declined in a day."""
_DAY = timedelta(days=1)
_REQUEST_KEY = 16
_NOW = "now"


@dataclass(frozen=True, slots=True)
class Choice:
    """What a customer has chosen; `at_once` if it is to hold now."""

    plan: Plan
    at_once: bool


async def ask_for_plan(visit: PortalVisit) -> Response:
    """The question which plan it shall be, how many of it, and from when on."""
    plans = _to_choose(visit, await _offered(visit))
    return _form(visit, plans) if plans or visit.holding.may_choose_quantity else visit.go(visit.path)


async def submit_plan(visit: PortalVisit) -> Response:
    """Show what comes of a choice, and carry it out once that is agreed to;
    a second time changes nothing.
    """
    form, offered = read_form(await read_form_body(visit.request, LARGEST_BODY)), await _offered(visit)
    choice = _choice(visit, form, offered)
    if choice is None:
        return visit.go(visit.path)
    try:
        if text_of(form, "agreed"):
            return await _agreed(visit, form, choice)
        return await _preview(visit, choice)
    except Malformed:
        return _form(visit, _to_choose(visit, offered), wrong="quantity", status=400)
    except NotCharged:
        return _form(visit, _to_choose(visit, offered), wrong="declined", status=402)
    except Conflict:
        return visit.go(f"{visit.path}?busy")


def _form(visit: PortalVisit, plans: list[Package], *, wrong: str = "", status: int = 200) -> Response:
    return pages.plan_page(visit.view, plans, wrong=wrong, status=status)


async def _offered(visit: PortalVisit) -> list[Package]:
    """What the shop offers, without what has fewer payments than were made."""
    held = visit.holding
    if not held.may_change_plan:
        return []
    currency = held.subscription.package.terms.currency
    return [
        package
        for package in await find_offered(visit.services.desk.database, held.shop, currency)
        if not package.terms.limit or held.subscription.next_period <= package.terms.limit
    ]


def _to_choose(visit: PortalVisit, offered: list[Package]) -> list[Package]:
    """What is another plan than it is; where it can be had from the next period on alone, also than
    it will be.
    """
    subscription = visit.holding.subscription
    known = {subscription.package.version_id}
    if not visit.holding.changes_now:
        known.add(subscription.as_charged_next.package.version_id)
    return [package for package in offered if package.version_id not in known]


def _choice(visit: PortalVisit, form: Mapping[str, Value], offered: list[Package]) -> Choice | None:
    """What was chosen, if it is there to be chosen."""
    held, asked, quantity = visit.holding, text_of(form, "plan"), text_of(form, "quantity")[:20].strip()
    if not held.may_change_plan:
        return None
    version = next((package.version_id for package in offered if str(package.version_id) == asked), None)
    if not held.may_choose_quantity:
        quantity = ""
    if version is None and (asked or not quantity):
        return None
    at_once = held.changes_now and (text_of(form, "when") == _NOW or not held.changes_later)
    return Choice(Plan(version_id=version, quantity=quantity or None), at_once)


async def _preview(visit: PortalVisit, choice: Choice) -> Response:
    """What would come of it. Raises: Conflict, Malformed."""
    done = await _wish(visit, choice, preview=True)
    if not done.changed.moved:
        return visit.go(visit.path)
    held = visit.holding
    return pages.plan_preview_page(
        visit.view,
        done.changed.subscription.as_charged_next.package,
        foreseen(done, held.balance, preview=True),
        at_once=choice.at_once,
        fields={
            "plan": str(choice.plan.version_id or ""),
            "quantity": choice.plan.quantity or "",
            "when": _NOW if choice.at_once else "later",
            "at": held.now.isoformat(),
            "revision": str(held.subscription.revision),
            "key": secrets.token_urlsafe(_REQUEST_KEY),
        },
    )


async def _agreed(visit: PortalVisit, form: Mapping[str, Value], choice: Choice) -> Response:
    """Carry it out as it was shown; what was shown too long ago is shown anew. Moves money.

    Raises: Conflict, Malformed, NotCharged.
    """
    held, revision = visit.holding, text_of(form, "revision")
    if choice.at_once != (text_of(form, "when") == _NOW):
        return await _preview(visit, choice)  # The shop has changed meanwhile when it may hold.
    if not choice.at_once:
        if revision != str(held.subscription.revision):
            return await _preview(visit, choice)
        await _wish(visit, choice)
        return visit.go(visit.path)
    seen = shown(text_of(form, "at"), revision, now=held.now)
    if seen is None:
        return await _preview(visit, choice)
    desk, since = visit.services.desk, held.now - _DAY
    if await count_declined(desk.database, held.shop, held.subscription.id, since=since) >= MOST_DECLINED:
        return pages.stopped_page(visit.view)
    key = check_request_key(text_of(form, "key"), "key")
    wish = AtOnce(held.subscription.id, choice.plan, "customer", seen.at, name_of(key), revision=seen.revision)
    done = await change_and_charge(desk, held.shop, wish)
    return visit.go(f"{visit.path}?{f'waiting={quote(key)}' if done.difference.is_open else 'changed'}")


def name_of(key: str) -> str:
    """How the difference is called that the form with this key asked for."""
    return f"portal {key}"


async def _wish(visit: PortalVisit, choice: Choice, *, preview: bool = False) -> ChangedAtOnce:
    """Change it with its next period, or see what comes of a change.

    Raises: Conflict, Malformed.
    """
    held, desk = visit.holding, visit.services.desk
    if choice.at_once:
        wish = AtOnce(held.subscription.id, choice.plan, "customer", held.now, preview=preview)
        return await change_and_charge(desk, held.shop, wish)
    change = partial(change_plan, desk.database, held.shop, held.subscription.id, choice.plan, by="customer")
    return ChangedAtOnce(await change(now=held.now, preview=preview))
