from __future__ import annotations

import asyncio
import hmac
import json
import secrets
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import set_back
from tests.shopfront import ships
from tests.web.api.conftest import subscribe

from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.merchants.ignored_fields import SentWith, ignored_fields
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.web.api import delivery_shapes, shapes
from paydesk_client.signature import Version, canonical_string, encode_form, sign

PATH = "/api/v1/deliveries"
SHIPPED: dict[str, Any] = {
    "type": "physical",
    "status": "order_shipped",
    "refundable": True,
    "notify_user": True,
    "product_description": "A stoneware mug",
    "details": "N/A",
    "reason": "N/A",
    "estimated_delivery_datetime": "2020-02-14 11:41:14 +0530",
    "carrier_tracking_id": "00340434161094021501",
    "carrier_type": "DHL",
    "carrier_tracking_url": "N/A",
    "attachments": ["N/A"],
    "shipping_address": {
        "country_code": "GB", "city": "Köln ~ & 'a+b'", "zip": "N/A", "state": "N/A", "street": "1 Main St",
        "phone": "+44 20", "first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.com",
    },
}  # fmt: skip
Charges = Callable[[], list[Standing]]


@pytest.fixture(autouse=True)
async def _ships(database: Database, shop: Shop) -> None:
    await ships(database, shop)


@pytest.fixture
async def order(customers: Any, database: Database, merchant: Merchant) -> tuple[int, str]:
    """The payment's id and the shop's reference of an order that waits to be shipped."""
    reference = f"order-{secrets.token_hex(4)}"
    await customers.buy(reference)
    found = await database.fetchval(
        "select id from payment where merchant_id = $1 and merchant_order_id = $2", merchant.id, reference
    )
    return found, reference


def is_refusal(response: httpx.Response, status: int, words: str = "") -> None:
    body = response.json()
    assert response.status_code == status, response.text
    assert set(body) == {"success", "type", "message", "code"}
    assert (body["success"], body["type"], body["code"]) == (False, "error", status)
    assert words in body["message"], body["message"]


def signed(merchant: Merchant, fields: dict[str, Any], version: Version | None = "v2", **more: Any) -> dict[str, Any]:
    body = {**fields, "public_key": merchant.public_key, **({"sign_version": version} if version else {}), **more}
    return {**body, "hash": sign(body, merchant.private_key, version or "v1")}


async def state(database: Database, payment_id: int) -> str:
    return str(await database.fetchval("select state from payment where id = $1", payment_id))


async def nothing_happened(database: Database, payment_id: int) -> None:
    assert await state(database, payment_id) == "authorized"
    for table in ("delivery", "movement"):
        assert not await database.fetchval(f"select count(*) from {table} where payment_id = $1", payment_id)


def form(fields: dict[str, Any]) -> dict[str, Any]:
    return {"content": encode_form(fields), "headers": {"Content-Type": "application/x-www-form-urlencoded"}}


