from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from tests.markup import Markup

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.adapters.acquirers.simulator import TEST_CARDS as SIMULATED
from paydesk.core.periods import Period
from paydesk.domain.subscriptions.subscription_terms import Terms, Trial
from paydesk.web.assets import static_app
from paydesk.web.checkout import pages, wording
from paydesk.web.checkout.checkout_view import CheckoutView, Customer
from paydesk.web.checkout.form_action import form_action_for
from paydesk.web.checkout.pages import texts_for
from paydesk.web.checkout.routes import compressed
from paydesk.web.decline_words import notice_for
from paydesk.web.texts import Texts

ENGLISH = texts_for("en-US")
GERMAN = texts_for("de-DE")
VIEW = CheckoutView(
    merchant_name="Demo Shop",
    description="A mug",
    amount=Decimal("10.0000"),
    currency="USD",
    merchant_order_id="order-1",
    live=False,
    pay_url="/sandbox/checkout/abc/pay",
    shop_url="https://shop.example/thanks?order=1",
    form_action="https://shop.example",
    expires_at=datetime(2030, 1, 2, 15, 4, tzinfo=UTC),
    entered=Customer("ada@example.com", "Ada Lovelace", "gb"),
    entered_expiry="12 / 30",
)
PLACED = Customer("ada@example.com", "Ada Lovelace", "gb", "London", "SW1A 1AA", asks_place=True)
CLUB = replace(
    VIEW,
    terms=Terms("Coffee club", "club", "USD", Decimal(10), Period(1, "month"), Trial(Decimal(0), Period(14, "day")), 0),
    amount=Decimal(0),
)
FIRST_VIEW_LIMIT = 25_000


def read(response: Response) -> Markup:
    return Markup(bytes(response.body).decode())


ALL_PAGES: dict[str, Callable[[Texts], Response]] = {
    "payment": lambda texts: pages.payment_page(VIEW, texts),
    "live payment": lambda texts: pages.payment_page(replace(VIEW, live=True, shop_url=""), texts),
    "errors": lambda texts: pages.payment_page(
        VIEW, texts, field_errors=dict.fromkeys(wording.FIELDS, "empty"), status=400
    ),
    "declined": lambda texts: pages.payment_page(VIEW, texts, notice="declined", status=402),
    "subscription": lambda texts: pages.payment_page(CLUB, texts),
    "not agreed": lambda texts: pages.payment_page(CLUB, texts, field_errors={"agree": "empty"}, status=400),
    "subscribed": lambda texts: pages.already_paid_page(CLUB, texts),
    "checking": lambda texts: pages.checking_page(VIEW, texts, status_url="/checkout/abc/status"),
    "paid": lambda texts: pages.already_paid_page(VIEW, texts),
    "thanks": lambda texts: pages.already_paid_page(replace(VIEW, shop_url="", payment_id=17), texts),
    "thanks, trial": lambda texts: pages.already_paid_page(replace(CLUB, shop_url=""), texts),
    "place": lambda texts: pages.payment_page(replace(VIEW, entered=PLACED), texts),
    "expired": lambda texts: pages.expired_page(VIEW, texts),
    "closed": lambda texts: pages.closed_page(VIEW, texts),
    "suspended": lambda texts: pages.suspended_page(VIEW, texts),
    "stopped": lambda texts: pages.stopped_page(VIEW, texts),
    "form error": lambda texts: pages.form_error_page(
        texts, status=403, message="wrong hash", fields=["hash"], hashed="a=1&b=2", suspect="amount"
    ),
    "error": lambda texts: pages.error_page(texts, status=404),
}


@pytest.mark.parametrize("name", ALL_PAGES)
@pytest.mark.parametrize("texts", [ENGLISH, GERMAN], ids=["en", "de"])
def test_every_page_is_guarded_and_free_of_inline_code_and_strangers(name: str, texts: Texts) -> None:
    response = ALL_PAGES[name](texts)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    page = read(response)
    assert ("html", {"lang": texts.language, "dir": "ltr"}) in page.found
    for tag, attributes in page.found:
        assert "style" not in attributes
        assert tag != "style"
        assert not [key for key in attributes if key.startswith("on")]
        assert not (attributes.get("src") or "").startswith(("http:", "https:", "//"))
        assert tag != "link" or (attributes["href"] or "").startswith(("/static/", "data:"))
        assert tag != "script" or (attributes["src"] or "").startswith("/static/")


