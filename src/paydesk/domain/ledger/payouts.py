"""Payouts: an operator has sent a merchant money, and it leaves the available balance."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.money import written
from paydesk.core.paging import Page
from paydesk.core.wording import plural, worded
from paydesk.database.durability import ConfirmedConnection
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.database.surely import surely
from paydesk.domain.ledger.balances import Balance
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.taking_turns import take_turn

queries = load_statements(__package__ or "", "balances.sql")

LONGEST_REFERENCE = 140
LONGEST_REASON = 500
"""Of a payout to a bank account that waits."""
_UNLESS = worded("to record one all the same, say why")
_UNSURE = (
    "it is not known whether the payout was recorded: the database went away over it. Record it again with the same "
    "reference and key: it counts once"
)


@dataclass(frozen=True, slots=True)
class Payout:
    """Money sent to a merchant's bank; `reference` is what its bank statement shows, `at` is UTC.

    `again` if it was recorded before.
    """

    id: int
    currency: str
    amount: Decimal
    reference: str
    recorded_by: str
    at: datetime
    again: bool = False


@dataclass(frozen=True, slots=True)
class Sent:
    """Money that was sent to a merchant and is to be recorded;
    `amount` is positive, in main units of `currency`.

    `request_key` names this one wish, else the reference does: however often it comes, it counts
    once. Another transfer has another reference, or if its bank knows only one, a key of its own
    and `repeats` the reference. `despite_wait` is why it was sent although the merchant's bank
    account is too new, or its profile not accepted; usually empty. `has_left` if the bank has sent
    it, whatever is available by now (less than nothing then: the merchant owes it), and though the
    merchant was suspended meanwhile.
    """

    amount: Decimal
    currency: str
    reference: str
    recorded_by: str
    request_key: str | None = None
    repeats: bool = False
    despite_wait: str = ""
    has_left: bool = False


async def record_sent(database: Database, record: Callable[[Connection], Awaitable[Payout]]) -> Payout:
    """Have a payout recorded within a transaction, once, whatever breaks over it.
    Moves no money itself.

    Raises: Unsure, and as `record`.
    """

    async def write(connection: ConfirmedConnection) -> Payout:
        async with connection.transaction():
            return await record(connection)

    async def look(_connection: Connection) -> Payout | None:
        """Recording looks by itself: the merchant's row is held, and the key or the reference found
        if it is there.
        """
        return None

    return await surely(database, write, look, unsure=_UNSURE)


@dataclass(frozen=True, slots=True)
class _Merchant:
    """A merchant, as far as it says whether it is paid out."""

    id: int
    suspended_at: datetime | None
    unaccepted: bool
    payouts_from: datetime | None


@dataclass(frozen=True, slots=True)
class _Row:
    merchant_id: int
    live: bool
    id: int
    currency: str
    amount: Decimal
    reference: str
    recorded_by: str
    at: datetime
    request_key: str | None


async def record_payout_on(connection: Connection, shop: Shop, sent: Sent, *, now: datetime) -> Payout:
    """Record that money was sent to the merchant, out of what it has available, on a transaction.
    Moves none itself.

    now is the shop's time, UTC.
    Raises: Malformed without a usable reference; Conflict if less is available, the merchant is
        suspended or its bank account waits (its test side goes on, and what has left is
        recorded all the same), or key or reference belong to another payout; NotFound if there is
        no such merchant.
    """
    if not sent.reference.strip() or len(sent.reference) > LONGEST_REFERENCE or not sent.reference.isprintable():
        raise Malformed(
            plural(
                "a payout needs the reference of its transfer, at most %(count)s character",
                "a payout needs the reference of its transfer, at most %(count)s characters",
                count=LONGEST_REFERENCE,
            ),
            "reference",
        )
    sent = replace(sent, reference=sent.reference.strip())
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    # One payout after the other, or two could spend the same balance; a suspension waits, too.
    await take_turn(connection, shop.merchant_id)
    merchant = record_if_any(_Merchant, await queries.payee(connection, merchant_id=shop.merchant_id))
    if merchant is None:
        raise NotFound(f"there is no merchant {shop.merchant_id}; see: paydesk merchant list")
    before = await _recorded_before(connection, side, sent)
    if before is not None:
        return before
    row = record_if_any(
        _Row,
        await queries.record_payout(
            connection,
            **side,
            currency=sent.currency,
            amount=sent.amount,
            reference=sent.reference,
            recorded_by=sent.recorded_by,
            request_key=sent.request_key,
            despite_wait=bool(sent.despite_wait),
            has_left=sent.has_left,
            now=now,
        ),
    )
    if row is None and shop.live:
        _require_free(merchant, sent, now)
    if row is None:
        found = await records_of(Balance, queries.balances(connection, **side))
        known = {one.currency: one.available for one in found}
        available = known.get(sent.currency, Decimal(0))
        raise Conflict(
            worded(
                "only %(available)s %(currency)s are available, not %(amount)s",
                available=available,
                currency=sent.currency,
                amount=sent.amount,
            )
        )
    return _payout(row)


def is_suspended(merchant_id: int) -> Conflict:
    """Why nothing live is paid out to a merchant."""
    name = f"merchant {merchant_id}"
    return Conflict(
        worded("%(name)s is suspended: its money stays where it is until the suspension is lifted", name=name)
    )


def _require_free(merchant: _Merchant, sent: Sent, now: datetime) -> None:
    """Raises: Conflict, saying why nothing live is paid out to the merchant for now."""
    name = f"merchant {merchant.id}"
    if merchant.suspended_at is not None:
        raise is_suspended(merchant.id)
    if sent.despite_wait:
        return
    if merchant.unaccepted:
        raise Conflict(
            worded(
                "%(name)s has changed its business profile, and nobody has accepted it yet: %(unless)s",
                name=name,
                unless=_UNLESS,
            )
        )
    if merchant.payouts_from is not None and merchant.payouts_from > now:
        until = f"{merchant.payouts_from:%Y-%m-%d %H:%M} UTC"
        raise Conflict(
            worded(
                "%(name)s has a new bank account, to which payouts wait until %(until)s: %(unless)s",
                name=name,
                until=until,
                unless=_UNLESS,
            )
        )


async def _recorded_before(connection: Connection, side: Mapping[str, object], sent: Sent) -> Payout | None:
    """The payout that this wish was recorded as before.

    Raises: Conflict if its key or its reference belongs to another.
    """
    if sent.request_key is not None:
        row = record_if_any(_Row, await queries.payout_of_request(connection, **side, request_key=sent.request_key))
        if row is not None:
            return _same(row, sent, "key")
    if sent.repeats:
        return None
    row = record_if_any(
        _Row,
        await queries.payout_of_reference(
            connection, **side, reference=sent.reference, currency=sent.currency, amount=sent.amount
        ),
    )
    if row is None:
        return None
    if sent.request_key is not None:
        raise _taken(row, "reference")
    return _same(row, sent, "reference")


def _same(row: _Row, sent: Sent, named_by: str) -> Payout:
    """The payout, if it is what was sent. Raises: Conflict."""
    if (row.amount, row.currency, row.reference) != (sent.amount, sent.currency, sent.reference):
        raise _taken(row, named_by)
    return replace(_payout(row), again=True)


def _taken(row: _Row, named_by: str) -> Conflict:
    return Conflict(
        f"payout {row.id} of {written(row.amount, row.currency)} {row.currency}, recorded at "
        f"{row.at:%Y-%m-%d %H:%M} UTC, has this {named_by} already; another transfer needs a {named_by} of its own"
    )


async def list_payouts(database: Database, shop: Shop, page: Page) -> list[Payout]:
    """A page of the shop's payouts, newest first."""
    rows = queries.payouts(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        before_at=page.before.at,
        before_id=page.before.id,
        most=page.most,
    )
    return [_payout(row) for row in await records_of(_Row, rows)]


def _payout(row: _Row) -> Payout:
    return Payout(row.id, row.currency, row.amount, row.reference, row.recorded_by, row.at)
