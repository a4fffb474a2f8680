"""Changing a plan at once, and charging the difference for the rest of the period that is paid.

It is a charge that is not a period: an order of its own, under the same rules as every charge. The
plan changes with its approval, in the same statement (`difference_is_paid` of the schema), whoever
hears of that; until then the subscription waits, and is neither charged nor changed.

Where another period begins with the plan (in a trial, and for periods of another length) the order
takes what that period costs, less the credit; the renewal that then is due, at once, is covered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial

import asyncpg
import msgspec
import structlog

from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.clock import utc_now
from paydesk.core.currencies import charge_digits
from paydesk.core.errors import Busy, Conflict, Held, NotFound, Unsure
from paydesk.core.wording import worded
from paydesk.database.pool import AWAY, Database
from paydesk.database.reading_again import READ_AGAIN
from paydesk.database.records import record_if_any, record_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.billing.calling import Begun, begun_since, call_and_record
from paydesk.domain.billing.charged_cards import find_charged_card
from paydesk.domain.billing.charging import BillingRun, Side
from paydesk.domain.billing.differences import ChangedAtOnce, Difference, answer_of, answered, find_known, unchanged
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import FIRST_LOOK, KEY_LIFETIME, Desk
from paydesk.domain.payments.marking import BegunAttempt, difference_mark
from paydesk.domain.subscriptions.balances import ReadApart
from paydesk.domain.subscriptions.changing import Changed
from paydesk.domain.subscriptions.changing_plans import (
    Plan,
    PlanAtOnce,
    begins_anew,
    change_plan,
    plan_at_once,
    put_at_once,
)
from paydesk.domain.subscriptions.ending import changes_all_the_time
from paydesk.domain.subscriptions.lifecycle import Canceller, paid
from paydesk.domain.subscriptions.prorating import least_charge
from paydesk.domain.subscriptions.rows import subscription_of

queries = load_statements(__package__ or "", "charging_differences.sql")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Place:
    """The order of the next difference; `forgotten` is what it has taken already, unknown to us."""

    merchant_order_id: str
    forgotten: Decimal | None
    payment_id: int | None
    attempt_id: int | None


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Which subscription is to be of which other terms now, and by whose wish.

    `request_key` is the caller's own name for it: who sends it again gets what became of it. `now`
    is the shop's time, UTC; a `preview` moves nothing. Where another period begins what is unused
    of the one before is `credited`, or not; without it any other change is not prorated. With a
    `revision` it is of the subscription as it stood then, and of none that has changed since.
    """

    subscription_id: int
    plan: Plan
    by: Canceller
    now: datetime
    request_key: str | None = None
    credited: bool = True
    preview: bool = False
    revision: int | None = None


async def change_and_charge(desk: Desk, shop: Shop, wish: AtOnce) -> ChangedAtOnce:
    """Have a subscription be of other terms now, and charge what the rest of the period that is
    paid costs more, its balance included. Moves money.

    Less than acquirers charge, or a credit, waits in the balance, and nobody is asked. If the
    acquirer answers late, the plan stays as it is until that is paid.

    Raises: as `change_plan` at once; NotCharged if the bank declined, and nothing has changed;
        Conflict for what is paid by direct debit; Held; Unavailable; Unsure.
    """
    database = desk.database
    if not wish.credited and not await begins_anew(database, shop, wish.subscription_id, wish.plan):
        named = (database, shop, wish.subscription_id, wish.plan)
        return ChangedAtOnce(await change_plan(*named, by=wish.by, now=wish.now, at_once=True, preview=wish.preview))
    if not wish.preview:
        if done := await _again(database, shop, wish):
            return done
        await desk.gate.require()
    for _ in range(READ_AGAIN):
        try:
            if done := await _tried(desk, shop, wish):
                return done
        except Busy as error:
            # It may be charged, or changed, for this very wish, which came twice at once.
            if not wish.preview and (done := await _again(database, shop, wish)):
                return done
            if not isinstance(error, ReadApart):
                raise
    raise changes_all_the_time()


