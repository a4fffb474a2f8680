"""Taking into our books what an acquirer has approved and our database has forgotten,
by the mark that stands with it.

Each purchase becomes the payment that it was, under the id that its mark tells, as if its approval
had just been heard: payment, ledger, subscription and pingback in one transaction. Nothing is
charged or given back here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import TypeVar

import asyncpg
import structlog

from paydesk.adapters.acquirers.interface import Approved, Pending
from paydesk.adapters.acquirers.listing import ListedPurchase, PurchaseState
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.core.money import written
from paydesk.core.wording import noted
from paydesk.database.pool import AWAY
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.leases import ReadByAnother, Within
from paydesk.domain.alarms.setting_aside import reason_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.differences import Adopted
from paydesk.domain.operations.forgotten_plans import name_forgotten_plan
from paydesk.domain.operations.reasons_not_to_adopt import (
    CHARGED_TWICE,
    FORGED,
    ID_TAKEN,
    IN_PART,
    NO_MERCHANT,
    NO_SUBSCRIPTION,
    NO_TERMS,
    OTHER_PRICE,
    PAID_AND_GIVEN_BACK,
    PAID_TWICE,
    SKIPPED,
    UNDER_WAY,
    WAITS_FOR_ANOTHER,
)
from paydesk.domain.payments.desk import KEY_LIFETIME, Desk
from paydesk.domain.payments.marking import digest_of
from paydesk.domain.payments.outcomes import Approval, record_within
from paydesk.domain.payments.pending import LONGEST_WAIT, OnItsWay, record_pending
from paydesk.domain.payments.states import REPORTED, REVERSED, PaymentState
from paydesk.domain.subscriptions.rows import PackageRow, package_of

queries = load_statements(__package__ or "", "adopting.sql")
hosted = load_statements("paydesk.domain.payments", "hosting.sql")
log = structlog.get_logger()

BATCH = 500
"""How many forgotten purchases are looked at with one statement."""


@dataclass(frozen=True, slots=True)
class Left:
    """A purchase that can't be adopted, and why; `twice` if its customer has paid twice."""

    listed: ListedPurchase
    reason: str
    twice: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a forgotten purchase becomes: `values` are those of the statement that begins it."""

    listed: ListedPurchase
    mark: Mark
    shop: Shop
    clock: timedelta
    values: Mapping[str, object]
    subscription_id: int = 0


@dataclass(frozen=True, slots=True)
class _Order:
    """What is known of the order that a forgotten purchase was for; `state` is its payment's,
    None without one.
    """

    key: str
    merchant_id: int
    clock: timedelta
    is_ours: bool
    state: PaymentState | None
    held_by: int | None


class _Form(PackageRow, frozen=True):
    """A form by which a shop asked for an order's amount;
    what it says of a package is null unless it `has_package`.
    """

    key: str
    checkout_id: int
    has_package: bool


@dataclass(frozen=True, slots=True)
class _Renewal:
    """What is known of the period that a forgotten renewal was for; without a subscription
    nothing but its merchant. `state` is its payment's, None without one.
    """

    key: str
    merchant_id: int
    clock: timedelta
    is_ours: bool | None
    subscription_id: int | None
    next_period: int
    charging_attempt_id: int | None
    price: Decimal
    currency: str
    state: PaymentState | None


@dataclass(frozen=True, slots=True)
class _Id:
    id: int


@dataclass(frozen=True, slots=True)
class _Begun:
    """What a forgotten purchase is in our books."""

    payment_id: int
    attempt_id: int


_Item = TypeVar("_Item")


async def adopt(
    desk: Desk, acquirer: str, forgotten: Sequence[ListedPurchase], *, within: Within
) -> AsyncIterator[Adopted | Left]:
    """Adopt forgotten purchases that took or hold money, first orders and then renewals;
    what came of each.

    What another worker records at the same moment comes back neither way. Moves no money. Raises:
    ReadByAnother, one of AWAY.
    """
    ours = sorted((one for one in forgotten if one.mark is not None), key=lambda one: one.at)
    await _pass_ids([_mark(one) for one in ours], within)
    for kind, work in ((PurchaseKind.ORDER, _orders), (PurchaseKind.RENEWAL, _renewals)):
        named = [one for one in ours if _mark(one).kind is kind]
        for wave in _waves(named, lambda one: (_mark(one).merchant, _mark(one).live, _mark(one).order)):
            for start in range(0, len(wave), BATCH):
                for each in await work(desk, acquirer, wave[start : start + BATCH]):
                    came_of_it = each if isinstance(each, Left) else await _adopted(within, acquirer, kind, each)
                    if came_of_it is not None:
                        yield came_of_it


def _mark(listed: ListedPurchase) -> Mark:
    assert listed.mark is not None, "what has no mark is not looked at"
    return listed.mark


def _waves(items: Sequence[_Item], name: Callable[[_Item], Hashable]) -> Iterator[list[_Item]]:
    """The first of each name, then the second of each, and so on:
    what follows is looked at once that is written.
    """
    waves: list[list[_Item]] = []
    seen: dict[Hashable, int] = {}
    for item in items:
        place = seen.get(name(item), 0)
        seen[name(item)] = place + 1
        if place == len(waves):
            waves.append([])
        waves[place].append(item)
    yield from waves


async def _orders(desk: Desk, acquirer: str, listed: Sequence[ListedPurchase]) -> list[_Plan | Left]:
    """What can become of forgotten purchases of orders."""
    marks = [_mark(one) for one in listed]
    numbers = [one.attempt for one in marks]
    known = queries.orders_known(desk.database, pads=desk.pads, **_names(listed), numbers=numbers)
    orders = {order.key: order for order in await records_of(_Order, known)}
    ours = [one for one in listed if one.key in orders and orders[one.key].is_ours]
    asked = queries.checkouts_of(
        desk.database,
        keys=[one.key for one in ours],
        merchant_ids=[orders[one.key].merchant_id for one in ours],
        lives=[_mark(one).live for one in ours],
        orders=[_mark(one).order for one in ours],
        amounts=[one.amount for one in ours],
        currencies=[one.currency for one in ours],
    )
    forms: dict[str, list[_Form]] = {}
    for form in await records_of(_Form, asked):
        forms.setdefault(form.key, []).append(form)
    taken = await _taken(desk, ours)
    return [_order(acquirer, one, orders.get(one.key), forms.get(one.key, []), taken) for one in listed]


def _order(
    acquirer: str, listed: ListedPurchase, order: _Order | None, forms: Sequence[_Form], taken: _Taken
) -> _Plan | Left:
    """What can become of the forgotten purchase of an order. Pure."""
    mark = _mark(listed)
    if (refused := _refused(listed, order)) is not None or order is None:
        return Left(listed, refused or NO_MERCHANT)
    state = order.state
    if state in REVERSED:
        return Left(listed, PAID_AND_GIVEN_BACK)
    if state in REPORTED:
        return Left(listed, PAID_TWICE, twice=True)
    if state not in (None, PaymentState.DECLINED):
        return Left(listed, UNDER_WAY)
    if state is None and mark.payment_id in taken.payments:
        return Left(listed, ID_TAKEN)
    form = next((one for one in forms if _terms_of(one) == mark.terms), None)
    if form is None and mark.terms:
        return Left(listed, NO_TERMS)
    values = _begun(acquirer, listed, order) | {
        "merchant_order_id": mark.order,
        "checkout_id": form.checkout_id if form is not None else None,
        "held_by": order.held_by,
        "capture": listed.state is not PurchaseState.AUTHORIZED,
        # What was paid with is written down with the approval, where it is known.
        "last4": "" if listed.instrument else listed.last4,
    }
    subscription = mark.subscription_id if mark.subscription_id not in taken.subscriptions else 0
    return _Plan(listed, mark, Shop(order.merchant_id, mark.live), order.clock, values, subscription)


def _terms_of(form: _Form) -> str:
    """The digest of what a form's customer agrees to pay again and again."""
    return digest_of(package_of(form).terms) if form.has_package else ""


