"""A stand-in for Stripe's Checkout Sessions, written from Stripe's documents: what a session goes
through, idempotency keys, the payment that comes of it, with its refunds, and what is kept with a
customer and charged again without them.

It is not Stripe. Each request is compared with the parameter types of the installed library; a
wrong one is answered 400, and kept in `wrong`.

Source: docs.stripe.com/api/checkout/sessions (create, retrieve, expire, list),
    docs.stripe.com/api/idempotent_requests, docs.stripe.com/api/refunds/create,
    docs.stripe.com/payments/save-during-payment, docs.stripe.com/payments/save-and-reuse,
    "Charge the payment method later"; docs.stripe.com/webhooks,
    docs.stripe.com/api/payment_methods/detach,
    docs.stripe.com/payments/3d-secure/authentication-flow, "next_action",
    docs.stripe.com/api/payment_intents/capture, docs.stripe.com/api/payment_intents/cancel,
    docs.stripe.com/payments/place-a-hold-on-a-payment-method.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import web
from stripe.params import CustomerCreateParams, PaymentIntentCreateParams, RefundCreateParams
from stripe.params.checkout import SessionCreateParams, SessionListParams
from tests.standins.declared import undeclared
from tests.standins.parameters import nested, problems
from tests.standins.taking_time import Pace

_SHORTEST, _LONGEST = 30 * 60, 24 * 3600
_KEY_REUSED = {
    "type": "idempotency_error",
    "message": "Keys for idempotent requests can only be used with the same parameters they were first used with.",
}
_KEY_IN_USE = {
    "type": "invalid_request_error",
    "code": "idempotency_key_in_use",
    "message": "There is currently another in-progress request using this Idempotent Key.",
}
_MISSING = 404, {"error": {"type": "invalid_request_error", "message": "No such object"}}
_OWN = {"payment_metadata", "capture_method", "keeps", "of_cards", "usage", "excluded"}
_CARD_HOLD = 7 * 24 * 3600
AT_ONCE = {"ideal", "bancontact", "eps", "p24", "blik", "twint"}
"""Some methods that can't hold money: Stripe does not offer them where it is to be held."""
_SHAPES = {
    "/v1/checkout/sessions": SessionCreateParams,
    "/v1/customers": CustomerCreateParams,
    "/v1/payment_intents": PaymentIntentCreateParams,
    "/v1/refunds": RefundCreateParams,
}
_LISTS = {"/v1/checkout/sessions": SessionListParams}


