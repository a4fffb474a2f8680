"""The page of a Checkout Session, on which a browser pays, and the stand-in of `stripe_checkout.py`
in a process of its own (`python -m tests.standins.stripe_page --port 8002`).

It tells of what has happened by a signed event, as Stripe does, and does not wait for that.

Source: docs.stripe.com/payments/checkout/how-checkout-works; docs.stripe.com/testing, "Cards";
    docs.stripe.com/webhooks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import aiohttp
from aiohttp import web
from tests.standins.stripe_balance import LISTS, StripeBalance
from tests.standins.stripe_checkout import StripeCheckout, signature

from paydesk.core.clock import utc_now

METHODS: Mapping[str, dict[str, Any]] = {
    "4242424242424242": {"type": "card", "card": {"brand": "visa", "last4": "4242", "wallet": None}},
    "5555555555554444": {"type": "card", "card": {"brand": "mastercard", "last4": "4444", "wallet": None}},
    "DE89370400440532013000": {"type": "sepa_debit", "sepa_debit": {"last4": "3000"}},
}
"""The cards that work, and an account whose bank says days later whether it pays; any other number
is declined, and the page stays.
"""

_PAGE = """<!doctype html><html lang="en"><title>Checkout</title><main><h1>{heading}</h1>{said}
<form method="post"><label>Card number <input name="number" inputmode="numeric"></label>
<button>{button}</button></form><a href="{back}">Back</a></main></html>"""
_OVER = """<!doctype html><html lang="en"><title>Checkout</title><main><h1>This page has expired</h1></main></html>"""


@dataclass(frozen=True)
class Pages:
    """The pages of a stand-in's sessions; events go to `tells`, signed with `secret`."""

    standin: StripeCheckout
    tells: str
    secret: str
    telling: set[asyncio.Task[None]] = field(default_factory=set)

    async def show(self, request: web.Request) -> web.Response:
        """The page, while its session is open."""
        return self._page(request.match_info["name"])

    async def pay(self, request: web.Request) -> web.Response:
        """Take a card, tell of it, and lead back."""
        name, number = request.match_info["name"], str((await request.post()).get("number", "")).replace(" ", "")
        if number not in METHODS:
            return self._page(name, "<p role=alert>Your card was declined.</p>", 402)
        if not self.standin.pay(name, METHODS[number], sure="card" in METHODS[number]):
            return self._page(name)
        self._tell_soon(name)
        raise web.HTTPSeeOther(self.standin.sessions[name]["success_url"])

    async def debit(self, request: web.Request) -> web.Response:
        """The bank pays the debit of a session, or the newest charge on its way, for the test."""
        name = request.match_info["name"]
        if name in self.standin.sessions:
            self.standin.debit_ends(name, paid=True)
            self._tell_soon(name)
        else:
            self.standin.debit_ends(self.standin.on_its_way(), paid=True)
        return web.json_response({})

    async def ask(self, request: web.Request) -> web.Response:
        """Their bank asks a customer who pays by a card that is kept."""
        shown = f"<h1>{escape(request.match_info['name'])}</h1><form method=post><button>It is me</button></form>"
        return web.Response(text=f'<!doctype html><html lang="en"><title>Bank</title>{shown}', content_type="text/html")

    async def decide(self, request: web.Request) -> web.Response:
        """They say that it is them, and are led back."""
        raise web.HTTPSeeOther(self.standin.decide(request.match_info["name"], approve=True))

    async def wrong(self, _request: web.Request) -> web.Response:
        """What was sent and is not as the library's types allow, for the test."""
        return web.json_response(self.standin.wrong)

    def _page(self, name: str, said: str = "", status: int = 200) -> web.Response:
        session = self.standin.sessions.get(name)
        if session is None or session["status"] != "open":
            return web.Response(text=_OVER, content_type="text/html", status=404 if session is None else 410)
        total, saves = session["amount_total"], session["mode"] == "setup"
        heading = "Save your payment details" if saves else f"{total / 100:.2f} {session['currency'].upper()}"
        button, back = "Save" if saves else "Pay", escape(session["cancel_url"])
        shown = _PAGE.format(heading=heading, button=button, said=said, back=back)
        return web.Response(text=shown, content_type="text/html", status=status)

    def _tell_soon(self, name: str) -> None:
        """Tell of a session, and don't wait for that."""
        telling = asyncio.create_task(self._tell(self.standin.event(name)))
        self.telling.add(telling)
        telling.add_done_callback(self.telling.discard)

    async def _tell(self, event: bytes) -> None:
        if not self.tells:
            return
        headers = {
            "Content-Type": "application/json; charset=utf-8",
            "Stripe-Signature": signature(event, self.secret, at=utc_now()),
        }
        async with aiohttp.ClientSession() as session, session.post(self.tells, data=event, headers=headers) as answer:
            print(json.dumps({"told": answer.status}), flush=True)


async def _serve(port: int, tells: str, secret: str, *, forgets: bool) -> None:
    standin = StripeCheckout(utc_now, base_url=f"http://127.0.0.1:{port}", forgets=forgets)
    runner = web.AppRunner(application(Pages(standin, tells, secret)), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print(json.dumps({"serving": port}), flush=True)
    await asyncio.Event().wait()


def application(pages: Pages, *more: web.RouteDef) -> web.Application:
    """The stand-in with its pages, and with more routes than Stripe has."""
    standin, app = pages.standin, web.Application()
    app.router.add_routes(more)
    app.router.add_get("/c/pay/{name}", pages.show)
    app.router.add_post("/c/pay/{name}", pages.pay)
    app.router.add_get("/3ds/{name}", pages.ask)
    app.router.add_post("/3ds/{name}", pages.decide)
    app.router.add_get("/wrong", pages.wrong)
    app.router.add_post("/debits/{name}", pages.debit)
    balance = StripeBalance(wrong=standin.wrong)
    for listed in LISTS:
        app.router.add_get(listed, balance.respond)
    app.router.add_route("*", "/{path:.*}", standin.respond)
    return app


def main() -> None:
    """Serve until the process is ended."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--port", type=int, required=True)
    asked.add_argument("--tells", default="")
    asked.add_argument("--secret", default="")
    asked.add_argument("--forgets", action="store_true")
    given = asked.parse_args()
    asyncio.run(_serve(given.port, given.tells, given.secret, forgets=given.forgets))


if __name__ == "__main__":
    main()
