"""A stand-in for the balances of a Mollie organization and its settlements, written from Mollie's
documents: which transactions there are, with what was deducted, and what a settlement paid out.

It is not Mollie. Only an access token may read balances and settlements, and only an API key is
asked for payments here.

Source: docs.mollie.com/reference/list-balances, /list-balance-transactions, /list-settlements,
    /get-settlement, /get-payment, /pagination.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from aiohttp import web


def _amount(value: Decimal | str, currency: str = "EUR") -> dict[str, str]:
    return {"currency": currency, "value": f"{Decimal(value):.2f}"}


@dataclass
class MollieBalances:
    """Balances by name, each with its transactions, the oldest first; settlements and payments."""

    time: datetime = datetime(2027, 5, 1, 12, tzinfo=UTC)
    balances: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"bal_eur": []})
    settlements: list[dict[str, Any]] = field(default_factory=list)
    payments: dict[str, dict[str, Any]] = field(default_factory=dict)
    refunds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    part: int = 250
    base_url: str = ""

    def pay(self, value: str, key: str = "", *, currency: str = "EUR") -> str:
        """A payment, which may be of other software."""
        name = f"tr_{len(self.payments) + 1:010}"
        self.payments[name] = {
            "resource": "payment",
            "id": name,
            "mode": "live",
            "createdAt": self._now(),
            "amount": _amount(value, currency),
            "description": "A mug",
            "method": "creditcard",
            "metadata": {"paydesk_key": key} if key else None,
            "status": "paid",
            "profileId": "pfl_standin",
            "sequenceType": "oneoff",
            "_links": {},
        }
        return name

    def refund(self, payment: str, value: str, key: str = "") -> str:
        """A refund of a payment."""
        made = f"re_{sum(map(len, self.refunds.values())) + 1:06}"
        self.refunds.setdefault(payment, []).append(
            {
                "resource": "refund",
                "id": made,
                "amount": _amount(value),
                "status": "refunded",
                "createdAt": self._now(),
                "paymentId": payment,
                "metadata": {"paydesk_key": key} if key else None,
            }
        )
        return made

    def move(
        self,
        kind: str,
        value: str,
        deducted: str = "0",
        *,
        balance: str = "bal_eur",
        details: dict[str, Any] | None = None,
        **context: str,
    ) -> str:
        """A transaction of a balance: `deducted` is what was kept of it, not negative."""
        name = f"baltr_{sum(map(len, self.balances.values())) + 1:06}"
        made = {
            "resource": "balance-transaction",
            "id": name,
            "type": kind,
            "initialAmount": _amount(value),
            "resultAmount": _amount(Decimal(value) - Decimal(deducted)),
            "deductions": _amount(-Decimal(deducted)),
            "createdAt": self._now(),
            "context": context or None,
        }
        if details is not None:
            made["deductionDetails"] = details
        self.balances[balance].append(made)
        self.time += timedelta(minutes=1)
        return name

    def settle(self, value: str, status: str = "paidout") -> str:
        """The balance is paid out: a settlement, and a transaction."""
        name = f"stl_{len(self.settlements) + 1:06}"
        self.move("outgoing-transfer", f"-{value}", settlementId=name, transferId=f"trf_{name}")
        self.settlements.append(
            {
                "resource": "settlement",
                "id": name,
                "reference": f"1234567.2705.{len(self.settlements) + 1:02}",
                "createdAt": self._now(),
                "settledAt": self._now(),
                "status": status,
                "amount": _amount(value),
                "balanceId": "bal_eur",
                "_links": {},
            }
        )
        return name

    def _now(self) -> str:
        return self.time.isoformat(timespec="seconds")

    async def respond(self, request: web.Request) -> web.Response:
        """Answer a request of the library's."""
        held = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.asked.append((held.partition("_")[0], request.path))
        parts = request.path.removeprefix("/v2/").split("/")
        of_organization = parts[0] in {"balances", "settlements"}
        if held.startswith("access_") is not of_organization:
            return self._json(403, {"status": 403, "title": "Forbidden", "detail": "Wrong credentials", "_links": {}})
        match parts:
            case ["balances"]:
                shown = [{"resource": "balance", "id": name, "currency": "EUR"} for name in self.balances]
                return self._json(200, self._list("balances", shown, request))
            case ["balances", name, "transactions"] if name in self.balances:
                shown = list(reversed(self.balances[name]))
                return self._json(200, self._list("balance_transactions", shown, request))
            case ["settlements"]:
                return self._json(200, self._list("settlements", list(reversed(self.settlements)), request))
            case ["settlements", name]:
                return self._one([one for one in self.settlements if one["id"] == name])
            case ["payments", name]:
                return self._one([self._payment(one, request) for one in self.payments.values() if one["id"] == name])
        return self._one([])

    def _payment(self, payment: dict[str, Any], request: web.Request) -> dict[str, Any]:
        if request.query.get("embed") != "refunds":
            return payment
        return payment | {"_embedded": {"refunds": self.refunds.get(payment["id"], [])}}

    def _list(self, kind: str, objects: list[dict[str, Any]], request: web.Request) -> dict[str, Any]:
        names = [one["id"] for one in objects]
        begin = names.index(request.query["from"]) if "from" in request.query else 0
        limit = min(int(request.query.get("limit", 50)), self.part)
        here, rest = objects[begin : begin + limit], names[begin + limit :]
        own = f"{self.base_url}{request.path}"
        following = {"href": f"{own}?from={rest[0]}&limit={limit}", "type": "application/hal+json"} if rest else None
        return {
            "count": len(here),
            "_embedded": {kind: here},
            "_links": {"self": {"href": own, "type": "application/hal+json"}, "previous": None, "next": following},
        }

    def _one(self, found: list[dict[str, Any]]) -> web.Response:
        if found:
            return self._json(200, found[0])
        return self._json(404, {"status": 404, "title": "Not Found", "detail": "No such thing", "_links": {}})

    def _json(self, status: int, said: Any) -> web.Response:
        return web.Response(status=status, text=json.dumps(said), content_type="application/hal+json")


@asynccontextmanager
async def running() -> AsyncIterator[MollieBalances]:
    """The stand-in on a free port of loopback."""
    standin = MollieBalances()
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
