"""`paydesk serve`: the web service, in one process or many."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Annotated, Any, cast

import structlog
import typer
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from paydesk.app import create
from paydesk.commands import loading
from paydesk.commands.connecting import checked_database, one_line_errors
from paydesk.commands.measuring import FOLDER, metrics_folder
from paydesk.commands.starting import (
    connection_limits,
    listen,
    raise_file_limit,
    serve_metrics,
    warn_of_missing_proxies,
    warn_of_open_secrets,
)
from paydesk.commands.supervising import GRACE
from paydesk.core.errors import SetupError
from paydesk.database.metrics import measure_pools
from paydesk.domain.operations.clocks import ClockWatch
from paydesk.logs import set_up_logs
from paydesk.loops.systemd import Notifier, service_manager
from paydesk.loops.watching import STILL, Watchdog, watched
from paydesk.required_keys import require_keys, require_live_key
from paydesk.settings import PREFIX, Settings, load_settings
from paydesk.web.connections.open import OpenConnections
from paydesk.web.connections.protocol import LimitedProtocol

log = structlog.get_logger()

END_GRACE = 5.0
"""Seconds that a process gets to end by itself once its event loop stands still."""

WATCHED = "paydesk.commands.serving:create_watched"


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
        warn_of_missing_proxies(settings)
        warn_of_open_secrets(settings)
        tls = tls_options(settings)
        listener = listen(settings.host, settings.port, "PORT")
        with _database_in_background(settings) as address:
            if not settings.database_url:
                # Our processes can't know where the embedded one is. Another's address, which has a
                # password, they read where we did: an environment is no place for it.
                os.environ[f"{PREFIX}DATABASE_URL"] = address
            log.info("serving", address=settings.address, workers=workers)
            if workers == 1:
                log.info("metrics", port=serve_metrics(settings))
                _serve_here(settings, listener, tls)
            else:
                _serve_by_many(settings, listener, workers, tls)


class EmbeddedUvicorn(uvicorn.Server):
    """A uvicorn server that leaves the signals to the process that it is part of.

    By itself it would end the process by the signal that stopped it, before anything around it is
    put away.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


class Workers(Multiprocess):
    """uvicorn's processes, whose parent has the listening socket, too."""

    def terminate_all(self) -> None:
        """Have all end, and take no connection any more that nobody would answer: who asks is
        refused, as by a single process, and doesn't take us for frozen while the last is answered.
        """
        super().terminate_all()
        for listener in self.sockets:
            listener.close()


def create_watched() -> FastAPI:
    """The application as a process of its own serves it: its event loop is watched.

    Raises: SetupError.
    """
    # One of many has not come by the command line.
    with loading.for_good():
        app = create()
    is_one_of_many = multiprocessing.parent_process() is not None
    serve_watched(
        app,
        "serve",
        notifier=None if is_one_of_many else service_manager(),
        # One of many is replaced when it ends; alone, whoever watches over the service decides.
        on_still=_end_this_process if is_one_of_many else None,
    )
    return app


def serve_watched(
    app: FastAPI, process: str, *, notifier: Notifier | None = None, on_still: Callable[[], None] | None = None
) -> None:
    """Have the event loop and the clock watched for as long as the application is up."""
    lifespan = app.router.lifespan_context

    @asynccontextmanager
    async def watched_lifespan(served: FastAPI) -> AsyncIterator[Any]:
        async with (
            lifespan(served) as state,
            watched(process, notifier=notifier, on_still=on_still or (lambda: None), on_look=measure_pools),
        ):
            served_state = state or {}
            clock, stop = ClockWatch(served_state["database"], process), asyncio.Event()
            watching = asyncio.create_task(clock.run(stop), name="clock")
            try:
                yield {**served_state, "clock": clock}
            finally:
                stop.set()
                await watching

    app.router.lifespan_context = watched_lifespan


def _end_this_process() -> None:
    """End a process whose event loop stands still, from a thread of it: gently, then for sure."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_GRACE)
    os.kill(os.getpid(), signal.SIGKILL)


def tls_options(settings: Settings) -> dict[str, str | None]:
    """What uvicorn serves TLS with, or nothing if no certificate is named.

    Raises: SetupError if the files are no certificate with its key.
    """
    certificate, key = settings.tls_certificate, settings.tls_private_key or None
    if not certificate and key is None:
        return {}
    try:
        # Without a password nobody is asked for one: a service has no terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise SetupError(
            f"{PREFIX}TLS_CERTIFICATE and {PREFIX}TLS_PRIVATE_KEY can't be used: {error}; name a certificate and its "
            "private key, without a password, both in PEM"
        ) from None
    return {"ssl_certfile": certificate, "ssl_keyfile": key}


def _serve_by_many(settings: Settings, listener: socket.socket, workers: int, tls: dict[str, str | None]) -> None:
    """Serve in so many processes until Ctrl-C or a SIGTERM; who dies is replaced."""
    with metrics_folder() as (folder, everybody, registry):
        os.environ[FOLDER] = str(folder)
        log.info("metrics", port=serve_metrics(settings, registry))
        config = uvicorn_config(WATCHED, settings, factory=True, workers=workers, **tls)
        watchdog = Watchdog("workers", everybody.heartbeats, notifier=service_manager())
        watchdog.start()
        try:
            Workers(config, sockets=[listener]).run()
        finally:
            watchdog.end()


def _serve_here(settings: Settings, listener: socket.socket, tls: dict[str, str | None]) -> None:
    """Serve in this process until Ctrl-C or a SIGTERM."""
    server = EmbeddedUvicorn(uvicorn_config(WATCHED, settings, factory=True, **tls))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    server.run(sockets=[listener])


def uvicorn_config(app: ASGIApp | str, settings: Settings, **options: Any) -> uvicorn.Config:
    """How uvicorn serves: within our limits of connections, with our own logs, our own proxy rules,
    no banner.
    """
    return uvicorn.Config(
        app,
        loop="uvloop",
        # Called for each connection; pickled for each process, which counts by itself.
        http=cast("type[asyncio.Protocol]", partial(LimitedProtocol, OpenConnections(connection_limits(settings)))),
        timeout_keep_alive=settings.idle_seconds,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        # One of many answers only once it has read its code. A busy machine takes its time for
        # that, and who is killed and started again all the while never gets there; one that stands
        # still later ends itself.
        timeout_worker_healthcheck=round(STILL),
        **options,
    )


@contextmanager
def _database_in_background(settings: Settings) -> Iterator[str]:
    """Watch over the database in a thread of its own while uvicorn has the main one;
    gives its address.

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
