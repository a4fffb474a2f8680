"""What is new is entered at home before it is there: nothing is in two cells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
import pytest
from pyotp import TOTP
from structlog.testing import capture_logs
from tests import set_back
from tests.breaking import emptied
from tests.conftest import database_at, migrated_database
from tests.domain.accounts.someone import PASSWORD, CountingHasher, new_client

from paydesk.adapters.vault import Vault, generate_key_setting
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Unavailable
from paydesk.database.pool import Database, connected
from paydesk.database.statements import Connection
from paydesk.domain.accounts.access_needs import Gate, NotLetIn
from paydesk.domain.accounts.changing import ask_for_email_change, confirm_email
from paydesk.domain.accounts.housekeeping import forget_past_entries
from paydesk.domain.accounts.joining import sign_up_invited
from paydesk.domain.accounts.operators import create_operator
from paydesk.domain.accounts.passwords import Passwords
from paydesk.domain.accounts.roles import Role
from paydesk.domain.accounts.second_factor import PURPOSE, begin_enrolment, confirm_enrolment, pass_second_factor
from paydesk.domain.accounts.sessions import LoggedIn, Session
from paydesk.domain.accounts.signing_in import log_in, sign_up
from paydesk.domain.accounts.team import invite_first
from paydesk.domain.business.key_pairs import public_keys, rotate_keys
from paydesk.domain.cells.adding import add_cell, database_id, follow
from paydesk.domain.cells.checking import MEND, check_cells, enter_missing
from paydesk.domain.cells.comparing import compare, take_out
from paydesk.domain.cells.directory import Cell, Entry, Kind, cells_of_person, enter, find_cell, name_of
from paydesk.domain.cells.entering import ALONE, Entering, account_to_enter, email_to_enter
from paydesk.domain.mail.queueing import open_facts
from paydesk.domain.merchants.merchant import create_merchant, list_merchants, open_account
from paydesk.domain.moving.copying import queries as team_queries

HOME = Cell(0, "https://pay.example", "http://10.0.0.1:8000")
OTHER = Cell(2, "https://two.pay.example", "http://10.0.0.2:8000")


@dataclass(frozen=True, slots=True)
class Side:
    """One cell's way in."""

    cell: Cell
    gate: Gate

    @property
    def database(self) -> Database:
        return self.gate.database


@pytest.fixture
async def home(server_url: str, vault: Vault) -> AsyncIterator[Side]:
    """The home cell, which knows the other one."""
    async with migrated_database(server_url, cell=None) as url, connected(url, most=4) as pool:
        await add_cell(pool, HOME, database_id=await database_id(pool), now=utc_now())
        await add_cell(pool, OTHER, database_id="two", now=utc_now())
        await follow(pool, HOME.number)
        yield Side(HOME, Gate(pool, vault, Passwords(hasher=CountingHasher()), Entering(asks=True)))


@pytest.fixture
async def other(server_url: str, home: Side, deployment_keys: dict[str, str]) -> AsyncIterator[Side]:
    """Another cell, with vault keys of its own."""
    vault = Vault.from_settings(generate_key_setting(), deployment_keys["secret_key"])
    async with migrated_database(server_url, cell=2) as url, connected(url, most=4) as pool:
        await follow(pool, HOME.number)
        entering = Entering(asks=True, home=home.database)
        yield Side(OTHER, Gate(pool, vault, Passwords(hasher=CountingHasher()), entering))


@pytest.fixture(params=["home", "other"])
def either(request: pytest.FixtureRequest, home: Side, other: Side) -> Side:
    """Each of both."""
    return home if request.param == "home" else other


async def signed_up(side: Side, email: str) -> LoggedIn:
    """Somebody with a shop of their own."""
    return await sign_up(
        side.gate,
        email=email,
        password=PASSWORD,
        name="Ann",
        shop_name="Corner Shop",
        client=new_client(),
        now=utc_now(),
    )


