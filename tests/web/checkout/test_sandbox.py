"""Test mode, the sandbox base, and going live (interface.md §9.2, §9.3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from tests import set_back

from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.merchants.refused_forms import rejected_forms
from paydesk_client.signature import encode_form

OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
SignedForm = Callable[..., dict[str, Any]]
CountRows = Callable[[str], Awaitable[int]]

FORM = "/payment/form"
FORM_TYPE = {"Content-Type": "application/x-www-form-urlencoded"}


async def post(web: httpx.AsyncClient, form: dict[str, Any], url: str = FORM, **headers: str) -> httpx.Response:
    return await web.post(url, content=encode_form(form), headers={**FORM_TYPE, **headers})


async def accepted(web: httpx.AsyncClient, form: dict[str, Any], url: str = FORM) -> str:
    """Post a valid form; where it leads to."""
    answer = await post(web, form, url)
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def test_the_sandbox_base_serves_test_data_under_the_same_routes(
    web: httpx.AsyncClient, database: Database, merchant: Merchant, signed_form: SignedForm
) -> None:
    form = signed_form()
    path = await accepted(web, form, "/sandbox/payment/form")
    assert path.startswith("/sandbox/checkout/t")
    page = await web.get(path)
    assert page.status_code == 200
    assert f'action="{path}/pay"' in page.text
    assert "Test mode" in page.text
    assert await accepted(web, form) == path.removeprefix("/sandbox"), "in test mode both bases are the same side"
    assert await database.fetch("select distinct live from checkout where merchant_id = $1", merchant.id) == [(False,)]
    assert (await web.post("/sandbox/payment/form/", data=form)).status_code == 404, "no redirect out of the sandbox"
    assert (await web.get("/sandbox")).status_code == 404


async def test_the_sandbox_may_have_a_host_of_its_own(open_web: OpenWeb, signed_form: SignedForm) -> None:
    web = await open_web(sandbox_base_url="http://sandbox.pay.test")
    path = await accepted(web, signed_form(), "http://sandbox.pay.test/payment/form")
    assert path.startswith("/checkout/t")
    assert (await web.get(f"http://sandbox.pay.test{path}")).status_code == 200
    assert (await web.post("/sandbox/payment/form", data=signed_form())).status_code == 404
    answer = await post(
        web, signed_form(payment_flow="user_qr"), "http://sandbox.pay.test/payment/form", Accept="application/json"
    )
    assert answer.json()["data"]["checkout_url"].startswith("http://sandbox.pay.test/checkout/")


async def test_a_live_checkout_is_refused_with_an_explanation_until_going_live(
    web: httpx.AsyncClient, database: Database, merchant: Merchant, signed_form: SignedForm, count_rows: CountRows
) -> None:
    await change_merchant(database, merchant.id, test_mode=False)
    for accept in ("text/html", "application/json"):
        answer = await post(web, signed_form(), Accept=accept)
        assert answer.status_code == 409
        assert "not live yet" in answer.text
        assert "sandbox" in answer.text
    assert await count_rows("checkout") == 0
    assert {one.live for one in await rejected_forms(database, merchant.id)} == {True}
    await accepted(web, signed_form(), "/sandbox/payment/form")
    assert await database.fetchval("select live from checkout where merchant_id = $1", merchant.id) is False


async def test_a_live_link_is_unknown_below_the_sandbox(
    web: httpx.AsyncClient, database: Database, merchant: Merchant, signed_form: SignedForm
) -> None:
    await set_back.went_live(database, merchant.id)
    path = await accepted(web, signed_form())
    assert path.startswith("/checkout/l")
    assert (await web.get(path)).status_code == 200
    for route in ("", "/pay", "/result", "/status"):
        assert (await web.get(f"/sandbox{path}{route}")).status_code == 404
    assert (await web.post(f"/sandbox{path}/pay")).status_code == 404
    test_side = "/checkout/t" + path.removeprefix("/checkout/l")
    assert (await web.get(test_side)).status_code == 404
