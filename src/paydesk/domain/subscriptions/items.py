"""One-off items: what the next charge of a subscription has besides its price, once.

An item waits in the subscription's balance, so the renewal that charges it is made, tried again and
found out about like any other; it is no part of a period's price, and no change of plan gives any
of it back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256

import asyncpg

from paydesk.core.currencies import charge_digits
from paydesk.core.errors import Conflict, NotFound
from paydesk.core.money import plain_number
from paydesk.core.wording import plural, worded
from paydesk.database.pool import Database
from paydesk.database.reading_again import READ_AGAIN
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.balances import find_balance
from paydesk.domain.subscriptions.changing import require_uncharged
from paydesk.domain.subscriptions.ending import changes_all_the_time, find_row, require_running
from paydesk.domain.subscriptions.largest_charge import charged_next, require_payable
from paydesk.domain.subscriptions.lifecycle import Canceller, Subscription
from paydesk.domain.subscriptions.prorating import least_charge
from paydesk.domain.subscriptions.rows import subscription_of
from paydesk.domain.subscriptions.states import RUNNING, SubscriptionState

queries = load_statements(__package__ or "", "items.sql")

MOST_WAITING = 100
"""How many items of a subscription may wait at once."""
MOST_SHOWN = 200
"""How many items of a subscription are listed, the newest."""


class ItemState(StrEnum):
    """What became of an item."""

    WAITING = "waiting"
    """It comes with the next charge, or that was tried and is not paid."""
    CHARGED = "charged"
    """It was charged, or a credit in the balance has covered it."""
    TAKEN_BACK = "taken_back"
    """The merchant took it back before it was charged."""
    DROPPED = "dropped"
    """The subscription has ended before it was charged."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a subscription, in main units of the subscription's currency; times are UTC.

    `payment_id` is the payment that has it, once that was tried: from then on it can't be taken
    back.
    """

    id: int
    subscription_id: int
    amount: Decimal
    description: str
    created_at: datetime
    taken_back_at: datetime | None
    payment_id: int | None
    paid: bool
    subscription_state: SubscriptionState

    @property
    def state(self) -> ItemState:
        """What became of it."""
        if self.taken_back_at is not None:
            return ItemState.TAKEN_BACK
        if self.paid:
            return ItemState.CHARGED
        return ItemState.WAITING if self.subscription_state in RUNNING else ItemState.DROPPED

    @property
    def may_be_taken_back(self) -> bool:
        """Whether no charge was tried with it."""
        return self.state is ItemState.WAITING and self.payment_id is None


@dataclass(frozen=True, slots=True)
class WantedItem:
    """What is to be charged once, in main units of the subscription's currency, and what the
    customer reads of it.
    """

    amount: Decimal
    description: str


@dataclass(frozen=True, slots=True)
class ItemDone:
    """What came of a wish for an item, or would: the subscription and its balance as they are then.

    `item` is None of a preview that adds one; `moved` says whether anything changed.
    """

    subscription: Subscription
    balance: Decimal
    item: Item | None
    moved: bool = True

    @property
    def next_at(self) -> datetime | None:
        """When the subscription is charged next; None if that is not known yet."""
        return self.subscription.charged_next_at

    @property
    def next_amount(self) -> Decimal:
        """How much that is."""
        return charged_next(self.subscription, self.balance)


async def add_item(
    database: Database,
    shop: Shop,
    subscription_id: int,
    wanted: WantedItem,
    *,
    by: Canceller,
    now: datetime,
    request_key: str | None = None,
    preview: bool = False,
) -> ItemDone:
    """Have the next charge of a subscription take an amount besides its price, once.
    Moves no money.

    While its charge is failing the item comes with the one after that. `request_key` is the
    caller's own name for it: who sends it again gets what became of it. `now` is the shop's time,
    UTC; a `preview` changes nothing.

    Raises: NotFound; Conflict if no charge comes, or one that is larger than any payment, or the
        key came with another item; Busy while it is charged.
    """
    for _ in range(READ_AGAIN):
        if known := await _by_key(database, shop, subscription_id, wanted, request_key):
            return known
        row = await find_row(database, shop, subscription_id)
        current = subscription_of(row)
        _require_charge_to_come(current)
        await require_uncharged(database, row)
        await _require_room(database, shop, subscription_id)
        balance = await find_balance(database, shop, subscription_id)
        foreseen = ItemDone(current, balance + wanted.amount, None, moved=False)
        currency = current.package.terms.currency
        require_payable(foreseen.next_amount, currency)
        if preview:
            return foreseen
        try:
            added_id = await queries.add_item(
                database,
                merchant_id=shop.merchant_id,
                live=shop.live,
                subscription_id=subscription_id,
                revision=current.revision,
                request_key=request_key,
                amount=wanted.amount,
                description=wanted.description,
                asked_by=by,
                charge_digits=charge_digits(currency),
                least_charge=least_charge(currency),
                now=now,
            )
        except asyncpg.UniqueViolationError:
            continue
        if added_id is not None:
            return await _done(database, shop, subscription_id, added_id)
    raise changes_all_the_time()


async def find_waiting(database: Database, shop: Shop, subscription_id: int, wanted: WantedItem) -> ItemDone | None:
    """The item that is wanted again without a name: the newest equal one that may be taken back,
    whoever added it; None if there is none. Moves no money.
    """
    equal = await _items(database, shop, subscription_id, equal_to=wanted, most=None)
    waiting = next((one for one in equal if one.may_be_taken_back), None)
    if waiting is None:
        return None
    return replace(await _done(database, shop, subscription_id, waiting.id), moved=False)


async def key_of_repeats(database: Database, shop: Shop, subscription_id: int, wanted: WantedItem) -> str:
    """The key of an item that its caller has not named: equal ones share it until a charge is tried
    with one, or it is taken back. Moves no money.
    """
    equal = await _items(database, shop, subscription_id, equal_to=wanted, most=None)
    before = sum(not one.may_be_taken_back for one in equal)
    named = f"{subscription_id}\n{plain_number(wanted.amount):f}\n{before}\n{wanted.description}"
    return sha256(named.encode()).hexdigest()[:32]


async def take_back_item(
    database: Database, shop: Shop, subscription_id: int, item_id: int, *, now: datetime, preview: bool = False
) -> ItemDone:
    """Have an item not be charged after all; one that was taken back stays so. Moves no money.

    Args: now is the shop's time, UTC; a `preview` changes nothing.
    Raises: NotFound; Conflict if a charge was tried with it, or the subscription has ended; Busy
        while it is charged.
    """
    for _ in range(READ_AGAIN):
        row = await find_row(database, shop, subscription_id)
        item = await find_item(database, shop, subscription_id, item_id)
        current = subscription_of(row)
        balance = await find_balance(database, shop, subscription_id)
        if item.state is ItemState.TAKEN_BACK:
            return ItemDone(current, balance, item, moved=False)
        require_running(current)
        await require_uncharged(database, row)
        if not item.may_be_taken_back:
            raise Conflict(
                worded(
                    "item %(item_id)s was charged with payment %(payment_id)s; refund what shall not stay paid",
                    item_id=item_id,
                    payment_id=item.payment_id,
                )
                if item.paid
                else worded(
                    "payment %(payment_id)s was tried with item %(item_id)s in it; it stays open until it is paid",
                    payment_id=item.payment_id,
                    item_id=item_id,
                )
            )
        if preview:
            return ItemDone(current, balance - item.amount, item, moved=False)
        moved = await queries.take_back_item(
            database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            subscription_id=subscription_id,
            revision=current.revision,
            id=item_id,
            now=now,
        )
        if moved is not None:
            return await _done(database, shop, subscription_id, item_id)
    raise changes_all_the_time()


async def list_items(database: Database, shop: Shop, subscription_id: int, *, most: int = MOST_SHOWN) -> list[Item]:
    """A subscription's items, newest first. Moves no money."""
    return await _items(database, shop, subscription_id, most=most)


