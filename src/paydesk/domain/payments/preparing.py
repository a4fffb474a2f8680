"""What stands before each attempt at a checkout: the try is counted, and its customer's words are
put together. Moves no money.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime

import asyncpg

from paydesk.core.cards import split_name
from paydesk.core.errors import NotFound
from paydesk.database.records import record_of
from paydesk.database.statements import load_statements
from paydesk.domain.payments import card_guard
from paydesk.domain.payments.checkouts import Checkout
from paydesk.domain.payments.desk import Desk

queries = load_statements(__package__ or "")


class Prepared(card_guard.Try, frozen=True):
    """A try that was counted, and the id that its attempt will have."""

    shipped_goods: bool
    slow_methods: bool
    suspended: bool
    attempt_id: int


async def prepare(
    desk: Desk,
    checkout: Checkout,
    client_address: str,
    counts: Sequence[card_guard.Count],
    *,
    counted_at: datetime,
    now: datetime,
) -> Prepared:
    """Count a try, at a real time; `now` is the merchant's."""
    shop = checkout.shop
    return record_of(
        Prepared,
        await queries.prepare_attempt(
            desk.database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            checkout_id=checkout.id,
            client_address=client_address,
            declined_since=now - card_guard.HOUR,
            **card_guard.count_row(desk.limits_of(shop), counts, counted_at=counted_at),
            now=now,
        ),
    )


@asynccontextmanager
async def still_there(checkout: Checkout) -> AsyncIterator[None]:
    """Commit an attempt of a checkout that may have gone meanwhile, with a test side that is
    started anew. Raises: NotFound.
    """
    try:
        yield
    except asyncpg.ForeignKeyViolationError as error:
        raise NotFound(f"there is no checkout {checkout.id}") from error


def why_refused(known: Prepared) -> str:
    """The guard that refuses a try, empty if none does."""
    if known.suspended:
        return "suspended"
    return "too_many_attempts" if card_guard.is_refused(known) else ""


def attempt_row(
    desk: Desk, checkout: Checkout, known: Prepared, terms_agreed: str, client_address: str
) -> dict[str, object]:
    """What is written of each attempt, whatever it is paid with, and wherever."""
    return {
        "merchant_id": checkout.shop.merchant_id,
        "live": checkout.shop.live,
        "checkout_id": checkout.id,
        "attempt_id": known.attempt_id,
        "pads": desk.pads,
        "terms_agreed": terms_agreed,
        "client_address": client_address,
    }


def customer_row(checkout: Checkout, email: str, country: str, language: str, holder: str = "") -> dict[str, object]:
    """The `user` of a pingback: names from the form, else from the card (interface.md §5.3)."""
    first, last = checkout.first_name, checkout.last_name
    if not (first or last):
        first, last = split_name(holder)
    return {
        "email": email,
        "first_name": first,
        "last_name": last,
        "username": email,
        "country": country,
        "language": language,
    }
