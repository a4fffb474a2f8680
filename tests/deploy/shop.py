"""A shop's pingback receiver in a container: acknowledges what is genuine,
and writes a line for each order.

It is started in Paydesk's image, by the client library that is in there:
`shop.py PUBLIC_KEY PRIVATE_KEY`.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from paydesk_client import Gateway, InvalidPingback


def serve(gateway: Gateway) -> None:
    """Answer on port 8000 until the end."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                told = gateway.pingback().parse(body, self.headers)
            except InvalidPingback as refused:
                self._answer("NOK", {"refused": str(refused)})
            else:
                self._answer("ok", {"event": told["event"], "order": told["payment_order"]["merchant_order_id"]})

        def _answer(self, word: str, line: dict[str, str]) -> None:
            print(json.dumps(line), flush=True)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(word.encode())

        def log_message(self, *_: object) -> None:
            """The lines above are enough."""

    ThreadingHTTPServer(("", 8000), Receiver).serve_forever()


if __name__ == "__main__":
    serve(Gateway(sys.argv[1], sys.argv[2], base_url="https://localhost"))
