"""What a key pair may do is looked at wherever it is used."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests import breaking

from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant
from paydesk_client.signature import sign


async def narrow(database: Database, merchant: Merchant, *scopes: str) -> None:
    await breaking.say(database, "merchant_key", {"merchant_id": merchant.id}, scopes=list(scopes))


READS = ("/api/v1/payments", "/api/v1/subscriptions", "/api/v1/pingbacks", "/api/v1/chargebacks", "/api/v1/balance")
CHANGES = (
    "/payment/1/refund",
    "/api/subscription/1/cancel",
    "/api/v1/deliveries",
    "/api/v1/pingbacks/1/resend",
    "/api/v1/chargebacks/1/evidence",
    "/sandbox/api/v1/test_clock",
)


@pytest.mark.parametrize("base", ["", "/sandbox"])
async def test_a_key_that_only_reads_changes_nothing(
    server: Any, merchant: Merchant, database: Database, base: str
) -> None:
    await narrow(database, merchant, "read", "sign")
    for path in READS:
        assert (await server.call("GET", base + path)).status_code == 200, path
    for path in CHANGES:
        refused = await server.call("POST", path if path.startswith("/sandbox") else base + path, json={})
        assert refused.status_code == 403, (path, refused.text)
        assert "lacks the scope move (it has: sign, read)" in refused.json()["message"]


async def test_a_key_that_only_signs_reads_nothing(server: Any, merchant: Merchant, database: Database) -> None:
    await narrow(database, merchant, "sign")
    for path in READS:
        assert (await server.call("GET", path)).status_code == 403, path


async def test_a_hash_in_the_body_confirms_a_delivery_with_a_key_that_moves_money_alone(
    web: httpx.AsyncClient, merchant: Merchant, database: Database
) -> None:
    body = {"public_key": merchant.public_key, "sign_version": "v2", "status": "delivered", "payment_order_id": "1"}
    signed = {**body, "hash": sign(body, merchant.private_key, "v2")}
    assert (await web.post("/api/v1/deliveries", json=signed)).status_code == 404
    await narrow(database, merchant, "sign", "read")
    refused = await web.post("/api/v1/deliveries", json=signed)
    assert (refused.status_code, "scope move" in refused.json()["message"]) == (403, True)


async def test_a_form_needs_a_key_that_signs(
    web: httpx.AsyncClient, signed_form: Any, merchant: Merchant, database: Database
) -> None:
    assert (await web.post("/payment/form", data=signed_form())).status_code == 303
    await narrow(database, merchant, "read", "move")
    refused = await web.post("/payment/form", data=signed_form())
    assert (refused.status_code, "scope sign" in refused.text) == (403, True)
