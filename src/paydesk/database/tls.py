"""Who may be at the other end of a database connection:
nobody but the named server, unless it is this machine.
"""

from __future__ import annotations

import ssl
from ipaddress import ip_address
from urllib.parse import parse_qs, unquote, urlsplit

from paydesk.core.errors import SetupError

_VERIFIED = "verify-full"


def database_tls(url: str) -> ssl.SSLContext | None:
    """How a connection to a postgresql:// address is encrypted;
    None leaves it to what the address itself says.

    Over loopback and Unix sockets nobody listens. Elsewhere the server shows a certificate for its
    name from an authority that this machine trusts, or, with
    `sslmode=verify-full&sslrootcert=FILE`, from the operator's own.

    Raises: SetupError for a mode that takes any server for the right one.
    """
    asked = parse_qs(urlsplit(url).query)
    hosts = _hosts(url, asked)
    if all(_is_here(host) for host in hosts):
        return None
    mode = asked.get("sslmode", [""])[-1]
    if mode == _VERIFIED:
        return None
    if mode:
        raise SetupError(
            f"PAYDESK_DATABASE_URL says sslmode={mode}, which lets anybody on the way read and change what is sent; "
            f"leave it out, or write sslmode={_VERIFIED}&sslrootcert=FILE for a certificate of your own authority"
        )
    return ssl.create_default_context()


def _hosts(url: str, asked: dict[str, list[str]]) -> list[str]:
    """The servers that an address names, in its authority or its query; none is the Unix socket."""
    named = asked.get("host", [""])[-1] or unquote(urlsplit(url).netloc.rpartition("@")[2])
    return [_without_port(host.strip()) for host in named.split(",") if host.strip()]


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host


def _is_here(host: str) -> bool:
    if not host or host.startswith(("/", "@")) or host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
