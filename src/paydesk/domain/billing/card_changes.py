"""A change of a subscription's card, and what it came to: the new card takes the old one's place,
or the old one stays. Nothing here moves money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec
import structlog

from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.interface import (
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    Finding,
    NothingHeld,
    Outcome,
    Pending,
)
from paydesk.database.pool import Database
from paydesk.database.reading_again import READ_AGAIN
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import card_guard
from paydesk.domain.payments.asking_pages import OpenedPage
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.outcomes import CHALLENGE_LOOK, PAGE_LOOK
from paydesk.domain.payments.results import ConfirmWithBank, Refused, Unsettled
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.domain.payments.stored_cards import shown_brand
from paydesk.domain.subscriptions.failing import tried_at_once
from paydesk.domain.subscriptions.rows import SubscriptionRow, subscription_of
from paydesk.domain.subscriptions.states import CardChangeState

queries = load_statements(__package__ or "", "replacing_cards.sql")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChangePage:
    """The page of the acquirer's on which a change is made: `reference` is empty until it is known;
    nobody can choose anything there after `ends_at` (real time, UTC).
    """

    reference: str
    currency: str
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class CardChange:
    """One change of a subscription's card: by `key` the acquirer knows it,
    until `not_after` it takes it. `page` is where it is made, if not on ours.
    """

    shop: Shop
    id: int
    state: CardChangeState
    key: str
    acquirer: str
    not_after: datetime
    challenge_url: str = ""
    decline_reason: str = ""
    page: ChangePage | None = None

    def opened_page(self, page: ChangePage) -> OpenedPage:
        """Its page as the acquirer is asked about it."""
        return OpenedPage(
            self.shop,
            self.id,
            self.acquirer,
            self.key,
            page.reference,
            Decimal(0),
            page.currency,
            page.ends_at,
            of="card change",
        )


@dataclass(frozen=True, slots=True)
class Replaced:
    """The subscription's next charge goes to the new card."""


Result = Replaced | Refused | ConfirmWithBank | Unsettled


async def record(desk: Desk, change: CardChange, answer: Outcome, *, now: datetime) -> Result:
    """Record an answer; if somebody else was faster, what they recorded counts. `now` is real time.
    Moves no money.
    """
    if isinstance(answer, Approved):
        if change.page is not None and not (answer.instrument and answer.instrument.reference):
            return await _record_kept_nothing(desk.database, change, change.page, now=now)
        if answer.instrument is not None:
            await _name_instrument(desk.database, change, answer.instrument)
        return await _record_replaced(desk.database, change, answer.network_reference, now=now)
    if isinstance(answer, Declined):
        return await _record_refusal(desk, change, CardChangeState.DECLINED, answer.reason, now=now)
    if isinstance(answer, Pending):
        # Only money takes days: a card is looked at again.
        return Unsettled()
    asked = await queries.challenge_card_change(
        desk.database,
        **_names(change),
        page_reference=answer.reference if change.page else "",
        challenge_url=answer.url,
        lookup_at=now + (PAGE_LOOK if change.page else CHALLENGE_LOOK),
    )
    return ConfirmWithBank(answer.url) if asked else Unsettled()


async def _record_kept_nothing(
    database: Database, change: CardChange, page: ChangePage, *, now: datetime
) -> Refused | Unsettled:
    """The old card stays where the acquirer says that its page is done, and names nothing to charge
    from then on; that may come a moment later, so it is asked again until the page's end.
    """
    if now <= page.ends_at:
        return Unsettled()
    log.warning("the acquirer has kept nothing", change_id=change.id)
    return await record_ending(database, change, CardChangeState.FAILED, DeclineReason.PROCESSING_ERROR, now=now)


class _ToRecord(SubscriptionRow, frozen=True):
    """The subscription of a card change that is still open."""

    clock: timedelta


