from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect, Request

from paydesk.core.errors import Malformed, TooLarge
from paydesk.web.visits import SANDBOX, base_path, client_address, in_sandbox, read_form_body, wants_json

PROXIES = (ip_network("10.0.0.0/8"), ip_network("2001:db8:ffff::/48"))


def scope(client: str | None, *forwarded: str) -> dict[str, Any]:
    headers = [(b"x-forwarded-for", one.encode("latin-1")) for one in forwarded]
    return {"type": "http", "client": (client, 50000) if client else None, "headers": headers}


@pytest.mark.parametrize(
    ("client", "forwarded", "address"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["6.6.6.6, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["6.6.6.6", "203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, 10.1.1.1"], "203.0.113.9"),
        ("10.0.0.1", ["10.2.2.2, 10.1.1.1"], "10.2.2.2"),
        ("10.0.0.1", ["203.0.113.9, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["nonsense, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9:1234"], "203.0.113.9"),
        ("10.0.0.1", ["6.6.6.6, 203.0.113.9:1234, 10.1.1.1:80"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8:1:2:3:4:5:6]:1234"], "2001:db8:1:2::"),
        ("10.0.0.1", ["[2001:db8:1:2:3:4:5:6]"], "2001:db8:1:2::"),
        ("10.0.0.1", ["203.0.113.9:port"], "10.0.0.1"),
        ("10.0.0.1", ["[203.0.113.9"], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("::ffff:192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        ("2001:db8:ffff::1", ["2001:db8:1:2:3:4:5:6"], "2001:db8:1:2::"),
        ("2001:db8:1:2::1", [], "2001:db8:1:2::"),
        ("fe80::1%eth0", [], "fe80::"),
        (None, ["203.0.113.9"], ""),
        ("testclient", ["203.0.113.9"], "testclient"),
    ],
)
def test_only_what_trusted_proxies_added_is_believed(client: str | None, forwarded: list[str], address: str) -> None:
    assert client_address(scope(client, *forwarded), PROXIES) == address


def test_without_trusted_proxies_the_header_counts_for_nothing() -> None:
    assert client_address(scope("10.0.0.1", "203.0.113.9"), ()) == "10.0.0.1"


@given(st.lists(st.text(st.characters(max_codepoint=255)), max_size=4))
def test_any_header_gives_an_address_that_can_be_stored(forwarded: list[str]) -> None:
    address = client_address(scope("10.0.0.1", *forwarded), PROXIES)
    assert len(address) <= 64
    assert "\x00" not in address


@pytest.mark.parametrize(
    ("accept", "json"),
    [
        ("", False),
        ("*/*", False),
        ("text/html,application/xhtml+xml,application/xml;q=0.9", False),
        ("application/json", True),
        ("Application/JSON; charset=utf-8", True),
        ("application/json, text/plain, */*", True),
    ],
)
def test_a_program_is_known_by_what_it_accepts(accept: str, json: bool) -> None:
    request = Request({"type": "http", "path": "/payment/form", "headers": [(b"accept", accept.encode())]})
    assert wants_json(request) is json


def test_whoever_calls_the_api_is_a_program() -> None:
    assert wants_json(Request({"type": "http", "path": "/api/v1/payments", "headers": [(b"accept", b"text/html")]}))


def test_the_base_of_a_request_is_in_its_scope() -> None:
    live, sandbox = Request({"type": "http"}), Request({"type": "http", SANDBOX: "/sandbox"})
    own_host = Request({"type": "http", SANDBOX: ""})
    assert [in_sandbox(one) for one in (live, sandbox, own_host)] == [False, True, True]
    assert [base_path(one) for one in (live, sandbox, own_host)] == ["", "/sandbox", ""]


def sending(*messages: dict[str, Any], content_type: str = "application/x-www-form-urlencoded") -> Request:
    left = list(messages)

    async def receive() -> dict[str, Any]:
        return left.pop(0)

    return Request({"type": "http", "headers": [(b"content-type", content_type.encode())]}, receive)


def part(body: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_in_parts_is_put_together() -> None:
    assert await read_form_body(sending(part(b"a=", more=True), part(b"1")), 10) == b"a=1"
    assert await read_form_body(sending(part(b"x" * 10)), 10) == b"x" * 10


async def test_a_body_is_read_no_further_than_allowed() -> None:
    with pytest.raises(TooLarge, match="1 KiB"):
        # The third part is never asked for: there is none.
        await read_form_body(sending(part(b"x" * 1024, more=True), part(b"x", more=True)), 1024)


async def test_a_client_that_goes_away_before_the_end_is_no_error_of_ours() -> None:
    with pytest.raises(ClientDisconnect):
        await read_form_body(sending(part(b"a=", more=True), {"type": "http.disconnect"}), 10)


@pytest.mark.parametrize("content_type", ["", "text/plain", "multipart/form-data; boundary=x", "application/json"])
async def test_another_content_type_is_refused_by_name(content_type: str) -> None:
    with pytest.raises(Malformed, match="expected application/x-www-form-urlencoded"):
        await read_form_body(sending(part(b"a=1"), content_type=content_type), 10)
