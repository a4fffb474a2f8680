"""How many coupons may be tried, counted for all processes together, so that nobody finds a code by
guessing.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from paydesk.adapters.vault import Vault
from paydesk.core.errors import TooMany
from paydesk.database.statements import Connection
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.shoppers.counting import CodeLimit, counted

TRIES_OF_CLIENT = 20
"""From one client's address within a minute, at all shops together."""

TRIES_AT_SHOP = 1000
"""At one side of a shop within a minute, whoever tries."""

_SPAN = timedelta(minutes=1)


async def count_try(connection: Connection, vault: Vault, shop: Shop, client: str, *, now: datetime) -> None:
    """Count one more code that somebody tries; `now` is real time. Moves no money.

    Raises: TooMany, and what is refused so is not counted.
    """
    side = f"{shop.merchant_id} {'live' if shop.live else 'test'}"
    for what, whom, most in (
        ("coupons of client", client, TRIES_OF_CLIENT),
        ("coupons at merchant", side, TRIES_AT_SHOP),
    ):
        if not await counted(connection, vault, CodeLimit(what, most, _SPAN), whom, now=now):
            raise TooMany("too many coupons were tried; wait a minute", retry_after=int(_SPAN.total_seconds()))
