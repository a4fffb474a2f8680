"""Whatever strangers send: no server error, and no checkout unless the form is genuine
and complete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lengths import at_length

from paydesk_client.signature import MalformedForm, encode_form

SignedForm = Callable[..., dict[str, Any]]
CountRows = Callable[[str], Awaitable[int]]

FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}
PATIENT = settings(
    deadline=None,
    max_examples=at_length(100, 12),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NAMES = st.sampled_from(
    [
        *("merchant_order_id", "amount", "currency", "description", "email", "success_url", "pingback_url", "hash"),
        *("sign_version", "first_name", "last_name", "country", "payment_flow", "recurring_name", "x[y]", "zip"),
    ]
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
    st.sampled_from(["\x00", "9" * 400, "-0", "1e308", "1E-9", "NaN", "Infinity", "٣.٥", "v2", "JPY", "XXX", "\ufeff"]),
    st.sampled_from(["http://[", "http://a:b/", "https://ﬀ.example", "x:", "https://xn--a/", "http://.", "a@b@c", "@"]),
    st.sampled_from(["https://" + "ü" * 80 + ".example/", "http://a/\u0085", "http://[::ffff:1.2.3.4%25x]/", "\ud7ff"]),
)
PAIRS = st.dictionaries(NAMES, st.one_of(TEXTS, st.lists(TEXTS, max_size=2)), min_size=1, max_size=6)


def sane(answer: httpx.Response) -> None:
    assert answer.status_code < 500
    assert "\n" not in answer.headers.get("location", "")
    assert "\r" not in answer.headers.get("location", "")


@PATIENT
@given(body=st.binary(max_size=300), accept=st.sampled_from(["text/html", "application/json"]))
async def test_random_bytes_are_refused(
    web: httpx.AsyncClient, count_rows: CountRows, body: bytes, accept: str
) -> None:
    answer = await web.post("/payment/form", content=body, headers={**FORM_TYPE, "Accept": accept})
    assert answer.status_code in (400, 404)
    assert await count_rows("checkout") == 0


@PATIENT
@given(
    raw=st.binary(min_size=1, max_size=40), name=st.sampled_from([b"description", b"api_key", b"success_url", b"a[%s]"])
)
async def test_a_genuine_form_with_random_bytes_in_it_is_refused(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, raw: bytes, name: bytes
) -> None:
    encoded = b"".join(b"%%%02X" % byte for byte in raw)
    body = encode_form(signed_form()).encode() + b"&extra" + name.replace(b"%s", encoded) + b"=" + encoded
    answer = await web.post("/payment/form", content=body, headers=FORM_TYPE)
    assert answer.status_code in (400, 403, 429)
    assert await count_rows("checkout") == 0


@PATIENT
@given(fields=PAIRS)
async def test_random_values_without_a_right_hash_are_refused(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, fields: dict[str, Any]
) -> None:
    form = signed_form()
    changed = {**form, **fields}
    if encode_form(changed) == encode_form(form):
        return
    answer = await web.post("/payment/form", content=encode_form(changed), headers=FORM_TYPE)
    sane(answer)
    if answer.status_code == 303:
        # Only empty optional fields may be added without being hashed (interface.md §3.4).
        assert not any("".join(value) for value in fields.values())
    else:
        # After thirty wrong hashes in a minute no more are looked at.
        assert answer.status_code in (400, 403, 429)


@PATIENT
@given(fields=PAIRS)
async def test_random_values_under_a_right_hash_open_a_checkout_or_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, fields: dict[str, Any]
) -> None:
    fields.pop("hash", None)
    if fields.get("sign_version") not in (None, "", "v1", "v2"):
        fields.pop("sign_version")
    before = await count_rows("checkout")
    try:
        form = signed_form(**fields)
    except MalformedForm:
        return
    answer = await web.post("/payment/form", content=encode_form(form), headers=FORM_TYPE)
    sane(answer)
    opened = await count_rows("checkout") - before
    # The same form leads to the same checkout, and this may be one that was sent before.
    assert opened in ((0, 1) if answer.status_code == 303 else (0,))
    if answer.status_code == 303:
        page = await web.get(answer.headers["location"])
        assert page.status_code == 200


@PATIENT
@given(token=st.text(st.characters(exclude_categories=["Cs"]), max_size=60), method=st.sampled_from(["GET", "POST"]))
async def test_random_links_are_not_found(web: httpx.AsyncClient, token: str, method: str) -> None:
    for route in ("", "/pay", "/result", "/status"):
        answer = await web.request(method, f"/checkout/{quote(token, safe='')}{route}")
        assert answer.status_code in (404, 405)


CARD_FIELDS = st.sampled_from(["email", "number", "expiry", "cvc", "holder", "country", "number[]", "x"])


@PATIENT
@given(typed=st.dictionaries(CARD_FIELDS, TEXTS, max_size=7), as_json=st.booleans())
async def test_random_card_details_are_never_charged(
    web: httpx.AsyncClient, signed_form: SignedForm, count_rows: CountRows, typed: dict[str, str], as_json: bool
) -> None:
    opened = await web.post("/payment/form", content=encode_form(signed_form()), headers=FORM_TYPE)
    headers = {**FORM_TYPE, "Accept": "application/json" if as_json else "text/html"}
    answer = await web.post(f"{opened.headers['location']}/pay", content=encode_form(typed), headers=headers)
    assert answer.status_code == 400
    assert await count_rows("payment") == 0
