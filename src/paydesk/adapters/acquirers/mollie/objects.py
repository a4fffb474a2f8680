"""What is read of Mollie's objects; all else in them is ignored."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final
from urllib.parse import parse_qs, urlsplit

import msgspec

from paydesk.adapters.acquirers.interface import (
    Approved,
    Challenged,
    Declined,
    Finding,
    OutcomeUnknown,
    Pending,
    Undecided,
    Voided,
)
from paydesk.adapters.acquirers.marks import MOST_BYTES, Mark, fitting, packed, unpacked
from paydesk.adapters.acquirers.mollie.amounts import main_units
from paydesk.adapters.acquirers.mollie.declines import decline_reason

KEY: Final = "paydesk_key"
"""The metadata field with our idempotency key: of a payment, or of a refund."""
ASKED: Final = "paydesk_asked"
"""The metadata field of a payment with a digest of all that was asked for."""
MARK: Final = "paydesk_mark"
"""The metadata field of a payment with its packed mark, all but the order."""
ORDER: Final = "paydesk_order"
"""The metadata field of a payment with the shop's reference of the order."""
NUMBER: Final = "paydesk_refund"
"""The metadata field of a refund with what our books call it."""
UNTIL: Final = "paydesk_until"
"""The metadata field of a later charge with its `not_after`."""
VOID: Final = "paydesk_void"
"""The metadata field of the refund that undid a payment, with the key of that."""


def digest_of(asked: dict[str, object]) -> str:
    """What tells one request from another under its key."""
    return hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()[:32]


def metadata_of(key: str, asked: str, mark: Mark | None) -> dict[str, str]:
    """What a payment carries at Mollie, which keeps about 1 kB."""
    plain = {KEY: key, ASKED: asked}
    if mark is None:
        return plain
    plain[MARK] = packed(replace(mark, order=""))
    return plain | {ORDER: fitting(mark.order, lambda text: _weight(plain | {ORDER: text}) <= MOST_BYTES)}


def _weight(metadata: dict[str, str]) -> int:
    return len(msgspec.json.encode(metadata))


DEBIT: Final = "directdebit"
"""What later charges are where a bank account is kept: SEPA direct debits."""

DEBIT_TAKES: Final = timedelta(days=14)
"""In how long Mollie knows at the latest whether one was paid: in nine business days
(docs.mollie.com/docs/sepa-direct-debit).
"""


class Amount(msgspec.Struct, frozen=True):
    """A sum of money, in main units."""

    value: str
    currency: str

    @property
    def amount(self) -> Decimal:
        """Its number. Raises: OutcomeUnknown if it is none."""
        return main_units(self.value)


class Link(msgspec.Struct, frozen=True):
    """An address."""

    href: str = ""


class Links(msgspec.Struct, frozen=True):
    """Where something may be found: a payment's page, the next part of a list."""

    checkout: Link | None = None
    next: Link | None = None


class Details(msgspec.Struct, frozen=True, rename="camel"):
    """What a method tells of its payment."""

    card_label: str | None = None
    card_number: str | None = None
    card_expiry_date: str | None = None
    card_security: str | None = None
    wallet: str | None = None
    failure_reason: str | None = None
    bank_reason_code: str | None = None


class Payment(msgspec.Struct, frozen=True, rename="camel"):
    """A payment, whether paid or not."""

    id: str
    status: str
    amount: Amount
    created_at: str
    metadata: object = None
    method: str | None = None
    details: Details | None = None
    is_cancelable: bool | None = None
    capture_mode: str | None = None
    capture_before: str | None = None
    sequence_type: str | None = None
    customer_id: str | None = None
    mandate_id: str | None = None
    amount_captured: Amount | None = None
    amount_refunded: Amount | None = None
    amount_charged_back: Amount | None = None
    links: Links = msgspec.field(name="_links", default=Links())
    embedded: Embedded | None = msgspec.field(name="_embedded", default=None)

    @property
    def at(self) -> datetime:
        """When it was made."""
        return moment(self.created_at)

    @property
    def key(self) -> str:
        """Our idempotency key, empty for a payment that is none of ours."""
        return written(self.metadata, KEY)

    @property
    def mark(self) -> Mark | None:
        """Whose it is, None if nobody wrote it."""
        mark = unpacked(written(self.metadata, MARK))
        return mark and replace(mark, order=written(self.metadata, ORDER))

    @property
    def kept(self) -> str:
        """What Mollie keeps its instrument under, to be charged again; empty if it does not."""
        is_first = self.sequence_type == "first" and self.customer_id and self.mandate_id
        return f"{self.customer_id}/{self.mandate_id}" if is_first else ""

    @property
    def until(self) -> datetime | None:
        """Until when a later charge was to be made, None if nothing says so."""
        with suppress(ValueError):
            return datetime.fromisoformat(written(self.metadata, UNTIL))
        return None

    @property
    def url(self) -> str:
        """Its page, empty once there is none."""
        return self.links.checkout.href if self.links.checkout else ""

    @property
    def is_debit(self) -> bool:
        """Whether it is a later charge by direct debit, whose money is not sure for days."""
        return self.sequence_type == "recurring" and self.method == DEBIT

    @property
    def may_be_held(self) -> bool:
        """Whether its money is taken by a capture of ours alone."""
        return self.capture_mode == "manual"

    @property
    def is_held(self) -> bool:
        """Whether its money is only held, all of it or what is left."""
        return self.may_be_held and self.status == "authorized"

    @property
    def hold_until(self) -> datetime | None:
        """When the hold ends, None if nothing is held or Mollie does not say."""
        return moment(self.capture_before) if self.is_held and self.capture_before else None

    @property
    def captured(self) -> Decimal:
        """What was taken."""
        if self.is_held:
            return self.amount_captured.amount if self.amount_captured else Decimal(0)
        if self.status != "paid":
            return Decimal(0)
        return (self.amount_captured or self.amount).amount

    @property
    def refunded(self) -> Decimal:
        """What was given back of it."""
        return self.amount_refunded.amount if self.amount_refunded else Decimal(0)

    @property
    def is_open(self) -> bool:
        """Whether its customer may still pay, or has done so and the money is not sure yet."""
        return self.status in {"open", "pending", "authorized"} and not self.is_held