async def _renewals(desk: Desk, acquirer: str, listed: Sequence[ListedPurchase]) -> list[_Plan | Left]:
    """What can become of forgotten renewals."""
    marks = [_mark(one) for one in listed]
    known = queries.renewals_known(
        desk.database,
        pads=desk.pads,
        **_names(listed),
        periods=[one.period for one in marks],
        numbers=[one.attempt for one in marks],
    )
    renewals = {renewal.key: renewal for renewal in await records_of(_Renewal, known)}
    taken = await _taken(desk, [one for one in listed if one.key in renewals])
    return [_renewal(acquirer, one, renewals.get(one.key), taken) for one in listed]


def _renewal(acquirer: str, listed: ListedPurchase, renewal: _Renewal | None, taken: _Taken) -> _Plan | Left:
    """What can become of a forgotten renewal. Pure."""
    mark = _mark(listed)
    if renewal is not None and renewal.subscription_id is None:
        return Left(listed, NO_SUBSCRIPTION)
    if (refused := _refused(listed, renewal)) is not None or renewal is None:
        return Left(listed, refused or NO_MERCHANT)
    state = renewal.state
    if state in REVERSED:
        return Left(listed, PAID_AND_GIVEN_BACK)
    if state in REPORTED:
        return Left(listed, CHARGED_TWICE, twice=True)
    if renewal.next_period > mark.period:
        return Left(listed, SKIPPED)
    if renewal.charging_attempt_id is not None or state not in (None, PaymentState.DECLINED):
        return Left(listed, UNDER_WAY)
    if renewal.next_period < mark.period:
        return Left(listed, WAITS_FOR_ANOTHER)
    if (listed.amount, listed.currency) != (renewal.price, renewal.currency):
        return Left(listed, OTHER_PRICE)
    if state is None and mark.payment_id in taken.payments:
        return Left(listed, ID_TAKEN)
    values = _begun(acquirer, listed, renewal) | {"subscription_id": renewal.subscription_id, "period": mark.period}
    return _Plan(listed, mark, Shop(renewal.merchant_id, mark.live), renewal.clock, values)


