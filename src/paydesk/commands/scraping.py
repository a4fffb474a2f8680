"""The server that Prometheus asks for metrics: few connections at a time, each for a short time,
whoever comes.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import structlog
from prometheus_client import CollectorRegistry, make_wsgi_app

MOST = 32
"""Connections at a time; one more ends the oldest, since a scrape takes milliseconds."""

PER_ADDRESS = 8
"""Connections at a time from one address; one more is closed."""

SECONDS = 20.0
"""How long a connection lives: the question, its answer, and the reading of it."""

log = structlog.get_logger()


class _Handler(WSGIRequestHandler):
    timeout = SECONDS

    def log_message(self, *_: object) -> None:
        """Log nothing: Prometheus asks every few seconds."""


class ScrapeServer(ThreadingMixIn, WSGIServer):
    """Serves /metrics within its limits, a thread for each connection."""

    daemon_threads = True
    request_queue_size = 128
    seconds = SECONDS

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        """Listen at once. Raises: OSError if the address is in use or none of this machine's."""
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._open: dict[socket.socket, str] = {}
        self._looking = threading.Lock()
        super().__init__((host, port), _Handler)
        self.set_app(make_wsgi_app(registry))

    def start(self) -> None:
        """Answer in threads of its own from now on."""
        threading.Thread(target=self.serve_forever, name="metrics", daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection on, unless its address has as many as it may."""
        with self._looking:
            is_one_too_many = list(self._open.values()).count(client_address[0]) >= PER_ADDRESS
            oldest = next(iter(self._open)) if len(self._open) >= MOST and not is_one_too_many else None
            if not is_one_too_many:
                self._open[request] = client_address[0]
        if oldest is not None:
            _end(oldest)
        if is_one_too_many:
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection, for so many seconds at most."""
        deadline = threading.Timer(self.seconds, _end, [request])
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._forget(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that broke off is nobody's fault, and no reason for a traceback."""
        log.debug("a connection for metrics broke off", address=client_address[0])

    def _forget(self, request: socket.socket) -> None:
        with self._looking:
            self._open.pop(request, None)


def _end(request: socket.socket) -> None:
    """End a connection that another thread waits for."""
    with suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
