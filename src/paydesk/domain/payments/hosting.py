"""Paying on a page of the acquirer's: the page is asked for once its intent is committed, and the
customer is led there; what they do is asked of the acquirer.

Everything that is sent for a page is computed once and stored with its intent, so that a lost
answer is asked for again with just the same, and the same page comes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

import msgspec

from paydesk.adapters.acquirers.hosted_pages import LONGEST_LIFE, SHORTEST_LIFE, PageRequest
from paydesk.adapters.acquirers.interface import Acquirer, Challenged, Outcome
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Unavailable
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import card_guard, preparing
from paydesk.domain.payments.challenges import clear_the_way, leave_challenge, settle_challenge
from paydesk.domain.payments.checkouts import Attempt, Checkout
from paydesk.domain.payments.desk import FIRST_LOOK, KEY_LIFETIME, Desk
from paydesk.domain.payments.failing_over import NOT_REACHED, Tried, asked, at_accounts, finished, record_not_reached
from paydesk.domain.payments.forgotten_purchases import Wish, under_its_key
from paydesk.domain.payments.late_outcomes import attempt_states
from paydesk.domain.payments.marking import BegunAttempt, order_mark
from paydesk.domain.payments.outcomes import PAGE_LOOK
from paydesk.domain.payments.page_requests import ask_for_page, wanted_page
from paydesk.domain.payments.paying import order_of, tried
from paydesk.domain.payments.results import (
    ConfirmWithBank,
    Refused,
    Result,
    Unsettled,
    record_answer,
)
from paydesk.domain.payments.states import AttemptState
from paydesk.domain.payments.stored_cards import unknown_row
from paydesk.domain.payments.time_to_ship import require_holds
from paydesk.domain.payments.unanswered import left_to_the_janitor
from paydesk.domain.shoppers.instruments import Agreed, agreed_at, save_instrument
from paydesk.domain.subscriptions.subscription_terms import Terms

queries = load_statements(__package__ or "")
hosted = load_statements(__package__ or "", "hosting.sql")


@dataclass(frozen=True, slots=True)
class Guest:
    """Who goes to the acquirer's page, as far as we know them.

    Their e-mail address, the page's language, as a tag, and the address they call from; `agreed` is
    the wording of a subscription's terms that they agreed to, `saving` what they agreed to who want
    the card that they will pay with to be kept for the shop.
    """

    email: str
    client_address: str
    language: str = "en"
    agreed: str = ""
    saving: Agreed | None = None


@dataclass(frozen=True, slots=True)
class _Intent:
    """An attempt that is committed, and the page to ask for."""

    attempt_id: int
    not_after: datetime
    was_forgotten: bool
    wanted: PageRequest


async def go_to_page(desk: Desk, checkout: Checkout, guest: Guest, *, base: str, now: datetime) -> Result:
    """Lead the customer to a page of the acquirer's for the checkout's amount; to the same one as
    long as it stands for the same. Moves no money.

    `base` is the public address that the page leads back to; now is the merchant's time, UTC.

    Raises: Conflict if the checkout is no longer open, Gone if it expired, Unavailable if the
        acquirer hosts no page or none for such a checkout, Held.
    """
    await desk.gate.require()
    settled = await clear_the_way(checkout, partial(_leave, desk, checkout, guest, now=now), now=now)
    if settled is not None:
        return settled

    async def attempt(acquirer: Acquirer, previous_id: int | None) -> Tried[Result]:
        require_pages(acquirer, checkout)
        intent = await _commit_intent(desk, checkout, guest, acquirer, previous_id, base=base, now=now)
        if isinstance(intent, Refused):
            return Tried(intent)
        result = await finished(desk, _open_and_record(desk, checkout, acquirer, intent, now=now))
        return tried(intent.attempt_id, result)

    held_by = checkout.attempt.id if checkout.attempt else None
    return await at_accounts(desk, order_of(checkout), held_by, lambda one: takes_page(one, checkout), attempt)


def takes_page(acquirer: Acquirer, checkout: Checkout) -> bool:
    """Whether a checkout may be paid on a page of the acquirer's."""
    try:
        require_pages(acquirer, checkout)
    except Unavailable:
        return False
    return True


def require_pages(acquirer: Acquirer, checkout: Checkout) -> None:
    """Make sure that a checkout may be paid on a page of the acquirer's.

    Raises: Unavailable, saying why not.
    """
    if not acquirer.capabilities.pages:
        raise Unavailable(f"{acquirer.name} hosts no page to pay on")
    if checkout.terms is not None and not acquirer.capabilities.stored:
        raise Unavailable(f"{acquirer.name} keeps nothing to charge a subscription by")
    if not checkout.captures:
        require_holds(acquirer)


