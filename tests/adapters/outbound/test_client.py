"""The client against real sockets on the loopback;
names are answered by a resolver of the tests' own.
"""

from __future__ import annotations

import asyncio
import gzip
import ssl
from ipaddress import ip_network
from pathlib import Path

import pytest
from tests.adapters.outbound.receivers import (
    OK,
    Names,
    answering,
    client,
    receiving,
    response,
)
from tests.certificates import own_certificate
from tests.processes import free_port
from tests.servers import answering as answering_all

from paydesk.adapters.outbound import parse_endpoint


async def test_what_is_recorded_as_sent_is_what_was_sent() -> None:
    async with receiving(answering(OK)) as receiver, client() as outbound:
        url = f"http://127.0.0.1:{receiver.port}/pay?x=1#part"
        answer = await outbound.post(url, b'{"a":1}', {"Content-Type": "application/json", "X-ApiKey": "k"})
    head, _, body = receiver.requests[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /pay?x=1 HTTP/1.1"
    assert dict(line.split(": ", 1) for line in lines[1:]) == answer.sent
    assert answer.sent["Host"] == f"127.0.0.1:{receiver.port}"
    assert body == b'{"a":1}'
    assert (answer.status, answer.body_start, answer.complete, answer.error) == (200, b"ok", True, None)


async def test_what_is_got_is_asked_for_without_a_body() -> None:
    with answering_all(body=b"a picture") as (server, seen):
        async with client() as outbound:
            answer = await outbound.get(f"{server}/mug.png?x=1#part", {"Accept": "image/png"})
    assert (answer.status, answer.body_start, answer.complete, answer.error) == (200, b"a picture", True, None)
    assert [(one.path, one.body, one.headers["accept"]) for one in seen] == [("/mug.png?x=1", b"", "image/png")]
    assert "content-length" not in seen[0].headers


async def test_redirects_are_not_followed() -> None:
    async with receiving(answering(OK)) as inside:
        target = f"Location: http://127.0.0.1:{inside.port}/"
        async with receiving(answering(response(b"", target, status="307 Go"))) as receiver, client() as outbound:
            answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert (answer.status, answer.error) == (307, None)
    assert inside.requests == []


async def test_a_compressed_answer_is_not_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    async with receiving(answering(response(bomb, "Content-Encoding: gzip"))) as receiver, client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert answer.body_start == bomb[:4096]
    assert answer.sent["Accept-Encoding"] == "identity"


async def test_an_answer_that_drips_is_cut_off_by_the_timeout() -> None:
    async def drip(_request: bytes, writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nok")
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with receiving(drip) as receiver, client(timeout=1.5) as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert (answer.status, answer.complete, answer.error) == (200, False, "timed out after 1.5 s")
    assert answer.body_start.startswith(b"ok ")


async def test_an_answer_that_never_comes_over_a_kept_connection_is_cut_off_too() -> None:
    async def once(request: bytes, writer: asyncio.StreamWriter) -> bool:
        if len(receiver.requests) == 1:
            writer.write(OK)
        return True

    async with receiving(once) as receiver, client(timeout=60) as outbound:
        url = f"http://127.0.0.1:{receiver.port}/"
        assert (await outbound.post(url, b"", {}, whose="shop")).error is None
        outbound.timeout = 0.3
        assert (await outbound.post(url, b"", {}, whose="shop")).error == "timed out after 0.3 s"
    assert (receiver.connections, len(receiver.requests)) == (1, 2)


async def test_an_answer_shows_no_header_of_its_request() -> None:
    async with receiving(answering(OK)) as receiver, client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {"X-ApiKey": "t0p-s3cret"})
    assert answer.sent["X-ApiKey"] == "t0p-s3cret"
    assert "t0p-s3cret" not in repr(answer)


async def test_headers_that_drip_are_cut_off_by_the_timeout() -> None:
    async def drip(_request: bytes, writer: asyncio.StreamWriter) -> bool:
        while True:
            writer.write(b"H")
            await writer.drain()
            await asyncio.sleep(1)

    async with receiving(drip) as receiver, client(timeout=0.3) as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert (answer.status, answer.error) == (None, "timed out after 0.3 s")
    assert answer.duration >= 0.3


async def test_a_look_up_that_hangs_is_cut_off_by_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = Names(())
    monkeypatch.setattr(dead, "resolve", lambda *_, **__: asyncio.Event().wait())
    async with client(timeout=0.2, resolver=dead) as outbound:
        answer = await outbound.post("http://shop.example/", b"", {})
    assert answer.error == "timed out after 0.2 s"


async def test_a_refused_connection_is_said_so() -> None:
    async with client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{free_port()}/", b"", {})
    assert (answer.status, answer.error) == (None, "connection refused")


async def test_a_name_that_does_not_exist_is_said_so() -> None:
    async with client(resolver=Names(())) as outbound:
        answer = await outbound.post("http://nowhere.example/", b"", {})
    assert answer.error == "name not found: nowhere.example"


async def test_a_certificate_that_is_not_trusted_is_said_so(tmp_path: Path) -> None:
    async with (
        receiving(answering(OK), tls=own_certificate(tmp_path, "shop.example")) as receiver,
        client() as outbound,
    ):
        answer = await outbound.post(f"https://127.0.0.1:{receiver.port}/", b"secret", {})
    assert answer.error == "TLS: certificate not accepted: self-signed certificate"
    assert receiver.requests == []


async def test_a_certificate_for_another_name_is_said_so(tmp_path: Path) -> None:
    server = own_certificate(tmp_path, "shop.example")
    trusting = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
    async with (
        receiving(answering(OK), tls=server) as receiver,
        client(tls=trusting, resolver=Names(["127.0.0.1"])) as outbound,
    ):
        wrong = await outbound.post(f"https://other.example:{receiver.port}/", b"", {})
        right = await outbound.post(f"https://shop.example:{receiver.port}/", b"", {})
    assert wrong.error is not None
    assert wrong.error.startswith("TLS: certificate not accepted: Hostname mismatch")
    assert (right.error, right.status) == (None, 200)


async def test_a_server_that_does_not_speak_tls_is_said_so() -> None:
    async def plain(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plain, "127.0.0.1", 0)
    async with server, client() as outbound:
        answer = await outbound.post(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", b"", {})
    assert answer.error is not None
    assert answer.error.startswith("TLS: ")


async def test_a_server_that_closes_instead_of_speaking_tls_is_said_so() -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10_000)
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server, client() as outbound:
        answer = await outbound.post(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/", b"", {})
    assert answer.error == "no connection: the server closed it"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2001::7f00:1]",
        "[2002:7f00:1::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
    ],
)
async def test_a_literal_private_address_is_never_connected_to(host: str) -> None:
    async with receiving(answering(OK)) as receiver, client(allow=()) as outbound:
        answer = await outbound.post(f"http://{host}:{receiver.port}/", b"", {})
        assert receiver.connections == 0
    assert answer.error is not None
    assert answer.error.startswith("address not allowed: ")


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "127.1",
        "127.0.1",
        "017700000001",
        "１２７.0.0.1",
        "127。0。0。1",
        "[fe80::1%25lo]",
        "[::1%25lo]",
    ],
)
async def test_odd_spellings_of_a_private_address_are_never_connected_to(host: str) -> None:
    async with receiving(answering(OK)) as receiver, client(allow=()) as outbound:
        answer = await outbound.post(f"http://{host}:{receiver.port}/", b"", {})
        assert receiver.connections == 0
    assert answer.error is not None


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LOCALHOST", "shop.localhost"])
async def test_a_name_for_this_machine_is_never_connected_to(host: str) -> None:
    async with receiving(answering(OK)) as receiver, client(allow=(), resolver=Names(["127.0.0.1"])) as outbound:
        answer = await outbound.post(f"http://{host}:{receiver.port}/", b"", {})
        assert receiver.connections == 0
    assert answer.error == "address not allowed: 127.0.0.1 (loopback)"


