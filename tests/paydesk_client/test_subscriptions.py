from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from paydesk.adapters.acquirers.interface import CardDetails
from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import find_checkout, open_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.paying import Paid, Payer, pay
from paydesk.domain.payments.requests import CheckoutRequest
from paydesk.domain.subscriptions.terms import Terms
from paydesk_client import ApiError, Gateway

KEY = "private-key-of-the-shop"
TERMS = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)


@pytest.fixture
async def subscription_id(desk: Desk, shop: Shop, database: Database) -> int:
    """A running subscription of the merchant."""
    key_id = await database.fetchval("select id from merchant_key where merchant_id = $1", shop.merchant_id)
    request = CheckoutRequest(
        "club-1", TERMS.price, "USD", "Coffee club", "https://shop.example/thanks", None, "v1", "", "", "", "", False,
        TERMS,
    )  # fmt: skip
    form = {"order": secrets.token_hex(4)}
    token = await open_checkout(database, shop, request, form=form, key_id=key_id, now=utc_now())
    checkout = await find_checkout(database, token, now=utc_now())
    payer = Payer(CardDetails("4242424242424242", 12, 2040, "Ada", "123"), "ada@example.com", "GB", "192.0.2.1", "ok")
    assert await pay(desk, checkout, payer, return_url="", now=utc_now()) == Paid()
    return int(await database.fetchval("select id from subscription where merchant_id = $1", shop.merchant_id))


async def cancel(gateway: Gateway, subscription_id: int | str) -> dict[str, Any]:
    return await asyncio.to_thread(gateway.subscriptions().cancel, subscription_id)


class TestTheRealService:
    @pytest.mark.parametrize("is_test", [True, False])
    async def test_cancelling_ends_it_and_again_answers_the_same(
        self, service: str, merchant: Merchant, subscription_id: int, is_test: bool
    ) -> None:
        gateway = Gateway(merchant.public_key, merchant.private_key, service, is_test)
        cancelled = await cancel(gateway, subscription_id)
        assert (cancelled["id"], cancelled["status"], cancelled["date_next"]) == (subscription_id, "Cancelled", 0)
        assert await cancel(gateway, str(subscription_id)) == cancelled

    async def test_an_unknown_one_is_told(self, service: str, merchant: Merchant) -> None:
        gateway = Gateway(merchant.public_key, merchant.private_key, service)
        for unknown in (2**52, "../../healthz", "1/cancel?x="):
            with pytest.raises(ApiError) as raised:
                await cancel(gateway, unknown)
            assert raised.value.status == 404
        assert await asyncio.to_thread(lambda: "there is no subscription" in str(_error(gateway, 2**52)))

    async def test_a_wrong_key_is_told_and_not_shown(self, service: str, merchant: Merchant) -> None:
        error = await asyncio.to_thread(_error, Gateway(merchant.public_key, KEY, service), 1)
        assert error.status == 401
        assert "X-ApiKey is wrong" in error.message
        assert KEY not in f"{error} {error!r} {error.args}"


def _error(gateway: Gateway, subscription_id: int) -> ApiError:
    with pytest.raises(ApiError) as raised:
        gateway.subscriptions().cancel(subscription_id)
    assert raised.value.__cause__ is None
    return raised.value


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[tuple[str, list[BaseHTTPRequestHandler]]]:
    """A server that answers every POST alike; gives its address and the requests that came."""
    seen: list[BaseHTTPRequestHandler] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", seen
        finally:
            server.shutdown()
            thread.join()


class TestOddAnswers:
    def test_a_redirect_is_not_followed_with_the_key(self) -> None:
        with answering(200, b"{}") as (elsewhere, stolen):
            for status in (301, 302, 303, 307, 308):
                with answering(status, b"", Location=f"{elsewhere}/steal") as (address, _):
                    assert _error(Gateway("p", KEY, address), 1).status == status
        assert stolen == []

    @pytest.mark.parametrize("body", [b"", b"ok", b"[]", b'{"success": false}', b'{"success": true}', b"\xff"])
    def test_an_answer_that_is_none_of_ours_is_an_error(self, body: bytes) -> None:
        with answering(200, body) as (address, _):
            assert _error(Gateway("p", KEY, address), 1).status == 0

    @pytest.mark.parametrize("body", [b"", b"<h1>Bad gateway</h1>", b"[]", b'{"message": null}', b'"x"', b"\xff"])
    def test_an_error_that_is_none_of_ours_keeps_its_status(self, body: bytes) -> None:
        with answering(502, body) as (address, _):
            assert _error(Gateway("p", KEY, address), 1).status == 502

    def test_a_server_that_repeats_the_key_does_not_get_it_into_the_log(self) -> None:
        with answering(400, b'{"message": "what is %s?"}' % KEY.encode()) as (address, _):
            assert _error(Gateway("p", KEY, address), 1).message == "what is ***?"

    def test_what_is_sent_has_the_key_and_an_empty_object(self) -> None:
        with answering(200, b'{"success": true, "data": {"id": 7}}') as (address, seen):
            assert Gateway("p", KEY, address, is_test=True).subscriptions().cancel(7) == {"id": 7}
        assert (seen[0].path, seen[0].headers["X-ApiKey"]) == ("/sandbox/api/subscription/7/cancel", KEY)
        assert seen[0].headers["Content-Type"] == "application/json"

    def test_no_answer_in_time_is_an_error(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            gateway = Gateway("p", KEY, f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05)
            error = _error(gateway, 1)
        assert error.status == 0
        assert "no answer from http://127.0.0.1" in str(error)

    def test_nobody_there_is_an_error(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        assert _error(Gateway("p", KEY, f"http://127.0.0.1:{port}"), 1).status == 0

    @pytest.mark.parametrize("odd", ["key\nX-Evil: 1", "schlüssel", "key\x00"])
    def test_a_key_that_is_no_header_is_refused_without_being_shown(self, odd: str) -> None:
        with pytest.raises(ValueError, match="private_key has characters") as raised:
            Gateway("p", odd).subscriptions()
        assert odd not in str(raised.value)

    def test_the_key_stays_out_of_every_repr(self) -> None:
        gateway = replace(Gateway("p", KEY), timeout=3.0)
        assert KEY not in repr(gateway.subscriptions())
        assert "timeout=3.0" in repr(gateway.subscriptions())
