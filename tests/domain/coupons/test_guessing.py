from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.changing import change
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.core.errors import TooMany
from paydesk.domain.coupons.guessing import count_try


async def tries(till: Till, count: int, client: str, later: timedelta = timedelta(0)) -> int:
    """How many of several tries at once are let through."""

    async def let_through() -> bool:
        try:
            await count_try(till.database, till.desk.vault, till.shop, client, now=utc_now() + later)
        except TooMany:
            return False
        return True

    return sum(await asyncio.gather(*(let_through() for _ in range(count))))


async def test_a_client_tries_so_many_in_a_minute_whatever_process_answers(
    till: Till, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch, "paydesk.domain.coupons.guessing", "TRIES_OF_CLIENT", 5)
    assert await tries(till, 20, "203.0.113.1") == 5
    assert await tries(till, 3, "203.0.113.2") == 3
    other = Till(till.desk, replace(till.shop, merchant_id=till.shop.merchant_id + 1))
    assert await tries(other, 1, "203.0.113.1") == 0
    assert await tries(till, 20, "203.0.113.1", timedelta(seconds=61)) == 5


async def test_a_crowd_tries_so_many_at_a_shop(till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    change(monkeypatch, "paydesk.domain.coupons.guessing", "TRIES_AT_SHOP", 4)
    let_through = [await tries(till, 1, f"198.51.100.{number}") for number in range(10)]
    assert sum(let_through) == 4
    live = Till(till.desk, replace(till.shop, live=not till.shop.live))
    assert await tries(live, 1, "198.51.100.77") == 1
