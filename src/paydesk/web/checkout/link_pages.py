"""The pages of a payment link: what it offers, and that there is none left. They decide nothing."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from decimal import Decimal

from starlette.responses import HTMLResponse

from paydesk.domain.merchants.imprints import Imprint
from paydesk.domain.selling.payment_links import PaymentLink
from paydesk.domain.selling.plans import Plan, in_order
from paydesk.domain.subscriptions.subscription_terms import Package, written
from paydesk.web.agreement import rhythm_in_words, terms_in_words
from paydesk.web.brands import brand_address
from paydesk.web.checkout.checkout_view import CheckoutView
from paydesk.web.checkout.pages import PAGES, home_of, is_long_amount, offer_of
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


@dataclass(frozen=True, slots=True)
class PlanView:
    """A package as it stands beside others; `version` names it in its form.

    It says what is paid how often, its whole terms in words, and a line for each thing that it has;
    `wrong` is its quantity.
    """

    version: str
    name: str
    price: Decimal
    every: str
    terms: str
    has: tuple[str, ...]
    wrong: bool


def buy_page(view: LinkView, texts: Texts, *, period: str = "", chosen: str = "", wrong: str = "") -> HTMLResponse:
    """What the link offers, with the form to choose.

    `wrong` is the field that can't be so, of what was `chosen`. Of packages side by side those paid
    by `period` are shown, as the page's own links write it.
    """
    status = 400 if wrong else 200
    values = {
        "view": view,
        "offer": view.link.offer,
        "most": view.link.most,
        "press": secrets.token_hex(16),
        "is_long": is_long_amount,
        "is_gone": wrong in ("chosen", "press"),
    }
    plans = view.link.offer.plans
    if plans is not None and len(plans.plans) > 1:
        if (sold := view.link.sold.get(chosen)) is not None and sold.terms is not None:
            period = written(sold.terms.period)
        return secured(PAGES.render("plans.html", texts, **values, **_plans(view, texts, period, wrong)), status=status)
    terms = {key: terms_in_words(one.terms, texts) for key, one in view.link.sold.items() if one.terms is not None}
    about = plans.plans[0].about if plans is not None else ""
    html = PAGES.render(
        "buy.html",
        texts,
        **values,
        terms=terms,
        only=next(iter(view.link.sold)) if len(view.link.sold) == 1 else "",
        field="rhythm" if plans is None else "version",
        has=about.splitlines(),
        wrong=wrong == "quantity",
    )
    return secured(html, status=status)


def _plans(view: LinkView, texts: Texts, asked: str, wrong: str) -> dict[str, object]:
    """The packages as they are paid by one period, and the links to the others; one that is not
    paid by it is shown as it is.
    """
    packages, plans = view.link.packages, view.link.offer.plans
    assert plans is not None
    sold = [one for one in in_order(packages.values()) if one.version_id in plans.versions]
    periods = {written(one.terms.period): one.terms.period for one in sold}
    period = periods.get(asked) or next(iter(periods.values()))
    shown = []
    for plan in plans.plans:
        versions = [packages[version] for version in plan.versions]
        one = next((each for each in versions if each.terms.period == period), versions[0])
        shown.append(_plan(one, plan, texts, wrong=wrong == "quantity" and one.terms.period == period))
    links = [(name, rhythm_in_words(each, texts), each == period) for name, each in periods.items()]
    return {"plans": shown, "links": links if len(links) > 1 else []}


def _plan(package: Package, plan: Plan, texts: Texts, *, wrong: bool) -> PlanView:
    terms = package.terms
    return PlanView(
        version=str(package.version_id),
        name=terms.name,
        price=terms.price,
        every=rhythm_in_words(terms.period, texts),
        terms=terms_in_words(terms, texts),
        has=tuple(plan.about.splitlines()),
        wrong=wrong,
    )


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
