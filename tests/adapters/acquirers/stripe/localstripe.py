"""localstripe behind a front that says what it can't read, so that the adapter can talk as it does
to Stripe.

localstripe is a stand-in for Stripe's API with a good part of its behaviour, run in a process of
its own. It differs from Stripe; the adapter is written for Stripe. What the front does about it,
and all that it does:

- leaves out what localstripe answers 400 to: `return_url`, `setup_future_usage`, metadata on a
  capture (sent as an update of the intent instead);
- says `payment_method_types` for `allowed_payment_method_types`, as Stripe did before 2026-09-30;
- leaves out when what is listed was made, by which localstripe can't narrow a list: it answers
  with all;
- answers a search for metadata from localstripe's whole list, at once (Stripe's may lag behind);
- adds `amount_received` to a PaymentIntent;
- plays the bank's 3-D Secure page: localstripe knows that the customer is to be asked, but has
  no page.

Gaps that stay, so that nothing here proves these (the tests with the stub, next to this, show what
the adapter sends and how it reads Stripe's documented answers):

- it ignores idempotency keys: a repeated key is a second purchase, a used-up key is still taken;
- it has no disputes, and no events of them;
- it declines one card only when it is charged (4000000000000341), with no reason but
  `card_declined`;
- it knows no card numbers but of 16 digits and no codes but of 3 (no American Express), and takes
  expired cards;
- it refunds more than was captured, and it takes an off-session charge of a card that would need
  3-D Secure to a challenge, where Stripe declines it;
- it has no 3-D Secure for SetupIntents (cards that are only checked).
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web

SECRET_KEY = "sk_test_localstripe"
_LEFT_OUT = {"return_url", "setup_future_usage"}
# On loopback only, and without the copy that it keeps in a file of a fixed name.
_RUN = """
import socket, sys
from aiohttp import web
from localstripe import resources, server
resources.Store.dump_to_disk = lambda store: None
web.run_app(server.app, sock=socket.socket(fileno=int(sys.argv[1])), print=None, access_log=None)
"""


@dataclass(frozen=True)
class Standing:
    """A purchase as localstripe itself has it."""

    net: Decimal
    held: Decimal


@dataclass
class Front:
    """What the adapter takes for Stripe."""

    behind: str
    base_url: str = ""
    lose_answer_to: str = ""
    """The path of a request that is passed on, and whose answer is then dropped
    with its connection."""
    asked: list[tuple[str, str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path, idempotency key and parameters of each request."""
    ways_back: dict[str, str] = field(default_factory=dict)
    captured: dict[str, int] = field(default_factory=dict)

    async def forget(self) -> None:
        """Start anew, with an empty localstripe."""
        self.lose_answer_to = ""
        for kept in (self.asked, self.ways_back, self.captured):
            kept.clear()
        async with aiohttp.ClientSession() as client:
            (await client.delete(f"{self.behind}/_config/data")).raise_for_status()

    async def call(self, method: str, path: str, params: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
        """Ask localstripe itself."""
        asked: dict[str, Any] = {"params": params} if method == "GET" else {"data": params or {"x": ""}}
        if method == "POST" and not params:
            asked = {}
        headers = {"Authorization": f"Bearer {SECRET_KEY}"}
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.request(method, f"{self.behind}{path}", **asked) as answer,
        ):
            body = await answer.read()
            return answer.status, json.loads(body) if body.startswith(b"{") else {"error": {"message": body.decode()}}

    async def intents(self, key: str, field: str = "paydesk_key") -> list[dict[str, Any]]:
        """The intents whose metadata has our key."""
        _, found = await self.call("GET", "/v1/payment_intents", {"limit": "10000"})
        return [intent for intent in found["data"] if intent["metadata"].get(field) == key]

    async def standing(self, key: str) -> Standing:
        """What was taken and is held, by localstripe's own objects."""
        net = held = 0
        for intent in await self.intents(key):
            if intent["status"] == "requires_capture":
                held += intent["amount"]
            if intent["status"] == "succeeded":
                _, refunds = await self.call("GET", "/v1/refunds", {"payment_intent": intent["id"], "limit": "1000"})
                net += intent["amount"] - sum(refund["amount"] for refund in refunds["data"])
        return Standing(Decimal(net) / 100, Decimal(held) / 100)

    async def pass_on(self, request: web.Request) -> web.Response:
        """Pass a question on, and the answer back."""
        params = dict(parse_qsl((await request.text()) or request.query_string, keep_blank_values=True))
        self.asked.append((request.method, request.path, request.headers.get("Idempotency-Key", ""), dict(params)))
        if request.path == "/v1/payment_intents/search":
            return await self._search(params["query"])
        params = {name.removeprefix("allowed_"): value for name, value in params.items()}
        way_back = params.get("return_url", "")
        noted = {name: params.pop(name) for name in list(params) if self._is_left_out(request.path, name)}
        status, answer = await self.call(request.method, request.path, params)
        if status == 200 and request.path.endswith("/capture"):
            self.captured[answer["id"]] = int(params["amount_to_capture"])
            _, answer = await self.call("POST", f"/v1/payment_intents/{answer['id']}", noted)
        if request.method == "POST" and request.path == self.lose_answer_to:
            self.lose_answer_to = ""
            assert request.transport is not None
            request.transport.abort()
        if way_back and "id" in answer:
            self.ways_back[answer["id"]] = way_back
        return web.json_response(self._completed(answer), status=status)

    def _is_left_out(self, path: str, name: str) -> bool:
        if name.startswith("created["):
            return True
        return name in _LEFT_OUT or (path.endswith("/capture") and name.startswith("metadata"))

    async def _search(self, query: str) -> web.Response:
        asked = re.fullmatch(r"metadata\['(paydesk_key|paydesk_used_up)'\]:'(.*)'", query)
        assert asked is not None
        found = [self._completed(intent) for intent in await self.intents(asked[2], asked[1])]
        return web.json_response({"object": "search_result", "data": found, "has_more": False})

    def _completed(self, answer: dict[str, Any]) -> dict[str, Any]:
        if answer.get("object") == "list":
            answer["data"] = [self._completed(one) for one in answer["data"]]
        if answer.get("object") == "payment_intent":
            taken = self.captured.get(answer["id"], answer["amount"])
            answer["amount_received"] = taken if answer["status"] == "succeeded" else 0
            if answer["next_action"]:
                page = {"url": f"{self.base_url}/challenge/{answer['id']}", "return_url": ""}
                answer["next_action"] = {"type": "redirect_to_url", "redirect_to_url": page}
        return answer

    async def decide(self, request: web.Request) -> web.Response:
        """The bank's 3-D Secure page: its customer approves, rejects, or closes it."""
        name, decision = request.match_info["id"], (await request.post())["decision"]
        _, intent = await self.call("GET", f"/v1/payment_intents/{name}")
        if intent["status"] == "requires_action" and decision != "close":
            how = {"client_secret": intent["client_secret"], "success": str(decision == "approve").lower()}
            await self.call("POST", f"/v1/payment_intents/{name}/_authenticate", how)
        elif decision == "approve" and intent["status"] not in {"succeeded", "requires_capture"}:
            raise web.HTTPConflict
        raise web.HTTPSeeOther(self.ways_back[name])


@asynccontextmanager
async def running_localstripe() -> AsyncIterator[Front]:
    """localstripe in a process of its own with the front before it, on free ports of loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _RUN, str(listener.fileno()), pass_fds=[listener.fileno()]
        )
    front = Front(f"http://127.0.0.1:{port}")
    app = web.Application()
    app.router.add_post("/challenge/{id}", front.decide)
    app.router.add_route("*", "/{path:.*}", front.pass_on)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    front.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield front
    finally:
        await runner.cleanup()
        process.terminate()
        await process.wait()
