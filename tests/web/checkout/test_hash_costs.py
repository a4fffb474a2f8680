"""Forms with a wrong hash cost little, whoever sends however many, and hold nobody else up."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import httpx
import pytest
from tests.lengths import long

from paydesk.core.clock import utc_now
from paydesk.database import waiting
from paydesk.database.pool import Database
from paydesk.domain.merchants import verifying
from paydesk.domain.merchants.hash_threads import MOST_WAITING, guesses
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.verifying import MOST_REFUSED
from paydesk.domain.payments import diagnosis, receiving
from paydesk.web.api.services import ApiServices
from paydesk_client import Gateway, signature
from paydesk_client.parameters import urlencode
from paydesk_client.signature import Budget

SignedForm = Callable[..., dict[str, Any]]
OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]
JSON = {"Accept": "application/json"}

MANY = {"Z": "~", "a": "!*"} | {f"x{n:03}": f"a&amp;%41{n}" for n in range(185)} | {f"e{n}": "" for n in range(5)}
BIG = {"B": "~", "a": "!*", "big": "~!" * 15000} | {f"e{n}": "" for n in range(5)}
WRONG = {"hash": "0" * 64}


@pytest.mark.parametrize("fields", [MANY, BIG, MANY | {"sign_version": "v2"}], ids=["many", "big", "v2"])
def test_all_guesses_at_one_form_share_one_budget(fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    def digest(string: str, _key: str, _version: str) -> str:
        hashed.append(len(string))
        return "f" * 64

    monkeypatch.setattr(signature, "_digest", digest)
    version = fields.get("sign_version", "v1")
    diagnosis.diagnose({**fields, "api_key": "k"}, "0" * 64, "key", version)
    assert sum(length // 4 for length in hashed) <= diagnosis._MOST_WORK + 64 * 1024
    hashed.clear()
    assert not signature.verify(fields, "0" * 64, "key", version)
    assert sum(hashed) <= 4 * signature.MOST_MIXED + 8 * 3 * 64 * 1024


def test_a_used_up_budget_ends_the_search() -> None:
    budget = Budget(10)
    assert not signature.verify({"a": "b"}, signature.sign({"a": "b"}, "key"), "key", "v1", budget)
    assert budget.left == 0
    assert signature.verify({"a": "b"}, signature.sign({"a": "b"}, "key"), "key", "v1", Budget(10_000))


@pytest.mark.parametrize(
    ("sent", "beside"),
    [
        ({}, False),
        ({"f0": "x" * 2000}, True),
        ({f"f{n}": "" for n in range(40)}, True),
        ({"attachments[]": "x"}, True),
    ],
    ids=["short", "long", "many", "nested"],
)
async def test_only_what_is_long_is_checked_beside_the_event_loop(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    monkeypatch: pytest.MonkeyPatch,
    sent: dict[str, str],
    beside: bool,
) -> None:
    threads: list[threading.Thread] = []

    def signed(*given: Any) -> str:
        threads.append(threading.current_thread())
        return signature.sign(*given)

    monkeypatch.setattr(verifying, "sign", signed)
    await web.post("/payment/form", data=signed_form() | sent)
    assert [thread is not threading.current_thread() for thread in threads] == [beside]


async def test_refused_forms_have_a_limit_of_their_own(
    open_web: OpenWeb, signed_form: SignedForm, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = utc_now()
    web = await open_web(wire=lambda services: replace(services, now=lambda: now))
    for _ in range(MOST_REFUSED):
        assert (await web.post("/payment/form", data=signed_form() | WRONG)).status_code == 403

    def looked_at(*_: Any) -> None:
        raise AssertionError("this was not to be looked at")

    monkeypatch.setattr(verifying, "verify", looked_at)
    monkeypatch.setattr(verifying, "sign", looked_at)
    answer = await web.post("/payment/form", data=signed_form() | WRONG, headers=JSON)
    assert (answer.status_code, "wrong hash" in answer.json()["message"]) == (429, True)


async def test_refused_calls_have_a_limit_of_their_own(
    web: httpx.AsyncClient, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, minute = {"public_key": merchant.public_key, "status": "delivered", **WRONG}, utc_now()
    # They are counted by the clock's minute, and a busy machine's calls may last into the next.
    as_started = ApiServices.of
    monkeypatch.setattr(ApiServices, "of", lambda request: replace(as_started(request), now=lambda: minute))
    statuses = [(await web.post("/api/v1/deliveries", json=body)).status_code for _ in range(MOST_REFUSED + 1)]
    assert statuses == [403] * MOST_REFUSED + [429]


def nobody_is_too_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a burst wait for connections as long as a busy machine needs."""
    monkeypatch.setattr(waiting, "PATIENCE", 60.0)


