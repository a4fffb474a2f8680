"""One request to a portal, as its routes see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from paydesk.core.urls import as_header
from paydesk.domain.billing.for_customer import Holding
from paydesk.domain.billing.replacing_on_pages import WaysToReplace
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.domain.subscriptions.changing import Changed
from paydesk.web.portal import pages
from paydesk.web.portal.services import PortalServices
from paydesk.web.texts import Texts
from paydesk.web.visits import base_path

Wish = Callable[..., Awaitable[Changed]]
"""What a customer wants of a subscription: a function of `subscriptions.changing`."""

LARGEST_BODY = 16 * 1024


@dataclass(frozen=True, slots=True)
class PortalVisit:
    """One request to a portal: the subscription as it stands, the visitor's language,
    and where its pages are.
    """

    request: Request
    services: PortalServices
    holding: Holding
    texts: Texts
    token: str
    ways: WaysToReplace

    @property
    def has_page(self) -> bool:
        """Whether there is a page of an acquirer's on which to choose what is charged."""
        return self.ways.page is not None

    @property
    def path(self) -> str:
        """Where its pages begin, in this request's base."""
        return f"{base_path(self.request)}/portal/{self.token}"

    @property
    def view(self) -> pages.PortalView:
        """The subscription as a page shows it."""
        return pages.PortalView(self.holding, self.texts, self.path, takes_cards=self.ways.cards)

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
            continue_url=f"{self.path}/card/continue" if self.has_page else "",
            form_action=" ".join(origin for acquirer in acquirers for origin in acquirer.challenge_origins),
        )
