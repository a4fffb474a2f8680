"""The OpenAPI document of the API, made from its routes and from the types of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from paydesk.web.api.answers import REFERENCE
from paydesk.web.api.balance_shapes import BALANCE_ANSWERS
from paydesk.web.api.charges import CHARGE_ANSWERS
from paydesk.web.api.checkouts import CHECKOUT_ANSWERS
from paydesk.web.api.coupons import COUPON_ANSWERS
from paydesk.web.api.delivery_shapes import DELIVERY_ANSWERS
from paydesk.web.api.refund_shapes import REFUND_ANSWERS
from paydesk.web.api.shapes import ANSWERS
from paydesk.web.api.subscription_change_shapes import CHANGE_ANSWERS
from paydesk.web.api.subscription_items import ITEM_ANSWERS

_SHAPES = (
    *ANSWERS,
    *DELIVERY_ANSWERS,
    *REFUND_ANSWERS,
    *CHARGE_ANSWERS,
    *CHECKOUT_ANSWERS,
    *COUPON_ANSWERS,
    *CHANGE_ANSWERS,
    *ITEM_ANSWERS,
    *BALANCE_ANSWERS,
)

INTRODUCTION = (
    "For the merchant's server. Each call carries the private key in the header `X-ApiKey`. Below `/sandbox`, and "
    "while the account is in test mode or not live yet, all is test data; else it is live data. Lists are newest first "
    "and come in pages: give `next_cursor` back as `cursor`, with the same filters, until it is null."
)


def openapi_document(routes: Sequence[BaseRoute], *, address: str, sandbox_address: str) -> dict[str, object]:
    """The document for the routes of the API, for a service at these two public bases."""
    document = get_openapi(
        title="Paydesk API",
        version=version("paydesk"),
        description=INTRODUCTION,
        routes=routes,
        servers=[
            {"url": address, "description": "Live"},
            {"url": sandbox_address, "description": "Sandbox: test data"},
        ],
    )
    _, shapes = msgspec.json.schema_components(_SHAPES, ref_template=REFERENCE)
    components = document.setdefault("components", {})
    components["schemas"] = _with_numbers(shapes)
    for methods in document["paths"].values():
        for call in methods.values():
            call["parameters"] = [_without_null(parameter) for parameter in call.get("parameters", [])]
    return document


def _without_null(parameter: dict[str, Any]) -> dict[str, Any]:
    """A parameter that may be left out, but never is null: a query has no null."""
    schema = dict(parameter["schema"])
    kinds = [kind for kind in schema.pop("anyOf", []) if kind != {"type": "null"}]
    return {**parameter, "schema": {**schema, **(kinds[0] if kinds else {})}}


def _with_numbers(schema: object) -> object:
    """The schema with decimals as what they are in our JSON:
    numbers, where msgspec supposes text.
    """
    if isinstance(schema, list):
        return [_with_numbers(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: _with_numbers(part) for key, part in schema.items()}
    return {**inner, "type": "number"} if inner.get("format") == "decimal" else inner
