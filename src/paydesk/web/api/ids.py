"""Ids in paths: decimal, or the octal text that a client in the field makes
of a number (core/octal.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from paydesk.core.octal import octal_reading
from paydesk.core.paging import LARGEST_ID
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.for_api import which_payment
from paydesk.domain.subscriptions.for_api import which_subscription
from paydesk.web.api.list_parameters import known_id

Which = Callable[[Database, Shop, Sequence[int]], Awaitable[int]]


async def payment_in_path(database: Database, shop: Shop, text: str) -> int:
    """The payment that a path names: the shop's own with this id,
    else the one whose id this is in octal.

    Raises: NotFound if nothing can have this id.
    """
    return await _meant(database, shop, text, "payment", which_payment)


async def subscription_in_path(database: Database, shop: Shop, text: str) -> int:
    """The subscription that a path names, read like a payment's id.

    Raises: NotFound if nothing can have this id.
    """
    return await _meant(database, shop, text, "subscription", which_subscription)


async def _meant(database: Database, shop: Shop, text: str, noun: str, which: Which) -> int:
    octal = octal_reading(text)
    if octal is None:
        return known_id(text, noun)
    decimal = [int(text)] if int(text) <= LARGEST_ID else []
    return await which(database, shop, [*decimal, octal])
