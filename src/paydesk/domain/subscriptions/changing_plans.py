"""The wish that a subscription goes on as another package, or at another price or rhythm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import partial

from paydesk.core.errors import Conflict, Malformed
from paydesk.core.money import parse_amount
from paydesk.core.periods import parse_period
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.live_amounts import require_taken
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.balances import PaidPeriod, find_paid_period, given_up, prorated
from paydesk.domain.subscriptions.changes import Change, ChangeState, ChangeType
from paydesk.domain.subscriptions.changing import Changed, Step, change, require_uncharged
from paydesk.domain.subscriptions.ending import find_row
from paydesk.domain.subscriptions.largest_charge import require_payable
from paydesk.domain.subscriptions.lifecycle import Canceller, Subscription, begun_anew, changing_plan, on_plan
from paydesk.domain.subscriptions.packages import agree_package, find_version
from paydesk.domain.subscriptions.plan_requirements import require_plan_possible, require_unpaused
from paydesk.domain.subscriptions.prorating import Proration, charge_for
from paydesk.domain.subscriptions.rows import PackageRow, SubscriptionRow, package_of, subscription_of
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import SHORTEST_FOR_SLOW, Package, Terms, named, several, sku_of

queries = load_statements(__package__ or "")
changes = load_statements(__package__ or "", "changing.sql")

TOO_MANY = "subscription %(id)s has had too many payments for a calendar in such periods; begin another one"
NEW = 0
"""The ids of a package version that does not exist yet."""


class Prorating(StrEnum):
    """What a change of plan at once does about the period that is paid."""

    NONE = "none"
    NEXT_CHARGE = "next_charge"
    """The next charges have what it cost more, or less, for the rest of that period."""
    CHARGE_NOW = "charge_now"
    """That is charged at once, and the plan changes once it is paid."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a subscription is to become: a version that was sold before (else its own), with what is
    given in its place, prices and periods as in the form; a price beside a `quantity` is of one.
    """

    version_id: int | None = None
    sku_id: str | None = None
    name: str | None = None
    price: str | None = None
    period: str | None = None
    quantity: str | None = None


async def change_plan(
    database: Database,
    shop: Shop,
    subscription_id: int,
    plan: Plan,
    *,
    by: Canceller,
    now: datetime,
    at_once: bool = False,
    prorating: Prorating = Prorating.NONE,
    preview: bool = False,
) -> Changed:
    """Have a subscription go on by other terms once the period is over that is paid, or the trial;
    until then that can be undone. Moves no money.

    With `at_once` it is of the other terms now, and can't be taken back but by another change: what
    is paid stays paid, nothing is charged or given back for it, and the next period, on its day as
    before, is the first one that is charged by them. `prorating` may put the difference for the
    rest of that period into the subscription's balance, which its next charges settle; who charges
    it at once does so by `plan_at_once`.

    Args: now is the shop's time, UTC; a `preview` changes nothing.
    Raises: NotFound; Malformed for terms that can't be; Conflict if it has ended, is paused, runs
        out by itself, its charge is due or failing, it has had as many payments as the plan has, or
        is charged by what takes longer than the plan's periods allow, its next charge would be
        larger than a payment may be, and at once if it is in its trial, or periods would be of
        another length; Busy while it is charged.
    """
    assert prorating is not Prorating.CHARGE_NOW, "that takes an acquirer"
    current = subscription_of(await find_row(database, shop, subscription_id))
    terms = await _terms(database, shop, current, plan)
    await _require_time(database, shop, subscription_id, terms)
    paid = await _paid(database, shop, current) if at_once and prorating is Prorating.NEXT_CHARGE else None
    known = await find_version(database, shop, terms)
    act = partial(_change_to, database, shop, current, paid, by=by, now=now, at_once=at_once)
    seen = await act(known or Package(NEW, NEW, terms, 0), preview=True)
    if preview or not seen.moved:
        return seen
    if known is None:
        await agree_package(database, shop, terms, now=now)
        known = await find_version(database, shop, terms)
        assert known is not None, "it was agreed just now"
    return await act(known, preview=False)


@dataclass(frozen=True, slots=True)
class PlanAtOnce:
    """Another plan that a subscription may have now: `row` as it stands, and what it comes to.

    With one that `begins` a period at once, that period is what is charged.
    """

    row: SubscriptionRow
    step: Step
    paid: PaidPeriod

    @property
    def proration(self) -> Proration:
        """What the rest of the period that is paid costs more, or less."""
        assert self.step.proration is not None, "what is charged at once is prorated"
        return self.step.proration

    @property
    def begins(self) -> bool:
        """Whether another period begins now."""
        return self.proration.begins

    @property
    def due(self) -> Decimal:
        """What there is to charge now, the balance included."""
        terms = self.step.version.package.terms
        price = terms.price if self.begins else Decimal(0)
        return charge_for(price, self.paid.balance + self.proration.amount, terms.currency, live=self.row.live)


async def plan_at_once(
    database: Database,
    shop: Shop,
    subscription_id: int,
    plan: Plan,
    *,
    by: Canceller,
    now: datetime,
    credited: bool = True,
    preview: bool = False,
) -> PlanAtOnce | None:
    """What another plan from now on comes to, for who charges it; None if the subscription is on
    it. Its terms are written down, unless it is a preview. Moves no money.

    In a trial, and for periods of another length, another period begins now, and what is unused of
    the one before is `credited`, or not.

    Raises: as `change_plan` at once, but for those two; Conflict also if it is charged by what
        takes days.
    """
    row = await find_row(database, shop, subscription_id)
    current = subscription_of(row)
    terms = await _terms(database, shop, current, plan)
    if await changes.is_charged_slowly(database, merchant_id=shop.merchant_id, live=shop.live, id=subscription_id):
        raise Conflict(
            worded(
                "subscription %(subscription_id)s is paid by direct debit, which takes some days, so "
                "nothing can be charged at once: leave it to the next charge (%(option)s)",
                subscription_id=subscription_id,
                option=Prorating.NEXT_CHARGE,
            )
        )
    paid = await find_paid_period(database, shop, current.id) if current.running else None
    known = await find_version(database, shop, terms)
    choose = partial(_choose_charged, paid, version_id=current.package.version_id, by=by, now=now, credited=credited)
    step = choose(package=known or Package(NEW, NEW, terms, 0), current=current)
    if step is None:
        return None
    await require_uncharged(database, row)
    assert paid is not None, "what runs and may be changed was paid"
    require_payable(PlanAtOnce(row, step, paid).due, terms.currency)
    if known is None and not preview:
        await agree_package(database, shop, terms, now=now)
        known = await find_version(database, shop, terms)
        assert known is not None, "it was agreed just now"
        step = choose(package=known, current=current)
        assert step is not None, "it is the same as before"
    return PlanAtOnce(row, step, paid)


async def begins_anew(database: Database, shop: Shop, subscription_id: int, plan: Plan) -> bool:
    """Whether another period would begin with another plan at once: in a trial, and for periods of
    another length. Raises: NotFound, Malformed.
    """
    current = subscription_of(await find_row(database, shop, subscription_id))
    return _begins(current, await _terms(database, shop, current, plan))


def _begins(current: Subscription, terms: Terms) -> bool:
    return current.state is SubscriptionState.TRIAL or terms.period != current.package.terms.period


async def put_at_once(database: Database, shop: Shop, planned: PlanAtOnce, *, now: datetime) -> bool:
    """Whether the plan is changed for which there is nothing to charge now, as the subscription
    still stands as it was planned for. Moves no money.
    """

    def choose(current: Subscription) -> Step | None:
        return planned.step if current.revision == planned.row.revision else None

    return (await change(database, shop, planned.row.id, choose, now=now, preview=False)).moved


async def _change_to(
    database: Database,
    shop: Shop,
    seen: Subscription,
    paid: PaidPeriod | None,
    package: Package,
    *,
    by: Canceller,
    now: datetime,
    at_once: bool,
    preview: bool,
) -> Changed:
    how = partial(_choose_now, paid) if at_once else _choose
    choose = partial(how, package, seen.package.version_id, by=by, now=now)
    return await change(database, shop, seen.id, choose, now=now, preview=preview)


def _choose(package: Package, version_id: int, current: Subscription, *, by: Canceller, now: datetime) -> Step | None:
    """The step to another package; None if it is on it, or will be.

    Raises: Conflict, also if it is no longer of the version that the terms were made from.
    """
    require_unpaused(current)
    coming = current.change.package if current.change is not None else None
    goes_on = current.change is None or coming is not None
    if goes_on and package.terms == (coming or current.package).terms:
        return None
    if package.terms == current.package.terms:
        raise Conflict(worded("subscription %(id)s is on that plan: undo what is to come", id=current.id))
    require_plan_possible(current, package, version_id, now)
    try:
        version = changing_plan(current, package, by=by, at=now)
    except (OverflowError, ValueError) as error:
        raise Conflict(worded(TOO_MANY, id=current.id)) from error
    return Step(version, ChangeState.REPLACED)


def _choose_now(
    paid: PaidPeriod | None,
    package: Package,
    version_id: int,
    current: Subscription,
    *,
    by: Canceller,
    now: datetime,
) -> Step | None:
    """The step to another package at once, prorated if what was paid is given; None if it is on it,
    and stays so.

    Raises: Conflict, also if it is no longer of the version that the terms were made from.
    """
    require_unpaused(current)
    if package.terms == current.package.terms:
        if current.change is None:
            return None
        raise Conflict(worded("subscription %(id)s is on that plan: undo what is to come", id=current.id))
    require_plan_possible(current, package, version_id, now)
    if current.state is SubscriptionState.TRIAL:
        raise Conflict(
            worded(
                "subscription %(id)s is in its trial, which runs to its end: change it with its period, "
                "or have the first period begin and be charged now",
                id=current.id,
            )
        )
    if package.terms.period != current.package.terms.period:
        raise Conflict(
            worded(
                "periods of subscription %(id)s would be of another length, and the one that is paid is "
                "not over: change it with its period, or have another period begin and be charged now",
                id=current.id,
            )
        )
    change = Change(ChangeType.PLAN, now, now, by, package)
    proration = prorated(current, paid, package.terms.price, now=now) if paid is not None else None
    return Step(on_plan(current, package), ChangeState.REPLACED, carried_out=change, proration=proration)


def _choose_charged(
    paid: PaidPeriod | None,
    *,
    package: Package,
    version_id: int,
    current: Subscription,
    by: Canceller,
    now: datetime,
    credited: bool,
) -> Step | None:
    """The step to another package at once whose charge comes with it; None if it is on it, and
    stays so. Raises: as `_choose_now`.
    """
    if not current.running or not _begins(current, package.terms):
        return _choose_now(paid, package, version_id, current, by=by, now=now)
    require_unpaused(current)
    require_plan_possible(current, package, version_id, now)
    assert paid is not None, "what runs was paid"
    change = Change(ChangeType.PLAN, now, now, by, package)
    proration = given_up(current, paid, credited=credited, now=now)
    try:
        version = begun_anew(current, package, at=now)
    except (OverflowError, ValueError) as error:
        raise Conflict(worded(TOO_MANY, id=current.id)) from error
    return Step(version, ChangeState.REPLACED, carried_out=change, proration=proration)


async def _require_time(database: Database, shop: Shop, subscription_id: int, terms: Terms) -> None:
    """Raises: Conflict if it is charged by what takes days, and the periods are too short for
    that.
    """
    if terms.may_be_slow:
        return
    if await changes.is_charged_slowly(database, merchant_id=shop.merchant_id, live=shop.live, id=subscription_id):
        raise Conflict(
            worded(
                "subscription %(subscription_id)s is paid by direct debit, which takes some days: its "
                "periods need %(shortest_for_slow)s days or more, unless its customer replaces that by a "
                "card",
                subscription_id=subscription_id,
                shortest_for_slow=SHORTEST_FOR_SLOW,
            )
        )


async def _paid(database: Database, shop: Shop, current: Subscription) -> PaidPeriod | None:
    """What was paid for the period that runs; None if what runs is none that can be changed."""
    if not current.running or current.state is SubscriptionState.TRIAL:
        return None
    return await find_paid_period(database, shop, current.id)


async def _terms(database: Database, shop: Shop, current: Subscription, plan: Plan) -> Terms:
    """The terms that are wanted, which no coupon goes on with. The trial is the one that the
    subscription had.

    Raises: Malformed; Conflict for a live price with more decimals than acquirers take.
    """
    own = current.package.terms
    base = (own if plan.version_id is None else await _version(database, shop, plan.version_id)).undiscounted
    if base.currency != own.currency:
        raise Malformed(
            worded(
                "package version %(version_id)s is in %(currency)s, the subscription in %(own)s; a "
                "subscription keeps its currency",
                version_id=plan.version_id,
                currency=base.currency,
                own=own.currency,
            ),
            "package_version_id",
        )
    if plan.sku_id is not None and (plan.name is None or plan.price is None):
        raise Malformed("sku_id names another package; give its name and price with it", "sku_id")
    price, quantity = base.price, base.quantity
    if plan.price is not None:
        price, quantity = parse_amount(plan.price, own.currency, "price"), 1
    wanted = replace(
        base,
        sku_id=base.sku_id if plan.sku_id is None else sku_of(plan.sku_id, "sku_id"),
        name=base.name if plan.name is None else named(plan.name, "name"),
        price=price,
        period=base.period if plan.period is None else parse_period(plan.period, "period"),
        trial=own.trial,
        quantity=quantity,
    )
    if plan.quantity is not None:
        of_one = replace(wanted, price=wanted.unit_price, trial=None, quantity=1)
        wanted = replace(several(of_one, plan.quantity, "quantity"), trial=own.trial)
    require_taken(shop, wanted.currency, wanted.price)
    return wanted


async def _version(database: Database, shop: Shop, version_id: int) -> Terms:
    """The terms of a version. Raises: Malformed if the shop has none such."""
    found = queries.find_packages(
        database, merchant_ids=[shop.merchant_id], lives=[shop.live], version_ids=[version_id]
    )
    for row in await records_of(PackageRow, found):
        return package_of(row).terms
    raise Malformed(f"there is no package_version_id {version_id}", "package_version_id")
