"""Taking a payment: intent committed, acquirer called, outcome recorded,
in this order and no other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from paydesk.adapters.acquirers.interface import Acquirer, Approved, Outcome, is_earlier
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.core.cards import detect_brand
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Unavailable
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.routing import Order
from paydesk.domain.payments import card_guard, preparing
from paydesk.domain.payments.challenges import clear_the_way, leave_challenge
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.desk import FIRST_LOOK, KEY_LIFETIME, Desk
from paydesk.domain.payments.failing_over import (
    BEGAN_NOTHING,
    NOT_REACHED,
    Tried,
    asked,
    at_accounts,
    finished,
    record_not_reached,
)
from paydesk.domain.payments.forgotten_purchases import Wish, under_its_key
from paydesk.domain.payments.marking import BegunAttempt, order_mark
from paydesk.domain.payments.outcomes import (
    Approval,
)
from paydesk.domain.payments.refused_requests import authorize
from paydesk.domain.payments.results import (
    Refused,
    Result,
    Unsettled,
    record_answer,
    record_approval,
)
from paydesk.domain.payments.returning import Way, way_back
from paydesk.domain.payments.stored_cards import card_row, kept_row
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP, require_holds
from paydesk.domain.payments.unanswered import left_to_the_janitor
from paydesk.domain.shoppers.instruments import Agreed, PayableInstrument, hold_saved, save_instrument

queries = load_statements(__package__ or "")


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays, as typed and checked: card, e-mail address, two-letter country,
    and the address they call from.

    `agreed` is the wording of a subscription's terms that they agreed to, `language` the page's, as
    a tag: `de-CH`; `saving` is what they agreed to who want this card to be kept for the shop;
    `saved_id` is the saved card that they pay with, and `kept` that, if an acquirer keeps it, in
    whose place `card` has no number.
    """

    card: CardDetails
    email: str
    country: str
    client_address: str
    agreed: str = ""
    language: str = "en"
    saving: Agreed | None = None
    kept: PayableInstrument | None = None
    saved_id: int | None = None

    @property
    def brand(self) -> str:
        """The card's."""
        return self.kept.brand if self.kept else str(detect_brand(self.card.number))

    @property
    def counted(self) -> CardDetails:
        """The card as card testing counts it: what is kept elsewhere by what it is kept under."""
        return replace(self.card, number=self.kept.stored_reference) if self.kept else self.card


@dataclass(frozen=True, slots=True)
class _Intent:
    """An attempt that is committed: what to ask of the acquirer,
    and what is told if it approves.
    """

    attempt_id: int
    purchase: Purchase
    report: BegunAttempt
    counts: list[card_guard.Count]


async def pay(desk: Desk, checkout: Checkout, payer: Payer, *, return_url: str, now: datetime) -> Result:
    """Take the checkout's amount from a card, once for its order however often this is called.
    Moves money.

    An open 3-D Secure challenge of an earlier attempt is ended first. `return_url` is where the
    bank sends the customer back to; now is the merchant's time, UTC.

    Raises: Conflict if the checkout is no longer open, Gone if it expired, Unavailable if there is
        no acquirer, Held.
    """
    await desk.gate.require()
    settled = await clear_the_way(checkout, partial(leave_challenge, desk, checkout, now=now), now=now)
    if settled is not None:
        return settled
    order = order_of(checkout, country=payer.country, brand=payer.brand)

    async def attempt(acquirer: Acquirer, previous_id: int | None) -> Tried[Result]:
        if payer.kept is not None and not _takes(acquirer, checkout, payer):
            raise Unavailable(f"what {payer.kept.acquirer} keeps is charged there alone, and it can't take this order")
        intent = await _commit_intent(desk, checkout, payer, acquirer, previous_id, return_url=return_url, now=now)
        if isinstance(intent, Refused):
            return Tried(intent)
        result = await finished(desk, _call_and_record(desk, checkout, acquirer, intent, now=now))
        return tried(intent.attempt_id, result)

    held_by = checkout.attempt.id if checkout.attempt else None
    return await at_accounts(desk, order, held_by, lambda one: _takes(one, checkout, payer), attempt)


def tried(attempt_id: int, result: Result) -> Tried[Result]:
    """An attempt that was made, and whether another account may be asked after it."""
    return Tried(result, attempt_id, isinstance(result, Refused) and result.reason in BEGAN_NOTHING)


def takes_card(acquirer: Acquirer, checkout: Checkout) -> bool:
    """Whether an acquirer takes what is paid by a card that is typed on our page."""
    return acquirer.capabilities.cards and holds_if_asked(acquirer, checkout)


def takes_kept(acquirer: Acquirer, checkout: Checkout, keeper: str) -> bool:
    """Whether a checkout may be paid at an acquirer by a card that a `keeper` keeps, with its
    customer there: it stays with the account that it was typed at.
    """
    if acquirer.name != keeper or not acquirer.capabilities.one_click or checkout.is_late:
        return False
    return checkout.saves_cards and checkout.terms is None and holds_if_asked(acquirer, checkout)


def holds_if_asked(acquirer: Acquirer, checkout: Checkout) -> bool:
    """Whether an acquirer holds money for as long as goods take to be shipped, if these are."""
    return checkout.captures or acquirer.hold_period >= TIME_TO_SHIP


def _takes(acquirer: Acquirer, checkout: Checkout, payer: Payer) -> bool:
    if payer.kept is not None:
        return takes_kept(acquirer, checkout, payer.kept.acquirer)
    return takes_card(acquirer, checkout)


