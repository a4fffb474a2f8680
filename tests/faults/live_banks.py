"""Stripe and Mollie in the place of the simulated bank: the stand-in for one of them in a process
of its own, and its record, which is the second witness there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr
from tests.faults.carrying import SECRET, Carrier, Letter
from tests.standins.account import Account, running
from tests.standins.stripe_checkout import signature

from paydesk.adapters.acquirers.simulator.record import Kind, Operation
from paydesk.core.clock import utc_now

NAMES = ("stripe", "mollie")
_KEY, _VOID, _CAPTURE = "paydesk_key", "paydesk_void", "paydesk_capture"
_GONE = {"failed", "canceled"}


@dataclass(frozen=True, slots=True)
class LiveBank:
    """A live acquirer, by its name, and who carries its notifications."""

    name: str
    account: Account
    carrier: Carrier

    async def do(self, what: str, *given: Any, **named: Any) -> Any:
        """Call a method of the stand-in's, which may have to tell of something meanwhile."""
        return await asyncio.to_thread(self.account.do, what, *given, **named)

    async def operations(self) -> list[Operation]:
        """What it did, by its own record, as the simulated bank would have written it down."""
        seen = await self.do("see")
        return list(_of_stripe(seen) if self.name == "stripe" else _of_mollie(seen))

    async def lies(self) -> list[Letter]:
        """Notifications of the pages that are open as if they were paid, as only the acquirer could
        send them.
        """
        seen = await self.do("see")
        return list(_lies_of_stripe(seen) if self.name == "stripe" else _lies_of_mollie(seen))

    async def wrong(self) -> list[str]:
        """What was asked of it and is not as its library's types allow, where it looks at that."""
        found: list[str] = (await self.do("see")).get("wrong", [])
        return found


@asynccontextmanager
async def live_bank(name: str, service: str) -> AsyncIterator[LiveBank]:
    """The acquirer of a name open for the length of a block, which tells a service of payments."""
    carrier = Carrier(service)
    async with AsyncExitStack() as stack:
        via = await stack.enter_async_context(carrier.listening())
        told = ["--tells", f"{via}/acquirers/stripe/notify", "--secret", SECRET] if name == "stripe" else []
        module = "tests.standins.stripe_account" if name == "stripe" else "tests.standins.mollie"
        bank = LiveBank(name, stack.enter_context(running(module, *told)), carrier)
        if name == "mollie":
            await bank.do("set", via=via)
        yield bank


def live_settings(name: str, address: str) -> dict[str, Any]:
    """The settings of a deployment whose live payments an acquirer of this name takes."""
    safe = {"live_acquirer": name, "idempotency_secret": SecretStr("i" * 40), "allow_async": True}
    if name == "mollie":
        return safe | {"mollie_key": SecretStr("test_standin"), "mollie_api_base": address}
    return safe | {
        "stripe_secret_key": SecretStr("sk_test_standin"),
        "stripe_api_base": address,
        "stripe_checkout": True,
        "stripe_webhook_secret": SecretStr(SECRET),
    }


def _of_stripe(seen: Mapping[str, Any]) -> Iterator[Operation]:
    """What a Stripe account did with the payments of ours."""
    for intent in seen["intents"].values():
        metadata = intent["metadata"]
        is_over = intent["status"] == "canceled" and intent["latest_charge"]
        if _KEY not in metadata or not (is_over or intent["status"] in {"succeeded", "requires_capture"}):
            continue
        amount, taken = _units(intent["amount"]), _units(intent["amount_received"])
        holds = intent["capture_method"] == "manual"
        yield _purchase(metadata[_KEY], amount, capture=not holds)
        if holds and taken:
            yield _moved(Kind.CAPTURE, metadata.get(_CAPTURE), metadata[_KEY], taken)
        if is_over:
            yield _moved(Kind.VOID, metadata.get(_VOID), metadata[_KEY], amount)
        for refund in seen["refunds"]:
            if refund["payment_intent"] == intent["id"]:
                yield _given_back(refund["metadata"], metadata[_KEY], _units(refund["amount"]), of=taken)


def _of_mollie(seen: Mapping[str, Any]) -> Iterator[Operation]:
    """What a Mollie account did with the payments of ours; it does not tell by which key it has let
    go of what it held.
    """
    for name, payment in seen["payments"].items():
        key, amount = payment["metadata"][_KEY], Decimal(payment["amount"]["value"])
        was_held = "authorizedAt" in payment
        if payment["status"] != "paid" and not was_held:
            continue
        yield _purchase(key, amount, capture=not was_held)
        for capture in seen["captures"].values():
            if capture["paymentId"] == name and capture["status"] == "succeeded":
                yield _moved(Kind.CAPTURE, capture["metadata"][_KEY], key, Decimal(capture["amount"]["value"]))
        if payment["status"] == "canceled":
            yield _moved(Kind.VOID, None, key, amount)
        for refund in seen["refunds"].values():
            if refund["paymentId"] == name and refund["status"] not in _GONE:
                yield _given_back(refund["metadata"], key, Decimal(refund["amount"]["value"]), of=amount)


def _lies_of_stripe(seen: Mapping[str, Any]) -> Iterator[Letter]:
    """Signed events of sessions that are still open."""
    for name, session in seen["sessions"].items():
        if session["status"] == "open":
            about = {**session, "status": "complete", "payment_status": "paid"}
            event = {"id": f"evt_{name}", "object": "event", "type": "checkout.session.completed"}
            body = json.dumps(event | {"data": {"object": about}}).encode()
            signed = {"Stripe-Signature": signature(body, SECRET, at=utc_now())}
            yield Letter("/acquirers/stripe/notify", {"Content-Type": "application/json", **signed}, body)


def _lies_of_mollie(seen: Mapping[str, Any]) -> Iterator[Letter]:
    """What names a payment that is still open, at the address that was given for it."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for name, payment in seen["payments"].items():
        if payment["status"] == "open":
            told = urlsplit(payment["webhookUrl"])
            yield Letter(f"{told.path}?{told.query}", form, f"id={name}".encode())


def _units(amount: int) -> Decimal:
    return Decimal(amount) / 100


def _purchase(key: str, amount: Decimal, *, capture: bool) -> Operation:
    return replace(_moved(Kind.AUTHORIZE, key, key, amount), capture=capture)


def _moved(kind: Kind, key: str | None, of_key: str, amount: Decimal) -> Operation:
    return Operation(at=utc_now(), key=key, kind=kind, of_key=of_key, result="approved", amount=amount, currency="USD")


def _given_back(metadata: Mapping[str, str], of_key: str, amount: Decimal, *, of: Decimal) -> Operation:
    """A refund; it undoes a payment if that is what it was made for, and it is all of it."""
    undoes = _VOID in metadata and amount == of
    return _moved(Kind.VOID if undoes else Kind.REFUND, metadata.get(_KEY), of_key, amount)
