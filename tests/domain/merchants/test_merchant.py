from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests import breaking

from paydesk import database as schema
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.money import FeePlan
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import (
    Merchant,
    change_merchant,
    create_merchant,
    find_merchant,
    list_merchants,
    shop_of,
)


async def test_a_new_merchant_is_in_test_mode_with_a_pair_of_keys_and_the_usual_fees(
    merchant: Merchant, database: Database
) -> None:
    assert merchant.test_mode
    assert merchant.went_live_at is None
    assert len(merchant.public_key) == 32
    assert len(merchant.private_key) == 48
    assert merchant.private_key not in repr(merchant)
    plan = await database.fetchrow("select * from fee_plan where merchant_id = $1", merchant.id)
    assert (plan["rate"], plan["fixed"], plan["reserve_rate"]) == (Decimal("0.03"), Decimal("0.30"), Decimal("0.05"))


async def test_a_fee_plan_of_its_own_is_kept(database: Database, vault: Vault) -> None:
    plan = FeePlan(Decimal("0.01"), Decimal("0.25"), Decimal(0))
    made = await create_merchant(database, vault, name="S", email="s@shop.example", fees=plan, now=utc_now())
    row = await database.fetchrow("select * from fee_plan where merchant_id = $1", made.id)
    assert (row["rate"], row["fixed"], row["reserve_rate"]) == (plan.rate, plan.fixed, plan.reserve_rate)


@pytest.mark.parametrize(
    "keys",
    [
        {"public_key": "a" * 32},
        {"private_key": "a" * 32},
        {"public_key": "short", "private_key": "b" * 32},
        {"public_key": "a" * 32, "private_key": "short"},
        {"public_key": "a" * 32, "private_key": "a" * 32},
        {"public_key": "ä" * 32, "private_key": "b" * 32},
    ],
)
async def test_keys_that_are_no_pair_are_refused(database: Database, vault: Vault, keys: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        await create_merchant(database, vault, name="S", email="s@shop.example", now=utc_now(), **keys)


async def test_a_key_belongs_to_one_merchant_and_a_refused_account_leaves_nothing(
    database: Database, vault: Vault, merchant: Merchant
) -> None:
    before = await database.fetchval("select count(*) from merchant")
    for public, private in ((merchant.public_key, "b" * 32), ("c" * 32, merchant.private_key)):
        with pytest.raises(Conflict):
            await create_merchant(
                database,
                vault,
                name="S",
                email="s@shop.example",
                now=utc_now(),
                public_key=public,
                private_key=private,
            )
    assert await database.fetchval("select count(*) from merchant") == before


async def test_accounts_are_found_and_listed_without_private_keys(database: Database, merchant: Merchant) -> None:
    found = await find_merchant(database, merchant.id)
    assert (found.name, found.private_key) == ("Corner Shop", "")
    listed = [one for one in await list_merchants(database) if one.id == merchant.id]
    assert [(one.public_key, one.private_key) for one in listed] == [(merchant.public_key, "")]
    with pytest.raises(NotFound, match="paydesk merchant list"):
        await find_merchant(database, 2**52)


async def test_a_change_leaves_alone_what_is_not_named(database: Database, merchant: Merchant) -> None:
    changed = await change_merchant(database, merchant.id, pingback_url="https://shop.example/", pingback_format="form")
    assert (changed.pingback_url, changed.pingback_format, changed.test_mode) == ("https://shop.example/", "form", True)
    changed = await change_merchant(database, merchant.id, test_mode=False)
    assert (changed.pingback_url, changed.test_mode) == ("https://shop.example/", False)
    assert (await change_merchant(database, merchant.id, pingback_url="")).pingback_url is None
    with pytest.raises(NotFound):
        await change_merchant(database, 2**52, test_mode=False)


def test_the_two_sides_of_a_merchant_are_not_equal() -> None:
    merchant: Any = type("M", (), {"id": 7})
    assert shop_of(merchant, live=True) != shop_of(merchant, live=False)


@pytest.mark.parametrize(
    ("before", "after"),
    [("Mars/Olympus", "UTC"), ("CET", "Europe/Brussels"), ("EET", "Europe/Athens"), ("Europe/Berlin", "Europe/Berlin")],
)
async def test_an_upgrade_gives_each_merchant_a_time_zone_that_the_database_knows(
    database: Database, merchant: Merchant, before: str, after: str
) -> None:
    await breaking.say(database, "merchant", {"id": merchant.id}, time_zone=before)
    sql = (Path(schema.__file__).parent / "migrations" / "0605_zones_the_database_knows.sql").read_text()
    await database.execute(sql)
    assert await database.fetchval("select time_zone from merchant where id = $1", merchant.id) == after
