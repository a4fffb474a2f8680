"""What is read of Stripe's objects; all else in them is ignored."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec

from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.interface import (
    Approved,
    Challenged,
    Declined,
    Finding,
    NothingHeld,
    Pending,
    Undecided,
    Voided,
)
from paydesk.adapters.acquirers.marks import Mark, fitting, packed, unpacked
from paydesk.adapters.acquirers.stripe.declines import decline_reason

KEY = "paydesk_key"
"""The metadata field with our idempotency key: of a purchase, or of a refund."""
UNTIL = "paydesk_until"
"""The metadata field of a purchase with its `not_after`."""
NUMBER = "paydesk_refund"
"""The metadata field of a refund with what our books call it."""
USED_UP = "paydesk_used_up"
"""The metadata field of an intent without a card that uses up a purchase's key."""
MARK = "paydesk_mark"
"""The metadata field of a purchase with its packed mark, all but the order."""
ORDER = "paydesk_order"
"""The metadata field of a purchase with the shop's reference of the order."""
CAPTURE = "paydesk_capture"
"""The metadata field of a purchase with the key of its capture."""
VOID = "paydesk_void"
"""The metadata field with the key of a void, of the purchase or of the refund that made it."""


ALWAYS_AUTHENTICATE: Mapping[str, object] = {"payment_method_options": {"card": {"request_three_d_secure": "any"}}}
"""What asks for 3-D Secure even if the bank would do without."""

BANKS = frozenset({"bancontact", "blik", "eps", "fpx", "giropay", "ideal", "p24", "pay_by_bank", "twint"})
"""Methods that pay from a bank account, at once."""

_BRANDS = {"amex", "diners", "discover", "jcb", "mastercard", "unionpay", "visa"}

DEBITS = {
    "acss_debit": timedelta(days=10),
    "au_becs_debit": timedelta(days=7),
    "bacs_debit": timedelta(days=10),
    "nz_bank_account": timedelta(days=7),
    "sepa_debit": timedelta(days=21),
    "us_bank_account": timedelta(days=10),
}
"""Slow methods that may be offered, direct debits, and in how many days Stripe knows at the latest:
up to 14 business days, for SEPA (docs.stripe.com/payments/sepa-debit).
"""

_MOST_OF_A_FIELD = 500