@pytest.mark.parametrize("name", ALL_PAGES)
def test_what_a_merchant_or_customer_wrote_is_escaped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "\"'><img src=x onerror=alert(1)>{{7*7919}}"
    monkeypatch.setitem(globals(), "CLUB", replace(
        CLUB, merchant_name=evil, description=evil, terms=replace(CLUB.terms, name=evil) if CLUB.terms else None,
    ))  # fmt: skip
    monkeypatch.setitem(globals(), "VIEW", replace(
        VIEW, merchant_name=evil, description=evil, merchant_order_id=evil, pay_url=evil, shop_url=f"app:{evil}",
        entered=Customer(evil, evil, evil), entered_expiry=evil,
    ))  # fmt: skip
    assert b"<img" not in ALL_PAGES[name](ENGLISH).body
    assert b"55433" not in pages.already_paid_page(VIEW, ENGLISH).body
    shown = pages.form_error_page(ENGLISH, status=400, message=evil, fields=[evil], hashed=evil, suspect=evil)
    assert b"<img" not in shown.body


def test_the_form_has_the_standard_tokens_and_posts_to_its_checkout() -> None:
    page = read(pages.payment_page(VIEW, ENGLISH))
    tokens = {name: page.named(name)["autocomplete"] for name in wording.FIELDS}
    assert tokens == {
        "email": "email",
        "number": "cc-number",
        "expiry": "cc-exp",
        "cvc": "cc-csc",
        "holder": "cc-name",
        "country": "country",
    }
    for name in ("number", "expiry", "cvc"):
        assert page.named(name)["inputmode"] == "numeric"
    form = page.all("form")[0]
    assert form["action"] == VIEW.pay_url
    assert form["method"] == "post"


def test_what_is_known_is_filled_in_but_never_the_card() -> None:
    page = read(pages.payment_page(VIEW, ENGLISH, notice="declined", status=402))
    assert page.named("email")["value"] == "ada@example.com"
    assert page.named("holder")["value"] == "Ada Lovelace"
    assert page.named("expiry")["value"] == "12 / 30"
    assert "value" not in page.named("number")
    assert "value" not in page.named("cvc")
    assert [a["value"] for a in page.all("option") if "selected" in a] == ["GB"]


def test_without_a_prefilled_country_the_browsers_region_is_chosen() -> None:
    def chosen(texts: Texts, country: str = "") -> list[str | None]:
        page = read(pages.payment_page(replace(VIEW, entered=Customer(country=country)), texts))
        return [a["value"] for a in page.all("option") if "selected" in a]

    assert chosen(texts_for("de-AT")) == ["AT"]
    assert chosen(texts_for("de")) == []
    assert chosen(texts_for("de-AT"), country="FR") == ["FR"]
    assert chosen(texts_for("de"), country='"><b>') == []


def test_the_button_says_what_will_be_paid() -> None:
    assert "Pay 10.00\u00a0USD" in read(pages.payment_page(VIEW, ENGLISH)).text
    assert "10,00\u00a0USD bezahlen" in read(pages.payment_page(VIEW, GERMAN)).text
    yen = replace(VIEW, amount=Decimal(500), currency="JPY")
    assert "Pay 500\u00a0JPY" in read(pages.payment_page(yen, ENGLISH)).text


@pytest.mark.parametrize("texts", [ENGLISH, GERMAN], ids=["en", "de"])
def test_the_terms_are_agreed_to_by_a_box_that_names_them_in_the_pages_language(texts: Texts) -> None:
    page = read(pages.payment_page(CLUB, texts))
    box = page.named("agree")
    assert (box["type"], "required" in box, "checked" in box) == ("checkbox", True, False)
    assert texts_for(box["value"] or "").get("Card number") == texts.get("Card number")
    assert ("label", {"for": "agree"}) in page.found
    assert "checked" in read(pages.payment_page(replace(CLUB, agreed=True), texts)).named("agree")


def test_a_missing_agreement_is_told_beside_its_box() -> None:
    page = read(pages.payment_page(CLUB, ENGLISH, field_errors={"agree": "empty"}, status=400))
    assert "autofocus" in page.named("agree")
    assert page.named("agree")["aria-describedby"] == "agree-error"
    assert "#agree" in page.links()


@pytest.mark.parametrize("header", ["de-AT", "fr-FR, de;q=0.5", "pt-BR", "zh-Hans-CN", "en", ""])
def test_the_boxs_value_brings_the_same_texts_again(header: str) -> None:
    shown = texts_for(header)
    again = texts_for(shown.accept_language)
    assert (again.language, again.locale) == (shown.language, shown.locale)


