"""The merchant of the package's README takes payments as it is printed there."""

import json
import re
import time
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient, Client, Response, WSGITransport

from paydesk_client import signature

README = Path(__file__).parents[2] / "src" / "paydesk_client" / "README.md"
KEY = "<PRIVATE_KEY>"


def section(title: str) -> str:
    """The Python code below a heading of the README."""
    found = re.search(rf"^## {re.escape(title)}\n+```python\n(.*?)^```", README.read_text(), re.M | re.S)
    assert found, f"the README has no code under {title!r}"
    return found[1]


def run(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "merchant"}
    exec(compile(code, str(README), "exec"), names)
    return names


class Merchant:
    """A merchant made from the README, reached by HTTP through the interface of its framework."""

    def __init__(self, title: str) -> None:
        self.code = section(title)
        self.names = run(self.code)

    async def ask(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Response:
        app = self.names["app"]
        if hasattr(app, "wsgi_app"):
            return self._ask_wsgi(app, method, path, body, headers)
        async with AsyncClient(transport=ASGITransport(app), base_url="http://shop") as client:
            return await client.request(method, path, content=body, headers=headers)

    def _ask_wsgi(self, app: Any, method: str, path: str, body: bytes, headers: dict[str, str] | None) -> Response:
        with Client(transport=WSGITransport(app), base_url="http://shop") as client:
            return client.request(method, path, content=body, headers=headers)

    async def told(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        answer = await self.ask("POST", "/pingback", body, {"Content-Type": "application/json", **headers})
        return answer.status_code, answer.text


@pytest.fixture(params=["A Flask merchant, complete", "A FastAPI merchant, complete"])
def merchant(request: pytest.FixtureRequest) -> Merchant:
    return Merchant(request.param)


def payment(order: str) -> bytes:
    payment_order = {"id": 1, "merchant_order_id": order, "status": "successful"}
    return json.dumps({"event": "payment", "payment_order": payment_order, "pingback_ts": int(time.time())}).encode()


def v2_headers(body: bytes) -> dict[str, str]:
    return {
        "X-Service-Signature-Version": "v2",
        "X-Service-Signature": signature.pingback_signature(body, KEY),
    }


def test_a_merchant_takes_under_30_lines(merchant: Merchant) -> None:
    assert len(merchant.code.splitlines()) < 30


async def test_the_form_carries_a_valid_hash(merchant: Merchant) -> None:
    html = (await merchant.ask("GET", "/buy/A-7")).text
    inputs = re.findall(r'name="(\w+)" value="([^"]*)"', html)
    fields: dict[str, signature.Value] = {name: unescape(value) for name, value in inputs}
    assert fields["merchant_order_id"] == "A-7"
    assert fields["pingback_url"] == "http://shop/pingback"
    assert 'action="http://127.0.0.1:8000/sandbox/payment/form"' in html
    assert signature.verify(fields, fields["hash"], KEY, "v2")


async def test_the_thank_you_page_answers(merchant: Merchant) -> None:
    assert (await merchant.ask("GET", "/thanks")).text == "Thank you!"


async def test_a_signed_pingback_is_answered_ok_and_processed(merchant: Merchant) -> None:
    body = payment("A-7")
    for _ in range(2):
        assert await merchant.told(body, v2_headers(body)) == (200, "ok")
    assert merchant.names["paid"] == {"A-7"}


async def test_a_version_1_pingback_is_answered_ok_and_processed(merchant: Merchant) -> None:
    assert await merchant.told(payment("A-7"), {"X-ApiKey": KEY}) == (200, "ok")
    assert merchant.names["paid"] == {"A-7"}


async def test_a_forged_pingback_is_answered_nok_and_not_processed(merchant: Merchant) -> None:
    for forged in (v2_headers(payment("other")), {"X-ApiKey": "guess"}, {}):
        assert await merchant.told(payment("A-7"), forged) == (200, "NOK")
    assert merchant.names["paid"] == set()
