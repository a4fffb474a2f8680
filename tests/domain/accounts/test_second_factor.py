from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import pyotp
import pytest
from tests.domain.accounts.conftest import Mails
from tests.domain.accounts.someone import PASSWORD, Someone, new_email

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, TooMany
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import ConfirmationNeeded, Gate, NotLetIn, NotLoggedIn, SecondFactorNeeded
from paydesk.domain.accounts.changing import (
    ask_for_email_change,
    ask_for_reset,
    change_password,
    confirm_email,
    reset_password,
)
from paydesk.domain.accounts.operators import create_operator
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.second_factor import (
    begin_enrolment,
    confirm_enrolment,
    new_recovery_codes,
    pass_second_factor,
    remove_second_factor,
    show_enrolment,
)
from paydesk.domain.accounts.sessions import (
    LIFETIME,
    Session,
    Stage,
    end_other_sessions,
    find_session,
    list_sessions,
    require,
    require_open,
)

STEP = timedelta(seconds=30)


@pytest.fixture
async def now(ada: Someone) -> datetime:
    """When Ada, who has set up a second factor two minutes ago, logs in."""
    before = utc_now()
    await ada.enrol(now=before)
    return before + 4 * STEP


async def halfway(ada: Someone, now: datetime) -> Session:
    """A session that has still to give its code."""
    session = (await ada.log_in(now=now)).session
    assert session.stage is Stage.second_factor
    return session


async def test_an_app_gets_the_secret_as_text_uri_and_qr_code(ada: Someone, gate: Gate) -> None:
    enrolment = await begin_enrolment(gate, ada.session, now=utc_now())
    uri = urlsplit(enrolment.uri)
    asked = parse_qs(uri.query)
    assert (uri.scheme, uri.netloc, asked["secret"], asked["issuer"]) == (
        "otpauth",
        "totp",
        [enrolment.secret],
        ["Paydesk"],
    )
    assert len(enrolment.secret) == 32
    assert enrolment.secret not in repr(enrolment)
    drawing = ElementTree.fromstring(enrolment.qr_code)
    assert drawing.tag.endswith("svg")
    assert "style" not in enrolment.qr_code
    assert await show_enrolment(gate, ada.session) == enrolment


async def test_the_secret_and_the_codes_rest_unreadable(ada: Someone, now: datetime, database: Database) -> None:
    row = await database.fetchrow("select * from person where id = $1", ada.id)
    assert ada.secret.encode() not in row["totp_sealed"]
    assert len(set(ada.codes)) == len(row["recovery_codes"]) == 10
    plain = [code.replace("-", "").encode() for code in ada.codes]
    assert not any(code in stored for code in plain for stored in row["recovery_codes"])


async def test_nothing_is_asked_for_until_a_code_of_the_app_was_given(ada: Someone, gate: Gate) -> None:
    await begin_enrolment(gate, ada.session, now=utc_now())
    with pytest.raises(Malformed):
        await confirm_enrolment(gate, ada.session, "000000000", now=utc_now())
    assert (await ada.log_in()).session.stage is Stage.open


async def test_setting_up_needs_a_fresh_password_since_it_could_lock_the_owner_out(ada: Someone, gate: Gate) -> None:
    with pytest.raises(ConfirmationNeeded):
        await begin_enrolment(gate, ada.session, now=utc_now() + timedelta(minutes=20))


async def test_of_two_tabs_only_the_secret_that_was_shown_last_counts(ada: Someone, gate: Gate) -> None:
    now = utc_now()
    first = await begin_enrolment(gate, ada.session, now=now)
    second = await begin_enrolment(gate, ada.session, now=now)
    with pytest.raises(Malformed):
        await confirm_enrolment(gate, ada.session, pyotp.TOTP(first.secret).at(now), now=now)
    await confirm_enrolment(gate, ada.session, pyotp.TOTP(second.secret).at(now), now=now)
    for again in (begin_enrolment(gate, ada.session, now=now), show_enrolment(gate, ada.session)):
        with pytest.raises(Conflict, match="set up already"):
            await again


