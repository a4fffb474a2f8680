"""The pages that a customer sees while paying. They show what they are given and decide nothing;
no money moves here.

The payment form posts `email`, `holder`, `country`, `number`, `expiry` (`MM / YY`, or as it was
written) and `cvc`, where it asks for them `city` and `zip`, and for a subscription `agree`: the
language of the terms that were agreed to, if the box is ticked. With JavaScript it posts them with
`Accept: application/json` and expects `payment_step` or `payment_problem`, so that what was typed
stays in the browser; without, it expects a redirect or `payment_page` again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

from babel import Locale
from babel.dates import format_date
from markupsafe import Markup, escape
from starlette.responses import HTMLResponse, JSONResponse

from paydesk.core.cards import BRAND_RULES, Brand
from paydesk.core.errors import IN_A_MOMENT
from paydesk.core.urls import front_page, source_of
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.domain.shoppers.counting import CODES_A_DAY
from paydesk.domain.shoppers.proving import CODE_LIFETIME, DIGITS
from paydesk.domain.shoppers.sessions import REMEMBERED
from paydesk.web.agreement import consent_in_words, terms_in_words
from paydesk.web.card_words import CATALOGUES as CARD_CATALOGUES
from paydesk.web.checkout import wording
from paydesk.web.checkout.checkout_view import CheckoutView, in_words, is_usual, kind_of, words_of
from paydesk.web.decline_words import FIELD_OF_DECLINE, notice_for
from paydesk.web.looking_again import look_again
from paydesk.web.rendering import DoorTemplates, secured
from paydesk.web.sorting import sort_key
from paydesk.web.texts import Catalogues, Texts

_HERE = Path(__file__).parent
_BRAND_NAMES = {str(brand): rule.label for brand, rule in BRAND_RULES.items() if brand is not Brand.UNKNOWN}
PAGES = DoorTemplates(_HERE / "templates", brand_names=_BRAND_NAMES)
CATALOGUES = Catalogues(_HERE / "locale", "checkout", beneath=CARD_CATALOGUES)
texts_for = CATALOGUES.texts_for

_NOT_COUNTRIES = frozenset(["AC", "CP", "CQ", "DG", "EA", "EU", "EZ", "IC", "QO", "TA", "UN", "XA", "XB", "ZZ"])
COUNTRIES = frozenset(
    code
    for code in map(str, Locale.parse("en").territories)
    if len(code) == 2 and code.isalpha() and code not in _NOT_COUNTRIES
)
"""The ISO 3166 codes that the form offers, and XK (Kosovo), which banks use too."""

_LONG = 13
"""Characters of an amount that fit in the largest letters."""


def is_long_amount(written: str) -> bool:
    """Whether an amount would be broken amid its currency's code in the largest letters."""
    return len(written) > _LONG


@dataclass(frozen=True, slots=True)
class Offer:
    """A subscription as the pages word it: the package's name, its terms, and the sentence to agree
    to, with a card and on the acquirer's page.
    """

    name: str
    terms: str
    consent: str
    page_consent: str
    free: bool
    price: Decimal
    list_price: Decimal


def payment_page(
    view: CheckoutView,
    texts: Texts,
    *,
    field_errors: Mapping[str, str] | None = None,
    notice: str | None = None,
    status: int = 200,
) -> HTMLResponse:
    """The form to pay, with the errors (field to code of `wording.FIELD_ERRORS`) and the notice
    to show, if any.

    The usual page is written once for a shop and language, and its words are filled in: to write it
    is the largest part of what a payment costs.
    """
    errors, said = _errors(field_errors, notice, texts), notice_for(notice, wording.NOTICES) if notice else ""
    focus, amount = _focus(errors, notice), texts.money(view.amount, view.currency)
    is_long = is_long_amount(amount)
    # What each order or reader may have anew is a word, too: an app with a link of its own for each
    # order, or a header for each country, would else drive out the pages of all others.
    ours = {
        "amount": amount,
        "amount_language": texts.amount_language,
        "countries": _country_options(texts.language, view.entered.country.upper() or texts.region),
        "home": home_of(view),
    }

    def write(view: CheckoutView, ours: Mapping[str, str]) -> str:
        return PAGES.render(
            "payment.html",
            texts,
            view=view,
            is_long=is_long,
            offer=offer_of(view, texts),
            wording=wording,
            errors=errors,
            notice=texts.get(said),
            focus=focus,
            **ours,
        )

    if errors or said or focus or not is_usual(view):
        html = write(view, ours)
    else:
        html = PAGES.kept.fill(
            (texts.language, is_long, kind_of(view)),
            {**ours, **words_of(view)},
            lambda blanks: write(in_words(view, blanks), {name: blanks[name] for name in ours}),
        )
    return secured(html, status=status, form_action=view.form_action)


