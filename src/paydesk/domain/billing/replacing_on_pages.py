"""Replacing what a subscription is charged by on a page of the acquirer's, which keeps what its
customer chooses there and takes nothing.

As for a payment's page, all that is sent is computed once and stored with the intent, so that a
lost answer is asked for again with just the same, and the same page comes back.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from paydesk.adapters.acquirers.hosted_pages import PageRequest
from paydesk.adapters.acquirers.interface import (
    Acquirer,
    AcquirerRefused,
    Declined,
    DeclineReason,
    KeyUsed,
    NothingHeld,
    Outcome,
    OutcomeUnknown,
    Voided,
)
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Unavailable
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.billing.card_changes import CardChange, ChangePage, Result, record
from paydesk.domain.billing.marking import BegunCheck, card_mark
from paydesk.domain.billing.replacing_cards import (
    intent_row,
    leave_challenge,
    new_change,
    prepare_change,
    settle_challenge,
)
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import card_guard
from paydesk.domain.payments.asking_pages import believed
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hurrying import Notified, notify_url
from paydesk.domain.payments.refused_requests import RefusedRequest, report_refused
from paydesk.domain.payments.results import Refused, Unsettled
from paydesk.domain.payments.stored_cards import unknown_row
from paydesk.domain.payments.unanswered import left_to_the_janitor
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.rows import SubscriptionRow, link_of, paying_link
from paydesk.domain.subscriptions.states import CardChangeState

queries = load_statements(__package__ or "", "replacing_cards.sql")

PAGE_LIFE = timedelta(hours=1)
"""How long a customer may take on the page; within what acquirers allow."""
PAYING_PATH = "/portal/pay"
"""Below which are the pages that pay what is open of a subscription, by period and token."""


@dataclass(frozen=True, slots=True)
class PortalCaller:
    """Who wants to replace what is charged: the address that they call from, and their page's
    language, as a tag. Who came by a link that pays one `period` is led back there.
    """

    client_address: str
    language: str = "en"
    period: int | None = None

    def way_back(self, base: str) -> str:
        """Where the acquirer's page leads back to, but for the link's token."""
        return base if self.period is None else f"{base}{PAYING_PATH}/{self.period}"


class _Stored(SubscriptionRow, frozen=True):
    """What is stored of the request for a change's page, with its subscription."""

    asked: str
    idempotency_key: str


async def go_to_page(
    desk: Desk,
    subscription: Subscription,
    change: CardChange | None,
    caller: PortalCaller,
    *,
    shop_name: str,
    base: str,
    now: datetime,
) -> Result:
    """Lead the customer to a page of the acquirer's on which they choose what is charged from now
    on; to the same one as long as it is open. Moves no money.

    `change` is the last one that the customer saw; `shop_name` is what the page calls the merchant,
    and `base` the public address that it leads back to. `now` is real time, UTC.

    Raises: Conflict if the subscription has ended or another change is under way, Unavailable
        where no page is, Held.
    """
    await desk.gate.require()
    if not subscription.running:
        raise Conflict("this subscription has ended; there is nothing to replace")
    acquirer = (await ways_to_replace(desk, subscription)).page
    if acquirer is None:
        raise Unavailable("no acquirer hosts a page to choose on what is charged")
    if change is not None and change.state is CardChangeState.CHALLENGED:
        # A page that was opened in the portal leads back there, which is not for who may only pay.
        leave = leave_challenge if change.page is None or caller.period is not None else settle_challenge
        settled = await leave(desk, change, now=now)
        if not isinstance(settled, Refused):
            return settled
    opened = await _commit_intent(desk, subscription, caller, acquirer, shop_name, base=base, now=now)
    if isinstance(opened, Refused):
        return opened
    # A customer who goes away must not stop the page from being written down.
    call = asyncio.create_task(_open_and_record(desk, acquirer, opened, now=now))
    desk.under_way.add(call)
    call.add_done_callback(desk.under_way.discard)
    return await asyncio.shield(call)


@dataclass(frozen=True, slots=True)
class WaysToReplace:
    """How what a subscription is charged by may be replaced: by a card that is typed on our page,
    and on the page of an acquirer's that keeps what is chosen there, None if there is none.
    """

    cards: bool
    page: Acquirer | None


async def ways_to_replace(desk: Desk, subscription: Subscription) -> WaysToReplace:
    """The ways that the acquirers which serve a subscription's merchant have."""
    shop = Shop(subscription.merchant_id, subscription.live)
    serving = await desk.serving(shop, subscription.package.terms.currency)
    pages = (each for each in serving if each.capabilities.pages and each.capabilities.stored)
    cards = not serving or any(each.capabilities.cards for each in serving)
    return WaysToReplace(cards, next(pages, None))