async def agrees(side: Side, home: Side) -> bool:
    """Whether the directory says of a cell what it has, and nothing else."""
    later = utc_now() + timedelta(days=1)
    found = await compare(home.database, side.database, side.gate.vault, side.cell.number, now=later)
    return found.own > 0 and not (found.missing or found.elsewhere or found.spare or found.accounts)


async def test_all_that_is_made_is_in_the_directory(home: Side, either: Side) -> None:
    ann = await signed_up(either, "ann@shop.example")
    made = await create_merchant(
        either.database,
        either.gate.vault,
        name="Shop",
        email="o@shop.example",
        now=utc_now(),
        entering=either.gate.entering,
    )
    await create_operator(either.gate, email="operator@pay.example", now=utc_now())
    assert ann.session.merchant_id is not None
    (first,) = await public_keys(either.database, ann.session.merchant_id)
    pair = await rotate_keys(either.gate, ann.session, replaces=first.id, grace=timedelta(0), now=utc_now())
    for kind, value in (
        (Kind.merchant, str(made.id)),
        (Kind.public_key, made.public_key),
        (Kind.private_key, pair.private),
        (Kind.public_key, pair.public),
        (Kind.email, "ANN@shop.example"),
        (Kind.email, "operator@pay.example"),
    ):
        assert await find_cell(home.database, kind, name_of(home.gate.vault, kind, value)) == either.cell, kind
    assert await agrees(either, home)


async def test_a_key_of_another_cell_is_taken(home: Side, other: Side) -> None:
    keys: dict[str, Any] = {"public_key": "a public key", "private_key": "a private key of somebody"}
    for side in (home, other):
        given: dict[str, Any] = {
            "name": "Shop",
            "email": "o@shop.example",
            "now": utc_now(),
            "entering": side.gate.entering,
        }
        if side is home:
            await create_merchant(side.database, side.gate.vault, **given, **keys)
            continue
        with pytest.raises(Conflict, match="this key already belongs to a merchant"):
            await create_merchant(side.database, side.gate.vault, **given, **keys)
    assert await list_merchants(other.database) == []


async def test_an_address_of_another_cell_is_refused_in_the_same_words(home: Side, other: Side) -> None:
    await signed_up(home, "ann@shop.example")
    said = set()
    for side in (home, other):
        with pytest.raises(Conflict) as refused:
            await signed_up(side, "Ann@shop.example")
        said.add(str(refused.value))
    assert said == {"Ann@shop.example has an account already; log in, or reset the password"}
    assert await list_merchants(other.database) == []


async def test_an_operator_may_be_one_in_each_cell(home: Side, other: Side) -> None:
    await signed_up(home, "ann@shop.example")
    await create_operator(other.gate, email="Ann@shop.example", now=utc_now())
    assert await cells_of_person(home.database, home.gate.vault, "ANN@shop.example") == [HOME, OTHER]
    assert await cells_of_person(home.database, home.gate.vault, "nobody@shop.example") == []
    assert await agrees(home, home)
    assert await agrees(other, home)


async def test_who_is_invited_joins_in_another_cell_than_their_own(home: Side, other: Side) -> None:
    await signed_up(home, "ann@shop.example")
    ben = await signed_up(other, "ben@shop.example")
    assert ben.session.merchant_id is not None
    now = utc_now()
    sent = await invite_first(other.gate, ben.session.merchant_id, email="Ann@shop.example", role=Role.support, now=now)
    await sign_up_invited(other.gate, sent.token, name="Ann", password=PASSWORD, client=new_client(), now=now)
    assert await cells_of_person(home.database, home.gate.vault, "ann@shop.example") == [HOME, OTHER]
    assert await agrees(home, home)
    assert await agrees(other, home)


