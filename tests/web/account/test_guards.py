import re
from collections.abc import Awaitable, Callable
from datetime import timedelta

import httpx
import pytest
from starlette.routing import Route
from tests.lengths import long
from tests.web.account.conftest import PASSWORD, Join, OpenVisitor, SignUp, Visitor, fields_of, leads_to, text_of

from paydesk.app import create_app
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import ALLOWED, Permission, Role
from paydesk.settings import Settings
from paydesk.web.account.face import FACE
from paydesk.web.account.routes import routes
from paydesk.web.console.guards import Access, Declaration, Section

OF_MERCHANTS = [route for route in routes if "{merchant_id:id}" in route.path]


def declaration(route: Route) -> Declaration:
    declared = route.endpoint.declared  # type: ignore[attr-defined]
    assert isinstance(declared, Declaration)
    return declared


def address(route: Route, merchant_path: str) -> str:
    """A route's address with ids that nobody has."""
    path = re.sub(r"/account/\{merchant_id:id\}", merchant_path, route.path)
    return re.sub(r"\{\w+:id\}", "900719925474099", path)


async def ask(visitor: Visitor, route: Route, merchant_path: str) -> httpx.Response:
    """Ask for a route with a form that came from an own page, so that only the role decides."""
    page = (await visitor.see("/account/security")).text
    path = address(route, merchant_path)
    if "POST" in (route.methods or ()):
        return await visitor.web.post(path, data=fields_of(page, "/account/logout"))
    return await visitor.see(path)


def test_every_route_below_account_declares_what_it_needs(settings: Settings) -> None:
    below = [
        route
        for route in create_app(settings).routes
        if isinstance(route, Route) and (route.path == "/account" or route.path.startswith("/account/"))
    ]
    assert {id(route) for route in below} == {id(route) for route in routes}
    for route in below:
        assert isinstance(declaration(route).needs, Permission) == ("{merchant_id:id}" in route.path), route.path


def test_a_merchants_page_without_a_permission_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="permission"):
        Section(FACE).page("/account/{merchant_id}/payments", needs=Access.person)
    with pytest.raises(ValueError, match="permission"):
        Section(FACE).page("/account/payments", needs=Permission.view)


async def test_who_is_not_logged_in_gets_to_no_page(stranger: OpenVisitor) -> None:
    visitor = await stranger()
    for route in routes:
        if declaration(route).needs in (Access.anybody, Access.other_cell):
            continue
        posted = "POST" in (route.methods or ())
        path = address(route, "/account/1")
        answer = await (visitor.web.post(path, data={}) if posted else visitor.see(path))
        assert leads_to(answer).startswith("/account/login"), path


@pytest.mark.parametrize("role", list(Role))
async def test_every_page_and_action_keeps_to_the_roles(owner: Visitor, join: Join, role: Role) -> None:
    member = await join(owner, role)
    for route in OF_MERCHANTS:
        answer = await ask(member, route, owner.merchant_path)
        allowed = declaration(route).needs in ALLOWED[role]
        assert (answer.status_code == 403) == (not allowed), (route.path, answer.status_code)
        if not allowed:
            assert "only these roles may do this: Owner" in text_of(answer)


@long
async def test_another_merchants_pages_do_not_exist(owner: Visitor, sign_up: SignUp) -> None:
    other = await sign_up("Other Shop")
    for route in OF_MERCHANTS:
        answer = await ask(other, route, owner.merchant_path)
        assert answer.status_code == 404, route.path
        assert "Corner Shop" not in answer.text


async def test_who_was_removed_from_a_team_is_out_at_once(owner: Visitor, join: Join, database: Database) -> None:
    member = await join(owner, Role.developer)
    assert (await member.see(owner.merchant_path)).status_code == 303
    await database.execute(
        "delete from membership where merchant_id = $1 and role = 'developer'", int(owner.merchant_path.split("/")[2])
    )
    assert (await member.see(owner.merchant_path)).status_code == 404


@pytest.mark.parametrize("number", ["99999999999999999999999999", "9007199254740992", "0", "00", "-1", "1.5", "x"])
async def test_an_impossible_number_is_a_page_not_found(owner: Visitor, number: str) -> None:
    for path in (f"/account/{number}/settings/team", f"{owner.merchant_path}/settings/team/members/{number}/remove"):
        assert (await owner.see(path)).status_code == 404


async def test_a_form_without_its_sessions_token_is_refused(owner: Visitor, sign_up: SignUp) -> None:
    other = await sign_up("Other Shop")
    foreign = fields_of((await other.see("/account/security")).text, "/account/logout")
    for fields in ({"other": "1"}, {"csrf": ""}, {"csrf": "é"}, foreign):
        answer = await owner.web.post("/account/logout", data=fields)
        assert answer.status_code == 403
        assert "out of date" in text_of(answer)
    assert (await owner.see("/account/security")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://pay.test.evil.example"},
        {"Origin": "http://[pay.test"},
        {"Origin": "http://pay.test", "Sec-Fetch-Site": "cross-site"},
    ],
)
async def test_another_sites_form_is_refused_even_with_the_token(owner: Visitor, headers: dict[str, str]) -> None:
    fields = fields_of((await owner.see("/account/security")).text, "/account/logout")
    assert (await owner.web.post("/account/logout", data=fields, headers=headers)).status_code == 403
    own = {"Origin": "http://pay.test", "Sec-Fetch-Site": "same-origin"}
    assert (await owner.web.post("/account/logout", data=fields, headers=own)).status_code == 303


