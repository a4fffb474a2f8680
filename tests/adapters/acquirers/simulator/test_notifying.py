from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import httpx
import pytest
from tests.processes import eventually
from tests.servers import Received, answering

from paydesk.adapters.acquirers.hosted_pages import PageRequest
from paydesk.adapters.acquirers.simulator import Bank, Notifier, Record, challenge_app

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
WANTED = PageRequest(
    key="one",
    amount=Decimal(10),
    currency="USD",
    order="A-1",
    shop="A shop",
    description="Socks",
    email="ada@example.com",
    language="en",
    return_url="https://pay.test/checkout/x/result",
    expires_at=NOON + timedelta(hours=1),
    slow=True,
)


@pytest.fixture
async def notifier() -> AsyncIterator[Notifier]:
    """One that waits for nothing between two times."""
    notifier = Notifier(pauses=(0, 0, 0))
    yield notifier
    await notifier.close()


@pytest.fixture
def bank(record: Record) -> Bank:
    return Bank(record, now=lambda: NOON)


async def pay(bank: Bank, notifier: Notifier, address: str, *ways: str) -> str:
    """Somebody does things on a page, one after the other; its reference."""
    page = bank.pages.open(replace(WANTED, notify_url=address)).reference
    app = httpx.ASGITransport(challenge_app(bank, notifier))
    async with httpx.AsyncClient(transport=app, base_url="http://bank.test") as browser:
        for way in ways:
            await browser.post(f"/pay/{page}", data={"way": way, "number": "4000000000000002"})
    return page


def pages_in(seen: list[Received]) -> list[str]:
    return [json.loads(one.body)["page"] for one in seen]


@pytest.mark.parametrize("ways", [("wallet",), ("transfer",), ("bank", "approve")])
async def test_a_page_that_is_paid_is_told_of_twice(bank: Bank, notifier: Notifier, ways: tuple[str, ...]) -> None:
    with answering() as (address, seen):
        page = await pay(bank, notifier, f"{address}/notify?of=t1-1", *ways, "wallet")
        await eventually(lambda: len(seen) == 2, "it is told twice")
        await asyncio.sleep(0.05)
    assert pages_in(seen) == [page, page], "no more often, whoever presses again"
    assert {one.path for one in seen} == {"/notify?of=t1-1"}


async def test_who_does_not_listen_is_told_again(bank: Bank, notifier: Notifier) -> None:
    with answering(503) as (address, seen):
        page = await pay(bank, notifier, address, "wallet")
        await eventually(lambda: len(seen) == 3, "it is told as often as it may")
    assert pages_in(seen) == [page] * 3


async def test_what_has_come_to_nothing_yet_is_not_told(bank: Bank, notifier: Notifier) -> None:
    with answering() as (address, seen):
        await pay(bank, notifier, address, "card", "bank", "reject")
        paid = await pay_another(bank, notifier, address)
        await eventually(lambda: len(seen) == 2, "another is told of")
    assert pages_in(seen) == [paid, paid]


async def pay_another(bank: Bank, notifier: Notifier, address: str) -> str:
    page = bank.pages.open(replace(WANTED, key="another", notify_url=address)).reference
    app = httpx.ASGITransport(challenge_app(bank, notifier))
    async with httpx.AsyncClient(transport=app, base_url="http://bank.test") as browser:
        await browser.post(f"/pay/{page}", data={"way": "wallet"})
    return page


@pytest.mark.parametrize("address", ["", "http://127.0.0.1:1/nobody", "http://", "shop://there"])
async def test_an_address_where_nobody_is_costs_the_customer_nothing(
    bank: Bank, notifier: Notifier, address: str
) -> None:
    page = await pay(bank, notifier, address, "wallet")
    assert bank.pages.find(page).state == "paid"
