"""An address that misses one of ours by little says which is meant; nothing is done for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from paydesk.domain.merchants.merchant import Merchant

SignedForm = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("/payment/form/", "/payment/form"),
        ("//payment//form", "/payment/form"),
        ("/sandbox/payment/form/", "/sandbox/payment/form"),
        ("/sandbox/sandbox/payment/form", "/sandbox/payment/form"),
        ("/sandbox/sandbox/sandbox/payment/form/", "/sandbox/payment/form"),
    ],
)
async def test_a_form_for_an_address_that_nearly_exists_is_told_the_right_one(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    count_rows: Callable[[str], Any],
    asked: str,
    expected: str,
) -> None:
    answer = await web.post(httpx.URL("http://pay.test").copy_with(raw_path=asked.encode()), data=signed_form())
    assert answer.status_code == 404
    assert "For the shop’s programmer" in answer.text
    assert f"there is no {asked}: POST {expected} is meant" in answer.text
    assert await count_rows("checkout") == 0


async def test_a_program_is_told_in_the_fixed_shape(web: httpx.AsyncClient, merchant: Merchant) -> None:
    answer = await web.get("/api/v1/payments/", headers={"X-ApiKey": merchant.private_key})
    assert (answer.status_code, answer.json()["success"]) == (404, False)
    assert answer.json()["message"] == "there is no /api/v1/payments/: GET /api/v1/payments is meant"


@pytest.mark.parametrize("asked", ["/nowhere/", "/sandbox/sandbox/nowhere", "/payment/form/1"])
async def test_what_is_near_nothing_is_just_not_found(web: httpx.AsyncClient, asked: str) -> None:
    answer = await web.post(asked)
    assert answer.status_code in (404, 405)
    assert "is meant" not in answer.text


async def test_a_visitor_without_a_page_finds_the_start(web: httpx.AsyncClient) -> None:
    lost = await web.get("/nowhere")
    assert lost.status_code == 404
    assert 'href="/">To the start page</a>' in lost.text
    for address in ("/", "/sandbox/"):
        start = await web.get(address)
        assert (start.status_code, start.headers["location"]) == (303, "/account")