async def _commit_intent(
    desk: Desk,
    subscription: Subscription,
    caller: PortalCaller,
    acquirer: Acquirer,
    shop_name: str,
    *,
    base: str,
    now: datetime,
) -> CardChange | Refused:
    """Commit that a page is about to be asked for, with all that is sent for it, or name the guard
    that refused. Moves no money.

    Raises: Conflict if another change is open, or the subscription has ended meanwhile.
    """
    shop, counted_at = Shop(subscription.merchant_id, subscription.live), utc_now()
    counts = card_guard.address_counts(desk.vault, caller.client_address)
    known = await prepare_change(desk, subscription, caller.client_address, counts, counted_at=counted_at, now=now)
    if card_guard.is_refused(known):
        return Refused("too_many_attempts")
    currency, ends_at = subscription.package.terms.currency, (now + PAGE_LIFE).replace(microsecond=0)
    change = replace(new_change(known, shop, acquirer, now=now), page=ChangePage("", currency, ends_at))
    async with desk.database.acquire() as connection, connection.transaction():
        row = await queries.begin_card_change(
            connection,
            **intent_row(change, subscription, caller.client_address, now=now),
            **unknown_row(known.card_id),
        )
        begun = record_if_any(BegunCheck, row)
        if begun is not None:
            asked = PageRequest(
                key="",
                amount=Decimal(0),
                currency=currency,
                order=begun.init_merchant_order_id,
                shop=shop_name,
                description=subscription.package.terms.name,
                email="",
                language=caller.language,
                return_url=caller.way_back(base),
                expires_at=ends_at,
                mark=card_mark(begun, shop, subscription),
                keep=True,
                slow=known.slow_methods and desk.keeps_slow_methods(subscription.as_charged_next.package.terms),
                authenticate=known.authenticate,
                notify_url=base,
            )
            await queries.begin_change_page(
                connection,
                merchant_id=shop.merchant_id,
                live=shop.live,
                change_id=change.id,
                asked=msgspec.json.encode(asked).decode(),
                currency=currency,
                ends_at=ends_at,
            )
    if begun is None:
        desk.later(card_guard.take_back(desk.database, shop, counts, counted_at=counted_at))
        raise Conflict("another change is under way, or the subscription has ended")
    return change


async def _open_and_record(desk: Desk, acquirer: Acquirer, change: CardChange, *, now: datetime) -> Result:
    """Ask for the page and record where it is; whatever goes wrong leaves the change to the
    janitor. Moves no money.
    """
    with left_to_the_janitor(change_id=change.id):
        answer = await open_change(desk, acquirer, change)
        if not isinstance(answer, NothingHeld):
            return await record(desk, change, answer, now=now)
    return Unsettled()


async def open_change(desk: Desk, acquirer: Acquirer, change: CardChange) -> Outcome | NothingHeld:
    """Ask for a change's page, for the first time or once more: the same one comes back.
    Moves no money. NothingHeld if what was asked for is erased. Raises: OutcomeUnknown.
    """
    wanted = await _wanted_page(desk, change)
    if wanted is None or change.page is None:
        return NothingHeld()
    try:
        page = await acquirer.open_page(wanted)
    except KeyUsed as error:
        raise OutcomeUnknown("the key was used before") from error
    except AcquirerRefused as error:
        what = f"card change {change.id}"
        await report_refused(
            desk.database, [RefusedRequest(change.shop, acquirer.name, what, str(error))], now=utc_now()
        )
        return Declined(DeclineReason.REQUEST_REFUSED)
    finding = await believed(desk.database, replace(change.opened_page(change.page), reference=page.reference), page)
    return Declined(DeclineReason.TOO_LATE) if isinstance(finding, Voided | NothingHeld) else finding


async def _wanted_page(desk: Desk, change: CardChange) -> PageRequest | None:
    """The request for a change's page as it was stored: the same each time.
    None if that was erased.
    """
    stored = await _stored(desk.database, change)
    if stored is None or not stored.asked:
        return None
    asked = msgspec.json.decode(stored.asked, type=PageRequest)
    about = Notified(change.shop, change.id, is_change=True)
    return replace(
        asked,
        key=stored.idempotency_key,
        email=stored.email,
        return_url=_leads_back(desk, stored, asked.return_url),
        # What code of before asked for has none, and is asked for again as it was.
        notify_url=asked.notify_url and notify_url(desk.vault, asked.notify_url, change.acquirer, about),
    )


def _leads_back(desk: Desk, stored: _Stored, asked: str) -> str:
    """The page that says how a change stands: the portal's, or that of the link by which the
    customer came, which must not show them the portal's.
    """
    _, pays, period = asked.rpartition(f"{PAYING_PATH}/")
    if pays and period.isdecimal():
        return f"{asked}/{paying_link(stored, int(period)).token(desk.vault)}/result"
    return f"{asked}/portal/{link_of(stored).token(desk.vault)}/card/result"


async def _stored(database: Database, change: CardChange) -> _Stored | None:
    shop = change.shop
    found = queries.stored_change_page(database, merchant_id=shop.merchant_id, live=shop.live, change_id=change.id)
    return record_if_any(_Stored, await found)
