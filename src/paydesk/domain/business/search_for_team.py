"""Finding payments by whatever somebody has at hand, typed into one box. Moves no money."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from paydesk.core.paging import Page, Place, read_id
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.for_api import PaymentFilter, PaymentRow, SeenPayment, list_payments, payment_of
from paydesk.domain.payments.states import PaymentState

queries = load_statements(__package__ or "", "search_for_team.sql")

COMMON = 5000
"""With more cards than these that end in the same digits,
the newest payments are looked through instead."""

_AT_ONCE = 1000
_LAST4 = 4


@dataclass(frozen=True, slots=True)
class PaymentSearch:
    """Which payments: `text` is an order reference, an e-mail address, a card's last four digits
    or a payment's id.

    An empty `text` finds all, or those of a subscription; `states` (None: any) narrows either down.
    """

    text: str = ""
    states: frozenset[PaymentState] | None = None
    subscription_id: int | None = None


def id_in(text: str) -> int | None:
    """The id that a text writes out, or None if it is none."""
    return read_id(text.removeprefix("#"))


async def search_payments(database: Database, shop: Shop, wanted: PaymentSearch, page: Page) -> list[SeenPayment]:
    """A page of the shop's payments that a search finds, newest first;
    each meaning of the text has its index.
    """
    if not wanted.text:
        narrowed = PaymentFilter(wanted.states, subscription_id=wanted.subscription_id)
        return await list_payments(database, shop, narrowed, page)
    text = wanted.text.replace("\x00", "")
    last4 = text if len(text) == _LAST4 and text.isascii() and text.isdigit() else None
    states = None if wanted.states is None else sorted(wanted.states)
    asked = {"merchant_id": shop.merchant_id, "live": shop.live, "last4": last4, "states": states, **page.parameters()}
    if last4 is None or not await _is_common(database, shop, last4):
        email = text if "@" in text else None
        rows = queries.of_text(database, **asked, text=text, email=email, payment_id=id_in(text))
    elif wanted.states is None or PaymentState.CAPTURED in wanted.states:
        rows = queries.of_common_card(database, **asked)
    else:
        rows = queries.of_common_card_in_states(database, **asked)
    return [payment_of(row) for row in await records_of(PaymentRow, rows)]


async def _is_common(database: Database, shop: Shop, last4: str) -> bool:
    """Whether too many cards end in these digits to ask for the payments of each."""
    found = await queries.cards_of_last4(
        database, merchant_id=shop.merchant_id, live=shop.live, last4=last4, most=COMMON + 1
    )
    return int(found) > COMMON


async def all_payments(database: Database, shop: Shop, wanted: PaymentSearch, page: Page) -> AsyncIterator[SeenPayment]:
    """Every payment that a search finds, newest first, read a thousand at a time."""
    following = replace(page, most=_AT_ONCE)
    while found := await search_payments(database, shop, wanted, following):
        for payment in found:
            yield payment
        following = replace(following, before=Place(found[-1].created_at, found[-1].id))
