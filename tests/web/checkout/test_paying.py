from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.shopfront import open_page, press_pay

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.simulator import SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.payments.card_guard import Limits
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.web.checkout.services import CheckoutServices

OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
SignedForm = Callable[..., dict[str, Any]]
CountRows = Callable[[str], Awaitable[int]]
Charges = Callable[[], list[Standing]]

VISA, MASTERCARD, AMEX = "4242424242424242", "5555555555554444", "378282246310005"
DECLINED, ASKS_CUSTOMER, ANSWER_LOST = "4000000000000002", "4000000000003220", "4000000000009987"
SHOP = "https://shop.example/thanks?order=1"


def leads_to(answer: httpx.Response) -> str:
    assert answer.status_code == 303, html.unescape(answer.text)
    return answer.headers["location"]


def text_of(answer: httpx.Response) -> str:
    return html.unescape(answer.text)


@pytest.mark.parametrize("number", [VISA, MASTERCARD, AMEX, "4000000000000341"])
async def test_an_approved_card_pays_and_leads_to_the_shop(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    charges: Charges,
    database: Database,
    merchant: Merchant,
    number: str,
) -> None:
    path = await open_page(web, signed_form())
    assert leads_to(await press_pay(web, path, number)) == SHOP
    (charge,) = charges()
    assert (charge.net, charge.currency) == (Decimal(10), "USD")
    payment = await database.fetchrow("select * from payment where merchant_id = $1", merchant.id)
    assert (payment["state"], payment["live"]) == ("captured", False)
    page = await web.get(path)
    assert page.status_code == 200
    assert f'href="{SHOP}"' in page.text
    assert leads_to(await press_pay(web, path, MASTERCARD)) == f"{path}/result", "pressing again pays nothing more"
    assert f'href="{SHOP}"' in (await web.get(f"{path}/result")).text
    assert len(charges()) == 1


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (DECLINED, "another card"),
        ("4000000000009995", "not enough money"),
        ("4000000000000069", "expired"),
        ("4000000000000127", "security code"),
        ("4000000000000119", "technical problem"),
    ],
)
async def test_a_decline_says_so_and_another_card_may_pay(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, number: str, advice: str
) -> None:
    path = await open_page(web, signed_form())
    for answer in (await press_pay(web, path, number), await web.get(f"{path}/result")):
        assert answer.status_code == 402
        assert "declined" in text_of(answer)
        assert advice in text_of(answer)
        assert "Ada King Lovelace" in answer.text, "what was typed is kept"
        assert number not in answer.text.partition("<form")[2], "but never the number"
    assert (await web.get(path)).status_code == 200
    assert charges() == []
    assert leads_to(await press_pay(web, path, VISA)) == SHOP
    assert len(charges()) == 1


async def test_an_approved_challenge_pays(web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges) -> None:
    path = await open_page(web, signed_form())
    bank_page = leads_to(await press_pay(web, path, ASKS_CUSTOMER))
    assert bank_page.startswith("http://pay.test/simulator/challenge/")
    assert (await web.get(bank_page)).status_code == 200
    assert charges() == []
    back = leads_to(await web.post(bank_page, data={"decision": "approve"}))
    assert back == f"http://pay.test{path}/result"
    assert leads_to(await web.get(back)) == SHOP
    assert len(charges()) == 1


async def test_a_rejected_challenge_is_a_decline(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges
) -> None:
    path = await open_page(web, signed_form())
    bank_page = leads_to(await press_pay(web, path, ASKS_CUSTOMER))
    back = leads_to(await web.post(bank_page, data={"decision": "reject"}))
    answer = await web.get(back)
    assert answer.status_code == 402
    assert "declined" in text_of(answer)
    assert leads_to(await press_pay(web, path, VISA)) == SHOP
    assert len(charges()) == 1


async def test_a_closed_challenge_leaves_the_checkout_to_be_paid_in_another_way(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form())
    bank_page = leads_to(await press_pay(web, path, ASKS_CUSTOMER))
    back = leads_to(await web.post(bank_page, data={"decision": "close"}))
    for answer in (await web.get(back), await web.get(path)):
        assert answer.status_code == 200
        assert "You left your bank’s confirmation" in text_of(answer)
    assert leads_to(await press_pay(web, path, VISA)) == SHOP
    late = await web.post(bank_page, data={"decision": "approve"})
    assert late.status_code == 409, "the new attempt has ended the challenge"
    assert len(charges()) == 1
    states = await database.fetch("select state from payment_attempt where merchant_id = $1 order by id", merchant.id)
    assert [row["state"] for row in states] == ["abandoned", "approved"]


