"""`paydesk serve`: the web service, in one process or many."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Annotated, Any

import structlog
import typer
import uvicorn
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector
from uvicorn.supervisors import Multiprocess

from paydesk.commands.connecting import checked_database, one_line_errors
from paydesk.commands.starting import listen, raise_file_limit, serve_metrics
from paydesk.logs import set_up_logs
from paydesk.settings import PREFIX, Settings, load_settings, require_keys, require_live_key

log = structlog.get_logger()

GRACE = 30
"""Seconds that requests under way get to finish when a service stops."""


def serve(
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer requests.")] = 1,
) -> None:
    """Serve the checkout over HTTP; the background work is done by `paydesk work`."""
    with one_line_errors():
        raise_file_limit()
        settings = load_settings()
        require_keys(settings)
        require_live_key(settings)
        set_up_logs(settings)
        listener = listen(settings.host, settings.port, "PORT")
        with _database_in_background(settings) as address:
            os.environ[f"{PREFIX}DATABASE_URL"] = address
            config = uvicorn_config("paydesk.app:create", factory=True, workers=workers)
            with _metrics_of(settings, workers):
                log.info("serving", address=settings.address, workers=workers)
                if workers == 1:
                    _serve_here(config, listener)
                else:
                    Multiprocess(config, sockets=[listener]).run()


class EmbeddedUvicorn(uvicorn.Server):
    """A uvicorn server that leaves the signals to the process that it is part of.

    By itself it would end the process by the signal that stopped it, before anything around it is put away.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def _serve_here(config: uvicorn.Config, listener: socket.socket) -> None:
    """Serve in this process until Ctrl-C or a SIGTERM."""
    server = EmbeddedUvicorn(config)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    server.run(sockets=[listener])


def uvicorn_config(app: Any, **options: Any) -> uvicorn.Config:
    """How uvicorn serves: our own logs, our own proxy rules, no banner."""
    return uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        **options,
    )


@contextmanager
def _database_in_background(settings: Settings) -> Iterator[str]:
    """Watch over the database in a thread of its own while uvicorn has the main one; gives its address.

    Raises: SetupError if the schema is not current.
    """
    started: Future[str] = Future()
    ended = threading.Event()

    async def keep() -> None:
        try:
            async with checked_database(settings) as address:
                started.set_result(address)
                await asyncio.to_thread(ended.wait)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(keep()), name="database", daemon=True)
    thread.start()
    try:
        yield started.result()
    finally:
        ended.set()
        thread.join(timeout=GRACE)


@contextmanager
def _metrics_of(settings: Settings, workers: int) -> Iterator[None]:
    """Serve the metrics of this process, or of all its workers together."""
    if workers == 1:
        log.info("metrics", port=serve_metrics(settings.metrics_port))
        yield
        return
    with tempfile.TemporaryDirectory(prefix="paydesk-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]
        log.info("metrics", port=serve_metrics(settings.metrics_port, registry))
        yield
