"""The names that this service answers to: a page under another one's name would lend it our log-ins
and links.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from paydesk.core.errors import SetupError
from paydesk.web.json_errors import problem_json
from paydesk.web.visits import PASSED_ON, wants_json

PROBES = ("/healthz", "/readyz")
"""Routes for whatever watches over the service, which calls it by the address of its machine
or container."""

UNKNOWN = "this service does not answer to that host name; call it by its public address"

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?)\.?(?::([0-9]{0,5}))?")
_USUAL_PORTS = (80, 443)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Host:
    """A host's name in its one spelling, and the port unless it is a usual one:
    clients leave those out, or don't.
    """

    name: str
    port: int | None = None

    @property
    def is_loopback(self) -> bool:
        """Whether it names the machine itself."""
        if self.name == "localhost" or self.name.endswith(".localhost"):
            return True
        try:
            return ip_address(self.name.strip("[]")).is_loopback
        except ValueError:
            return False


def parse_host(text: str) -> Host | None:
    """Read `Host` as clients write it: any case, a trailing dot, a port or none;
    None if it is no host at all.
    """
    match = _HOST.fullmatch(text.strip())
    if match is None:
        return None
    name = match[1].lower()
    if name.startswith("["):
        try:
            name = f"[{ip_address(name[1:-1])}]"
        except ValueError:
            return None
    port = int(match[2]) if match[2] else None
    return Host(name, None if port in _USUAL_PORTS else port)


def host_of(url: str) -> Host:
    """The host of an address of ours. Raises: SetupError if it has none."""
    found = parse_host(urlsplit(url).netloc.rpartition("@")[2])
    if found is None:
        raise SetupError(f"{url} has no usable host name; write it in ASCII, like https://pay.example")
    return found


def asked_host(scope: Scope) -> Host | None:
    """The host that a request is for; None if it names none, several, or something that is none."""
    given = [value for name, value in scope["headers"] if name == b"host"]
    return parse_host(given[0].decode("latin-1")) if len(given) == 1 else None


class KnownHosts:
    """Answers 421 to whoever calls the service by a name that is not its own."""

    def __init__(self, app: ASGIApp, addresses: Iterable[str], others: Iterable[str]) -> None:
        """Take the public addresses, and names that it answers to besides."""
        self.app = app
        self._names = {host_of(address).name for address in addresses}
        self._names |= {named.name for named in map(parse_host, others) if named is not None}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through what is for this service: its own names, loopback, probes by whatever name,
        and what another cell let through.
        """
        if scope["type"] == "http" and scope["path"] not in PROBES and not scope.get(PASSED_ON):
            host = asked_host(scope)
            if host is None or not (host.name in self._names or host.is_loopback):
                log.info("refused a host name", host=host.name[:100] if host else None)
                await self._refusal(Request(scope))(scope, receive, send)
                return
        await self.app(scope, receive, send)

    @staticmethod
    def _refusal(request: Request) -> Response:
        if wants_json(request):
            return problem_json(421, UNKNOWN)
        return PlainTextResponse(f"{UNKNOWN}\n", 421, headers={"Cache-Control": "no-store"})