async def test_a_secret_that_was_shown_in_another_session_is_worth_nothing(ada: Someone, gate: Gate) -> None:
    now = utc_now()
    known = await begin_enrolment(gate, ada.session, now=now)
    other = (await ada.log_in(now=now)).session
    with pytest.raises(Conflict, match="begin"):
        await show_enrolment(gate, other)
    with pytest.raises(Conflict, match="begin"):
        await confirm_enrolment(gate, other, pyotp.TOTP(known.secret).at(now), now=now)
    assert (await begin_enrolment(gate, other, now=now)).secret != known.secret
    with pytest.raises(Conflict, match="begin"):
        await confirm_enrolment(gate, ada.session, pyotp.TOTP(known.secret).at(now), now=now)


@pytest.mark.parametrize("change", ["password", "reset", "address", "promotion"])
async def test_a_secret_that_was_begun_with_goes_with_what_it_was_begun_under(
    ada: Someone, gate: Gate, mails: Mails, database: Database, change: str
) -> None:
    now = utc_now()
    await begin_enrolment(gate, ada.session, now=now)
    if change == "password":
        await change_password(gate, ada.session, current=PASSWORD, new="another long sentence", now=now)
    elif change == "reset":
        await ask_for_reset(gate, email=ada.email, client=ada.client, now=now)
        token = (await mails(ada.email))[-1]["facts"]["token"]
        await reset_password(gate, token, password="another long sentence", client=ada.client, now=now)
    elif change == "address":
        address = new_email()
        await ask_for_email_change(gate, ada.session, email=address, now=now)
        await confirm_email(gate, (await mails(address))[-1]["facts"]["token"], client=ada.client, now=now)
    else:
        await confirm_email(gate, (await mails(ada.email))[0]["facts"]["token"], client=ada.client, now=now)
        await create_operator(gate, email=ada.email, now=now)
    assert await database.fetchval("select totp_sealed from person where id = $1", ada.id) is None
    with pytest.raises(Conflict, match="begin"):
        await show_enrolment(gate, ada.session)


async def test_setting_up_gives_the_session_another_token(ada: Someone, gate: Gate) -> None:
    before = ada.token
    await ada.enrol()
    assert (await ada.again()).stage is Stage.open
    with pytest.raises(NotLoggedIn):
        await find_session(gate, before, ada.client, now=utc_now())


async def test_a_session_may_do_nothing_until_its_code_is_given(ada: Someone, gate: Gate, now: datetime) -> None:
    session = await halfway(ada, now)
    refused: list[Any] = [list_sessions(gate, session, now=now), end_other_sessions(gate, session, now=now)]
    with pytest.raises(SecondFactorNeeded):
        require(session, Permission.view)
    for one in refused:
        with pytest.raises(SecondFactorNeeded):
            await one
    assert session.expires_at - now == timedelta(minutes=15)


async def test_a_code_opens_the_session_for_its_whole_life(ada: Someone, gate: Gate, now: datetime) -> None:
    made = await ada.log_in(now=now)
    ada.token = await pass_second_factor(gate, made.session, f" {ada.code(now)[:3]} {ada.code(now)[3:]} ", now=now)
    session = await ada.again(now=now)
    require_open(session)
    assert session.expires_at - session.created_at == LIFETIME


async def test_a_token_from_before_the_code_is_worth_nothing_after_it(ada: Someone, gate: Gate, now: datetime) -> None:
    made = await ada.log_in(now=now)
    token = await pass_second_factor(gate, made.session, ada.code(now), now=now)
    assert (await find_session(gate, token, ada.client, now=now)).id == made.session.id
    with pytest.raises(NotLoggedIn):
        await find_session(gate, made.token, ada.client, now=now)


async def test_setting_up_keeps_this_session_and_asks_the_others_for_a_code(ada: Someone) -> None:
    other = await ada.log_in()
    await ada.enrol()
    assert (await ada.again()).stage is Stage.open
    ada.token = other.token
    assert (await ada.again()).stage is Stage.second_factor


