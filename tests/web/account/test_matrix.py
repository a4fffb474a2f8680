"""Who gets where: every route that the application really has,
asked for by everybody who could come.
"""

from __future__ import annotations

import re

import httpx
import pytest
from starlette.routing import Route
from tests import set_back
from tests.web.account.conftest import PASSWORD, Join, OpenVisitor, SignUp, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import seller_of
from tests.web.account.test_getting_in import log_in, second_factor

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.app import create_app
from paydesk.database.pool import Database
from paydesk.domain.accounts.roles import ALLOWED, Permission, Role
from paydesk.domain.payments.desk import Desk
from paydesk.settings import Settings
from paydesk.web.console.guards import Access, Declaration

NOBODYS_ID = "900719925474099"
NOT_WATCHED = ("account_session", "entry_pause", "history", "mail", "person_token")
"""Tables that a visit may touch: when a session was last seen, who is locked out,
and what the worker is about to send; and the beat of the database's own history."""


@pytest.fixture
def below_account(settings: Settings, bank: Bank) -> list[Route]:
    """Every route of the account, as the application has it, so that none can be forgotten."""
    routes = [route for route in create_app(settings).routes if isinstance(route, Route)]
    return [route for route in routes if route.path == "/account" or route.path.startswith("/account/")]


@pytest.fixture
def for_operators(settings: Settings, bank: Bank) -> list[Route]:
    """Every route of the operator's console."""
    routes = [route for route in create_app(settings).routes if isinstance(route, Route)]
    return [route for route in routes if route.path == "/operator" or route.path.startswith("/operator/")]


def needs(route: Route) -> Access | Permission:
    declared = route.endpoint.declared  # type: ignore[attr-defined]
    assert isinstance(declared, Declaration), route.path
    return declared.needs


def posted(route: Route) -> bool:
    return "POST" in (route.methods or ())


def address(route: Route, merchant_path: str, payment_id: int | None = None) -> str:
    """A route's address; a payment that exists stands in it where one is asked for,
    else ids that nobody has.
    """
    path = route.path.replace("/account/{merchant_id:id}", merchant_path)
    path = path.replace("{payment_id:id}", str(payment_id or NOBODYS_ID))
    return re.sub(r"\{\w+(:\w+)?\}", NOBODYS_ID, path)


async def ask(visitor: Visitor, route: Route, path: str, token: str) -> httpx.Response:
    """Ask for a route; a form carries the session's token and nothing else,
    so that the role alone decides.
    """
    if posted(route):
        return await visitor.web.post(path, data={"csrf": token})
    return await visitor.see(path)


async def token_of(visitor: Visitor) -> str:
    return fields_of((await visitor.see("/account/security")).text, "/account/logout")["csrf"]


@pytest.mark.parametrize("role", list(Role))
async def test_a_member_gets_exactly_what_the_role_allows(
    below_account: list[Route], owner: Visitor, join: Join, desk: Desk, role: Role
) -> None:
    payment_id = await seller_of(desk, owner).sell()
    member = await join(owner, role)
    token = await token_of(member)
    for route in below_account:
        needed = needs(route)
        if not isinstance(needed, Permission):
            continue
        path = address(route, owner.merchant_path, payment_id)
        answer = await ask(member, route, path, token)
        if needed not in ALLOWED[role]:
            assert answer.status_code == 403, (route.path, answer.status_code)
            assert "only these roles may do this: Owner" in text_of(answer), route.path
        elif posted(route):
            assert answer.status_code in {200, 303, 400, 404, 409, 422} or "Confirm" in text_of(answer), route.path
        else:
            assert answer.status_code in ({200, 303, 404} if NOBODYS_ID in path else {200, 303}), route.path


async def test_another_merchants_member_finds_nothing(
    below_account: list[Route], owner: Visitor, sign_up: SignUp, desk: Desk
) -> None:
    payment_id = await seller_of(desk, owner).sell()
    other = await sign_up("Other Shop")
    token = await token_of(other)
    for route in below_account:
        if isinstance(needs(route), Permission):
            answer = await ask(other, route, address(route, owner.merchant_path, payment_id), token)
            assert answer.status_code == 404, route.path
            assert "Corner Shop" not in answer.text, route.path


async def test_rows_of_another_merchant_are_not_found_among_ones_own(
    below_account: list[Route], owner: Visitor, sign_up: SignUp, desk: Desk
) -> None:
    other = await sign_up("Other Shop")
    foreign = await seller_of(desk, other).sell()
    token = await token_of(owner)
    for route in below_account:
        if "{payment_id:id}" in route.path:
            answer = await ask(owner, route, address(route, owner.merchant_path, foreign), token)
            assert answer.status_code == 404, route.path