async def test_a_challenge_approved_in_another_tab_is_found_before_anything_new_is_charged(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, count_rows: CountRows
) -> None:
    path = await open_page(web, signed_form())
    bank_page = leads_to(await press_pay(web, path, ASKS_CUSTOMER))
    await web.post(bank_page, data={"decision": "approve"})
    assert leads_to(await press_pay(web, path, VISA)) == SHOP
    (charge,) = charges()
    assert charge.last4 == "3220"
    assert await count_rows("payment_attempt") == 1


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_challenge_approved_in_one_checkout_of_an_order_closes_the_other(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, method: str
) -> None:
    form = signed_form()
    first = await open_page(web, form)
    other = signed_form(merchant_order_id=form["merchant_order_id"], success_url="https://shop.example/other")
    second = await open_page(web, other)
    bank_page = leads_to(await press_pay(web, first, ASKS_CUSTOMER))
    await web.post(bank_page, data={"decision": "approve"})
    answer = await press_pay(web, second, VISA) if method == "POST" else await web.get(f"{second}/result")
    while answer.status_code == 303:
        answer = await web.get(leads_to(answer))
    assert answer.status_code == 409
    assert leads_to(await web.get(f"{first}/result")) == SHOP
    assert len(charges()) == 1


async def comes_back_late(
    web: httpx.AsyncClient, path: str, database: Database, merchant: Merchant, *, decision: str
) -> str:
    """Where a bank leads a customer back to, whose page has expired amid its question."""
    bank_page = leads_to(await press_pay(web, path, ASKS_CUSTOMER))
    await set_back.times(database, "checkout", {"merchant_id": merchant.id}, expires_at=utc_now())
    return leads_to(await web.post(bank_page, data={"decision": decision}))


async def test_who_comes_back_refused_when_the_page_has_expired_is_shown_no_form(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form())
    back = await comes_back_late(web, path, database, merchant, decision="reject")
    for answer in (await web.get(back), await press_pay(web, path, VISA)):
        assert answer.status_code == 410
        assert "This payment page has expired" in text_of(answer)
        assert "<form" not in answer.text
    assert charges() == []


async def test_who_comes_back_approved_when_the_page_has_expired_has_paid(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form())
    back = await comes_back_late(web, path, database, merchant, decision="approve")
    answers = await asyncio.gather(*(web.get(back) for _ in range(4)), press_pay(web, path, VISA))
    assert [answer.headers.get("location") for answer in answers].count(SHOP) == 1
    assert len(charges()) == 1


async def test_who_comes_back_unasked_when_the_page_has_expired_waits_for_the_bank_without_a_form(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    charges: Charges,
    database: Database,
    merchant: Merchant,
    desk: Desk,
) -> None:
    form = signed_form()
    path, other = await open_page(web, form), await open_page(web, signed_form(**form | {"description": "Again"}))
    back = await comes_back_late(web, path, database, merchant, decision="close")
    for page in (back, path, other):
        answer = await web.get(page, follow_redirects=True)
        assert answer.status_code == 200
        assert "We are checking with your bank" in text_of(answer)
        assert "not been charged" not in text_of(answer), "nobody knows yet"
        assert "<form" not in answer.text
        (status,) = re.findall('data-status="([^"]+)"', answer.text)
        assert (await web.get(status)).json() == {"state": "processing"}, "nobody is led to the bank by themselves"
    for pressed in (path, other):
        assert leads_to(await press_pay(web, pressed, VISA)) == f"{pressed}/result", "a form that stood open still"
    await settle_due(desk, now=utc_now() + timedelta(hours=2))
    assert (await web.get(status)).json()["state"] == "done"
    for page in (back, path, other):
        assert "This payment page has expired" in text_of(await web.get(page, follow_redirects=True))
    assert charges() == []


@pytest.mark.parametrize("expired", [True, False])
async def test_nobody_is_led_in_circles_at_a_page_of_an_order_whose_bank_does_not_answer(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    monkeypatch: pytest.MonkeyPatch,
    *,
    expired: bool,
) -> None:
    async def lost(*_: object) -> None:
        raise OutcomeUnknown("lost")

    form = signed_form()
    path, other = await open_page(web, form), await open_page(web, signed_form(**form | {"description": "Again"}))
    back = leads_to(await web.post(leads_to(await press_pay(web, path, ASKS_CUSTOMER)), data={"decision": "close"}))
    if expired:
        await set_back.times(database, "checkout", {"merchant_id": merchant.id}, expires_at=utc_now())
    monkeypatch.setattr(SimulatedAcquirer, "find", lost)
    for page in (back, f"{other}/result") if expired else (f"{other}/result",):
        answer = await web.get(page)
        (status,) = re.findall('data-status="([^"]+)"', answer.text)
        assert (await web.get(status)).json() == {"state": "processing"}


