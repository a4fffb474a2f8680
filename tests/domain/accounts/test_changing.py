from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.domain.accounts.conftest import IsStored, Mails, SignUp
from tests.domain.accounts.someone import PASSWORD, Someone, new_client, new_email

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Gone, Malformed, TooMany
from paydesk.domain.accounts import tokens
from paydesk.domain.accounts.access_needs import Client, ConfirmationNeeded, Gate, NotLetIn, NotLoggedIn
from paydesk.domain.accounts.changing import (
    PACE,
    ask_for_email_change,
    ask_for_reset,
    change_password,
    change_profile,
    confirm_email,
    find_reset,
    reset_password,
    send_confirmation_again,
)
from paydesk.domain.accounts.devices import see_device
from paydesk.domain.accounts.sessions import Stage, find_session

NEW = "another long sentence"


async def reset_link(someone: Someone, mails: Mails, *, now: datetime | None = None) -> str:
    """The token of a link to choose a password that the person asked for."""
    await ask_for_reset(someone.gate, email=someone.email, client=someone.client, now=now or utc_now())
    (*_, mail) = [mail for mail in await mails(someone.email) if mail["kind"] == "reset_password"]
    return str(mail["facts"]["token"])


async def test_a_link_by_mail_lets_choose_a_new_password_and_ends_every_session(
    ada: Someone, gate: Gate, mails: Mails
) -> None:
    other = await ada.log_in()
    token = await reset_link(ada, mails)
    holder = await find_reset(gate, token, now=utc_now())
    assert (holder.email, holder.name, holder.first_password) == (ada.email, "Ada Lovelace", False)
    assert await reset_password(gate, token, password=NEW, client=ada.client, now=utc_now()) == ada.id
    for ended in (ada.token, other.token):
        with pytest.raises(NotLoggedIn):
            await find_session(gate, ended, ada.client, now=utc_now())
    with pytest.raises(NotLetIn):
        await ada.log_in()
    assert (await ada.log_in(password=NEW)).session.person.email_confirmed_at is not None
    notices = [mail["facts"]["what"] for mail in await mails(ada.email) if mail["kind"] == "security_notice"]
    assert notices == ["password_reset"]


async def test_a_link_works_once_even_for_many_at_once(ada: Someone, gate: Gate, mails: Mails) -> None:
    token = await reset_link(ada, mails)
    passwords = [f"my new sentence {n}" for n in range(6)]
    uses = (reset_password(gate, token, password=one, client=ada.client, now=utc_now()) for one in passwords)
    ended = await asyncio.gather(*uses, return_exceptions=True)
    assert sum(isinstance(one, Gone) for one in ended) == 5
    (chosen,) = [one for one, came in zip(passwords, ended, strict=True) if came == ada.id]
    await ada.log_in(password=chosen)
    with pytest.raises(Gone):
        await find_reset(gate, token, now=utc_now())


async def test_a_link_stops_working_after_an_hour(ada: Someone, gate: Gate, mails: Mails) -> None:
    now = utc_now()
    token = await reset_link(ada, mails, now=now)
    await find_reset(gate, token, now=now + timedelta(minutes=59))
    for attempt in (
        find_reset(gate, token, now=now + timedelta(hours=1)),
        reset_password(gate, token, password=NEW, client=ada.client, now=now + timedelta(hours=1)),
    ):
        with pytest.raises(Gone):
            await attempt


async def test_a_link_that_a_stranger_asks_for_leaves_the_others_and_one_use_ends_them_all(
    ada: Someone, gate: Gate, mails: Mails
) -> None:
    first, second, third = [await reset_link(ada, mails) for _ in range(3)]
    await ask_for_reset(gate, email=ada.email, client=new_client(), now=utc_now())
    await find_reset(gate, first, now=utc_now())
    await reset_password(gate, second, password=NEW, client=ada.client, now=utc_now())
    for other in (first, third):
        with pytest.raises(Gone):
            await reset_password(gate, other, password=NEW, client=ada.client, now=utc_now())


async def test_no_more_than_a_few_links_are_open_at_a_time(ada: Someone, gate: Gate, mails: Mails) -> None:
    now = utc_now()

    async def ask(browser: int) -> None:
        await ask_for_reset(gate, email=ada.email, client=Client(f"198.51.1.{browser}"), now=now)

    first = await reset_link(ada, mails, now=now)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tokens, "MOST_OPEN", 3)
        for browser in range(5):
            await ask(browser)
    assert len([mail for mail in await mails(ada.email) if mail["kind"] == "reset_password"]) == 3
    await find_reset(gate, first, now=now)


