"""One log-in for all cells: who is logged in in one goes on to the other, and nobody else."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import httpx
import pytest
from pyotp import TOTP
from tests import breaking, set_back
from tests.web.account.conftest import PASSWORD, Visitor, fields_of, keep_cookie, leads_to, text_of
from tests.web.cells.people import (
    ARRIVE,
    Known,
    account,
    add_second_factor,
    come,
    gate_of,
    go,
    in_both,
    know,
    token_in,
)
from tests.web.cells.two_cells import HOME, SECOND, Cells, silent

from paydesk.core.clock import utc_now
from paydesk.domain.accounts import lockout
from paydesk.domain.accounts.handing_over import GOOD_FOR, hand_over
from paydesk.domain.accounts.second_factor import PURPOSE
from paydesk.domain.accounts.sessions import find_session

GONE = "used already or has expired"


async def at(cells: Cells, path: str) -> httpx.Response:
    """What the browser sees in the second cell."""
    return await cells.web[SECOND].get(path)


async def made(cells: Cells, visitor: Visitor, **changed: object) -> str:
    """A token of the first cell, made by hand."""
    gate = gate_of(cells, HOME)
    session = await find_session(gate, visitor.web.cookies["paydesk"], visitor.client, now=utc_now())
    given = {"source": HOME, "target": SECOND, "goal": "/account", "now": utc_now(), **changed}
    return await hand_over(gate, session, **given)  # type: ignore[arg-type]


async def test_who_is_logged_in_goes_on_to_their_shop_in_another_cell(cells: Cells) -> None:
    here, there = await in_both(cells)
    menu = text_of(await here.visitor.see(here.shop + "/overview"))
    assert "Your other shops" in menu
    listed = await here.visitor.see("/account/cells")
    assert "pay2.test Tea in 2" in text_of(listed)
    assert f'name="next" value="{there.shop}"' in listed.text

    page = await go(here.visitor, SECOND, there.shop)
    assert f'<form method="post" action="http://pay2.test{ARRIVE}"' in page.text
    assert "csrf" not in page.text
    arrived = await come(cells, SECOND, token_in(page))
    assert leads_to(arrived) == there.shop
    shown = await cells.web[SECOND].get(there.shop, follow_redirects=True)
    assert "Tea in 2" in text_of(shown)
    assert f"You are logged in here as {here.visitor.email}" in text_of(shown)

    left = await cells.databases[HOME].fetchval(
        "select details ->> 'to_cell' from audit_entry where action = 'handed_over'"
    )
    came = await cells.databases[SECOND].fetchval(
        "select details ->> 'from_cell' from audit_entry where action = 'logged_in'"
    )
    assert (left, came) == (str(SECOND), str(HOME))


async def test_only_the_page_that_goes_on_may_post_to_another_address(cells: Cells) -> None:
    here, _ = await in_both(cells)
    page = await go(here.visitor, SECOND)
    assert page.headers["content-security-policy"].endswith("form-action 'self' http://pay2.test")
    assert page.headers["referrer-policy"] == "strict-origin"
    assert page.headers["cache-control"] == "no-store"
    for other in ("/account/cells", "/account/security"):
        shown = await here.visitor.see(other)
        assert shown.headers["content-security-policy"].endswith("form-action 'self'")
        assert shown.headers["referrer-policy"] == "same-origin"


async def test_a_token_opens_one_session(cells: Cells) -> None:
    here, _ = await in_both(cells)
    token = token_in(await go(here.visitor, SECOND))
    assert (await come(cells, SECOND, token)).status_code == 303
    cells.web[SECOND].cookies.clear()
    again = await come(cells, SECOND, token)
    assert (again.status_code, GONE in text_of(again)) == (410, True)
    assert "paydesk=" not in again.headers.get("set-cookie", "")


async def test_a_token_is_good_for_a_minute_and_for_one_cell(cells: Cells) -> None:
    here, _ = await in_both(cells)
    soon = timedelta(minutes=2)
    for token in (
        await made(cells, here.visitor, now=utc_now() - GOOD_FOR - soon),
        await made(cells, here.visitor, now=utc_now() + soon),
        await made(cells, here.visitor, target=7),
        await made(cells, here.visitor, source=SECOND, target=HOME),
    ):
        refused = await come(cells, SECOND, token)
        assert (refused.status_code, GONE in text_of(refused)) == (410, True)


@pytest.mark.parametrize("where", [0, 10, -1, -70])
async def test_a_token_that_was_changed_is_worth_nothing(cells: Cells, where: int) -> None:
    here, _ = await in_both(cells)
    token = token_in(await go(here.visitor, SECOND))
    forged = list(token)
    forged[where] = "A" if forged[where] != "A" else "B"
    for one in ("".join(forged), "", ".", "a.b", token + "0", token[:-1], "\N{SNOWMAN}." + token, "x" * 10_000):
        refused = await come(cells, SECOND, one)
        assert refused.status_code == 410, one
    assert (await come(cells, SECOND, token)).status_code == 303


async def test_whoever_has_no_token_has_nothing_looked_up(cells: Cells) -> None:
    async with cells.databases[SECOND].acquire() as connection, connection.transaction():
        await connection.execute("lock table directory, cell")
        async with asyncio.timeout(30):
            refused = await come(cells, SECOND, "made.up")
    assert (refused.status_code, GONE in text_of(refused)) == (410, True)


@pytest.mark.parametrize(
    "origin", ["", "null", "https://evil.example", "https://pay1.test", "http://pay1.test.evil.example", "http://["]
)
async def test_only_a_page_of_a_cell_logs_a_browser_in(cells: Cells, origin: str) -> None:
    here, _ = await in_both(cells)
    token = token_in(await go(here.visitor, SECOND))
    refused = await come(cells, SECOND, token, origin)
    assert (refused.status_code, "sent by another site" in text_of(refused)) == (403, True)
    assert (await come(cells, SECOND, token)).status_code == 303


async def test_cells_behind_one_name_take_from_its_pages(cells: Cells) -> None:
    here, _ = await in_both(cells)
    web = await cells.open(SECOND, other_hosts="pay.test")
    token = token_in(await go(here.visitor, SECOND))
    taken = await web.post(ARRIVE, data={"token": token}, headers={"origin": "http://pay.test"})
    assert taken.status_code == 303


async def test_nobody_is_led_anywhere_but_to_a_cell_and_a_page_of_ours(cells: Cells) -> None:
    here, _ = await in_both(cells)
    for cell in (7, 10**15):
        assert (await go(here.visitor, cell)).status_code == 404
    page = await here.visitor.web.post(
        "/account/cells/go",
        data={"csrf": fields_of((await here.visitor.see("/account/security")).text, "/account/logout")["csrf"]},
    )
    assert page.status_code == 404
    assert (await go(here.visitor, HOME)).status_code == 409
    for goal in ("https://evil.example", "//evil.example", "/static/x", "/account/logout"):
        arrived = await come(cells, SECOND, token_in(await go(here.visitor, SECOND, goal)))
        assert leads_to(arrived) == "/account"
        token = await made(cells, here.visitor, goal=goal)
        assert leads_to(await come(cells, SECOND, token)) == "/account"


async def test_going_on_takes_a_form_of_ones_own(cells: Cells) -> None:
    here, _ = await in_both(cells)
    posted = await here.visitor.web.post("/account/cells/go", data={"cell": str(SECOND)})
    assert posted.status_code == 403
    cells.web[HOME].cookies.clear()
    assert leads_to(await cells.web[HOME].post("/account/cells/go", data={})).startswith("/account/login")


async def test_an_address_that_was_never_confirmed_leads_nowhere(cells: Cells) -> None:
    email = "stranger@shop.example"
    stranger = await account(cells, HOME, email, confirmed=False)
    await account(cells, SECOND, email)
    await know(cells, email)
    assert "Tea in 2" not in text_of(await stranger.visitor.see("/account/cells"))
    refused = await go(stranger.visitor, SECOND)
    assert (refused.status_code, "confirm your own e-mail address first" in text_of(refused).lower()) == (403, True)


async def test_who_is_not_surely_the_same_logs_in_there(cells: Cells) -> None:
    here, _ = await in_both(cells, confirmed=False)
    tokens = [await made(cells, here.visitor)]
    tokens.append(await made(cells, (await account(cells, HOME, "nobody@shop.example")).visitor))
    for token in tokens:
        refused = await come(cells, SECOND, token)
        assert (refused.status_code, "log in with your password" in text_of(refused)) == (401, True)
        assert "paydesk=" not in refused.headers.get("set-cookie", "")


async def test_who_is_locked_out_there_waits(cells: Cells) -> None:
    here, _ = await in_both(cells)
    gate = gate_of(cells, SECOND)
    person = await gate.database.fetchval("select id from person where email = $1", here.visitor.email)
    for _ in range(lockout.ACCOUNT.free):
        await lockout.count_try(gate, lockout.ACCOUNT, f"person {person}", now=utc_now())
    assert (await come(cells, SECOND, await made(cells, here.visitor))).status_code == 429


async def test_a_second_factor_that_was_not_shown_is_asked_for_there(cells: Cells) -> None:
    here, there = await in_both(cells, second_factor=True)
    listed = text_of(await here.visitor.see("/account/cells"))
    assert "Tea in 2" not in listed
    assert "not shown before you are there" in listed
    arrived = await come(cells, SECOND, token_in(await go(here.visitor, SECOND, there.shop)))
    assert leads_to(arrived) == f"/account/second-factor?next={there.shop}"
    assert leads_to(await at(cells, there.shop + "/overview")).startswith("/account/second-factor")
    given = await Visitor(cells.web[SECOND], here.visitor.client).send(
        "/account/second-factor", code=TOTP(there.secret).at(utc_now() + timedelta(seconds=30))
    )
    assert leads_to(given) == "/account"
    assert (await at(cells, there.shop + "/overview")).status_code == 200


async def test_a_second_factor_that_was_shown_is_enough(cells: Cells) -> None:
    email = "ops@pay.example"
    here = await account(cells, HOME, email, operator=True, second_factor=True)
    await account(cells, SECOND, email, operator=True, second_factor=True)
    cells.web[SECOND].cookies.clear()
    await know(cells, email)
    arrived = await come(cells, SECOND, token_in(await go(here.visitor, SECOND, "/operator/alarms")))
    assert leads_to(arrived) == "/operator/alarms"
    assert (await at(cells, "/operator/alarms")).status_code == 200


async def with_second_factor(cells: Cells, here: Known) -> str:
    """Add a second factor to an account of the first cell, which is logged in there; the secret."""
    token, secret = await add_second_factor(
        gate_of(cells, HOME), cells.web[HOME].cookies["paydesk"], here.visitor.client
    )
    keep_cookie(here.visitor, "paydesk", token)
    return secret


@pytest.mark.parametrize("operator", [False, True])
async def test_a_second_factor_of_an_account_that_needs_none_is_not_enough(cells: Cells, operator: bool) -> None:
    """Whoever knows its password alone may have added it."""
    here, there = await in_both(cells, operator=operator, second_factor=True)
    await with_second_factor(cells, here)
    assert "Tea in 2" not in text_of(await here.visitor.see("/account/cells"))
    goal = "/operator/alarms" if operator else f"{there.shop}/overview"
    await come(cells, SECOND, token_in(await go(here.visitor, SECOND, goal)))
    assert leads_to(await at(cells, goal)).startswith("/account/second-factor")


async def test_a_second_factor_that_is_the_same_there_is_enough(cells: Cells) -> None:
    """As of who went along when their shop moved."""
    here, there = await in_both(cells, second_factor=True)
    secret = await with_second_factor(cells, here)
    database = cells.databases[SECOND]
    person = await database.fetchval("select id from person where email = $1", here.visitor.email)
    same = cells.vault.seal(secret.encode(), purpose=PURPOSE, merchant_id=0, row_id=person)
    await breaking.say(database, "person", {"id": person}, totp_sealed=same.blob, vault_key_id=same.key_id)
    assert "Tea in 2" in text_of(await here.visitor.see("/account/cells"))
    goal = f"{there.shop}/overview"
    assert leads_to(await come(cells, SECOND, token_in(await go(here.visitor, SECOND, goal)))) == goal
    assert (await at(cells, goal)).status_code == 200


async def test_an_operator_here_is_nobodys_there(cells: Cells) -> None:
    email = "ops@pay.example"
    here = await account(cells, HOME, email, operator=True, second_factor=True)
    await account(cells, SECOND, email)
    cells.web[SECOND].cookies.clear()
    await know(cells, email)
    arrived = await come(cells, SECOND, token_in(await go(here.visitor, SECOND, "/operator/alarms")))
    assert leads_to(arrived) == "/operator/alarms"
    assert (await at(cells, "/operator/alarms")).status_code == 404


async def test_an_operator_there_needs_a_second_factor_of_that_cell(cells: Cells) -> None:
    here, there = await in_both(cells)
    await set_back.runs_the_deployment(cells.databases[SECOND], there.visitor.email)
    refused = await come(cells, SECOND, await made(cells, here.visitor))
    assert (refused.status_code, "log in with your password" in text_of(refused)) == (401, True)


async def test_what_asks_for_the_password_again_asks_for_that_of_the_cell(cells: Cells) -> None:
    here, there = await in_both(cells)
    await come(cells, SECOND, token_in(await go(here.visitor, SECOND, there.shop)))
    asked = await at(cells, "/account/security/second-factor")
    assert leads_to(asked).startswith("/account/confirm")
    confirmed = await Visitor(cells.web[SECOND], here.visitor.client).send("/account/confirm", _password=PASSWORD)
    assert confirmed.status_code == 303


async def test_who_was_logged_in_there_is_so_no_more(cells: Cells) -> None:
    here, _ = await in_both(cells)
    other = await account(cells, SECOND, "bob@shop.example")
    before = cells.web[SECOND].cookies["paydesk"]
    shown = await cells.web[SECOND].post(
        ARRIVE, data={"token": token_in(await go(here.visitor, SECOND))}, headers={"origin": "http://pay1.test"}
    )
    assert shown.status_code == 303
    assert cells.web[SECOND].cookies["paydesk"] != before
    sessions = await cells.databases[SECOND].fetchval(
        "select count(*) from account_session s join person p on p.id = s.person_id where p.email = $1",
        other.visitor.email,
    )
    assert sessions == 0


async def test_logging_out_says_where_one_is_still_logged_in(cells: Cells) -> None:
    here, _ = await in_both(cells)
    await here.visitor.send("/account/security", "/account/logout")
    assert "Where your other shops are you stay logged in" in text_of(await here.visitor.see("/account/login"))


async def test_a_cell_that_does_not_answer_is_said_to(cells: Cells) -> None:
    here, _ = await in_both(cells)

    async def lies(_scope: object, _receive: object, send: object) -> None:
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b'{"shops": [{"merchant_id": -1}]}'})  # type: ignore[operator]

    for instead in (lies, silent):
        cells.served[SECOND].instead = instead
        listed = await here.visitor.see("/account/cells")
        assert (listed.status_code, "can't be seen just now" in text_of(listed)) == (200, True)
        assert 'action="/account/cells/go"' in listed.text


async def test_who_has_no_other_shops_sees_no_way(cells: Cells) -> None:
    alone = await account(cells, HOME, "alone@shop.example")
    assert "Your other shops" not in text_of(await alone.visitor.see(alone.shop + "/overview"))
    assert "All your shops are here" in text_of(await alone.visitor.see("/account/cells"))