class TestConfirming:
    @pytest.mark.parametrize("encoded", ["json", "form"])
    async def test_a_shipment_takes_the_money(
        self, server: Any, order: tuple[int, str], encoded: str, charges: Charges
    ) -> None:
        payment_id, reference = order
        assert charges() == []
        fields = {**SHIPPED, "payment_order_id": payment_id, "merchant_reference_id": reference}
        sent = {"json": fields} if encoded == "json" else form(fields)
        answered = await server.call("POST", PATH, **sent)
        assert answered.status_code == 200, answered.text
        body = answered.json()
        data = body["data"]
        assert (body["success"], data["status"]) == (True, "captured")
        assert (data["payment_order_id"], data["merchant_reference_id"]) == order
        assert [one.net for one in charges()] == [10]
        shown = (await server.get(f"/api/v1/payments/{payment_id}"))["data"]
        assert (shown["captured"], shown["payment_order"]["status"]) == (True, "successful")
        assert shown["delivery_status"] == "order_shipped"
        (line,) = shown["deliveries"]
        assert line == {
            "id": data["id"],
            "status": "order_shipped",
            "type": "physical",
            "carrier_type": "DHL",
            "carrier_tracking_id": "00340434161094021501",
            "carrier_tracking_url": (
                "https://www.dhl.com/global-en/home/tracking.html?tracking-id=00340434161094021501"
            ),
            "refundable": True,
            "notify_user": True,
            "product_description": "A stoneware mug",
            "details": "",
            "reason": "",
            "estimated_delivery": 1581660674,
            "attachments": [],
            "shipping_address": {key: value for key, value in SHIPPED["shipping_address"].items() if value != "N/A"},
            "created_at": data["created_at"],
        }

    async def test_the_answers_have_the_shapes_that_the_document_promises(
        self, server: Any, order: tuple[int, str]
    ) -> None:
        answered = await server.call("POST", PATH, json={**SHIPPED, "payment_order_id": order[0]})
        encoder = msgspec.json.Encoder(decimal_format="number")
        read = msgspec.json.decode(answered.content, type=delivery_shapes.OneDelivery)
        assert encoder.encode(read) == answered.content
        shown = (await server.call("GET", f"/api/v1/payments/{order[0]}")).content
        assert encoder.encode(msgspec.json.decode(shown, type=shapes.OnePayment)) == shown

    async def test_before_it_ships_an_order_is_successful_and_not_captured(
        self, server: Any, order: tuple[int, str]
    ) -> None:
        shown = (await server.get(f"/api/v1/payments/{order[0]}"))["data"]
        assert (shown["payment_order"]["status"], shown["captured"]) == ("successful", False)
        assert (shown["delivery_status"], shown["deliveries"]) == ("", [])

    async def test_the_timeline_grows(self, server: Any, order: tuple[int, str]) -> None:
        for status in ("order_placed", "order_shipped", "delivered"):
            body = {**SHIPPED, "payment_order_id": order[0], "status": status}
            assert (await server.call("POST", PATH, json=body)).status_code == 200
        shown = (await server.get(f"/api/v1/payments/{order[0]}"))["data"]
        assert [one["status"] for one in shown["deliveries"]] == ["order_placed", "order_shipped", "delivered"]
        assert shown["delivery_status"] == "delivered"

    async def test_sent_again_and_at_once_it_has_the_same_answer(
        self, server: Any, order: tuple[int, str], charges: Charges
    ) -> None:
        body = {**SHIPPED, "payment_order_id": order[0]}
        answers = await asyncio.gather(*(server.call("POST", PATH, json=body) for _ in range(8)))
        later = await server.call("POST", PATH, **form(body))
        assert {one.content for one in (*answers, later)} == {answers[0].content}
        assert {one.status_code for one in answers} == {200}
        assert [one.net for one in charges()] == [10]

    async def test_below_the_sandbox_it_is_the_same(self, server: Any, order: tuple[int, str]) -> None:
        answered = await server.call("POST", f"/sandbox{PATH}", json={**SHIPPED, "payment_order_id": order[0]})
        assert answered.status_code == 200

    async def test_an_idempotency_key_belongs_to_one_confirmation(self, server: Any, order: tuple[int, str]) -> None:
        body, headers = {**SHIPPED, "payment_order_id": order[0]}, {"Idempotency-Key": secrets.token_hex(8)}
        first = await server.call("POST", PATH, json=body, headers=headers)
        again = await server.call("POST", PATH, json=body, headers=headers)
        assert (again.status_code, again.content) == (200, first.content)
        assert again.headers["Idempotent-Replayed"] == "true"
        is_refusal(await server.call("POST", PATH, json={**body, "details": "x"}, headers=headers), 409)

    async def test_a_held_digital_order_is_taken_when_it_is_delivered(
        self, server: Any, order: tuple[int, str]
    ) -> None:
        body = {"payment_order_id": order[0], "type": "digital", "status": "delivered"}
        assert (await server.call("POST", PATH, json=body)).json()["data"]["status"] == "captured"

    async def test_an_order_that_was_taken_at_once_is_just_recorded(self, server: Any, customers: Any) -> None:
        subscription = await subscribe(customers)
        body = {"payment_order_id": subscription.init_payment_id, "type": "digital", "status": "delivered"}
        assert (await server.call("POST", PATH, json=body)).json()["data"]["status"] == "recorded"


