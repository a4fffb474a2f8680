"""A stand-in for Stripe's Checkout Sessions, written from Stripe's documents: what a session goes
through, idempotency keys, and the payment that comes of it, with its refunds.

It is not Stripe. Each request is compared with the parameter types of the installed library; a
wrong one is answered 400, and kept in `wrong`.

Source: docs.stripe.com/api/checkout/sessions (create, retrieve, expire),
    docs.stripe.com/api/idempotent_requests, docs.stripe.com/api/refunds/create.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from stripe.params import PaymentIntentCreateParams, RefundCreateParams
from stripe.params.checkout import SessionCreateParams
from tests.standins.parameters import nested, problems

_SHORTEST, _LONGEST = 30 * 60, 24 * 3600
_KEY_REUSED = {
    "type": "idempotency_error",
    "message": "Keys for idempotent requests can only be used with the same parameters they were first used with.",
}
_MISSING = 404, {"error": {"type": "invalid_request_error", "message": "No such object"}}
_SHAPES = {
    "/v1/checkout/sessions": SessionCreateParams,
    "/v1/payment_intents": PaymentIntentCreateParams,
    "/v1/refunds": RefundCreateParams,
}


@dataclass
class StripeCheckout:
    """Sessions, their payments and refunds; `loses` as many answers as it is told to, once it has
    acted, and `stuck` sessions can't be expired.
    """

    now: Callable[[], datetime]
    base_url: str = ""
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    intents: dict[str, dict[str, Any]] = field(default_factory=dict)
    refunds: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, tuple[str, int, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    loses: int = 0

    async def respond(self, request: web.Request) -> web.Response:
        """Answer one request of the library's."""
        body = await request.read()
        self.asked.append((request.path, request.headers.get("Idempotency-Key", ""), body))
        status, said = self._answer(request, body)
        if self.loses and request.method == "POST":
            self.loses -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=status, text=json.dumps(said), content_type="application/json")

    def _answer(self, request: web.Request, body: bytes) -> tuple[int, Any]:
        """Under a key that was used the first answer again, or that it was for something else."""
        key, asked = request.headers.get("Idempotency-Key", ""), f"{request.path} {body.decode()}"
        if request.method == "POST" and key in self.answers:
            first, status, said = self.answers[key]
            return (status, said) if first == asked else (400, {"error": _KEY_REUSED})
        status, said = self._act(request, nested(parse_qsl(body.decode(), keep_blank_values=True)))
        if request.method == "POST" and key and status == 200:
            self.answers[key] = asked, status, json.loads(json.dumps(said))
        return status, said

    def _act(self, request: web.Request, asked: dict[str, Any]) -> tuple[int, Any]:
        shape = _SHAPES.get(request.path) if request.method == "POST" else None
        if shape is not None and (found := list(problems(asked, shape))):
            self.wrong += found
            return _refused("; ".join(found))
        parts = request.path.removeprefix("/v1/").split("/")
        if request.method == "POST":
            return self._change(parts, asked)
        return self._look(parts, request.query)

    def _change(self, parts: list[str], asked: dict[str, Any]) -> tuple[int, Any]:
        match parts:
            case ["checkout", "sessions"]:
                return self._create(asked)
            case ["checkout", "sessions", name, "expire"] if name in self.sessions:
                return self._expire(name)
            case ["payment_intents"]:
                return 200, self._intent(int(asked["amount"]), asked["currency"], asked.get("metadata", {}))
            case ["refunds"]:
                return self._refund(asked)
        return _MISSING

    def _look(self, parts: list[str], query: Mapping[str, str]) -> tuple[int, Any]:
        match parts:
            case ["checkout", "sessions", name] if name in self.sessions:
                return 200, self._shown(self._of_now(name))
            case ["payment_intents", "search"] | ["setup_intents"]:
                return 200, self._list([])
            case ["payment_intents"]:
                return 200, self._list(list(self.intents.values()))
            case ["payment_intents", name] if name in self.intents:
                return 200, self.intents[name]
            case ["refunds"]:
                return 200, self._list(
                    [one for one in self.refunds if one["payment_intent"] == query["payment_intent"]]
                )
        return _MISSING

    def _create(self, asked: dict[str, Any]) -> tuple[int, Any]:
        left = int(asked["expires_at"]) - self.now().timestamp()
        if not _SHORTEST <= left <= _LONGEST:
            return _refused("The `expires_at` timestamp must be between 30 minutes and 24 hours from creation.")
        price = asked["line_items"]["0"]["price_data"]
        name = f"cs_test_{len(self.sessions) + 1}"
        self.sessions[name] = {
            "id": name,
            "object": "checkout.session",
            "status": "open",
            "payment_status": "unpaid",
            "mode": asked["mode"],
            "url": f"{self.base_url}/c/pay/{name}",
            "client_reference_id": asked.get("client_reference_id"),
            "amount_total": int(price["unit_amount"]) * int(asked["line_items"]["0"]["quantity"]),
            "currency": price["currency"],
            "expires_at": int(asked["expires_at"]),
            "metadata": asked.get("metadata", {}),
            "payment_intent": None,
            "payment_metadata": asked["payment_intent_data"].get("metadata", {}),
        }
        return 200, self._shown(self.sessions[name])

    def _of_now(self, name: str) -> dict[str, Any]:
        """A session, expired if its time is over."""
        session = self.sessions[name]
        if session["status"] == "open" and self.now().timestamp() >= session["expires_at"]:
            session |= {"status": "expired", "url": None}
        return session

    def _expire(self, name: str) -> tuple[int, Any]:
        session = self._of_now(name)
        if session["status"] != "open" or name in self.stuck:
            return _refused("This Session is not in an expireable state.")
        session |= {"status": "expired", "url": None}
        return 200, self._shown(session)

    def _shown(self, session: dict[str, Any]) -> dict[str, Any]:
        """A session with its payment, without what only the stand-in knows."""
        shown = {name: value for name, value in session.items() if name != "payment_metadata"}
        intent = self.intents.get(session["payment_intent"] or "")
        return shown | {"payment_intent": intent and {**intent}}

    def _intent(self, amount: int, currency: str, metadata: dict[str, str], **more: Any) -> dict[str, Any]:
        name = f"pi_{len(self.intents) + 1}"
        self.intents[name] = {
            "id": name,
            "object": "payment_intent",
            "status": "requires_payment_method",
            "amount": amount,
            "amount_received": 0,
            "currency": currency,
            "created": int(self.now().timestamp()),
            "capture_method": "automatic",
            "metadata": metadata,
            "latest_charge": None,
            **more,
        }
        return self.intents[name]

    def _refund(self, asked: dict[str, Any]) -> tuple[int, Any]:
        intent = self.intents[asked["payment_intent"]]
        amount = int(asked.get("amount", intent["amount_received"]))
        given = sum(one["amount"] for one in self.refunds if one["payment_intent"] == intent["id"])
        if amount + given > intent["amount_received"]:
            return _refused("Refund amount is greater than unrefunded amount.")
        made = {"id": f"re_{len(self.refunds) + 1}", "object": "refund", "amount": amount, "status": "succeeded"}
        made |= {"payment_intent": intent["id"], "currency": intent["currency"], "metadata": asked.get("metadata", {})}
        self.refunds.append(made)
        intent["latest_charge"]["amount_refunded"] += amount
        return 200, made

    def _list(self, objects: list[dict[str, Any]]) -> dict[str, Any]:
        return {"object": "list", "data": objects, "has_more": False}

    def pay(self, name: str, method: dict[str, Any], *, sure: bool = True) -> bool:
        """A customer pays on the page of a session; whether that was possible."""
        session = self._of_now(name)
        if session["status"] != "open":
            return False
        charge = {"id": f"ch_{name}", "object": "charge", "amount_refunded": 0, "payment_method_details": method}
        intent = self._intent(
            session["amount_total"],
            session["currency"],
            session["payment_metadata"],
            status="succeeded" if sure else "processing",
            amount_received=session["amount_total"] if sure else 0,
            latest_charge=charge,
        )
        session |= {"status": "complete", "url": None, "payment_intent": intent["id"]}
        session["payment_status"] = "paid" if sure else "unpaid"
        return True

    def taken(self, key: str) -> int:
        """What the payments under a key of ours have taken and not given back, in minor units."""
        of_key: list[dict[str, Any]] = [
            one for one in self.intents.values() if one["metadata"].get("paydesk_key") == key
        ]
        back = sum(one["amount"] for one in self.refunds if one["payment_intent"] in {each["id"] for each in of_key})
        return int(sum(one["amount_received"] for one in of_key) - back)


def _refused(message: str) -> tuple[int, Any]:
    return 400, {"error": {"type": "invalid_request_error", "message": message}}


@asynccontextmanager
async def running(now: Callable[[], datetime]) -> AsyncIterator[StripeCheckout]:
    """The stand-in on a free port of loopback."""
    standin = StripeCheckout(now)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", standin.respond)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    standin.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield standin
    finally:
        await asyncio.shield(runner.cleanup())
