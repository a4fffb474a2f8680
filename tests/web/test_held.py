"""What people and programs are told while nothing that moves money is begun,
in the form of their door.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from prometheus_client import REGISTRY
from tests.conftest import migrated_database
from tests.lengths import long
from tests.shopfront import open_page, press_pay
from tests.web.checkout.test_paying import SHOP, VISA, leads_to, text_of

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.operations.history import hold, queries, read
from paydesk.domain.payments import hold_gate as gate


@pytest.fixture(scope="module")
async def database_url(server_url: str) -> AsyncIterator[str]:
    """A database that these tests have to themselves: what they hold is held for nobody else."""
    async with migrated_database(server_url) as url:
        yield url


@pytest.fixture(scope="module")
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool


@pytest.fixture
async def paid(web: httpx.AsyncClient, signed_form: Callable[..., dict[str, Any]], database: Database) -> int:
    """The id of an order that was paid before."""
    assert leads_to(await press_pay(web, await open_page(web, signed_form()), VISA)).startswith(SHOP)
    return int(await database.fetchval("select max(id) from payment"))


@pytest.fixture
async def unpaid_page(web: httpx.AsyncClient, signed_form: Callable[..., dict[str, Any]]) -> str:
    """The page of an order that is not paid yet."""
    return await open_page(web, signed_form())


@pytest.fixture
async def held(database: Database, web: httpx.AsyncClient, paid: int, unpaid_page: str) -> AsyncIterator[None]:
    """Everything is held, and the service knows it."""
    epoch = (await read(database)).beat.epoch
    await hold(database, epoch=epoch, above=epoch, because="the database was restored", since=utc_now())
    async with asyncio.timeout(60):
        while not REGISTRY.get_sample_value("paydesk_held"):  # noqa: ASYNC110 (a row sends no event)
            await asyncio.sleep(0.1)
    yield
    await queries.lift(database, accepted_until=utc_now(), epoch=None, place=None)


async def test_who_pays_is_asked_to_come_back(
    web: httpx.AsyncClient, unpaid_page: str, held: None, charges: Callable[[], list[Standing]]
) -> None:
    page = await web.get(unpaid_page)
    assert page.status_code == 200, "looking is no harm"
    refused = await press_pay(web, unpaid_page, VISA)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, str(gate.LATER))
    assert "The payment service is taking a short break" in text_of(refused)
    told = await press_pay(web, unpaid_page, VISA, accept="application/json")
    assert (told.status_code, told.headers["retry-after"]) == (503, str(gate.LATER))
    assert "Nothing was begun and nobody charged" in json.loads(told.content)["message"]
    assert len(charges()) == 1


async def test_a_program_is_told_why_and_when_to_try_again(
    web: httpx.AsyncClient, merchant: Merchant, paid: int, held: None, database: Database
) -> None:
    headers = {"X-ApiKey": merchant.private_key, "Idempotency-Key": "refund-1"}
    answer = await web.post(f"/payment/{paid}/refund", json={"amount": "4.00"}, headers=headers)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, str(gate.LATER)), answer.text
    body = answer.json()
    assert (body["success"], body["code"]) == (False, 503)
    assert "payments are held: the database was restored" in body["message"]
    assert await database.fetchval("select count(*) from movement") == 0


async def test_the_service_stays_in_the_load_balancer(web: httpx.AsyncClient, held: None) -> None:
    assert (await web.get("/readyz")).text == "ok"


@long
async def test_once_it_is_lifted_the_same_page_pays(
    web: httpx.AsyncClient, unpaid_page: str, held: None, database: Database
) -> None:
    await queries.lift(database, accepted_until=utc_now(), epoch=None, place=None)
    async with asyncio.timeout(60):
        while (answer := await press_pay(web, unpaid_page, VISA)).status_code == 503:  # noqa: ASYNC110 (a row sends no event)
            await asyncio.sleep(0.1)
    assert leads_to(answer).startswith(SHOP)