def payment_problem(
    texts: Texts, *, field_errors: Mapping[str, str] | None = None, notice: str | None = None, status: int
) -> JSONResponse:
    """The answer to the page's JavaScript when the customer has to do something:
    texts to show, and where to go on.

    `{"errors": {field: text}, "notice": text, "focus": field}`; `status` is that of the page
    without JavaScript.
    """
    errors = _errors(field_errors, notice, texts)
    text = texts.get(notice_for(notice, wording.NOTICES)) if notice else ""
    body = {"errors": errors, "notice": text, "focus": _focus(errors, notice)}
    return JSONResponse(body, status, headers={"Cache-Control": "no-store"})


def payment_step(url: str, *, status: int = 200, done: bool = False) -> JSONResponse:
    """The answer to the page's JavaScript when the browser has to go on to another page:
    `{"redirect": url}`, with `"done": true` once nothing is left to do.
    """
    body: dict[str, object] = {"redirect": url} | ({"done": True} if done else {})
    return JSONResponse(body, status, headers={"Cache-Control": "no-store"})


def address_page(
    view: CheckoutView, texts: Texts, *, email: str = "", wrong: str = "", notice: str = "", status: int = 200
) -> HTMLResponse:
    """The page that asks for the address to send a code to, the same for everybody."""
    error = _errors({"email": wrong} if wrong else None, None, texts).get("email", "")
    said = texts.get(wording.NOTICES[notice]) if notice else ""
    html = PAGES.render("address.html", texts, view=view, offer=None, email=email, error=error, notice=said)
    return secured(html, status=status)


