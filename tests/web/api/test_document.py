from __future__ import annotations

import re
from typing import Any

import httpx
import msgspec
import pytest
from tests.web.api.conftest import subscribe

from paydesk.web.api import shapes

CALLS = {
    ("post", "/api/v1/charges"),
    ("post", "/api/v1/checkouts"),
    ("get", "/api/v1/checkouts/{checkout_id}"),
    ("post", "/api/v1/coupons"),
    ("get", "/api/v1/coupons"),
    ("get", "/api/v1/coupons/{coupon_id}"),
    ("post", "/api/v1/coupons/{coupon_id}/switch_off"),
    ("get", "/api/v1/instruments"),
    ("get", "/api/v1/payments"),
    ("get", "/api/v1/payments/{payment_id}"),
    ("get", "/api/v1/subscriptions"),
    ("get", "/api/v1/subscriptions/{subscription_id}"),
    ("get", "/api/v1/pingbacks"),
    ("get", "/api/v1/pingbacks/{pingback_id}"),
    ("post", "/api/v1/pingbacks/{pingback_id}/resend"),
    ("post", "/api/subscription/{subscription_id}/cancel"),
    *(
        ("post", f"/api/v1/subscriptions/{{subscription_id}}/{wish}")
        for wish in ("change", "cancel", "undo", "pause", "resume")
    ),
    ("get", "/api/v1/subscriptions/{subscription_id}/items"),
    ("post", "/api/v1/subscriptions/{subscription_id}/items"),
    ("post", "/api/v1/subscriptions/{subscription_id}/items/{item_id}/take_back"),
    ("post", "/api/v1/test_clock"),
    ("get", "/api/v1/balance"),
    ("get", "/api/v1/ledger"),
    ("get", "/api/v1/payouts"),
    ("get", "/api/v1/chargebacks"),
    ("get", "/api/v1/chargebacks/{chargeback_id}"),
    ("post", "/api/v1/chargebacks/{chargeback_id}/evidence"),
    ("post", "/payment/{payment_id}/refund"),
    ("post", "/api/v1/deliveries"),
}
PARAMETERS = {"limit", "cursor", "from", "to", "merchant_order_id", "email", "status"}


@pytest.fixture
async def document(web: httpx.AsyncClient) -> dict[str, Any]:
    answered = await web.get("/api/openapi.json")
    assert answered.status_code == 200
    found: dict[str, Any] = answered.json()
    return found


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if "$ref" in part else set()
        return own.union(*(references(inner) for inner in part.values()))
    return set().union(*(references(inner) for inner in part)) if isinstance(part, list) else set()


async def test_the_document_has_the_calls_with_a_key_and_nothing_else(document: dict[str, Any]) -> None:
    found = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert found == CALLS
    for path, methods in document["paths"].items():
        # A delivery may be signed in its body instead.
        unsigned: list[dict[str, Any]] = [{}] if path == "/api/v1/deliveries" else []
        for call in methods.values():
            assert call["security"] == [{"Private key": []}, *unsigned]
            assert {"200", "400", "401", "429", "default"} <= set(call["responses"])
            assert "422" not in call["responses"]
            assert call["description"]
    scheme = document["components"]["securitySchemes"]["Private key"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "X-ApiKey")
    assert [server["url"] for server in document["servers"]] == ["http://pay.test", "http://pay.test/sandbox"]


async def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]


async def test_lists_name_their_parameters(document: dict[str, Any]) -> None:
    for path in ("/api/v1/payments", "/api/v1/subscriptions", "/api/v1/pingbacks"):
        named = {one["name"] for one in document["paths"][path]["get"]["parameters"]}
        assert named - {"subscription_id"} == PARAMETERS
    assert '"null"' not in str(document["paths"])


async def test_amounts_are_numbers_and_prices_are_text(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["PaymentOrder"]["properties"]["paid_amount"]["type"] == "number"
    assert schemas["Payment"]["properties"]["amount"]["type"] == "number"
    assert schemas["Subscription"]["properties"]["price"]["type"] == "string"


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/api/v1/payments", shapes.PaymentList),
        ("/api/v1/payments/{payment}", shapes.OnePayment),
        ("/api/v1/subscriptions", shapes.SubscriptionList),
        ("/api/v1/subscriptions/{subscription}", shapes.OneSubscription),
        ("/api/v1/pingbacks", shapes.PingbackList),
        ("/api/v1/pingbacks/{pingback}", shapes.OnePingback),
    ],
)
async def test_answers_have_the_shapes_that_the_document_promises(
    server: Any, customers: Any, path: str, shape: type[Any]
) -> None:
    subscription = await subscribe(customers)
    (pingback,) = (await server.get("/api/v1/pingbacks"))["data"]
    ids = {"payment": subscription.init_payment_id, "subscription": subscription.id, "pingback": pingback["id"]}
    text = (await server.call("GET", path.format(**ids))).content
    read = msgspec.json.decode(text, type=shape)
    assert msgspec.json.Encoder(decimal_format="number").encode(read) == text
    assert read.success is True


class TestThePage:
    async def test_it_shows_every_call_and_every_shape(self, web: httpx.AsyncClient, document: dict[str, Any]) -> None:
        answered = await web.get("/api/docs")
        assert answered.status_code == 200
        assert answered.headers["content-type"].startswith("text/html")
        for _, path in CALLS:
            assert path in answered.text
        assert "Body, JSON or form-encoded" in answered.text
        for name in document["components"]["schemas"]:
            assert f'id="{name}"' in answered.text
        anchors = set(re.findall(r'href="#([\w-]+)"', answered.text))
        assert anchors <= set(re.findall(r'id="([\w-]+)"', answered.text))

    async def test_it_needs_nobody_else_and_no_script(self, web: httpx.AsyncClient) -> None:
        answered = await web.get("/api/docs")
        assert "<script" not in answered.text
        assert "default-src 'none'" in answered.headers["content-security-policy"]
        for address in re.findall(r'(?:src|href)="([^"#]+)', answered.text):
            assert address.startswith(("/static/", "/docs", "/account", "data:", "openapi.json"))
        (style,) = re.findall(r'href="(/static/[^"]+)"', answered.text)
        assert (await web.get(style)).status_code == 200

    async def test_it_opens_below_the_sandbox_too(self, web: httpx.AsyncClient) -> None:
        for path in ("/sandbox/api/docs", "/sandbox/api/openapi.json"):
            assert (await web.get(path)).status_code == 200
