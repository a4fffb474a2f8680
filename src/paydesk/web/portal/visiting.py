"""One request to a portal, as its routes see it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.urls import as_header
from paydesk.domain.billing.for_customer import Holding, find_holding
from paydesk.domain.billing.open_payments import Standing, standing_of
from paydesk.domain.billing.replacing_on_pages import PAYING_PATH, WaysToReplace, ways_to_replace
from paydesk.domain.merchants.customer_links import LinkTo, open_link, wrong_link
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.domain.subscriptions.changing import Changed
from paydesk.web.portal import pages
from paydesk.web.portal.services import PortalServices
from paydesk.web.texts import Texts
from paydesk.web.visits import base_path, in_sandbox

Wish = Callable[..., Awaitable[Changed]]
"""What a customer wants of a subscription: a function of `subscriptions.changing`."""

_PERIOD = re.compile(r"[0-9]{1,9}", re.ASCII)

LARGEST_BODY = 16 * 1024


@dataclass(frozen=True, slots=True)
class PortalVisit:
    """One request to a portal: the subscription as it stands, the visitor's language,
    and where its pages are. Who came by the link that pays one `period` may only do that.
    """

    request: Request
    services: PortalServices
    holding: Holding
    texts: Texts
    token: str
    ways: WaysToReplace
    period: int | None = None

    @property
    def has_page(self) -> bool:
        """Whether there is a page of an acquirer's on which to choose what is charged."""
        return self.ways.page is not None

    @property
    def path(self) -> str:
        """Where its pages begin, in this request's base."""
        return base_path(self.request) + self._route

    @property
    def pays(self) -> bool:
        """Whether it came by a link that pays what is open, and opens nothing else."""
        return self.period is not None

    @property
    def standing(self) -> Standing:
        """How the charge stands that it came to pay."""
        assert self.period is not None, "nothing else is asked for it"
        return standing_of(self.holding, self.period)

    @property
    def settled(self) -> bool:
        """Whether it came to pay what can't be paid, or not again, any more."""
        return self.pays and self.standing is not Standing.OPEN

    @property
    def card_path(self) -> str:
        """Where another card is given, in this request's base."""
        return self.view.card_path

    @property
    def result_path(self) -> str:
        """Where it says what came of that."""
        return f"{self.card_path}/result"

    @property
    def result_route(self) -> str:
        """The same, in any base."""
        return self.result_path.removeprefix(base_path(self.request))

    @property
    def _route(self) -> str:
        return f"/portal/{self.token}" if self.period is None else f"{PAYING_PATH}/{self.period}/{self.token}"

    @property
    def view(self) -> pages.PortalView:
        """The subscription as a page shows it."""
        return pages.PortalView(self.holding, self.texts, self.path, takes_cards=self.ways.cards, pays=self.pays)

    @property
    def left_open(self) -> str:
        """What to say to a customer who has come back from a challenge, or a page, that is open."""
        change = self.holding.change
        return PAGE_LEFT if change is not None and change.page is not None else "challenge_closed"

    def go(self, url: str) -> Response:
        """Send the browser on with a GET."""
        return Response(status_code=303, headers={"Location": as_header(url), "Cache-Control": "no-store"})

    def card_form(
        self,
        status: int = 200,
        *,
        notice: str | None = None,
        errors: dict[str, str] | None = None,
        typed: tuple[str, str] = ("", ""),
    ) -> Response:
        """The form for another card; `typed` is the name and the expiry date that were."""
        acquirers = self.services.desk.acquirers.values()
        return pages.card_page(
            self.view,
            holder=typed[0],
            expiry=typed[1],
            notice=notice,
            errors=errors,
            status=status,
            continue_url=f"{self.card_path}/continue" if self.has_page else "",
            form_action=" ".join(origin for acquirer in acquirers for origin in acquirer.challenge_origins),
        )


async def open_visit(request: Request) -> PortalVisit:
    """Find the subscription that the link names; the sandbox base only knows test subscriptions.

    Raises: NotFound.
    """
    services, token = PortalServices.of(request), str(request.path_params["token"])
    period = _period_of(request)
    to = LinkTo.PORTAL if period is None else LinkTo.PAYING
    link = open_link(services.desk.vault, to, token, period=period)
    holding = await find_holding(services.desk.database, link, now=services.now())
    if holding.shop.live and in_sandbox(request):
        raise wrong_link()
    ways = await ways_to_replace(services.desk, holding.subscription)
    texts = pages.texts_for(request.headers.get("accept-language", ""))
    return PortalVisit(request, services, holding, texts, token, ways, period)


def _period_of(request: Request) -> int | None:
    """The period that the link is good for; None for the portal's own. Raises: NotFound."""
    period = request.path_params.get("period")
    if period is None:
        return None
    if not _PERIOD.fullmatch(str(period)):
        raise wrong_link()
    return int(period)