async def test_a_question_that_is_left_open_is_answered_though_the_page_has_expired_and_was_pressed(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, database: Database, merchant: Merchant
) -> None:
    path = await open_page(web, signed_form())
    bank_page = leads_to(await press_pay(web, path, ASKS_CUSTOMER))
    await set_back.times(database, "checkout", {"merchant_id": merchant.id}, expires_at=utc_now())
    assert leads_to(await press_pay(web, path, VISA)) == f"{path}/result"
    back = leads_to(await web.post(bank_page, data={"decision": "approve"}))
    assert leads_to(await web.get(back)) == SHOP
    (charge,) = charges()
    assert charge.last4 == "3220"


@pytest.mark.parametrize("decision", ["reject", "close"])
async def test_at_another_checkout_of_the_order_nobody_is_told_of_a_card_that_was_not_theirs(
    web: httpx.AsyncClient, signed_form: SignedForm, decision: str
) -> None:
    form = signed_form()
    first = await open_page(web, form)
    second = await open_page(web, signed_form(merchant_order_id=form["merchant_order_id"], description="Again"))
    bank_page = leads_to(await press_pay(web, first, ASKS_CUSTOMER))
    await web.post(bank_page, data={"decision": decision})
    for page in (f"{second}/result", second):
        answer = await web.get(page, follow_redirects=True)
        assert answer.status_code == 200
        for words in ("Your card was declined", "You left your bank"):
            assert words not in text_of(answer)
    assert leads_to(await press_pay(web, second, VISA)) == SHOP


async def test_an_unknown_outcome_is_waited_for_and_found_by_the_janitor(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, desk: Desk
) -> None:
    path = await open_page(web, signed_form())
    assert leads_to(await press_pay(web, path, ANSWER_LOST)) == f"{path}/result"
    for answer in (await web.get(f"{path}/result"), await web.get(leads_to(await web.get(path)))):
        assert answer.status_code == 200
        assert "We are checking with your bank" in text_of(answer)
        assert f'data-status="{path}/status"' in answer.text
    assert (await web.get(f"{path}/status")).json() == {"state": "processing"}
    assert leads_to(await press_pay(web, path, VISA)) == f"{path}/result", "no second charge meanwhile"
    await settle_due(desk, now=utc_now() + timedelta(seconds=6))
    assert (await web.get(f"{path}/status")).json() == {"state": "done", "url": f"{path}/result"}
    assert leads_to(await web.get(f"{path}/result")) == SHOP
    assert len(charges()) == 1


async def test_the_pages_javascript_is_told_where_to_go_or_what_to_mend(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    as_json = "application/json"
    path = await open_page(web, signed_form())
    wrong = await press_pay(web, path, "4242424242424241", accept=as_json, cvc="1", holder="")
    assert wrong.status_code == 400
    assert list(wrong.json()["errors"]) == ["number", "cvc", "holder"]
    assert wrong.json()["focus"] == "number"
    declined = await press_pay(web, path, DECLINED, accept=as_json)
    assert declined.status_code == 402
    assert "declined" in declined.json()["notice"]
    paid = await press_pay(web, path, VISA, accept=as_json)
    assert (paid.status_code, paid.json()) == (200, {"redirect": SHOP, "done": True})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("email", value) for value in ("", "nobody", "a b@c.example")),
        *(("number", value) for value in ("", "4242", "4242424242424241", "4242 4242 4242 424x", "٤" * 16)),
        *(("expiry", value) for value in ("", "13/30", "12/20", "soon", "12/99")),
        *(("cvc", value) for value in ("", "12", "1234", "abc")),
        *(("holder", value) for value in ("", " ", "x" * 101, VISA, "4242-4242-4242-4242")),
        *(("country", value) for value in ("", "XX", "Great Britain")),
    ],
)
async def test_a_wrong_field_is_told_beside_it_and_nothing_is_asked_of_the_bank(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, field: str, value: str
) -> None:
    path = await open_page(web, signed_form())
    answer = await press_pay(web, path, **{"number": VISA, field: value})
    assert answer.status_code == 400
    page = answer.text
    assert f'href="#{field}"' in page
    assert f'id="{field}-error" hidden' not in page
    assert page.count(" autofocus") == 1
    if field != "email":
        assert 'value="ada@example.com"' in page, "what was typed is kept"
    assert 'value="123"' not in page, "never the CVC"
    assert await count_rows("payment_attempt") == 0


