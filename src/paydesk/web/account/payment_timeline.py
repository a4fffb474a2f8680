"""A payment's one timeline: everything that happened to it, in time order, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.domain.business.payments_for_team import (
    PaymentForTeam,
    PaymentHistory,
    SeenChargeback,
    SeenMovement,
    SeenTry,
    ToldPingback,
)
from paydesk.domain.chargebacks.states import ChargebackState
from paydesk.domain.deliveries.timeline import SeenDelivery
from paydesk.domain.payments.states import NOT_PAID, AttemptState, MovementKind, MovementState
from paydesk.domain.pingbacks.states import PingbackState
from paydesk.web.account.delivery_words import DELIVERY_STATUSES
from paydesk.web.account.pingback_words import STATES as PINGBACK_STATES
from paydesk.web.console.chargeback_words import reason_of
from paydesk.web.console.payment_words import decline_words, instrument_words, refusal_in_words
from paydesk.web.texts import Texts, mark


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One thing that happened at a time (UTC): an icon and its tone, what, more about it,
    and where it leads.

    `url` is a page of ours, a path below the merchant's; `outside` is another site's address.
    """

    at: datetime
    sign: str
    tone: str
    title: str
    text: str = ""
    url: str = ""
    outside: str = ""


def timeline_of(
    texts: Texts, payment: PaymentForTeam, history: PaymentHistory, deliveries: list[SeenDelivery]
) -> list[TimelineEntry]:
    """All lines of a payment, first to last; what has the same time stands as one thing led
    to the other.
    """
    teller = _Teller(texts)
    lines = [
        *(line for one in history.tries for line in teller.attempt(one)),
        *(teller.delivery(one) for one in deliveries),
        *(line for one in history.movements for line in teller.movement(one)),
        *(line for one in history.chargebacks for line in teller.chargeback(one)),
        *teller.funds(payment),
        *(teller.telling(one) for one in history.tellings),
    ]
    return sorted(lines, key=lambda line: line.at)


@dataclass(frozen=True, slots=True)
class _Teller:
    """Puts what happened into one person's words."""

    texts: Texts

    def _say(self, text: str, **named: object) -> str:
        return self.texts.get(text) % named if named else self.texts.get(text)

    def _money(self, amount: Decimal, currency: str) -> str:
        return self.texts.apart(self.texts.money(amount, currency))

    def attempt(self, one: SeenTry) -> Iterator[TimelineEntry]:
        """An attempt to pay, the bank's question to the customer, and what came of both."""
        card = self._say(instrument_words(one.brand, one.last4, one.wallet))
        begun = self._say(mark("Attempt to pay with %(card)s"), card=card)
        if one.hosted:
            begun = self._say(mark("The customer was led to the acquirer’s payment page"))
        yield TimelineEntry(one.created_at, "credit-card", "", begun, self._money(one.amount, one.currency))
        if one.challenged and not one.hosted:
            asked = self._say(mark("3-D Secure: the bank asked the customer to confirm"))
            yield TimelineEntry(one.created_at, "shield-lock", "yellow", asked)
        if one.state is AttemptState.PENDING:
            waits = self._say(mark("Waits for the customer’s bank, which takes some days"))
            yield TimelineEntry(one.created_at, "clock", "yellow", waits, self._say(mark("with %(card)s"), card=card))
        if one.finished_at is not None and one.state in _OUTCOMES:
            sign, tone, title = (_OF_PAGES if one.hosted else {}).get(one.state, _OUTCOMES[one.state])
            if one.decline_reason == NOT_PAID and one.state is AttemptState.FAILED:
                title = _NOT_PAID
            if one.state is AttemptState.APPROVED and not one.capture:
                title = _AUTHORIZED
            reason = self._say(decline_words(one.decline_reason)) if one.decline_reason else ""
            text = reason if one.state is AttemptState.DECLINED else ""
            if one.state is AttemptState.APPROVED and one.challenged:
                text = self._say(mark("with %(card)s"), card=card) if one.hosted else self._say(_PASSED)
            yield TimelineEntry(one.finished_at, sign, tone, self._say(title), text)

    def movement(self, one: SeenMovement) -> Iterator[TimelineEntry]:
        """A capture, void or refund: asked for, and carried out or refused."""
        begun, done = _MOVEMENTS[one.kind]
        amount = self._money(one.amount, one.currency)
        if one.state in (MovementState.DONE, MovementState.FAILED) and one.finished_at is not None:
            sign = "receipt-refund" if one.kind is not MovementKind.CAPTURE else "cash"
            tone = "green" if one.kind is MovementKind.CAPTURE else "yellow"
            yield TimelineEntry(one.finished_at, sign, tone, self._say(done, amount=amount), self._asker(one))
            if one.failed_at is not None:
                came_back = self._say(mark("%(amount)s came back: the customer's bank did not take it"), amount=amount)
                yield TimelineEntry(one.failed_at, "circle-x", "red", came_back, self._why(one))
            return
        yield TimelineEntry(one.created_at, "clock", "yellow", self._say(begun, amount=amount), self._asker(one))
        if one.state is MovementState.REFUSED and one.finished_at is not None:
            yield TimelineEntry(one.finished_at, "circle-x", "red", self._say(mark("The bank refused")), self._why(one))

    def _why(self, one: SeenMovement) -> str:
        return refusal_in_words(self.texts, one.refusal)

    def _asker(self, one: SeenMovement) -> str:
        if one.person:
            return self._say(mark("by %(name)s"), name=one.person)
        return self._say(_ASKERS[one.requested_by]) if one.requested_by in _ASKERS else ""

    def chargeback(self, one: SeenChargeback) -> Iterator[TimelineEntry]:
        """A chargeback, the merchant's evidence, and how it ended."""
        amount, fee = self._money(one.taken or one.amount, one.currency), self._money(one.fee, one.currency)
        told = {"reason": self._say(reason_of(one.reason)[0]), "fee": fee}
        about = self._say(mark("%(reason)s; fee %(fee)s") if one.taken else mark("%(reason)s"), **told)
        if one.disputed_currency != one.currency:
            own = self._money(one.disputed_amount, one.disputed_currency)
            about = f"{about}; {self._say(mark('disputed as %(amount)s'), amount=own)}"
        title = self._say(_opened(one), amount=amount)
        tone, page = "red" if one.taken else "yellow", f"disputes/{one.id}"
        yield TimelineEntry(one.opened_at, "flag", tone, title, about, url=page)
        if one.evidence_at is not None:
            yield TimelineEntry(one.evidence_at, "upload", "", self._say(mark("Evidence handed to the bank")))
        if one.closed_at is not None:
            yield TimelineEntry(one.closed_at, "scale", *self._end(one))

    def _end(self, one: SeenChargeback) -> tuple[str, str]:
        """How a chargeback ended: its colour, and the words."""
        returned = self._money(one.returned, one.currency)
        if one.state is ChargebackState.DROPPED or not one.taken:
            return "green", self._say(mark("The bank let it go; nothing was taken"))
        if one.state is ChargebackState.WON and one.returned < one.taken:
            return "green", self._say(mark("Chargeback won: the money is on its way back"))
        if one.state is ChargebackState.WON:
            return "green", self._say(mark("Chargeback won: the money came back"))
        if one.returned:
            return "yellow", self._say(mark("Chargeback partly won: %(amount)s came back"), amount=returned)
        return "red", self._say(mark("Chargeback lost"))

    def delivery(self, one: SeenDelivery) -> TimelineEntry:
        """What was said of the goods."""
        title = self._say(mark("Delivery: %(status)s"), status=self._say(DELIVERY_STATUSES[one.status]))
        parts = [part for part in (one.carrier, one.tracking_id, one.details, one.reason) if part]
        return TimelineEntry(
            one.created_at, "truck-delivery", "blue", title, " · ".join(parts), outside=one.tracking_url
        )

    def funds(self, payment: PaymentForTeam) -> Iterator[TimelineEntry]:
        """When the money became available."""
        if payment.settled_at is not None:
            yield TimelineEntry(
                payment.settled_at, "wallet", "green", self._say(mark("The net amount became available"))
            )
        if payment.reserve_released_at is not None:
            yield TimelineEntry(
                payment.reserve_released_at, "wallet", "green", self._say(mark("The reserve was released"))
            )

    def telling(self, one: ToldPingback) -> TimelineEntry:
        """A pingback, when it was queued, and how far it came."""
        text, tone = PINGBACK_STATES[one.state]
        about = self._say(text)
        if one.attempts:
            about = self._say(mark("%(state)s; attempts: %(count)s"), state=about, count=one.attempts)
        shown = tone if one.state is not PingbackState.ACKNOWLEDGED else ""
        title = self._say(mark("Pingback: %(event)s"), event=one.event)
        return TimelineEntry(one.created_at, "webhook", shown, title, about, url=f"pingbacks/{one.id}")


