"""A page that was kept and filled in is the very page that the template would have written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.web.test_rendering import FERN, MOTH, PAYMENT, TEMPLATES

from paydesk.web.checkout import pages
from paydesk.web.checkout.checkout_view import CheckoutView, Customer, in_words, is_usual, words_of
from paydesk.web.checkout.coupon_view import CouponView
from paydesk.web.kept_pages import KeptPages
from paydesk.web.rendering import DoorTemplates

LANGUAGES = ("en-US", "de-AT", "ar-EG", "ja", "de-CH,fr;q=0.5", "en-IN", "")
HOSTILE = (
    '"><script>alert(1)</script>',
    "' onclick='x",
    "&amp; &",
    "%s %(amount)s %",
    "{{ 7 * 7 }} {% if",
    "\u202e\U0001f600\\1\\g<0>",
)


def usual(view: CheckoutView, **changed: Any) -> CheckoutView:
    """A one-time payment by somebody of whom no card is known."""
    new: dict[str, Any] = {"terms": None, "known_as": "", "saved": (), "others": (), "lines": (), "entered_expiry": ""}
    new |= dict.fromkeys(("keep", "charge", "page_keep", "page_charge"), "")
    return replace(view, **new | {"coupon": CouponView(url="/coupon")} | changed)


def orders(view: CheckoutView) -> Iterator[CheckoutView]:
    """Orders of a shop, each with words of its own."""
    yield usual(view)
    yield usual(view, description="Another thing", merchant_order_id="2", path="/checkout/2", pay_url="/checkout/2/pay")
    for amount in (Decimal("0.5"), Decimal(7), Decimal("123456789.01")):
        yield usual(view, amount=amount)
    yield usual(view, live=not view.live, has_logo=not view.has_logo)
    yield usual(view, names_way=True)
    yield usual(view, shop_url=f"{view.shop_url}?order=2", form_action="https://bank.example", payment_id=7)
    for shop_url in ("", "https://elsewhere.example", *(f"app-of-shop://{word}" for word in HOSTILE)):
        yield usual(view, shop_url=shop_url)
    yield usual(view, expires_at=view.expires_at + timedelta(days=1))
    for customer in (
        Customer(),
        Customer("a@b.example", "Ada", "de", "Ulm", "89073", True),
        Customer(country="nowhere"),
    ):
        yield usual(view, entered=customer)
    for word in HOSTILE:
        yield in_words(usual(view), dict.fromkeys(words_of(view), word))
        yield replace(in_words(usual(view), dict.fromkeys(words_of(view), word)), entered=Customer(asks_place=True))
    for name in words_of(view):
        yield in_words(usual(view), {**words_of(usual(view)), name: ""})


def differing(monkeypatch: pytest.MonkeyPatch, templates: DoorTemplates, *languages: str) -> list[str]:
    """What orders' pages say that are filled in, and would not if the template wrote them."""
    monkeypatch.setattr(pages, "PAGES", templates)
    found = []
    for language in languages:
        texts = pages.texts_for(language)
        for view in (*orders(FERN), *orders(MOTH)):
            assert is_usual(view)
            filled = bytes(pages.payment_page(view, texts).body)
            with monkeypatch.context() as alone:
                alone.setattr("paydesk.web.checkout.pages.is_usual", lambda _: False)
                if bytes(pages.payment_page(view, texts).body) != filled:
                    found.append(f"{language}: {view}")
    return found


def test_a_filled_page_is_what_the_template_would_have_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert differing(monkeypatch, DoorTemplates(TEMPLATES, brand_names={}), *LANGUAGES) == []


PLANTED = {
    "a word in capitals": ("<bdi>{{ view.description }}</bdi>", "<bdi>{{ view.description|upper }}</bdi>"),
    "a word's length": ("<bdi>{{ view.description }}</bdi>", "<bdi>{{ view.description|length }}</bdi>"),
    "a question to a word": ("{% if not view.live %}\n", '{% if view.merchant_order_id == "2" %}\n'),
    "an amount's size": ('{{ " long" if is_long }}', '{{ " long" if view.amount > 10 }}'),
    "where the shop is": ("<bdi>{{ view.description }}</bdi>", "{{ view.shop_url }}"),
    "whose reader's amounts": ('lang="{{ amount_language }}"', 'lang="{{ texts.amount_language }}"'),
    "the reader's country": ("{{ countries }}", "{{ texts.region }}"),
}
"""What a template may not do with the words of a page that is kept."""


@pytest.mark.parametrize("what", PLANTED)
def test_what_a_template_makes_of_a_word_is_found(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, (right, wrong) = (TEMPLATES / PAYMENT).read_text(), PLANTED[what]
    assert right in source, "the template has changed: plant it elsewhere"
    (tmp_path / PAYMENT).write_text(source.replace(right, wrong))
    assert differing(monkeypatch, DoorTemplates(tmp_path, TEMPLATES, brand_names={}), "en-US", "en-GB") != []


def test_no_shop_and_no_reader_drives_out_the_pages_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    templates, written = DoorTemplates(TEMPLATES, brand_names={}), []
    render = templates.render

    def counted(*given: Any, **values: Any) -> str:
        written.append(values["view"].merchant_name)
        return render(*given, **values)

    monkeypatch.setattr(pages, "PAGES", templates)
    monkeypatch.setattr(templates, "render", counted)
    for order in range(300):
        pages.payment_page(usual(FERN, shop_url=f"fern-app://done?order={order}"), pages.texts_for("en-US"))
    for country in sorted(pages.COUNTRIES):
        for view in (usual(MOTH, entered=Customer()), usual(MOTH, entered=Customer(country=country))):
            pages.payment_page(view, pages.texts_for(f"de-{country}"))
    assert len(written) <= 3, "one page of each shop and language, and one for amounts that are long"


def test_words_never_come_from_another_page() -> None:
    kept = KeptPages()

    def write(words: Mapping[str, str]) -> str:
        return f"<p title='{words['title']}'>{words['text']}{words['text']}"

    assert kept.fill("p", {"title": "a", "text": "b"}, write) == "<p title='a'>bb"
    assert kept.fill("p", {"title": "'", "text": "<"}, write) == "<p title='&#39;'>&lt;&lt;"
    assert kept.fill("p", {"title": "", "text": "c"}, write) == "<p title=''>cc"


def test_so_many_kinds_are_kept_and_no_more() -> None:
    kept, written = KeptPages(most=2), []

    def page(kind: str) -> str:
        return kept.fill(kind, {"word": kind}, lambda words: written.append(kind) or words["word"])  # type: ignore[func-returns-value]

    assert [page(kind) for kind in "abab"] == list("abab")
    assert written == list("ab")
    assert [page(kind) for kind in "cbab"] == list("cbab")
    assert written == list("abcab"), "only the oldest goes"
