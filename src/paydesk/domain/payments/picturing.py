"""The pictures of an order's lines, fetched before its checkout is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from paydesk.adapters.outbound import OutboundClient
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.fetching_pictures import Fetched, fetch_pictures
from paydesk.domain.payments.line_items import AskedItem, LineItem

Pictures: TypeAlias = Callable[[], AbstractAsyncContextManager[OutboundClient]]
"""Opens what fetches pictures, for one order."""


async def pictured(
    database: Database, pictures: Pictures | None, shop: Shop, asked: Sequence[AskedItem], *, now: datetime
) -> tuple[list[LineItem], Mapping[str, Fetched]]:
    """The lines with their pictures, and what came of each address; one that can't be had is left
    out. `now` is real time. Moves no money.
    """
    urls = dict.fromkeys(one.picture_url for one in asked if one.picture_url)
    if not urls or pictures is None:
        return [one.item for one in asked], {}
    async with pictures() as outbound:
        fetched = await fetch_pictures(database, outbound, shop, urls, now=now)
    return [
        replace(one.item, picture=fetched[one.picture_url].name) if one.picture_url else one.item for one in asked
    ], fetched
