"""One payment, subscription or checkout of a merchant, as the acquirer and we know it, to be read:
the merchant's team acts on it in its account.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial

from starlette.responses import Response

from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.operations.orders_for_operator import (
    find_checkout_for_operator,
    find_payment_story,
    find_subscription_story,
)
from paydesk.domain.payments.states import AttemptState, MovementKind, MovementState
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.payment_words import (
    PAYMENT_STATES,
    SUBSCRIPTION_STATES,
    decline_words,
    instrument_words,
    refusal_in_words,
)
from paydesk.web.console.visit import Visit
from paydesk.web.operator.chargebacks import STATES
from paydesk.web.operator.face import FACE
from paydesk.web.operator.pingback_states import PINGBACK_STATES
from paydesk.web.texts import mark

section = Section(FACE)
_MERCHANT = "/operator/merchants/{merchant_id}"

ATTEMPT_STATES = {
    AttemptState.PROCESSING: (mark("Processing"), "yellow"),
    AttemptState.CHALLENGED: (mark("3-D Secure"), "yellow"),
    AttemptState.PENDING: (mark("Pending"), "yellow"),
    AttemptState.APPROVED: (mark("Approved"), "green"),
    AttemptState.DECLINED: (mark("Declined"), "red"),
    AttemptState.FAILED: (mark("Failed"), "red"),
    AttemptState.ABANDONED: (mark("Given up"), "secondary"),
    AttemptState.VOIDING: (mark("Being undone"), "yellow"),
    AttemptState.VOIDED: (mark("Undone"), "secondary"),
}
"""What the states of an attempt are called, and the tones of their badges."""

MOVES = {
    MovementKind.CAPTURE: mark("Capture"),
    MovementKind.VOID: mark("Void"),
    MovementKind.REFUND: mark("Refund"),
}
"""What moves money after the authorization."""

MOVE_STATES = {
    MovementState.PROCESSING: (mark("Processing"), "yellow"),
    MovementState.DONE: (mark("Done"), "green"),
    MovementState.REFUSED: (mark("Refused"), "red"),
    MovementState.FAILED: (mark("Came back"), "red"),
}
"""How such a move stands."""


@section.page(f"{_MERCHANT}/payments/{{payment_id}}", needs=Access.operator)
async def show_payment(visit: Visit) -> Response:
    """A payment with its attempts, what moved after it, disputes and pingbacks."""
    merchant_id, payment_id = visit.number("merchant_id"), visit.number("payment_id")
    operator = visit.session.operator
    story = await find_payment_story(visit.database, operator, merchant_id, payment_id, now=visit.now)
    return visit.page(
        "payment.html",
        story=story,
        shop_now=await _shop_now(visit, story.payment.live),
        one=story.payment,
        states=PAYMENT_STATES,
        attempt_states=ATTEMPT_STATES,
        moves=MOVES,
        move_states=MOVE_STATES,
        refusal_in_words=partial(refusal_in_words, visit.texts),
        chargeback_states=STATES,
        pingback_states=PINGBACK_STATES,
        decline_words=decline_words,
        instrument_words=instrument_words,
    )


@section.page(f"{_MERCHANT}/subscriptions/{{subscription_id}}", needs=Access.operator)
async def show_subscription(visit: Visit) -> Response:
    """A subscription with its payments."""
    merchant_id, subscription_id = visit.number("merchant_id"), visit.number("subscription_id")
    operator = visit.session.operator
    one, charged = await find_subscription_story(visit.database, operator, merchant_id, subscription_id, now=visit.now)
    return visit.page(
        "subscription.html",
        one=one,
        shop_now=await _shop_now(visit, one.live),
        charged=charged,
        states=SUBSCRIPTION_STATES,
        payment_states=PAYMENT_STATES,
        instrument_words=instrument_words,
    )


async def _shop_now(visit: Visit, live: bool) -> datetime:
    """The time of a merchant's side, whose test clock may be ahead."""
    return await shop_time(visit.database, Shop(visit.number("merchant_id"), live), real_now=visit.now)


@section.page(f"{_MERCHANT}/checkouts/{{checkout_id}}", needs=Access.operator)
async def show_checkout(visit: Visit) -> Response:
    """A checkout, and what pays its order."""
    one = await find_checkout_for_operator(visit.database, visit.number("merchant_id"), visit.number("checkout_id"))
    return visit.page("checkout.html", one=one, payment_states=PAYMENT_STATES)