class TestSigning:
    @pytest.mark.parametrize("version", ["v1", "v2", None])
    @pytest.mark.parametrize("encoded", ["json", "form"])
    async def test_a_signed_body_needs_no_header(
        self, web: httpx.AsyncClient, merchant: Merchant, order: tuple[int, str], version: Any, encoded: str
    ) -> None:
        fields = {**SHIPPED, "refundable": "true", "notify_user": "false", "payment_order_id": str(order[0])}
        body = signed(merchant, fields, version)
        answered = await web.post(PATH, **({"json": body} if encoded == "json" else form(body)))
        assert answered.status_code == 200, answered.text
        assert answered.json()["data"]["status"] == "captured"

    async def test_json_values_are_signed_as_php_writes_them(
        self, web: httpx.AsyncClient, merchant: Merchant, order: tuple[int, str]
    ) -> None:
        fields = {
            **SHIPPED,
            "payment_order_id": order[0],
            "refundable": False,
            "reason": None,
            "attachments": [1, True],
        }
        body = signed(merchant, fields)
        text = json.dumps({**body, "amount": 0}).replace('"amount": 0', '"amount": 10.0')
        as_sent = {**body, "amount": "10.0"}
        as_sent.pop("hash")
        text = text.replace(body["hash"], sign(as_sent, merchant.private_key, "v2"))
        answered = await web.post(PATH, content=text, headers={"Content-Type": "application/json"})
        assert answered.status_code == 200, answered.text

    async def test_a_wrong_hash_is_forbidden_and_changes_nothing(
        self, web: httpx.AsyncClient, merchant: Merchant, order: tuple[int, str], database: Database
    ) -> None:
        good = signed(merchant, {**SHIPPED, "payment_order_id": order[0]})
        for bad in (
            {**good, "hash": "0" * 64},
            {**good, "carrier_tracking_id": "another"},
            {**good, "shipping_address": {**good["shipping_address"], "city": "Elsewhere"}},
            {**good, "sign_version": "v1"},
            {**good, "one": "more"},
            {**good, "hash": "schön"},
        ):
            is_refusal(await web.post(PATH, json=bad), 403, "hash is wrong")
            await nothing_happened(database, order[0])

    async def test_the_hash_of_a_form_confirms_no_delivery(
        self, web: httpx.AsyncClient, merchant: Merchant, order: tuple[int, str], database: Database
    ) -> None:
        """A shop without a guard has signed a customer's text;
        he joins the same string to a delivery.
        """
        told: dict[str, Any] = {
            "carrier_tracking_id": "1", "carrier_tracking_url": "https://evil.example/", "carrier_type": "Post",
            "payment_order_id": str(order[0]), "public_key": merchant.public_key, "sign_version": "v2",
            "status": "order_shipped",
        }  # fmt: skip
        form: dict[str, Any] = {
            "amount": "5.00", "api_key": merchant.public_key, "currency": "EUR", "merchant_order_id": "att-1",
            "description": "Gift;" + ";".join(f"{name}={value}" for name, value in told.items()),
            "sign_version": "v2", "success_url": "https://shop.example/t",
        }  # fmt: skip
        string = canonical_string(form, "v2")
        given_hash = hmac.new(merchant.private_key.encode(), string.encode(), sha256).hexdigest()
        before = {name: form[name] for name in ("amount", "api_key", "currency")}
        after = {name: form[name] for name in ("merchant_order_id", "sign_version", "success_url")}
        nested: dict[str, Any] = {"a": {**before, "description": "Gift"}, **told, "z": after}
        assert canonical_string(nested, "v2") == string
        for body in (nested, {**before, "description": "Gift", **told, **after}, {**form, **told}):
            answer = await web.post(PATH, json={**body, "hash": given_hash})
            assert answer.status_code in (400, 403), answer.text
            await nothing_happened(database, order[0])

    async def test_another_merchants_signature_finds_nothing(
        self, web: httpx.AsyncClient, database: Database, vault: Vault, order: tuple[int, str], merchant: Merchant
    ) -> None:
        thief = await create_merchant(database, vault, name="Thief", email="t@shop.example", now=utc_now())
        body = {**SHIPPED, "payment_order_id": order[0]}
        is_refusal(await web.post(PATH, json=signed(thief, body)), 404, "there is no payment")
        is_refusal(await web.post(PATH, json={**signed(thief, body), "public_key": merchant.public_key}), 403)
        headers = {"X-ApiKey": thief.private_key}
        is_refusal(await web.post(PATH, json=body, headers=headers), 404)
        reference = {**SHIPPED, "merchant_reference_id": order[1]}
        is_refusal(await web.post(PATH, json=reference, headers=headers), 404)
        await nothing_happened(database, order[0])

    async def test_who_does_not_say_who_they_are_is_told_how(
        self, web: httpx.AsyncClient, merchant: Merchant, order: tuple[int, str], database: Database
    ) -> None:
        body = {**SHIPPED, "payment_order_id": order[0]}
        good = signed(merchant, body)
        for unknown in (
            {},
            body,
            {**good, "hash": ""},
            {**good, "hash": ["a"]},
            {**good, "public_key": None},
            {**good, "public_key": {"a": "b"}},
        ):
            is_refusal(await web.post(PATH, json=unknown), 401, "send your private key in the header X-ApiKey, or sign")
        for key in ("nobody", "a\x00b", merchant.private_key, "ü" * 5000):
            is_refusal(await web.post(PATH, json={**good, "public_key": key}), 401, "public_key is wrong")
        is_refusal(await web.post(PATH, json=good, headers={"X-ApiKey": "wrong"}), 401, "X-ApiKey is wrong")
        is_refusal(await web.post(PATH, json=signed(merchant, body, sign_version="v3")), 400, "sign_version")
        await nothing_happened(database, order[0])

    async def test_signed_calls_count_against_the_limit(
        self, open_web: Any, merchant: Merchant, order: tuple[int, str]
    ) -> None:
        web = await open_web(calls_per_minute=2)
        body = signed(merchant, {"payment_order_id": order[0], "status": "order_placed"})
        # Of more than twice as many one minute has too many, though it ends amid them.
        statuses = [(await web.post(PATH, json=body)).status_code for _ in range(5)]
        assert 429 in statuses


