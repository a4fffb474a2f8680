"""Erasing a customer: every personal value becomes `erased`, what happened to the money stays.
Moves no money.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import msgspec

from paydesk.core.errors import Conflict, NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_of, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.audit import COMMAND_LINE, Action, Actor, record
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.payments import letting_go
from paydesk.domain.privacy.belongings import ERASED, Found, OneOrder, Subject, find_person, orders_of
from paydesk.domain.privacy.belongings import queries as belongings
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.subscription_terms import OPTIONAL, REQUIRED

queries = load_statements(__package__ or "", "erasing.sql")

KEPT_FIELDS = (
    "api_key", "merchant_order_id", "amount", "currency", "sign_version", "quantity", "payment_flow",
    *REQUIRED, *OPTIONAL,
)  # fmt: skip
"""Fields of a form that say what was sold, and nothing of who bought it."""

PERSONAL = frozenset({"firstname", "lastname", "username", "country", "email", "u_email"})
"""Keys under which pingbacks hold personal values; other texts are looked through for them."""

_decoder = msgspec.json.Decoder(float_hook=Decimal)
_encoder = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True, slots=True)
class Erasure:
    """What was erased: how many rows of each kind.
    `orders_left` are the shop's references that hold a personal value.

    They name orders to the shop, whose books and ours would no longer agree without them.
    """

    merchant_id: int
    rows: Mapping[str, int] = field(default_factory=dict)
    orders_left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _InTheWay:
    """Subscriptions that run, how many pingbacks are due, and of how many outcomes nobody knows."""

    running: Sequence[int]
    due: int
    open: int


@dataclass(frozen=True, slots=True)
class _Pingback:
    id: int
    payload: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Mail:
    id: int
    facts: str = field(repr=False)


async def erase(
    database: Database,
    subject: Subject,
    *,
    end: bool = False,
    again: bool = False,
    remember: Callable[[], None] = lambda: None,
    actor: Actor = COMMAND_LINE,
    now: datetime,
) -> Erasure:
    """Erase all that is stored of somebody, in one transaction; the ledger and what was paid stay.

    `end` cancels running subscriptions first. `again` repeats an erasure after a restore: pingbacks
    that are due by the older state were sent with the true values before. `remember` is called
    before what is erased is gone, and must keep that it will be. `now` is real time, UTC.

    Pages of an acquirer's on which they could still pay are ended, first of all. Raises: NotFound;
        Conflict if a subscription runs, a pingback is due or an outcome is open, such a page's too.
    """
    if end or again:
        await _end_subscriptions(database, subject, now=now)
    await _end_pages(database, subject, again=again, now=now)
    async with database.acquire() as connection, connection.transaction():
        sides = await _held(connection, subject)
        if not again:
            sides = await _at_rest(connection, subject, sides)
        counts: dict[str, int] = {}
        left: set[str] = set()
        for found in sides:
            left |= await _orders_left(connection, found)
            for kind, rows in (await _erase_side(connection, found, now)).items():
                counts[kind] = counts.get(kind, 0) + rows
        if not any(counts.values()):
            raise NotFound(f"merchant {subject.merchant_id} has nothing of this customer")
        remember()
        for customer in [one for found in sides for one in found.customers]:
            named = f"customer {customer}"
            await record(
                connection, actor, Action.customer_erased, now=now, merchant_id=subject.merchant_id, subject=named
            )
    return Erasure(subject.merchant_id, counts, tuple(sorted(left)))


async def _held(connection: Connection, subject: Subject) -> list[Found]:
    """What is stored of somebody, by whose saved cards nothing begins until the transaction is
    over; what began just before is there to be seen.
    """
    sides = await find_person(connection, subject)
    saving = [found for found in sides if found.shoppers or found.instruments]
    for found in saving:
        await queries.hold_shoppers(connection, **found.side, ids=found.shoppers)
        await queries.hold_instruments(connection, **found.side, ids=found.instruments)
    return await find_person(connection, subject) if saving else sides


async def _end_subscriptions(database: Database, subject: Subject, *, now: datetime) -> None:
    """Cancel what runs, and tell the merchant, as for any cancellation."""
    async with database.acquire() as connection:
        sides = await find_person(connection, subject)
        running = [(found.shop, one) for found in sides for one in (await _in_the_way(connection, found)).running]
    for shop, subscription_id in running:
        at = await shop_time(database, shop, real_now=now)
        await cancel(database, shop, subscription_id, by="merchant", now=at)


async def _end_pages(database: Database, subject: Subject, *, again: bool, now: datetime) -> None:
    """Have the janitor end the pages that are open; `again` nobody waits for that.

    Raises: Conflict while there are any.
    """
    async with database.acquire() as connection:
        found = await find_person(connection, subject)
        count = [await queries.end_pages(connection, **one.side, attempts=one.attempts, now=now) for one in found]
    if any(count) and not again:
        raise Conflict("they can still pay on a page of the acquirer's, which is being ended: try again in a minute")


async def _in_the_way(connection: Connection, found: Found) -> _InTheWay:
    names = ("subscriptions", "attempts", "movements", "changes", "pingbacks")
    asked = {name: getattr(found, name) for name in names}
    return record_of(_InTheWay, await belongings.standing_in_the_way(connection, **found.side, **asked))


async def _refuse_open(connection: Connection, found: Found) -> None:
    """Raises: Conflict, saying what has to be over first."""
    there = await _in_the_way(connection, found)
    if there.running:
        ids = ", ".join(map(str, there.running))
        raise Conflict(f"still running: subscription {ids}; cancel first, or call this with --end")
    if there.open:
        raise Conflict("the outcome of a payment, refund or change of card is not known yet; try again when it is")
    if there.due:
        raise Conflict(f"pingbacks still to be sent: {there.due}; try again when they are acknowledged or exhausted")


async def _at_rest(connection: Connection, subject: Subject, sides: list[Found]) -> list[Found]:
    """Somebody's rows, when nothing of theirs is going on.

    An outcome that comes between finding rows and looking at them brings a pingback with true
    values, which is not among what was found: they are found again until nothing was added.

    Raises: Conflict, saying what has to be over first.
    """
    looked_at: list[Found] = []
    while [found.rows for found in sides] != [found.rows for found in looked_at]:
        for found in sides:
            await _refuse_open(connection, found)
        looked_at, sides = sides, await find_person(connection, subject)
    return sides


async def _orders_left(connection: Connection, found: Found) -> set[str]:
    asked = {"payments": found.payments, "checkouts": found.checkouts, "patterns": found.patterns}
    rows = queries.orders_left(connection, **found.side, **asked)
    return {order.merchant_order_id for order in await records_of(OneOrder, rows)}


async def _erase_side(connection: Connection, found: Found, now: datetime) -> dict[str, int]:
    """One side's rows, kind by kind; how many of each."""
    side, patterns = found.side, {"patterns": found.patterns}
    kept = {"kept": list(KEPT_FIELDS)}
    orders = await orders_of(connection, found)
    held = {name: getattr(found, name) for name in ("cards", "attempts", "subscriptions", "changes")}
    await letting_go.ask(connection, found.shop, **held)
    done = {
        "customers": await queries.erase_customers(connection, **side, ids=found.customers, now=now),
        "cards": await queries.erase_cards(connection, **side, ids=found.cards, now=now),
        "checkouts": await queries.erase_checkouts(
            connection, **side, ids=found.checkouts, now=now, **patterns, **kept
        ),
        "payments": await queries.erase_payments(connection, **side, ids=found.payments, **patterns),
        "attempts": await queries.erase_attempts(connection, **side, ids=found.attempts),
        "shoppers": await queries.erase_shoppers(connection, **side, ids=found.shoppers, now=now),
        "saved_cards": await queries.erase_instruments(connection, **side, ids=found.instruments, now=now),
        "saved_card_charges": await queries.erase_charges(
            connection, **side, ids=found.payments, instruments=found.instruments, **patterns
        ),
        "shopper_codes": await queries.erase_codes(connection, **side, emails=list(found.emails)),
        "pages": await queries.erase_pages(connection, **side, ids=found.attempts),
        "card_changes": await queries.erase_changes(connection, **side, ids=found.changes),
        "subscriptions": await queries.erase_subscriptions(connection, **side, ids=found.subscriptions, **patterns),
        "subscription_items": await queries.erase_items(
            connection,
            merchant_id=found.shop.merchant_id,
            live=found.shop.live,
            ids=found.subscriptions,
            patterns=found.patterns,
        ),
        "deliveries": await queries.erase_deliveries(connection, **side, ids=found.deliveries),
        "chargebacks": await queries.erase_chargebacks(connection, **side, ids=found.chargebacks),
        "evidence_files": await queries.erase_evidence_files(
            connection, merchant_id=found.shop.merchant_id, live=found.shop.live, ids=found.chargebacks
        ),
        "movements": await queries.erase_movements(connection, **side, ids=found.movements, **patterns),
        "pingbacks": await _erase_pingbacks(connection, found),
        "pingback_attempts": await queries.erase_pingback_attempts(connection, **side, ids=found.pingbacks, **patterns),
        "refused_forms": await queries.erase_rejected_forms(connection, **side, orders=orders, **kept, **found.texts),
        "api_calls": await queries.erase_api_calls(connection, **side, **found.texts),
        "mails": await queries.delete_mails(connection, merchant_id=found.shop.merchant_id, emails=list(found.emails)),
        "mails_to_others": await _erase_mails(connection, found),
    }
    return {kind: _count(status) for kind, status in done.items()}


