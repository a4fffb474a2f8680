from __future__ import annotations

from datetime import timedelta

import pytest

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.domain.merchants import keys
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.refused_forms import forget_form_counts

HERE = "192.0.2.1"


async def test_a_private_key_rests_encrypted_and_is_found_by_its_public_one(
    database: Database, vault: Vault, merchant: Merchant
) -> None:
    row = await database.fetchrow("select * from merchant_key where merchant_id = $1", merchant.id)
    assert merchant.private_key.encode() not in row["private_key_sealed"]
    assert merchant.private_key.encode() not in row["private_key_lookup"]
    signer = await keys.find_signer(database, vault, merchant.public_key, HERE, utc_now())
    assert signer is not None
    assert (signer.merchant_id, signer.private_key, signer.key_id) == (merchant.id, merchant.private_key, row["id"])
    assert merchant.private_key not in repr(signer)


async def test_forms_are_counted_by_client_and_minute(database: Database, vault: Vault, merchant: Merchant) -> None:
    now = utc_now().replace(second=30, microsecond=0)

    async def count(address: str = HERE, seconds: int = 0) -> int:
        found = await keys.find_signer(database, vault, merchant.public_key, address, now + timedelta(seconds=seconds))
        assert found is not None
        return found.forms_this_minute

    assert [await count() for _ in range(3)] == [1, 2, 3]
    assert await count("192.0.2.2") == 1
    assert await count(seconds=29) == 4
    assert await count(seconds=31) == 1
    await forget_form_counts(database, before=now + timedelta(seconds=30))
    assert await count() == 1
    assert await count(seconds=31) == 2


async def test_an_unknown_key_is_nobodys_and_counts_nothing(database: Database, vault: Vault) -> None:
    before = await database.fetchval("select count(*) from form_count")
    assert await keys.find_signer(database, vault, "nobody", HERE, utc_now()) is None
    assert await database.fetchval("select count(*) from form_count") == before


async def test_an_old_key_signs_until_its_grace_ends_and_is_readable_after(
    database: Database, vault: Vault, merchant: Merchant
) -> None:
    now = utc_now()
    old = await database.fetchval(
        "update merchant_key set valid_until = $2 where merchant_id = $1 returning id",
        merchant.id,
        now + timedelta(hours=1),
    )
    new = await keys.add(database, vault, merchant.id, public="n" * 32, private="p" * 48, now=now)
    assert new > old
    assert await keys.find_signer(database, vault, merchant.public_key, HERE, now) is not None
    assert await keys.find_signer(database, vault, merchant.public_key, HERE, now + timedelta(hours=1)) is None
    assert await keys.private_key_of(database, vault, merchant.id, old) == merchant.private_key
    assert await keys.pairs_of(database, vault, merchant.id) == [
        ("n" * 32, "p" * 48),
        (merchant.public_key, merchant.private_key),
    ]


async def test_another_merchants_key_is_not_found(database: Database, vault: Vault, merchant: Merchant) -> None:
    key_id = await database.fetchval("select id from merchant_key where merchant_id = $1", merchant.id)
    with pytest.raises(NotFound):
        await keys.private_key_of(database, vault, merchant.id + 1, key_id)
