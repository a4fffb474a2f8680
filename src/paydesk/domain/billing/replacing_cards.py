"""Replacing a subscription's card: the new one is checked with the bank for 0,
then takes the old one's place.

Intent committed, acquirer called, outcome recorded, as for payments; but nothing here ever takes or
holds money.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from paydesk.adapters.acquirers.interface import Acquirer, Challenged, Finding, OutcomeUnknown
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Unavailable
from paydesk.database.records import record_if_any, record_of
from paydesk.database.statements import load_statements
from paydesk.domain.billing.card_changes import CardChange, Result, record, record_finding, record_left_open
from paydesk.domain.billing.marking import BegunCheck, card_mark
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import card_guard
from paydesk.domain.payments.asking_pages import end_page, find_page
from paydesk.domain.payments.desk import FIRST_LOOK, KEY_LIFETIME, Desk
from paydesk.domain.payments.refused_requests import authorize
from paydesk.domain.payments.results import ConfirmWithBank, Refused, Unsettled
from paydesk.domain.payments.stored_cards import card_row
from paydesk.domain.payments.unanswered import left_to_the_janitor
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.states import CardChangeState

queries = load_statements(__package__ or "", "replacing_cards.sql")

GUARD_WINDOW = timedelta(hours=1)
"""Over which attempts of one subscription and declines of one client address are counted."""


@dataclass(frozen=True, slots=True)
class NewCard:
    """A card as typed and checked, the address that its customer calls from,
    and where the bank sends them back to.
    """

    card: CardDetails
    client_address: str
    return_url: str


@dataclass(frozen=True, slots=True)
class _Intent:
    """A change that is committed, what to ask of the acquirer, and what the try was counted by."""

    change: CardChange
    check: Purchase
    counts: list[card_guard.Count]


async def replace_card(
    desk: Desk, subscription: Subscription, change: CardChange | None, new: NewCard, *, now: datetime
) -> Result:
    """Check a card with the bank and let it take the place of the subscription's. Moves no money.

    `change` is the last one that the customer saw; a challenge of it that is still open is ended
    first. A charge that is failing is due at once with the new card. `now` is real time, UTC: the
    calendar is not touched.

    Raises: Conflict if the subscription has ended or another change is under way, Unavailable
        without an acquirer, Held.
    """
    await desk.gate.require()
    if not subscription.running:
        raise Conflict("this subscription has ended; there is no card to replace")
    challenged = change is not None and change.state is CardChangeState.CHALLENGED
    if change and challenged and isinstance(await leave_challenge(desk, change, now=now), Unsettled):
        return Unsettled()
    acquirer = await acquirer_for_cards(desk, subscription)
    intent = await _commit_intent(desk, subscription, new, acquirer, now=now)
    if isinstance(intent, Refused):
        return intent
    # A customer who goes away must not stop the outcome from being written down.
    call = asyncio.create_task(_call_and_record(desk, acquirer, intent, now=now))
    desk.under_way.add(call)
    call.add_done_callback(desk.under_way.discard)
    return await asyncio.shield(call)


async def acquirer_for_cards(desk: Desk, subscription: Subscription) -> Acquirer:
    """The acquirer that checks a subscription's new card, and charges it from then on.

    Raises: Unavailable if cards are taken on an acquirer's own page alone.
    """
    shop = Shop(subscription.merchant_id, subscription.live)
    for each in await desk.serving(shop, subscription.package.terms.currency):
        if each.capabilities.cards:
            return each
    if not subscription.live or desk.live_acquirer is not None:
        raise Unavailable("a subscription's card can't be replaced here: cards are taken on the acquirer's own page")
    return desk.acquirer_for(live=True)


async def _commit_intent(
    desk: Desk, subscription: Subscription, new: NewCard, acquirer: Acquirer, *, now: datetime
) -> _Intent | Refused:
    """Commit that the card is about to be checked, or name the guard that refused. Moves no money.

    Raises: Conflict if another change is open, or the subscription has ended meanwhile.
    """
    shop = Shop(subscription.merchant_id, subscription.live)
    counts = card_guard.counts_of(desk.vault, new.card, new.client_address, live=shop.live, is_check=True)
    counted_at = utc_now()
    known = await prepare_change(desk, subscription, new.client_address, counts, counted_at=counted_at, now=now)
    if card_guard.is_refused(known):
        return Refused("too_many_attempts")
    change = new_change(known, shop, acquirer, now=now)
    begun = record_if_any(
        BegunCheck,
        await queries.begin_card_change(
            desk.database,
            **intent_row(change, subscription, new.client_address, now=now),
            **card_row(desk.vault, new.card, shop.merchant_id, known.card_id, keep=not acquirer.keeps_cards),
        ),
    )
    if begun is None:
        desk.later(card_guard.take_back(desk.database, shop, counts, counted_at=counted_at))
        raise Conflict("another change of this card is under way, or the subscription has ended")
    check = Purchase(
        key=change.key,
        amount=Decimal(0),
        currency=subscription.package.terms.currency,
        card=new.card,
        capture=False,
        not_after=change.not_after,
        return_url=new.return_url,
        keep_card=True,
        authenticate=known.authenticate,
        mark=card_mark(begun, shop, subscription),
    )
    return _Intent(change, check, counts)


class PreparedChange(card_guard.Try, frozen=True):
    """A try that was counted, and the id that its card change will have."""

    slow_methods: bool
    change_id: int


async def prepare_change(
    desk: Desk,
    subscription: Subscription,
    client_address: str,
    counts: Sequence[card_guard.Count],
    *,
    counted_at: datetime,
    now: datetime,
) -> PreparedChange:
    """Count a try before any bank is asked. Moves no money."""
    shop = Shop(subscription.merchant_id, subscription.live)
    return record_of(
        PreparedChange,
        await queries.prepare_card_change(
            desk.database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            subscription_id=subscription.id,
            client_address=client_address,
            since=now - GUARD_WINDOW,
            **card_guard.count_row(desk.limits_of(shop), counts, counted_at=counted_at),
            now=now,
        ),
    )


def new_change(known: PreparedChange, shop: Shop, acquirer: Acquirer, *, now: datetime) -> CardChange:
    """A change that is about to begin, with a key of its own."""
    return CardChange(
        shop=shop,
        id=known.change_id,
        state=CardChangeState.PROCESSING,
        key=f"card-{known.change_id}-{secrets.token_hex(12)}",
        acquirer=acquirer.name,
        not_after=now + KEY_LIFETIME,
    )


def intent_row(
    change: CardChange, subscription: Subscription, client_address: str, *, now: datetime
) -> dict[str, object]:
    """What the intent of a change says, but for its card."""
    return {
        "merchant_id": change.shop.merchant_id,
        "live": change.shop.live,
        "change_id": change.id,
        "subscription_id": subscription.id,
        "idempotency_key": change.key,
        "acquirer": change.acquirer,
        "client_address": client_address,
        "not_after": change.not_after,
        "lookup_at": now + FIRST_LOOK,
        "now": now,
    }


async def _call_and_record(desk: Desk, acquirer: Acquirer, intent: _Intent, *, now: datetime) -> Result:
    """Ask the acquirer and record its answer; whatever goes wrong leaves the change to the janitor.
    Moves no money.
    """
    change = intent.change
    with left_to_the_janitor(change_id=change.id):
        what = f"card change {change.id}"
        answer = await authorize(desk.database, acquirer, intent.check, shop=change.shop, what=what)
        desk.forgive(change.shop, card_guard.forgiven_by(answer, intent.counts))
        return await record(desk, change, answer, now=now)
    return Unsettled()


async def settle_challenge(desk: Desk, change: CardChange, *, now: datetime) -> Result:
    """Ask the acquirer how a challenge went, and record it: the customer has come back.
    Moves no money.

    A challenge that is still open stays as it is, and its address is returned.
    """
    try:
        finding = await _find(desk, change)
    except OutcomeUnknown:
        return Unsettled()
    if isinstance(finding, Challenged):
        return ConfirmWithBank(change.challenge_url)
    return await record_finding(desk, change, finding, now=now)


async def leave_challenge(desk: Desk, change: CardChange, *, now: datetime) -> Result:
    """End an open challenge so that the customer may give another card;
    what it came to before counts.

    A page that can't be ended is left: what is chosen there is used by nobody then, and let go of.
    """
    try:
        finding = await _end(desk, change)
    except OutcomeUnknown:
        return Unsettled()
    if isinstance(finding, Challenged) and change.page is not None:
        return await record_left_open(desk.database, change, now=now)
    return await record_finding(desk, change, finding, now=now)


async def _find(desk: Desk, change: CardChange) -> Finding:
    """How a challenge, or a page of the acquirer's, stands. Raises: OutcomeUnknown."""
    if change.page is not None:
        return await find_page(desk, change.opened_page(change.page))
    return await desk.acquirers[change.acquirer].find(change.key, change.not_after)


async def _end(desk: Desk, change: CardChange) -> Finding:
    """End a challenge, or a page of the acquirer's. Raises: OutcomeUnknown."""
    if change.page is not None:
        return await end_page(desk, change.opened_page(change.page))
    return await desk.acquirers[change.acquirer].end_challenge(change.key)
