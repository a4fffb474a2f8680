"""A stand-in for Mollie's API and its page to pay on, in a process of its own, written from
Mollie's documents: what a payment goes through, idempotency keys, refunds, chargebacks, lists and
notifications.

It is not Mollie. `python -m tests.standins.mollie` prints its address and serves until its input is
closed; `/control` is for tests.

Source: docs.mollie.com/reference (create-payment, get-payment, cancel-payment, list-payments,
    create-refund, list-refunds, list-all-refunds, list-chargebacks, list-all-chargebacks,
    create-capture, list-captures, release-authorization,
    get-current-profile, api-idempotency, pagination, handling-errors, webhooks);
    docs.mollie.com/docs (refunds, handling-payment-status, place-a-hold-for-a-payment).
"""

from __future__ import annotations

import asyncio
import html
import json
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
from aiohttp import web
from tests.standins.taking_time import Pace

_KEYS_KEPT = timedelta(hours=1)
_LIFE = 15 * 60.0
_MOST_METADATA = 1024
_DIGITS = {"JPY": 0, "ISK": 0}
_CLOSED = {"paid", "canceled", "expired", "failed"}
_ACTIVE = ["creditcard", "ideal", "paypal", "banktransfer"]
_CARD = {"cardHolder": "A Lovelace", "cardNumber": "4242", "cardLabel": "Visa", "cardSecurity": "3dsecure"}
_CARD["cardExpiryDate"] = "2031-12-31"
_DETAILS: dict[str, dict[str, Any]] = {"creditcard": _CARD, "ideal": {"consumerName": "A Lovelace"}, "paypal": {}}

_ACCOUNT = {"consumerName": "A Lovelace", "consumerAccount": "NL55INGB0000000000", "consumerBic": "INGBNL2A"}
_HOLD = timedelta(days=7)
_GIVES_DEBITS = {"bancontact", "belfius", "eps", "ideal", "kbc", "mybank"}

Said = tuple[int, Any]


def _problem(status: int, title: str, detail: str) -> Said:
    documentation = {"href": "https://docs.mollie.com/reference/handling-errors", "type": "text/html"}
    return status, {"status": status, "title": title, "detail": detail, "_links": {"documentation": documentation}}


def _wrong(detail: str) -> Said:
    return _problem(422, "Unprocessable Entity", detail)


_MISSING = _problem(404, "Not Found", "No payment exists with this token.")


