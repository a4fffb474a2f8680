from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from argon2 import PasswordHasher
from tests.domain.accounts.conftest import Mails
from tests.domain.accounts.someone import PASSWORD, CountingHasher, Someone, new_client, new_email

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, TooMany
from paydesk.database.pool import Database
from paydesk.domain.accounts import lockout
from paydesk.domain.accounts.access_needs import Client, ConfirmationNeeded, Gate, NotLetIn
from paydesk.domain.accounts.devices import see_device
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.accounts.people import findable
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.sessions import Stage, require_recent
from paydesk.domain.accounts.signing_in import confirm, log_in, open_another_shop, sign_up
from paydesk.domain.accounts.team import memberships_of


async def enter(gate: Gate, email: str, password: str, client: Client, **given: Any) -> None:
    await log_in(gate, email=email, password=password, client=client, now=given.get("now") or utc_now())


async def test_signing_up_opens_a_shop_in_test_mode_with_its_owner_logged_in(ada: Someone, database: Database) -> None:
    session = ada.session
    assert (session.stage, session.role, session.merchant_name) == (Stage.open, Role.owner, "Corner Shop")
    assert (session.test_mode, session.live, session.went_live_at) == (True, False, None)
    assert session.person.email_confirmed_at is None
    keys = await database.fetchval("select count(*) from merchant_key where merchant_id = $1", session.merchant_id)
    assert keys == 1
    assert await ada.done() == ["signed_up"]


async def test_the_password_rests_as_an_argon2id_hash_and_the_token_nowhere(ada: Someone, database: Database) -> None:
    stored = await database.fetchval("select password_hash from person where id = $1", ada.id)
    assert stored.startswith("$argon2id$")
    row = await database.fetchrow("select * from account_session where person_id = $1", ada.id)
    assert ada.token.encode() not in bytes(row["token_hash"])
    assert len(ada.token) >= 43


async def test_signing_up_asks_to_confirm_the_address(ada: Someone, mails: Mails) -> None:
    (mail,) = await mails(ada.email)
    assert (mail["kind"], mail["facts"]["name"], mail["state"]) == ("confirm_email", "Ada Lovelace", "due")


async def test_an_address_signs_up_once_however_it_is_spelled(gate: Gate, ada: Someone) -> None:
    before = await gate.database.fetchval("select count(*) from merchant")
    with pytest.raises(Conflict, match="log in, or reset"):
        await sign_up(
            gate,
            email=ada.email.upper().replace("PEOPLE.EXAMPLE", "people.example"),
            password=PASSWORD,
            name="Eve",
            shop_name="Eve's",
            client=new_client(),
            now=utc_now(),
        )
    assert await gate.database.fetchval("select count(*) from merchant") == before


async def test_of_parallel_sign_ups_with_one_address_one_succeeds_and_the_others_leave_nothing(gate: Gate) -> None:
    email, client = new_email(), new_client()
    shop = email.partition("@")[0]

    async def once() -> object:
        return await sign_up(
            gate, email=email, password=PASSWORD, name="A", shop_name=shop, client=client, now=utc_now()
        )

    ended = await asyncio.gather(*(once() for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(one, Conflict) for one in ended) == 4, ended
    assert await gate.database.fetchval("select count(*) from merchant where name = $1", shop) == 1


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"email": "nobody"}, "email"),
        ({"password": "eleven char"}, "password"),
        ({"password": "x" * 1025}, "password"),
        ({"name": " \x00 "}, "name"),
        ({"name": "a" * 101}, "name"),
        ({"shop_name": ""}, "shop_name"),
        ({"language": "../etc"}, "language"),
    ],
)
async def test_what_is_wrong_at_sign_up_is_named(gate: Gate, wrong: dict[str, str], field: str) -> None:
    given: dict[str, Any] = {"email": new_email(), "password": PASSWORD, "name": "A", "shop_name": "S", **wrong}
    with pytest.raises(Malformed) as raised:
        await sign_up(gate, **given, client=new_client(), now=utc_now())
    assert raised.value.fields == (field,)


async def test_logging_in_takes_the_address_in_any_case_and_the_password_as_it_is(ada: Someone, gate: Gate) -> None:
    await enter(gate, f"  {ada.email.upper()} ", PASSWORD, ada.client)
    with pytest.raises(NotLetIn):
        await enter(gate, ada.email, PASSWORD.upper(), ada.client)
    assert await ada.done() == ["signed_up", "logged_in", "log_in_failed"]


