from ipaddress import ip_network

import pytest

from paydesk.adapters.outbound.addresses import refusal


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("10.0.0.1", "private network"),
        ("100.64.0.1", "shared address space of a carrier"),
        ("100.127.255.255", "shared address space of a carrier"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("169.254.169.254", "link-local"),
        ("172.16.0.1", "private network"),
        ("172.31.255.255", "private network"),
        ("192.0.0.170", "reserved"),
        ("192.0.2.1", "documentation"),
        ("192.88.99.1", "6to4 relay"),
        ("192.168.1.1", "private network"),
        ("198.18.0.1", "benchmarks"),
        ("198.19.255.255", "benchmarks"),
        ("198.51.100.1", "documentation"),
        ("203.0.113.1", "documentation"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        ("240.0.0.1", "reserved"),
        ("255.255.255.255", "broadcast"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("::127.0.0.1", "reserved"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("::ffff:8.8.8.8", "IPv4-mapped"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("64:ff9b:1::a00:1", "NAT64"),
        ("100::1", "reserved"),
        ("2001::7f00:1", "Teredo"),
        ("2001:2::1", "reserved"),
        ("2001:db8::1", "documentation"),
        ("2002:7f00:1::1", "6to4"),
        ("3fff::1", "documentation"),
        ("5f00::1", "reserved"),
        ("fc00::1", "private network"),
        ("fd00:ec2::254", "private network"),
        ("fe80::1", "link-local"),
        ("fec0::1", "site-local"),
        ("ff02::1", "multicast"),
    ],
)
def test_addresses_outside_the_public_internet_are_refused(address: str, reason: str) -> None:
    assert refusal(address) == reason


@pytest.mark.parametrize("address", ["8.8.8.8", "100.63.255.255", "172.32.0.1", "223.255.255.255", "2606:4700::1111"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert refusal(address) is None


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.01", "localhost", "", "127.0.0.1 ", "8.8.8"]
)
def test_only_canonical_addresses_are_connected_to(host: str) -> None:
    assert refusal(host, [ip_network("0.0.0.0/0"), ip_network("::/0")]) == "not a canonical address"


def test_an_address_with_a_zone_is_refused_even_in_an_allowed_network() -> None:
    assert refusal("fe80::1%eth0", [ip_network("fe80::/10")]) == "has a zone"


def test_an_allowed_network_opens_itself_and_nothing_else() -> None:
    allow = [ip_network("10.1.0.0/16"), ip_network("fd00:1::/32")]
    assert refusal("10.1.2.3", allow) is None
    assert refusal("fd00:1::5", allow) is None
    assert refusal("10.2.0.1", allow) == "private network"
    assert refusal("::ffff:10.1.2.3", allow) == "IPv4-mapped"
