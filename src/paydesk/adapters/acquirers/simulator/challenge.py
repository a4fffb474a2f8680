"""The bank's 3-D Secure page, where a customer approves or rejects a payment;
served below /simulator.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib.resources import files
from typing import Final, TypeVar, cast, get_args
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from paydesk.adapters.acquirers.hosted_pages import Page, PageList
from paydesk.adapters.acquirers.interface import Challenged
from paydesk.adapters.acquirers.simulator.bank import Bank
from paydesk.adapters.acquirers.simulator.bank_pages import (
    HEADERS,
    LARGEST_FORM,
    PACKAGE,
    for_people,
    page_of,
    reference_in,
)
from paydesk.adapters.acquirers.simulator.notifying import Notifier
from paydesk.adapters.acquirers.simulator.paying_page import page_routes
from paydesk.adapters.acquirers.simulator.purchase_state import Challenge, Decision, Status

_STYLE: Final = files(PACKAGE).joinpath("templates", "bank.css").read_bytes()
_ANSWER_TO: Final[dict[Decision, Status]] = {"approve": Status.APPROVED, "reject": Status.DECLINED}

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


def with_address(base_url: str, page: Page) -> Page:
    """Give a page of the bank's its address below `base_url`."""
    return replace(page, url=f"{base_url.rstrip('/')}/simulator/pay/{page.reference}")


def with_addresses(base_url: str, listed: PageList) -> PageList:
    """Give pages of the bank's list their addresses below `base_url`."""
    pages = (replace(one, page=with_address(base_url, one.page)) for one in listed.pages)
    return replace(listed, pages=tuple(pages))


def challenge_app(bank: Bank, notifier: Notifier | None = None) -> Starlette:
    """The bank's pages as an ASGI app, to be mounted at /simulator; what comes of its own pages is
    told by the `notifier`, which the caller closes, if there is one.
    """

    async def show(request: Request) -> Response:
        """Ask the customer, or say that there is nothing to answer any more."""
        challenge = await asyncio.to_thread(bank.challenge, reference_in(request))
        return _page(challenge, status=_status_of(challenge))

    async def decide(request: Request) -> Response:
        """Take the decision and send the browser back;
        the unguessable address is what entitles it to decide.
        """
        form = parse_qs((await request.body()).decode(errors="replace"))
        decision = form.get("decision", [""])[0]
        if decision not in get_args(Decision):
            return _page(await asyncio.to_thread(bank.challenge, reference_in(request)), status=400)
        chosen = cast("Decision", decision)
        challenge = await asyncio.to_thread(bank.decide, reference_in(request), chosen)
        if challenge is None:
            return _page(None, status=404)
        # A double click gets the same way back; a decision that came too late is explained.
        if chosen == "close" or challenge.status is _ANSWER_TO[chosen]:
            return RedirectResponse(challenge.return_url, status_code=303, headers=HEADERS)
        return _page(challenge, status=409)

    return Starlette(
        routes=[
            Route("/challenge/{reference}", show, methods=["GET"]),
            Route("/challenge/{reference}", decide, methods=["POST"], max_body_size=LARGEST_FORM),
            *page_routes(bank.pages, notifier),
            Route("/bank.css", _style, methods=["GET"]),
        ]
    )


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
    amount = for_people(challenge.amount, challenge.currency) if challenge else ""
    return page_of("challenge.html", status=status, challenge=challenge, amount=amount)
