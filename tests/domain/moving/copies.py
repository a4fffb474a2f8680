"""A merchant has moved, and the database that it left is what it was before."""

from __future__ import annotations

from typing import Any

from tests import shopfront
from tests.domain.moving.putting_back import Past
from tests.set_back import times
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.domain.cells.fencing import find_fence
from paydesk.domain.moving.steps import Step


async def comes_back(past: Past, at: Step | None = None) -> None:
    """The merchant has moved, and then the database here is what it was at a step of that (none:
    before).
    """
    if at:
        await past.until(at)
    copy = await past.copy("here")
    await past.until(None)
    past.put_back("here", copy)


def here(past: Past) -> Till:
    return Till(past.play.here.desk, past.play.shop)


def there(past: Past) -> Till:
    return Till(past.play.there.desk, past.play.shop)


async def rows(past: Past) -> tuple[dict[str, str], dict[str, str]]:
    """What is in both cells of the merchant."""
    cells = (past.play.here, past.play.there)
    found = [await past.play.rows(cell, past.play.merchant.id) for cell in cells]
    return found[0], found[1]


async def is_gone(past: Past) -> bool:
    """Whether nothing is here but the keys by which banks were asked."""
    left = await past.play.rows(past.play.here, past.play.merchant.id)
    names = {name for name, lines in left.items() if lines != "[]"}
    return names == {"forgotten_attempt"} and await find_fence(past.play.here.database, past.play.merchant.id) is None


async def subscribed(till: Till) -> Any:
    (row,) = await till.rows("subscription")
    return await shopfront.find_subscription(till.database, till.shop, row["id"])


async def renew(till: Till) -> None:
    await times(till.database, "subscription", {"merchant_id": till.shop.merchant_id}, date_next=utc_now())
    await shopfront.charge_round(till.desk)
