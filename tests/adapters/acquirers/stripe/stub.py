"""A stub that gives the answers it is told, for what localstripe can't show.

It has no behaviour of its own. Which answer Stripe gives when is Stripe's documentation's word:
idempotent requests, error codes, decline codes, disputes and events (docs.stripe.com/api,
docs.stripe.com/declines/codes).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web

from paydesk.adapters.acquirers.purchases import CardDetails, Purchase

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
NUMBER = "4242424242424242"
INTENTS, SEARCH = "/v1/payment_intents", "/v1/payment_intents/search"
NOTHING: dict[str, Any] = {"object": "list", "data": [], "has_more": False}
KEY_REUSED = {
    "error": {
        "type": "idempotency_error",
        "message": "Keys for idempotent requests can only be used with the same parameters they were first used with.",
    }
}


def intent(**changes: Any) -> dict[str, Any]:
    made = {
        "id": "pi_1",
        "object": "payment_intent",
        "status": "succeeded",
        "amount": 1000,
        "amount_received": 1000,
        "currency": "usd",
        "metadata": {"paydesk_key": "one"},
        "customer": None,
        "payment_method": "pm_1",
        "next_action": None,
        "last_payment_error": None,
        "latest_charge": {"id": "ch_1", "object": "charge", "amount_refunded": 0},
    }
    return made | changes


def listed(*objects: dict[str, Any], more: bool = False) -> dict[str, Any]:
    return {"object": "list", "data": list(objects), "has_more": more}


@dataclass
class SentFile:
    """A file that came with a request."""

    name: str
    content: bytes


@dataclass
class Asked:
    """One request that the adapter made."""

    method: str
    path: str
    key: str
    params: dict[str, str]
    files: dict[str, SentFile] = field(default_factory=dict)


@dataclass
class Stub:
    """Gives the answers it was told, in turn; the last one again and again."""

    base_url: str = ""
    answers: dict[tuple[str, str], list[tuple[int, Any]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def will(self, method: str, path: str, body: Any, status: int = 200) -> None:
        self.answers.setdefault((method, path), []).append((status, body))

    def to(self, method: str, path: str) -> list[Asked]:
        return [asked for asked in self.asked if (asked.method, asked.path) == (method, path)]

    async def respond(self, request: web.Request) -> web.Response:
        files: dict[str, SentFile] = {}
        if request.content_type == "multipart/form-data":
            params = {}
            for name, value in (await request.post()).items():
                if isinstance(value, web.FileField):
                    files[name] = SentFile(value.filename, value.file.read())
                else:
                    params[name] = str(value)
        else:
            params = dict(parse_qsl((await request.text()) or request.query_string))
        key = request.headers.get("Idempotency-Key", "")
        self.asked.append(Asked(request.method, request.path, key, params, files))
        waiting = self.answers[request.method, request.path]
        status, body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if body is None:
            assert request.transport is not None
            request.transport.abort()
        text = body if isinstance(body, str) else json.dumps(body)
        return web.Response(status=status, text=text, content_type="application/json")


def purchase(key: str = "one", **changes: Any) -> Purchase:
    asked: dict[str, Any] = {
        "key": key,
        "amount": Decimal("10.00"),
        "currency": "USD",
        "card": CardDetails(NUMBER, 12, 2030, "Ada Lovelace", "987"),
        "capture": True,
        "not_after": NOON + timedelta(minutes=10),
        "return_url": "https://shop.example/back",
    }
    return Purchase(**(asked | changes))