@long
@pytest.mark.parametrize("door", ["/payment/form", "/api/v1/deliveries"])
async def test_a_burst_of_refused_forms_gets_no_further_than_one_after_another(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    merchant: Merchant,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
    door: str,
) -> None:
    looked_at: list[None] = []

    def counted(*given: Any) -> object:
        looked_at.append(None)
        return signature.verify(*given)

    monkeypatch.setattr(verifying, "verify", counted)
    form = signed_form() if door == "/payment/form" else {"public_key": merchant.public_key, "status": "delivered"}
    form |= WRONG
    nobody_is_too_busy(monkeypatch)
    began = utc_now()
    burst = await asyncio.gather(*(web.post(door, data=form) for _ in range(200)))
    # They are counted by the clock's minute, and a busy machine's burst may last into the next.
    minutes = 1 + int(utc_now().timestamp() // 60 - began.timestamp() // 60)
    answers = Counter(answer.status_code for answer in burst)
    assert MOST_REFUSED <= answers[403] <= MOST_REFUSED * minutes
    assert answers == {403: len(looked_at), 429: 200 - len(looked_at)}
    lines = await database.fetchval("select count(*) from rejected_form where merchant_id = $1", merchant.id)
    assert lines <= len(looked_at), "a flood pushes nothing out of the log"


async def test_a_burst_of_genuine_forms_is_no_flood(
    web: httpx.AsyncClient, signed_form: SignedForm, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody_is_too_busy(monkeypatch)
    forms = [signed_form(description="~") for _ in range(2 * MOST_REFUSED)]
    for form in forms:
        # As a client signs that leaves ~ as it is.
        parts = [f"{name}={urlencode(value, safe='~')}" for name, value in sorted(form.items()) if name != "hash"]
        form["hash"] = sha256(("&".join(parts) + merchant.private_key).encode()).hexdigest()
    burst = await asyncio.gather(*(web.post("/payment/form", data=form) for form in forms))
    assert {answer.status_code for answer in burst} == {303}
    assert (await web.post("/payment/form", data=signed_form() | WRONG)).status_code == 403


async def test_genuine_forms_are_counted_as_before(web: httpx.AsyncClient, signed_form: SignedForm) -> None:
    for _ in range(MOST_REFUSED + 2):
        assert (await web.post("/payment/form", data=signed_form())).status_code == 303


async def test_the_event_loop_goes_on_while_a_mistake_is_looked_for(
    web: httpx.AsyncClient, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, turned = asyncio.get_running_loop(), asyncio.Event()

    def slow(*_: Any) -> diagnosis.Diagnosis:
        # Only a loop that still turns can let this thread go on.
        asyncio.run_coroutine_threadsafe(turned.wait(), loop).result(timeout=30)
        return diagnosis.Diagnosis("", "")

    monkeypatch.setattr(receiving, "diagnose", slow)
    form = {"api_key": gateway.public_key, "amount": "1", **WRONG}
    asking = [asyncio.create_task(web.post("/sandbox/payment/form", data=form)) for _ in range(MOST_WAITING)]
    async with asyncio.timeout(30):
        while not guesses.is_full:
            assert (await web.get("/healthz")).status_code == 200
            await asyncio.sleep(0)
    beyond = await web.post("/sandbox/payment/form", data=form)
    assert (beyond.status_code, "hashed exactly" in beyond.text) == (403, False)
    turned.set()
    assert {(await one).status_code for one in asking} == {403}


async def test_the_document_and_its_page_are_made_once(web: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [(await web.get(path)).content for path in ("/api/openapi.json", "/api/docs")]

    def again(*_: Any, **__: Any) -> None:
        raise AssertionError("it was made again")

    monkeypatch.setattr("paydesk.web.api.docs_page.openapi_document", again)
    assert [(await web.get(path)).content for path in ("/api/openapi.json", "/api/docs")] == first