def metadata_of(key: str, not_after: datetime, mark: Mark | None) -> dict[str, str]:
    """What a purchase carries at Stripe: each field has at most 500 characters,
    however they are counted.
    """
    if mark is None:
        return {KEY: key, UNTIL: not_after.isoformat()}
    order = fitting(mark.order, lambda text: len(text.encode("utf-16-le")) // 2 <= _MOST_OF_A_FIELD)
    return {KEY: key, UNTIL: not_after.isoformat(), MARK: packed(replace(mark, order="")), ORDER: order}


def until_of(metadata: dict[str, str]) -> datetime | None:
    """Until when the purchase was to be taken, None if its metadata does not say."""
    with suppress(ValueError, KeyError):
        return datetime.fromisoformat(metadata[UNTIL])
    return None


def mark_of(metadata: dict[str, str]) -> Mark | None:
    """The mark in the metadata of a purchase, None if it has none."""
    mark = unpacked(metadata.get(MARK, ""))
    return mark and replace(mark, order=metadata.get(ORDER, ""))


class Problem(msgspec.Struct, frozen=True):
    """Why the last attempt failed."""

    code: str | None = None
    decline_code: str | None = None


class Redirect(msgspec.Struct, frozen=True):
    """Where a browser goes for 3-D Secure."""

    url: str | None = None


class NextAction(msgspec.Struct, frozen=True):
    """What the customer has to do."""

    redirect_to_url: Redirect | None = None


class Wallet(msgspec.Struct, frozen=True):
    """The wallet that a card was in."""

    type: str = ""


class ThreeDSecure(msgspec.Struct, frozen=True):
    """What came of asking for the customer."""

    result: str | None = None


class Card(msgspec.Struct, frozen=True):
    """A card as far as it may be shown; `capture_before` is when a hold of it ends,
    in seconds since 1970.
    """

    last4: str | None = None
    brand: str | None = None
    wallet: Wallet | None = None
    exp_month: int | None = None
    exp_year: int | None = None
    capture_before: int | None = None
    three_d_secure: ThreeDSecure | None = None


class CardOptions(msgspec.Struct, frozen=True):
    """What was asked of cards alone."""

    setup_future_usage: str | None = None


class MethodOptions(msgspec.Struct, frozen=True):
    """What was asked of single methods."""

    card: CardOptions | None = None


class PaymentMethod(msgspec.Struct, frozen=True):
    """What was paid with, or is kept; `id` names what is kept."""

    card: Card | None = None
    type: str = ""
    id: str = ""


class Charge(msgspec.Struct, frozen=True):
    """The attempt that took or held the money."""

    id: str
    amount_refunded: int = 0
    payment_method_details: PaymentMethod | None = None
    refunds: RefundList | None = None

    @property
    def last4(self) -> str:
        """The card's last digits, empty if Stripe does not tell them."""
        method = self.payment_method_details
        return (method.card.last4 if method and method.card else None) or ""


class Intent(msgspec.Struct, frozen=True):
    """A PaymentIntent, or the SetupIntent of a card that is only checked;
    amounts in minor units.

    (A SetupIntent's metadata, and a refund's, may be null: Stripe's types say so.)
    """

    id: str
    status: str
    amount: int = 0
    amount_received: int = 0
    created: int = 0
    currency: str = ""
    said: dict[str, str] | None = msgspec.field(name="metadata", default=None)
    capture_method: str = "automatic"
    customer: str | None = None
    payment_method: PaymentMethod | str | None = None
    next_action: NextAction | None = None
    last_payment_error: Problem | None = None
    last_setup_error: Problem | None = None
    latest_charge: Charge | str | None = None
    setup_future_usage: str | None = None
    payment_method_options: MethodOptions | None = None

    @property
    def metadata(self) -> dict[str, str]:
        """What whoever asked for it wrote on it, empty if that is nothing."""
        return self.said or {}

    @property
    def is_setup(self) -> bool:
        """Whether this only checks a card."""
        return self.id.startswith("seti_")

    @property
    def held(self) -> int:
        """What is authorized and not captured, in minor units."""
        return self.amount if self.status == "requires_capture" else 0

    @property
    def hold_until(self) -> datetime | None:
        """When what is held is let go of; None of what is taken, and where Stripe does not tell.

        It tells of cards. The other methods hold for a week at least, as its documents say.
        """
        charge = self.latest_charge if self.held else None
        method = charge.payment_method_details if isinstance(charge, Charge) else None
        before = method.card.capture_before if method and method.card else None
        return datetime.fromtimestamp(before, UTC) if before else None

    @property
    def challenge_url(self) -> str:
        """The page of its open challenge, empty if there is none."""
        redirect = self.next_action.redirect_to_url if self.next_action else None
        return (redirect.url if redirect else None) or ""

    @property
    def network_reference(self) -> str:
        """Where Stripe keeps the card for later charges, empty if it doesn't."""
        method = self.payment_method
        name = method.id if isinstance(method, PaymentMethod) else method
        return f"{self.customer}/{name}" if self.customer and name else ""

    def keeps(self, kind: str) -> bool:
        """Whether what was paid with is kept, a method of a kind: all are, or cards alone."""
        if self.is_setup or self.setup_future_usage:
            return True
        cards = self.payment_method_options.card if self.payment_method_options else None
        return kind == "card" and cards is not None and bool(cards.setup_future_usage)

    @property
    def waits_for(self) -> timedelta | None:
        """How long the direct debit may take at most on which it waits; None if it waits for none,
        or that was not asked for.
        """
        charge = self.latest_charge
        method = charge.payment_method_details if isinstance(charge, Charge) else None
        return DEBITS.get(method.type) if self.status == "processing" and method is not None else None

    @property
    def may_have_refunds(self) -> bool:
        """Whether it is worth asking for its refunds."""
        return isinstance(self.latest_charge, Charge) and self.latest_charge.amount_refunded > 0


class Refund(msgspec.Struct, frozen=True):
    """A refund; `amount` in minor units."""

    id: str
    amount: int
    status: str | None = None
    failure_reason: str | None = None
    currency: str = ""
    created: int = 0
    payment_intent: Intent | str | None = None
    said: dict[str, str] | None = msgspec.field(name="metadata", default=None)

    @property
    def metadata(self) -> dict[str, str]:
        """What whoever asked for it wrote on it, empty if that is nothing."""
        return self.said or {}

    @property
    def listed_key(self) -> str:
        """The key under which it was asked for, of which several may be made to undo one charge;
        empty if it was made in Stripe's own pages.
        """
        return self.metadata.get(VOID) or self.metadata.get(KEY, "")

    @property
    def number(self) -> int:
        """What our books call it, 0 if that is not known."""
        said = self.metadata.get(NUMBER, "")
        return int(said) if said.isascii() and said.isdigit() and len(said) <= 18 else 0

    @property
    def counts(self) -> bool:
        """Whether its money has gone back or is on its way."""
        return self.status not in {"failed", "canceled"}

    @property
    def is_final(self) -> bool:
        """Whether Stripe has made it, or gave it up; it may still fail once it is made,
        within 30 days.
        """
        return self.status not in {"pending", "requires_action"}


class Named(msgspec.Struct, frozen=True):
    """Any object of which only its name matters."""

    id: str


class Method(msgspec.Struct, frozen=True):
    """A payment method, and with which customer it is kept, if it is."""

    id: str
    customer: str | None = None


class IntentList(msgspec.Struct, frozen=True):
    """A page of intents."""

    data: list[Intent]
    has_more: bool = False


class RefundList(msgspec.Struct, frozen=True):
    """A page of refunds."""

    data: list[Refund]
    has_more: bool = False


def released_by(intent: Intent, refunds: list[Refund]) -> int:
    """What of an intent's refunds only let go of what a capture in part left, in minor units.

    Stripe makes one of it, and counts it as refunded, if who captured uses an API version before
    2025-03-31: an account may, in Stripe's own pages. Source: docs.stripe.com/changelog/basil,
    "Partially capturing or canceling payments no longer creates a Refund".
    """
    rest = intent.amount - intent.amount_received
    is_refunded = any(one.counts and one.amount == rest and KEY not in one.metadata for one in refunds)
    return rest if is_refunded else 0


def instrument_of(intent: Intent | None) -> Instrument:
    """What was paid with, or is kept, as far as Stripe tells."""
    method = _method(intent)
    if intent is None or method is None:
        return Instrument(InstrumentKind.OTHER)
    shown = _shown(method)
    if not (intent.network_reference and intent.keeps(method.type)):
        return shown
    ends = (method.card.exp_month or 0, method.card.exp_year or 0) if method.card else (0, 0)
    # A card's reference is the one by which code of before charges what Stripe keeps.
    kind = "" if method.type == "card" else f"/{method.type}"
    return replace(shown, reference=f"{intent.network_reference}{kind}", exp_month=ends[0], exp_year=ends[1])


def _method(intent: Intent | None) -> PaymentMethod | None:
    """The method of a payment, or the one that was set up."""
    if intent is not None and isinstance(intent.payment_method, PaymentMethod):
        return intent.payment_method
    charge = intent.latest_charge if intent is not None else None
    return charge.payment_method_details if isinstance(charge, Charge) else None


def _shown(method: PaymentMethod) -> Instrument:
    """A method in our words."""
    if method.type in DEBITS:
        return Instrument(InstrumentKind.SLOW_BANK, slow=True)
    if method.card is None:
        return Instrument(InstrumentKind.BANK if method.type in BANKS else InstrumentKind.OTHER)
    brand, wallet = method.card.brand or "", method.card.wallet.type if method.card.wallet else ""
    secured = method.card.three_d_secure
    return Instrument(
        InstrumentKind.CARD,
        brand if brand in _BRANDS else "unknown",
        method.card.last4 or "",
        wallet,
        authenticated=secured is not None and secured.result == "authenticated",
    )


def finding_of(intent: Intent, *, voided: bool) -> Finding:
    """How a purchase stands; `voided` if a refund of ours undid it.

    Raises: OutcomeUnknown while Stripe works on it.
    """
    until = until_of(intent.metadata)
    if voided or intent.status == "canceled" or (intent.is_setup and VOID in intent.metadata):
        return Voided()
    if intent.status in {"succeeded", "requires_capture"}:
        return Approved(intent.id, intent.network_reference, until, hold_until=intent.hold_until)
    if intent.status == "requires_action":
        return Challenged(intent.id, intent.challenge_url, until)
    if (debit := intent.waits_for) is not None:
        return Pending(intent.id, datetime.fromtimestamp(intent.created, UTC) + debit)
    problem = intent.last_payment_error or intent.last_setup_error
    if intent.status == "requires_payment_method" and problem is not None:
        return Declined(decline_reason(problem.code, problem.decline_code), until)
    if intent.status in {"requires_payment_method", "requires_confirmation"}:
        return NothingHeld()
    raise Undecided(f"Stripe is not done with {intent.id}: {intent.status[:40]}")
