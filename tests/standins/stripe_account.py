"""The stand-in for Stripe with its pages as an account that a test has a hold of by `/control`, as
of Mollie's: `python -m tests.standins.stripe_account` prints its address and serves until its input
is closed.

Source: as in `stripe_checkout.py`; docs.stripe.com/webhooks, "Event delivery".
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import datetime, timedelta
from typing import Any

from aiohttp import web
from tests.standins.stripe_checkout import StripeCheckout
from tests.standins.stripe_page import Pages, application

from paydesk.core.clock import utc_now


class HeldAccount:
    """What a test may do with the account; its clock may be ahead."""

    def __init__(self) -> None:
        self.ahead = timedelta()
        self.standin = StripeCheckout(self._now)

    def _now(self) -> datetime:
        return utc_now() + self.ahead

    def set(self, **values: Any) -> None:
        """Change what the stand-in is like: how many answers it loses, how long it takes, …"""
        for name, value in values.items():
            setattr(self.standin, name, value)

    def take_time(self, longest: float, seed: int) -> None:
        """Take up to so many seconds before it acts, and after that."""
        self.standin.pace.become(longest, seed)

    def let_pass(self, hours: float) -> None:
        """It is so many hours later than it is."""
        self.ahead = timedelta(hours=hours)

    def see(self) -> dict[str, Any]:
        """All that there is."""
        names = ("sessions", "intents", "refunds", "wrong")
        return {name: getattr(self.standin, name) for name in names}

    async def respond(self, request: web.Request) -> web.Response:
        """Do what a test asks for."""
        asked = await request.json()
        return web.json_response(getattr(self, asked["do"])(*asked.get("with", []), **asked.get("by", {})))


async def _serve(tells: str, secret: str) -> None:
    held = HeldAccount()
    app = application(Pages(held.standin, tells, secret), web.post("/control", held.respond))
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    held.standin.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    print(held.standin.base_url, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


def main() -> None:
    """Serve until our input is closed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--tells", default="")
    asked.add_argument("--secret", default="")
    given = asked.parse_args()
    asyncio.run(_serve(given.tells, given.secret))


if __name__ == "__main__":
    main()
