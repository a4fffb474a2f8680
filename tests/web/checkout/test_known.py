"""Who is known in a browser: by a code that belongs to it, for one shop, until somebody comes
with a stolen copy.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import httpx
import pytest
from tests import set_back
from tests.shopfront import become_known, mailed_code, open_page, save_card, saves_cards
from tests.web.checkout.coming_back import ADA, ask, come_known, mails_of, said

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.mail.queueing import open_facts
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.shoppers import counting
from paydesk.domain.shoppers.counting import CODES_A_DAY, CODES_OF_CLIENT
from paydesk.domain.shoppers.proving import MOST_TRIES, ask_for_code, prove
from paydesk.domain.shoppers.sessions import Shopper, find_shopper

SignedForm = Callable[..., dict[str, Any]]
OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]

ASKING: ContextVar[bool] = ContextVar("asking", default=False)
"""Whether a statement is made for who asks."""


@pytest.fixture
async def saving(database: Database, shop: Shop) -> None:
    await saves_cards(database, shop)


@pytest.fixture(autouse=True)
async def _nobody_asked_lately(database: Database) -> None:
    await set_back.no_codes_counted(database)


@pytest.mark.usefixtures("saving")
async def test_a_code_belongs_to_the_browser_that_asked(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await ask(web, path)
    code, secret = await mailed_code(database, vault, shop), dict(web.cookies)
    web.cookies.clear()
    assert (await web.post(f"{path}/code", data={"code": code})).status_code == 400
    web.cookies.set(next(iter(secret)), "another browser's")
    assert (await web.post(f"{path}/code", data={"code": code})).status_code == 400
    web.cookies.clear()
    web.cookies.update(secret)
    assert (await web.post(f"{path}/code", data={"code": code})).status_code == 303


@pytest.mark.usefixtures("saving")
async def test_a_new_code_ends_the_one_before_and_each_works_once(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await ask(web, path)
    first, secret = await mailed_code(database, vault, shop), dict(web.cookies)
    await ask(web, path)
    second, newer = await mailed_code(database, vault, shop), dict(web.cookies)
    web.cookies.clear()
    web.cookies.update(secret)
    assert (await web.post(f"{path}/code", data={"code": first})).status_code == 400
    web.cookies.clear()
    web.cookies.update(newer)
    assert (await web.post(f"{path}/code", data={"code": second})).status_code == 303
    web.cookies.update(newer)
    assert (await web.post(f"{path}/code", data={"code": second})).status_code == 400


@pytest.mark.usefixtures("saving")
async def test_after_five_wrong_codes_the_right_one_is_refused_in_the_same_words(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await ask(web, path)
    code = await mailed_code(database, vault, shop)
    wrong = f"{(int(code) + 1) % 1_000_000:06}"
    answers = [await web.post(f"{path}/code", data={"code": wrong}) for _ in range(MOST_TRIES)]
    answers.append(await web.post(f"{path}/code", data={"code": code}))
    assert {answer.status_code for answer in answers} == {400}
    assert len({answer.text for answer in answers}) == 1


@pytest.mark.usefixtures("saving")
async def test_the_pages_are_the_same_for_who_is_known_and_who_is_not(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop)
    seen = []
    for email in (ADA, "nobody@example.com"):
        web.cookies.clear()
        answer = await ask(web, path, email)
        page = await web.get(f"{path}/code")
        headers = {name for name in answer.headers if name != "date"}
        seen.append((answer.status_code, answer.text, headers, page.status_code, page.text))
    assert seen[0] == seen[1]


@pytest.fixture
async def begun() -> AsyncIterator[list[asyncio.Task[Any]]]:
    """The tasks that asking begins; those of the service itself come and go in contexts beside."""
    tasks: list[asyncio.Task[Any]] = []

    def begin(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        task = asyncio.Task(work, loop=loop, **options)
        if ASKING.get():
            tasks.append(task)
        return task

    loop = asyncio.get_running_loop()
    loop.set_task_factory(begin)
    yield tasks
    loop.set_task_factory(None)


@pytest.mark.usefixtures("saving")
async def test_asking_for_a_code_is_the_same_work_whoever_it_is(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    database: Database,
    vault: Vault,
    shop: Shop,
    desk: Desk,
    bank: Bank,
    begun: list[asyncio.Task[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Known with a saved card, asked before, and never heard of: the same statements, each with as
    many rows, and nothing that goes on after the answer. Who has had the codes of a day is no
    shorter work either.
    """
    monkeypatch.setattr(counting, "_TEST_ADDRESS", counting.CodeLimit("address", 10**6, timedelta(days=1)))
    path = await open_page(web, signed_form())
    await save_card(desk, bank, await become_known(desk, shop, ADA))
    await ask(web, path, "asked@example.com")
    done: list[tuple[str, object]] = []
    works: dict[str, list[tuple[str, object]]] = {}
    execute = asyncpg.Connection._execute

    async def noted(self: Any, statement: str, *rest: Any, **options: Any) -> Any:
        answer = await execute(self, statement, *rest, **options)
        # What the service does beside is done whoever asks, and so is its look at a second server.
        if ASKING.get() and "beaten_at" not in statement:
            done.append((statement, answer[1] if isinstance(answer, tuple) else len(answer)))
        return answer

    async def work(whose: str, email: str) -> None:
        web.cookies.clear()
        await ask(web, path, email)
        done.clear()
        begun.clear()
        await ask(web, path, email)
        assert [task for task in begun if not task.done()] == []
        works[whose] = [*done]

    monkeypatch.setattr(asyncpg.Connection, "_execute", noted)
    ASKING.set(True)
    await work("known", ADA)
    await work("asked before", "asked@example.com")
    await work("stranger", "nobody@example.com")
    mails = await mails_of(database, shop)
    monkeypatch.setattr(counting, "_TEST_ADDRESS", counting.CodeLimit("address", 1, timedelta(days=1)))
    await work("had its codes", ADA)
    assert await mails_of(database, shop) == mails
    assert len(works["known"]) >= 6
    assert works["known"] == works["asked before"] == works["stranger"]
    assert [said for said, _ in works["had its codes"]] == [said for said, _ in works["known"]]


