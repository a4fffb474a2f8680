"""The bank's own page on which a customer pays, served below /simulator: with a card,
with a wallet, or from an account at a bank.
"""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from paydesk.adapters.acquirers.hosted_pages import PageState
from paydesk.adapters.acquirers.simulator.bank_pages import HEADERS, LARGEST_FORM, for_people, page_of, reference_in
from paydesk.adapters.acquirers.simulator.notifying import Notifier
from paydesk.adapters.acquirers.simulator.own_pages import Pages, Shown, Way


def page_routes(pages: Pages, notifier: Notifier | None = None) -> list[Route]:
    """The routes of the bank's own pages; the `notifier`, if there is one, tells what came of
    them.
    """

    async def show(request: Request) -> Response:
        """The page as it stands; one that is paid leads back."""
        return _answer(await asyncio.to_thread(pages.show, reference_in(request)))

    async def pay(request: Request) -> Response:
        """Take the customer's choice; the unguessable address is what entitles them to it."""
        form = parse_qs((await request.body()).decode(errors="replace"))
        reference, way = reference_in(request), form.get("way", [""])[0]
        before = await asyncio.to_thread(pages.show, reference)
        if way in ("approve", "reject"):
            shown = await asyncio.to_thread(pages.decide, reference, approve=way == "approve")
        elif way in set(Way):
            number = "".join(letter for letter in form.get("number", [""])[0] if letter.isdigit())
            shown = await asyncio.to_thread(pages.pay, reference, Way(way), number)
        else:
            shown = await asyncio.to_thread(pages.show, reference)
        if notifier is not None and shown is not None and before is not None and shown.state is not before.state:
            notifier.tell(shown.notify_url, reference)
        return _answer(shown, done=True)

    return [
        Route("/pay/{reference}", show, methods=["GET"]),
        Route("/pay/{reference}", pay, methods=["POST"], max_body_size=LARGEST_FORM),
    ]


def _answer(shown: Shown | None, *, done: bool = False) -> Response:
    """The page, or the way back once it is paid."""
    if shown is None:
        return page_of("page.html", status=404, page=None, amount="")
    if done and shown.state in (PageState.PAID, PageState.PENDING):
        return RedirectResponse(shown.return_url, status_code=303, headers=HEADERS)
    status = 200 if shown.state is PageState.OPEN else 410
    status = 402 if done and shown.declined else status
    return page_of("page.html", status=status, page=shown, amount=for_people(shown.amount, shown.currency))
