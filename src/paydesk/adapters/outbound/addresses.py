"""Which addresses a merchant's URL may lead to: those of the public internet,
and what the operator adds.

Forms that carry an IPv4 address inside an IPv6 one (mapped, NAT64, 6to4, Teredo) are refused as a
whole: what is at their other end can't be told from here. An operator whose network needs one,
NAT64 for instance, names it in PAYDESK_OUTBOUND_ALLOW.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network

_REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private network"),
        ("100.64.0.0/10", "shared address space of a carrier"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private network"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private network"),
        ("198.18.0.0/15", "benchmarks"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private network"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)

_GLOBAL_UNICAST = IPv6Network("2000::/3")
"""All that is handed out of IPv6 for the public internet;
the rest is refused, known by name or not."""


class AddressNotAllowed(OSError):
    """A connection to this address is not made."""


def refusal(host: str, allow: Iterable[Network] = (), *, public: bool = True) -> str | None:
    """Why no connection may be made to `host`, the literal address about to be connected to;
    None if it may.

    `public` is whether the public internet may be reached besides the networks of `allow`. Anything
    but a canonical address is refused: a shortened, octal or decimal form, a zone, a name.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return "not a canonical address"
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "has a zone"
    if any(address in network for network in allow):
        return None
    return _reason(address) if public else "not one of PAYDESK_COPY_ALLOW"


def _reason(address: IPv4Address | IPv6Address) -> str | None:
    """The name of the range that keeps `address` out of the public internet, if one does."""
    for network, reason in _REFUSED:
        if address in network:
            return reason
    return "reserved" if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST else None