async def _tried(desk: Desk, shop: Shop, wish: AtOnce) -> ChangedAtOnce | None:
    """What came of the wish for the subscription as it stands; None if it has changed meanwhile."""
    database, of = desk.database, wish.subscription_id
    plan = partial(plan_at_once, by=wish.by, now=wish.now, credited=wish.credited, preview=wish.preview)
    planned = await plan(database, shop, of, wish.plan)
    if planned is None or wish.revision not in (None, planned.row.revision):
        # What has changed it may be this very wish, which came twice at once.
        if not wish.preview and (done := await _again(database, shop, wish)):
            return done
        if planned is None:
            return ChangedAtOnce(await unchanged(database, shop, of))
        raise Conflict(worded("subscription %(id)s has changed just now; try again", id=of))
    place = await _place(database, shop, of)
    if wish.preview:
        return ChangedAtOnce(_foreseen(planned, now=wish.now), _previewed(planned, place))
    if place.forgotten is None and not planned.due:
        if not await put_at_once(database, shop, planned, now=wish.now):
            return None
        return await _done(desk, shop, planned, Difference(), wish)
    if place.forgotten is not None:
        if not await _take_up(database, shop, planned, place, wish):
            return await _again(database, shop, wish)
        return await _done(desk, shop, planned, Difference(taken_up=place.forgotten), wish)
    if begun := await _begin(desk, shop, planned, place, wish):
        return await _charge(desk, shop, planned, begun, wish)
    return await _again(database, shop, wish)


async def _again(database: Database, shop: Shop, wish: AtOnce) -> ChangedAtOnce | None:
    """What became of this wish if its key was sent before. Raises: Conflict; NotCharged."""
    return await answered(database, shop, wish.subscription_id, wish.request_key)


def _changed(planned: PlanAtOnce) -> Changed:
    step = planned.step
    replaced = subscription_of(planned.row).change
    return Changed(step.version, replaced, carried_out=step.carried_out, proration=step.proration)


def _foreseen(planned: PlanAtOnce, *, now: datetime) -> Changed:
    """What would come of it; a period that begins is counted as paid."""
    changed = _changed(planned)
    if not planned.begins:
        return changed
    version = planned.step.version
    return replace(changed, subscription=paid(version, version.next_period, at=now))


async def _done(desk: Desk, shop: Shop, planned: PlanAtOnce, difference: Difference, wish: AtOnce) -> ChangedAtOnce:
    """The plan is changed; a period that begins with it is due, and is renewed."""
    changed = _changed(planned)
    if planned.begins:
        await _renew(desk, shop, wish)
        now = await unchanged(desk.database, shop, wish.subscription_id)
        changed = replace(changed, subscription=now.subscription)
    return ChangedAtOnce(changed, difference)


async def _renew(desk: Desk, shop: Shop, wish: AtOnce) -> None:
    """Renew a subscription whose period has just begun, for what its balance covers. A worker does
    it if this fails. Moves money.
    """
    try:
        await BillingRun(desk).charge_one(Side(shop, wish.now), wish.subscription_id)
    except (*AWAY, Held):
        log.warning("a period that has begun is left to the workers", subscription_id=wish.subscription_id)


def _previewed(planned: PlanAtOnce, place: _Place) -> Difference:
    return Difference(planned.due) if place.forgotten is None else Difference(taken_up=place.forgotten)


async def _place(database: Connection, shop: Shop, subscription_id: int) -> _Place:
    found = queries.find_place(database, merchant_id=shop.merchant_id, live=shop.live, subscription_id=subscription_id)
    return record_of(_Place, await found)


def _noted(shop: Shop, planned: PlanAtOnce, wish: AtOnce) -> dict[str, object]:
    """A difference as the statements write it down."""
    version = planned.step.version
    package, currency = version.package, version.package.terms.currency
    return {
        "merchant_id": shop.merchant_id,
        "live": shop.live,
        "subscription_id": version.id,
        "revision": planned.row.revision,
        "request_key": wish.request_key,
        "package_version_id": package.version_id,
        "renewal_at": version.date_next,
        "asked_by": wish.by,
        "proration": msgspec.json.encode(planned.proration).decode(),
        "anchor": version.anchor if planned.begins else None,
        "skipped": version.skipped if planned.begins else None,
        "charge_digits": charge_digits(currency),
        "least_charge": least_charge(currency),
    }