def _refused(listed: ListedPurchase, known: _Order | _Renewal | None) -> str | None:
    """Why a purchase is adopted in no case, None if it may be."""
    if known is None:
        return NO_MERCHANT
    if not known.is_ours:
        return FORGED
    is_undivided = listed.state in (PurchaseState.AUTHORIZED, PurchaseState.PENDING)
    is_whole = is_undivided or listed.captured == listed.amount
    return None if is_whole else IN_PART


def _names(listed: Sequence[ListedPurchase]) -> dict[str, object]:
    """Purchases as the arrays that look for their orders."""
    marks = [_mark(one) for one in listed]
    return {
        "keys": [one.key for one in listed],
        "tags": [one.merchant for one in marks],
        "lives": [one.live for one in marks],
        "orders": [one.order for one in marks],
    }


def _begun(acquirer: str, listed: ListedPurchase, known: _Order | _Renewal) -> dict[str, object]:
    """What begins an order's and a renewal's payment alike; it is dated as the acquirer has it,
    by the shop's time.
    """
    mark = _mark(listed)
    return {
        "merchant_id": known.merchant_id,
        "live": mark.live,
        "payment_id": mark.payment_id,
        "amount": listed.amount,
        "currency": listed.currency,
        "idempotency_key": listed.key,
        "number": mark.attempt,
        "acquirer": acquirer,
        "not_after": listed.at + KEY_LIFETIME,
        "at": listed.at + known.clock,
    }


@dataclass(frozen=True, slots=True)
class _Taken:
    """Which ids that marks tell are given to others."""

    payments: set[int]
    subscriptions: set[int]


async def _taken(desk: Desk, listed: Sequence[ListedPurchase]) -> _Taken:
    marks = [_mark(one) for one in listed]
    payments = queries.payment_ids_taken(desk.database, ids=[one.payment_id for one in marks])
    subscriptions = queries.subscription_ids_taken(desk.database, ids=[one.subscription_id for one in marks])
    return _Taken(
        {one.id for one in await records_of(_Id, payments)}, {one.id for one in await records_of(_Id, subscriptions)}
    )


async def _adopted(within: Within, acquirer: str, kind: PurchaseKind, plan: _Plan) -> Adopted | Left | None:
    """Write what was planned; None if somebody else was faster. Raises: as `adopt`."""
    begin = queries.begin_order if kind is PurchaseKind.ORDER else queries.begin_renewal
    listed = plan.listed
    try:
        async with within() as connection:
            await queries.keep_from_giving_back(connection)
            begun = record_if_any(_Begun, await begin(connection, **plan.values))
            if begun is None:
                return None
            if not await _recorded(connection, plan, begun.attempt_id):
                raise _Overtaken
            await name_forgotten_plan(connection, plan.shop, listed, begun.payment_id)
    except (_Overtaken, asyncpg.UniqueViolationError):
        return None
    except (*AWAY, ReadByAnother):
        raise
    except Exception as error:
        log.warning("a forgotten purchase can't be adopted", key=listed.key, exc_info=error)
        return Left(listed, noted("it can't be adopted: %(error)s", error=reason_of(error)))
    what = "the renewal" if kind is PurchaseKind.RENEWAL else "the payment"
    amount = f"{written(listed.amount, listed.currency)} {listed.currency}"
    log.warning("a forgotten purchase is adopted", key=listed.key, payment_id=begun.payment_id)
    reason = f"{what} of {amount} for order {plan.mark.order}, {listed.state} there, as payment {begun.payment_id}"
    return Adopted(acquirer, "purchase", listed.key, listed.reference, reason, plan.shop.merchant_id, begun.payment_id)


async def _recorded(connection: Connection, plan: _Plan, attempt_id: int) -> bool:
    """Write down what the acquirer's list says of a purchase that was begun again; of a pending one
    the janitor hears by its key what it comes to.
    """
    listed, shop = plan.listed, plan.shop
    if listed.state is PurchaseState.PENDING:
        names = {"merchant_id": shop.merchant_id, "live": shop.live, "attempt_id": attempt_id}
        await hosted.begin_page(connection, **names, asked="", expires_at=listed.at, slow=True)
        answer = Pending("", listed.at + LONGEST_WAIT)
        return bool(await record_pending(connection, [OnItsWay(shop, attempt_id, answer)], now=listed.at))
    approval = Approval(
        shop,
        attempt_id,
        Approved(
            listed.reference,
            listed.network_reference,
            instrument=listed.instrument,
            hold_until=listed.hold_until,
        ),
    )
    return await record_within(connection, approval, subscription_id=plan.subscription_id, now=listed.at + plan.clock)


class _Overtaken(Exception):
    """What was to be written has changed meanwhile."""


async def _pass_ids(marks: Sequence[Mark], within: Within) -> None:
    """Let ids that were given out before, as marks tell, be given to nobody else."""
    if marks:
        payments, subscriptions = [one.payment_id for one in marks], [one.subscription_id for one in marks]
        async with within() as connection:
            await queries.pass_ids(connection, payment_id=max(payments), subscription_id=max(subscriptions))