@pytest.mark.parametrize("email", ["nobody@people.example", "", "\x00", "a" * 5000, "' or 1=1 --", "\ud800@x"])
async def test_an_unknown_address_costs_the_same_hash_and_gets_the_same_answer(
    email: str, ada: Someone, gate: Gate, hasher: CountingHasher
) -> None:
    with pytest.raises(NotLetIn) as known:
        await enter(gate, ada.email, "a wrong password", ada.client)
    assert len(hasher.compared) == 1
    client = new_client()
    await lockout.forgive_all(gate.database, gate, lockout.ACCOUNT, f"nobody {findable(email).lower()}")
    with pytest.raises(NotLetIn) as unknown:
        await enter(gate, email, "a wrong password", client)
    assert len(hasher.compared) == 2
    assert hasher.compared[1].split("$")[1:4] == hasher.compared[0].split("$")[1:4]
    assert (unknown.value.message, unknown.value.status) == (known.value.message, known.value.status)


async def test_of_twenty_parallel_wrong_guesses_five_are_judged(
    ada: Someone, gate: Gate, hasher: CountingHasher
) -> None:
    now = utc_now()
    guesses = [enter(gate, ada.email, f"wrong guess number {n}", new_client(), now=now) for n in range(20)]
    ended = await asyncio.gather(*guesses, return_exceptions=True)
    assert [sum(isinstance(one, kind) for one in ended) for kind in (NotLetIn, TooMany)] == [5, 15]
    assert len(hasher.compared) == 5
    with pytest.raises(TooMany, match="wait 30 seconds") as locked:
        await ada.log_in(now=now)
    assert locked.value.retry_after == 30


async def test_a_lock_out_of_an_account_is_told_to_its_person_once(ada: Someone, mails: Mails) -> None:
    at = utc_now()
    for number in range(7):
        with pytest.raises(NotLetIn):
            await ada.log_in(password="a wrong guess", now=at + number * timedelta(hours=2))
        told = [one for one in await mails(ada.email) if one["facts"].get("what") == "log_in_failed"]
        assert len(told) == (number >= 4), "the fifth begins the first lock-out"
    assert told[0]["facts"]["client_address"] == ada.client.address


async def test_an_address_without_an_account_is_locked_out_the_same_way(gate: Gate) -> None:
    email, now = new_email(), utc_now()
    guesses = [enter(gate, email, f"wrong guess number {n}", new_client(), now=now) for n in range(20)]
    ended = await asyncio.gather(*guesses, return_exceptions=True)
    assert [sum(isinstance(one, kind) for one in ended) for kind in (NotLetIn, TooMany)] == [5, 15]


async def test_lock_outs_double_up_to_an_hour_and_waiting_helps(ada: Someone, gate: Gate) -> None:
    now, lasted = utc_now(), []
    for n in range(15):
        with pytest.raises(NotLetIn):
            await enter(gate, ada.email, f"wrong guess number {n}", new_client(), now=now)
        if n >= 4:
            with pytest.raises(TooMany) as locked:
                await ada.log_in(now=now)
            lasted.append(locked.value.retry_after)
            now += timedelta(seconds=locked.value.retry_after)
    assert lasted == [30, 60, 120, 240, 480, 1800, 1920, 3600, 3600, 3600, 3600]
    await ada.log_in(now=now)
    await ada.log_in(now=now)


async def test_a_right_password_takes_back_an_accounts_failures(ada: Someone, gate: Gate) -> None:
    for _ in range(3):
        for n in range(4):
            with pytest.raises(NotLetIn):
                await enter(gate, ada.email, f"wrong guess number {n}", new_client())
        await ada.log_in()


async def test_one_address_that_guesses_at_many_accounts_is_locked_out_whatever_it_succeeds_at(
    ada: Someone, gate: Gate
) -> None:
    client, now = new_client(), utc_now()
    for _ in range(19):
        with pytest.raises(NotLetIn):
            await enter(gate, new_email(), "a wrong password", client, now=now)
        await enter(gate, ada.email, PASSWORD, client, now=now)
    with pytest.raises(NotLetIn):
        await enter(gate, new_email(), "a wrong password", client, now=now)
    with pytest.raises(TooMany):
        await enter(gate, ada.email, PASSWORD, client, now=now)
    await enter(gate, ada.email, PASSWORD, new_client(), now=now)
    later = now + timedelta(seconds=31)
    await enter(gate, ada.email, PASSWORD, client, now=later)
    with pytest.raises(NotLetIn):
        await enter(gate, new_email(), "a wrong password", client, now=later)
    with pytest.raises(TooMany):
        await enter(gate, new_email(), "a wrong password", client, now=later + timedelta(seconds=59))


