"""Disputes at Stripe, read from its list of events, and the merchant's side of them.

An event only says that something happened to a dispute: Stripe does not promise their order, so how
it stands is asked for each time. What was taken and returned are its balance transactions (their
amounts, fees aside), not its status: a dispute that was lost may have given a part back, and one
that was won may be waiting for its money.

Source: docs.stripe.com/api/disputes/object, /api/balance_transactions/object;
    docs.stripe.com/disputes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Final

import msgspec

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, DisputeStatus, EvidenceFile, EvidenceKind
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.stripe.amounts import main_units
from paydesk.adapters.acquirers.stripe.calls import Calls, KeyTaken, Missing, Rejected
from paydesk.adapters.acquirers.stripe.events import EventPage, Events
from paydesk.adapters.acquirers.stripe.looking import Looking
from paydesk.adapters.acquirers.stripe.objects import KEY, Named, mark_of
from paydesk.core.wording import noted

_TYPES: Final = [
    "charge.dispute.created",
    "charge.dispute.updated",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.funds_reinstated",
    "charge.dispute.closed",
]
_STATUS: Final = {
    "warning_needs_response": DisputeStatus.INQUIRY,
    "warning_under_review": DisputeStatus.INQUIRY,
    "warning_closed": DisputeStatus.DROPPED,
    "prevented": DisputeStatus.DROPPED,
    "needs_response": DisputeStatus.OPEN,
    "under_review": DisputeStatus.OPEN,
    "appeal_needs_response": DisputeStatus.OPEN,
    "appeal_under_review": DisputeStatus.OPEN,
    "won": DisputeStatus.WON,
    "lost": DisputeStatus.LOST,
}
_FIELDS: Final[Mapping[EvidenceKind, str]] = {
    EvidenceKind.RECEIPT: "receipt",
    EvidenceKind.DELIVERY: "shipping_documentation",
    EvidenceKind.MESSAGES: "customer_communication",
    EvidenceKind.SERVICE: "service_documentation",
    EvidenceKind.SIGNATURE: "customer_signature",
    EvidenceKind.REFUND_TERMS: "refund_policy",
    EvidenceKind.CANCELLATION_TERMS: "cancellation_policy",
    EvidenceKind.OTHER_PAYMENT: "duplicate_charge_documentation",
    EvidenceKind.OTHER: "uncategorized_file",
}
"""The field of the evidence that takes the file; each takes one."""
_REFERENCE: Final = re.compile(r"[A-Za-z0-9_]{1,200}")
_NEAR: Final = Decimal("0.001")
"""What an exchange rate of a few digits may miss:
a sum so near to the disputed one is the disputed one."""


class _Upload(BytesIO):
    """A file as Stripe's library sends it, which asks it for its name."""

    def __init__(self, file: EvidenceFile) -> None:
        super().__init__(file.content)
        self.name = file.name


class _Transaction(msgspec.Struct, frozen=True):
    """What a dispute did to the account's balance, in its currency:
    negative when money was withdrawn.
    """

    amount: int
    currency: str
    exchange_rate: Decimal | None = None


class _EvidenceDetails(msgspec.Struct, frozen=True):
    """Until when evidence is taken (in seconds, or null), and how often it was given."""

    due_by: int | None = None
    submission_count: int = 0


class _Disputed(msgspec.Struct, frozen=True):
    """A dispute as it stands."""

    id: str
    amount: int
    currency: str
    reason: str
    status: str
    payment_intent: str | None = None
    balance_transactions: list[_Transaction] | None = None
    evidence_details: _EvidenceDetails | None = None