def keeps_on_page(acquirer: Acquirer, checkout: Checkout, saving: Agreed | None) -> bool:
    """Whether an acquirer's page keeps the card for what its customer agreed to, if they did."""
    can = acquirer.capabilities
    if saving is None or not offers_to_keep(acquirer, checkout):
        return False
    return can.one_click or bool(saving.charge)


def offers_to_keep(acquirer: Acquirer, checkout: Checkout) -> bool:
    """Whether a card that is typed on an acquirer's page may be saved for the shop."""
    return checkout.saves_cards and checkout.terms is None and acquirer.capabilities.stored


async def _leave(desk: Desk, checkout: Checkout, guest: Guest, attempt: Attempt, *, now: datetime) -> Result | None:
    """End what is open of a checkout, unless it is a page that stands for the same: that is led to.
    Moves no money.
    """
    if not await _is_for_the_same(desk, checkout, attempt, guest):
        return await leave_challenge(desk, checkout, attempt, now=now)
    settled = await settle_challenge(desk, checkout, attempt, now=now)
    return None if isinstance(settled, Refused) else settled


async def _is_for_the_same(desk: Desk, checkout: Checkout, attempt: Attempt, guest: Guest) -> bool:
    """Whether the page of an attempt is what a checkout would ask for now.

    A page for a mistyped e-mail address would send the receipt there, one of somebody who was
    erased is nobody's, and the shop may ship its goods by now.
    """
    acquirer = desk.acquirers.get(attempt.acquirer)
    if attempt.page_ends_at is None or checkout.suspended or acquirer is None:
        # What can't be asked for here is no way to lead anybody, and waited for.
        return False
    if (attempt.amount, attempt.currency) != (checkout.amount, checkout.currency):
        return False
    if checkout.terms is not None and attempt.checkout_id != checkout.id:
        # The page was made for what was agreed to at another checkout, perhaps by other terms.
        return False
    saving = guest.saving if keeps_on_page(acquirer, checkout, guest.saving) else None
    agreed = (saving.shopper_id, saving.keep, saving.charge) if saving is not None else None
    if await agreed_at(desk.database, checkout.shop, attempt.id) != agreed:
        # The page keeps a card that nobody asked it to keep any more, or keeps none.
        return False
    wanted = await wanted_page(desk, checkout.shop, attempt.id)
    return wanted is not None and (wanted.email, wanted.capture) == (guest.email, checkout.captures)


async def _commit_intent(
    desk: Desk,
    checkout: Checkout,
    guest: Guest,
    acquirer: Acquirer,
    previous_id: int | None,
    *,
    base: str,
    now: datetime,
) -> _Intent | Refused:
    """Commit that a page is about to be asked for, with all that is sent for it; only one caller
    gets through for an order. The money of goods that are shipped is only held. Moves no money.

    Raises: Conflict if another attempt was faster, Unavailable if the acquirer can't hold money for
        long enough.
    """
    shop, real_now = checkout.shop, utc_now()
    counts = card_guard.address_counts(desk.vault, guest.client_address)
    known = await preparing.prepare(desk, checkout, guest.client_address, counts, counted_at=real_now, now=now)
    if refusal := preparing.why_refused(known):
        return Refused(refusal)
    capture = checkout.terms is not None or not known.shipped_goods
    if not capture:
        require_holds(acquirer)
    not_after = real_now + KEY_LIFETIME
    async with preparing.still_there(checkout), desk.database.acquire() as connection, connection.transaction():
        begun = record_if_any(
            BegunAttempt,
            await queries.begin_attempt(
                connection,
                **preparing.attempt_row(desk, checkout, known, guest.agreed, guest.client_address),
                previous_attempt_id=previous_id,
                acquirer=acquirer.name,
                capture=capture,
                **unknown_row(known.card_id),
                **preparing.customer_row(checkout, guest.email, checkout.entered.country, guest.language),
                not_after=not_after,
                lookup_at=real_now + FIRST_LOOK,
                now=now,
            ),
        )
        if begun is not None:
            saving = guest.saving if keeps_on_page(acquirer, checkout, guest.saving) else None
            keeps = saving is not None and await save_instrument(
                connection,
                shop,
                saving,
                card_id=known.card_id,
                attempt_id=known.attempt_id,
                acquirer=acquirer.name,
                on_page=True,
                now=now,
            )
            charged_later = keeps and saving is not None and bool(saving.charge)
            asked = _asked(checkout, begun, guest, base, now=now, real_now=real_now)
            slow = known.slow_methods and capture and not keeps and _allows_slow(desk, checkout.terms)
            asked = replace(asked, capture=capture, slow=slow, keep_card=keeps, charge_later=charged_later)
            asked = replace(asked, authenticate=known.authenticate or charged_later)
            await hosted.begin_page(
                connection,
                merchant_id=shop.merchant_id,
                live=shop.live,
                attempt_id=known.attempt_id,
                asked=msgspec.json.encode(asked).decode(),
                expires_at=asked.expires_at,
                slow=asked.slow,
            )
    if begun is None:
        desk.later(card_guard.take_back(desk.database, shop, counts, counted_at=real_now))
        raise Conflict("another attempt to pay this order is under way")
    wanted = await wanted_page(desk, shop, known.attempt_id)
    assert wanted is not None
    return _Intent(known.attempt_id, not_after, begun.was_forgotten, wanted)


