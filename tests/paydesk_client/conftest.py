"""A service to call."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn

from paydesk.app import create_app
from paydesk.domain.payments.desk import Desk
from paydesk.settings import Settings


@pytest.fixture(name="service")
async def _service(settings: Settings, desk: Desk) -> AsyncIterator[str]:
    """The real application on a port of its own; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app = create_app(settings.model_copy(update={"base_url": address}))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, server_header=False))
        running = asyncio.create_task(server.serve([listener]))
        yield address
        server.should_exit = True
        await running