class Disputes:
    """Reads disputes and answers them."""

    def __init__(self, calls: Calls, looking: Looking, now: Callable[[], datetime]) -> None:
        self._calls: Final = calls
        self._events: Final = Events(calls, _TYPES, EventPage[_Disputed])
        self._looking: Final = looking
        self._now: Final = now

    async def after(self, cursor: str) -> DisputePage:
        """How the disputes of our payments stand to which something happened after a cursor.
        Moves no money.

        Raises: AcquirerRefused if the account's key may not read events, OutcomeUnknown.
        """
        while True:
            events = await self._events.since(cursor)
            if not events:
                return DisputePage((), cursor)
            cursor = events[0].id
            happened_to = {event.data.object.id: event.data.object for event in reversed(events)}
            found = [await self._now_of(told) for told in happened_to.values()]
            disputes = tuple(dispute for dispute in found if dispute is not None)
            if disputes:
                return DisputePage(disputes, cursor)

    async def named(self, reference: str) -> Dispute | None:
        """How a dispute stands, None if Stripe has none of this name. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        told = await self._retrieved(reference)
        return await self._dispute(told) if told is not None else None

    async def upload_evidence(self, file: EvidenceFile) -> str:
        """Hand over a file and return Stripe's name for it; nobody looks at it until evidence names
        it. Moves no money.

        Its key is Stripe's idempotency key: sent again within a day it is the same file, and later
        another one beside it, which does no harm. Source: docs.stripe.com/api/files/create.
        Raises: AcquirerRefused, OutcomeUnknown.
        """
        asked = {"purpose": "dispute_evidence", "file": _Upload(file)}
        options = {"idempotency_key": file.key}
        try:
            made = await self._calls.ask(self._calls.v1.files.create_async(asked, options), Named)
        except (KeyTaken, Rejected):
            raise AcquirerRefused(noted("Stripe did not take the file %(name)s", name=file.name)) from None
        return made.id

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """Hand the merchant's side in, which Stripe takes once only. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        if not _REFERENCE.fullmatch(reference):
            raise AcquirerRefused(noted("there is no dispute of this reference"))
        named = {_FIELDS[kind]: name for kind, name in files.items()}
        asked = {"evidence": {"uncategorized_text": text, **named}, "submit": True}
        try:
            await self._calls.ask(self._calls.v1.disputes.update_async(reference, asked), Named)
        except (KeyTaken, Rejected):
            raise AcquirerRefused(noted("Stripe did not take the evidence")) from None

    async def _retrieved(self, reference: str) -> _Disputed | None:
        """A dispute as Stripe has it now."""
        if not _REFERENCE.fullmatch(reference):
            return None
        try:
            return await self._calls.ask(self._calls.v1.disputes.retrieve_async(reference), _Disputed)
        except Missing:
            return None

    async def _now_of(self, told: _Disputed) -> Dispute | None:
        """The dispute that an event told of, as it stands now;
        as the event told it if it can't be found any more.
        """
        if told.payment_intent is None:
            return None
        return await self._dispute(await self._retrieved(told.id) or told)

    async def _dispute(self, told: _Disputed) -> Dispute | None:
        """A dispute in our words, None if its payment is not ours."""
        intent = await self._looking.intent(told.payment_intent) if told.payment_intent else None
        if intent is None or KEY not in intent.metadata:
            return None
        taken, returned = _moved(told)
        mark = mark_of(intent.metadata)
        return Dispute(
            reference=told.id,
            of_key=intent.metadata[KEY],
            amount=main_units(told.amount, told.currency),
            currency=told.currency.upper(),
            reason=told.reason,
            status=_status(told.status, taken, returned),
            at=self._now(),
            taken=taken,
            returned=returned,
            respond_by=_respond_by(told.evidence_details),
            answered=told.evidence_details.submission_count > 0 if told.evidence_details else None,
            of_merchant=mark.merchant if mark else "",
        )


def _respond_by(told: _EvidenceDetails | None) -> datetime | None:
    """Until when Stripe takes evidence, None if it does not say."""
    return datetime.fromtimestamp(told.due_by, UTC) if told is not None and told.due_by else None


def _status(word: str, taken: Decimal | None, returned: Decimal | None) -> DisputeStatus:
    """Stripe's word in ours; one that we don't know leaves the dispute open,
    and money that is gone is no inquiry.
    """
    status = _STATUS.get(word, DisputeStatus.OPEN)
    if taken is None or returned is None or taken <= returned:
        return status
    return {DisputeStatus.INQUIRY: DisputeStatus.OPEN, DisputeStatus.DROPPED: DisputeStatus.LOST}.get(status, status)


def _moved(told: _Disputed) -> tuple[Decimal | None, Decimal | None]:
    """What was withdrawn and reinstated so far, in the dispute's currency;
    None if Stripe does not say.
    """
    if told.balance_transactions is None:
        return None, None
    taken = returned = Decimal(0)
    for one in told.balance_transactions:
        moved = _in_currency_of(told, one)
        if one.amount < 0:
            taken += moved
        else:
            returned += moved
    return taken, returned


def _in_currency_of(told: _Disputed, one: _Transaction) -> Decimal:
    """What a balance transaction moved, in the dispute's currency:
    the account's own may be another.

    Stripe: the amount in the one currency, times `exchange_rate`, is the amount in the other.
    """
    whole = main_units(told.amount, told.currency)
    moved = main_units(abs(one.amount), one.currency)
    if one.currency == told.currency:
        return moved
    if not one.exchange_rate:
        return whole
    converted = (moved / one.exchange_rate).quantize(main_units(1, told.currency))
    return whole if abs(converted - whole) <= whole * _NEAR else converted
