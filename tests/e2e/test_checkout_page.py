from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from tests.lengths import long, one_of

from paydesk.core.periods import Period
from paydesk.domain.subscriptions.subscription_terms import Terms
from paydesk.web.assets import static_app
from paydesk.web.checkout import pages, wording
from paydesk.web.checkout.checkout_view import CheckoutView, Customer
from paydesk.web.checkout.pages import texts_for

pytestmark = pytest.mark.browser

APPROVED = "4242424242424242"
VIEW = CheckoutView(
    merchant_name="Demo Shop",
    description="A mug",
    amount=Decimal("10.00"),
    currency="USD",
    merchant_order_id="order-1",
    live=False,
    pay_url="/pay",
    shop_url="/thanks",
    form_action="",
    expires_at=datetime(2030, 1, 1, tzinfo=UTC),
    entered=Customer("ada@example.com", "Ada Lovelace", ""),
)


@dataclass
class Desk:
    """A service of nothing but pages: `answer` decides on a posted form,
    `posts` keeps what came.
    """

    base: str = ""
    view: CheckoutView = VIEW
    answer: str = "approve"
    posts: list[dict[str, str]] = field(default_factory=list)
    polls: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def show(self, request: Request) -> Response:
        return pages.payment_page(self.view, texts_for(request.headers.get("accept-language", "")))

    async def pay(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.posts.append(form)
        script = request.headers["accept"] == "application/json"
        texts = texts_for(request.headers.get("accept-language", ""))
        await self.gate.wait()
        if self.answer == "approve":
            return pages.payment_step("/thanks") if script else RedirectResponse("/thanks", 303)
        if self.answer == "broken":
            return Response("bad gateway", 502)
        errors = {"email": "invalid"} if self.answer == "form" else {}
        notice = None if errors else self.answer
        if script:
            return pages.payment_problem(texts, field_errors=errors, notice=notice, status=402)
        entered = Customer(form["email"], form["holder"], form["country"])
        view = replace(self.view, entered=entered, entered_expiry=form["expiry"])
        return pages.payment_page(view, texts, field_errors=errors, notice=notice, status=402)

    async def status(self, request: Request) -> Response:
        self.polls += 1
        return JSONResponse({"state": "processing"} if self.polls < 2 else {"state": "done", "url": "/thanks"})

    async def polling(self, request: Request) -> Response:
        return pages.checking_page(self.view, texts_for(""), status_url="/status")

    def app(self) -> Starlette:
        async def thanks(request: Request) -> Response:
            return Response("Thank you", media_type="text/html")

        return Starlette(
            routes=[
                Route("/", self.show),
                Route("/pay", self.pay, methods=["POST"]),
                Route("/thanks", thanks),
                Route("/status", self.status),
                Route("/polling", self.polling),
                Mount("/static", static_app()),
            ]
        )


@pytest.fixture
async def desk(serve: Callable[[Any], AbstractAsyncContextManager[str]]) -> AsyncIterator[Desk]:
    desk = Desk()
    desk.gate.set()
    async with serve(desk.app()) as desk.base:
        yield desk


async def fill(page: Page, *, number: str = APPROVED, expiry: str = "1234", cvc: str = "123") -> None:
    await page.get_by_label("Card number").press_sequentially(number)
    await page.get_by_label("Expiry date").press_sequentially(expiry)
    await page.get_by_label("Security code").press_sequentially(cvc)


async def press_pay(page: Page) -> None:
    await page.get_by_role("button", name="Pay 10.00 USD").click()


Show = Callable[..., Coroutine[Any, Any, Page]]


@pytest.fixture
def show(open_page: Show, desk: Desk) -> Show:
    async def show(path: str = "/", **options: Any) -> Page:
        return await open_page(desk.base + path, **options)

    return show


@long
async def test_no_request_leaves_the_house_and_no_rule_is_broken(show: Show, desk: Desk) -> None:
    page = await show()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(f"{message.location['url']}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    await page.reload()
    await fill(page)
    await press_pay(page)
    await page.wait_for_url("**/thanks")
    # The shop of this test has no icon; browsers ask for one when they like.
    complaints = [one for one in complaints if not one.startswith(f"{desk.base}/favicon.ico")]
    assert [url for url in asked if not url.startswith((desk.base, "data:"))] == []
    assert complaints == []


async def test_a_filled_form_is_paid(show: Show, desk: Desk) -> None:
    page = await show()
    await fill(page)
    await press_pay(page)
    await page.wait_for_url("**/thanks")
    assert desk.posts == [
        {
            "email": "ada@example.com",
            "number": "4242 4242 4242 4242",
            "expiry": "12 / 34",
            "cvc": "123",
            "holder": "Ada Lovelace",
            "country": "US",
        }
    ]


@long
async def test_it_works_without_javascript(show: Show, desk: Desk) -> None:
    desk.answer = "insufficient_funds"
    page = await show(java_script_enabled=False)
    await fill(page, expiry="12/34")
    await press_pay(page)
    await expect(page.get_by_role("alert")).to_contain_text("declined")
    await expect(page.get_by_label("Expiry date")).to_have_value("12/34")
    await expect(page.get_by_label("Card number")).to_have_value("")
    await expect(page.get_by_label("Security code")).to_have_value("")
    await expect(page.get_by_role("button", name="Fill in")).to_have_count(0)
    desk.answer = "approve"
    await fill(page, expiry="")
    await press_pay(page)
    await page.wait_for_url("**/thanks")
    assert len(desk.posts) == 2


@pytest.mark.parametrize(
    ("number", "brand", "shown"),
    one_of(
        4,
        [
            ("4", "Visa", "4"),
            ("5555555555554444", "Mastercard", "5555 5555 5555 4444"),
            ("2223", "Mastercard", "2223"),
            ("378282246310005", "American Express", "3782 822463 10005"),
            ("6011", "Discover", "6011"),
            ("3530", "JCB", "3530"),
            ("3600", "Diners Club", "3600"),
            ("6240", "UnionPay", "6240"),
            ("6759649826438453", "Maestro", "6759 6498 2643 8453"),
            ("9", "", "9"),
        ],
    ),
)
async def test_the_brand_is_shown_while_typing(show: Show, number: str, brand: str, shown: str) -> None:
    page = await show()
    field = page.get_by_label("Card number")
    await field.press_sequentially(number)
    await expect(field).to_have_value(shown)
    await expect(page.locator("#brand")).to_have_text(brand)
    drawn = brand not in ("Maestro", "")
    await expect(page.locator("#mark svg")).to_have_count(1 if drawn else 0)
    await expect(page.locator("#mark")).to_have_text(brand if brand and not drawn else "")
    await expect(page.locator('svg[data-code="4"]')).to_be_visible(visible=brand == "American Express")


async def test_the_caret_stays_where_the_customer_edits(show: Show) -> None:
    page = await show()
    field = page.get_by_label("Card number")
    await field.press_sequentially("424242424242")
    for _ in range(8):
        await field.press("ArrowLeft")
    await field.press("Backspace")
    await field.press("9")
    await expect(field).to_have_value("4242 9242 4242")


@pytest.mark.parametrize(
    ("typed", "shown"),
    one_of(
        5, [("1234", "12 / 34"), ("3", "03 / "), ("1/30", "01 / 30"), ("12/2034", "12 / 2034"), ("12 / 34", "12 / 34")]
    ),
)
async def test_the_expiry_is_grouped_while_typing(show: Show, typed: str, shown: str) -> None:
    page = await show()
    field = page.get_by_label("Expiry date")
    await field.press_sequentially(typed)
    await expect(field).to_have_value(shown)


async def test_the_next_field_follows_one_that_is_whole_but_never_one_that_is_corrected(show: Show) -> None:
    page = await show()
    number, expiry = page.get_by_label("Card number"), page.get_by_label("Expiry date")
    await expect(number).to_be_focused()
    await page.keyboard.type(f"{APPROVED}1234123")
    await expect(number).to_have_value("4242 4242 4242 4242")
    await expect(expiry).to_have_value("12 / 34")
    await expect(page.get_by_label("Security code")).to_have_value("123")
    await expiry.fill("")
    await number.press("End")
    for key in ("Backspace", "2"):
        await number.press(key)
    await expect(number).to_be_focused()


async def test_on_a_phone_the_order_is_folded_and_nothing_hides_a_wrong_field(show: Show) -> None:
    page = await show(viewport={"width": 360, "height": 640})
    await expect(page.get_by_text("order-1")).to_be_hidden()
    await expect(page.locator("input:focus")).to_have_count(0)
    await page.get_by_label("Country").select_option("")
    button = page.locator("#pay")
    await expect(button).to_be_in_viewport(ratio=1)
    await fill(page)
    await button.click()
    field = page.get_by_label("Country")
    await expect(field).to_be_focused()
    bar = await page.locator(".act").evaluate("one => one.getBoundingClientRect().top")
    assert await page.locator("#country-error").evaluate("one => one.getBoundingClientRect().bottom") <= bar
    await page.locator(".order summary").click()
    await expect(page.get_by_text("order-1")).to_be_visible()


@long
async def test_the_expiry_can_be_deleted(show: Show) -> None:
    page = await show()
    field = page.get_by_label("Expiry date")
    await field.press_sequentially("1234")
    await expect(page.get_by_label("Security code")).to_be_focused()
    await field.press("End")
    for _ in range(8):
        await field.press("Backspace")
    await expect(field).to_have_value("")


@pytest.mark.parametrize(
    ("wrong", "label", "code"),
    one_of(
        3,
        [
            ({"number": "4242424242424241"}, "Card number", ("number", "invalid")),
            ({"number": "42424242"}, "Card number", ("number", "invalid")),
            ({"number": ""}, "Card number", ("number", "empty")),
            ({"expiry": "1334"}, "Expiry date", ("expiry", "invalid")),
            ({"expiry": "0120"}, "Expiry date", ("expiry", "expired")),
            ({"cvc": ""}, "Security code", ("cvc", "empty")),
            ({"cvc": "12"}, "Security code", ("cvc", "invalid")),
            ({"number": "378282246310005", "cvc": "12"}, "Security code", ("cvc", "invalid")),
        ],
    ),
)
async def test_a_mistake_is_named_beside_its_field_before_anything_is_sent(
    show: Show, desk: Desk, wrong: dict[str, str], label: str, code: tuple[str, str]
) -> None:
    page = await show()
    await fill(page, **wrong)
    await press_pay(page)
    field = page.get_by_label(label)
    await expect(field).to_be_focused()
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_have_accessible_description(wording.FIELD_ERRORS[code[0]][code[1]])
    assert desk.posts == []


@long
async def test_the_first_of_several_bad_fields_gets_the_focus(show: Show, desk: Desk) -> None:
    desk.view = replace(VIEW, entered=Customer("nobody", "", ""))
    page = await show()
    await press_pay(page)
    await expect(page.get_by_label("E-mail")).to_be_focused()
    await expect(page.locator(".error:visible")).to_have_count(5)
    await page.get_by_label("E-mail").fill("ada@example.com")
    await expect(page.locator(".error:visible")).to_have_count(4)


async def test_after_a_decline_everything_typed_but_the_security_code_is_still_there(show: Show, desk: Desk) -> None:
    desk.answer = "wrong_cvc"
    page = await show()
    await fill(page)
    await press_pay(page)
    await expect(page.get_by_role("alert")).to_contain_text("declined")
    await expect(page.get_by_label("Card number")).to_have_value("4242 4242 4242 4242")
    await expect(page.get_by_label("Security code")).to_be_focused()
    await expect(page.get_by_label("Security code")).to_have_value("")
    desk.answer = "approve"
    await page.get_by_label("Security code").fill("124")
    await press_pay(page)
    await page.wait_for_url("**/thanks")
    assert [post["cvc"] for post in desk.posts] == ["123", "124"]


@long
async def test_what_the_server_finds_wrong_is_shown_beside_the_field(show: Show, desk: Desk) -> None:
    desk.answer = "form"
    page = await show()
    await fill(page)
    await press_pay(page)
    await expect(page.get_by_label("E-mail")).to_be_focused()
    await expect(page.get_by_label("E-mail")).to_have_accessible_description(wording.FIELD_ERRORS["email"]["invalid"])


async def test_a_double_click_sends_one_form(show: Show, desk: Desk) -> None:
    desk.gate.clear()
    page = await show()
    await fill(page)
    button = page.locator("#pay")
    await button.dblclick()
    await page.get_by_label("Security code").press("Enter")
    await expect(button).to_have_attribute("aria-disabled", "true")
    await expect(page.locator("#busy")).to_have_text("Processing …")
    await expect(page.get_by_label("Card number")).not_to_be_focused()
    desk.gate.set()
    await page.wait_for_url("**/thanks")
    assert len(desk.posts) == 1


@long
@pytest.mark.parametrize("trouble", one_of(2, ["broken", "offline"]))
async def test_after_a_lost_connection_the_customer_can_try_again(show: Show, desk: Desk, trouble: str) -> None:
    page = await show()
    await fill(page)
    desk.answer = "broken"
    await page.context.set_offline(trouble == "offline")
    await press_pay(page)
    await expect(page.get_by_role("alert")).to_contain_text("will not be charged twice")
    await page.context.set_offline(False)
    desk.answer = "approve"
    await press_pay(page)
    await page.wait_for_url("**/thanks")


async def test_the_back_button_never_brings_back_a_busy_page(show: Show, desk: Desk) -> None:
    page = await show()
    await fill(page)
    await press_pay(page)
    await page.wait_for_url("**/thanks")
    await page.go_back()
    button = page.get_by_role("button", name="Pay 10.00 USD")
    await expect(button).not_to_have_attribute("aria-disabled", "true")
    await page.evaluate("document.getElementById('payment').classList.add('working')")
    await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    await expect(page.locator("#payment")).not_to_have_class("working")


async def test_a_test_card_fills_the_whole_form(show: Show, desk: Desk) -> None:
    desk.view = replace(VIEW, entered=Customer())
    page = await show(locale="en")
    await page.get_by_text("Test cards").click()
    await page.get_by_role("button", name="Fill in 378282246310005").click()
    await expect(page.get_by_label("Card number")).to_have_value("3782 822463 10005")
    await press_pay(page)
    await page.wait_for_url("**/thanks")
    assert desk.posts[0]["cvc"] == "1234"


@long
async def test_a_city_and_a_postal_code_may_be_left_empty(show: Show, desk: Desk) -> None:
    desk.view = replace(VIEW, entered=replace(VIEW.entered, city="London", postal_code="SW1A 1AA", asks_place=True))
    page = await show(locale="en-GB")
    await expect(page.get_by_label("Postal code")).to_have_value("SW1A 1AA")
    await page.get_by_label("City").fill("")
    await fill(page)
    await page.locator("#pay").click()
    await page.wait_for_url("**/thanks")
    assert (desk.posts[0]["city"], desk.posts[0]["zip"]) == ("", "SW1A 1AA")


@long
async def test_the_waiting_page_finds_its_own_way(show: Show, desk: Desk) -> None:
    page = await show("/polling")
    await page.wait_for_url("**/thanks")
    assert desk.polls == 2


async def test_the_page_speaks_the_browsers_language(show: Show) -> None:
    page = await show(locale="de-DE")
    await expect(page.get_by_role("button", name="10,00 USD bezahlen")).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await expect(page.get_by_label("Land")).to_have_value("DE")
    await page.get_by_label("Kartennummer").fill("1")
    await page.get_by_role("button", name="bezahlen").click()
    await expect(page.get_by_text("Diese Kartennummer stimmt nicht.")).to_be_visible()


@pytest.fixture
def subscribing(desk: Desk) -> None:
    """The page is that of a subscription."""
    terms = Terms("Coffee club", "club", "USD", Decimal("10.00"), Period(1, "month"), None, 0)
    desk.view = replace(VIEW, terms=terms)


@pytest.mark.usefixtures("subscribing")
async def test_a_subscription_begins_only_once_its_terms_are_agreed_to(show: Show, desk: Desk) -> None:
    page = await show()
    await fill(page)
    await page.get_by_label("Country").select_option("GB")
    await press_pay(page)
    box = page.get_by_role("checkbox", name="I agree that Demo Shop charges this card")
    await expect(box).to_be_focused()
    await expect(page.locator("#agree-error")).to_have_text("Tick the box to agree.")
    assert desk.posts == []
    await page.keyboard.press("Space")
    await expect(page.locator("#agree-error")).to_be_hidden()
    await press_pay(page)
    await page.wait_for_url("**/thanks")
    assert desk.posts[0]["agree"] == "en-US,en;q=0.9"


@long
@pytest.mark.usefixtures("subscribing")
async def test_filling_in_a_test_card_agrees_to_nothing(show: Show, desk: Desk) -> None:
    page = await show()
    await page.get_by_text("Test cards").click()
    await page.get_by_role("button", name=f"Fill in {APPROVED}").click()
    box = page.get_by_role("checkbox")
    await expect(box).to_be_focused()
    await expect(box).not_to_be_checked()
    await expect(page.locator("#agree-error")).to_be_hidden()


@pytest.mark.usefixtures("subscribing")
async def test_without_javascript_the_browser_asks_for_the_agreement(show: Show, desk: Desk) -> None:
    page = await show(java_script_enabled=False)
    await fill(page, expiry="12/34")
    await page.get_by_label("Country").select_option("GB")
    await press_pay(page)
    assert desk.posts == []
    await page.get_by_text("I agree that").click()
    await press_pay(page)
    await page.wait_for_url("**/thanks")
    assert desk.posts[0]["agree"] == "en-US,en;q=0.9"