async def test_a_refused_password_leaves_the_link_as_it_was(ada: Someone, gate: Gate, mails: Mails) -> None:
    token = await reset_link(ada, mails)
    for refused in ("short", ada.email):
        with pytest.raises(Malformed):
            await reset_password(gate, token, password=refused, client=ada.client, now=utc_now())
    await reset_password(gate, token, password=NEW, client=ada.client, now=utc_now())


@pytest.mark.parametrize("token", ["", "x", "\x00", "a" * 43])
async def test_a_made_up_link_is_gone(gate: Gate, token: str) -> None:
    for attempt in (
        find_reset(gate, token, now=utc_now()),
        reset_password(gate, token, password=NEW, client=new_client(), now=utc_now()),
        confirm_email(gate, token, client=new_client(), now=utc_now()),
    ):
        with pytest.raises(Gone):
            await attempt


async def test_a_link_for_one_thing_does_not_do_another(ada: Someone, gate: Gate, mails: Mails) -> None:
    token = await reset_link(ada, mails)
    with pytest.raises(Gone):
        await confirm_email(gate, token, client=ada.client, now=utc_now())


async def test_an_unknown_address_gets_no_mail_and_the_same_answer(gate: Gate, mails: Mails) -> None:
    email = new_email()
    await ask_for_reset(gate, email=email, client=new_client(), now=utc_now())
    assert await mails(email) == []
    for odd in ("", "\x00", "x" * 10_000):
        await ask_for_reset(gate, email=odd, client=new_client(), now=utc_now())


async def test_the_time_until_the_answer_does_not_tell_whether_there_is_an_account(ada: Someone, gate: Gate) -> None:
    clock = asyncio.get_running_loop().time
    for email in (ada.email, new_email()):
        began = clock()
        await ask_for_reset(gate, email=email, client=new_client(), now=utc_now())
        assert clock() - began >= PACE


async def test_a_mailbox_is_not_flooded_with_links_and_the_answer_does_not_tell(
    ada: Someone, gate: Gate, mails: Mails
) -> None:
    now = utc_now()
    asked = (ask_for_reset(gate, email=ada.email, client=new_client(), now=now) for _ in range(20))
    assert await asyncio.gather(*asked, return_exceptions=True) == [None] * 20
    assert len([mail for mail in await mails(ada.email) if mail["kind"] == "reset_password"]) == 5
    await see_device(gate, ada.session, "ada's own browser", now=now)
    await ask_for_reset(gate, email=ada.email, client=Client("192.0.2.9", device="ada's own browser"), now=now)
    assert len([mail for mail in await mails(ada.email) if mail["kind"] == "reset_password"]) == 6


async def test_a_token_rests_unreadable_in_the_mail_and_with_its_person(
    ada: Someone, mails: Mails, is_stored: IsStored
) -> None:
    token = await reset_link(ada, mails)
    assert await is_stored(ada.email, "mail")
    for table in ("mail", "person_token", "audit_entry"):
        assert not await is_stored(token, table)


async def test_a_reset_ends_a_lock_out_but_not_the_second_factor(ada: Someone, gate: Gate, mails: Mails) -> None:
    await ada.enrol()
    now = utc_now()
    for _ in range(5):
        with pytest.raises(NotLetIn):
            await ada.log_in(password="a wrong password", now=now)
    with pytest.raises(TooMany):
        await ada.log_in(now=now)
    token = await reset_link(ada, mails)
    await reset_password(gate, token, password=NEW, client=ada.client, now=now)
    assert (await ada.log_in(password=NEW, now=now)).session.stage is Stage.second_factor


async def test_changing_the_password_needs_the_present_one_and_ends_the_other_sessions(
    ada: Someone, gate: Gate, mails: Mails
) -> None:
    other = await ada.log_in()
    with pytest.raises(NotLetIn):
        await change_password(gate, ada.session, current="not the password", new=NEW, now=utc_now())
    with pytest.raises(Malformed):
        await change_password(gate, ada.session, current=PASSWORD, new="short", now=utc_now())
    token = await reset_link(ada, mails)
    stolen = ada.token
    ada.token = await change_password(gate, ada.session, current=PASSWORD, new=NEW, now=utc_now())
    await ada.again()
    with pytest.raises(NotLoggedIn):
        await find_session(gate, stolen, ada.client, now=utc_now())
    with pytest.raises(NotLoggedIn):
        await find_session(gate, other.token, ada.client, now=utc_now())
    with pytest.raises(Gone):
        await find_reset(gate, token, now=utc_now())
    await ada.log_in(password=NEW)
    assert "password_changed" in await ada.done()
    assert [m["facts"]["what"] for m in await mails(ada.email) if m["kind"] == "security_notice"] == [
        "password_changed"
    ]