async def _commit_intent(
    desk: Desk,
    checkout: Checkout,
    payer: Payer,
    acquirer: Acquirer,
    previous_id: int | None,
    *,
    return_url: str,
    now: datetime,
) -> _Intent | Refused:
    """Commit that this attempt is about to be made; only one caller gets through for an order.
    Moves no money.

    What is shipped is only authorized, and captured once its shipment is confirmed; the money of a
    subscription is taken at once (interface.md §7.4). Returns the intent, or the guard
    that refused.

    Raises: Conflict if another attempt was faster, Unavailable if the acquirer can't hold money for
        long enough.
    """
    shop = checkout.shop
    is_check = checkout.amount == 0 or (checkout.terms is not None and checkout.terms.trial is not None)
    counts = card_guard.counts_of(desk.vault, payer.counted, payer.client_address, live=shop.live, is_check=is_check)
    counted_at = utc_now()
    known = await preparing.prepare(desk, checkout, payer.client_address, counts, counted_at=counted_at, now=now)
    if refusal := preparing.why_refused(known):
        return Refused(refusal)
    capture = checkout.terms is not None or not known.shipped_goods
    if not capture:
        require_holds(acquirer)
    kept, saving = payer.kept, payer.saving if takes_saved(checkout, acquirer) else None
    charged_later = saving is not None and bool(saving.charge)
    keep = (checkout.terms is not None or saving is not None) and not acquirer.keeps_cards
    attempt_id = known.attempt_id
    real_now = utc_now()
    not_after = real_now + KEY_LIFETIME
    card = (
        kept_row(known.card_id, kept)
        if kept is not None
        else card_row(desk.vault, payer.card, shop.merchant_id, known.card_id, keep=keep)
    )
    several = saving is not None or payer.saved_id is not None
    async with preparing.still_there(checkout), _together_if(desk.database, several) as database:
        if payer.saved_id is not None and not await hold_saved(database, shop, payer.saved_id):
            raise Conflict("the saved card was removed meanwhile")
        begun = record_if_any(
            BegunAttempt,
            await queries.begin_attempt(
                database,
                **preparing.attempt_row(desk, checkout, known, payer.agreed, payer.client_address),
                previous_attempt_id=previous_id,
                acquirer=acquirer.name,
                capture=capture,
                **card,
                **preparing.customer_row(checkout, payer.email, payer.country, payer.language, payer.card.holder),
                not_after=not_after,
                lookup_at=real_now + FIRST_LOOK,
                now=now,
            ),
        )
        if begun is not None and saving is not None:
            await save_instrument(
                database,
                shop,
                saving,
                card_id=known.card_id,
                attempt_id=attempt_id,
                acquirer=acquirer.name,
                now=now,
            )
    if begun is None:
        desk.later(card_guard.take_back(desk.database, shop, counts, counted_at=counted_at))
        raise Conflict("another attempt to pay this order is under way")
    purchase = Purchase(
        key=begun.idempotency_key,
        amount=begun.amount,
        currency=begun.currency,
        card=payer.card,
        capture=capture,
        not_after=not_after,
        return_url=return_url,
        stored_reference=kept.stored_reference if kept is not None else "",
        keep_card=checkout.terms is not None or charged_later,
        authenticate=known.authenticate or charged_later,
        mark=order_mark(begun, checkout.terms),
    )
    return _Intent(attempt_id, purchase, begun, counts)


def order_of(checkout: Checkout, *, country: str = "", brand: str = "") -> Order:
    """A checkout's order, as far as it decides which account takes it."""
    order, country = checkout.merchant_order_id, country or checkout.entered.country
    return Order(checkout.shop, order, checkout.currency, checkout.amount, country, brand)


def takes_saved(checkout: Checkout, acquirer: Acquirer) -> bool:
    """Whether a card that is typed at a checkout may be saved, and a saved one may pay it."""
    return checkout.saves_cards and checkout.terms is None and not acquirer.keeps_cards and not checkout.is_late


@asynccontextmanager
async def _together_if(database: Database, several: bool) -> AsyncIterator[Connection]:
    """One transaction if several statements are to be committed together; one needs none."""
    if not several:
        yield database
        return
    async with database.acquire() as connection, connection.transaction():
        yield connection


async def _call_and_record(
    desk: Desk, checkout: Checkout, acquirer: Acquirer, intent: _Intent, *, now: datetime
) -> Result:
    """Ask the acquirer and record its answer; whatever goes wrong leaves the attempt
    to the janitor. Moves money.
    """
    attempt_id = intent.attempt_id
    with left_to_the_janitor(attempt_id=attempt_id):

        def ask(purchase: Purchase) -> Awaitable[Outcome]:
            call = authorize(desk.database, acquirer, purchase, shop=checkout.shop, what=f"attempt {attempt_id}")
            return asked(acquirer, attempt_id, call)

        old, forgotten = now > checkout.created_at + acquirer.key_lifetime, intent.report.was_forgotten
        wish = Wish(checkout.shop, attempt_id, intent.purchase, desk.pads, may_be_old=old, was_forgotten=forgotten)
        answer, _ = await under_its_key(desk.database, acquirer, wish, ask)
        if answer == NOT_REACHED:
            # No bank has seen the card: it was not tried.
            desk.forgive(checkout.shop, intent.counts)
            recorded = await record_not_reached(desk, checkout.shop, attempt_id, now=now)
            return Refused(str(NOT_REACHED.reason)) if recorded else Unsettled()
        desk.forgive(checkout.shop, card_guard.forgiven_by(answer, intent.counts))
        if isinstance(answer, Approved):
            leads = way_back(checkout) is Way.ITSELF
            # What took up an older purchase is not what its intent said.
            report = None if is_earlier(answer, intent.purchase.not_after) else intent.report
            approval = Approval(checkout.shop, attempt_id, answer, report, leads_back=leads)
            return await record_approval(desk, approval, now=now)
        return await record_answer(desk, checkout, attempt_id, answer, now=now)
    return Unsettled()
