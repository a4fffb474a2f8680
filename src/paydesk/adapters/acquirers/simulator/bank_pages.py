"""How the bank's pages are rendered, and the headers that each of them has."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from babel.numbers import format_currency
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

PACKAGE: Final = "paydesk.adapters.acquirers.simulator"
LARGEST_FORM: Final = 1024
HEADERS: Final = {
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
_PAGES: Final = Environment(loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined)


def page_of(template: str, *, status: int, **shown: object) -> HTMLResponse:
    """A page of the bank."""
    return HTMLResponse(_PAGES.get_template(template).render(**shown), status_code=status, headers=HEADERS)


def for_people(amount: Decimal, currency: str) -> str:
    """An amount for people, such as 1,234.50 USD, in one unbreakable piece."""
    return format_currency(amount, currency, "#,##0.00\N{NO-BREAK SPACE}¤¤", locale="en")


def reference_in(request: Request) -> str:
    """The reference in a page's address, which nobody can guess."""
    return str(request.path_params["reference"])
