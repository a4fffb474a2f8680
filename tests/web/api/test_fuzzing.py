"""Requests made up from the OpenAPI document, fitting and unfitting: answered as the document says,
never by 500.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import httpx
import pytest
import requests
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, reject, seed
from hypothesis import settings as examples
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, Response
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)
from tests import set_back
from tests.lengths import at_length, long, longer
from tests.web.api.conftest import subscribe

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.app import create_app
from paydesk.commands.starting import listen
from paydesk.core.clock import utc_now
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.settings import Settings
from paydesk_client import Gateway
from paydesk_client.parameters import encode_form

CHARGED_BACK = "4000000000000259"
ENOUGH = 10**9
CHECKS = [content_type_conformance, response_headers_conformance, response_schema_conformance]
METHODS = {"get", "post", "put", "patch", "delete", "options", "trace"}
ANY_ID = dict.fromkeys(
    ("payment_id", "subscription_id", "pingback_id", "chargeback_id", "checkout_id", "coupon_id", "item_id"), "1"
)
FORM_TYPE = "application/x-www-form-urlencoded"

USUAL = {
    "merchant_order_id": "order-1",
    "amount": "10.00",
    "currency": "USD",
    "description": "Golden Ticket",
    "success_url": "https://shop.example/thanks",
}
"""What every form needs, so that the other fields are looked at."""

PARCEL = {"status": "order_shipped", "type": "physical", "carrier_type": "DHL", "carrier_tracking_id": "1"}

Ids = Mapping[str, list[str]]


def examined(most: int, test: Callable[[st.DataObject], None]) -> None:
    """Run a test with made-up data, the same at each run."""
    bounded = examples(
        max_examples=most,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    seed(4)(bounded(given(st.data())(test)))()


def exact(body: Any) -> dict[str, Any]:
    """A body's fields, with decimals for floats, which have no agreed text;
    none if it is no object.
    """
    fields: dict[str, Any] = json.loads(json.dumps(body), parse_float=Decimal) if isinstance(body, dict) else {}
    return fields


def in_the_fixed_shape(response: Response | requests.Response | httpx.Response) -> None:
    """An error is a JSON object with exactly the four keys, and its code is the HTTP status
    (interface.md §8.2).
    """
    assert "application/json" in response.headers["content-type"]
    told = response.json()
    assert set(told) == {"success", "type", "message", "code"}
    assert (told["success"], told["type"], told["code"]) == (False, "error", response.status_code)
    assert isinstance(told["message"], str)
    assert told["message"]


def as_promised(case: Case[Any], response: Response | requests.Response) -> None:
    """The answer's status stands in the document by its number, and what is in it fits."""
    status = response.status_code
    assert status < 500, response.text
    assert str(status) in case.operation.definition.raw["responses"], f"{status}: {response.text}"
    if status >= 400:
        in_the_fixed_shape(response)
    case.validate_response(response, checks=CHECKS)


@pytest.fixture
async def service(settings: Settings, bank: Bank) -> AsyncIterator[str]:
    """The web application behind a real server, without limits of calls."""
    app = create_app(settings.model_copy(update={"calls_per_minute": ENOUGH, "forms_per_minute": ENOUGH}))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", server_header=False))
    with listen("127.0.0.1", 0, "PORT") as listener:
        running = asyncio.create_task(server.serve([listener]))
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        await running


@pytest.fixture
async def ids(customers: Any, desk: Desk, shop: Shop) -> Ids:
    """Things that the merchant has, by the name of the path's parameter."""
    await set_back.banks_tell_again(desk.database)
    for number in ("4242424242424242", "5555555555554444", CHARGED_BACK, CHARGED_BACK):
        await customers.buy(number=number)
    subscription = await subscribe(customers)
    while await read_disputes(desk, now=utc_now()):
        pass
    found = {}
    for name in ("payment", "pingback", "chargeback"):
        rows = await desk.database.fetch(f"select id from {name} where merchant_id = $1", shop.merchant_id)
        found[f"{name}_id"] = [str(row["id"]) for row in rows]
    assert all(found.values())
    return {**found, "subscription_id": [str(subscription.id)]}


def fuzz(service: str, ids: Ids, headers: Sequence[Mapping[str, str]], most: int) -> dict[str, set[int]]:
    """Try each call of the document with one of the headers;
    the statuses that each was answered with.
    """
    document = requests.get(f"{service}/api/openapi.json", timeout=30).json()
    for call in (call for calls in document["paths"].values() for call in calls.values()):
        # Else it would leave our key out at times, to see whether that is refused; another test of
        # ours does that.
        del call["security"]
    schema = schemathesis.openapi.from_dict(document)
    answered: dict[str, set[int]] = {}
    with requests.Session() as session:
        for path, method in ((path, method) for path, calls in document["paths"].items() for method in calls):
            operation = schema[path][method.upper()]
            statuses = answered.setdefault(operation.label, set())
            examined(most, attempt(operation, service, session, ids, headers, statuses))
    return answered


