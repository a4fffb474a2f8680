from __future__ import annotations

import html
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from paydesk_client.signature import encode_form

SignedForm = Callable[..., dict[str, Any]]
CountRows = Callable[[str], Awaitable[int]]

FORM = "/payment/form"
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}


async def refused(web: httpx.AsyncClient, form: dict[str, Any]) -> tuple[int, str, str]:
    """Post a form that must be refused, as a browser and as a program;
    the status, the message and the page's text.
    """
    page = await web.post(FORM, content=encode_form(form), headers=FORM_TYPE)
    answer = await web.post(FORM, content=encode_form(form), headers={**FORM_TYPE, "Accept": "application/json"})
    body = answer.json()
    assert list(body) == ["success", "type", "message", "code"]
    assert (body["success"], body["type"], body["code"]) == (False, "error", answer.status_code)
    assert page.status_code == answer.status_code
    assert page.headers["content-type"].startswith("text/html")
    text = html.unescape(page.text)
    assert body["message"] in text
    return answer.status_code, body["message"], text


SUBSCRIPTION = {"recurring_name": "Coffee club", "recurring_sku_id": "club", "recurring_period": "1m"}

WRONG_TERMS: list[tuple[dict[str, Any], str, str]] = [
    *(({name: None}, name, "is missing; a subscription needs") for name in SUBSCRIPTION),
    *(({name: ""}, name, "is missing; a subscription needs") for name in SUBSCRIPTION),
    *(({name: ["a"]}, name, "single value") for name in SUBSCRIPTION),
    *((dict.fromkeys(SUBSCRIPTION) | {"recurring_duration": text}, "recurring_name", "missing") for text in ("3", "x")),
    (dict.fromkeys(SUBSCRIPTION) | {"recurring_trial_period": "7d"}, "recurring_name", "missing"),
    ({"recurring_name": " "}, "recurring_name", "missing"),
    ({"recurring_name": "a\x01b"}, "recurring_name", "control character"),
    ({"recurring_name": "club\u202e"}, "recurring_name", "control character"),
    ({"recurring_sku_id": "a\nb"}, "recurring_sku_id", "control character"),
    ({"recurring_name": "x" * 256}, "recurring_name", "at most 255"),
    ({"recurring_sku_id": "x" * 256}, "recurring_sku_id", "at most 255"),
    *(
        ({name: period}, name, "write a number and d, w, m or y")
        for name in ("recurring_period", "recurring_trial_period")
        for period in ("m", "1", "1 m", "1M", "-1m", "1.5m", "1h", "month", "٣m", "1m\n", "12345d")
    ),
    *(({name: "0d"}, name, "must be at least 1") for name in ("recurring_period", "recurring_trial_period")),
    *(
        ({"recurring_period": period}, "recurring_period", "longer than 10 years")
        for period in ("3654d", "522w", "121m", "11y", "9999d")
    ),
    ({"recurring_trial_amount": "1.00"}, "recurring_trial_period", "needs the length of the trial"),
    ({"recurring_trial_amount": "0.0.0"}, "recurring_trial_amount", "plain decimal"),
    *(
        ({"recurring_trial_period": "7d", "recurring_trial_amount": amount}, "recurring_trial_amount", why)
        for amount, why in {
            "free": "plain decimal",
            "-1.00": "plain decimal",
            "1e2": "plain decimal",
            "1,00": "plain decimal",
            "1.001": '"1.001" has 3 decimals, USD allows 2',
            "999999999999999": "larger than",
        }.items()
    ),
    *(({"recurring_duration": text}, "recurring_duration", "a number of payments") for text in ("-1", "ever", "1.5")),
    ({"recurring_duration": "0m"}, "recurring_duration", "at least 1"),
    ({"recurring_duration": "3661"}, "recurring_duration", "more than 3660 payments"),
    ({"recurring_duration": "9999999999"}, "recurring_duration", "a number of payments"),
    *(
        ({"recurring_period": period, "recurring_duration": duration}, "recurring_duration", "whole number of periods")
        for period, duration in (("1m", "30d"), ("1m", "2w"), ("5m", "1y"), ("2w", "15d"), ("6m", "3m"), ("1y", "18m"))
    ),
]

