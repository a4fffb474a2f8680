"""Making a connection: the name looked up, each address checked, that very address connected to.

The address is checked when the socket for it is made: so it does not matter how the name came to it
(DNS rebinding, odd spellings, literal addresses), and a connection that is used again was checked
when it was made.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from functools import cache
from ipaddress import ip_address
from typing import Any

import aiohappyeyeballs
from yarl import URL

from paydesk.adapters.outbound.addresses import AddressNotAllowed, Network, refusal
from paydesk.adapters.outbound.connection import Connection
from paydesk.adapters.outbound.name_lookups import KnownNames, Resolver
from paydesk.adapters.outbound.problems import LookUpFailed, NotConnected

_NEXT_ADDRESS_SECONDS = 0.25
"""After so long the next of a name's addresses is tried beside the last one (RFC 8305)."""

_GOODBYE_SECONDS = 2.0
"""How long a server may take to say goodbye on TLS."""

_AddrInfo = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]


class _BeforeTls(asyncio.Protocol):
    """Hears whether the server speaks first, which none does that speaks TLS."""

    def __init__(self) -> None:
        self.spoke = False

    def data_received(self, data: bytes) -> None:
        """Note it."""
        self.spoke = True


class Connector:
    """Connects to what may be reached.

    Args: allow are networks besides the public internet, or if that is not `public`, instead of it;
    tls replaces the system's certificates; max_answer is what a connection reads of a body.
    """

    def __init__(
        self,
        allow: Sequence[Network],
        *,
        public: bool,
        resolver: Resolver | None,
        tls: ssl.SSLContext | None,
        max_answer: int,
    ) -> None:
        self._allow = tuple(allow)
        self._public = public
        self._names = KnownNames(resolver)
        self._tls = tls
        self._max_answer = max_answer

    async def connect(self, endpoint: URL) -> Connection:
        """A connection to one of the endpoint's addresses.

        Raises: LookUpFailed, NotConnected.
        """
        host = _without_dots(endpoint.raw_host or "")
        left = [_address_info(each, endpoint.port or 0) for each in await self._addresses(host, endpoint.port or 0)]
        problem: OSError = OSError("it has no address")
        while left:
            try:
                return await self._connect(left, host.rstrip("."), is_tls=endpoint.scheme == "https")
            except OSError as error:
                if isinstance(error, TimeoutError) and error.errno is None:
                    raise
                problem = error
            aiohappyeyeballs.pop_addr_infos_interleave(left, 1)
        raise NotConnected(problem)

    async def close(self) -> None:
        """Look up no more names."""
        await self._names.close()

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """Where a host is. Raises: LookUpFailed."""
        try:
            ip_address(host)
        except ValueError:
            pass
        else:
            return [host]
        try:
            return await self._names.resolve(host, port)
        except OSError as error:
            if isinstance(error, TimeoutError) and error.errno is None:
                raise
            raise LookUpFailed(host, error) from error

    async def _connect(self, addresses: list[_AddrInfo], name: str, *, is_tls: bool) -> Connection:
        """Connect to the first of the addresses that answers, as `name`. Raises: OSError."""
        connected = await aiohappyeyeballs.start_connection(
            addresses,
            happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS,
            interleave=1,
            socket_factory=self._checked_socket,
        )
        connection = Connection(connected, self._max_answer, is_tls=is_tls)
        loop = asyncio.get_running_loop()
        if not is_tls:
            await loop.create_connection(lambda: connection, sock=connected)
            return connection
        # TLS is begun by a step of its own, for only the wire below it says what is not sent yet.
        wire, before = await loop.create_connection(_BeforeTls, sock=connected)
        if before.spoke:
            wire.abort()
            raise ssl.SSLError(1, "the server spoke first")
        if wire.is_closing():
            raise ConnectionResetError
        context = self._tls or _system_certificates()
        secure = await loop.start_tls(
            wire, connection, context, server_hostname=name, ssl_shutdown_timeout=_GOODBYE_SECONDS
        )
        assert secure is not None
        connection.secured(secure, wire)
        try:
            # Only now does uvloop hand over what came with the handshake's end, unasked for.
            await asyncio.sleep(0)
        except BaseException:
            connection.abort()
            raise
        return connection

    def _checked_socket(self, target: _AddrInfo) -> socket.socket:
        """A socket for exactly this address, which is what it is connected to next.

        Raises: AddressNotAllowed.
        """
        family, kind, protocol, _, address = target
        reason = refusal(address[0], self._allow, public=self._public)
        if reason is not None:
            raise AddressNotAllowed(f"address not allowed: {address[0]} ({reason})")
        return socket.socket(family, kind, protocol)


def _without_dots(host: str) -> str:
    """The host with one trailing dot at most."""
    return host.rstrip(".") + "." if host.endswith("..") else host


def _address_info(address: str, port: int) -> _AddrInfo:
    """The address as sockets have it."""
    if ":" in address:
        return (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port, 0, 0))
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))


@cache
def _system_certificates() -> ssl.SSLContext:
    """Who the system trusts; certificate and name are verified."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
