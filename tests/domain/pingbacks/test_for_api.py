from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from tests import breaking, set_back

from paydesk.core.clock import utc_now
from paydesk.core.paging import Page, Place
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.for_api import PingbackFilter, list_pingbacks, why_failed
from paydesk.domain.pingbacks.reasons import Why
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.pingbacks.states import PingbackState

STATES = [None, *PingbackState]
KINDS = ("payment", "refund", "subscription_cancelled")


@pytest.mark.parametrize("event", [None, *KINDS, "chargeback"])
@pytest.mark.parametrize("state", STATES)
async def test_each_filter_finds_its_own_and_all_of_them(
    database: Database, shop: Shop, other_shop: Shop, queue: Any, state: PingbackState | None, event: str | None
) -> None:
    expected = []
    for kind, stands in product(KINDS, PingbackState):
        waits = stands is PingbackState.WAITING
        for side in (shop, Shop(shop.merchant_id, True), other_shop):
            made = await queue(side, None if waits else "https://shop.example/")
            await breaking.say(database, "pingback", {"id": made}, event=kind, state=stands)
            if side == shop and event in (None, kind) and state in (None, stands):
                expected.append(made)
    found = []
    page = Page(2)
    while rows := await list_pingbacks(database, shop, PingbackFilter(state, event=event), page):
        found += [row.id for row in rows]
        page = Page(2, Place(rows[-1].created_at, rows[-1].id))
    assert found == expected[::-1]


async def test_the_last_attempt_says_why_and_what_arrived_has_no_reason(
    database: Database, shop: Shop, other_shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers |= {"/a": [(500, b""), (200, b"NOK")], "/b": [(404, b"")]}
    rejected, missing, fine = [await queue(shop, f"{receiver.base}/{path}") for path in "abc"]
    await sender.send_due_once(utc_now())
    await set_back.times(database, "pingback", {"id": rejected}, due_at=utc_now())
    await sender.send_due_once(utc_now())
    unsent = await queue(shop, None)
    ids = [rejected, missing, fine, unsent]
    assert await why_failed(database, shop, ids) == {rejected: Why.REJECTED, missing: Why.MISSING}
    assert await why_failed(database, other_shop, ids) == {}
