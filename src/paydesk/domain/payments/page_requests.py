"""Requests for pages of an acquirer's, as they were stored with their intent: whoever asks, and
however often, sends just the same.
"""

from __future__ import annotations

from dataclasses import replace

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
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.asking_pages import OpenedPage, believed
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hurrying import Notified, notify_url
from paydesk.domain.payments.refused_requests import RefusedRequest, report_refused

hosted = load_statements(__package__ or "", "hosting.sql")


class _Stored(msgspec.Struct, frozen=True):
    """What is stored of the request for a page, and the rows that hold the rest of it."""

    asked: str
    idempotency_key: str
    acquirer: str
    number: int
    email: str
    checkout_id: int
    seed: str


async def wanted_page(desk: Desk, shop: Shop, attempt_id: int) -> PageRequest | None:
    """The request for an attempt's page as it was stored: the same each time.
    None if that was erased.
    """
    stored = record_if_any(
        _Stored,
        await hosted.stored_page(desk.database, merchant_id=shop.merchant_id, live=shop.live, attempt_id=attempt_id),
    )
    if stored is None or not stored.asked:
        return None
    asked = msgspec.json.decode(stored.asked, type=PageRequest)
    token = Link(LinkTo.CHECKOUT, shop, stored.checkout_id, stored.seed).token(desk.vault)
    return replace(
        asked,
        key=stored.idempotency_key,
        email=stored.email,
        return_url=f"{asked.return_url}/checkout/{token}/result",
        notify_url=notify_url(desk.vault, asked.return_url, stored.acquirer, Notified(shop, attempt_id)),
        mark=asked.mark and replace(asked.mark, attempt=stored.number),
    )


async def ask_for_page(desk: Desk, acquirer: Acquirer, shop: Shop, attempt_id: int, wanted: PageRequest) -> Outcome:
    """The acquirer's answer to a request for a page; a request that is refused as such is a
    decline. Raises: KeyUsed, OutcomeUnknown.
    """
    try:
        page = await acquirer.open_page(wanted)
    except KeyUsed:
        raise
    except AcquirerRefused as error:
        what = f"attempt {attempt_id}"
        await report_refused(desk.database, [RefusedRequest(shop, acquirer.name, what, str(error))], now=utc_now())
        return Declined(DeclineReason.REQUEST_REFUSED)
    asked_for = OpenedPage(
        shop,
        attempt_id,
        acquirer.name,
        wanted.key,
        page.reference,
        wanted.amount,
        wanted.currency,
        wanted.expires_at,
        wanted.slow,
    )
    finding = await believed(desk.database, asked_for, page)
    if isinstance(finding, Voided | NothingHeld):
        return Declined(DeclineReason.TOO_LATE)
    return finding


async def open_again(desk: Desk, shop: Shop, attempt_id: int, acquirer: Acquirer) -> Outcome | NothingHeld:
    """Ask once more for the page of an attempt whose answer was lost: the same one comes back.
    Moves no money. Raises: OutcomeUnknown.
    """
    wanted = await wanted_page(desk, shop, attempt_id)
    if wanted is None:
        return NothingHeld()
    try:
        return await ask_for_page(desk, acquirer, shop, attempt_id, wanted)
    except KeyUsed as error:
        raise OutcomeUnknown("the key was used before") from error
