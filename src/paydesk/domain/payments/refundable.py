"""What may be given back of a payment: how it stands, which amount, and the asker's limits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import Busy, Conflict, Malformed
from paydesk.core.money import fits, minor_digits, plain_number, written
from paydesk.core.units import in_currency
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.live_amounts import has_more_decimals, require_taken
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.movements import first_look
from paydesk.domain.payments.states import MovementKind, PaymentState

queries = load_statements(__package__ or "", "refundable.sql")

INVALID_AMOUNT = worded("Invalid requested amount")
NOTHING_LEFT = worded("This transaction was already refunded")
"""What clients in the field look for (interface.md §8.2)."""

REFUNDABLE = frozenset({PaymentState.CAPTURED, PaymentState.PARTIALLY_REFUNDED, PaymentState.CHARGED_BACK})
"""Where something may be left to give back; of a chargeback over a part, the rest."""
GIVEN_BACK = frozenset({PaymentState.REFUNDED, PaymentState.VOIDED})
_MOST_SHOWN = 40
_CAPTURING = "payment %(payment_id)s is just being captured; ask anew in a moment"
_VOIDING = "payment %(payment_id)s is just being voided; ask anew in a moment"
_TOO_MUCH = "%(invalid)s: %(asked)s %(currency)s is too much, %(most)s %(currency)s are left"
_TOO_MUCH_BESIDE = (
    "%(invalid)s: %(asked)s %(currency)s is too much, %(most)s %(currency)s are left, "
    "and %(returning)s %(currency)s on their way back"
)


@dataclass(frozen=True, slots=True)
class RefundLimits:
    """What whoever asks may give back of one payment and in a UTC day, in dollars,
    euros or pounds (core/units.py).
    """

    of_payment: Decimal
    of_day: Decimal


class OverLimit(Conflict):
    """More than whoever asks may give back: of this payment, or today."""


@dataclass(frozen=True, slots=True)
class Refundable:
    """How a payment stands, as far as it can be given back;
    `moving` is what its hold is being ended by.
    """

    merchant_order_id: str
    state: PaymentState
    amount: Decimal
    currency: str
    refunded: Decimal
    refunding: Decimal
    charged_back: Decimal
    moving: MovementKind | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for, by whom, under which key (drawn if the caller named none, or by a caller
    who tells of it later); `now` is the shop's time.
    """

    shop: Shop
    payment_id: int
    amount: Decimal | None
    requested_by: str
    key: str
    drawn: bool
    now: datetime
    told_later: bool = False

    def names(self, pads: bytes) -> dict[str, object]:
        """What names the movement to the statements that begin one."""
        return {
            "merchant_id": self.shop.merchant_id,
            "live": self.shop.live,
            "payment_id": self.payment_id,
            "requested_by": self.requested_by,
            "pads": pads,
            "request_key": self.key,
            "drawn": self.drawn,
            "lookup_at": first_look(),
            "now": self.now,
        }


async def find_refundable(database: Database, shop: Shop, payment_id: int) -> Refundable | None:
    """How a payment of the shop stands, None if it has no such payment in this mode."""
    return record_if_any(
        Refundable,
        await queries.refundable(database, merchant_id=shop.merchant_id, live=shop.live, payment_id=payment_id),
    )


