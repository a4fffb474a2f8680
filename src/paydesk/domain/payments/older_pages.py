"""Pages of an acquirer's that a customer left for another way to pay, and that could not be ended:
what is paid there is given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

import msgspec
import structlog

from paydesk.adapters.acquirers.interface import (
    Approved,
    OutcomeUnknown,
)
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.payments.asking_pages import OpenedPage, find_page
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hurrying import Notified, hurry_named, may_look
from paydesk.domain.payments.undoing import GivenUp, undo

hosted = load_statements(__package__ or "", "hosting.sql")
log = structlog.get_logger()


class _Older(msgspec.Struct, frozen=True):
    """An attempt of an order that was given up while its page could not be ended."""

    attempt_id: int
    idempotency_key: str
    acquirer: str
    acquirer_reference: str
    amount: Decimal
    currency: str
    expires_at: datetime
    slow: bool


async def give_back_older(desk: Desk, checkout: Checkout, *, real_now: datetime) -> bool:
    """Give back what was paid on pages that the order's customer had left before; whether there
    was any. Moves money (back).

    The customer comes from such a page, perhaps; the janitor looks at them in any case.
    """
    given_back = False
    for page in await _older_pages(desk.database, checkout, real_now):
        if not await may_look(desk.database, page.shop, page.attempt_id, now=real_now):
            await hurry_named(desk.database, page.acquirer, Notified(page.shop, page.attempt_id), now=real_now)
            continue
        try:
            finding = await find_page(desk, page)
            if isinstance(finding, Approved):
                given_up = GivenUp(page.shop, page.attempt_id, page.key, page.acquirer)
                await undo(desk, given_up, finding, now=real_now)
                given_back = True
        except OutcomeUnknown:
            continue
        except AWAY as error:
            why = type(error).__name__
            log.warning("an older page waits, the database is away", attempt_id=page.attempt_id, why=why)
        except Exception:
            # An older page is the janitor's to mend, and no reason to show this customer an error.
            log.exception("an older page can't be looked at", attempt_id=page.attempt_id)
    return given_back


async def _older_pages(database: Database, checkout: Checkout, real_now: datetime) -> Sequence[OpenedPage]:
    """The pages of the order that were given up and may still be paid."""
    if checkout.attempt is None:
        return []
    rows = hosted.older_pages(
        database,
        merchant_id=checkout.shop.merchant_id,
        live=checkout.shop.live,
        payment_id=checkout.attempt.payment_id,
        now=real_now,
    )
    return [
        OpenedPage(
            checkout.shop,
            row.attempt_id,
            row.acquirer,
            row.idempotency_key,
            row.acquirer_reference,
            row.amount,
            row.currency,
            row.expires_at,
            row.slow,
        )
        for row in await records_of(_Older, rows)
    ]
