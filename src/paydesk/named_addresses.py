"""Addresses and networks as settings name them; what is wrong is said with the setting's name."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from paydesk.core.errors import SetupError

Network = IPv4Network | IPv6Network


def networks_in(setting: str, text: str) -> tuple[Network, ...]:
    """The networks in a text, which commas separate. Raises: SetupError."""
    try:
        return tuple(ip_network(part.strip()) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise SetupError(f"{setting}: {error}; write networks like 10.1.0.0/16, separated by commas") from error


def check_public(setting: str, url: str) -> None:
    """Refuse what customers' browsers can't be sent to. Raises: SetupError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise SetupError(f"{setting} must be an address like https://pay.example, not {url!r}")


def check_acquirers_own(setting: str, url: str, usual: str, goes_there: str) -> None:
    """Refuse another address of an acquirer's at which somebody could read along; empty is the
    `usual` one, and `goes_there` says what must not be read. Raises: SetupError.
    """
    if url and urlsplit(url).scheme not in ("http", "https"):
        raise SetupError(f"{setting} must be an address like {usual}, or empty")
    if urlsplit(url).scheme == "http" and not _is_loopback(url):
        raise SetupError(f"{setting}: {goes_there}; over plain http to this machine only")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