def _opened(one: SeenChargeback) -> str:
    """How a chargeback began."""
    if one.taken:
        return mark("Chargeback: the bank took back %(amount)s")
    if one.state is ChargebackState.OPEN:
        return mark("Dispute: the bank is about to take back %(amount)s")
    return mark("Inquiry: the bank asks what %(amount)s were paid for; nothing was taken")


_PASSED = mark("3-D Secure passed")
_AUTHORIZED = mark("Authorized: the money is held, not taken")

_NOT_PAID = mark("The customer’s bank did not send the money; nothing was taken")

_OUTCOMES = {
    AttemptState.APPROVED: ("circle-check", "green", mark("Paid")),
    AttemptState.DECLINED: ("circle-x", "red", mark("Declined")),
    AttemptState.FAILED: ("alert-circle", "red", mark("The bank never saw the attempt; nothing was taken")),
    AttemptState.ABANDONED: ("ban", "", mark("3-D Secure was not finished; nothing was taken")),
    AttemptState.VOIDING: ("clock", "yellow", mark("Approved too late: the approval is being undone")),
    AttemptState.VOIDED: ("ban", "", mark("Approved too late: the approval was undone")),
}

_OF_PAGES = {
    AttemptState.ABANDONED: ("ban", "", mark("The payment page was left; nothing was taken")),
    AttemptState.VOIDING: ("clock", "yellow", mark("Paid on a page that had been left: it is being given back")),
    AttemptState.VOIDED: ("receipt-refund", "yellow", mark("Paid on a page that had been left: it was given back")),
}
"""How attempts end that were made on a page of the acquirer's, where that is another thing."""

_MOVEMENTS = {
    MovementKind.CAPTURE: (mark("Capture of %(amount)s asked for"), mark("Captured: %(amount)s taken")),
    MovementKind.VOID: (mark("Void of %(amount)s asked for"), mark("Voided: %(amount)s released to the customer")),
    MovementKind.REFUND: (mark("Refund of %(amount)s asked for"), mark("Refunded: %(amount)s given back")),
}

_ASKERS = {
    "api": mark("by your server, through the API"),
    "operator": mark("by the operator"),
    "delivery": mark("because the shipment was confirmed"),
    "deadline": mark("because it was not shipped in time"),
    "bank": mark("found captured at the bank"),
}