def calls_of(operation: APIOperation[Any, Any, Any, Any]) -> st.SearchStrategy[Case[Any]]:
    """Calls that fit the document, and such that do not."""
    kinds = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    return st.one_of([operation.as_strategy(generation_mode=kind) for kind in kinds])


def attempt(
    operation: APIOperation[Any, Any, Any, Any],
    service: str,
    session: requests.Session,
    ids: Ids,
    headers: Sequence[Mapping[str, str]],
    statuses: set[int],
) -> Callable[[st.DataObject], None]:
    """One call, at one of the two bases, with ids that exist as often as with any."""

    cases = calls_of(operation)

    def call(data: st.DataObject) -> None:
        case = data.draw(cases)
        for name in ids.keys() & case.path_parameters.keys():
            if data.draw(st.booleans()):
                case.path_parameters[name] = data.draw(st.sampled_from(ids[name]))
        base = service + data.draw(st.sampled_from(["", "/sandbox"]))
        chosen = dict(data.draw(st.sampled_from(headers)))
        # Moving a test clock may take half a minute.
        response = case.call(base_url=base, session=session, headers=chosen, allow_redirects=False, timeout=120)
        statuses.add(response.status_code)
        as_promised(case, response)

    return call


@long
async def test_every_call_with_a_key_is_answered_as_the_document_says(
    service: str, ids: Ids, merchant: Merchant
) -> None:
    answered = await asyncio.to_thread(fuzz, service, ids, [{"X-ApiKey": merchant.private_key}], at_length(40, 4))
    assert not any(401 in statuses for statuses in answered.values()), answered
    succeeded = {call for call, statuses in answered.items() if 200 in statuses}
    assert len(succeeded) > len(answered) // 2, answered


@longer
async def test_nothing_is_done_or_shown_without_the_right_key(service: str, ids: Ids) -> None:
    keyless = [{}, {"X-ApiKey": ""}, {"X-ApiKey": "guessed"}, {"X-ApiKey": "x" * 5000}]
    answered = await asyncio.to_thread(fuzz, service, ids, keyless, at_length(12, 2))
    for call, statuses in answered.items():
        assert 401 in statuses, call
        # What is wrong with the parameters may be said before the key is looked at.
        assert statuses <= {400, 401}, (call, statuses)


def confirm_deliveries(service: str, gateway: Gateway, payments: list[int], most: int) -> set[int]:
    """Confirm deliveries of real orders, by key, by signature and without both;
    the statuses of the answers.
    """
    operation = schemathesis.openapi.from_url(f"{service}/api/openapi.json")["/api/v1/deliveries"]["POST"]
    cases = calls_of(operation)
    answered: set[int] = set()
    with requests.Session() as session:

        def confirm(data: st.DataObject) -> None:
            case = data.draw(cases)
            body = exact(case.body) | {"payment_order_id": data.draw(st.sampled_from(payments))}
            if data.draw(st.booleans()):
                body |= PARCEL
            proof = data.draw(st.sampled_from(["key", "hash", "none"]))
            headers = {"X-ApiKey": gateway.private_key} if proof == "key" else {}
            try:
                if proof == "hash":
                    body["public_key"] = gateway.public_key
                    body["hash"] = gateway.signature().sign({name: body[name] for name in body.keys() - {"hash"}})
                sent = encode_form(body).encode()
            except ValueError:  # no client could sign or send this
                reject()
            headers["Content-Type"] = FORM_TYPE
            response = session.post(f"{service}/api/v1/deliveries", sent, headers=headers)
            answered.add(response.status_code)
            as_promised(case, response)
            assert proof != "none" or response.status_code in (400, 401, 403)

        examined(most, confirm)
    return answered


@longer
async def test_every_delivery_of_a_real_order_is_answered_as_the_document_says(
    service: str, customers: Any, desk: Desk, merchant: Merchant, gateway: Gateway
) -> None:
    await change_merchant(desk.database, merchant.id, shipped_goods=True)
    for _ in range(3):
        await customers.buy()
    rows = await desk.database.fetch("select id from payment where merchant_id = $1", merchant.id)
    payments = [row["id"] for row in rows]
    answered = await asyncio.to_thread(confirm_deliveries, service, gateway, payments, at_length(60, 10))
    assert {200, 400} <= answered