def what_to_do(row: Refundable, shop: Shop, payment_id: int, amount: Decimal | None) -> MovementKind:
    """Whether to refund or to void, from how the payment stands.

    Raises: Malformed, Conflict.
    """
    state = row.state
    if state in GIVEN_BACK:
        raise Malformed(NOTHING_LEFT)
    if state not in REFUNDABLE and state is not PaymentState.AUTHORIZED:
        raise Conflict(
            worded(
                "payment %(payment_id)s is %(state)s: it is not paid, there is nothing to give back",
                payment_id=payment_id,
                state=state,
            )
        )
    if row.amount == 0:
        raise Conflict(
            worded("payment %(payment_id)s cost nothing, there is nothing to give back", payment_id=payment_id)
        )
    left = row.amount - row.refunded - row.refunding - max(row.charged_back, Decimal(0))
    # What refunds on their way have reserved is free again if the acquirer refuses them.
    reserved = row.refunding > 0
    if left <= 0 and state is PaymentState.CHARGED_BACK and not reserved:
        raise Conflict(
            worded("payment %(payment_id)s was charged back: the customer has the money already", payment_id=payment_id)
        )
    if left <= 0:
        raise Malformed(NOTHING_LEFT, passing=reserved)
    if amount is not None:
        _refuse_amount(amount, row.currency, left, row.refunding)
    if state in REFUNDABLE:
        _refuse_decimals(amount, row, shop, left)
        return MovementKind.REFUND
    if row.moving is not None:
        raise Busy(worded(_CAPTURING if row.moving == MovementKind.CAPTURE else _VOIDING, payment_id=payment_id))
    if amount not in (None, left):
        raise Malformed(
            worded(
                "%(invalid)s: payment %(payment_id)s is authorized and not captured yet: only all "
                "of it can be given back; leave the amount out, or wait until its shipment is confirmed",
                invalid=INVALID_AMOUNT,
                payment_id=payment_id,
            ),
            "amount",
            passing=True,
        )
    return MovementKind.VOID


def _refuse_amount(amount: Decimal, currency: str, left: Decimal, refunding: Decimal) -> None:
    """Refuse what can't be given back of what is left: it must be above 0, exact in the currency,
    and not too much.

    Raises: Malformed, saying which it was.
    """
    if not amount.is_finite() or amount <= 0:
        raise Malformed(
            worded("%(invalid)s: %(amount)s is not above 0", invalid=INVALID_AMOUNT, amount=amount),
            "amount",
        )
    if amount > left:
        asked, most = f"{plain_number(amount):f}"[:_MOST_SHOWN], written(left, currency)
        returning = {"returning": written(refunding, currency)} if refunding else {}
        raise Malformed(
            worded(
                _TOO_MUCH_BESIDE if refunding else _TOO_MUCH,
                invalid=INVALID_AMOUNT,
                asked=asked,
                currency=currency,
                most=most,
                **returning,
            ),
            "amount",
            passing=amount <= left + refunding,
        )
    if not fits(amount, currency):
        raise Malformed(
            worded(
                "%(invalid)s: %(amount)s has more decimals than %(currency)s allows (%(digits)s)",
                invalid=INVALID_AMOUNT,
                amount=amount,
                currency=currency,
                digits=minor_digits(currency),
            ),
            "amount",
        )


def _refuse_decimals(amount: Decimal | None, row: Refundable, shop: Shop, left: Decimal) -> None:
    """Refuse a part with decimals that acquirers don't take; what was paid with such is given back
    with them, and what is left as it is.

    Raises: Conflict, saying what could be asked for.
    """
    if amount is not None and amount != left and not has_more_decimals(row.amount, row.currency):
        require_taken(shop, row.currency, amount, most=left)


async def refuse_over(database: Database, row: Refundable, asked: Asked, limits: RefundLimits | None) -> None:
    """Say which limit an amount is over; the statement that begins the refund looks at both anew.

    Raises: OverLimit.
    """
    if limits is None:
        return
    currency, before = row.currency, row.refunded + row.refunding
    amount = row.amount - before - max(row.charged_back, Decimal(0)) if asked.amount is None else asked.amount
    most = in_currency(limits.of_payment, currency)
    if before + amount > most:
        raise OverLimit(
            worded(
                "more than %(most)s %(currency)s of one payment needs your password",
                most=written(most, currency),
                currency=currency,
            )
        )
    today = await queries.given_back_in_day(
        database,
        merchant_id=asked.shop.merchant_id,
        live=asked.shop.live,
        requested_by=asked.requested_by,
        now=asked.now,
    )
    if (today or 0) + amount / in_currency(Decimal(1), currency) > limits.of_day:
        most = in_currency(limits.of_day, currency)
        raise OverLimit(
            worded(
                "more than %(most)s %(currency)s in a day needs your password",
                most=written(most, currency),
                currency=currency,
            )
        )
