from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from structlog.testing import capture_logs
from tests.banks import HeardBank
from tests.shopfront import open_page, press_pay

from paydesk import app as application
from paydesk import equipment
from paydesk.adapters.acquirers.simulator import Bank, RemoteSimulator, SimulatedAcquirer
from paydesk.app import create_app
from paydesk.core.errors import SetupError
from paydesk.database import waiting
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.merchant import Merchant
from paydesk.equipment import payment_desk
from paydesk.settings import Settings

SignedForm = Callable[..., dict[str, Any]]

JSON = {"Accept": "application/json"}


async def test_the_service_says_that_it_lives_and_is_ready(web: httpx.AsyncClient) -> None:
    for path in ("/healthz", "/readyz"):
        answer = await web.get(path)
        assert (answer.status_code, answer.text) == (200, "ok")


@pytest.mark.parametrize(("serves", "status"), [(True, 200), (False, 503)])
async def test_a_process_whose_clock_alone_is_off_is_not_ready(database: Database, serves: bool, status: int) -> None:
    state = SimpleNamespace(database=database, clock=SimpleNamespace(serves_customers=serves))
    answer = await application._ready(SimpleNamespace(state=state))  # type: ignore[arg-type]
    assert answer.status_code == status


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Database]:
    """The pools that applications open from now on: the customers', then the account's."""
    opened: list[Database] = []

    @asynccontextmanager
    async def watched(url: str, **options: Any) -> AsyncIterator[Database]:
        async with connected(url, **options) as pool:
            opened.append(pool)
            yield pool

    monkeypatch.setattr(application, "connected", watched)
    return opened


def soon_given_up() -> AbstractContextManager[object]:
    """Whoever gets no connection within the block waits a moment; else a busy machine may take
    longer to make one.
    """
    return patch.object(waiting, "PATIENCE", 0.2)


@asynccontextmanager
async def used_up(pool: Database) -> AsyncIterator[None]:
    """Every connection of a pool is in use."""
    taken = [await pool.acquire() for _ in range(pool.get_max_size())]
    yield
    for one in taken:
        await pool.release(one)


async def test_customers_are_served_while_the_account_has_no_connection_left(
    open_web: Callable[..., Any], pools: list[Database], signed_form: SignedForm
) -> None:
    web = await open_web(console_connections=2)
    session = {"Cookie": "paydesk=" + "0" * 64}
    customers, account = pools
    async with used_up(account):
        with soon_given_up():
            refused = await web.get("/account", headers=session)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "3")
        assert (await web.post("/sandbox/payment/form", data=signed_form())).status_code == 303
    assert (await web.get("/account", headers=session)).status_code == 303
    async with used_up(customers):
        assert (await web.get("/account", headers=session)).status_code == 303


async def test_who_gets_no_connection_is_told_that_nothing_was_done(
    open_web: Callable[..., Any], pools: list[Database], signed_form: SignedForm, database: Database
) -> None:
    web, form = await open_web(database_connections=2), signed_form()
    with soon_given_up():
        async with used_up(pools[0]):
            for headers in (JSON, {}):
                refused = await web.post("/sandbox/payment/form", data=form, headers=headers)
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "3")
                assert "Traceback" not in refused.text
            told = (await web.post("/sandbox/payment/form", data=form, headers=JSON)).json()
            assert "nothing was done" in told["message"]
            assert (await web.get("/readyz")).status_code == 503
    asked = "select count(*) from checkout where merchant_order_id = $1"
    assert await database.fetchval(asked, form["merchant_order_id"]) == 0
    assert (await web.post("/sandbox/payment/form", data=form)).status_code == 303


async def test_nobody_is_shown_the_machinery(web: httpx.AsyncClient) -> None:
    for path in ("/redoc", "/openapi.json", "/metrics"):
        assert (await web.get(path)).status_code == 404
    assert "swagger" not in (await web.get("/docs", follow_redirects=True)).text.lower()


async def test_every_answer_has_a_request_id_that_the_log_knows_and_no_secret_of_its_path(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    with capture_logs() as logs:
        opened = await web.post("/payment/form", data=signed_form())
        path = opened.headers["location"]
        await web.get(f"{path}/status", headers={"Cookie": "a=b"})
        await web.get("/nowhere")
    lines = [line for line in logs if line["event"] == "answered"]
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("POST", "/payment/form", 303),
        ("GET", "/checkout/{token}/status", 200),
        ("GET", "none", 404),
    ]
    assert len(opened.headers["x-request-id"]) == 16
    assert path.rpartition("/")[2] not in repr(logs)


async def test_a_payment_under_way_is_finished_before_the_service_stops(
    settings: Settings, bank: Bank, signed_form: SignedForm, database: Database, merchant: Merchant
) -> None:
    app = create_app(settings)
    lifespan: Any = app.router.lifespan_context(app)
    state = dict(await lifespan.__aenter__())
    services = state["checkout"]
    held = HeardBank(services.desk.acquirers["simulator"], held=True)
    state["checkout"] = replace(services, desk=replace(services.desk, acquirers={"simulator": held}))

    async def with_state(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": dict(state)}, receive, send)

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=with_state, client=("192.0.2.1", 1)), base_url=settings.address
    ) as web:
        paying = asyncio.create_task(press_pay(web, await open_page(web, signed_form())))
        await held.asked.wait()
        paying.cancel()
    stopping = asyncio.create_task(lifespan.__aexit__(None, None, None))
    await asyncio.sleep(0.05)
    assert not stopping.done()
    held.let_go.set()
    await stopping
    assert await database.fetchval("select state from payment where merchant_id = $1", merchant.id) == "captured"


async def test_without_keys_nothing_starts(settings: Settings) -> None:
    for name in ("vault_keys", "secret_key"):
        empty = type(settings.vault_keys)("")
        with pytest.raises(SetupError, match=f"PAYDESK_{name.upper()} not set"):
            create_app(settings.model_copy(update={name: empty}))


async def test_the_bank_may_be_inside_or_at_an_address_of_its_own(settings: Settings) -> None:
    inside = equipment.test_acquirer(settings)
    assert isinstance(inside, SimulatedAcquirer)
    assert inside.challenge_origins == ("http://pay.test",)
    await inside.close()
    outside = equipment.test_acquirer(settings.model_copy(update={"simulator_url": "http://127.0.0.1:9"}))
    assert isinstance(outside, RemoteSimulator)
    await outside.close()


async def test_limits_come_from_the_settings(settings: Settings, database: Database, vault: Any, bank: Bank) -> None:
    changed = settings.model_copy(update={"attempts_per_checkout": 2, "declines_per_hour": 4})
    desk = payment_desk(changed, database, vault, SimulatedAcquirer(bank, base_url="http://pay.test"))
    assert (desk.limits.attempts_per_checkout, desk.limits.declines_per_hour) == (2, 4)


async def test_static_files_are_served_under_both_bases(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    opened = await web.post("/sandbox/payment/form", data=signed_form())
    page = await web.get(opened.headers["location"])
    sheet = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    assert sheet.startswith("/static/")
    for path in (sheet, f"/sandbox{sheet}"):
        assert (await web.get(path)).status_code == 200