class TestRefusals:
    @pytest.mark.parametrize(
        ("changed", "status", "words"),
        [
            ({"payment_order_id": 2**52}, 404, "there is no payment"),
            ({"payment_order_id": None, "merchant_reference_id": "nobody's"}, 404, "there is no order"),
            ({"payment_order_id": None}, 400, "payment_order_id is missing"),
            ({"payment_order_id": "1e9"}, 400, "is no id"),
            ({"merchant_reference_id": "another"}, 400, "don't belong together"),
            ({"status": "shipped"}, 400, "expected order_placed, order_shipped, delivered"),
            ({"status": None}, 400, "status is missing"),
            ({"type": "virtual"}, 400, "expected physical, digital"),
            ({"carrier_tracking_id": "N/A"}, 400, "carrier_tracking_id is missing"),
            ({"carrier_type": ""}, 400, "carrier_type is missing"),
            ({"carrier_type": "My cousin"}, 400, "carrier_tracking_url is missing"),
            ({"carrier_tracking_url": "javascript:alert(1)"}, 400, "absolute http or https URL"),
            ({"amount": "4.00"}, 400, "a partial shipment can't be confirmed"),
            ({"quantity": 0.5}, 400, "a partial shipment can't be confirmed"),
            ({"details": "\x00"}, 400, "control character"),
            ({"shipping_address": ["a"]}, 400, "shipping_address"),
        ],
    )
    async def test_each_is_told_and_changes_nothing(
        self,
        server: Any,
        order: tuple[int, str],
        database: Database,
        changed: dict[str, Any],
        status: int,
        words: str,
    ) -> None:
        body = {**SHIPPED, "payment_order_id": order[0], **changed}
        is_refusal(await server.call("POST", PATH, json=body), status, words)
        await nothing_happened(database, order[0])

    async def test_after_the_void(self, server: Any, order: tuple[int, str], desk: Any, merchant: Merchant) -> None:
        now = utc_now()
        await act_on_due(desk, real_now=now, merchant_id=merchant.id, at=now + timedelta(days=7))
        answered = await server.call("POST", PATH, json={**SHIPPED, "payment_order_id": order[0]})
        is_refusal(answered, 409, "was voided")
        assert (await server.get(f"/api/v1/payments/{order[0]}"))["data"]["deliveries"] == []

    async def test_the_other_side_is_another_shop(
        self, server: Any, order: tuple[int, str], database: Database, merchant: Merchant
    ) -> None:
        await set_back.went_live(database, merchant.id)
        body = {**SHIPPED, "payment_order_id": order[0]}
        is_refusal(await server.call("POST", PATH, json=body), 404)
        assert (await server.call("POST", f"/sandbox{PATH}", json=body)).status_code == 200


