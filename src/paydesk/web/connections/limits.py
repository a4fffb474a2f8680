"""How slow, how large and how many: the limits of connections,
and what whoever exceeds one is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from prometheus_client import Counter, Gauge

Network = IPv4Network | IPv6Network

LONGEST_ADDRESS = 8 * 1024
"""Bytes of the path with its parameters."""

LARGEST_HEAD = 32 * 1024
"""Bytes of the request line and all header fields together."""

MOST_HEADERS = 100

MARK = b"x-paydesk-passed-on"
"""The header field with which a cell begins what it passes on (`web/cells/marks.py`)."""

MORE_MARKED_HEADERS, MORE_MARKED_BYTES = 4, 1024
"""By how much the head may be larger of what comes with that: the cell that it has come from took
it, and has added the mark and how long the body is. Whoever only says so gains no more than that.
"""

LARGEST_BODY = 8 * 1024 * 1024
"""Bytes of any body, which only files of an answer to a dispute may need; each other page has a
limit of its own far below, and says so in its own words."""

MOST_PIPELINED = 8
"""Requests that may wait on one connection behind the one that is being answered."""

LINGER_SECONDS = 2.0
"""How long a refused client gets to read why, before the connection ends."""

MOST_DISCARDED = 1024 * 1024
"""Bytes that a refused client may go on sending meanwhile:
who is cut off amid sending never sees the answer."""

PROXY_IDLE_SECONDS = 75
"""How long a proxy's connection is kept open for another request, at least: longer than proxies
keep one, which would send a request onto one that just ends, and not know what became of it."""

ENDING_SECONDS = 1.0
"""For how long a service that ends still answers what comes on an idle connection: a proxy may have
sent it before it saw the end."""

REFUSED = Counter("paydesk_connections_refused_total", "Connections that were ended for what they did or were", ["why"])
OPEN = Gauge("paydesk_connections_open", "Connections of clients that are open now", multiprocess_mode="livesum")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one process; no more connections than `per_address` come from one client,
    IPv6 by /64.

    `unlimited` are the networks for which only the sum counts: proxies, and the machine itself.
    """

    head_seconds: float
    body_seconds: float
    unread_seconds: float
    in_all: int
    per_address: int
    unlimited: tuple[Network, ...] = ()


@dataclass(frozen=True, slots=True)
class ConnectionRefusal:
    """What a client that exceeds a limit is answered; `why` counts it in the metrics."""

    why: str
    status: int
    words: str
    retry_after: int | None = None

    def answer(self, default_headers: list[tuple[bytes, bytes]]) -> bytes:
        """The whole answer, as it goes over the wire."""
        body = f"{self.words}\n".encode()
        headers = [
            *default_headers,
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (self.status, _PHRASES[self.status], lines, body)


_PHRASES = {
    400: b"Bad Request",
    408: b"Request Timeout",
    413: b"Content Too Large",
    414: b"URI Too Long",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
}

MALFORMED = ConnectionRefusal("malformed", 400, "this is not HTTP as it is defined; look at what your client sends")
SLOW_HEAD = ConnectionRefusal("slow_head", 408, "the head of the request did not arrive in time; send it at once")
SLOW_BODY = ConnectionRefusal(
    "slow_body", 408, "the body of the request did not arrive in time; nothing was done, send it again"
)
LONG_ADDRESS = ConnectionRefusal(
    "long_address", 414, f"the address is longer than {LONGEST_ADDRESS // 1024} KiB; send a body"
)
LARGE_HEAD = ConnectionRefusal(
    "large_head",
    431,
    f"the header fields are more than {MOST_HEADERS}, or larger than {LARGEST_HEAD // 1024} KiB; delete this site's "
    "cookies, or send fewer",
)
LARGE_BODY = ConnectionRefusal(
    "large_body", 413, f"the body is larger than {LARGEST_BODY // 1024} KiB; nothing was done"
)
PIPELINED = ConnectionRefusal(
    "pipelined",
    429,
    f"more than {MOST_PIPELINED} requests wait on this connection; wait for their answers, or open another",
    1,
)
ADDRESS_FULL = ConnectionRefusal(
    "address_full", 429, "too many connections are open from your address; close some and try again", 5
)
ALL_FULL = ConnectionRefusal(
    "all_full", 503, "too many connections are open; nothing was done, try again in a moment", 5
)

SLOW_READER = "slow_reader"
"""An answer that its client does not fetch; it gets no other."""

DISPLACED = "displaced"
"""A connection that asks nothing, or takes its time over it, ended for a new one
since no more may be open."""
