"""A stand-in for the balance of a Stripe account and its payouts, written from Stripe's documents:
what a charge, refund, dispute, conversion or failed payout does to it, and both lists.

It is not Stripe. Each request is compared with the parameter types of the installed library; a
wrong one is answered 400, and kept in `wrong`.

Source: docs.stripe.com/api/balance_transactions, docs.stripe.com/api/payouts (objects and
    lists), docs.stripe.com/payouts/reconciliation, docs.stripe.com/reports/reporting-categories,
    docs.stripe.com/reports/balance-transaction-types, docs.stripe.com/currencies/conversions,
    support.stripe.com, "Dispute fees".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from stripe.params import BalanceTransactionListParams, PayoutListParams
from tests.standins.declared import undeclared
from tests.standins.parameters import nested, problems

LISTS = {"/v1/balance_transactions": BalanceTransactionListParams, "/v1/payouts": PayoutListParams}


@dataclass
class StripeBalance:
    """An account's transactions and payouts, the oldest first; `within` has which automatic payout
    a transaction is in, which only that list tells.
    """

    time: int = 1_800_000_000
    transactions: list[dict[str, Any]] = field(default_factory=list)
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    payouts: list[dict[str, Any]] = field(default_factory=list)
    within: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    most: int = 100
    base_url: str = ""

    def charge(
        self,
        amount: int,
        currency: str = "eur",
        *,
        fee: int = 0,
        settled: tuple[int, str, float] | None = None,
        metadata: dict[str, str] | None = None,
    ) -> dict[str, Any]:
        """A payment; `settled` is what came of it, in which currency, and the rate."""
        name = f"ch_{len(self.sources) + 1}"
        self.sources[name] = {
            "id": name,
            "object": "charge",
            "amount": amount,
            "amount_captured": amount,
            "amount_refunded": 0,
            "currency": currency,
            "created": self.time,
            "metadata": metadata or {},
            "payment_intent": f"pi_{name}",
            "status": "succeeded",
        }
        gross, into, rate = settled or (amount, currency, None)
        return self._move("charge", "charge", gross, into, fee, name, rate)

    def refund(self, charge: str, amount: int, metadata: dict[str, str] | None = None) -> dict[str, Any]:
        """Money given back; Stripe keeps the fee of the payment, and takes none for this."""
        name, of = f"re_{len(self.sources) + 1}", self.sources[charge]
        self.sources[name] = {
            "id": name,
            "object": "refund",
            "amount": amount,
            "charge": charge,
            "currency": of["currency"],
            "created": self.time,
            "metadata": metadata or {},
            "payment_intent": of["payment_intent"],
            "status": "succeeded",
        }
        return self._move("refund", "refund", -amount, of["currency"], 0, name)

    def fail_debit(self, charge: str) -> dict[str, Any]:
        """A direct debit comes to nothing: what was written when it was asked for goes off."""
        of = self.sources[charge]
        of |= {"status": "failed", "amount_captured": 0}
        return self._move("payment_failure_refund", "charge_failure", -of["amount"], of["currency"], 0, charge)

    def capture_part(self, charge: str, captured: int) -> dict[str, Any]:
        """Less is captured than was held, by an API version before 2025-03-31: the charge is of
        all, and the rest is a refund of it.
        """
        of = self.sources[charge]
        made = self.refund(charge, of["amount"] - captured)
        made["reporting_category"] = "partial_capture_reversal"
        of |= {"amount_captured": captured, "amount_refunded": of["amount"] - captured}
        return made

    def dispute(self, charge: str, fee: int) -> dict[str, Any]:
        """A bank takes the money back, and Stripe a fee for that."""
        name, of = f"dp_{len(self.sources) + 1}", self.sources[charge]
        self.sources[name] = {
            "id": name,
            "object": "dispute",
            "amount": of["amount"],
            "charge": charge,
            "currency": of["currency"],
            "created": self.time,
            "metadata": {},
            "payment_intent": of["payment_intent"],
            "reason": "fraudulent",
            "status": "needs_response",
        }
        return self._move("adjustment", "dispute", -of["amount"], of["currency"], fee, name)

    def win(self, dispute: str, fee: int) -> dict[str, Any]:
        """The money, and the fee, come again."""
        of = self.sources[dispute]
        return self._move("adjustment", "dispute_reversal", of["amount"], of["currency"], -fee, dispute)

    def own_fee(self, amount: int, currency: str = "eur") -> dict[str, Any]:
        """A fee of Stripe's own, such as of Radar: a transaction that is nothing else."""
        return self._move("stripe_fee", "fee", -amount, currency, 0, None)

    def move(self, kind: str, category: str, amount: int, currency: str = "eur") -> dict[str, Any]:
        """A movement of another kind."""
        return self._move(kind, category, amount, currency, 0, None)

    def pay_out(self, *, automatic: bool = True, status: str = "paid", currency: str = "eur") -> dict[str, Any]:
        """What the balance has goes to the bank account."""
        mine = [one for one in self.transactions if one["currency"] == currency and one["id"] not in self.within]
        amount = sum(one["net"] for one in mine)
        name = f"po_{len(self.payouts) + 1}"
        own = self._move("payout", "payout", -amount, currency, 0, name)
        made = {
            "id": name,
            "object": "payout",
            "amount": amount,
            "arrival_date": self.time,
            "automatic": automatic,
            "balance_transaction": own["id"],
            "created": self.time,
            "currency": currency,
            "livemode": False,
            "method": "standard",
            "reconciliation_status": "completed" if automatic else "not_applicable",
            "source_type": "card",
            "status": status,
            "trace_id": {"status": "supported", "value": f"TRACE{name}"},
            "type": "bank_account",
        }
        self.payouts.append(made)
        self.sources[name] = made
        self.within |= {one["id"]: name if automatic else "" for one in [*mine, own]}
        return made

    def fail(self, payout: dict[str, Any]) -> None:
        """The bank does not take a payout after all: its money is in the balance again."""
        payout |= {"status": "failed", "failure_code": "account_closed"}
        self._move("payout_failure", "payout_reversal", payout["amount"], payout["currency"], 0, payout["id"])

    def _move(
        self,
        kind: str,
        category: str,
        amount: int,
        currency: str,
        fee: int,
        source: str | None,
        rate: float | None = None,
    ) -> dict[str, Any]:
        name = f"txn_{len(self.transactions) + 1}"
        details = {
            "amount": fee,
            "application": None,
            "currency": currency,
            "description": "Stripe",
            "type": "stripe_fee",
        }
        made = {
            "id": name,
            "object": "balance_transaction",
            "amount": amount,
            "available_on": self.time + 2 * 86400,
            "balance_type": "payments",
            "created": self.time,
            "currency": currency,
            "description": None,
            "exchange_rate": rate,
            "fee": fee,
            "fee_details": [details] if fee else [],
            "net": amount - fee,
            "reporting_category": category,
            "source": source,
            "status": "pending",
            "type": kind,
        }
        self.transactions.append(made)
        return made

    async def respond(self, request: web.Request) -> web.Response:
        """Answer a request of the library's."""
        asked = nested(list(request.query.items()))
        self.asked.append(request.path_qs)
        shape = LISTS.get(request.path)
        if shape is None or request.method != "GET":
            return self._json(404, {"error": {"type": "invalid_request_error", "message": "No such path"}})
        if found := list(problems(asked, shape)):
            self.wrong += found
            return self._json(400, {"error": {"type": "invalid_request_error", "message": "; ".join(found)}})
        if request.path == "/v1/payouts":
            return self._json(200, self._page(self.payouts, asked))
        chosen = [one for one in self.transactions if asked.get("payout") in (None, self.within.get(one["id"]))]
        if asked.get("payout") and not any(one["id"] == asked["payout"] and one["automatic"] for one in self.payouts):
            message = "Balance transaction history can only be filtered on automatic transfers, not manual."
            return self._json(400, {"error": {"type": "invalid_request_error", "message": message}})
        page = self._page(chosen, asked)
        if "data.source" in (asked.get("expand") or {}).values():
            page["data"] = [one | {"source": self.sources.get(one["source"])} for one in page["data"]]
        return self._json(200, page)

    def _page(self, objects: list[dict[str, Any]], asked: dict[str, Any]) -> dict[str, Any]:
        since = int(asked.get("created", {}).get("gte", 0))
        young = [one for one in reversed(objects) if one["created"] >= since]
        if after := asked.get("starting_after"):
            young = young[[one["id"] for one in young].index(after) + 1 :]
        most = min(int(asked.get("limit", 10)), self.most)
        return {"object": "list", "data": young[:most], "has_more": len(young) > most}

    def _json(self, status: int, said: Any) -> web.Response:
        self.wrong += undeclared(said)
        return web.Response(status=status, text=json.dumps(said), content_type="application/json")


@asynccontextmanager
async def running() -> AsyncIterator[StripeBalance]:
    """The stand-in on a free port of loopback."""
    standin = StripeBalance()
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