@pytest.mark.usefixtures("saving")
async def test_the_mail_with_a_code_says_the_same_to_who_is_known_and_who_is_not(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    database: Database,
    vault: Vault,
    shop: Shop,
    desk: Desk,
    bank: Bank,
) -> None:
    path = await open_page(web, signed_form())
    await save_card(desk, bank, await become_known(desk, shop, ADA))
    told = []
    for email in (ADA, "nobody@example.com"):
        await ask(web, path, email)
        mail = await database.fetchrow(
            "select kind, recipient, language, facts, due_at - created_at as waits from mail"
            " where merchant_id = $1 order by id desc limit 1",
            shop.merchant_id,
        )
        told.append({**mail, "facts": sorted(open_facts(vault, json.loads(mail["facts"]))), "recipient": ""})
    assert told[0] == told[1]


@pytest.mark.usefixtures("saving")
async def test_who_has_had_the_codes_of_a_day_keeps_the_last_one_and_nobody_can_guess_another(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    database: Database,
    vault: Vault,
    shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = await open_page(web, signed_form())
    await ask(web, path)
    code, secret = await mailed_code(database, vault, shop), dict(web.cookies)
    monkeypatch.setattr(counting, "_TEST_ADDRESS", counting.CodeLimit("address", 1, timedelta(days=1)))
    monkeypatch.setattr(secrets, "randbelow", lambda _most: int(code))
    web.cookies.clear()
    await ask(web, path)
    assert (await web.post(f"{path}/code", data={"code": code})).status_code == 400, "drawn for nobody"
    web.cookies.clear()
    web.cookies.update(secret)
    assert (await web.post(f"{path}/code", data={"code": code})).status_code == 303


@pytest.mark.usefixtures("saving")
async def test_an_address_gets_no_more_codes_than_a_day_allows_and_nothing_tells(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_TEST_ADDRESS", counting.CodeLimit("address", CODES_A_DAY, timedelta(days=1)))
    path = await open_page(web, signed_form())
    answers = [await ask(web, path) for _ in range(CODES_A_DAY + 2)]
    assert {(answer.status_code, answer.headers["location"]) for answer in answers} == {(303, f"{path}/code")}
    assert await mails_of(database, shop) == CODES_A_DAY


@pytest.mark.usefixtures("saving")
async def test_who_asks_too_often_is_told_to_wait(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    answers = [await ask(web, path, f"customer-{number}@example.com") for number in range(CODES_OF_CLIENT + 1)]
    assert [answer.status_code for answer in answers] == [303] * CODES_OF_CLIENT + [429]
    assert "Too many codes" in said(answers[-1])
    assert await mails_of(database, shop) == CODES_OF_CLIENT


@pytest.mark.usefixtures("saving")
async def test_a_shop_that_has_sent_too_many_codes_sends_no_more_and_another_one_does(
    web: httpx.AsyncClient,
    signed_form: SignedForm,
    database: Database,
    vault: Vault,
    shop: Shop,
    other_shop: Shop,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counting, "_MERCHANT", counting.CodeLimit("merchant", 2, timedelta(hours=1)))
    path = await open_page(web, signed_form())
    answers = [await ask(web, path, f"customer-{number}@example.com") for number in range(3)]
    assert [answer.status_code for answer in answers] == [303, 303, 429]
    assert await mails_of(database, shop) == 2
    await ask_for_code(database, vault, other_shop, ADA, mail_to=ADA, client="192.0.2.9", language="en", now=utc_now())
    assert await mails_of(database, other_shop) == 1


@pytest.mark.usefixtures("saving")
async def test_who_asks_to_be_forgotten_is_and_a_copy_of_the_cookie_is_worth_nothing(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop, remember="1")
    copy = dict(web.cookies)
    await web.post(f"{path}/leave", data={"_": ""})
    web.cookies.update(copy)
    assert "You are known as" not in said(await web.get(path))


@pytest.mark.usefixtures("saving")
async def test_the_cookies_are_the_shops_own_and_out_of_reach_of_scripts(
    open_web: OpenWeb, web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await ask(web, path)
    code = await mailed_code(database, vault, shop)
    answer = await web.post(f"{path}/code", data={"code": code, "remember": "1"})
    (cookie,) = [line for line in answer.headers.get_list("set-cookie") if "shopper" in line]
    assert cookie.startswith(f"paydesk-shopper-t{shop.merchant_id:x}=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert f"Max-Age={30 * 24 * 3600}" in cookie


@pytest.mark.parametrize(
    ("remember", "known_for"), [(True, timedelta(days=30)), (False, timedelta(hours=1))], ids=["remembered", "not"]
)
async def test_a_browser_is_known_at_one_shop_alone_and_for_thirty_days_at_most(
    database: Database, vault: Vault, shop: Shop, other_shop: Shop, remember: bool, known_for: timedelta
) -> None:
    now = utc_now()
    asked = await ask_for_code(database, vault, shop, ADA, mail_to=ADA, client="192.0.2.8", language="en", now=now)
    code = await mailed_code(database, vault, shop)
    session = await prove(database, vault, shop, asked.browser, code, remember=remember, now=now)
    assert session is not None

    async def found(at: Shop, when: datetime, token: str = session.token, *, renew: bool = False) -> Shopper | None:
        return await find_shopper(database, vault, at, token, renew=renew, now=when)

    assert await found(shop, now + known_for - timedelta(seconds=1)) is not None
    assert await found(other_shop, now) is None
    assert await found(replace(shop, live=not shop.live), now) is None
    renewed = await found(shop, now + timedelta(minutes=11), renew=True)
    assert renewed is not None
    assert renewed.fresh is not None
    later = now + known_for - timedelta(seconds=1)
    assert await found(shop, later, renewed.fresh.token) is not None
    assert await found(shop, now + known_for, renewed.fresh.token) is None, "another token makes it no longer"


@pytest.mark.usefixtures("saving")
async def test_a_token_is_exchanged_and_its_late_copy_ends_the_session(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop, remember="1")
    stolen = dict(web.cookies)
    await set_back.session_used_long_ago(database, shop.merchant_id, timedelta(hours=1))
    assert "You are known as" in said(await web.get(path))
    assert dict(web.cookies) != stolen, "the browser has another token now"
    fresh = dict(web.cookies)
    await set_back.session_used_long_ago(database, shop.merchant_id, timedelta(minutes=2))
    web.cookies.clear()
    web.cookies.update(stolen)
    assert "You are known as" not in said(await web.get(path))
    web.cookies.clear()
    web.cookies.update(fresh)
    assert "You are known as" not in said(await web.get(path)), "who was robbed is asked for a code again"


@pytest.mark.usefixtures("saving")
async def test_the_oldest_copy_of_a_token_ends_the_session_as_well_and_a_made_up_one_does_not(
    web: httpx.AsyncClient, signed_form: SignedForm, database: Database, vault: Vault, shop: Shop
) -> None:
    path = await open_page(web, signed_form())
    await come_known(web, path, database, vault, shop, remember="1")
    ((name, oldest),) = web.cookies.items()
    for _ in range(2):
        await set_back.session_used_long_ago(database, shop.merchant_id, timedelta(hours=1))
        assert "You are known as" in said(await web.get(path))
    newest = web.cookies[name]
    session, proof, secret = oldest.split(".")
    for made_up in (
        f"{session}.{'0' * 24}.{secret}",
        f"{int(session) + 1}.{proof}.{secret}",
        "x" * 100,
        f"{session}..",
    ):
        web.cookies.clear()
        assert "You are known as" not in said(await web.get(path, headers={"Cookie": f"{name}={made_up}"}))
    assert "You are known as" in said(await web.get(path, headers={"Cookie": f"{name}={newest}"}))
    assert "You are known as" not in said(await web.get(path, headers={"Cookie": f"{name}={oldest}"}))
    assert "You are known as" not in said(await web.get(path, headers={"Cookie": f"{name}={newest}"}))
