"""A payment page for nobody's order, which is the same for everybody:
what is served is compared with what was built.

It is made as every customer's, by the same code, and leads nowhere: there is nothing to pay
behind it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from paydesk.web.checkout import pages
from paydesk.web.checkout.checkout_view import CheckoutView
from paydesk.web.texts import Texts

SAMPLE = "/checkout/sample"

LANGUAGE = "en"
"""In which language the page is compared: it is one of those that every build has."""

_VIEW = CheckoutView(
    merchant_name="Sample",
    description="Nothing is sold here: this page is compared with what was built",
    amount=Decimal("1.00"),
    currency="EUR",
    merchant_order_id="sample",
    live=False,
    pay_url=f"{SAMPLE}/pay",
    shop_url="",
    form_action="",
    expires_at=datetime(2100, 1, 1, tzinfo=UTC),
)


def sample_page(texts: Texts) -> HTMLResponse:
    """The page as this build makes it."""
    return pages.payment_page(_VIEW, texts)


async def show_sample(request: Request) -> Response:
    """The page, for whoever compares it: `paydesk check --pages`, a worker,
    or a monitor elsewhere.
    """
    return sample_page(pages.texts_for(request.headers.get("accept-language", "")))