WRONG_FIELDS = [
    ({"merchant_order_id": None}, "merchant_order_id", "missing"),
    ({"merchant_order_id": "  "}, "merchant_order_id", "blank"),
    ({"merchant_order_id": "A\r\n1"}, "merchant_order_id", "control character"),
    ({"merchant_order_id": "x" * 256}, "merchant_order_id", "at most 255"),
    ({"merchant_order_id": ["a", "b"]}, "merchant_order_id", "single value"),
    ({"amount": None}, "amount", "missing"),
    ({"amount": "0"}, "amount", "greater than 0"),
    ({"amount": "0.00"}, "amount", "greater than 0"),
    ({"amount": "-1.00"}, "amount", "plain decimal"),
    ({"amount": "1.001"}, "amount", '"1.001" has 3 decimals, USD allows 2'),
    ({"amount": "500.50", "currency": "JPY"}, "amount", '"500.50" has 2 decimals, JPY allows 0'),
    ({"amount": "0.00", "currency": "JPY"}, "amount", "greater than 0"),
    ({"amount": "1.2345", "currency": "BHD"}, "amount", "BHD allows 3"),
    ({"amount": "1e3"}, "amount", "plain decimal"),
    ({"amount": "1,000.00"}, "amount", "plain decimal"),
    ({"amount": "٣"}, "amount", "plain decimal"),
    ({"amount": "NaN"}, "amount", "plain decimal"),
    ({"amount": "10\n"}, "amount", "plain decimal"),
    ({"amount": "9" * 60}, "amount", "plain decimal"),
    ({"amount": "999999999999999"}, "amount", "larger than"),
    ({"currency": None}, "currency", "missing"),
    ({"currency": "usd"}, "currency", "ISO 4217"),
    ({"currency": "840"}, "currency", "ISO 4217"),
    ({"currency": "XXX"}, "currency", "ISO 4217"),
    ({"currency": "DEM"}, "currency", "ISO 4217"),
    ({"currency": "BGN"}, "currency", "no currency any more"),
    ({"description": None}, "description", "missing"),
    ({"description": "\x01"}, "description", "control character"),
    ({"description": "x" * 1025}, "description", "at most 1024"),
    ({"email": "nobody"}, "email", "not an e-mail address"),
    ({"email": "a@" + "b" * 300 + ".example"}, "email", "not an e-mail address"),
    ({"first_name": "x" * 101}, "first_name", "at most 100"),
    ({"last_name": "\x7f"}, "last_name", "control character"),
    ({"success_url": "/thanks"}, "success_url", "absolute"),
    ({"success_url": "//shop.example/"}, "success_url", "absolute"),
    ({"success_url": "https:/shop.example"}, "success_url", "host"),
    ({"success_url": "https://"}, "success_url", "host"),
    ({"success_url": "https://shop.example:99999/"}, "success_url", "port"),
    ({"success_url": "https://shop.example/\r\nSet-Cookie: a=b"}, "success_url", "control character"),
    ({"success_url": "https://shop.example/\u2028"}, "success_url", "control character"),
    ({"success_url": "https://shop.example/" + "x" * 2048}, "success_url", "at most 2048"),
    *(
        ({"success_url": f"{scheme}:alert(1)//https://shop.example"}, "success_url", "must not use the scheme")
        for scheme in (
            *("javascript", "JavaScript", "data", "vbscript", "file", "blob", "about", "view-source", "filesystem"),
            *(
                "search-ms",
                "ms-word",
                "MS-Settings",
                "intent",
                "android-app",
                "chrome",
                "itms-services",
                "mailto",
                "smb",
            ),
        )
    ),
    ({"pingback_url": "shopapp://paid"}, "pingback_url", "http or https"),
    ({"pingback_url": "ftp://shop.example/"}, "pingback_url", "http or https"),
    ({"pingback_url": "https://user:secret@shop.example/"}, "pingback_url", "user name or password"),
    ({"pingback_url": "pingback"}, "pingback_url", "absolute"),
    ({"sign_version": "v3"}, "sign_version", "expected v1 or v2"),
    ({"sign_version": ["v2"]}, "sign_version", "expected v1 or v2"),
    ({"extra": "a\x00b"}, "extra", "NUL"),
    *(({**SUBSCRIPTION, **fields}, name, why) for fields, name, why in WRONG_TERMS),
]


@pytest.mark.parametrize(
    ("fields", "name", "why"), WRONG_FIELDS, ids=[f"{name}: {why}" for _, name, why in WRONG_FIELDS]
)
async def test_a_wrong_field_is_named_with_what_was_expected_and_nothing_is_stored(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    count_rows: CountRows,
    fields: dict[str, Any],
    name: str,
    why: str,
) -> None:
    # The signer knows no other version, so that one goes into a form signed before.
    form = signed_form() | fields if "sign_version" in fields else signed_form(**fields)
    status, message, page = await refused(web, form)
    assert status == 400
    assert name in message
    assert why in message
    assert f"<code>{name}</code>" in page
    assert await count_rows("checkout") == 0
    assert await count_rows("payment") == 0
    assert await count_rows("rejected_form") == 2


async def test_no_recurring_field_or_only_an_unlimited_duration_is_a_one_time_payment(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows
) -> None:
    for fields in ({}, {"recurring_duration": "0"}, dict.fromkeys(SUBSCRIPTION, "")):
        answer = await web.post(FORM, content=encode_form(signed_form(**fields)), headers=FORM_TYPE)
        assert answer.status_code == 303
    assert await count_rows("package_version") == 0


RIGHT_TERMS = {
    "every day": {"recurring_period": "1d"},
    "ten years": {"recurring_period": "10y"},
    "free trial": {"recurring_trial_period": "14d"},
    "free trial, said so": {"recurring_trial_period": "2w", "recurring_trial_amount": "0.00"},
    "set-up fee": {"recurring_trial_period": "1m", "recurring_trial_amount": "30.00"},
    "no limit": {"recurring_duration": "0"},
    "a number of payments": {"recurring_duration": "12"},
    "a length of time": {"recurring_duration": "1y"},
    "weeks made of days": {"recurring_period": "7d", "recurring_duration": "4w"},
}


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("fields", RIGHT_TERMS.values(), ids=RIGHT_TERMS)
async def test_a_subscription_in_every_shape_is_accepted_and_posted_again_leads_to_the_same_checkout(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, fields: dict[str, Any], version: str
) -> None:
    form = signed_form(**{**SUBSCRIPTION, **fields}, sign_version=version)
    answers = [await web.post(FORM, content=encode_form(form), headers=FORM_TYPE) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 303]
    assert answers[0].headers["location"] == answers[1].headers["location"]
    assert await count_rows("checkout") == 1
    assert await count_rows("package_version") == 1