def test_all_countries_are_offered_in_the_readers_language() -> None:
    assert len(pages.COUNTRIES) == 250
    assert {"DE", "US", "XK"} <= pages.COUNTRIES
    page = read(pages.payment_page(VIEW, GERMAN))
    assert {a["value"] for a in page.all("option")} == {"", *pages.COUNTRIES}
    names = page.text
    assert names.index("Norwegen") < names.index("Österreich") < names.index("Pakistan")


def test_only_test_mode_shows_the_banner_and_the_test_cards() -> None:
    test, live = (read(pages.payment_page(replace(VIEW, live=live), ENGLISH)).text for live in (False, True))
    assert "Test mode" in test
    assert "4000000000003220" in test
    assert "Test mode" not in live
    assert "4000000000003220" not in live


def test_errors_stand_beside_their_fields_and_the_first_has_the_focus() -> None:
    response = pages.payment_page(VIEW, ENGLISH, field_errors={"cvc": "empty", "number": "invalid"}, status=400)
    assert response.status_code == 400
    page = read(response)
    assert page.named("number")["aria-invalid"] == "true"
    assert "number-error" in (page.named("number")["aria-describedby"] or "")
    assert "autofocus" in page.named("number")
    assert "autofocus" not in page.named("cvc")
    assert "aria-invalid" not in page.named("email")
    assert page.links()[-2:] == ["#number", "#cvc"]
    html = bytes(response.body).decode()
    assert '<p class="error" id="cvc-error">Enter the security code.</p>' in html
    assert "<title>Error:" in html


@pytest.mark.parametrize("field", wording.FIELDS)
def test_every_field_has_words_for_its_errors(field: str) -> None:
    assert {"empty", "invalid"} <= set(wording.FIELD_ERRORS[field])
    for code in wording.FIELD_ERRORS[field]:
        text = wording.FIELD_ERRORS[field][code]
        assert text in read(pages.payment_page(VIEW, ENGLISH, field_errors={field: code}, status=400)).text


@pytest.mark.parametrize("reason", DeclineReason)
def test_every_decline_is_explained_and_says_declined(reason: DeclineReason) -> None:
    response = pages.payment_page(VIEW, ENGLISH, notice=reason, status=402)
    assert response.status_code == 402
    text = notice_for(reason, wording.NOTICES)
    assert "declined" in text
    assert text in read(response).text


def test_a_stolen_card_looks_like_any_other_decline() -> None:
    plain = pages.payment_page(VIEW, ENGLISH, notice="declined").body
    assert pages.payment_page(VIEW, ENGLISH, notice="stolen_card").body == plain
    assert pages.payment_page(VIEW, ENGLISH, notice="closed_account").body == plain


def test_a_wrong_cvc_leads_to_its_field() -> None:
    page = read(pages.payment_page(VIEW, ENGLISH, notice="wrong_cvc", status=402))
    assert "autofocus" in page.named("cvc")
    assert page.named("cvc")["aria-invalid"] == "true"
    assert "autofocus" not in page.named("number")


def test_the_browsers_script_gets_texts_and_never_the_card() -> None:
    problem = pages.payment_problem(GERMAN, field_errors={"email": "invalid"}, notice="wrong_cvc", status=402)
    assert problem.status_code == 402
    assert problem.headers["cache-control"] == "no-store"
    assert json.loads(bytes(problem.body)) == {
        "errors": {
            "email": "Geben Sie eine E-Mail-Adresse wie name@example.com ein.",
            "cvc": "Prüfen Sie die Prüfnummer.",
        },
        "notice": GERMAN.get(wording.NOTICES["wrong_cvc"]),
        "focus": "email",
    }
    assert json.loads(bytes(pages.payment_step("/checkout/abc").body)) == {"redirect": "/checkout/abc"}


@pytest.mark.parametrize(
    ("success_url", "sources"),
    [
        ("https://shop.example/thanks?x=1", "https://shop.example"),
        ("http://127.0.0.1:8001/a b", "http://127.0.0.1:8001"),
        ("https://user:pw@Shop.example:8443/x", "https://shop.example:8443"),
        ("https://käse.example/", "https://xn--kse-qla.example"),
        ("http://[::1]:8001/x", "http:"),
        ("https://my_shop.local/x", "https:"),
        ("https://a;script-src *.example/", "https:"),
        ("shopapp://paid?x=1", "shopapp:"),
        ("", ""),
    ],
)
def test_the_form_may_lead_to_the_shop(success_url: str, sources: str) -> None:
    assert form_action_for(success_url) == sources
    policy = pages.payment_page(replace(VIEW, form_action=sources), ENGLISH).headers["content-security-policy"]
    assert policy.endswith(f"form-action 'self' {sources}".strip())