async def _name_instrument(database: Database, change: CardChange, instrument: Instrument) -> None:
    """Write down what was chosen on the acquirer's page, of which only the acquirer knew."""
    await queries.name_new_instrument(
        database,
        merchant_id=change.shop.merchant_id,
        live=change.shop.live,
        change_id=change.id,
        brand=shown_brand(instrument),
        last4=instrument.last4,
        wallet=instrument.wallet,
        stored_reference=instrument.reference,
        exp_month=instrument.exp_month,
        exp_year=instrument.exp_year,
        slow=instrument.slow,
    )


async def _record_replaced(
    database: Database, change: CardChange, network_reference: str, *, now: datetime
) -> Replaced | Unsettled:
    """Put the new card in the old one's place, over the version of the subscription
    that was read.
    """
    for _ in range(READ_AGAIN):
        row = record_if_any(_ToRecord, await queries.change_to_record(database, **_names(change)))
        if row is None:
            return Unsettled()
        current = subscription_of(row)
        tried = tried_at_once(current, at=now + row.clock)
        moved = await queries.replace_card(
            database,
            **_names(change),
            network_reference=network_reference,
            revision=current.revision,
            running=current.running,
            date_next=tried.date_next,
            dunning=msgspec.json.encode(tried.dunning).decode() if tried.dunning else None,
            shop_now=now + row.clock,
            now=now,
        )
        if moved is not None:
            return Replaced()
    return Unsettled()


async def _record_refusal(
    desk: Desk, change: CardChange, state: CardChangeState, reason: DeclineReason, *, now: datetime
) -> Refused | Unsettled:
    """Record that a bank or its customer refused, and count it against card testing."""
    result = await record_ending(desk.database, change, state, reason, now=now)
    if isinstance(result, Refused):
        desk.later(card_guard.count_declines(desk.database, [change.shop], desk.limits_of, now=now))
    return result


async def record_ending(
    database: Database,
    change: CardChange,
    state: CardChangeState,
    reason: str,
    *,
    now: datetime,
    look_at: datetime | None = None,
) -> Refused | Unsettled:
    """Record that the old card stays. A page that is still open is looked at again (`look_at`).
    `now` is real time. Moves no money.
    """
    ended = await queries.end_card_change(
        database, **_names(change), state=str(state), reason=str(reason), lookup_at=look_at, now=now
    )
    return Refused(str(reason)) if ended else Unsettled()


async def record_finding(desk: Desk, change: CardChange, finding: Finding, *, now: datetime) -> Result:
    """Record what a challenge came to. The acquirer knew the key:
    that it knows nothing now is no answer.
    """
    if isinstance(finding, Challenged | NothingHeld):
        return Unsettled()
    if isinstance(finding, Approved | Declined):
        return await record(desk, change, finding, now=now)
    if change.page is not None:
        # No bank has refused, so it is not counted as a decline.
        return await record_ending(desk.database, change, CardChangeState.ABANDONED, PAGE_LEFT, now=now)
    reason = DeclineReason.AUTHENTICATION_FAILED
    return await _record_refusal(desk, change, CardChangeState.ABANDONED, reason, now=now)


async def record_left_open(database: Database, change: CardChange, *, now: datetime) -> Refused | Unsettled:
    """Record that a page was left which can't be ended: what is chosen there after all is let go
    of. Moves no money.
    """
    return await record_ending(database, change, CardChangeState.ABANDONED, PAGE_LEFT, now=now, look_at=now + PAGE_LOOK)


async def let_go_of_chosen(database: Database, change: CardChange, kept: str) -> None:
    """Have the acquirer let go of what was chosen on a page that was left (`kept`, empty if nothing
    was), and look at it no more. Moves no money.
    """
    await queries.let_go_of_chosen(database, **_names(change), kept=kept)


def _names(change: CardChange) -> dict[str, object]:
    return {"merchant_id": change.shop.merchant_id, "live": change.shop.live, "change_id": change.id}
