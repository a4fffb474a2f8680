"""The one HTTP client for URLs that merchants choose: HTTP/1.1, one request after the other on a
connection, redirects not followed, proxies of the environment and cookies not used.

Any port may be used: merchants listen where they like. Which addresses are connected to says
connecting.py, what counts as an answer connection.py.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache

import msgspec
from yarl import URL

from paydesk import __version__
from paydesk.adapters.outbound.addresses import Network
from paydesk.adapters.outbound.connecting import Connector
from paydesk.adapters.outbound.connection import Connection, Heard
from paydesk.adapters.outbound.kept import Bounds, KeptConnections, Place
from paydesk.adapters.outbound.name_lookups import Resolver
from paydesk.adapters.outbound.problems import Broke, CallFailed, Unanswered
from paydesk.adapters.outbound.wording import in_words


class Answer(msgspec.Struct, frozen=True):
    """What came of one call.

    `status` is None if no answer came; `body_start` holds at most the client's `max_answer` bytes,
    `complete` says that this is all of it; `error` is one line in plain words, None if there was
    none; `duration` is in seconds; `sent` are the request's headers, all of them.
    """

    status: int | None
    body_start: bytes
    complete: bool
    error: str | None
    duration: float
    sent: Mapping[str, str]

    def __repr__(self) -> str:
        """All but the headers, which may carry a key."""
        return f"Answer({self.status}, {self.body_start!r}, {self.complete}, {self.error!r}, {self.duration})"


class _Target(msgspec.Struct, frozen=True):
    """What all requests to one URL have in common: where it is, what is asked for there,
    and the first headers.
    """

    endpoint: URL
    scheme: str
    host: str
    port: int
    path: str
    headers: Mapping[str, str]


@lru_cache(maxsize=4096)
def parse_endpoint(url: str) -> URL:
    """Read a URL that may be called: absolute, http or https, without user name and password.

    Raises: ValueError, saying what is wrong with it.
    """
    try:
        parsed = URL(url)
        port = parsed.port
    except ValueError as error:
        raise ValueError(f"not a usable URL: {error}") from error
    if parsed.scheme not in ("http", "https"):
        raise ValueError("not a usable URL: it must begin with http:// or https://")
    if not parsed.raw_host or not port:
        raise ValueError("not a usable URL: it has no host")
    if parsed.raw_user is not None or parsed.raw_password is not None:
        raise ValueError("not a usable URL: a user name or password in it is not sent; take it out")
    return parsed.with_fragment(None)


class OutboundClient:
    """Posts to merchants' URLs, and gets from them.

    Args: allow are networks that may be reached besides the public internet, or if that is not
    `public`, instead of it; timeout (seconds) is for a whole call, name look-up to last byte;
    max_answer is how many bytes of an answer are read; keep bounds the connections kept for another
    request; tls replaces the system's certificates; resolver replaces the system's look-up of
    names.
    """

    def __init__(
        self,
        allow: Sequence[Network] = (),
        timeout: float = 15.0,
        max_answer: int = 4096,
        *,
        public: bool = True,
        keep: Bounds | None = None,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.timeout = timeout
        self._connector = Connector(allow, public=public, resolver=resolver, tls=tls, max_answer=max_answer)
        self._kept = KeptConnections(keep or Bounds())
        self._is_closed = False

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, whose: Hashable = None) -> Answer:
        """Post `body` and read the start of the answer. Never raises for what the other side does;
        Answer says it.

        A connection is used again for the same `whose` (a merchant in one mode) alone; for nobody's
        call it is not kept.
        """
        return await self._answer("POST", url, body, headers, whose)

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Get the start of what is at `url`, over a connection that is not kept; else as `post`."""
        return await self._answer("GET", url, b"", headers or {}, None)

    async def _answer(self, method: str, url: str, body: bytes, headers: Mapping[str, str], whose: Hashable) -> Answer:
        started = time.monotonic()
        heard, problem, sent = Heard(), None, headers
        try:
            target = _target(url)
            sent = _all_headers(target, body if method == "POST" else None, headers)
            request = _request(method, target, sent, body)
        except ValueError as error:
            words = str(error) if str(error).startswith("not a usable URL") else in_words(error, self.timeout)
            return Answer(None, b"", False, words, 0.0, dict(sent))
        try:
            await self._call(target, request, heard, whose, started + self.timeout)
        except (CallFailed, OSError, ValueError) as error:
            problem = in_words(error, self.timeout)
        duration = time.monotonic() - started
        return Answer(heard.status, bytes(heard.body), heard.complete and not problem, problem, duration, sent)

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        self._kept.close()
        await self._connector.close()

    async def _call(self, target: _Target, request: bytes, heard: Heard, whose: Hashable, until: float) -> None:
        """Make one request; once more if the server closed a kept connection just as it was used
        again (RFC 9112, 9.3.1). It ends at `until`, in monotonic seconds.

        The server may have read the first one all the same: what is posted here may come twice
        (a pingback comes at least once, and shops take it so).
        Raises: CallFailed, OSError, TimeoutError.
        """
        place = (whose, target.scheme, target.host, target.port)
        connection = self._kept.take(place) if whose is not None else None
        if connection is not None:
            try:
                await connection.exchange(request, heard, until)
            except (Broke, Unanswered):
                if heard.began:
                    raise
                connection = None
        if connection is None:
            async with asyncio.timeout(until - time.monotonic()):
                connection = await self._connector.connect(target.endpoint)
            await connection.exchange(request, heard, until)
        if connection.is_reusable:
            self._keep(place, connection)

    def _keep(self, place: Place, connection: Connection) -> None:
        """Have a connection wait for the next request, if there may be one."""
        if place[0] is None or self._is_closed:
            connection.close()
        else:
            self._kept.keep(place, connection)


@lru_cache(maxsize=4096)
def _target(url: str) -> _Target:
    """What requests to a URL are made of. Raises: ValueError, as `parse_endpoint`."""
    endpoint = parse_endpoint(url)
    headers = {
        "Host": endpoint.host_port_subcomponent or "",
        "User-Agent": f"Paydesk/{__version__}",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
    }
    host, port = endpoint.raw_host or "", endpoint.port or 0
    return _Target(endpoint, endpoint.scheme, host, port, endpoint.raw_path_qs, headers)


def _all_headers(target: _Target, body: bytes | None, headers: Mapping[str, str]) -> dict[str, str]:
    """All that the request will carry, so that it can be recorded as it was sent;
    nothing is added behind it.
    """
    if body is None:
        return {**target.headers, **headers}
    return {**target.headers, **headers, "Content-Length": str(len(body))}


def _request(method: str, target: _Target, headers: Mapping[str, str], body: bytes) -> bytes:
    """The request, byte for byte. Raises: ValueError if it could be read as another one."""
    head = "\r\n".join([f"{method} {target.path} HTTP/1.1", *map(": ".join, headers.items())])
    if head.count("\r") != len(headers) or head.count("\n") != len(headers) or "\0" in head:
        raise ValueError("a header contains a line break")
    return f"{head}\r\n\r\n".encode() + body