@dataclass
class Mollie:
    """An account: its payments, with their refunds and chargebacks, each as it is answered.

    `loses` as many answers as it is told to, once it has acted; `profiles` are those of keys that
    belong to another profile of the account's; `via` is who carries notifications, if not the net.
    """

    base_url: str = ""
    time: datetime | None = None
    payments: dict[str, dict[str, Any]] = field(default_factory=dict)
    refunds: dict[str, dict[str, Any]] = field(default_factory=dict)
    chargebacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    captures: dict[str, dict[str, Any]] = field(default_factory=dict)
    customers: dict[str, dict[str, Any]] = field(default_factory=dict)
    mandates: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, tuple[datetime, int, Any]] = field(default_factory=dict)
    cancelable: set[str] = field(default_factory=set)
    asked: list[tuple[str, str, str, str]] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    active: list[str] = field(default_factory=lambda: list(_ACTIVE))
    refund_status: str = "pending"
    capture_status: str = "succeeded"
    releases: bool = True
    releasing: set[str] = field(default_factory=set)
    recurring_status: str = "paid"
    failure_reason: str = "insufficient_funds"
    part: int = 250
    life: float = _LIFE
    loses: int = 0
    via: str = ""
    profiles: dict[str, str] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        return self.time or datetime.now(UTC)

    def answer(self, method: str, path: str, query: dict[str, str], key: str, body: str) -> Said:
        """Answer a request; under a key that was used within the hour the first answer again,
        whatever is asked for now.
        """
        self.asked.append((method, path, key, body))
        kept = self.answers.get(key) if method == "POST" and key else None
        if kept is not None and self.now < kept[0] + _KEYS_KEPT:
            return kept[1], json.loads(kept[2])
        status, said = self._act(method, path.removeprefix("/v2/").split("/"), query, json.loads(body) if body else {})
        if method == "POST" and status == 201:
            self.answers[key] = self.now, status, json.dumps(said)
        return status, said

    def _act(self, method: str, parts: list[str], query: dict[str, str], asked: dict[str, Any]) -> Said:
        match method, parts:
            case "POST", ["payments"]:
                return self._create(asked)
            case "POST", ["payments", name, what] if name in self.payments:
                act = {"refunds": self._refund, "captures": self._capture, "release-authorization": self._release}
                return act[what](name, asked)
            case "POST", ["customers"]:
                return self._create_customer(asked)
            case "GET", ["customers", _, "mandates", name] if name in self.mandates:
                return 200, self.mandates[name]
            case "DELETE", ["customers", _, "mandates", name] if name in self.mandates:
                del self.mandates[name]
                return 204, None
            case "DELETE", ["payments", name] if name in self.payments:
                return self._cancel(name)
            case "GET", ["payments", name] if name in self.payments:
                return 200, self.shown(name)
            case "GET", ["payments", name, "chargebacks", chargeback] if chargeback in self.chargebacks:
                return 200, {**self.chargebacks[chargeback], "paymentId": name}
            case "GET", [*_, kind] if kind in {"payments", "refunds", "chargebacks", "captures"}:
                return self._list(kind, parts[1] if len(parts) == 3 else "", query)
        return _MISSING

    def _create(self, asked: dict[str, Any]) -> Said:
        sequence = asked.get("sequenceType", "oneoff")
        for name in ("amount", "description", *(["redirectUrl"] if sequence != "recurring" else [])):
            if not asked.get(name):
                return _wrong(f"The {name} is missing")
        if sequence != "oneoff" and asked.get("customerId") not in self.customers:
            return _problem(404, "Not Found", "The customer id is invalid")
        if sequence == "recurring" and asked.get("mandateId") not in self.mandates:
            return _wrong("The mandate is invalid or revoked")
        if sequence != "first" and not float(asked["amount"]["value"]):
            return _wrong("The amount is lower than the minimum")
        if (wrong := self._wrong_amount(asked["amount"])) is not None:
            return wrong
        if len(json.dumps(asked.get("metadata"), ensure_ascii=False).encode()) > _MOST_METADATA:
            return _wrong("The metadata is too large")
        wanted = asked.get("method") or self.active
        if not set([wanted] if isinstance(wanted, str) else wanted) & set(self.active):
            return _wrong("No suitable payment methods found")
        name = f"tr_{len(self.payments) + 1:010}"
        self.payments[name] = {
            "resource": "payment",
            "id": name,
            "mode": "test",
            "createdAt": self._written(self.now),
            "amount": asked["amount"],
            "description": asked["description"][:255],
            "method": None,
            "metadata": asked.get("metadata"),
            "status": "open",
            "expiresAt": self._written(self.now + timedelta(seconds=self.life)),
            "profileId": "pfl_standin",
            "sequenceType": asked.get("sequenceType", "oneoff"),
            "redirectUrl": asked.get("redirectUrl"),
            "webhookUrl": asked.get("webhookUrl"),
            "locale": asked.get("locale"),
            "captureMode": asked.get("captureMode"),
            "billingAddress": asked.get("billingAddress", {}),
            **({"customerId": asked["customerId"]} if "customerId" in asked else {}),
        }
        if sequence == "recurring":
            self._charge(self.payments[name], asked["mandateId"])
        return 201, self.shown(name)

    def _charge(self, payment: dict[str, Any], mandate: str) -> None:
        """A charge without the customer is decided, or on its way."""
        del payment["expiresAt"]
        if self.mandates[mandate]["method"] == "directdebit":
            return self._move(payment, "pending", method="directdebit", mandateId=mandate, details=dict(_ACCOUNT))
        failed = {"failureReason": self.failure_reason} if self.recurring_status == "failed" else {}
        more = {"method": "creditcard", "mandateId": mandate, "details": {**_CARD, **failed}}
        return self._move(payment, self.recurring_status, **more)

    def _create_customer(self, asked: dict[str, Any]) -> Said:
        name = f"cst_{len(self.customers) + 1:06}"
        own = f"{self.base_url}/v2/customers/{name}"
        self.customers[name] = {
            "resource": "customer",
            "id": name,
            "mode": "test",
            "name": asked.get("name"),
            "email": asked.get("email"),
            "locale": None,
            "metadata": asked.get("metadata"),
            "createdAt": self._written(self.now),
            "_links": {
                "self": {"href": own, "type": "application/hal+json"},
                "dashboard": {"href": f"{self.base_url}/dashboard/{name}", "type": "text/html"},
                "documentation": {"href": "https://docs.mollie.com/reference/create-customer", "type": "text/html"},
            },
        }
        return 201, self.customers[name]

    def _give_mandate(self, payment: dict[str, Any], method: str) -> None:
        """A first payment allows later ones: by card, or by debit of the account."""
        card = {name: _CARD[name] for name in ("cardHolder", "cardNumber", "cardLabel", "cardExpiryDate")}
        is_debit = method in _GIVES_DEBITS
        name = f"mdt_{len(self.payments)}x{len(self.mandates) + 1}"
        own = f"{self.base_url}/v2/customers/{payment['customerId']}/mandates/{name}"
        self.mandates[name] = {
            "resource": "mandate",
            "id": name,
            "mode": "test",
            "method": "directdebit" if is_debit else "creditcard",
            "details": dict(_ACCOUNT) if is_debit else card,
            "signatureDate": None,
            "mandateReference": None,
            "status": "valid",
            "customerId": payment["customerId"],
            "createdAt": self._written(self.now),
            "_links": {
                "self": {"href": own, "type": "application/hal+json"},
                "customer": {"href": own.partition("/mandates")[0], "type": "application/hal+json"},
                "documentation": {"href": "https://docs.mollie.com/reference/get-mandate", "type": "text/html"},
            },
        }
        payment["mandateId"] = name

    def _wrong_amount(self, amount: dict[str, str]) -> Said | None:
        digits = _DIGITS.get(amount["currency"], 2)
        if re.fullmatch(r"\d+" + (rf"\.\d{{{digits}}}" if digits else ""), amount["value"]):
            return None
        return _wrong("The amount contains an invalid value")

    def shown(self, name: str) -> dict[str, Any]:
        """A payment as it stands now, with what may be done with it."""
        payment = self.payments[name]
        if (
            payment["status"] == "open"
            and "expiresAt" in payment
            and self.now >= datetime.fromisoformat(payment["expiresAt"])
        ):
            self._move(payment, "expired", expiredAt=self._written(self.now))
        shown = {**payment, "_links": self._links_of(payment)}
        if payment["status"] == "open":
            shown["isCancelable"] = name in self.cancelable
        if payment["status"] == "paid":
            back = self._sum(self.refunds, name, gone={"failed", "canceled"})
            taken = self._sum(self.chargebacks, name)
            currency, paid = payment["amount"]["currency"], float(payment["amount"]["value"])
            shown["amountRefunded"] = {"currency": currency, "value": f"{back:.2f}"}
            shown["amountRemaining"] = {"currency": currency, "value": f"{paid - back - taken:.2f}"}
            if taken:
                shown["amountChargedBack"] = {"currency": currency, "value": f"{taken:.2f}"}
        return shown

    def _sum(self, of: dict[str, dict[str, Any]], name: str, gone: set[str] | None = None) -> float:
        return sum(
            float(one["amount"]["value"])
            for one in of.values()
            if one["paymentId"] == name and one.get("status") not in (gone or set()) and not one.get("reversedAt")
        )

    def _links_of(self, payment: dict[str, Any]) -> dict[str, Any]:
        own = f"{self.base_url}/v2/payments/{payment['id']}"
        links = {
            "self": {"href": own, "type": "application/hal+json"},
            "dashboard": {"href": f"{self.base_url}/dashboard/{payment['id']}", "type": "text/html"},
            "documentation": {"href": "https://docs.mollie.com/reference/get-payment", "type": "text/html"},
        }
        if payment["status"] == "open" and payment["sequenceType"] != "recurring":
            checkout = f"{self.base_url}/checkout/select-method/{payment['id']}"
            links["checkout"] = {"href": checkout, "type": "text/html"}
        return links

    def _cancel(self, name: str) -> Said:
        if self.shown(name)["status"] != "open" or name not in self.cancelable:
            return _wrong("The payment cannot be canceled")
        self._move(self.payments[name], "canceled", canceledAt=self._written(self.now))
        return 200, self.shown(name)

    def _capture(self, name: str, asked: dict[str, Any]) -> Said:
        """Take what is held: a card's once."""
        payment = self.shown(name)
        if payment["status"] != "authorized" or float(payment["amountCaptured"]["value"]):
            return _wrong("The payment has no funds to capture")
        amount = asked.get("amount") or payment["amount"]
        if (wrong := self._wrong_amount(amount)) is not None:
            return wrong
        if float(amount["value"]) > float(payment["amount"]["value"]):
            return _wrong("The amount is higher than the authorized amount")
        made = f"cpt_{len(self.captures) + 1:010}"
        own = f"{self.base_url}/v2/payments/{name}"
        self.captures[made] = {
            "resource": "capture",
            "id": made,
            "mode": "test",
            "amount": amount,
            "description": asked.get("description", ""),
            "metadata": asked.get("metadata"),
            "paymentId": name,
            "status": "pending",
            "createdAt": self._written(self.now),
            "_links": {
                "self": {"href": f"{own}/captures/{made}", "type": "application/hal+json"},
                "payment": {"href": own, "type": "application/hal+json"},
                "documentation": {"href": "https://docs.mollie.com/reference/create-capture", "type": "text/html"},
            },
        }
        if self.capture_status != "pending":
            self.decide_capture(made, self.capture_status)
        return 201, self.captures[made]

    def _release(self, name: str, _asked: dict[str, Any]) -> Said:
        """Take the wish to let go of what is held, and do so if the bank does."""
        if self.shown(name)["status"] != "authorized":
            return _wrong("The payment is not authorized")
        self.releasing.add(name)
        if self.releases:
            self.let_go(name)
        return 202, None

    def _refund(self, name: str, asked: dict[str, Any]) -> Said:
        payment = self.shown(name)
        if payment["status"] != "paid":
            return _wrong("The payment is not paid and can't be refunded")
        if (wrong := self._wrong_amount(asked["amount"])) is not None:
            return wrong
        if float(asked["amount"]["value"]) > float(payment["amountRemaining"]["value"]):
            return _problem(409, "Conflict", "The specified amount cannot be refunded.")
        made = f"re_{len(self.refunds) + 1:010}"
        self.refunds[made] = {
            "resource": "refund",
            "id": made,
            "mode": "test",
            "amount": asked["amount"],
            "description": asked.get("description", ""),
            "metadata": asked.get("metadata"),
            "paymentId": name,
            "status": self.refund_status,
            "createdAt": self._written(self.now),
            "_links": {
                "self": {"href": f"{self.base_url}/v2/payments/{name}/refunds/{made}", "type": "application/hal+json"},
                "payment": {"href": f"{self.base_url}/v2/payments/{name}", "type": "application/hal+json"},
                "documentation": {"href": "https://docs.mollie.com/reference/create-refund", "type": "text/html"},
            },
        }
        return 201, self.refunds[made]

    def _list(self, kind: str, of: str, query: dict[str, str]) -> Said:
        """A part of a list, the newest first; `from` is the first of it."""
        names = list(reversed(self._all(kind)))
        names = [name for name in names if not of or self._of(kind, name) == of]
        if "from" in query and query["from"] not in names:
            return _problem(400, "Bad Request", "Invalid cursor value")
        begin = names.index(query["from"]) if "from" in query else 0
        limit = min(int(query.get("limit", 50)), self.part)
        here, rest = names[begin : begin + limit], names[begin + limit :]
        own = f"{self.base_url}/v2/{kind}"
        following = {"href": f"{own}?from={rest[0]}&limit={limit}", "type": "application/hal+json"} if rest else None
        return 200, {
            "count": len(here),
            "_embedded": {kind: [self._listed(kind, name, query) for name in here]},
            "_links": {
                "self": {"href": own, "type": "application/hal+json"},
                "previous": None,
                "next": following,
                "documentation": {"href": f"https://docs.mollie.com/reference/list-{kind}", "type": "text/html"},
            },
        }

    def _all(self, kind: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = getattr(self, kind)
        return found

    def _of(self, kind: str, name: str) -> str:
        return str(self._all(kind)[name]["paymentId"])

    def _listed(self, kind: str, name: str, query: dict[str, str]) -> dict[str, Any]:
        if kind == "payments":
            return self.shown(name)
        one = self._all(kind)[name]
        if query.get("embed") == "payment":
            return one | {"_embedded": {"payment": self.shown(one["paymentId"])}}
        return one

    def _written(self, moment: datetime) -> str:
        return moment.astimezone(UTC).isoformat(timespec="seconds")

    def _move(self, payment: dict[str, Any], status: str, **more: Any) -> None:
        payment |= {"status": status, **more}
        if payment["webhookUrl"]:
            self.told.append((payment["webhookUrl"], payment["id"]))

    # What customers, banks and the account's owner do:

    def pay(self, name: str, method: str = "creditcard", status: str = "paid", **details: Any) -> bool:
        """A customer pays on the page of a payment; whether that was possible."""
        if self.shown(name)["status"] != "open":
            return False
        more: dict[str, Any] = {"method": method, "details": {**_DETAILS.get(method, {}), **details}}
        if status == "paid" and self.payments[name]["captureMode"] == "manual":
            nothing = {**self.payments[name]["amount"], "value": "0.00"}
            status, until = "authorized", self._written(self.now + _HOLD)
            more |= {"authorizedAt": self._written(self.now), "captureBefore": until, "amountCaptured": nothing}
        if status == "paid":
            more["paidAt"] = self._written(self.now)
            if self.payments[name]["sequenceType"] == "first":
                self._give_mandate(self.payments[name], method)
        self._move(self.payments[name], status, **more)
        return True

    def decide_capture(self, made: str, status: str) -> None:
        """A capture succeeds or fails; once all is taken the payment is paid."""
        capture = self.captures[made]
        capture["status"] = status
        payment = self.payments[capture["paymentId"]]
        if status == "succeeded":
            payment["amountCaptured"] = capture["amount"]
            if capture["amount"] == payment["amount"]:
                self._move(payment, "paid", paidAt=self._written(self.now))

    def let_go(self, name: str) -> None:
        """The bank lets go of what is still held."""
        payment = self.payments[name]
        taken = float(payment["amountCaptured"]["value"])
        ended = {"paidAt": self._written(self.now)} if taken else {"canceledAt": self._written(self.now)}
        self._move(payment, "paid" if taken else "canceled", **ended)

    def settle(self, name: str, status: str, reason: str = "") -> None:
        """A payment that was pending is paid or failed, for the `reason` of its bank."""
        details = self.payments[name]["details"] | ({"bankReasonCode": reason} if reason else {})
        self._move(self.payments[name], status, details=details)

    def charge_back(self, name: str, value: str) -> str:
        """A bank takes money back."""
        made = f"chb_{len(self.chargebacks) + 1:06}"
        own = f"{self.base_url}/v2/payments/{name}"
        self.chargebacks[made] = {
            "resource": "chargeback",
            "id": made,
            "amount": {"currency": self.payments[name]["amount"]["currency"], "value": value},
            "paymentId": name,
            "createdAt": self._written(self.now),
            "reversedAt": None,
            "reason": {"code": "AC01", "description": "Account identifier incorrect"},
            "_links": {
                "self": {"href": f"{own}/chargebacks/{made}", "type": "application/hal+json"},
                "payment": {"href": own, "type": "application/hal+json"},
                "documentation": {"href": "https://docs.mollie.com/reference/get-chargeback", "type": "text/html"},
            },
        }
        return made

    def reverse(self, name: str) -> None:
        """The bank gives it again."""
        self.chargebacks[name]["reversedAt"] = self._written(self.now)

    def give_back(self, name: str, value: str) -> str:
        """A refund is made in the dashboard."""
        amount = {"currency": self.payments[name]["amount"]["currency"], "value": value}
        made = self._refund(name, {"amount": amount})[1]
        assert made is not None
        return str(made["id"])

    def change_refund(self, name: str, status: str) -> None:
        """A refund goes on, fails, or is canceled in the dashboard."""
        self.refunds[name]["status"] = status

    def let_pass(self, hours: float) -> None:
        """It is so many hours later than it is: who was to be refunded has the money, captures are
        decided, and what was to be let go of is.
        """
        self.time = datetime.now(UTC) + timedelta(hours=hours) if hours else None
        for refund in self.refunds.values():
            if refund["status"] == "pending":
                refund["status"] = "refunded"
        for name, capture in self.captures.items():
            if capture["status"] == "pending":
                self.decide_capture(name, "succeeded")
        for name in self.releasing:
            if self.payments[name]["status"] == "authorized":
                self.let_go(name)

    def set(self, **values: Any) -> None:
        """Change what the stand-in is like: its time, how many answers it loses, …"""
        for name, value in values.items():
            if name == "time":
                self.time = datetime.fromisoformat(value)
            elif name == "cancelable":
                self.cancelable.add(value)
            else:
                setattr(self, name, value)

    def forget(self) -> None:
        """Be a new account."""
        base_url = self.base_url
        self.__dict__.update(Mollie(base_url).__dict__)

    def profile(self, key: str) -> Said:
        """The profile that a key belongs to."""
        name, side = self.profiles.get(key, "pfl_standin"), key.partition("_")[0]
        own, dashboard = f"{self.base_url}/v2/profiles/{name}", f"{self.base_url}/dashboard/{name}"
        return 200, {
            "resource": "profile",
            "id": name,
            "mode": side,
            "name": "A shop",
            "website": "https://shop.example",
            "email": "shop@example.com",
            "phone": "+31208202070",
            "businessCategory": "OTHER_MERCHANDISE",
            "status": "verified",
            "createdAt": "2026-01-02T03:04:05+00:00",
            "_links": {
                "self": {"href": own, "type": "application/hal+json"},
                "dashboard": {"href": dashboard, "type": "text/html"},
            },
        }

    def see(self) -> dict[str, Any]:
        """All that there is."""
        names = ("refunds", "chargebacks", "captures", "asked", "told")
        return {"payments": {name: self.shown(name) for name in self.payments}} | {
            name: getattr(self, name) for name in names
        }


_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Stand-in for Mollie</title>
<meta name="viewport" content="width=device-width"></head><body><main><h1>{description}</h1><p>{value} {currency}</p>
<form method="post">
<button name="way" value="creditcard">Pay by card</button>
<button name="way" value="ideal">Pay with iDEAL</button>
<button name="way" value="declined">Pay by a card that is declined</button>
<button name="way" value="back">Back without paying</button>
</form></main></body></html>"""


class Door:
    """The stand-in over HTTP."""

    def __init__(self, mollie: Mollie) -> None:
        self.mollie = mollie
        self.pace = Pace()

    async def respond(self, request: web.Request) -> web.Response:
        """Answer a request of the library's, of a customer's browser, or of a test."""
        if request.path == "/control":
            asked = await request.json()
            if asked["do"] == "take_time":
                self.pace.become(*asked["with"])
                return web.json_response(None)
            made = getattr(self.mollie, asked["do"])(*asked.get("with", []), **asked.get("by", {}))
            await self._tell()
            return web.json_response(made)
        if request.path.startswith("/checkout/"):
            return await self._page(request, request.path.rpartition("/")[2])
        if not re.fullmatch(r"Bearer (test|live)_\w+", request.headers.get("Authorization", "")):
            return self._json(_problem(401, "Unauthorized Request", "Missing authentication"))
        if request.path == "/v2/profiles/me":
            return self._json(self.mollie.profile(request.headers["Authorization"].removeprefix("Bearer ")))
        key, body = request.headers.get("Idempotency-Key", ""), (await request.read()).decode()
        await self.pace.take()
        said = self.mollie.answer(request.method, request.path, dict(request.query), key, body)
        await self.pace.take()
        if self.mollie.loses and request.method == "POST":
            self.mollie.loses -= 1
            assert request.transport is not None
            request.transport.abort()
        return self._json(said)

    async def _page(self, request: web.Request, name: str) -> web.Response:
        if name not in self.mollie.payments or self.mollie.shown(name)["status"] != "open":
            return web.Response(status=410, text="This payment is not open any more")
        payment = self.mollie.payments[name]
        if request.method == "GET":
            shown = {"description": payment["description"], **payment["amount"]}
            page = _PAGE.format(**{each: html.escape(text) for each, text in shown.items()})
            return web.Response(text=page, content_type="text/html")
        way = parse_qs(await request.text())["way"][0]
        if way == "declined":
            return web.Response(status=303, headers={"Location": request.path})
        if way != "back":
            self.mollie.pay(name, way)
            await self._tell()
        return web.Response(status=303, headers={"Location": payment["redirectUrl"]})

    async def _tell(self) -> None:
        """Tell of what changed at the addresses that were asked for."""
        told, self.mollie.told = self.mollie.told, []
        async with aiohttp.ClientSession() as client:
            for url, name in told:
                at = urlsplit(url)
                carried = f"{self.mollie.via}{at.path}?{at.query}" if self.mollie.via else url
                # Mollie would try again ten times.
                with suppress(aiohttp.ClientError):
                    async with client.post(carried, data={"id": name}) as answer:
                        await answer.read()

    def _json(self, said: Said) -> web.Response:
        if said[1] is None:
            return web.Response(status=said[0])
        return web.Response(status=said[0], text=json.dumps(said[1]), content_type="application/hal+json")


async def main() -> None:
    """Serve until our input is closed."""
    mollie = Mollie()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", Door(mollie).respond)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    mollie.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    print(mollie.base_url, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