async def find_item(database: Database, shop: Shop, subscription_id: int, item_id: int) -> Item:
    """An item of a subscription. Moves no money. Raises: NotFound."""
    found = await _items(database, shop, subscription_id, item_id=item_id)
    if not found:
        raise NotFound(f"subscription {subscription_id} has no item {item_id}")
    return found[0]


async def _items(
    database: Database,
    shop: Shop,
    subscription_id: int | None = None,
    *,
    item_id: int | None = None,
    request_key: str | None = None,
    equal_to: WantedItem | None = None,
    most: int | None = 1,
) -> list[Item]:
    """The items of a subscription, or the one under a caller's key, newest first."""
    rows = queries.list_items(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        subscription_id=subscription_id,
        id=item_id,
        request_key=request_key,
        amount=equal_to and equal_to.amount,
        description=equal_to and equal_to.description,
        most=most,
    )
    return await records_of(Item, rows)


async def _by_key(
    database: Database, shop: Shop, subscription_id: int, wanted: WantedItem, request_key: str | None
) -> ItemDone | None:
    """What became of the item under a caller's key. Raises: Conflict if it was another one."""
    found = [] if request_key is None else await _items(database, shop, request_key=request_key)
    if not found:
        return None
    (item,) = found
    before = (item.subscription_id, item.amount, item.description)
    if before != (subscription_id, wanted.amount, wanted.description):
        raise Conflict("this Idempotency-Key came with another request before; use a new key for each new request")
    current = subscription_of(await find_row(database, shop, subscription_id))
    return ItemDone(current, await find_balance(database, shop, subscription_id), item, moved=False)


async def _done(database: Database, shop: Shop, subscription_id: int, item_id: int) -> ItemDone:
    """How a subscription stands with an item that has changed."""
    current = subscription_of(await find_row(database, shop, subscription_id))
    balance = await find_balance(database, shop, subscription_id)
    return ItemDone(current, balance, await find_item(database, shop, subscription_id, item_id))


async def _require_room(database: Database, shop: Shop, subscription_id: int) -> None:
    """Raises: Conflict if as many items wait as may."""
    newest = await _items(database, shop, subscription_id, most=MOST_WAITING)
    if len(newest) == MOST_WAITING and all(item.state is ItemState.WAITING for item in newest):
        raise Conflict(
            plural(
                "%(count)s item of subscription %(subscription_id)s waits already; put both together",
                "%(count)s items of subscription %(subscription_id)s wait already; put them together",
                count=MOST_WAITING,
                subscription_id=subscription_id,
            )
        )


def takes_items(current: Subscription) -> bool:
    """Whether a charge comes, as far as is known, that an item can come with."""
    to_come = current.charged_next_at is not None or current.paused or current.failures > 0
    return current.running and current.has_card and to_come


def _require_charge_to_come(current: Subscription) -> None:
    """Raises: Conflict if nothing is charged any more that an item could come with."""
    require_running(current)
    if not current.has_card:
        raise Conflict(
            worded(
                "subscription %(id)s has no card yet; nothing is charged before its customer gives one", id=current.id
            )
        )
    if not takes_items(current):
        raise Conflict(
            worded(
                "subscription %(id)s is not charged any more, so nothing can come with its next charge", id=current.id
            )
        )