class Named(msgspec.Struct, frozen=True):
    """Any object of which only its name matters."""

    id: str


class Mandate(msgspec.Struct, frozen=True):
    """What allows to charge a customer again."""

    id: str
    status: str


class Refund(msgspec.Struct, frozen=True, rename="camel"):
    """A refund; `payment` is there where it was asked for."""

    id: str
    amount: Amount
    status: str
    created_at: str
    payment_id: str = ""
    metadata: object = None
    embedded: Embedded | None = msgspec.field(name="_embedded", default=None)

    @property
    def key(self) -> str:
        """Our idempotency key, empty for a refund that is none of ours."""
        return written(self.metadata, KEY)

    @property
    def undoes(self) -> str:
        """The key of the undoing that it was made for, empty if it was not."""
        return written(self.metadata, VOID)

    @property
    def listed_key(self) -> str:
        """The key under which it was asked for, of which several may be made to undo a payment."""
        return self.undoes or self.key

    @property
    def number(self) -> int:
        """What our books call it, 0 if that is not known."""
        said = written(self.metadata, NUMBER)
        return int(said) if said.isascii() and said.isdigit() and len(said) <= 18 else 0

    @property
    def counts(self) -> bool:
        """Whether its money has gone back or is on its way;
        it may wait for the account's balance.
        """
        return self.status not in {"failed", "canceled"}

    @property
    def is_over(self) -> bool:
        """Whether its customer has the money."""
        return self.status == "refunded"


class Capture(msgspec.Struct, frozen=True):
    """What was taken, or is to be, of what a payment holds."""

    id: str
    status: str
    amount: Amount | None = None
    metadata: object = None

    @property
    def key(self) -> str:
        """Our idempotency key, empty for a capture that is none of ours."""
        return written(self.metadata, KEY)


class Reason(msgspec.Struct, frozen=True):
    """Why a customer's bank wants money back, in its words."""

    code: str = ""
    description: str = ""


class Chargeback(msgspec.Struct, frozen=True, rename="camel"):
    """What a customer's bank took back; given again at `reversed_at`."""

    id: str
    amount: Amount
    created_at: str
    payment_id: str = ""
    reversed_at: str | None = None
    reason: Reason | None = None
    embedded: Embedded | None = msgspec.field(name="_embedded", default=None)


class Embedded(msgspec.Struct, frozen=True):
    """What a list, or an object, has in it."""

    payments: list[Payment] = []
    refunds: list[Refund] = []
    chargebacks: list[Chargeback] = []
    captures: list[Capture] = []
    payment: Payment | None = None


class Listed(msgspec.Struct, frozen=True):
    """A part of a list."""

    embedded: Embedded = msgspec.field(name="_embedded", default=Embedded())
    links: Links = msgspec.field(name="_links", default=Links())

    @property
    def next(self) -> str:
        """The name with which the next part begins, empty on the last one."""
        href = self.links.next.href if self.links.next else ""
        return parse_qs(urlsplit(href).query).get("from", [""])[0]


def written(metadata: object, name: str) -> str:
    """A field of metadata, which may be anything if others wrote it."""
    value = metadata.get(name, "") if isinstance(metadata, dict) else ""
    return value if isinstance(value, str) else ""


def moment(text: str) -> datetime:
    """A time of Mollie's. Raises: OutcomeUnknown if it is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        raise OutcomeUnknown("Mollie tells a time that is none") from None


def finding_of(payment: Payment, *, voided: bool) -> Finding:
    """How a payment stands; `voided` if a refund of ours undid it.

    Raises: OutcomeUnknown while its money is not sure.
    """
    match payment.status:
        case "open" | "pending" if payment.is_debit:
            return Pending(payment.id, payment.at + DEBIT_TAKES)
        case "open" if payment.sequence_type != "recurring":
            return Challenged(payment.id, payment.url)
        case "authorized" if payment.is_held:
            return Approved(payment.id, until=payment.until, hold_until=payment.hold_until)
        case "paid":
            return Voided() if voided else Approved(payment.id, until=payment.until)
        case "canceled" | "expired":
            return Voided()
        case "failed":
            told = payment.details
            return Declined(
                decline_reason((told and (told.failure_reason or told.bank_reason_code)) or ""), payment.until
            )
    raise Undecided(f"Mollie is not done with {payment.id}: {payment.status[:40]}")