async def test_the_systems_own_look_up_is_checked_too() -> None:
    async with receiving(answering(OK)) as receiver, client(allow=()) as outbound:
        answer = await outbound.post(f"http://localhost:{receiver.port}/", b"", {})
        assert receiver.connections == 0
    assert answer.error is not None
    assert answer.error.startswith("address not allowed: ")


async def test_the_systems_own_look_up_finds_names() -> None:
    async with receiving(answering(OK)) as receiver, client() as outbound:
        answer = await outbound.post(f"http://localhost:{receiver.port}/", b"", {})
    assert (answer.status, answer.error) == (200, None)


@pytest.mark.parametrize("address", ["10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "169.254.169.254", "127.1"])
async def test_a_name_that_leads_to_a_private_address_is_never_connected_to(address: str) -> None:
    async with client(allow=(), resolver=Names([address])) as outbound:
        answer = await outbound.post("http://shop.example/", b"", {})
    assert answer.error is not None
    assert answer.error.startswith(f"address not allowed: {address} (")


async def test_a_name_that_changes_to_a_private_address_is_never_connected_to() -> None:
    names = Names(["127.0.0.2"], ["127.0.0.1"])
    only_the_first = (ip_network("127.0.0.2/32"),)
    async with receiving(answering(OK)) as receiver, client(allow=only_the_first, resolver=names) as outbound:
        before = await outbound.post("http://shop.example:1/", b"", {})
        after = await outbound.post(f"http://shop.example:{receiver.port}/", b"", {})
        assert receiver.connections == 0
    assert before.error == "connection refused"
    assert after.error == "address not allowed: 127.0.0.1 (loopback)"


async def test_of_a_names_addresses_only_the_allowed_ones_are_tried() -> None:
    names = Names(["10.0.0.1", "169.254.169.254", "127.0.0.1"])
    async with receiving(answering(OK)) as receiver, client(resolver=names) as outbound:
        answer = await outbound.post(f"http://shop.example:{receiver.port}/", b"", {})
    assert (answer.status, answer.error) == (200, None)


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving(answering(OK)) as proxy, receiving(answering(OK)) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        async with client() as outbound:
            answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {})
    assert answer.status == 200
    assert proxy.requests == []


async def test_cookies_are_not_kept() -> None:
    async with receiving(answering(response(b"ok", "Set-Cookie: a=b"))) as receiver, client() as outbound:
        for _ in range(2):
            await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {}, whose="shop")
    assert b"ookie" not in receiver.requests[1]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://shop.example/",
        "file:///etc/passwd",
        "shop.example/pay",
        "//shop.example/",
        "http://",
        "http:///path",
        "http://shop.example:0/",
        "http://shop.example:99999/",
        "http://user:secret@shop.example/",
        "http://user@shop.example/",
        "",
    ],
)
async def test_a_url_that_can_not_be_used_is_said_so(url: str) -> None:
    with pytest.raises(ValueError, match="not a usable URL"):
        parse_endpoint(url)
    async with client(resolver=Names(["127.0.0.1"])) as outbound:
        answer = await outbound.post(url, b"", {})
    assert answer.error is not None
    assert answer.error.startswith("not a usable URL: ")
    assert "secret" not in answer.error


@pytest.mark.parametrize("host", ["a" * 300 + ".example", "exa mple", "-.example", "a..b"])
async def test_a_name_that_can_not_be_looked_up_is_an_error_like_others(host: str) -> None:
    async with client() as outbound:
        answer = await outbound.post(f"http://{host}/", b"", {})
    assert answer.status is None
    assert answer.error


async def test_a_header_that_can_not_be_sent_is_an_error_like_others() -> None:
    async with receiving(answering(OK)) as receiver, client() as outbound:
        answer = await outbound.post(f"http://127.0.0.1:{receiver.port}/", b"", {"X-ApiKey": "a\r\nX-Evil: 1"})
    assert answer.error is not None
    assert receiver.requests == []
