"""Who advances the test clock of a shop that goes to another cell reads how far it came, and the
log says that they did.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any, TypeAlias

import pytest
from tests.web.account.conftest import Visitor, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.core.errors import Unavailable
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.business import test_clock
from paydesk.domain.cells.fencing import Fenced, close, fence, lift, require_unfenced
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.moving.tables import GUARDED
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk.domain.test_clock import advancing
from paydesk.domain.test_clock.advancing import Summary
from paydesk.domain.test_clock.resetting import reset_test_side

Seen: TypeAlias = tuple[int, int]
"""How many lines say that the clock was moved: in the merchant's log, and in the person's own."""

_IN_FILTER = 1
"""How often the merchant's log names what was done above its lines."""


@pytest.fixture
async def seller(owner: Visitor, desk: Desk) -> Seller:
    """A merchant with a subscription that renews each month."""
    seller = seller_of(desk, owner)
    await seller.sell("A-1", terms=Terms("Tea", "tea", "USD", Decimal("10.00"), Period(1, "month"), None, 0))
    return seller


async def seen(owner: Visitor, seller: Seller, what: str = "Moved the test clock") -> Seen:
    merchants = text_of(await owner.see(f"{owner.merchant_path}/settings/audit")).count(what)
    return merchants - _IN_FILTER, text_of(await owner.see("/account/security")).count(what)


async def close_fence(seller: Seller) -> None:
    await fence(seller.database, seller.shop.merchant_id, other_cell=2, tables=GUARDED)
    await close(seller.database, seller.shop.merchant_id, patience=0)


async def paid(seller: Seller) -> int:
    counted = "select count(*) from payment where merchant_id = $1 and captured_at is not null"
    return int(await seller.database.fetchval(counted, seller.shop.merchant_id))


@pytest.mark.parametrize(("closed", "logged"), [(False, (1, 0)), (True, (0, 1))])
async def test_the_page_says_where_the_clock_stands(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch, *, closed: bool, logged: Seen
) -> None:
    async def require(here: Database, merchant_id: int) -> None:
        """The merchant is fenced once it has renewed twice."""
        await require_unfenced(here, merchant_id)
        if await paid(seller) == 3:
            if closed:
                await close_fence(seller)
            raise Fenced("fenced")

    monkeypatch.setattr(advancing, "require_unfenced", require)
    answer = await owner.send(f"{owner.merchant_path}/developers/clock", by="1y")
    assert answer.status_code == 429
    assert "The test clock stands at" in text_of(answer), text_of(answer)
    assert await paid(seller) == 3
    await lift(seller.database, seller.shop.merchant_id, tables=GUARDED)
    assert await seen(owner, seller) == logged


async def test_an_advance_that_ends_as_the_fence_is_closed_stands_in_the_log(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    summarize = advancing._summary

    async def close_then_summarize(*given: Any) -> Summary:
        await close_fence(seller)
        return await summarize(*given)

    monkeypatch.setattr(advancing, "_summary", close_then_summarize)
    await owner.send(f"{owner.merchant_path}/developers/clock", by="1m")
    await lift(seller.database, seller.shop.merchant_id, tables=GUARDED)
    assert await paid(seller) == 2
    assert await seen(owner, seller) == (1, 0)


async def test_one_that_fails_on_its_way_stands_in_the_log(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*given: Any, **asked: Any) -> int:
        if await paid(seller) == 2:
            raise Unavailable("the acquirer can't be asked")
        return await read_disputes(*given, **asked)

    monkeypatch.setattr(advancing, "read_disputes", fail)
    answer = await owner.send(f"{owner.merchant_path}/developers/clock", by="1y")
    assert answer.status_code == 503
    assert await seen(owner, seller) == (1, 0)


async def test_one_whose_process_is_stopped_on_its_way_stands_in_the_log(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    come_so_far = asyncio.Event()

    async def hang(*given: Any, **asked: Any) -> int:
        if await paid(seller) == 2:
            come_so_far.set()
            await asyncio.Event().wait()
        return await read_disputes(*given, **asked)

    monkeypatch.setattr(advancing, "read_disputes", hang)
    advance = asyncio.ensure_future(owner.send(f"{owner.merchant_path}/developers/clock", by="1y"))
    await come_so_far.wait()
    advance.cancel()
    with pytest.raises(asyncio.CancelledError):
        await advance
    assert await seen(owner, seller) == (1, 0)


async def test_a_reset_that_ends_as_the_fence_is_closed_stands_in_the_persons_log(
    owner: Visitor, seller: Seller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reset(database: Database, merchant_id: int) -> dict[str, int]:
        gone = await reset_test_side(database, merchant_id)
        await close_fence(seller)
        return gone

    monkeypatch.setattr(test_clock, "reset_test_side", reset)
    answer = await owner.send(f"{owner.merchant_path}/developers/clock/reset")
    await lift(seller.database, seller.shop.merchant_id, tables=GUARDED)
    assert answer.status_code == 303
    assert await seen(owner, seller, "Deleted all test data") == (0, 1)