def test_challenge_pages_are_allowed_too_and_no_directive_is_smuggled_in() -> None:
    assert form_action_for("app://x", "https://bank.example") == "app: https://bank.example"
    response = pages.payment_page(replace(VIEW, form_action="https://a;script-src https://b"), ENGLISH)
    assert response.headers["content-security-policy"].endswith("form-action 'self' https://b")


def test_the_waiting_page_works_with_and_without_javascript() -> None:
    response = ALL_PAGES["checking"](ENGLISH)
    assert response.status_code == 200
    assert b'<noscript><meta http-equiv="refresh" content="4; url=?looked=1">' in response.body
    assert b'data-status="/checkout/abc/status"' in response.body


@pytest.mark.parametrize(
    ("name", "status", "link"),
    [
        ("paid", 200, "https://shop.example/thanks?order=1"),
        ("expired", 410, "https://shop.example/"),
        ("closed", 409, "https://shop.example/"),
    ],
)
def test_a_checkout_that_is_over_shows_the_way_to_the_shop(name: str, status: int, link: str) -> None:
    response = ALL_PAGES[name](ENGLISH)
    assert response.status_code == status
    assert read(response).links() == [link]


def test_an_apps_own_link_is_the_way_back_as_it_is() -> None:
    app = replace(VIEW, shop_url="shopapp://paid?x=1")
    assert read(pages.expired_page(app, ENGLISH)).links() == ["shopapp://paid?x=1"]


def test_an_expired_page_says_until_when_it_could_be_used() -> None:
    assert re.search(r"January 2, 2030, 3:04.PM \(UTC\)", read(pages.expired_page(VIEW, ENGLISH)).text)


def test_the_programmer_sees_what_was_expected_and_what_was_hashed() -> None:
    text = read(ALL_PAGES["form error"](GERMAN)).text
    for expected in ("403", "wrong hash", "a=1&b=2", "amount", "Für die Programmierer"):
        assert expected in text
    without = read(pages.form_error_page(ENGLISH, status=400, message="amount is missing", fields=["amount"])).text
    assert "hashed" not in without


@pytest.mark.parametrize("status", [400, 403, 404, 405, 409, 413, 418, 429, 500, 502, 503])
def test_every_error_status_has_its_page(status: int) -> None:
    response = pages.error_page(ENGLISH, status=status, retry_after=7 if status == 429 else None)
    assert response.status_code == status
    assert response.headers.get("retry-after") == ("7" if status == 429 else None)


@pytest.mark.parametrize(("status", "offered"), [(409, True), (429, True), (503, True), (400, False), (404, False)])
def test_what_passes_can_be_loaded_again(status: int, offered: bool) -> None:
    page = read(pages.error_page(ENGLISH, status=status, again=True)).text
    assert ("Load the page again" in page) is offered
    assert "Load the page again" not in read(pages.error_page(ENGLISH, status=status)).text


@pytest.mark.parametrize("status", [404, 409, 429])
def test_an_error_page_leads_on(status: int) -> None:
    sent = read(pages.error_page(ENGLISH, status=status, back="/checkout/t1"))
    assert sent.links() == ["/checkout/t1"]
    for again in (False, True):
        page = read(pages.error_page(ENGLISH, status=status, again=again))
        assert page.links() or any("data-back" in attributes for _, attributes in page.found)


@pytest.mark.parametrize("language", pages.CATALOGUES.languages)
async def test_the_first_view_is_at_most_25_kb_over_the_wire(language: str) -> None:
    heavy = replace(CLUB, description="x" * 255, merchant_name="y" * 100, merchant_order_id="z" * 255)

    async def show(request: Request) -> Response:
        errors = {**dict.fromkeys(wording.FIELDS, "invalid"), "agree": "empty"}
        return pages.payment_page(heavy, texts_for(request.headers["accept-language"]), field_errors=errors)

    app = Starlette(routes=[Route("/", show, middleware=compressed), Mount("/static", static_app())])
    headers = {"Accept-Language": language, "Accept-Encoding": "gzip, deflate, br, zstd"}
    total = 0
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://pay", headers=headers) as client:
        page = await client.get("/")
        for url in ["/", *re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)]:
            async with client.stream("GET", url) as answer:
                body = b"".join([chunk async for chunk in answer.aiter_raw()])
                # A server adds its status line, Date and a request id: about 120 bytes.
                total += 120 + len(body) + sum(len(name) + len(value) + 4 for name, value in answer.headers.raw)
    assert total <= FIRST_VIEW_LIMIT


def test_the_page_offers_the_cards_that_the_test_bank_knows() -> None:
    assert [card.number for card in wording.TEST_CARDS] == [card.number for card in SIMULATED]