async def test_pressing_many_times_in_many_tabs_charges_once(
    open_web: OpenWeb, signed_form: SignedForm, charges: Charges, count_rows: CountRows
) -> None:
    web = await open_web(simulator_latency=0.05)
    path = await open_page(web, signed_form())
    answers = await asyncio.gather(*(press_pay(web, path, (VISA, MASTERCARD)[n % 2]) for n in range(20)))
    assert {leads_to(answer) for answer in answers} <= {SHOP, f"{path}/result"}
    assert len(charges()) == 1
    assert await count_rows("payment_attempt") == 1
    led = [leads_to(answer) for answer in answers].count(SHOP)
    assert led <= 1, "one of the answers leads on by itself"
    last = await web.get(f"{path}/result")
    assert f'href="{SHOP}"' in last.text if led else leads_to(last) == SHOP


async def test_two_checkouts_of_one_order_paid_at_once_charge_once_and_the_loser_closes(
    open_web: OpenWeb, signed_form: SignedForm, charges: Charges
) -> None:
    web = await open_web(simulator_latency=0.05)
    form = signed_form()
    order = form["merchant_order_id"]
    paths = [await open_page(web, signed_form(merchant_order_id=order, amount=f"1{n}.00")) for n in range(4)]
    await asyncio.gather(*(press_pay(web, path, VISA) for path in paths * 2))
    (charge,) = charges()
    pages = [await web.get(path) for path in paths]
    assert sorted(page.status_code for page in pages) == [200, 409, 409, 409]
    winner = next(path for path, page in zip(paths, pages, strict=True) if page.status_code == 200)
    assert charge.net == Decimal(f"1{paths.index(winner)}.00"), "the winner's amount"
    for path in paths:
        if path != winner:
            assert (await press_pay(web, path, VISA)).status_code == 409
    later = await open_page(web, signed_form(merchant_order_id=order, amount="99.00"))
    assert (await press_pay(web, later, VISA)).status_code == 409
    assert len(charges()) == 1


async def test_concurrent_new_attempts_after_a_decline_charge_once(
    open_web: OpenWeb, signed_form: SignedForm, charges: Charges
) -> None:
    web = await open_web(simulator_latency=0.02)
    path = await open_page(web, signed_form())
    await press_pay(web, path, DECLINED)
    await asyncio.gather(*(press_pay(web, path, VISA) for _ in range(10)))
    assert len(charges()) == 1


async def test_concurrent_new_attempts_over_an_open_challenge_charge_once(
    open_web: OpenWeb, signed_form: SignedForm, charges: Charges
) -> None:
    web = await open_web(simulator_latency=0.02)
    path = await open_page(web, signed_form())
    bank_page = leads_to(await press_pay(web, path, ASKS_CUSTOMER))
    approving = web.post(bank_page, data={"decision": "approve"})
    answers = await asyncio.gather(approving, *(press_pay(web, path, VISA) for _ in range(10)))
    last = await web.get(f"{path}/result")
    if SHOP in [answer.headers.get("location") for answer in answers]:
        assert f'href="{SHOP}"' in last.text, "one answer leads on by itself"
    else:
        assert leads_to(last) == SHOP
    assert len(charges()) == 1


async def test_a_checkout_allows_ten_attempts(
    web: httpx.AsyncClient, signed_form: SignedForm, charges: Charges, count_rows: CountRows
) -> None:
    path = await open_page(web, signed_form())
    for _ in range(10):
        assert (await press_pay(web, path, DECLINED)).status_code == 402
    answer = await press_pay(web, path, VISA)
    assert answer.status_code == 429
    assert "too many attempts" in text_of(answer)
    assert "<form" not in answer.text, "no live form below it"
    assert 'href="https://shop.example/"' in answer.text
    scripted = await press_pay(web, path, VISA, accept="application/json")
    assert (scripted.status_code, scripted.json()) == (429, {"redirect": f"{path}/stopped"})
    told = await web.get(f"{path}/stopped")
    assert (told.status_code, "<form" in told.text) == (429, False)
    assert await count_rows("payment_attempt") == 10
    assert charges() == []


