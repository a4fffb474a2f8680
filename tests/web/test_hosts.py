from __future__ import annotations

from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from tests.conftest import OpenWeb

from paydesk.commands.running import _other_names
from paydesk.commands.starting import warn_of_missing_proxies
from paydesk.core.errors import SetupError
from paydesk.settings import load_settings
from paydesk.web.hosts import Host, KnownHosts, host_of, parse_host
from paydesk.web.middleware import SandboxBase
from paydesk.web.visits import in_sandbox


@pytest.mark.parametrize(
    ("written", "host"),
    [
        ("pay.example", Host("pay.example")),
        ("PAY.Example.", Host("pay.example")),
        ("pay.example.:443", Host("pay.example")),
        ("pay.example:80", Host("pay.example")),
        ("pay.example:", Host("pay.example")),
        ("pay.example:8443", Host("pay.example", 8443)),
        ("[2001:DB8:0::1]:8000", Host("[2001:db8::1]", 8000)),
        ("[nonsense]", None),
        ("[1:2]", None),
        ("", None),
        (".", None),
        ("a b", None),
        ("pay.example@evil.example", None),
        ("pay.example/evil", None),
        ("pay.example,evil.example", None),
        ("pay.example:port", None),
        ("pay.exampl\u00e9", None),
    ],
)
def test_a_host_has_one_spelling(written: str, host: Host | None) -> None:
    assert parse_host(written) == host


@pytest.mark.parametrize("name", ["localhost", "shop.localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
def test_loopback_is_known_by_name_and_number(name: str) -> None:
    assert Host(name).is_loopback
    assert not Host(f"{name.strip('[]')}.evil.example").is_loopback


@pytest.mark.parametrize(
    "host", ["pay.test", "PAY.test", "pay.test.", "pay.test:80", "pay.test.:8000", "localhost:8000", "[::1]:8000"]
)
async def test_the_service_answers_by_its_own_names(web: httpx.AsyncClient, host: str) -> None:
    assert (await web.get("/api/v1/payments", headers={"host": host})).status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "pay.test.evil.example", "192.0.2.7", "", "pay.test@evil.example"])
async def test_by_another_name_nothing_is_served(web: httpx.AsyncClient, host: str) -> None:
    page = await web.get("/payment/form", headers={"host": host})
    assert (page.status_code, page.headers["content-type"]) == (421, "text/plain; charset=utf-8")
    assert page.headers["x-request-id"]
    answer = await web.get("/api/v1/payments", headers={"host": host})
    assert answer.status_code == 421
    assert answer.json()["code"] == 421


async def test_two_host_headers_are_none(web: httpx.AsyncClient) -> None:
    page = await web.get("/payment/form", headers=[("host", "pay.test"), ("host", "evil.example")])
    assert page.status_code == 421


async def test_probes_call_by_whatever_address(web: httpx.AsyncClient) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await web.get(path, headers={"host": "10.1.2.3:8000"})).status_code == 200


async def test_the_operator_names_more(open_web: OpenWeb) -> None:
    web = await open_web(other_hosts="pay2.test, 10.1.2.3 , [2001:db8:0::1]")
    for host in ("pay2.test", "10.1.2.3:8000", "[2001:db8::1]:8000"):
        assert (await web.get("/api/docs", headers={"host": host})).status_code == 200
    assert (await web.get("/api/docs", headers={"host": "pay3.test"})).status_code == 421


def test_what_is_no_host_name_is_refused_at_the_start() -> None:
    with pytest.raises(SetupError, match=r"PAYDESK_OTHER_HOSTS.*without a port"):
        load_settings(other_hosts="pay2.test, https://pay3.test:8000")


def test_the_start_says_which_setting_names_more() -> None:
    assert _other_names(load_settings()) == "localhost; more in PAYDESK_OTHER_HOSTS"
    assert _other_names(load_settings(other_hosts="b.test")) == "b.test; localhost; more in PAYDESK_OTHER_HOSTS"


@pytest.mark.parametrize(
    ("address", "proxies", "warns"),
    [("https://pay.test", "", True), ("https://pay.test", "10.0.0.0/8", False), ("http://pay.test", "", False)],
)
def test_an_https_address_without_proxies_warns(
    capsys: pytest.CaptureFixture[str], address: str, proxies: str, warns: bool
) -> None:
    warn_of_missing_proxies(load_settings(base_url=address, trusted_proxies=proxies))
    said = capsys.readouterr()
    assert ("PAYDESK_TRUSTED_PROXIES" in said.out + said.err) is warns


def base_app(address: str, sandbox_address: str) -> Starlette:
    """An application that says which base a request came to."""

    async def which(request: Request) -> PlainTextResponse:
        return PlainTextResponse("sandbox" if in_sandbox(request) else "live")

    both: dict[str, Any] = {"address": address, "sandbox_address": sandbox_address}
    return Starlette(
        routes=[Route("/form", which)],
        middleware=[Middleware(KnownHosts, addresses=both.values(), others=()), Middleware(SandboxBase, **both)],
    )


@pytest.mark.parametrize(
    ("address", "sandbox", "host", "base"),
    [
        ("https://pay.test", "https://sandbox.pay.test", "sandbox.pay.test", "sandbox"),
        ("https://pay.test", "https://sandbox.pay.test", "SANDBOX.pay.test.", "sandbox"),
        ("https://pay.test", "https://sandbox.pay.test", "sandbox.pay.test:443", "sandbox"),
        ("https://pay.test", "https://sandbox.pay.test:8443", "sandbox.pay.test", "sandbox"),
        ("https://pay.test", "https://sandbox.pay.test", "pay.test.:443", "live"),
        ("http://pay.test:8000", "http://pay.test:8001", "pay.test:8001", "sandbox"),
        ("http://pay.test:8000", "http://pay.test:8001", "pay.test.:8000", "live"),
    ],
)
async def test_no_spelling_of_the_sandbox_goes_live(address: str, sandbox: str, host: str, base: str) -> None:
    transport = httpx.ASGITransport(app=base_app(address, sandbox))
    async with httpx.AsyncClient(transport=transport, base_url="http://any") as client:
        assert (await client.get("/form", headers={"host": host})).text == base


def test_an_address_of_ours_has_a_host() -> None:
    assert host_of("https://user@Pay.Example:443/base") == Host("pay.example")
    with pytest.raises(SetupError, match="no usable host"):
        host_of("https://a b/")
