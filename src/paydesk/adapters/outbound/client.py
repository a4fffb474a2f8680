"""The one HTTP client for URLs that merchants choose.

The address is checked when a connection is made, on the very address that the socket is about to
connect to: so it does not matter how the name came to it (DNS rebinding, odd spellings, literal
addresses), and a connection that is used again was checked when it was made. Any port may be used:
merchants listen where they like.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from paydesk import __version__
from paydesk.adapters.outbound.addresses import AddressNotAllowed, Network, refusal
from paydesk.adapters.outbound.name_lookups import NameResolver
from paydesk.adapters.outbound.wording import in_words

_IDLE_SECONDS = 2.0
"""How long an unused connection is kept: less than servers allow (5 s is common),
so that they seldom close first."""

_AddrInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Answer:
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
    sent: Mapping[str, str] = field(repr=False)


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


@dataclass(slots=True)
class _Progress:
    """How far one call has come; kept outside the call, so that an error does not lose it."""

    status: int | None = None
    body: bytearray = field(default_factory=bytearray)
    complete: bool = False
    connected_anew: bool = False


_current: ContextVar[_Progress] = ContextVar("progress of the call that a connection is made for")


class OutboundClient:
    """Posts to merchants' URLs; redirects are not followed, proxies of the environment
    and cookies not used.

    Args: allow are networks that may be reached besides the public internet, or if that is not
    `public`, instead of it; timeout (seconds) is for a whole call, name look-up to last byte;
    max_answer is how many bytes of an answer are read; tls replaces the system's certificates;
    resolver replaces the system's look-up of names.
    """

    def __init__(
        self,
        allow: Sequence[Network] = (),
        timeout: float = 15.0,
        max_answer: int = 4096,
        *,
        public: bool = True,
        resolver: AbstractResolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._allow = tuple(allow)
        self._public = public
        self.timeout = timeout
        self._whole = aiohttp.ClientTimeout(total=timeout)
        self._max_answer = max_answer
        self._resolver = resolver
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post `body` and read the start of the answer. Never raises for what the other side does;
        Answer says it.
        """
        started = time.monotonic()
        try:
            endpoint = parse_endpoint(url)
        except ValueError as error:
            return Answer(None, b"", False, str(error), 0.0, dict(headers))
        sent = _all_headers(endpoint, body, headers)
        progress, problem = await self._try_twice(endpoint, body, sent, started)
        duration = time.monotonic() - started
        return Answer(progress.status, bytes(progress.body), progress.complete, problem, duration, sent)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
        if self._resolver is not None:
            await self._resolver.close()

    async def _try_twice(
        self, endpoint: URL, body: bytes, sent: Mapping[str, str], started: float
    ) -> tuple[_Progress, str | None]:
        """Post; once more if the server closed a kept connection just as it was used again
        (RFC 9112, 9.3.1).
        """
        progress, error = await self._try(endpoint, body, sent, self._whole)
        left = started + self.timeout - time.monotonic()
        if _is_stale(progress, error) and left > 0:
            progress, error = await self._try(endpoint, body, sent, aiohttp.ClientTimeout(total=left))
        return progress, in_words(error, self.timeout) if error else None

    async def _try(
        self, endpoint: URL, body: bytes, sent: Mapping[str, str], timeout: aiohttp.ClientTimeout
    ) -> tuple[_Progress, Exception | None]:
        """Post once; returns how far it came and what ended it early."""
        progress = _Progress()
        _current.set(progress)
        try:
            await self._exchange(endpoint, body, sent, timeout, progress)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return progress, error
        return progress, None

    async def _exchange(
        self,
        endpoint: URL,
        body: bytes,
        sent: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
        progress: _Progress,
    ) -> None:
        """Make one request and read no more of its answer than asked for;
        the rest of it costs the connection.
        """
        session = self._session or self._open()
        async with session.post(
            endpoint,
            data=body,
            headers=sent,
            allow_redirects=False,
            timeout=timeout,
        ) as response:
            progress.status = response.status
            content = response.content
            while len(progress.body) <= self._max_answer:
                progress.body += await content.read(self._max_answer + 1 - len(progress.body))
                if content.at_eof():
                    progress.complete = len(progress.body) <= self._max_answer
                    break
            else:
                response.close()
            del progress.body[self._max_answer :]

    def _open(self) -> aiohttp.ClientSession:
        """Start the session, which needs a running loop."""
        self._resolver = self._resolver or NameResolver()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=self._resolver,
                socket_factory=self._checked_socket,
                ssl=self._tls or True,
                limit=0,
                keepalive_timeout=_IDLE_SECONDS,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            read_bufsize=2 * self._max_answer,
        )
        return self._session

    def _checked_socket(self, target: _AddrInfo) -> socket.socket:
        """A socket for exactly this address, which is what it is connected to next.

        Raises: AddressNotAllowed.
        """
        _current.get().connected_anew = True
        family, kind, protocol, _, address = target
        reason = refusal(address[0], self._allow, public=self._public)
        if reason is not None:
            raise AddressNotAllowed(f"address not allowed: {address[0]} ({reason})")
        return socket.socket(family, kind, protocol)


def _is_stale(progress: _Progress, error: Exception | None) -> bool:
    """Whether a call failed because the connection that it used again was not there any more."""
    is_broken = isinstance(error, (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError))
    is_connecting = isinstance(error, aiohttp.ClientConnectorError)
    return is_broken and not is_connecting and not progress.connected_anew and progress.status is None


def _all_headers(endpoint: URL, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
    """All that the request will carry, so that it can be recorded as it was sent;
    nothing is left to the library.
    """
    return {
        "Host": endpoint.host_port_subcomponent or "",
        "User-Agent": f"Paydesk/{__version__}",
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        **headers,
        "Content-Length": str(len(body)),
    }
