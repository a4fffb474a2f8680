"""The directory: which cell a merchant, a key or an address is in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.conftest import migrated_database
from tests.databases import knows_capitals

from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.cells.adding import add_cell, database_id, follow
from paydesk.domain.cells.directory import (
    Cell,
    Entry,
    Kind,
    Standing,
    TakenElsewhere,
    enter,
    find_cell,
    name_of,
    switch_merchant,
    this_cell,
)

HOME = Cell(0, "https://pay.example", "http://10.0.0.1:8000")
OTHER = Cell(2, "https://two.pay.example", "http://10.0.0.2:8000")
MERCHANT = 20_000_000_000_001


@pytest.fixture
async def database(server_url: str) -> AsyncIterator[Database]:
    """The home cell's database, which knows one other cell."""
    async with migrated_database(server_url, cell=None) as url, connected(url, most=4) as pool:
        await add_cell(pool, HOME, database_id=await database_id(pool), now=utc_now())
        await add_cell(pool, OTHER, database_id="two", now=utc_now())
        await follow(pool, HOME.number)
        yield pool


def entries(vault: Vault, merchant_id: int = MERCHANT, public: str = "public key") -> list[Entry]:
    """A merchant and its keys."""
    return [
        Entry(Kind.merchant, str(merchant_id), merchant_id),
        Entry(Kind.public_key, name_of(vault, Kind.public_key, public), merchant_id),
        Entry(Kind.private_key, name_of(vault, Kind.private_key, f"private of {public}"), merchant_id),
    ]


async def test_what_was_entered_leads_to_its_cell(database: Database, vault: Vault) -> None:
    email = Entry(Kind.email, name_of(vault, Kind.email, "Ann@Shop.example"))
    await enter(database, [*entries(vault), email], OTHER.number, now=utc_now())
    for one in (*entries(vault), Entry(Kind.email, name_of(vault, Kind.email, "ann@shop.EXAMPLE"))):
        assert await find_cell(database, one.kind, one.name) == OTHER
    assert await find_cell(database, Kind.merchant, "1") is None
    assert await find_cell(database, Kind.public_key, email.name) is None, "a name of another kind"


@pytest.mark.parametrize(("typed", "small"), [("İrem@shop.example", "irem@shop.example"), ("ΝΙΚΟΣ@x.gr", "νικοσ@x.gr")])
async def test_an_address_that_a_database_finds_is_found_between_cells(
    database: Database, vault: Vault, typed: str, small: str
) -> None:
    is_one = await database.fetchval("select lower($1) = $2", typed, small)
    assert is_one is await knows_capitals(database), "one account, where both are in one cell"
    await enter(database, [Entry(Kind.email, name_of(vault, Kind.email, typed))], OTHER.number, now=utc_now())
    assert await find_cell(database, Kind.email, name_of(vault, Kind.email, small)) == OTHER
    with pytest.raises(TakenElsewhere):
        await enter(database, [Entry(Kind.email, name_of(vault, Kind.email, small))], HOME.number, now=utc_now())


async def test_what_another_cell_has_is_refused_and_nothing_is_entered(database: Database, vault: Vault) -> None:
    await enter(database, entries(vault)[1:2], OTHER.number, now=utc_now())
    with pytest.raises(TakenElsewhere, match="this public key is in use in another cell") as refused:
        async with database.acquire() as connection, connection.transaction():
            await enter(connection, entries(vault, 1), HOME.number, now=utc_now())
    assert [one.kind for one in refused.value.entries] == [Kind.public_key]
    assert await find_cell(database, Kind.merchant, "1") is None


async def test_the_same_cell_takes_up_what_it_entered_before(database: Database, vault: Vault) -> None:
    for _ in range(2):
        await enter(database, entries(vault), OTHER.number, now=utc_now())
    await enter(database, entries(vault, MERCHANT + 10)[1:], OTHER.number, now=utc_now())
    left = {"left": OTHER.number, "to": HOME.number}
    assert await switch_merchant(database, MERCHANT, **left, now=utc_now()) == 1, "the keys are another's now"


async def test_of_two_cells_that_enter_at_once_one_gets_it(database: Database, vault: Vault) -> None:
    email = [Entry(Kind.email, name_of(vault, Kind.email, f"{number}@shop.example")) for number in range(20)]
    tries = (enter(database, [one], cell.number, now=utc_now()) for one in email for cell in (HOME, OTHER))
    refused = [one for one in await asyncio.gather(*tries, return_exceptions=True) if one is not None]
    assert all(isinstance(one, TakenElsewhere) for one in refused)
    assert len(refused) == len(email)


async def test_nothing_is_entered_for_a_cell_that_was_not_added(database: Database, vault: Vault) -> None:
    with pytest.raises(TakenElsewhere, match="or the cell is not added yet"):
        await enter(database, entries(vault), 7, now=utc_now())
    assert await find_cell(database, Kind.merchant, str(MERCHANT)) is None


async def test_a_merchant_switches_with_all_its_keys_and_leaves_people(database: Database, vault: Vault) -> None:
    email = Entry(Kind.email, name_of(vault, Kind.email, "ann@shop.example"))
    others = entries(vault, MERCHANT + 10, "another key")
    await enter(database, [*entries(vault), *others, email], OTHER.number, now=utc_now())
    left = OTHER.number
    assert await switch_merchant(database, MERCHANT, left=left, to=HOME.number, now=utc_now()) == 3
    for one in entries(vault):
        assert await find_cell(database, one.kind, one.name) == HOME
    for one in (*others, email):
        assert await find_cell(database, one.kind, one.name) == OTHER
    assert await switch_merchant(database, MERCHANT, left=left, to=HOME.number, now=utc_now()) == 0, "it is there"
    assert await switch_merchant(database, MERCHANT, left=7, to=left, now=utc_now()) == 0, "it has gone on since"
    assert await switch_merchant(database, MERCHANT, left=HOME.number, to=7, now=utc_now()) == 0, (
        "there is no such cell"
    )


async def test_a_database_knows_how_it_stands_among_cells(server_url: str, database: Database) -> None:
    standing = await this_cell(database)
    assert standing == Standing(0, 0)
    assert (standing.has_cells, standing.is_home) == (True, True)
    async with migrated_database(server_url, cell=7) as url, connected(url, most=1) as alone:
        assert await this_cell(alone) == Standing(7, None)
        assert not (await this_cell(alone)).has_cells
        await follow(alone, 0)
        standing = await this_cell(alone)
        assert (standing, standing.has_cells, standing.is_home) == (Standing(7, 0), True, False)


def test_names_are_the_same_in_all_cells_and_tell_nothing(vault: Vault, deployment_keys: dict[str, str]) -> None:
    other_cell = Vault.from_settings(**{**deployment_keys, "vault_keys": generate_key_setting()})
    stranger = Vault.from_settings(**{**deployment_keys, "secret_key": generate_secret()})
    for kind in (Kind.public_key, Kind.private_key, Kind.email):
        name = name_of(vault, kind, "a@b.example")
        assert name == name_of(other_cell, kind, "a@b.example") != name_of(stranger, kind, "a@b.example")
        assert len(name) == 64
    assert len({name_of(vault, kind, "a@b.example") for kind in Kind}) == len(Kind)
