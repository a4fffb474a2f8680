"""The bank's 3-D Secure page, where a customer approves or rejects a payment;
served below /simulator.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from typing import Final, TypeVar, cast, get_args
from urllib.parse import parse_qs, urlsplit

from babel.numbers import format_currency
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from paydesk.adapters.acquirers.interface import Challenged
from paydesk.adapters.acquirers.simulator.bank import Bank, Challenge, Decision
from paydesk.adapters.acquirers.simulator.standing import Status

_PACKAGE: Final = "paydesk.adapters.acquirers.simulator"
_PAGES: Final = Environment(loader=PackageLoader(_PACKAGE), autoescape=True, undefined=StrictUndefined)
_STYLE: Final = files(_PACKAGE).joinpath("templates", "bank.css").read_bytes()
_LARGEST_FORM: Final = 1024
_ANSWER_TO: Final[dict[Decision, Status]] = {"approve": Status.APPROVED, "reject": Status.DECLINED}
_HEADERS: Final = {
    # No form-action: Chromium applies it to the whole chain of redirects after the post, and that
    # chain ends at the shop's success_url, which may have a scheme of its own (shopapp://) that no
    # bank could list.
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "no-store",
    # The address is the only thing that lets a browser decide, so it is told to nobody.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_Found = TypeVar("_Found")


def origin_of(base_url: str) -> str:
    """Scheme, host and port of an address, as a Content-Security-Policy names it."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc}"


def with_page(base_url: str, finding: _Found) -> _Found:
    """Give a challenge the address of its page below `base_url`; anything else stays as it is."""
    if isinstance(finding, Challenged):
        return replace(finding, url=f"{base_url.rstrip('/')}/simulator/challenge/{finding.reference}")
    return finding


def challenge_app(bank: Bank) -> Starlette:
    """The bank's pages as an ASGI app, to be mounted at /simulator."""

    async def show(request: Request) -> Response:
        """Ask the customer, or say that there is nothing to answer any more."""
        challenge = await asyncio.to_thread(bank.challenge, _reference(request))
        return _page(challenge, status=_status_of(challenge))

    async def decide(request: Request) -> Response:
        """Take the decision and send the browser back;
        the unguessable address is what entitles it to decide.
        """
        form = parse_qs((await request.body()).decode(errors="replace"))
        decision = form.get("decision", [""])[0]
        if decision not in get_args(Decision):
            return _page(await asyncio.to_thread(bank.challenge, _reference(request)), status=400)
        chosen = cast("Decision", decision)
        challenge = await asyncio.to_thread(bank.decide, _reference(request), chosen)
        if challenge is None:
            return _page(None, status=404)
        # A double click gets the same way back; a decision that came too late is explained.
        if chosen == "close" or challenge.status is _ANSWER_TO[chosen]:
            return RedirectResponse(challenge.return_url, status_code=303, headers=_HEADERS)
        return _page(challenge, status=409)

    return Starlette(
        routes=[
            Route("/challenge/{reference}", show, methods=["GET"]),
            Route("/challenge/{reference}", decide, methods=["POST"], max_body_size=_LARGEST_FORM),
            Route("/bank.css", _style, methods=["GET"]),
        ]
    )


def _reference(request: Request) -> str:
    return str(request.path_params["reference"])


async def _style(request: Request) -> Response:
    """The pages' style sheet."""
    return Response(_STYLE, media_type="text/css", headers={"Cache-Control": "public, max-age=3600"})


def _status_of(challenge: Challenge | None) -> int:
    """The HTTP status of a page that is only looked at."""
    if challenge is None:
        return 404
    return 200 if challenge.status is Status.CHALLENGED else 410


def _page(challenge: Challenge | None, *, status: int) -> HTMLResponse:
    """The page of a challenge as it stands."""
    amount = _shown(challenge.amount, challenge.currency) if challenge else ""
    html = _PAGES.get_template("challenge.html").render(challenge=challenge, amount=amount)
    return HTMLResponse(html, status_code=status, headers=_HEADERS)


def _shown(amount: Decimal, currency: str) -> str:
    """An amount for people, such as 1,234.50 USD, in one unbreakable piece."""
    return format_currency(amount, currency, "#,##0.00\N{NO-BREAK SPACE}¤¤", locale="en")