async def test_a_lost_line_of_an_account_is_entered_again(home: Side, other: Side, either: Side) -> None:
    """As a failover of home loses it; whose account it may not be stays in one cell."""
    first = other if either is home else home
    for email in ("ann@shop.example", "ben@shop.example"):
        await signed_up(first, email)
    await create_operator(either.gate, email="Ann@shop.example", now=utc_now())
    await set_back.somebody(either.database, "ben@shop.example")
    line = account_to_enter(home.gate.vault, "ann@shop.example", either.cell.number)
    assert await take_out(home.database, [line], either.cell.number, now=utc_now() + timedelta(days=1)) == 1
    found = await check_cells(home.database, {OTHER.number: other.database}, home.gate.vault, now=utc_now())
    words = "it has accounts of people whom the directory knows elsewhere alone: Ann@shop.example"
    assert [one.to_do for one in found if one.cell == either.cell.number and words in one.what] == [MEND]
    await enter_missing(home.database, either.database, home.gate.vault, either.cell.number, now=utc_now())
    assert await cells_of_person(home.database, home.gate.vault, "ann@shop.example") == [HOME, OTHER]
    assert await cells_of_person(home.database, home.gate.vault, "ben@shop.example") == [first.cell]


async def test_a_line_of_somebody_without_an_account_is_spare(home: Side, other: Side) -> None:
    await signed_up(other, "ben@shop.example")
    gone = account_to_enter(home.gate.vault, "gone@shop.example", OTHER.number)
    await enter(home.database, [gone], OTHER.number, now=utc_now())
    later = utc_now() + timedelta(days=1)
    found = await compare(home.database, other.database, other.gate.vault, OTHER.number, now=later)
    assert found.spare == (gone,)


async def test_nobody_takes_the_address_of_another_cells_person(home: Side, other: Side) -> None:
    await signed_up(home, "ann@shop.example")
    ben = await signed_up(other, "ben@shop.example")
    for address, taken in (("ann@shop.example", True), ("ben@new.example", False)):
        await ask_for_email_change(other.gate, ben.session, email=address, now=utc_now())
        token = await _link(other, address)
        if taken:
            with pytest.raises(Conflict, match="another account has this address"):
                await confirm_email(other.gate, token, client=new_client(), now=utc_now())
        else:
            await confirm_email(other.gate, token, client=new_client(), now=utc_now())
    name = name_of(home.gate.vault, Kind.email, "ben@new.example")
    assert await find_cell(home.database, Kind.email, name) == OTHER


async def test_who_has_accounts_in_two_cells_changes_their_address_in_both(
    home: Side, other: Side, either: Side
) -> None:
    """Logged in as whose address it becomes, or others would get in who had asked for it."""
    changed = other if either is home else home
    await signed_up(changed, "ann@new.example")
    ann, ben = [await signed_up(either, email) for email in ("ann@old.example", "ben@shop.example")]
    await ask_for_email_change(either.gate, ann.session, email="ann@new.example", now=utc_now())
    token = await _link(either, "ann@new.example")
    for session in (None, ben.session):
        with pytest.raises(Conflict, match="has this address; if both are yours, log in here and open the link"):
            await confirm_email(either.gate, token, client=new_client(), now=utc_now(), logged_in=session)
    await confirm_email(either.gate, token, client=new_client(), now=utc_now(), logged_in=ann.session)
    assert await cells_of_person(home.database, home.gate.vault, "ann@new.example") == [HOME, OTHER]
    assert await agrees(changed, home)


@dataclass(frozen=True, slots=True)
class TwoFactors:
    """Somebody who has gone along to the other cell: one second factor, and its recovery codes."""

    email: str
    secret: str
    codes: tuple[str, ...]
    at: datetime
    """When they log in: some steps after the code by which they have set it up."""

    async def asked(self, side: Side) -> Session:
        """Logged in by password in a cell, which asks for a code."""
        given = {"email": self.email, "password": PASSWORD, "client": new_client(), "now": self.at}
        return (await log_in(side.gate, **given)).session  # type: ignore[arg-type]

    async def gets_in(self, side: Side, code: str, *, now: datetime | None = None) -> bool:
        """Whether a code opens a session of theirs in a cell."""
        try:
            await pass_second_factor(side.gate, await self.asked(side), code, now=now or self.at)
        except NotLetIn:
            return False
        return True