@pytest.mark.parametrize("sent", ["http://[", "http://[::1", "//[x]y", "http://pay.test:x/"])
async def test_an_address_in_a_header_that_is_none_leads_home_and_breaks_nothing(
    stranger: OpenVisitor, sent: str
) -> None:
    visitor = await stranger()
    for path in ("/account/logout", "/account/security/password"):
        answer = await visitor.web.post(path, data={"a": "b"}, headers={"Referer": sent})
        assert leads_to(answer) == "/account/login"
    assert (await visitor.web.post("/account/login", data={}, headers={"Origin": sent})).status_code == 403


async def test_a_log_in_form_of_another_browser_is_refused(owner: Visitor, stranger: OpenVisitor) -> None:
    attacker, victim = await stranger(), await stranger()
    token = fields_of((await attacker.see("/account/login")).text, "/account/login")
    await victim.see("/account/login")
    answer = await victim.web.post("/account/login", data={**token, "email": owner.email, "password": PASSWORD})
    assert answer.status_code == 403
    assert "paydesk" not in victim.web.cookies


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"csrf=%00&a=\xff\xfe", "application/x-www-form-urlencoded", 403),
        (b"a=1&" * 2000, "application/x-www-form-urlencoded", 400),
        (b"a=" + b"x" * 100_000, "application/x-www-form-urlencoded", 413),
        (b"{}", "application/json", 400),
        (b"", "", 400),
    ],
)
async def test_a_hostile_body_is_a_clear_refusal(owner: Visitor, body: bytes, content_type: str, status: int) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    assert (await owner.web.post("/account/logout", content=body, headers=headers)).status_code == status


@pytest.mark.parametrize("cookie", ["x", "Ã©", "a" * 5000, "%00", "..", '"'])
async def test_a_hostile_cookie_is_nobody(stranger: OpenVisitor, cookie: str) -> None:
    visitor = await stranger()
    for name in ("paydesk", "paydesk-said", "paydesk-form", "paydesk-theme"):
        answer = await visitor.web.get("/account/security", headers={b"Cookie": f"{name}={cookie}".encode("latin-1")})
        assert leads_to(answer).startswith("/account/login")
        assert (
            await visitor.web.get("/account/login", headers={b"Cookie": f"{name}={cookie}".encode("latin-1")})
        ).status_code == 200


async def test_nobody_else_puts_words_on_a_page(owner: Visitor) -> None:
    owner.web.cookies.set("paydesk-said", "eyJ0ZXh0IjoiQ2FsbCB1cyIsInRvbmUiOiJkYW5nZXIifQ==.00")
    assert "Call us" not in (await owner.see("/account/security")).text


async def test_the_sandbox_base_has_no_account_of_its_own(owner: Visitor) -> None:
    answer = await owner.see("/sandbox/account/security")
    assert answer.status_code == 308
    assert answer.headers["location"] == "http://pay.test/account/security"


async def test_what_is_not_there_is_said_within_the_account(owner: Visitor, stranger: OpenVisitor) -> None:
    assert "Page not found" in text_of(await owner.see("/account/nothing/here"))
    assert (await (await stranger()).see("/account/nothing/here")).status_code == 404


async def test_menus_show_what_the_role_may_see(owner: Visitor, join: Join) -> None:
    viewer = await join(owner, Role.viewer)
    await viewer.see(owner.merchant_path)
    shown = (await viewer.see("/account/security")).text
    assert "settings/team" not in shown
    assert "settings/team" in (await owner.see(f"{owner.merchant_path}/settings/profile")).text
    assert all(entry.needs in set(Permission) for entry in (*FACE.sidebar, *FACE.settings))


Later = Callable[[timedelta], Awaitable[None]]


@pytest.fixture
def password_given_before(database: Database) -> Callable[[Visitor, timedelta], Awaitable[None]]:
    async def move(visitor: Visitor, ago: timedelta) -> None:
        await database.execute(
            "update account_session s set confirmed_at = $1 from person p where p.id = s.person_id and p.email = $2",
            utc_now() - ago,
            visitor.email,
        )

    return move


async def test_what_matters_asks_for_the_password_and_is_then_carried_out(
    owner: Visitor, password_given_before: Callable[[Visitor, timedelta], Awaitable[None]], database: Database
) -> None:
    await password_given_before(owner, timedelta(minutes=11))
    new = f"new-{owner.email}"
    asked = await owner.send("/account/security", "/account/security/email", email=new)
    assert asked.status_code == 403
    assert "Confirm it's you" in text_of(asked)
    fields = fields_of(asked.text, "/account/confirm")
    assert fields["email"] == new
    wrong = await owner.web.post("/account/confirm", data={**fields, "_password": "wrong password here"})
    assert wrong.status_code == 401
    again = fields_of(wrong.text, "/account/confirm")
    right = await owner.web.post("/account/confirm", data={**again, "_password": PASSWORD})
    assert right.status_code == 307, "the browser sends the form again"
    assert right.headers["location"] == "/account/security/email"
    done = await owner.web.post(right.headers["location"], data={**again, "_password": PASSWORD})
    assert leads_to(done) == "/account/security"
    assert await database.fetchval("select count(*) from person_token where email = $1", new) == 1


async def test_a_page_that_matters_comes_after_the_password(
    owner: Visitor, password_given_before: Callable[[Visitor, timedelta], Awaitable[None]]
) -> None:
    await password_given_before(owner, timedelta(minutes=11))
    page = leads_to(await owner.see("/account/security/second-factor"))
    assert page == "/account/confirm?next=/account/security/second-factor"
    goal = leads_to(await owner.send(page, "/account/confirm", _password=PASSWORD))
    assert (await owner.see(goal)).status_code == 200