class TestHostileBodies:
    @pytest.mark.parametrize(
        "body",
        [
            b"\xff", b"[1]", b'"x"', b"null", b"{", b'{"status": NaN}', b'{"status": 1e999}', b'{"a": "\\ud800"}',
            b"[" * 10_000, b'{"a":' * 3000 + b"1" + b"}" * 3000, b'{"a":[[[[[[[["b"]]]]]]]]}',
            json.dumps({f"f{number}": 1 for number in range(300)}).encode(),
        ],
    )  # fmt: skip
    async def test_what_is_no_confirmation(self, server: Any, body: bytes) -> None:
        is_refusal(await server.call("POST", PATH, content=body, headers={"Content-Type": "application/json"}), 400)

    async def test_too_large_a_body(self, server: Any) -> None:
        is_refusal(await server.call("POST", PATH, content=b" " * 70_000), 413)

    @pytest.mark.parametrize("body", ["a=1&a=2", "a[b=1", "=1", "a=%ff", "a=1&a[b]=2"])
    async def test_an_ambiguous_form(self, server: Any, body: str) -> None:
        sent = {"content": body, "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
        is_refusal(await server.call("POST", PATH, **sent), 400)

    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
    async def test_other_methods(self, server: Any, method: str) -> None:
        is_refusal(await server.call(method, PATH), 405)

    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(fields=st.dictionaries(
        st.sampled_from([*SHIPPED, "payment_order_id", "merchant_reference_id", "amount", "hash", "public_key"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=30),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
            max_leaves=8,
        ),
    ))  # fmt: skip
    async def test_whatever_is_sent_is_answered_in_the_fixed_shape(
        self, server: Any, merchant: Merchant, fields: dict[str, Any]
    ) -> None:
        for headers in ({}, {"X-ApiKey": ""}):
            body = json.dumps({"public_key": merchant.public_key, **fields}).encode()
            answered = await server.call("POST", PATH, content=body, headers=headers)
            assert 400 <= answered.status_code < 500, answered.text
            assert answered.json()["code"] == answered.status_code


async def test_unknown_fields_are_ignored_and_their_names_shown(
    server: Any, order: tuple[int, str], database: Database, merchant: Merchant
) -> None:
    address = {**SHIPPED["shipping_address"], "floor": "3"}
    more = {"payment_order_id": order[0], "carrier_name": "DHL", "shipping_address": address}
    answered = await server.call("POST", PATH, content=json.dumps({**SHIPPED, **more}))
    assert answered.status_code == 200, answered.text
    found = await ignored_fields(database, Shop(merchant.id, False))
    assert {one.sent_with for one in found} == {SentWith.DELIVERY}
    assert sorted(one.name for one in found) == [
        "carrier_name",
        "shipping_address[floor]",
    ]