@pytest.fixture
async def ann(home: Side, other: Side) -> TwoFactors:
    now, email = utc_now(), "ann@shop.example"
    session = (await signed_up(home, email)).session
    secret = (await begin_enrolment(home.gate, session, now=now)).secret
    enrolled = await confirm_enrolment(home.gate, session, TOTP(secret).at(now), now=now)
    row = await home.database.fetchval("select to_jsonb(p)::text from person p where id = $1", session.person.id)
    own = other.gate.vault.seal(secret.encode(), purpose=PURPOSE, merchant_id=0, row_id=session.person.id)
    await team_queries.add_person(other.database, person=row, totp_sealed=own.blob, vault_key_id=own.key_id)
    for number, cell in enumerate((HOME, OTHER)):
        await add_cell(other.database, cell, database_id=str(number), now=now)
    for side in (home, other):
        await enter(side.database, [email_to_enter(home.gate.vault, email)], HOME.number, now=now)
        await enter(side.database, [account_to_enter(home.gate.vault, email, 2)], OTHER.number, now=now)
    return TwoFactors(email, secret, enrolled.codes, now + timedelta(minutes=2))


async def test_a_recovery_code_that_was_used_in_one_cell_opens_nothing_in_the_other(
    home: Side, other: Side, either: Side, ann: TwoFactors
) -> None:
    second = other if either is home else home
    assert await ann.gets_in(either, ann.codes[0])
    assert not await ann.gets_in(second, ann.codes[0])
    assert await ann.gets_in(second, ann.codes[1])
    assert not await ann.gets_in(either, ann.codes[1])
    assert not await ann.gets_in(either, ann.codes[0])


async def test_a_code_of_the_app_that_was_used_in_one_cell_opens_nothing_in_the_other(
    home: Side, other: Side, either: Side, ann: TwoFactors
) -> None:
    second = other if either is home else home
    code, following = TOTP(ann.secret).at(ann.at), ann.at + timedelta(seconds=30)
    assert await ann.gets_in(either, code)
    assert not await ann.gets_in(second, code)
    assert await ann.gets_in(second, TOTP(ann.secret).at(following), now=following)


async def test_nobody_is_kept_out_by_homes_absence(home: Side, other: Side, ann: TwoFactors) -> None:
    """What the other cell's copy knows is refused all the same."""
    alone = replace(other, gate=replace(other.gate, entering=Entering(asks=True)))
    assert await ann.gets_in(alone, ann.codes[0])
    assert await ann.gets_in(home, ann.codes[1])
    for line in await home.database.fetch("select name from directory where kind = 'recovery_code'"):
        await enter(other.database, [Entry(Kind.recovery_code, line["name"])], HOME.number, now=ann.at)
    assert not await ann.gets_in(alone, ann.codes[1])


@pytest.mark.parametrize("gets_in", [False, True])
async def test_nobody_is_kept_out_by_a_home_that_refuses_their_cell(
    server_url: str, home: Side, other: Side, ann: TwoFactors, gets_in: bool
) -> None:
    """Which lets its role not in any more, or not write."""

    async def may_not_write(connection: Connection) -> None:
        await connection.execute("set role pg_monitor")

    url = database_at(server_url, await home.database.fetchval("select current_database()"))
    parts = urlsplit(url)
    nobodys = urlunsplit(parts._replace(netloc=f"nobody:wrong@{parts.netloc.rpartition('@')[2]}"))
    async with connected(url if gets_in else nobodys, least=0, most=1, meet=may_not_write) as refusing:
        alone = replace(other, gate=replace(other.gate, entering=Entering(asks=True, home=refusing)))
        with capture_logs() as logs:
            assert await ann.gets_in(alone, ann.codes[0])
    (why,) = [one["why"] for one in logs if one["log_level"] == "error"]
    assert why.startswith("InsufficientPrivilege" if gets_in else "Invalid")


