from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from tests.processes import free_port
from tests.servers import answering
from tests.shopfront import subscribe

from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk_client import ApiError, Gateway

KEY = "private-key-of-the-shop"


@pytest.fixture
async def subscription_id(desk: Desk, shop: Shop) -> int:
    """A running subscription of the merchant."""
    return (await subscribe(desk, shop)).id


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

    async def test_it_ends_later_is_kept_paused_and_resumed(
        self, service: str, merchant: Merchant, subscription_id: int
    ) -> None:
        subscriptions = Gateway(merchant.public_key, merchant.private_key, service).subscriptions()
        seen = await asyncio.to_thread(subscriptions.cancel_later, subscription_id, preview=True)
        ending = await asyncio.to_thread(subscriptions.cancel_later, subscription_id, idempotency_key="leave-1")
        again = await asyncio.to_thread(subscriptions.cancel_later, subscription_id, idempotency_key="leave-1")
        assert ending == again
        assert (seen["preview"], ending["preview"]) == (True, False)
        assert ending["change_request"]["at"] == seen["change_request"]["at"]
        kept = await asyncio.to_thread(subscriptions.undo, subscription_id)
        assert kept["date_next"] == ending["change_request"]["at"]
        until = datetime.fromtimestamp(kept["date_next"], UTC)
        paused = await asyncio.to_thread(subscriptions.pause, subscription_id, until)
        assert paused["change_request"]["at"] == kept["date_next"]
        resumed = await asyncio.to_thread(subscriptions.resume, subscription_id)
        assert (resumed["change_request"], resumed["next_charge_amount"]) == (None, "10.00")
        changed = await asyncio.to_thread(
            subscriptions.change, subscription_id, sku_id="pro", name="Pro", price=Decimal("30.00"), period="1y"
        )
        assert (changed["price"], changed["change_request"]["price"]) == ("10.00", "30.00")
        assert (changed["next_charge_amount"], changed["replaced"]) == ("30.00", None)
        at_once = await asyncio.to_thread(subscriptions.change, subscription_id, price="25.00", now=True)
        assert (at_once["price"], at_once["next_charge_amount"], at_once["charged_now"]) == ("25.00", "25.00", "0.00")
        assert at_once["replaced"] == changed["change_request"]
        now: dict[str, Any] = {
            "price": "50.00",
            "now": True,
            "proration_behavior": "charge_now",
            "idempotency_key": "upgrade-1",
        }
        first, again = [await asyncio.to_thread(subscriptions.change, subscription_id, **now) for _ in range(2)]
        assert (first["price"], first["charge"]["status"], first == again) == ("50.00", "successful", True)
        with pytest.raises(ValueError, match="time zone"):
            subscriptions.pause(subscription_id, datetime(2030, 1, 1))

    async def test_a_refusal_has_the_key_that_was_drawn(self, service: str, merchant: Merchant) -> None:
        subscriptions = Gateway(merchant.public_key, merchant.private_key, service).subscriptions()
        with pytest.raises(ApiError) as raised:
            await asyncio.to_thread(subscriptions.undo, 18)
        assert raised.value.status == 404
        assert raised.value.idempotency_key

    async def test_an_unknown_one_is_told(self, service: str, merchant: Merchant) -> None:
        gateway = Gateway(merchant.public_key, merchant.private_key, service)
        for unknown in (2**52, "../../healthz", "1/cancel?x="):
            with pytest.raises(ApiError) as raised:
                await cancel(gateway, unknown)
            assert raised.value.status == 404
        assert await asyncio.to_thread(lambda: "there is no subscription" in str(_error(gateway, 2**52)))

    async def test_something_is_charged_once_and_taken_back(
        self, service: str, merchant: Merchant, subscription_id: int
    ) -> None:
        subscriptions = Gateway(merchant.public_key, merchant.private_key, service, is_test=True).subscriptions()
        added = await asyncio.to_thread(subscriptions.add_item, subscription_id, Decimal("5.00"), "Set-up")
        assert (added["item"]["status"], added["next_charge_amount"]) == ("waiting", "15.00")
        back = await asyncio.to_thread(subscriptions.take_back_item, subscription_id, added["item"]["id"])
        assert (back["item"]["status"], back["next_charge_amount"]) == ("taken_back", "10.00")

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
        assert _error(Gateway("p", KEY, f"http://127.0.0.1:{free_port()}"), 1).status == 0

    @pytest.mark.parametrize("odd", ["key\nX-Evil: 1", "schlüssel", "key\x00"])
    def test_a_key_that_is_no_header_is_refused_without_being_shown(self, odd: str) -> None:
        with pytest.raises(ValueError, match="private_key has characters") as raised:
            Gateway("p", odd).subscriptions()
        assert odd not in str(raised.value)

    def test_the_key_stays_out_of_every_repr(self) -> None:
        gateway = replace(Gateway("p", KEY), timeout=3.0)
        assert KEY not in repr(gateway.subscriptions())
        assert "timeout=3.0" in repr(gateway.subscriptions())
