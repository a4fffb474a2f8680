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
    """Post a form that must be refused, as a browser and as a program; the status, the message and the page's text."""
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
    ({"amount": "500.00", "currency": "JPY"}, "amount", "JPY allows 0"),
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
    ({"description": None}, "description", "missing"),
    ({"description": "\x01"}, "description", "control character"),
    ({"description": "x" * 1025}, "description", "at most 1024"),
    ({"email": "nobody"}, "email", "not an e-mail address"),
    ({"email": "a@" + "b" * 300 + ".example"}, "email", "not an e-mail address"),
    ({"first_name": "x" * 101}, "first_name", "at most 100"),
    ({"last_name": "\x7f"}, "last_name", "control character"),
    ({"success_url": None}, "success_url", "missing"),
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
        for scheme in ("javascript", "JavaScript", "data", "vbscript", "file")
    ),
    ({"pingback_url": "shopapp://paid"}, "pingback_url", "http or https"),
    ({"pingback_url": "ftp://shop.example/"}, "pingback_url", "http or https"),
    ({"pingback_url": "https://user:secret@shop.example/"}, "pingback_url", "user name or password"),
    ({"pingback_url": "pingback"}, "pingback_url", "absolute"),
    ({"sign_version": "v3"}, "sign_version", "expected v1 or v2"),
    ({"sign_version": ["v2"]}, "sign_version", "expected v1 or v2"),
    ({"extra": "a\x00b"}, "extra", "NUL"),
    *(
        ({name: value}, name, "not available yet")
        for name, value in {
            "recurring_name": "Gold",
            "recurring_sku_id": "sku",
            "recurring_period": "1m",
            "recurring_trial_amount": "1.00",
            "recurring_trial_period": "3d",
            "recurring_duration": "0",
        }.items()
    ),
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