async def test_nobody_is_kept_out_by_a_home_from_before_their_cell(home: Side, other: Side, ann: TwoFactors) -> None:
    """What was used elsewhere is refused all the same, and stays as good as it was."""
    assert await ann.gets_in(home, ann.codes[1])
    await emptied(home.database, "cell")
    await add_cell(home.database, HOME, database_id="0", now=ann.at)
    assert not await ann.gets_in(other, ann.codes[1])
    assert await ann.gets_in(other, ann.codes[0])
    assert not await ann.gets_in(other, ann.codes[0])


async def test_codes_that_were_used_are_no_difference_and_those_of_apps_are_forgotten(
    home: Side, other: Side, ann: TwoFactors
) -> None:
    assert await ann.gets_in(other, ann.codes[0])
    assert await ann.gets_in(other, TOTP(ann.secret).at(ann.at))
    found = await compare(home.database, other.database, other.gate.vault, 2, now=ann.at + timedelta(days=1))
    assert found.spare == ()
    kept = "select kind from directory where kind in ('recovery_code', 'totp_step') order by 1"
    for later, kinds in ((9, ["recovery_code", "totp_step"]), (11, ["recovery_code"])):
        await forget_past_entries(home.database, now=ann.at + timedelta(minutes=later))
        assert [row["kind"] for row in await home.database.fetch(kept)] == kinds


async def _link(side: Side, address: str) -> str:
    """The token of the newest mail to an address."""
    facts = await side.database.fetchval(
        "select facts from mail where recipient = $1 order by id desc limit 1", address
    )
    return str(open_facts(side.gate.vault, msgspec.json.decode(facts))["token"])


async def test_without_home_nothing_new_is_made_and_all_else_goes_on(home: Side, other: Side) -> None:
    await signed_up(other, "ben@shop.example")
    before = await list_merchants(other.database)
    async with connected("postgresql://nobody@127.0.0.1:1/none", least=0, most=1) as nowhere:
        for away in (Entering(asks=True, home=nowhere), Entering(asks=True)):
            gate = replace(other.gate, entering=away)
            with pytest.raises(Unavailable, match="nothing was changed, and all else goes on"):
                await signed_up(Side(OTHER, gate), "cid@shop.example")
            await log_in(gate, email="ben@shop.example", password=PASSWORD, client=new_client(), now=utc_now())
    assert await list_merchants(other.database) == before


async def test_what_was_entered_for_nothing_is_taken_up_by_the_next_try(home: Side, other: Side) -> None:
    class Died(Exception):
        """The cell's own write came to nothing."""

    given: dict[str, Any] = {
        "name": "Shop",
        "email": "o@shop.example",
        "now": utc_now(),
        "entering": other.gate.entering,
    }
    keys: dict[str, Any] = {"public_key": "a public key", "private_key": "a private key of somebody"}

    async def dies() -> None:
        async with other.database.acquire() as connection, connection.transaction():
            await open_account(connection, other.gate.vault, **given, **keys)
            raise Died

    with pytest.raises(Died):
        await dies()
    name = name_of(home.gate.vault, Kind.public_key, "a public key")
    assert await find_cell(home.database, Kind.public_key, name) == OTHER
    made = await create_merchant(other.database, other.gate.vault, **given, **keys)
    entered = await home.database.fetchval("select merchant_id from directory where name = $1", name)
    assert entered == made.id


async def test_a_deployment_without_cells_asks_nothing(database: Database, vault: Vault) -> None:
    await ALONE.enter(None, [], now=utc_now())  # type: ignore[arg-type]
    await create_merchant(
        database, vault, name="Shop", email="o@shop.example", now=utc_now(), entering=Entering(asks=True)
    )
    assert await database.fetchval("select count(*) from directory") == 0
