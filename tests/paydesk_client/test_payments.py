from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest
from tests.servers import answering
from tests.shopfront import buy

from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk_client import ApiError, Gateway


@pytest.fixture
async def payment_id(desk: Desk, shop: Shop) -> int:
    """A payment of 10 USD."""
    return await buy(desk, shop, "A-1")


class TestTheRealService:
    @pytest.mark.parametrize("is_test", [True, False])
    async def test_a_part_and_then_the_rest(
        self, service: str, merchant: Merchant, payment_id: int, is_test: bool
    ) -> None:
        payments = Gateway(merchant.public_key, merchant.private_key, service, is_test).payments()
        first = await asyncio.to_thread(payments.refund, payment_id, Decimal("4.00"))
        assert (first["id"], first["status"]) == (payment_id, "reversal_refunded_partially")
        assert (first["refund_amount"], first["total_refunded_amount"]) == (4, 4)
        rest = await asyncio.to_thread(payments.refund, str(payment_id))
        assert (rest["refund_amount"], rest["status"]) == (6, "reversal_refunded")
        assert rest["reference_id"] != first["reference_id"]

    async def test_the_same_key_moves_money_once(self, service: str, merchant: Merchant, payment_id: int) -> None:
        payments = Gateway(merchant.public_key, merchant.private_key, service).payments()
        first, second = [
            await asyncio.to_thread(payments.refund, payment_id, "4.00", idempotency_key="refund-1") for _ in range(2)
        ]
        assert first == second
        with pytest.raises(ApiError) as raised:
            await asyncio.to_thread(payments.refund, payment_id, "5.00", idempotency_key="refund-1")
        assert raised.value.status == 409

    async def test_errors_say_what_is_wrong(self, service: str, merchant: Merchant, payment_id: int) -> None:
        payments = Gateway(merchant.public_key, merchant.private_key, service).payments()
        for asked, amount, status, message in (
            (payment_id, "10.01", 400, "Invalid requested amount"),
            (payment_id, "", 400, "Invalid requested amount"),
            (2**52, None, 404, f"there is no payment {2**52}"),
            ("../../healthz", None, 404, ""),
        ):
            with pytest.raises(ApiError) as raised:
                await asyncio.to_thread(payments.refund, asked, amount)
            assert raised.value.status == status
            assert message in raised.value.message


class TestWhatIsSent:
    @pytest.mark.parametrize(
        ("amount", "fields"),
        [
            (None, None),
            ("4.00", {"amount": "4.00"}),
            (4, {"amount": "4"}),
            (Decimal("4.10"), {"amount": "4.10"}),
            (Decimal("1E+2"), {"amount": "100"}),
        ],
    )
    def test_an_amount_is_sent_as_text_and_none_is_left_out(self, amount: Any, fields: dict[str, str] | None) -> None:
        with answering() as (address, seen):
            gateway = Gateway("p", "private", address, is_test=True)
            assert gateway.payments().refund(7, amount, idempotency_key="k-1") == {"id": 7}
        (asked,) = seen
        path, headers, body = asked.path, asked.headers, asked.body
        assert (path, headers["X-ApiKey"], headers["Idempotency-Key"]) == (
            "/sandbox/payment/7/refund",
            "private",
            "k-1",
        )
        assert (json.loads(body) if body else None) == fields

    def test_without_a_key_each_call_draws_one(self) -> None:
        with answering() as (address, seen):
            for _ in range(2):
                Gateway("p", "private", address).payments().refund(7)
        first, second = (asked.headers["Idempotency-Key"] for asked in seen)
        assert first != second
        assert {len(first), len(second)} == {36}

    @pytest.mark.parametrize("key", [None, "r-1"])
    def test_an_error_has_the_key_under_which_to_call_again(self, key: str | None) -> None:
        payments = Gateway("p", "private", "http://127.0.0.1:9").payments()
        with pytest.raises(ApiError) as raised:
            payments.refund(7, idempotency_key=key)
        assert raised.value.status == 0
        assert raised.value.idempotency_key
        assert key in (None, raised.value.idempotency_key)

    @pytest.mark.parametrize("amount", [4.0, True, b"4", ["4"], {"amount": 4}])
    def test_an_amount_of_another_type_is_refused_before_anything_is_sent(self, amount: Any) -> None:
        with pytest.raises(TypeError, match="give it as text or Decimal"):
            Gateway("p", "private", "http://127.0.0.1:9").payments().refund(7, amount)

    @pytest.mark.parametrize("key", ["", "a b", "x" * 256, "caf\u00e9", "k\r\nX-Evil: 1"])
    def test_a_key_that_no_header_can_carry_is_refused_before_anything_is_sent(self, key: str) -> None:
        with pytest.raises(ValueError, match="idempotency_key needs"):
            Gateway("p", "private", "http://127.0.0.1:9").payments().refund(7, idempotency_key=key)