async def test_who_is_not_logged_in_is_sent_to_log_in(
    below_account: list[Route], for_operators: list[Route], stranger: OpenVisitor, owner: Visitor
) -> None:
    nobody = await stranger()
    for route in [*below_account, *for_operators]:
        if needs(route) not in (Access.anybody, Access.other_cell):
            answer = await ask(nobody, route, address(route, owner.merchant_path), "")
            assert leads_to(answer).startswith("/account/login"), route.path


async def test_who_still_owes_the_second_factor_is_sent_to_it(
    below_account: list[Route], for_operators: list[Route], owner: Visitor
) -> None:
    await second_factor(owner)
    owner.web.cookies.delete("paydesk")
    await log_in(owner, owner.email)
    token = fields_of((await owner.see("/account/second-factor")).text, "/account/second-factor")["csrf"]
    for route in [*below_account, *for_operators]:
        if needs(route) not in (Access.anybody, Access.other_cell, Access.halfway):
            answer = await ask(owner, route, address(route, owner.merchant_path), token)
            assert leads_to(answer).startswith("/account/second-factor"), route.path


async def test_an_operator_is_in_no_merchants_team(
    below_account: list[Route], for_operators: list[Route], owner: Visitor, sign_up: SignUp, database: Database
) -> None:
    operator = await sign_up("Own Shop")
    await set_back.runs_the_deployment(database, operator.email)
    operator.web.cookies.delete("paydesk")
    await log_in(operator, operator.email)
    await second_factor(operator)
    token = await token_of(operator)
    for route in below_account:
        if isinstance(needs(route), Permission):
            answer = await ask(operator, route, address(route, owner.merchant_path), token)
            assert answer.status_code == 404, route.path
    for route in for_operators:
        answer = await ask(operator, route, address(route, owner.merchant_path), token)
        assert answer.status_code in {200, 303, 400, 404, 409, 422}, (route.path, answer.status_code)


@pytest.mark.parametrize("role", list(Role))
async def test_no_role_of_a_merchant_opens_the_operators_console(
    for_operators: list[Route], owner: Visitor, join: Join, role: Role
) -> None:
    member = await join(owner, role)
    token = await token_of(member)
    for route in for_operators:
        answer = await ask(member, route, address(route, owner.merchant_path), token)
        assert answer.status_code in {403, 404}, route.path


async def versions(database: Database) -> dict[str, str]:
    """A fingerprint of each watched table's rows with their versions."""
    rows = await database.fetch(
        "select relname from pg_class where relkind in ('r') and relnamespace = 'public'::regnamespace"
        " and not relispartition"
    )
    names = [row["relname"] for row in rows if not any(part in row["relname"] for part in NOT_WATCHED)]
    return {
        name: str(
            await database.fetchval(f"select count(*) || ' ' || coalesce(max(xmin::text::bigint), 0) from \"{name}\"")
        )
        for name in names
    }


@pytest.mark.parametrize(
    ("with_token", "headers"),
    [
        (False, {}),
        (False, {"Origin": "http://pay.test", "Sec-Fetch-Site": "same-origin"}),
        (True, {"Origin": "https://evil.example"}),
        (True, {"Sec-Fetch-Site": "cross-site"}),
    ],
    ids=["no token", "own page, no token", "another origin", "another site"],
)
async def test_no_form_is_taken_without_its_token_or_from_elsewhere(
    below_account: list[Route],
    for_operators: list[Route],
    owner: Visitor,
    desk: Desk,
    database: Database,
    with_token: bool,
    headers: dict[str, str],
) -> None:
    payment_id = await seller_of(desk, owner).sell()
    await second_factor(owner)
    await set_back.runs_the_deployment(database, owner.email)
    fields = {"csrf": await token_of(owner)} if with_token else {"other": "1"}
    before = await versions(database)
    for route in [*below_account, *for_operators]:
        if not posted(route):
            continue
        path = address(route, owner.merchant_path, payment_id)
        data = fields | {"email": owner.email, "password": PASSWORD, "amount": "1.00", "role": "viewer"}
        upload = "branding" in path or path.endswith(("links/new", "links/new/packages", f"links/{NOBODYS_ID}"))
        answer = await owner.web.post(path, data=data, headers=headers, files={"logo": b""} if upload else None)
        nobody_knows = route in for_operators or needs(route) is Access.other_cell
        refused = {403, 404} if nobody_knows else {403}
        assert answer.status_code in refused, (route.path, answer.status_code)
    after = await versions(database)
    assert {table for table in before if before[table] != after[table]} == set()