async def _take_up(database: Database, shop: Shop, planned: PlanAtOnce, place: _Place, wish: AtOnce) -> bool:
    """Whether the plan was changed for what a forgotten charge has taken; not if the subscription
    has changed, or the key was used, meanwhile. Moves no money.
    """
    noted = _noted(shop, planned, wish)
    async with database.acquire() as connection, connection.transaction():
        try:
            attempt_id = await queries.take_up_difference(connection, **noted, attempt_id=place.attempt_id)
        except asyncpg.UniqueViolationError:
            return False
        if attempt_id is None:
            return False
        names = {"merchant_id": shop.merchant_id, "live": shop.live, "attempt_id": attempt_id}
        await queries.pay_difference(connection, **names, now=wish.now)
        subject = f"payment {place.payment_id}"
        kind, why = AlarmKind.plan_forgotten, "the change was asked for again"
        await settle_alarms(connection, kind, [subject], shop=shop, by=why, now=utc_now())
    log.warning("a forgotten difference is taken up", subscription_id=planned.row.id, payment_id=place.payment_id)
    return True


async def _begin(desk: Desk, shop: Shop, planned: PlanAtOnce, place: _Place, wish: AtOnce) -> Begun | None:
    """Commit the intent; None if the subscription has changed, or the key was used, meanwhile.
    Moves no money.

    Raises: Conflict, Unavailable, Unsure.
    """
    card = await find_charged_card(desk.database, shop, planned.row.id)
    if card.revision != planned.row.revision:
        return None
    acquirer, opened = card.opened(desk, shop)
    real_now = utc_now()
    not_after = real_now + KEY_LIFETIME
    try:
        row = await queries.begin_difference(
            desk.database,
            **_noted(shop, planned, wish),
            merchant_order_id=place.merchant_order_id,
            amount=planned.due,
            pads=desk.pads,
            not_after=not_after,
            lookup_at=real_now + FIRST_LOOK,
            now=wish.now,
        )
    except asyncpg.UniqueViolationError:
        # The key came for another subscription at once, and that was first.
        return None
    except AWAY as error:
        raise Unsure(
            f"it is not known whether the difference of subscription {planned.row.id} was begun: the database went "
            "away over it; ask again with the same key, and money moves once"
        ) from error
    begun = record_if_any(BegunAttempt, row)
    if begun is None:
        return None
    purchase = Purchase(
        key=begun.idempotency_key,
        amount=begun.amount,
        currency=begun.currency,
        card=opened,
        capture=True,
        not_after=not_after,
        network_reference=card.network_reference,
        stored_reference=card.stored_reference,
        mark=difference_mark(begun, planned.row.id, planned.proration.period_number),
    )
    return begun_since(card.date_start, desk, shop, begun, acquirer, purchase, now=wish.now, real_now=real_now)


async def _charge(desk: Desk, shop: Shop, planned: PlanAtOnce, begun: Begun, wish: AtOnce) -> ChangedAtOnce:
    """Ask the acquirer, and say what became of it. Moves money. Raises: NotCharged."""
    await call_and_record(desk, shop, begun, now=wish.now)
    before = subscription_of(planned.row)
    try:
        known = await find_known(desk.database, shop, attempt_id=begun.report.attempt_id)
        if known is None:
            raise NotFound("the test side was started anew, and this charge is gone with it")
        if planned.begins and known.state == "paid":
            await _renew(desk, shop, wish)
        done = await answer_of(desk.database, shop, known, wish.subscription_id)
    except AWAY:
        whole = Difference(begun.report.amount, begun.report.payment_id, is_open=True)
        return ChangedAtOnce(Changed(before, moved=False), whole)
    replaced = before.change if done.changed.moved else None
    return replace(done, changed=replace(done.changed, replaced=replaced))
