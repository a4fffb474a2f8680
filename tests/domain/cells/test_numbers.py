"""Deployments that share out merchants draw their ids from ranges of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from decimal import Decimal

import pytest
from tests.conftest import migrated_database

from paydesk.adapters.vault import Vault
from paydesk.core.card_numbers import holds_card_number
from paydesk.core.clock import utc_now
from paydesk.core.errors import SetupError
from paydesk.database.migrating import known_migrations
from paydesk.database.pool import Database, connected
from paydesk.domain.cells.numbers import CELLS, IDS_OF_A_CELL, begin_cell, has_ids_like_cards, refuse_other_cell
from paydesk.domain.merchants.customer_links import Link, LinkTo, open_link
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.payout_files import Line
from paydesk.domain.operations.restoring import GAP, begin_epoch

DRAWN = """
select sequencename as name, increment_by as step, max_value as most,
       nextval(format('%I.%I', schemaname, sequencename)::regclass) as first
  from pg_sequences
 where schemaname = 'public'
"""
FIRST_STEP = 480
"""The step of the schema since which there are cells."""


@pytest.fixture
async def database(server_url: str) -> AsyncIterator[Database]:
    """A database that has given out nothing yet, and that stands alone."""
    async with migrated_database(server_url, cell=None) as url, connected(url, most=2) as pool:
        yield pool


async def test_every_id_of_a_cell_says_where_it_was_born(database: Database, vault: Vault) -> None:
    await begin_cell(database, 7)
    drawn = await database.fetch(DRAWN)
    assert len(drawn) > 30
    for one in drawn:
        assert (one["first"] // IDS_OF_A_CELL, one["most"] // IDS_OF_A_CELL) == (7, 7), one["name"]
        assert one["first"] % 10 == (8 if one["step"] == 10 else 1), one["name"]
    merchant = await create_merchant(database, vault, name="Corner Shop", email="o@shop.example", now=utc_now())
    assert merchant.id // IDS_OF_A_CELL == 7


async def test_a_deployment_that_stands_alone_has_ids_from_one_on(database: Database, vault: Vault) -> None:
    await begin_cell(database, None)
    await begin_cell(database, 0)
    merchant = await create_merchant(database, vault, name="Corner Shop", email="o@shop.example", now=utc_now())
    assert merchant.id == 1
    assert {one["first"] for one in await database.fetch(DRAWN)} <= {1, 2, 8}


async def test_ids_stay_in_their_cell_after_a_restore(database: Database) -> None:
    await begin_cell(database, 7)
    await begin_epoch(database)
    for one in await database.fetch(DRAWN):
        assert one["first"] // IDS_OF_A_CELL == 7
        assert one["first"] % IDS_OF_A_CELL > GAP


async def test_who_migrates_twice_or_at_once_has_the_same_cell(database: Database) -> None:
    await asyncio.gather(begin_cell(database, 7), begin_cell(database, 7))
    first = {one["name"]: one["first"] for one in await database.fetch(DRAWN)}
    await begin_cell(database, 7)
    assert all(one["first"] == first[one["name"]] + one["step"] for one in await database.fetch(DRAWN))


async def test_a_database_that_has_given_out_ids_stays_what_it_is(database: Database, vault: Vault) -> None:
    await create_merchant(database, vault, name="Corner Shop", email="o@shop.example", now=utc_now())
    with pytest.raises(SetupError, match=r"this database is cell 0, PAYDESK_CELL says 7.*take an empty one"):
        await begin_cell(database, 7)
    assert await database.fetchval("select max(start_value) from pg_sequences") == 8


async def test_a_cell_does_not_become_another(database: Database) -> None:
    await begin_cell(database, 7)
    with pytest.raises(SetupError, match="this database is cell 7, PAYDESK_CELL says 8"):
        await begin_cell(database, 8)
    with pytest.raises(SetupError, match="this database is cell 7, PAYDESK_CELL says 0"):
        await begin_cell(database, 0)
    assert {one["first"] // IDS_OF_A_CELL for one in await database.fetch(DRAWN)} == {7}


async def test_nobody_works_on_another_cells_database(database: Database) -> None:
    await begin_cell(database, 7)
    for same in (7, None):
        await refuse_other_cell(database, same)
    with pytest.raises(SetupError, match="correct PAYDESK_CELL or PAYDESK_DATABASE_URL"):
        await refuse_other_cell(database, 8)


async def test_a_number_whose_ids_look_like_cards_is_refused_and_another_named(database: Database) -> None:
    with pytest.raises(SetupError, match=r"cell 400 would begin like card numbers.*take another number, 590 for"):
        await begin_cell(database, 400)
    assert await database.fetchval("select cell from deployment") == 0


def test_no_id_of_a_cell_is_masked_as_a_card_number() -> None:
    free = [cell for cell in range(1, CELLS) if not has_ids_like_cards(cell)]
    assert len(free) > 500
    for cell in free:
        for first in range(0, IDS_OF_A_CELL - 10, IDS_OF_A_CELL // 7):
            # One of ten in a row has the right check digit.
            begin = cell * IDS_OF_A_CELL + first
            assert not any(holds_card_number(str(one)) for one in range(begin, begin + 10)), begin


def test_the_last_ids_fit_into_53_bits_and_into_links(vault: Vault) -> None:
    last = CELLS * IDS_OF_A_CELL - 1
    assert last < 2**53
    link = Link(LinkTo.CHECKOUT, Shop(last, live=False), last, seed="seed")
    opened = open_link(vault, LinkTo.CHECKOUT, link.token(vault))
    assert (opened.shop, opened.row_id) == (link.shop, last)


@pytest.mark.parametrize(("number", "reference"), [(17, "PAYOUT-17-17"), (8999999999999999, None)])
def test_a_transfers_reference_has_room_for_its_ids(number: int, reference: str | None) -> None:
    line = Line(number, number, "Corner Shop", Decimal(5), "EUR", None, open=True, account=None)
    assert line.reference == (reference or f"P-{number}-{number}")
    assert len(line.reference) <= 35, "an EndToEndId of ISO 20022"


async def test_a_sequence_of_a_later_step_draws_from_the_cells_range(database: Database) -> None:
    await begin_cell(database, 7)
    await database.execute("create sequence later_id_seq increment by 10 start with 8")
    await database.execute("select place_ids()")
    assert await database.fetchval("select nextval('later_id_seq')") == 7 * IDS_OF_A_CELL + 8


def test_every_later_step_places_its_sequences() -> None:
    for step in known_migrations():
        if step.number > FIRST_STEP and "create sequence" in step.sql:
            assert "select place_ids();" in step.sql.partition("create sequence")[2], step.name
