"""A server that the client calls and that answers everything alike."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    path: str
    headers: Message
    body: bytes


@contextmanager
def answering(
    status: int = 200, body: bytes = b'{"success": true, "data": {"id": 7}}', **headers: str
) -> Iterator[tuple[str, list[Asked]]]:
    """A server that answers every request alike; gives its address and what came."""
    seen: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(Asked(self.path, self.headers, self.rfile.read(int(self.headers["Content-Length"] or 0))))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()