async def _erase_pingbacks(connection: Connection, found: Found) -> str:
    rows = queries.pingbacks_to_erase(connection, **found.side, ids=found.pingbacks)
    pingbacks = await records_of(_Pingback, rows)
    payloads = [_without(found, pingback.payload) for pingback in pingbacks]
    ids = [pingback.id for pingback in pingbacks]
    status: str = await queries.erase_pingbacks(
        connection, **found.side, ids=ids, payloads=payloads, patterns=found.patterns
    )
    return status


async def _erase_mails(connection: Connection, found: Found) -> str:
    merchant_id = found.shop.merchant_id
    mails = await records_of(_Mail, queries.mails_to_erase(connection, merchant_id=merchant_id, **found.texts))
    facts = [_without(found, mail.facts) for mail in mails]
    status: str = await queries.erase_mails(
        connection, merchant_id=merchant_id, patterns=found.patterns, ids=[mail.id for mail in mails], facts=facts
    )
    return status


def _without(found: Found, text: str) -> str:
    """JSON with its personal values replaced; amounts stay as they are written,
    and fields in their order.
    """
    return _encoder.encode(_replaced(found, _decoder.decode(text))).decode()


def _replaced(found: Found, value: object, key: str = "") -> object:
    if isinstance(value, dict):
        return {name: _replaced(found, one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(found, one, key) for one in value]
    if isinstance(value, str) and value and (key in PERSONAL or found.names_a_person(value)):
        return ERASED
    return value


def _count(status: str) -> int:
    return int(status.split()[-1])