@dataclass
class StripeCheckout:
    """Sessions, their payments and refunds; `loses` as many answers as it is told to, once it has
    acted, and `stuck` sessions can't be expired, nor any while all customers are `busy` with their
    banks. Of kept methods, those in `asking` want to see their customer, and those in `failing` are
    declined; `off_session` are the payments that were made without them. One that `forgets` knows
    no key again.
    `accounts` are those of secret keys that belong to another account; a restricted one may not
    ask for it, unless it is named there.
    """

    now: Callable[[], datetime]
    base_url: str = ""
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    intents: dict[str, dict[str, Any]] = field(default_factory=dict)
    setups: dict[str, dict[str, Any]] = field(default_factory=dict)
    customers: list[dict[str, Any]] = field(default_factory=list)
    methods: dict[str, dict[str, Any]] = field(default_factory=dict)
    asking: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    off_session: set[str] = field(default_factory=set)
    refunds: list[dict[str, Any]] = field(default_factory=list)
    answers: dict[str, tuple[str, int, Any]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    stuck: set[str] = field(default_factory=set)
    asked: list[tuple[str, str, bytes]] = field(default_factory=list)
    loses: int = 0
    busy: bool = False
    pace: Pace = field(default_factory=Pace)
    forgets: bool = False
    accounts: dict[str, str] = field(default_factory=dict)

    async def respond(self, request: web.Request) -> web.Response:
        """Answer one request of the library's."""
        body = await request.read()
        key = request.headers.get("Idempotency-Key", "")
        self.asked.append((request.path, key, body))
        if self.pace.is_in_hand(key):
            return web.json_response({"error": _KEY_IN_USE}, status=409)
        with self.pace.in_hand(key):
            await self.pace.take()
            status, said = self._answer(request, body)
            await self.pace.take()
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
        self.wrong += undeclared(said)
        if request.method == "POST" and key and status == 200 and not self.forgets:
            self.answers[key] = asked, status, json.loads(json.dumps(said))
        return status, said

    def _act(self, request: web.Request, asked: dict[str, Any]) -> tuple[int, Any]:
        shape = _SHAPES.get(request.path) if request.method == "POST" else _LISTS.get(request.path)
        if request.method == "GET":
            asked = nested(list(request.query.items()))
        if shape is not None and (found := list(problems(asked, shape))):
            self.wrong += found
            return _refused("; ".join(found))
        parts = request.path.removeprefix("/v1/").split("/")
        if parts == ["account"]:
            return self._account(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if request.method == "POST":
            return self._change(parts, asked)
        return self._look(parts, request.query, asked)

    def _account(self, key: str) -> tuple[int, Any]:
        """The account that a key belongs to: it has one name for both sides."""
        if key.startswith("rk_") and key not in self.accounts:
            why = "The provided key does not have the required permissions for this endpoint"
            return 403, {"error": {"type": "invalid_request_error", "message": why}}
        return 200, {"id": self.accounts.get(key, "acct_standin"), "object": "account", "charges_enabled": True}

    def _change(self, parts: list[str], asked: dict[str, Any]) -> tuple[int, Any]:
        match parts:
            case ["checkout", "sessions"]:
                return self._create(asked)
            case ["checkout", "sessions", name, "expire"] if name in self.sessions:
                return self._expire(name)
            case ["customers"]:
                self.customers.append({"id": f"cus_{len(self.customers) + 1}", "object": "customer", **asked})
                return 200, self.customers[-1]
            case ["payment_intents"] if asked.get("confirm") == "true":
                return self._charge(asked)
            case ["payment_intents"]:
                return 200, self._intent(int(asked["amount"]), asked["currency"], asked.get("metadata", {}))
            case ["payment_methods", name, "detach"] if name in self.methods:
                return self._detach(self.methods[name])
            case ["refunds"]:
                return self._refund(asked)
            case [("setup_intents" | "payment_intents"), name, *action]:
                made = self.setups.get(name) or self.intents.get(name)
                return self._change_intent(made, action, asked) if made else _MISSING
        return _MISSING

    def _change_intent(self, intent: dict[str, Any], action: list[str], asked: dict[str, Any]) -> tuple[int, Any]:
        """What is done to an intent that was made: its metadata, its capture, its end."""
        match action:
            case []:
                intent["metadata"] |= asked.get("metadata", {})
                return 200, intent
            case ["capture"]:
                return self._capture(intent, asked)
            case ["cancel"]:
                return self._cancel(intent)
        return _MISSING

    def _capture(self, intent: dict[str, Any], asked: dict[str, Any]) -> tuple[int, Any]:
        amount = int(asked.get("amount_to_capture", intent["amount"]))
        if intent["status"] != "requires_capture" or amount > intent["amount"]:
            return _refused("This PaymentIntent could not be captured.")
        intent["metadata"] |= asked.get("metadata", {})
        intent |= {"status": "succeeded", "amount_received": amount}
        for session in self.sessions.values():
            if session["payment_intent"] == intent["id"]:
                session["payment_status"] = "paid"
        return 200, intent

    def _cancel(self, intent: dict[str, Any]) -> tuple[int, Any]:
        if intent["status"] in {"succeeded", "canceled"}:
            return _refused("You cannot cancel this PaymentIntent because of its status.")
        intent["status"] = "canceled"
        return 200, intent

    def _look(self, parts: list[str], query: Mapping[str, str], asked: dict[str, Any]) -> tuple[int, Any]:
        expanded = [text for field, text in query.items() if "expand" in field]
        match parts:
            case ["checkout", "sessions"]:
                return 200, self._sessions(asked, [one.removeprefix("data.") for one in expanded])
            case ["checkout", "sessions", name] if name in self.sessions:
                return 200, self._shown(self._of_now(name), expanded)
            case ["payment_intents", "search"]:
                return 200, self._list([])
            case ["setup_intents"]:
                return 200, self._list(list(self.setups.values()))
            case [("setup_intents" | "payment_methods"), name] if name in self.setups | self.methods:
                return 200, (self.setups | self.methods)[name]
            case ["payment_intents"]:
                return 200, self._list(list(self.intents.values()))
            case ["payment_intents", name] if name in self.intents:
                return 200, self.intents[name]
            case ["refunds"]:
                of = query.get("payment_intent")
                return 200, self._list([one for one in self.refunds if of in (None, one["payment_intent"])])
            case ["events"] | ["disputes"]:
                return 200, self._list([])
        return _MISSING

    def _create(self, asked: dict[str, Any]) -> tuple[int, Any]:
        left = int(asked["expires_at"]) - self.now().timestamp()
        if not _SHORTEST <= left <= _LONGEST:
            return _refused("The `expires_at` timestamp must be between 30 minutes and 24 hours from creation.")
        if asked.get("customer", "cus_") not in {"cus_", *(one["id"] for one in self.customers)}:
            return _refused("No such customer")
        name, setup = f"cs_test_{len(self.sessions) + 1}", asked["mode"] == "setup"
        if setup and (problem := _why_no_setup(asked)):
            return _refused(problem)
        price = {"unit_amount": 0, "currency": asked["currency"]} if setup else asked["line_items"]["0"]["price_data"]
        count = 1 if setup else int(asked["line_items"]["0"]["quantity"])
        data = asked.get("setup_intent_data" if setup else "payment_intent_data", {})
        self.sessions[name] = {
            "id": name,
            "object": "checkout.session",
            "status": "open",
            "payment_status": "unpaid",
            "mode": asked["mode"],
            "url": f"{self.base_url}/c/pay/{name}",
            "client_reference_id": asked.get("client_reference_id"),
            "success_url": asked.get("success_url"),
            "cancel_url": asked.get("cancel_url"),
            "amount_total": None if setup else int(price["unit_amount"]) * count,
            "currency": price["currency"],
            "expires_at": int(asked["expires_at"]),
            "created": int(self.now().timestamp()),
            "metadata": asked.get("metadata", {}),
            "payment_intent": None,
            "setup_intent": None,
            "customer": asked.get("customer"),
            "payment_metadata": data.get("metadata", {}),
            "capture_method": data.get("capture_method", "automatic"),
            "keeps": setup or data.get("setup_future_usage") == "off_session",
            "of_cards": asked.get("payment_method_options", {}).get("card", {}),
            "usage": data.get("setup_future_usage"),
            "excluded": list(asked.get("excluded_payment_method_types", {}).values()),
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
        if session["status"] != "open" or name in self.stuck or self.busy:
            return _refused("This Session is not in an expireable state.")
        session |= {"status": "expired", "url": None}
        return 200, self._shown(session)

    def _shown(self, session: dict[str, Any], expanded: Sequence[str] = ()) -> dict[str, Any]:
        """A session without what only the stand-in knows, with what was asked to be expanded."""
        shown = {name: value for name, value in session.items() if name not in _OWN}
        if "payment_intent.latest_charge" in expanded:
            intent = self.intents.get(session["payment_intent"] or "")
            shown["payment_intent"] = intent and {**intent}
        setup = self.setups.get(session["setup_intent"] or "")
        if setup is not None and "setup_intent.payment_method" in expanded:
            shown["setup_intent"] = setup | {"payment_method": self.methods[setup["payment_method"]]}
        return shown

    def _kept_by(self, session: dict[str, Any], method: dict[str, Any]) -> dict[str, str | None]:
        """How the intent of a session names its customer and method: that is kept if all are, or if
        it is a card and these are.
        """
        cards = "card" in method and bool(session["of_cards"].get("setup_future_usage"))
        if session["keeps"] or cards:
            return self._keep(session["customer"], method)
        if not session["customer"]:
            return {}
        return self._keep(None, method) | {"customer": session["customer"]}

    def _keep(self, customer: str | None, method: dict[str, Any]) -> dict[str, str | None]:
        """Attach a method to a customer; how an intent then names both."""
        name = f"pm_{len(self.methods) + 1}"
        self.methods[name] = {"id": name, "object": "payment_method", "customer": customer, **method}
        return {"customer": customer, "payment_method": name}

    def _detach(self, method: dict[str, Any]) -> tuple[int, Any]:
        if not method["customer"]:
            return _refused(
                "The payment method you provided is not attached to a customer so detachment is impossible."
            )
        method["customer"] = None
        return 200, method

    def _charge(self, asked: dict[str, Any]) -> tuple[int, Any]:
        """Charge a method that is kept with a customer, who is there, or not (`off_session`)."""
        name, method = asked["payment_method"], self.methods.get(asked["payment_method"])
        if method is None or method["customer"] != asked.get("customer"):
            return _refused("The PaymentMethod does not belong to the Customer.")
        if method["type"] not in asked.get("allowed_payment_method_types", {}).values():
            return _refused("The PaymentMethod type is not among allowed_payment_method_types.")
        amount = int(asked["amount"])
        intent = self._intent(
            amount,
            asked["currency"],
            asked.get("metadata", {}),
            payment_method=name,
            customer=asked["customer"],
            capture_method=asked.get("capture_method", "automatic"),
        )
        self.off_session |= {intent["id"]} if asked.get("off_session") == "true" else set()
        if asked.get("off_session") != "true" and name in self.asking:
            return 200, self._ask_customer(intent, asked["return_url"])
        code = "authentication_required" if name in self.asking else "card_declined" if name in self.failing else ""
        if code:
            problem = {"type": "card_error", "code": code, "decline_code": code, "message": "Declined."}
            intent |= {"status": "requires_payment_method", "last_payment_error": problem}
            return 402, {"error": problem | {"payment_intent": intent}}
        return 200, self._take(intent, method)

    def _take(self, intent: dict[str, Any], method: dict[str, Any]) -> dict[str, Any]:
        """Take, or hold, the money of an intent."""
        charge: dict[str, Any] = {"id": f"ch_{intent['id']}", "object": "charge", "amount_refunded": 0}
        charge["payment_method_details"] = {key: method[key] for key in ("type", "card") if key in method}
        intent |= {"latest_charge": charge, "next_action": None}
        if method["type"] == "sepa_debit":
            intent["status"] = "processing"
            return intent
        if intent["capture_method"] == "manual":
            intent["status"] = "requires_capture"
            return intent
        intent |= {"status": "succeeded", "amount_received": intent["amount"]}
        return intent

    def _ask_customer(self, intent: dict[str, Any], back: str) -> dict[str, Any]:
        """The bank wants to see its customer, who is led there."""
        redirect = {"url": f"{self.base_url}/3ds/{intent['id']}", "return_url": back}
        intent |= {"status": "requires_action"}
        intent["next_action"] = {"type": "redirect_to_url", "redirect_to_url": redirect}
        return intent

    def decide(self, name: str, *, approve: bool) -> str:
        """A customer answers their bank; where they are led back to."""
        intent = self.intents[name]
        back = str(intent["next_action"]["redirect_to_url"]["return_url"])
        if approve:
            self._take(intent, self.methods[intent["payment_method"]])
            return back
        problem = {"type": "card_error", "code": "payment_intent_authentication_failure", "message": "Failed."}
        intent |= {"status": "requires_payment_method", "last_payment_error": problem, "next_action": None}
        return back

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

    def _sessions(self, asked: dict[str, Any], expanded: Sequence[str]) -> dict[str, Any]:
        """A page of the list, the newest first, as status and time of creation filter it."""
        since, status = int(asked.get("created", {}).get("gte", 0)), asked.get("status")
        names = [name for name in reversed(self.sessions) if self.sessions[name]["created"] >= since]
        if after := asked.get("starting_after"):
            names = names[names.index(after) + 1 :]
        listed = [one for one in map(self._of_now, names) if status in (None, one["status"])]
        most = int(asked.get("limit", 10))
        shown = [self._shown(one, expanded) for one in listed[:most]]
        return {"object": "list", "data": shown, "has_more": len(listed) > most}

    def _list(self, objects: list[dict[str, Any]]) -> dict[str, Any]:
        return {"object": "list", "data": objects, "has_more": False}

    def pay(self, name: str, method: dict[str, Any], *, sure: bool = True) -> bool:
        """A customer pays on the page of a session; whether that was possible."""
        session = self._of_now(name)
        holds = session["capture_method"] == "manual"
        cant_hold = holds and method["type"] in AT_ONCE
        if session["status"] != "open" or method["type"] in session["excluded"] or cant_hold:
            return False
        if holds and "card" in method:
            before = int(self.now().timestamp()) + _CARD_HOLD
            method = method | {"card": {"capture_before": before, **method["card"]}}
        kept, usage = self._kept_by(session, method), session["of_cards"].get("setup_future_usage")
        if "card" in method and session["of_cards"].get("request_three_d_secure") == "any":
            secured = {"result": "authenticated", "authentication_flow": "challenge", "version": "2.2.0"}
            method = method | {"card": {"three_d_secure": secured, **method["card"]}}
        if session["mode"] == "setup":
            made = {"object": "setup_intent", "status": "succeeded", "metadata": session["payment_metadata"], **kept}
            setup = f"seti_{len(self.setups) + 1}"
            self.setups[setup] = {"id": setup, "created": int(self.now().timestamp()), **made}
            session |= {"status": "complete", "url": None, "payment_status": "no_payment_required"}
            session["setup_intent"] = setup
            return True
        charge = {"id": f"ch_{name}", "object": "charge", "amount_refunded": 0, "payment_method_details": method}
        intent = self._intent(
            session["amount_total"],
            session["currency"],
            session["payment_metadata"],
            status="processing" if not sure else "requires_capture" if holds else "succeeded",
            amount_received=session["amount_total"] if sure and not holds else 0,
            capture_method=session["capture_method"],
            latest_charge=charge,
            setup_future_usage=session["usage"],
            payment_method_options={"card": {"setup_future_usage": usage} if usage else {}},
            **kept,
        )
        session |= {"status": "complete", "url": None, "payment_intent": intent["id"]}
        session["payment_status"] = "paid" if sure and not holds else "unpaid"
        return True

    def held(self, key: str) -> int:
        """What the payments under a key of ours hold, in minor units."""
        held = {"requires_capture"}
        of_key = [one for one in self.intents.values() if one["metadata"].get("paydesk_key") == key]
        return sum(one["amount"] for one in of_key if one["status"] in held)

    def on_its_way(self) -> str:
        """The name of the newest payment that a bank has not decided yet."""
        return max(name for name, one in self.intents.items() if one["status"] == "processing")

    def debit_ends(self, name: str, *, paid: bool) -> None:
        """The bank of a customer who pays by direct debit has decided, days later: of a session's
        payment, or of a later charge.
        """
        session = self.sessions.get(name, {})
        intent = self.intents[session.get("payment_intent", name)]
        assert intent["status"] == "processing"
        if paid:
            intent |= {"status": "succeeded", "amount_received": intent["amount"]}
            session["payment_status"] = "paid"
            return
        intent |= {
            "status": "requires_payment_method",
            "latest_charge": intent["latest_charge"] | {"status": "failed"},
            "last_payment_error": {"type": "invalid_request_error", "code": "debit_not_authorized"},
        }

    def taken(self, key: str) -> int:
        """What the payments under a key of ours have taken and not given back, in minor units."""
        of_key: list[dict[str, Any]] = [
            one for one in self.intents.values() if one["metadata"].get("paydesk_key") == key
        ]
        back = sum(one["amount"] for one in self.refunds if one["payment_intent"] in {each["id"] for each in of_key})
        return int(sum(one["amount_received"] for one in of_key) - back)

    def event(self, name: str) -> bytes:
        """The event of a session that is complete, as Stripe sends it to a webhook endpoint."""
        about = {"object": self._shown(self.sessions[name])}
        told = {"id": f"evt_{name}", "object": "event", "type": "checkout.session.completed", "data": about}
        self.wrong += undeclared(told)
        return json.dumps(told).encode()


def signature(body: bytes, *secrets: str, at: datetime) -> str:
    """The header `Stripe-Signature` of an event: its time, and a signature for each secret in use,
    beside one of the scheme that is for tests alone.
    """
    time = str(int(at.timestamp()))
    made = [hmac.digest(one.encode(), time.encode() + b"." + body, "sha256").hex() for one in secrets]
    return ",".join([f"t={time}", *(f"v1={one}" for one in made), "v0=6ffbb59b2300aae63f27"])


def _why_no_setup(asked: dict[str, Any]) -> str:
    """What a session in setup mode may not have, or lacks."""
    if not asked.get("currency"):
        return "You must provide `currency` in `setup` mode."
    wrong = [name for name in ("line_items", "payment_intent_data", "submit_type") if name in asked]
    return f"You can not pass `{wrong[0]}` in `setup` mode." if wrong else ""


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