async def test_after_a_quiet_day_counting_starts_anew(ada: Someone, gate: Gate) -> None:
    now = utc_now()
    for n in range(5):
        with pytest.raises(NotLetIn):
            await enter(gate, ada.email, f"wrong guess number {n}", new_client(), now=now)
    tomorrow = now + timedelta(hours=25)
    for n in range(5):
        with pytest.raises(NotLetIn):
            await enter(gate, ada.email, f"wrong guess number {n}", new_client(), now=tomorrow)


async def test_a_hash_by_older_parameters_is_made_anew_at_log_in(ada: Someone, gate: Gate) -> None:
    stronger = Gate(gate.database, gate.vault, Passwords(hasher=PasswordHasher(1, 64, 1)))
    await enter(stronger, ada.email, PASSWORD, ada.client)
    stored = await gate.database.fetchval("select password_hash from person where id = $1", ada.id)
    assert "m=64,t=1,p=1" in stored
    await enter(stronger, ada.email, PASSWORD, ada.client)
    assert await gate.database.fetchval("select password_hash from person where id = $1", ada.id) == stored


async def test_the_password_given_again_lets_pass_for_ten_minutes(ada: Someone, gate: Gate) -> None:
    began = utc_now()
    require_recent(ada.session, now=began)
    later = began + timedelta(minutes=11)
    with pytest.raises(ConfirmationNeeded):
        require_recent(await ada.again(now=later), now=later)
    with pytest.raises(NotLetIn):
        await confirm(gate, ada.session, password="not the password", now=later)
    with pytest.raises(ConfirmationNeeded):
        require_recent(await ada.again(now=later), now=later)
    await confirm(gate, ada.session, password=PASSWORD, now=later)
    session = await ada.again(now=later)
    require_recent(session, now=later + timedelta(minutes=10))
    with pytest.raises(ConfirmationNeeded):
        require_recent(session, now=later + timedelta(minutes=10, seconds=1))
    with pytest.raises(ConfirmationNeeded):
        require_recent(session, now=later + timedelta(minutes=6), minutes=5)


async def test_guessing_at_the_password_again_is_counted_for_its_session_alone(ada: Someone, gate: Gate) -> None:
    now = utc_now()
    other = await ada.log_in(now=now)
    guesses = [confirm(gate, ada.session, password=f"wrong guess number {n}", now=now) for n in range(20)]
    ended = await asyncio.gather(*guesses, return_exceptions=True)
    assert [sum(isinstance(one, kind) for one in ended) for kind in (NotLetIn, TooMany)] == [5, 15]

    await ada.log_in(now=now)
    await confirm(gate, other.session, password=PASSWORD, now=now)


async def test_who_guesses_at_log_ins_stops_neither_open_sessions_nor_browsers_that_are_known(
    ada: Someone, gate: Gate, hasher: CountingHasher
) -> None:
    now, known = utc_now(), Client(new_client().address, device="ada's own browser")
    await see_device(gate, ada.session, known.device, now=now)
    for n in range(20):
        with pytest.raises((NotLetIn, TooMany)):
            await enter(
                gate, ada.email, f"wrong guess number {n}", Client(f"192.0.2.{n}", device="a stranger's"), now=now
            )
    with pytest.raises(TooMany):
        await enter(gate, ada.email, PASSWORD, new_client(), now=now)
    await confirm(gate, ada.session, password=PASSWORD, now=now)
    await enter(gate, ada.email, PASSWORD, known, now=now)
    with pytest.raises(TooMany):
        await enter(gate, ada.email, PASSWORD, new_client(), now=now)
    hasher.compared.clear()
    guesses = [enter(gate, ada.email, f"wrong guess number {n}", known, now=now) for n in range(20)]
    await asyncio.gather(*guesses, return_exceptions=True)
    assert len(hasher.compared) == 5, "a browser that is known has no more guesses than others"


async def test_a_browser_is_known_for_its_person_alone(ada: Someone, stranger: Someone, gate: Gate) -> None:
    now = utc_now()
    await see_device(gate, stranger.session, "the stranger's browser", now=now)
    theirs = Client(new_client().address, device="the stranger's browser")
    guesses = [enter(gate, ada.email, f"wrong guess number {n}", theirs, now=now) for n in range(5)]
    await asyncio.gather(*guesses, return_exceptions=True)
    with pytest.raises(TooMany):
        await enter(gate, ada.email, PASSWORD, theirs, now=now)


async def test_a_person_may_own_a_second_shop(ada: Someone, gate: Gate) -> None:
    second = await open_another_shop(gate, ada.session, shop_name="Second Shop", now=utc_now())
    owned = await memberships_of(gate, ada.id)
    assert [(one.merchant_name, one.role) for one in owned] == [
        ("Corner Shop", Role.owner),
        ("Second Shop", Role.owner),
    ]
    assert second in [one.merchant_id for one in owned]
