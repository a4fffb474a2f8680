"""The pages of a payment link: what it offers, and that there is none left. They decide nothing."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from starlette.responses import HTMLResponse

from paydesk.domain.merchants.imprints import Imprint
from paydesk.domain.selling.payment_links import PaymentLink, Rhythm
from paydesk.web.agreement import terms_in_words
from paydesk.web.brands import brand_address
from paydesk.web.checkout.pages import PAGES, CheckoutView, home_of, offer_of
from paydesk.web.item_pictures import picture_address
from paydesk.web.rendering import secured
from paydesk.web.texts import Texts


@dataclass(frozen=True, slots=True)
class LinkView:
    """A payment link as its pages show it; `path` is where its form posts to."""

    link: PaymentLink
    path: str

    @property
    def live(self) -> bool:
        """Whether real money is paid for it."""
        return self.link.shop.live

    @property
    def merchant_name(self) -> str:
        """Whose it is."""
        return self.link.merchant_name

    @property
    def brand(self) -> str:
        """Below which their own stylesheet and logo are, empty if they chose nothing."""
        return brand_address(self.link.shop.merchant_id, self.link.branded_at)

    @property
    def has_logo(self) -> bool:
        """Whether they have one."""
        return self.link.has_logo

    @property
    def imprint(self) -> Imprint:
        """Who they are, as an operator has seen it."""
        return self.link.imprint

    @property
    def picture(self) -> str:
        """Where its picture is, empty if it has none."""
        name = self.link.offer.large_picture
        return picture_address(self.link.shop, name) if name else ""


def buy_page(view: LinkView, texts: Texts, *, wrong: str = "") -> HTMLResponse:
    """What the link offers, with the form to choose; `wrong` is the field that can't be so."""
    offer = view.link.offer
    terms = {
        rhythm: terms_in_words(found, texts)
        for rhythm in offer.prices
        if (found := view.link.terms(rhythm)) is not None
    }
    html = PAGES.render(
        "buy.html",
        texts,
        view=view,
        offer=offer,
        terms=terms,
        most=view.link.most if Rhythm.ONCE in offer.prices else 1,
        wrong=wrong == "quantity",
        press=secrets.token_hex(16),
    )
    return secured(html, status=400 if wrong else 200)


def sold_out_page(view: LinkView, texts: Texts) -> HTMLResponse:
    """The page (409) of a link of which there is none left."""
    return secured(PAGES.render("sold_out.html", texts, view=view), status=409)


def closed_page(view: LinkView, texts: Texts) -> HTMLResponse:
    """The page (410) of a link whose shop sells nothing by it now."""
    return secured(PAGES.render("not_sold.html", texts, view=view), status=410)


def sold_out_checkout_page(view: CheckoutView, texts: Texts) -> HTMLResponse:
    """The page (409) of a checkout for the last one, which somebody else was faster to buy."""
    html = PAGES.render("sold_out_checkout.html", texts, view=view, offer=offer_of(view, texts), home=home_of(view))
    return secured(html, status=409)
