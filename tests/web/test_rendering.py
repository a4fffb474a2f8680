"""What is kept of a page for everybody says nothing of the shop whose page came first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paydesk.core.periods import Period
from paydesk.domain.merchants.imprints import Imprint
from paydesk.domain.payments.line_items import LineItem
from paydesk.domain.shoppers.instruments import SavedInstrument
from paydesk.domain.subscriptions.subscription_terms import Discount, Terms, Trial
from paydesk.web.checkout import pages, wording
from paydesk.web.checkout.checkout_view import CheckoutView, Customer, Line
from paydesk.web.checkout.coupon_view import NO_COUPON, CouponView
from paydesk.web.checkout.pages import texts_for
from paydesk.web.rendering import DoorTemplates

WEB = Path(pages.__file__).parents[1]
TEMPLATES = Path(pages.__file__).parent / "templates"
PAYMENT = "payment.html"

FERN = CheckoutView(
    merchant_name="Fern & Kettle",
    description="Hand grinder",
    amount=Decimal("89.00"),
    currency="USD",
    merchant_order_id="fern-1",
    live=False,
    pay_url="/sandbox/checkout/fern/pay",
    shop_url="https://fern.example/thanks",
    form_action="https://fern.example",
    expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    entered=Customer("fern@example.com", country="GB"),
    entered_expiry="01 / 31",
    terms=Terms("Fern club", "fern", "USD", Decimal(9), Period(1, "month"), Trial(Decimal(0), Period(14, "day")), 0),
    brand="/brand/1/fern",
    has_logo=True,
    continue_url="/sandbox/checkout/fern/continue",
    path="/sandbox/checkout/fern",
    known_as="known@fern.example",
    saved=[SavedInstrument(1, 1, "ok", datetime(2030, 1, 1, tzinfo=UTC), (), (), "visa", "4242", 12, 2040)],
    keep="Fern keeps this card",
    charge="Fern may charge this card",
    page_keep="Fern keeps what is paid with",
    page_charge="Fern may charge what is paid with",
    lines=[Line(LineItem("Hand grinder", Decimal("89.00"), 1), "/picture/fern")],
    coupon=CouponView(code="FERN", without="/sandbox/checkout/fern/without"),
    imprint=Imprint("Fern Ltd", "help@fern.example", "+44 1", "https://fern.example/terms", ""),
)
MOTH = CheckoutView(
    merchant_name="Moth Lamps",
    description="Desk lamp",
    amount=Decimal(4200),
    currency="JPY",
    merchant_order_id="moth-7",
    live=True,
    pay_url="/checkout/moth/pay",
    shop_url="https://moth.example/done",
    form_action="https://moth.example",
    expires_at=datetime(2031, 2, 3, tzinfo=UTC),
    entered=Customer("moth@example.com", country="JP"),
    entered_expiry="02 / 32",
    terms=Terms(
        "Moth care", "moth", "JPY", Decimal(4200), Period(1, "year"), None, 3, discount=Discount(Decimal(1), 2)
    ),
    brand="/brand/2/moth",
    continue_url="/checkout/moth/continue",
    path="/checkout/moth",
    known_as="known@moth.example",
    saved=[SavedInstrument(2, 2, "ok", datetime(2031, 2, 3, tzinfo=UTC), (), (), "mastercard", "4444", 1, 2041)],
    keep="Moth keeps this card",
    charge="Moth may charge this card",
    page_keep="Moth keeps what is paid with",
    page_charge="Moth may charge what is paid with",
    lines=[Line(LineItem("Desk lamp", Decimal(4200), 1), "")],
    coupon=CouponView(code="MOTH", without="/checkout/moth/without"),
    imprint=Imprint("Moth KK", "help@moth.example", "+81 3", "", "https://moth.example/privacy"),
)
"""Two shops that have nothing in common."""

AT_FERN, AT_MOTH = ("en-US", "de-DE", "ar-EG", "ja-JP"), ("en-GB", "de-AT", "ar-SA", "fr-FR")
"""What browsers there ask for: languages of both shops in other regions, and one of its own."""

Use = tuple[CheckoutView, dict[str, Any]]


def bare(view: CheckoutView, **changed: Any) -> CheckoutView:
    """A one-time payment by somebody of whom nothing is known."""
    less: dict[str, Any] = {"terms": None, "coupon": NO_COUPON, "continue_url": "", "path": "", "entered_expiry": ""}
    return replace(view, **{**less, **changed})


USES: dict[str, Callable[[CheckoutView], Use]] = {
    "bare": lambda view: (bare(view), {}),
    "bare, test and live": lambda view: (bare(view, live=not view.live), {}),
    "with a place": lambda view: (bare(view, entered=replace(view.entered, asks_place=True)), {}),
    "with all there is": lambda view: (view, {}),
    "without a card": lambda view: (replace(view, pay_url=""), {}),
    "a form with a name": lambda view: (bare(view, entered=replace(view.entered, name=view.merchant_name)), {}),
    "wrong fields": lambda view: (view, {"field_errors": dict.fromkeys(wording.FIELDS, "empty")}),
    "declined": lambda view: (bare(view), {"notice": "declined"}),
    "no such coupon": lambda view: (bare(view, coupon=CouponView(url="/coupon")), {"notice": "coupon_unknown"}),
}

PLANTED = {
    "its name": ("<bdi>{{ view.merchant_name }}</bdi>", '{{ once("name", shop) }}'),
    "its colours": ("{{ brand.style(view) }}", '{{ once("colours", brand.style, view) }}'),
    "its logo": ("{{ brand.sign(view) }}", '{{ once("logo", brand.sign, view) }}'),
    "its amount": ('<p class="amount{{', '{{ once("amount", planted, amount) }}<p class="amount{{'),
    "test or live": ("{% if not view.live %}\n", '{{ once("live", planted, view.live) }}{% if not view.live %}\n'),
    "the reader's region": ("{{ countries }}", '{{ once("countries", planted, countries) }}'),
    "what the customer typed": ('{{ box("save", view.keep) }}', '{{ once("save", box, "save", view.keep) }}'),
    "where the customer goes on": ('("empty card", focus, last_key)', '("empty card", last_key)'),
    "the last field": ('("empty card", focus, last_key)', '("empty card", focus)'),
}
"""Pieces that hang on more than their name has: what stands in the template, and what would."""

MACROS = """
{% macro shop() %}<bdi>{{ view.merchant_name }}</bdi>{% endmacro %}
{% macro planted(given) %}<bdi>{{ given }}</bdi>{% endmacro %}
{% macro box("""


def shown(view: CheckoutView, languages: tuple[str, ...]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Each page of a shop in each language, to be made when it is asked for."""
    for name, use in USES.items():
        for language in languages:
            yield f"{name}, {language}", partial(page_of, use(view), language)


def page_of(use: Use, language: str) -> bytes:
    view, said = use
    return bytes(pages.payment_page(view, texts_for(language), **said).body)


def mixed_up(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> list[str]:
    """Pages of one shop that are other ones after those of another shop than they are alone."""

    def forget() -> None:
        monkeypatch.setattr(pages, "PAGES", DoorTemplates(*folders, TEMPLATES, brand_names={}))

    alone = {}
    for name, page in shown(MOTH, AT_MOTH):
        forget()
        alone[name] = page()
    forget()
    for _, page in shown(FERN, AT_FERN):
        page()
    return [name for name, page in shown(MOTH, AT_MOTH) if page() != alone[name]]


def test_a_shops_page_is_the_same_whichever_shops_page_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mixed_up(monkeypatch) == []


def test_every_template_that_keeps_a_piece_is_looked_at() -> None:
    assert [path.name for path in WEB.rglob("*.html") if "once(" in path.read_text()] == [PAYMENT]


@pytest.mark.parametrize("what", PLANTED)
def test_a_piece_that_hangs_on_more_than_its_name_says_is_found(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (TEMPLATES / PAYMENT).read_text()
    right, wrong = PLANTED[what]
    assert right in source, "the template has changed: plant it elsewhere"
    planted = source.replace(right, wrong).replace("{% macro box(", MACROS, 1)
    (tmp_path / PAYMENT).write_text(planted)
    assert mixed_up(monkeypatch, tmp_path) != []
