from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

import asyncpg
import httpx
import pytest
from structlog.testing import capture_logs

from paydesk.database.waiting import NoConnection
from paydesk.domain.cells.fencing import Fenced
from paydesk.domain.cells.finding import NotKnownYet
from paydesk.domain.merchants.merchant import Merchant
from paydesk.web.cells.calling import CellAway
from paydesk.web.cells.places import NoPlace

SignedForm = Callable[..., dict[str, Any]]

JSON = {"Accept": "application/json"}


async def test_an_unknown_address_is_a_page_or_the_fixed_json(web: httpx.AsyncClient) -> None:
    for path in ("/nowhere", "/sandbox/nowhere", "/checkout/", "/checkout/x", "/checkout/t1-" + "0" * 32):
        page = await web.get(path, headers={"Accept-Language": "de"})
        assert page.status_code == 404
        assert '<html lang="de"' in page.text
        answer = await web.get(path, headers=JSON)
        assert answer.status_code == 404
        assert set(answer.json()) == {"success", "type", "message", "code"}


@pytest.mark.parametrize("why", [CellAway(), NoPlace(is_full=True), NotKnownYet(), Fenced("x"), NoConnection()])
async def test_a_page_and_its_header_agree_on_when_to_come_back(
    web: httpx.AsyncClient, signed_form: SignedForm, monkeypatch: pytest.MonkeyPatch, why: Exception
) -> None:
    async def refused(*_: Any, **__: Any) -> None:
        raise why

    monkeypatch.setattr("paydesk.web.checkout.payment_form.receive_form", refused)
    page = await web.post("/payment/form", data=signed_form())
    assert (page.status_code, page.headers["retry-after"]) == (503, "3")
    assert "Please try again in a few seconds." in page.text


@pytest.mark.parametrize("path", ["/payment/form", "/api/v1/deliveries", "/account/login"])
async def test_no_page_is_drawn_for_whoever_has_gone(web: httpx.AsyncClient, path: str) -> None:
    said: list[Any] = []
    parts = iter([{"type": "http.request", "body": b"api_key=", "more_body": True}])

    async def receive() -> Any:
        return next(parts, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        said.append(message)

    headers = [(b"host", b"pay.test"), (b"content-type", b"application/x-www-form-urlencoded")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    transport: Any = web._transport
    await transport.app({**scope, "headers": headers, "client": ("192.0.2.1", 1), "root_path": ""}, receive, send)
    assert [message.get("status") for message in said if message["type"] == "http.response.start"] == [400]
    assert not any(message.get("body") for message in said)


async def test_an_error_of_ours_is_a_calm_page_and_a_logged_error(
    web: httpx.AsyncClient, signed_form: SignedForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr("paydesk.web.checkout.payment_form.receive_form", broken)
    transport: Any = web._transport
    transport.raise_app_exceptions = False
    with capture_logs() as logs:
        page = await web.post("/payment/form", data=signed_form())
        answer = await web.post("/payment/form", data=signed_form(), headers=JSON)
    assert (page.status_code, answer.status_code) == (500, 500)
    assert "Something went wrong on our side" in html.unescape(page.text)
    assert answer.json()["code"] == 500
    assert "secret detail" not in page.text + answer.text
    assert [line["log_level"] for line in logs if line["event"] == "a request failed"] == ["error"] * 2


@pytest.mark.parametrize(
    "error", [asyncpg.ConnectionDoesNotExistError("gone"), ConnectionRefusedError(), TimeoutError()]
)
async def test_a_database_that_is_away_is_a_short_break(
    web: httpx.AsyncClient, signed_form: SignedForm, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("paydesk.web.checkout.payment_form.receive_form", away)
    page = await web.post("/payment/form", data=signed_form())
    answer = await web.post("/payment/form", data=signed_form(), headers=JSON)
    assert (page.status_code, answer.status_code) == (503, 503)
    assert page.headers["retry-after"] == "3"
    assert "retry-after" not in answer.headers, "who can't tell whether it was done looks before it tries again"
    assert answer.json()["success"] is False
    assert "it is not known whether this was done" in answer.json()["message"]


async def test_a_reader_is_told_when_to_try_again(
    web: httpx.AsyncClient, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise OSError("gone")

    monkeypatch.setattr("paydesk.web.api.payments.list_payments", away)
    answer = await web.get("/api/v1/payments", headers={"X-ApiKey": merchant.private_key})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
    assert answer.json()["message"] == "the service is starting again; try again"
