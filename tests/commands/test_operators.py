from __future__ import annotations

import secrets
from functools import partial
from typing import Any

import msgspec
import pyotp
import pytest
from argon2 import PasswordHasher

import paydesk.equipment
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Gone, NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Client, Gate, NotLetIn, NotLoggedIn, SecondFactorNeeded
from paydesk.domain.accounts.changing import confirm_email, reset_password
from paydesk.domain.accounts.joining import sign_up_invited
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.second_factor import (
    begin_enrolment,
    confirm_enrolment,
    pass_second_factor,
    remove_second_factor,
)
from paydesk.domain.accounts.sessions import LoggedIn, Stage, find_session, require_open, require_operator
from paydesk.domain.accounts.signing_in import log_in, sign_up
from paydesk.domain.mail.queueing import open_facts
from paydesk.domain.operations.machinery import ActFilter, list_acts
from paydesk.equipment import gate_of, vault_of
from paydesk.settings import load_settings

PASSWORD = "a long enough sentence"
BASE = "http://127.0.0.1:8000"
CLIENT = Client("192.0.2.77", "Browser/1.0")


@pytest.fixture(autouse=True)
def quick_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords cost next to nothing here; what they cost is tested where they are hashed."""
    cheap = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(paydesk.equipment, "Passwords", partial(Passwords, hasher=cheap))


@pytest.fixture
def gate(environment: dict[str, str], database: Database) -> Gate:
    """The gate of the deployment that the commands work on."""
    given: dict[str, Any] = {name.removeprefix("PAYDESK_").lower(): value for name, value in environment.items()}
    settings = load_settings(**given)
    return gate_of(settings, database, vault_of(settings))


@pytest.fixture
def email() -> str:
    return f"op{secrets.token_hex(6)}@people.example"


def token_in(link: str) -> str:
    before, token = link.rsplit("/", 1)
    assert before == f"{BASE}/account/password"
    return token


async def enter(gate: Gate, email: str) -> LoggedIn:
    return await log_in(gate, email=email, password=PASSWORD, client=CLIENT, now=utc_now())


async def sign_up_as(gate: Gate, email: str, *, confirmed: bool) -> LoggedIn:
    """Somebody with a shop and an account, whose address was confirmed or not."""
    made = await sign_up(
        gate, email=email, password=PASSWORD, name="Ada", shop_name="Shop", client=CLIENT, now=utc_now()
    )
    if confirmed:
        facts = await gate.database.fetchval("select facts from mail where recipient = $1", email)
        token = str(open_facts(gate.vault, msgspec.json.decode(facts))["token"])
        await confirm_email(gate, token, client=CLIENT, now=utc_now())
    return made


async def test_a_new_operator_chooses_a_password_by_the_link_and_needs_a_second_factor(
    paydesk: Any, gate: Gate, email: str
) -> None:
    said = await paydesk("operator", "create", "--email", email)
    facts = dict(line.split(maxsplit=1) for line in said.out.splitlines())
    assert (said.status, facts["email"]) == (0, email)
    assert "works once" in said.err
    with pytest.raises(NotLetIn):
        await log_in(gate, email=email, password="", client=CLIENT, now=utc_now())
    token = token_in(facts["link"])
    await reset_password(gate, token, password=PASSWORD, client=CLIENT, now=utc_now())
    with pytest.raises(Gone):
        await reset_password(gate, token, password="somebody else's words", client=CLIENT, now=utc_now())
    made = await enter(gate, email)
    assert made.session.stage is Stage.enrolment
    with pytest.raises(SecondFactorNeeded):
        require_operator(made.session)
    now = utc_now()
    secret = (await begin_enrolment(gate, made.session, now=now)).secret
    enrolled = await confirm_enrolment(gate, made.session, pyotp.TOTP(secret).at(now), now=now)
    session = await find_session(gate, enrolled.token, CLIENT, now=now)
    assert require_operator(session).operator
    with pytest.raises(Conflict, match="operators need"):
        await remove_second_factor(gate, session, now=now)
    assert (await enter(gate, email)).session.stage is Stage.second_factor


async def test_a_password_may_come_from_stdin_instead(paydesk: Any, gate: Gate, email: str) -> None:
    said = await paydesk("operator", "create", "--email", email, "--password", "--json", stdin=f"{PASSWORD}\n")
    assert said.result["link"] is None
    assert PASSWORD not in said.out + said.err
    assert (await enter(gate, email)).session.stage is Stage.enrolment


@pytest.mark.parametrize(("stdin", "words"), [("", "needs a password on stdin"), ("short\n", "at least 12")])
async def test_a_password_that_is_none_is_refused(paydesk: Any, email: str, stdin: str, words: str) -> None:
    said = await paydesk("operator", "create", "--email", email, "--password", stdin=stdin)
    assert (said.status, said.out) == (1, "")
    assert words in said.err
    assert said.err.count("\n") == 1


async def test_a_merchants_owner_becomes_an_operator_with_the_password_that_is_known(
    paydesk: Any, gate: Gate, email: str
) -> None:
    made = await sign_up_as(gate, email, confirmed=True)
    said = await paydesk("operator", "create", "--email", email.upper().replace("PEOPLE", "people"), "--json")
    assert said.result["link"] is None
    with pytest.raises(NotLoggedIn):
        await find_session(gate, made.token, CLIENT, now=utc_now())
    session = (await enter(gate, email)).session
    assert (session.stage, session.merchant_name) == (Stage.enrolment, "Shop")
    refused = await paydesk("operator", "create", "--email", email, "--password", stdin=f"{PASSWORD}\n")
    assert "keeps its own" in refused.err


async def test_whoever_took_an_address_without_confirming_it_is_not_promoted(
    paydesk: Any, gate: Gate, email: str
) -> None:
    await sign_up_as(gate, email, confirmed=False)
    said = await paydesk("operator", "create", "--email", email)
    assert said.status == 1
    assert "never confirmed" in said.err
    with pytest.raises(NotFound):
        require_operator((await enter(gate, email)).session)


async def test_operators_are_listed_and_removed_with_their_sessions(paydesk: Any, gate: Gate, email: str) -> None:
    await paydesk("operator", "create", "--email", email, "--name", "Olga", "--password", stdin=f"{PASSWORD}\n")
    made = await enter(gate, email)
    listed = [one for one in (await paydesk("operator", "list", "--json")).result if one["email"] == email]
    assert [(one["name"], one["second_factor"]) for one in listed] == [("Olga", False)]
    assert email in (await paydesk("operator", "list")).out
    again = await paydesk("operator", "create", "--email", email)
    assert "operator already" in again.err
    assert (await paydesk("operator", "remove", "--email", email)).status == 0
    with pytest.raises(NotLoggedIn):
        await find_session(gate, made.token, CLIENT, now=utc_now())
    session = (await enter(gate, email)).session
    require_open(session)
    with pytest.raises(NotFound):
        require_operator(session)
    gone = await paydesk("operator", "remove", "--email", email)
    assert gone.err == f"paydesk: {email} is no operator; see: paydesk operator list\n"


async def test_a_merchant_of_the_command_line_gets_its_first_owner_by_a_link(
    paydesk: Any, account: dict[str, Any], gate: Gate, email: str
) -> None:
    sent = (await paydesk("merchant", "invite", account["id"], "--email", email, "--json")).result
    before, token = sent["link"].rsplit("/", 1)
    assert (before, sent["role"]) == (f"{BASE}/account/invitation", "owner")
    made = await sign_up_invited(gate, token, name="Ada", password=PASSWORD, client=CLIENT, now=utc_now())
    assert (made.session.merchant_id, made.session.role) == (account["id"], Role.owner)
    again = await paydesk("merchant", "invite", account["id"], "--email", email)
    assert "in the team already" in again.err
    nobody = await paydesk("merchant", "invite", 999_999_999, "--email", email)
    assert nobody.err == "paydesk: there is no merchant 999999999; see: paydesk merchant list\n"


async def set_up(gate: Gate, made: LoggedIn) -> LoggedIn:
    """Set a second factor up; the session with its new token."""
    now = utc_now()
    secret = (await begin_enrolment(gate, made.session, now=now)).secret
    enrolled = await confirm_enrolment(gate, made.session, pyotp.TOTP(secret).at(now), now=now)
    return LoggedIn(enrolled.token, await find_session(gate, enrolled.token, CLIENT, now=now))


async def test_an_operator_who_lost_the_phone_sets_up_another(
    paydesk: Any, gate: Gate, database: Database, email: str
) -> None:
    await paydesk("operator", "create", "--email", email, "--password", stdin=f"{PASSWORD}\n")
    made = await set_up(gate, await enter(gate, email))
    for _ in range(5):
        with pytest.raises(NotLetIn):
            await pass_second_factor(gate, (await enter(gate, email)).session, "nonsense", now=utc_now())
    said = await paydesk("operator", "reset-second-factor", "--email", email.upper().replace("PEOPLE", "people"))
    assert (said.status, said.out) == (0, "")
    assert "the next log-in has them set up another" in said.err
    with pytest.raises(NotLoggedIn):
        await find_session(gate, made.token, CLIENT, now=utc_now())
    anew = await enter(gate, email)
    assert anew.session.stage is Stage.enrolment, "an operator gets nowhere without one"
    opened = await set_up(gate, anew)
    assert require_operator(opened.session).operator
    told = await database.fetchval(
        "select count(*) from mail where recipient = $1 and facts ->> 'what' = 'second_factor_reset'", email
    )
    assert told == 1
    log = [str(one.action) for one in await list_acts(database, Page(20), ActFilter()) if email in one.subject]
    assert log.count("second_factor_reset") == 1


async def test_a_shops_owner_logs_in_by_password_alone_after_a_reset(paydesk: Any, gate: Gate, email: str) -> None:
    await set_up(gate, await sign_up_as(gate, email, confirmed=True))
    said = await paydesk("operator", "reset-second-factor", "--email", email)
    assert "they can set up another under Security" in said.err
    require_open((await enter(gate, email)).session)
    again = await paydesk("operator", "reset-second-factor", "--email", email)
    assert again.err == f"paydesk: {email} has no second factor set up\n"
    nobody = await paydesk("operator", "reset-second-factor", "--email", f"x{email}")
    assert nobody.err == f"paydesk: nobody has an account with the address x{email}\n"


async def test_what_the_command_did_is_in_the_log(paydesk: Any, database: Database, email: str) -> None:
    await paydesk("operator", "create", "--email", email)
    entry = next(one for one in await list_acts(database, Page(20), ActFilter()) if email in one.subject)
    assert (str(entry.action), entry.person_id, entry.client_address) == ("operator_created", None, "command line")


async def test_an_address_that_is_none_is_one_line(paydesk: Any) -> None:
    said = await paydesk("operator", "create", "--email", "nobody")
    assert (said.status, said.err.count("\n")) == (1, 1)
    assert "is not an e-mail address" in said.err
