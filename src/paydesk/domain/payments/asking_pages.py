"""What became of a page of the acquirer's: asked of the acquirer, and believed only where it is
the page that we asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.adapters.acquirers.hosted_pages import Page, PageState
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Challenged,
    Finding,
    OutcomeUnknown,
    Pending,
    Voided,
)
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk


@dataclass(frozen=True, slots=True)
class OpenedPage:
    """The page of an attempt: what we asked for, and what it is called at the acquirer, empty while
    that is not known.

    Nobody can pay on it after `expires_at` (real time, UTC). `slow` if methods were offered whose
    money may be sure only in some days. `of` says what `attempt_id` names: an attempt, or a change
    of a subscription's card.
    """

    shop: Shop
    attempt_id: int
    acquirer: str
    key: str
    reference: str
    amount: Decimal
    currency: str
    expires_at: datetime
    slow: bool = False
    of: str = "attempt"


async def find_page(desk: Desk, page: OpenedPage) -> Finding:
    """What became of a page: Challenged while it is open. Moves no money.

    Raises: OutcomeUnknown, also for an answer to something else than we asked for.
    """
    acquirer = desk.acquirers[page.acquirer]
    try:
        said = await acquirer.find_page(page.key, page.reference)
    except AcquirerRefused as error:
        raise OutcomeUnknown(f"the acquirer does not show the page: {error}") from error
    return await believed(desk.database, page, said)


async def end_page(desk: Desk, page: OpenedPage) -> Finding:
    """See to it that nobody pays on a page any more; Challenged if it can't be ended.
    Moves no money.

    Raises: OutcomeUnknown, as `find_page`.
    """
    acquirer = desk.acquirers[page.acquirer]
    try:
        said = await acquirer.end_page(page.key, page.reference)
    except AcquirerRefused as error:
        raise OutcomeUnknown(f"the acquirer does not end the page: {error}") from error
    return await believed(desk.database, page, said)


async def believed(database: Database, page: OpenedPage, said: Page) -> Finding:
    """What an acquirer's answer means for an attempt, if it is about the attempt's page.

    A prompt method may be unsure for a moment: it is asked again, and no pending payment.

    Raises: OutcomeUnknown, with an alarm, if amount, currency or order are others than ours.
    """
    ours, theirs = (page.key, page.amount, page.currency), (said.key, said.amount, said.currency)
    if ours != theirs:
        why = (
            noted(
                "its page is of %(amount)s %(currency)s there and of %(page_amount)s %(page_currency)s here",
                amount=f"{said.amount:f}",
                currency=said.currency,
                page_amount=f"{page.amount:f}",
                page_currency=page.currency,
            )
            if page.key == said.key
            else noted("its page is another order's there")
        )
        alarm = Alarm(AlarmKind.contradiction, f"{page.of} {page.attempt_id}", why, page.shop)
        await raise_alarms(database, [alarm], now=utc_now())
        raise OutcomeUnknown(f"the acquirer tells of another page than ours: {why}")
    match said.state:
        case PageState.OPEN:
            return Challenged(said.reference, said.url)
        case PageState.PAID:
            # What keeps instruments also names them so: by that, code of before renews.
            kept = said.instrument.reference if said.instrument else ""
            return Approved(said.payment, kept, instrument=said.instrument, hold_until=said.hold_until)
        case PageState.ENDED:
            return Voided()
        case PageState.PENDING if page.slow:
            return Pending(said.reference, said.until, said.instrument)
        case PageState.PENDING:
            raise OutcomeUnknown("the customer has paid, and the money is not sure yet")