@pytest.mark.parametrize("steps", [-1, 0, 1])
async def test_codes_of_the_step_before_and_after_count(ada: Someone, gate: Gate, now: datetime, steps: int) -> None:
    await pass_second_factor(gate, await halfway(ada, now), ada.code(now + steps * STEP), now=now)


@pytest.mark.parametrize("steps", [-2, 2])
async def test_codes_further_off_do_not(ada: Someone, gate: Gate, now: datetime, steps: int) -> None:
    with pytest.raises(NotLetIn):
        await pass_second_factor(gate, await halfway(ada, now), ada.code(now + steps * STEP), now=now)


async def test_a_code_works_once_and_none_before_it_afterwards(ada: Someone, gate: Gate, now: datetime) -> None:
    code, before = ada.code(now), ada.code(now - STEP)
    await pass_second_factor(gate, await halfway(ada, now), code, now=now)
    for stale in (code, before):
        with pytest.raises(NotLetIn, match="used already"):
            await pass_second_factor(gate, await halfway(ada, now), stale, now=now)
    await pass_second_factor(gate, await halfway(ada, now), ada.code(now + STEP), now=now)


async def test_the_code_that_set_it_up_does_not_log_in(ada: Someone, gate: Gate) -> None:
    now = utc_now()
    await ada.enrol(now=now)
    with pytest.raises(NotLetIn):
        await pass_second_factor(gate, await halfway(ada, now), ada.code(now), now=now)


async def test_of_parallel_uses_of_one_code_one_succeeds(ada: Someone, gate: Gate, now: datetime) -> None:
    sessions = [await halfway(ada, now) for _ in range(4)]
    uses = (pass_second_factor(gate, session, ada.code(now), now=now) for session in sessions)
    ended = await asyncio.gather(*uses, return_exceptions=True)
    assert len([one for one in ended if isinstance(one, str)]) == 1
    assert all(isinstance(one, NotLetIn) for one in ended if not isinstance(one, str))


async def test_of_parallel_uses_of_one_recovery_code_one_succeeds(ada: Someone, gate: Gate, now: datetime) -> None:
    sessions = [await halfway(ada, now) for _ in range(4)]
    uses = (pass_second_factor(gate, session, ada.codes[0], now=now) for session in sessions)
    ended = await asyncio.gather(*uses, return_exceptions=True)
    assert len([one for one in ended if isinstance(one, str)]) == 1


async def test_each_recovery_code_works_once_however_it_is_typed(
    ada: Someone, gate: Gate, now: datetime, mails: Mails
) -> None:
    for number, code in enumerate(ada.codes, 1):
        typed = code.upper().replace("-", " ") if number % 2 else f" {code} "
        await pass_second_factor(gate, await halfway(ada, now), typed, now=now + number * timedelta(seconds=1))
    assert (await ada.again(now=now)).person.codes_left == 0
    for code in ada.codes[:3]:
        with pytest.raises(NotLetIn):
            await pass_second_factor(gate, await halfway(ada, now), code, now=now)
    notices = [mail["facts"] for mail in await mails(ada.email) if mail["kind"] == "security_notice"]
    assert [fact["left"] for fact in notices if fact["what"] == "recovery_code_used"] == list(range(9, -1, -1))


async def test_anothers_codes_are_worth_nothing(ada: Someone, stranger: Someone, gate: Gate, now: datetime) -> None:
    await stranger.enrol(now=now)
    for code in (stranger.code(now), stranger.codes[0]):
        with pytest.raises(NotLetIn):
            await pass_second_factor(gate, await halfway(ada, now), code, now=now)
    assert (await stranger.again(now=now)).person.codes_left == 10