def code_page(view: CheckoutView, texts: Texts, *, wrong: bool = False, status: int = 200) -> HTMLResponse:
    """The page that asks for the code, the same whether one was sent or not."""
    error = texts.get(wording.WRONG_CODE) if wrong else ""
    facts = {"minutes": CODE_LIFETIME.seconds // 60, "days": REMEMBERED.days, "most": CODES_A_DAY}
    html = PAGES.render("code.html", texts, view=view, offer=None, error=error, digits=DIGITS, **facts)
    return secured(html, status=status)


def checking_page(view: CheckoutView, texts: Texts, *, status_url: str, query: str = "") -> HTMLResponse:
    """The page to wait on while the outcome is unknown; it finds its own way.

    JavaScript polls `status_url` (`{"state": "processing"}`, then `{"state": "done", "url": …}`);
    without it the page loads itself again, later each time, so it must be the answer to a GET (with
    this `query`) that redirects once the outcome is known.
    """
    offer, again = offer_of(view, texts), look_again(query)
    html = PAGES.render("checking.html", texts, view=view, offer=offer, status_url=status_url, again=again)
    return secured(html, form_action=view.form_action)


def pending_page(view: CheckoutView, texts: Texts, *, sure_by: datetime | None) -> HTMLResponse:
    """The page of a checkout whose order was paid by a slow method: nobody pays it again meanwhile.

    `sure_by` is when the bank will know at the latest, None if nobody can say.
    """
    until = format_date(sure_by.astimezone(UTC), "long", texts.date_locale) if sure_by else ""
    offer, home = offer_of(view, texts), home_of(view)
    return secured(PAGES.render("pending.html", texts, view=view, offer=offer, until=until, home=home))


def already_paid_page(view: CheckoutView, texts: Texts) -> HTMLResponse:
    """The page of a checkout that is paid, with the way to the shop's thank-you page;
    without one it says thank you.
    """
    template = "paid.html" if view.shop_url else "thanks.html"
    leads_to = source_of(view.shop_url) if view.names_way and view.shop_url else ""
    return secured(PAGES.render(template, texts, view=view, offer=offer_of(view, texts), leads_to=leads_to))


def reversed_page(view: CheckoutView, texts: Texts) -> HTMLResponse:
    """The page (409) of a checkout whose order was paid and the money given back,
    with the way back to the shop.
    """
    offer, home = offer_of(view, texts), home_of(view)
    return secured(PAGES.render("reversed.html", texts, view=view, offer=offer, home=home), status=409)


def expired_page(view: CheckoutView, texts: Texts) -> HTMLResponse:
    """The page (410) of a checkout whose time is over, with the way back to the shop."""
    ended = texts.moment(view.expires_at.astimezone(UTC))
    offer, home = offer_of(view, texts), home_of(view)
    html = PAGES.render("expired.html", texts, view=view, offer=offer, ended=ended, home=home)
    return secured(html, status=410)


def closed_page(view: CheckoutView, texts: Texts) -> HTMLResponse:
    """The page (409) of a checkout that closed because its order was paid through another one."""
    offer, home = offer_of(view, texts), home_of(view)
    return secured(PAGES.render("closed.html", texts, view=view, offer=offer, home=home), status=409)


def suspended_page(view: CheckoutView, texts: Texts) -> HTMLResponse:
    """The page (409) of a checkout whose shop takes no payments at the moment,
    with the way back to the shop.
    """
    offer, home = offer_of(view, texts), home_of(view)
    return secured(PAGES.render("suspended.html", texts, view=view, offer=offer, home=home), status=409)


def stopped_page(view: CheckoutView, texts: Texts) -> HTMLResponse:
    """The page (429) for somebody who has tried too often to pay, with the way back to the shop."""
    offer, home = offer_of(view, texts), home_of(view)
    return secured(PAGES.render("stopped.html", texts, view=view, offer=offer, home=home), status=429)


def unpayable_page(view: CheckoutView, texts: Texts) -> HTMLResponse:
    """The page (409) of a checkout for which no way to pay is set up,
    with the way back to the shop.
    """
    offer, home = offer_of(view, texts), home_of(view)
    return secured(PAGES.render("unpayable.html", texts, view=view, offer=offer, home=home), status=409)


def form_error_page(
    texts: Texts,
    *,
    status: int,
    message: str,
    fields: Sequence[str],
    hashed: str | None = None,
    suspect: str | None = None,
    retry_after: int | None = None,
) -> HTMLResponse:
    """What a shop's invalid request comes to: calm for the customer,
    exact for the shop's programmer.

    `message` is English and says what was expected; `hashed` is the string that the server hashed,
    without the private key (test mode only), and `suspect` the likeliest reason for a difference,
    in English.
    """
    html = PAGES.render(
        "form_error.html", texts, status=status, message=message, fields=fields, hashed=hashed, suspect=suspect
    )
    return secured(html, status=status, headers=_retry(retry_after))


def error_page(
    texts: Texts,
    *,
    status: int,
    retry_after: int | None = None,
    again: bool = False,
    back: str = "",
    words: wording.PageProblem | None = None,
) -> HTMLResponse:
    """A general error page, in `words` or those of `wording.ERRORS`; `retry_after` in seconds.

    `again` says that what was asked for was a page, which can be loaded once more; `back` is the
    page of ours whose form was sent.
    """
    if words is None and status == 503 and retry_after is not None and retry_after <= IN_A_MOMENT:
        words = wording.SHORTLY
    problem = words or wording.ERRORS.get(status) or wording.ERRORS[500 if status >= 500 else 400]
    html = PAGES.render("error.html", texts, problem=problem, again=again and problem.passes, back=back)
    return secured(html, status=status, headers=_retry(retry_after))


def home_of(view: CheckoutView) -> str:
    """Where a page's way back leads; empty where nobody stands behind the shop yet."""
    return "" if view.names_way else shop_home(view.shop_url)


def shop_home(success_url: str) -> str:
    """Where an unpaid customer finds the shop again: its front page, not the thank-you page;
    an app's own link.
    """
    return front_page(success_url) or success_url


def offer_of(view: CheckoutView, texts: Texts) -> Offer | None:
    """The subscription that is offered or was begun, or None for a one-time payment."""
    terms = view.terms
    if terms is None:
        return None
    consent = consent_in_words(terms, view.merchant_name, texts)
    bare = view.without_card
    page_consent = consent_in_words(terms, view.merchant_name, texts, on_page=not bare, without_card=bare)
    words, free = terms_in_words(terms, texts, without_card=bare), not terms.first_amount
    return Offer(terms.name, words, consent, page_consent, free, terms.price, terms.list_price)


def _errors(field_errors: Mapping[str, str] | None, notice: str | None, texts: Texts) -> dict[str, str]:
    """The texts beside the fields, in the form's order; some declines point to a field."""
    codes = dict([FIELD_OF_DECLINE[notice]] if notice in FIELD_OF_DECLINE else []) | dict(field_errors or {})
    return {name: texts.get(wording.FIELD_ERRORS[name][codes[name]]) for name in wording.FIELD_ERRORS if name in codes}


def _focus(errors: Mapping[str, str], notice: str | None) -> str:
    """Where the customer goes on: the first wrong field, or the card number after a decline."""
    if notice in wording.ABOUT_COUPONS:
        return "coupon"
    return next(iter(errors), "number" if notice and notice not in (PAGE_LEFT, "page_open") else "")


def _retry(seconds: int | None) -> dict[str, str]:
    return {} if seconds is None else {"Retry-After": str(seconds)}


def _country_options(language: str, selected: str) -> Markup:
    """The options of the country list; `selected` is a code or anything else for none."""
    options = _all_country_options(language)
    if selected in COUNTRIES:
        options = options.replace(f"value={selected}>", f"value={selected} selected>", 1)
    return Markup(options)  # noqa: S704 - the names in it are escaped


@cache
def _all_country_options(language: str) -> str:
    """All countries, sorted as the language's readers look for them; HTML as short as it may be."""
    names = Locale.parse(language, sep="-").territories
    ordered = sorted(COUNTRIES, key=lambda code: sort_key(names[code], language))
    return "".join(f"<option value={code}>{escape(names[code])}" for code in ordered)