async def test_declines_are_limited_for_an_hour_for_one_client_of_one_merchant(
    open_web: OpenWeb, signed_form: SignedForm
) -> None:
    clock = [utc_now()]

    def wired(services: CheckoutServices) -> CheckoutServices:
        desk = replace(services.desk, test_limits=Limits(declines_per_hour=3))
        return replace(services, desk=desk, now=lambda: clock[0])

    options: dict[str, Any] = {"wire": wired}
    web = await open_web(**options)
    for _ in range(3):
        assert (await press_pay(web, await open_page(web, signed_form()), DECLINED)).status_code == 402
    path = await open_page(web, signed_form())
    assert (await press_pay(web, path, VISA)).status_code == 429
    elsewhere = await open_web(**options, address="192.0.2.99")
    assert leads_to(await press_pay(elsewhere, await open_page(web, signed_form()), VISA)) == SHOP
    clock[0] += timedelta(hours=1, seconds=1)
    assert leads_to(await press_pay(web, path, VISA)) == SHOP


async def test_addresses_that_are_no_actions_lead_to_the_page(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    path = await open_page(web, signed_form())
    assert leads_to(await web.get(f"{path}/pay")) == path
    assert leads_to(await web.get(f"{path}/result")) == path
    for route in ("", "/status"):
        head = await web.head(path + route)
        assert (head.status_code, head.content) == (200, b"")
    for method, route in (("POST", ""), ("PUT", "/pay"), ("DELETE", ""), ("OPTIONS", ""), ("POST", "/result")):
        assert (await web.request(method, path + route)).status_code == 405
    too_large = await web.post(f"{path}/pay", data={"number": "4" * 20_000})
    assert too_large.status_code == 413


@pytest.mark.parametrize(
    ("names", "first", "last"),
    [
        ({}, "Ada King", "Lovelace"),
        ({"first_name": "Grace", "last_name": "Hopper"}, "Grace", "Hopper"),
        ({"first_name": "Grace"}, "Grace", ""),
    ],
)
async def test_the_pingback_row_holds_exactly_what_the_spec_names(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    database: Database,
    merchant: Merchant,
    names: dict[str, str],
    first: str,
    last: str,
) -> None:
    form = signed_form(
        sign_version="v2", pingback_url="https://shop.example/pingback", merchant_order_id=" Order: #1 ", **names
    )
    path = await open_page(web, form)
    await press_pay(web, path, VISA)
    row = await database.fetchrow("select * from pingback where merchant_id = $1", merchant.id)
    payment = await database.fetchrow("select * from payment where merchant_id = $1", merchant.id)
    assert (row["state"], row["sign_version"], row["format"], row["live"]) == ("due", "v2", "json", False)
    assert (row["url"], row["key_id"]) == ("https://shop.example/pingback", payment["key_id"])
    assert json.loads(row["payload"], parse_float=Decimal) == {
        "event": "payment",
        "payment_order": {
            "id": payment["id"],
            "merchant_order_id": " Order: #1 ",
            "payment_system": 1,
            "status": "successful",
            "paid_amount": 10,
            "paid_currency": "USD",
            "merchant_net_revenue": Decimal("8.9"),
            "merchant_rolling_reserve": Decimal("0.5"),
            "fees": Decimal("0.6"),
            "date": {
                "date": f"{payment['paid_at']:%Y-%m-%d %H:%M:%S.%f}",
                "timezone_type": 3,
                "timezone": "UTC",
            },
        },
        "user": {
            "firstname": first,
            "lastname": last,
            "username": "ada@example.com",
            "country": "GB",
            "email": "ada@example.com",
        },
        "with_risk_check": False,
    }


async def test_the_page_is_compressed_for_a_browser_that_takes_it(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    path = await open_page(web, signed_form())
    page = await web.get(path, headers={"Accept-Encoding": "gzip", "Accept-Language": "ar"})
    assert page.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in page.headers["vary"]
    assert '<html lang="ar" dir="rtl">' in page.text
    plain = await web.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers


@pytest.mark.parametrize("path", ["/nothing", "/checkout/t1-0", "/portal/t1-0"])
async def test_error_pages_speak_the_visitors_language(web: httpx.AsyncClient, path: str) -> None:
    page = await web.get(path, headers={"Accept-Language": "ar-EG", "Accept": "text/html"})
    assert page.status_code == 404
    assert '<html lang="ar" dir="rtl">' in page.text