async def test_of_twenty_parallel_guesses_at_the_code_five_are_judged(ada: Someone, gate: Gate, now: datetime) -> None:
    session = await halfway(ada, now)
    wrong = [f"{(int(ada.code(now)) + n) % 1_000_000:06}" for n in range(7, 27)]
    guesses = (pass_second_factor(gate, session, code, now=now) for code in wrong)
    ended = await asyncio.gather(*guesses, return_exceptions=True)
    assert [sum(isinstance(one, kind) for one in ended) for kind in (NotLetIn, TooMany)] == [5, 15]
    with pytest.raises(TooMany):
        await pass_second_factor(gate, await halfway(ada, now), ada.codes[0], now=now)
    later = now + STEP
    await pass_second_factor(gate, session, ada.code(later), now=later)


async def test_logging_in_anew_does_not_forgive_wrong_codes(ada: Someone, gate: Gate, now: datetime) -> None:
    for _ in range(5):
        with pytest.raises(NotLetIn):
            await pass_second_factor(gate, await halfway(ada, now), "nonsense", now=now)
    with pytest.raises(TooMany):
        await pass_second_factor(gate, await halfway(ada, now), ada.code(now), now=now)


async def test_wrong_codes_that_lead_to_a_lock_out_are_told_once_for_who_types_them_knows_the_password(
    ada: Someone, gate: Gate, now: datetime, mails: Mails
) -> None:
    async def told() -> int:
        return [one["facts"].get("what") for one in await mails(ada.email)].count("second_factor_failed")

    for _ in range(4):
        with pytest.raises(NotLetIn):
            await pass_second_factor(gate, await halfway(ada, now), "nonsense", now=now)
    assert await told() == 0
    for lockout in range(3):
        later = now + timedelta(hours=lockout)
        with pytest.raises(NotLetIn):
            await pass_second_factor(gate, await halfway(ada, later), "nonsense", now=later)
        assert await told() == 1


@pytest.mark.parametrize("code", ["", " ", "١٢٣٤٥٦", "1" * 100_000, "\x00", "-----", "ⅷ", "\ud800"])
async def test_whatever_is_typed_is_a_wrong_code(ada: Someone, gate: Gate, now: datetime, code: str) -> None:
    with pytest.raises(NotLetIn):
        await pass_second_factor(gate, await halfway(ada, now), code, now=now)


async def test_new_recovery_codes_replace_the_old_ones(ada: Someone, gate: Gate) -> None:
    now = utc_now()
    await ada.enrol(now=now)
    session = await ada.again(now=now)
    codes = await new_recovery_codes(gate, session, now=now)
    assert not set(codes) & set(ada.codes)
    with pytest.raises(NotLetIn):
        await pass_second_factor(gate, await halfway(ada, now), ada.codes[0], now=now)
    await pass_second_factor(gate, await halfway(ada, now), codes[0], now=now)
    with pytest.raises(ConfirmationNeeded):
        await new_recovery_codes(gate, session, now=now + timedelta(minutes=11))


async def test_removing_it_needs_the_password_again_and_is_told(ada: Someone, gate: Gate, mails: Mails) -> None:
    now = utc_now()
    await ada.enrol(now=now)
    session = await ada.again(now=now)
    with pytest.raises(ConfirmationNeeded):
        await remove_second_factor(gate, session, now=now + timedelta(minutes=11))
    await remove_second_factor(gate, session, now=now)
    assert (await ada.log_in()).session.stage is Stage.open
    assert [m["facts"]["what"] for m in await mails(ada.email) if m["kind"] == "security_notice"] == [
        "second_factor_added",
        "second_factor_removed",
    ]
    with pytest.raises(Conflict, match="none is set up"):
        await remove_second_factor(gate, session, now=now)


async def test_the_log_says_what_became_of_codes(ada: Someone, gate: Gate, now: datetime) -> None:
    with pytest.raises(NotLetIn):
        await pass_second_factor(gate, await halfway(ada, now), "nonsense", now=now)
    await pass_second_factor(gate, await halfway(ada, now), ada.codes[0], now=now)
    assert await ada.done() == [
        "signed_up",
        "second_factor_added",
        "logged_in",
        "second_factor_failed",
        "logged_in",
        "recovery_code_used",
    ]
