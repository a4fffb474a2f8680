"""What every door needs to know of a request: who calls, from which base,
and what the body says.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_address

from starlette.requests import Request
from starlette.types import Scope

from paydesk.core.errors import Malformed, TooLarge

Network = IPv4Network | IPv6Network

SANDBOX = "paydesk.sandbox"
"""Key of the ASGI scope: the URL prefix of the sandbox base that the request came to,
absent on the live base."""

PASSED_ON = "paydesk.passed_on"
"""Key of the ASGI scope: present if the request says that another cell has passed it on, true if
that is proven.
"""

NOTHING_HERE = "paydesk.nothing_here"
"""Key of the ASGI scope: present if a door has answered what it answers to all, though what the
request is about is not in this cell."""

TAKEN_ELSEWHERE = "paydesk.taken_elsewhere"
"""Key of the ASGI scope: what a door wants called if it has refused a request and another cell,
which it was passed on to, has taken it."""

_HOP = re.compile(r"(?:\[(?P<bracketed>[0-9A-Fa-f:.]+)\]|(?P<plain>[0-9.]+))(?::[0-9]{1,5})?")

FORM_TYPE = "application/x-www-form-urlencoded"


def in_sandbox(request: Request) -> bool:
    """Whether the request came to the sandbox base, where everything is test data."""
    return SANDBOX in request.scope


def base_path(request: Request) -> str:
    """What stands before a route's path in this request's base: empty, or the sandbox's prefix."""
    return str(request.scope.get(SANDBOX, ""))


def wants_json(request: Request) -> bool:
    """Whether a program asks, rather than a browser;
    at the API's paths it always is one (interface.md §8.2).
    """
    asked = "application/json" in request.headers.get("accept", "").lower()
    path = str(request.scope["path"])
    return asked or path.startswith("/api/") or (path.startswith("/payment/") and path.endswith("/refund"))


async def read_body(request: Request, largest: int) -> bytes:
    """The body, read no further than `largest` bytes.

    Raises: TooLarge; ClientDisconnect, which no door looks at: nobody is there to read a page
        about it.
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest:
            raise TooLarge(f"the request is larger than {largest // 1024} KiB; send less")
        parts.append(part)
    return b"".join(parts)


async def read_form_body(request: Request, largest: int) -> bytes:
    """The body of a form-encoded request.

    Raises: Malformed for another content type, TooLarge.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != FORM_TYPE:
        raise Malformed(f'the content type is "{media_type[:60]}", expected {FORM_TYPE}')
    return await read_body(request, largest)


def client_address(scope: Scope, trusted: tuple[Network, ...]) -> str:
    """The caller's address; behind trusted proxies,
    the last one that they did not add themselves.
    """
    client = scope.get("client")
    address = str(client[0]) if client else ""
    if not trusted or not _within(address, trusted):
        return plain_address(address)
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    for hop in reversed(forwarded.decode("latin-1").split(",")):
        named = _without_port(hop.strip())
        if not _is_address(named):
            break
        address = named
        if not _within(address, trusted):
            break
    return plain_address(address)


def _without_port(hop: str) -> str:
    """The address of a hop, which proxies may write with a port
    (`192.0.2.1:4711`) or in brackets (`[2001:db8::1]`).
    """
    match = _HOP.fullmatch(hop)
    return (match["bracketed"] or match["plain"]) if match else hop


def _within(address: str, networks: tuple[Network, ...]) -> bool:
    if not _is_address(address):
        return False
    parsed = ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)
    return any((mapped or parsed) in network for network in networks)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def plain_address(address: str) -> str:
    """One spelling for one client: IPv6 counts by its /64, which one household has to itself."""
    if not _is_address(address):
        return address[:64]
    parsed = ip_address(address)
    mapped = getattr(parsed, "ipv4_mapped", None)
    if mapped is not None:
        return str(mapped)
    if parsed.version == 6:
        return str(ip_address(int(parsed) >> 64 << 64))
    return str(parsed)