async def test_other_methods_than_the_documents_are_refused_in_the_fixed_shape(
    service: str, merchant: Merchant
) -> None:
    async with httpx.AsyncClient(base_url=service, headers={"X-ApiKey": merchant.private_key}) as caller:
        document = (await caller.get("/api/openapi.json")).json()
        for path, calls in [*document["paths"].items(), ("/payment/form", {"post": {}})]:
            for method in METHODS - set(calls):
                response = await caller.request(method, path.format_map(ANY_ID), headers={"Accept": "application/json"})
                assert response.status_code == 405, (method, path)
                assert {one.strip().lower() for one in response.headers["allow"].split(",")} >= set(calls)
                in_the_fixed_shape(response)


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/", "/payment/1/1/refund", "/api/v1/payments/1/2", "/api/v1/%00"]
)
async def test_an_address_that_is_none_is_not_found_in_the_fixed_shape(service: str, path: str) -> None:
    async with httpx.AsyncClient(base_url=service) as caller:
        for base in ("", "/sandbox"):
            response = await caller.post(base + path, json={})
            assert response.status_code == 404
            in_the_fixed_shape(response)


def form_document() -> dict[str, Any]:
    """The checkout form as an OpenAPI document (interface.md §2.2, §2.3)."""
    text = {"type": "string"}
    address = {
        "type": "object",
        "properties": {"city": text, "country_code": text, "lines": {"type": "array", "items": text}},
    }
    fields = {
        "merchant_order_id": text | {"minLength": 1, "maxLength": 64},
        "amount": {"type": "string", "pattern": r"^[0-9]{1,5}(\.[0-9]{1,3})?$"},
        "currency": {"type": "string", "enum": ["USD", "EUR", "JPY", "KWD", "XXX"]},
        "description": text | {"minLength": 1, "maxLength": 200},
        "success_url": {"type": "string", "enum": ["https://shop.example/thanks?a=b&c=%20", "shopapp://paid?x=1"]},
    }
    optional = {
        "pingback_url": text | {"format": "uri"},
        "email": text | {"format": "email"},
        "sign_version": {"type": "string", "enum": ["", "v1", "v2"]},
        **dict.fromkeys(("first_name", "last_name", "city", "zip", "module_source"), text),
        "payment_flow": {"type": "string", "enum": ["user_qr"]},
        "recurring_name": text,
        "recurring_sku_id": text,
        "recurring_period": {"type": "string", "pattern": "^[0-9]{1,4}[dwmy]$"},
        "recurring_trial_amount": fields["amount"],
        "recurring_trial_period": {"type": "string", "pattern": "^[0-9]{1,4}[dwmy]$"},
        "recurring_duration": {"type": ["integer", "string"]},
        "shipping_address": address,
        "items": {"type": "array", "items": address},
    }
    body = {"type": "object", "required": sorted(fields), "properties": fields | optional}
    errors = {str(status): {"description": "Refused.", "content": {"application/json": {}}} for status in (400, 403)}
    responses = {
        "200": {"description": "A QR code.", "content": {"application/json": {}}},
        "303": {"description": "The checkout."},
    }
    call = {
        "requestBody": {"required": True, "content": {FORM_TYPE: {"schema": body}}},
        "responses": {**responses, **errors},
    }
    return {"openapi": "3.1.0", "info": {"title": "Form", "version": "1"}, "paths": {"/payment/form": {"post": call}}}


def post_forms(service: str, gateway: Gateway, most: int) -> list[tuple[bool, int]]:
    """Post forms, signed and not; for each whether it was signed, and the status of the answer."""
    operation = schemathesis.openapi.from_dict(form_document())["/payment/form"]["POST"]
    cases = calls_of(operation)
    answered: list[tuple[bool, int]] = []
    with requests.Session() as session:

        def post(data: st.DataObject) -> None:
            case = data.draw(cases)
            fields = {"api_key": gateway.public_key, **exact(case.body), **(USUAL if data.draw(st.booleans()) else {})}
            signing = data.draw(st.booleans())
            try:
                if signing:
                    fields["hash"] = gateway.signature().sign(fields)
                sent = encode_form(fields).encode()
            except ValueError:  # no client could sign or send this
                reject()
            url = service + data.draw(st.sampled_from(["", "/sandbox"])) + "/payment/form"
            headers = {
                "Content-Type": FORM_TYPE,
                "Accept": data.draw(st.sampled_from(["application/json", "text/html"])),
            }
            response = session.post(url, sent, headers=headers, allow_redirects=False)
            answered.append((signing, response.status_code))
            assert response.status_code in (200, 303, 400, 403), response.text
            if headers["Accept"] == "application/json" and response.status_code >= 400:
                in_the_fixed_shape(response)
            elif response.status_code >= 400:
                assert response.headers["content-type"].startswith("text/html")

        examined(most, post)
    return answered


@long
async def test_every_form_is_answered_by_a_checkout_or_by_what_is_wrong_with_it(service: str, gateway: Gateway) -> None:
    answered = await asyncio.to_thread(post_forms, service, gateway, 150)
    assert {status for signed, status in answered if not signed} <= {400, 403}
    assert {303, 400} <= {status for signed, status in answered if signed}