def _allows_slow(desk: Desk, terms: Terms | None) -> bool:
    """Whether a page may offer methods that take days; those that are kept need long periods."""
    return desk.slow_methods if terms is None else desk.keeps_slow_methods(terms)


def _asked(
    checkout: Checkout, begun: BegunAttempt, guest: Guest, base: str, *, now: datetime, real_now: datetime
) -> PageRequest:
    """What is asked for a page, but for what stands in other rows: key, address and the link back.

    It ends with its checkout, in real time and in whole seconds, as far as acquirers allow.
    """
    lives = min(max(checkout.expires_at - now, SHORTEST_LIFE), LONGEST_LIFE)
    return PageRequest(
        key="",
        amount=begun.amount,
        currency=begun.currency,
        order=checkout.merchant_order_id,
        shop=checkout.merchant_name,
        description=checkout.description,
        email="",
        language=guest.language,
        return_url=base,
        expires_at=(real_now + lives).replace(microsecond=0),
        mark=order_mark(begun, checkout.terms),
        keep=checkout.terms is not None,
        asked_at=real_now.replace(microsecond=0),
    )


async def _open_and_record(
    desk: Desk, checkout: Checkout, acquirer: Acquirer, intent: _Intent, *, now: datetime
) -> Result:
    """Ask for the page and record where it is; whatever goes wrong leaves the attempt
    to the janitor. Moves no money.
    """
    attempt_id, wanted = intent.attempt_id, intent.wanted
    with left_to_the_janitor(attempt_id=attempt_id):
        old = now > checkout.created_at + acquirer.key_lifetime
        wish = Wish(
            checkout.shop,
            attempt_id,
            _as_purchase(wanted, intent.not_after),
            desk.pads,
            may_be_old=old,
            was_forgotten=intent.was_forgotten,
            since=utc_now() - max(now - checkout.created_at, timedelta(0)),
        )
        answer, _ = await under_its_key(
            desk.database, acquirer, wish, partial(_open, desk, acquirer, checkout.shop, attempt_id, wanted)
        )
        if answer == NOT_REACHED:
            return await _not_reached(desk, checkout.shop, intent, now=now)
        result = await record_answer(desk, checkout, attempt_id, answer, look_in=PAGE_LOOK, now=now)
        return await _as_recorded(desk, checkout.shop, attempt_id, answer, result)
    return Unsettled()


async def _not_reached(desk: Desk, shop: Shop, intent: _Intent, *, now: datetime) -> Result:
    """Let another account be asked, unless the janitor may be asking for the same page by now."""
    if utc_now() >= intent.not_after - KEY_LIFETIME + FIRST_LOOK:
        return Unsettled()
    recorded = await record_not_reached(desk, shop, intent.attempt_id, now=now)
    return Refused(str(NOT_REACHED.reason)) if recorded else Unsettled()


async def _as_recorded(desk: Desk, shop: Shop, attempt_id: int, answer: Outcome, result: Result) -> Result:
    """Where the customer goes: to their page, too, if the janitor was faster to write it down."""
    if not (isinstance(result, Unsettled) and isinstance(answer, Challenged)):
        return result
    states = await attempt_states(desk.database, [(shop, attempt_id)])
    return ConfirmWithBank(answer.url) if states.get(attempt_id) is AttemptState.CHALLENGED else result


def _as_purchase(wanted: PageRequest, not_after: datetime) -> Purchase:
    """A page's order as what `forgotten_purchases` compares with older purchases under its key."""
    nobodys = CardDetails(number="", exp_month=0, exp_year=0, holder="")
    return Purchase(wanted.key, wanted.amount, wanted.currency, nobodys, wanted.capture, not_after, mark=wanted.mark)


async def _open(
    desk: Desk, acquirer: Acquirer, shop: Shop, attempt_id: int, wanted: PageRequest, purchase: Purchase
) -> Outcome:
    """Ask for a page under the key and number that an attempt has by now. Moves no money.

    Raises: KeyUsed, OutcomeUnknown.
    """
    wanted = replace(wanted, key=purchase.key, mark=purchase.mark)
    return await asked(acquirer, attempt_id, ask_for_page(desk, acquirer, shop, attempt_id, wanted))
