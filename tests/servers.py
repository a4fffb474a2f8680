"""A server on loopback that answers everything alike, and keeps what came."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from multidict import CIMultiDict


@dataclass(frozen=True, slots=True)
class Received:
    """A request that came."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def answering(
    status: int = 200, body: bytes = b'{"success": true, "data": {"id": 7}}', *, at: str = "", **headers: str
) -> Iterator[tuple[str, list[Received]]]:
    """A server that answers every request alike, those for other paths with 404 if it is `at` one;
    gives its address and what came.
    """
    seen: list[Received] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = self.rfile.read(int(self.headers["Content-Length"] or 0))
            seen.append(Received(self.path, CIMultiDict(self.headers.items()), told))
            self.send_response(status if at in ("", self.path) else 404)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()