async def test_the_mail_at_sign_up_confirms_the_address(ada: Someone, gate: Gate, mails: Mails) -> None:
    (mail,) = await mails(ada.email)
    assert await confirm_email(gate, mail["facts"]["token"], client=ada.client, now=utc_now()) == ada.email
    assert (await ada.again()).person.email_confirmed_at is not None
    assert (await ada.done())[-1] == "email_confirmed"
    assert len(await mails(ada.email)) == 1
    with pytest.raises(Conflict, match="confirmed already"):
        await send_confirmation_again(gate, ada.session, now=utc_now())


async def test_an_address_that_was_never_confirmed_is_not_told_of_the_next_one(
    ada: Someone, gate: Gate, mails: Mails
) -> None:
    address, before = new_email(), ada.email
    await ask_for_email_change(gate, ada.session, email=address, now=utc_now())
    (mail,) = await mails(address)
    await confirm_email(gate, mail["facts"]["token"], client=ada.client, now=utc_now())
    assert [one["kind"] for one in await mails(before)] == ["confirm_email"]


async def test_a_new_address_counts_once_its_link_was_used_and_the_old_one_is_told(
    ada: Someone, gate: Gate, mails: Mails
) -> None:
    address, before = new_email(), ada.email
    (first,) = await mails(before)
    await confirm_email(gate, first["facts"]["token"], client=ada.client, now=utc_now())
    await ask_for_email_change(gate, ada.session, email=address, now=utc_now())
    assert (await ada.again()).person.email == before
    (mail,) = await mails(address)
    await confirm_email(gate, mail["facts"]["token"], client=ada.client, now=utc_now())
    assert (await ada.again()).person.email == address
    assert [m["facts"]["what"] for m in await mails(before) if m["kind"] == "security_notice"] == ["email_changed"]
    ada.email = address
    await ada.log_in()


async def test_changing_the_address_needs_the_password_again(ada: Someone, gate: Gate) -> None:
    later = utc_now() + timedelta(minutes=11)
    with pytest.raises(ConfirmationNeeded):
        await ask_for_email_change(gate, ada.session, email=new_email(), now=later)


async def test_anothers_address_cannot_be_taken_and_asking_does_not_tell(
    ada: Someone, stranger: Someone, gate: Gate, mails: Mails
) -> None:
    await ask_for_email_change(gate, ada.session, email=stranger.email.upper(), now=utc_now())
    (mail,) = await mails(stranger.email.upper().replace("PEOPLE.EXAMPLE", "people.example"))
    for _ in range(2):
        with pytest.raises(Conflict, match="another account"):
            await confirm_email(gate, mail["facts"]["token"], client=ada.client, now=utc_now())
    assert (await ada.again()).person.email == ada.email


async def test_who_signs_up_with_anothers_address_loses_it_to_whoever_has_the_mailbox(
    signed_up: SignUp, gate: Gate, mails: Mails
) -> None:
    squatter = await signed_up()
    elsewhere = new_email()
    await ask_for_email_change(gate, squatter.session, email=elsewhere, now=utc_now())
    token = await reset_link(squatter, mails)
    await reset_password(gate, token, password=NEW, client=new_client(), now=utc_now())
    (mail,) = await mails(elsewhere)
    with pytest.raises(Gone):
        await confirm_email(gate, mail["facts"]["token"], client=squatter.client, now=utc_now())
    with pytest.raises(NotLoggedIn):
        await squatter.again()


async def test_a_profile_changes_only_where_asked(ada: Someone, gate: Gate) -> None:
    await change_profile(gate, ada.session, time_zone="Europe/Berlin", language="de", now=utc_now())
    person = (await ada.again()).person
    assert (person.name, person.language, person.time_zone) == ("Ada Lovelace", "de", "Europe/Berlin")
    wrong: list[dict[str, Any]] = [{"name": ""}, {"language": "<script>"}, {"time_zone": "../../etc/passwd"}]
    for given in wrong:
        with pytest.raises(Malformed):
            await change_profile(gate, ada.session, **given, now=utc_now())
