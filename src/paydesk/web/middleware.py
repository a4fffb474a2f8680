"""What surrounds every request: the sandbox base, a request id,
one log line and the request times.
"""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import structlog
from prometheus_client import Histogram
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paydesk.database.waiting import one_request
from paydesk.web.hosts import asked_host, host_of
from paydesk.web.visits import PASSED_ON, SANDBOX

REQUEST_SECONDS = Histogram(
    "paydesk_request_seconds",
    "Time to answer a request, by route and status",
    ["route", "status"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)

_CONVERTOR = re.compile(r":\w+\}")

log = structlog.get_logger()


class SandboxBase:
    """Serves every route below the sandbox base too, marked as test data in the scope.

    The sandbox may be a path below the live base, or a host of its own.
    """

    def __init__(self, app: ASGIApp, address: str, sandbox_address: str) -> None:
        """Take the public addresses of both bases."""
        live, sandbox = host_of(address), host_of(sandbox_address)
        self.app = app
        self._prefix = urlsplit(sandbox_address).path.rstrip("/")
        self._host = sandbox if sandbox != live else None
        # Proxies pass a name on with its port or without; the port counts only where it is all that
        # tells the two apart.
        self._by_port = sandbox.name == live.name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Mark and strip the sandbox's prefix, or let the request through as it is."""
        if scope["type"] == "http" and not scope.get(PASSED_ON) and self._matches(scope):
            path = scope["path"][len(self._prefix) :] or "/"
            scope.update({"path": path, "raw_path": path.encode(), SANDBOX: self._prefix})
        await self.app(scope, receive, send)

    def _matches(self, scope: Scope) -> bool:
        if self._host is not None:
            asked = asked_host(scope)
            if asked is None or asked.name != self._host.name or (self._by_port and asked.port != self._host.port):
                return False
        path = scope["path"]
        return bool(path.startswith(f"{self._prefix}/"))


class Observed:
    """Gives every request an id, and logs and measures how it was answered.

    The route's pattern is logged, not the path: a customer's link is a secret.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._routes: Mapping[int, Sequence[BaseRoute]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Not earlier: routes may be added until the first request.
        self._routes = self._routes or _by_endpoint(scope["app"].routes)
        request_id, status, began = f"{random.getrandbits(64):016x}", 500, time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            with one_request():
                await self.app(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - began
            route = _pattern(scope, self._routes)
            REQUEST_SECONDS.labels(route, str(status)).observe(seconds)
            if route not in ("/healthz", "/readyz"):
                log.info("answered", method=scope["method"], route=route, status=status, ms=round(seconds * 1000, 1))
            structlog.contextvars.unbind_contextvars("request_id")


def _by_endpoint(routes: Sequence[BaseRoute]) -> Mapping[int, Sequence[BaseRoute]]:
    """Which routes lead to an endpoint, by its identity, as not all can be hashed:
    most often one alone.
    """
    found: dict[int, list[BaseRoute]] = defaultdict(list)
    for route in routes:
        if isinstance(route, Mount | Route):
            found[id(route.app if isinstance(route, Mount) else route.endpoint)].append(route)
    return found


def _pattern(scope: Scope, routes: Mapping[int, Sequence[BaseRoute]]) -> str:
    """The pattern of the route that answered, "none" if there is none:
    what a stranger writes is no label.

    So there are never more series than routes times statuses, and a path, whose token is a secret,
    is in no log.
    """
    if "endpoint" not in scope:
        return "none"
    # Starlette's routers leave the route in the scope, also those that are mounted; FastAPI's only
    # for its own kind.
    route = scope.get("route") or _answering(routes.get(id(scope["endpoint"]), ()), scope)
    below = "" if isinstance(route, Mount) else scope.get("root_path", "")
    return below + _CONVERTOR.sub("}", getattr(route, "path", "none"))


def _answering(routes: Sequence[BaseRoute], scope: Scope) -> BaseRoute | None:
    """Which of an endpoint's routes the request came to."""
    if len(routes) == 1:
        return routes[0]
    return next((one for one in routes if one.matches(scope)[0] is not Match.NONE), None)
