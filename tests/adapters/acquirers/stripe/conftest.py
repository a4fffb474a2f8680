from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.adapters.acquirers.stripe.stub import (
    NOON,
    Stub,
)

from paydesk.adapters.acquirers.stripe import StripeAcquirer


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    stub = Stub()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", stub.respond)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    stub.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    stub.will("POST", "/v1/payment_methods", {"id": "pm_1", "object": "payment_method"})
    stub.will("POST", "/v1/customers", {"id": "cus_1", "object": "customer"})
    yield stub
    await runner.cleanup()


@pytest.fixture
async def acquirer(stub: Stub) -> AsyncIterator[StripeAcquirer]:
    opened = StripeAcquirer("sk_test_stub", api_base=stub.base_url, timeout=60, now=lambda: NOON)
    yield opened
    await opened.close()
