"""Which keys are needed is known at the start, from the indexes alone."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncIterator

import pytest
from tests import breaking, set_back

from paydesk.adapters.vault import Vault, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.core.errors import SetupError
from paydesk.database.pool import Database, connected
from paydesk.domain.mail.queueing import seal_fact
from paydesk.domain.merchants.merchant import Merchant, create_merchant
from paydesk.domain.sealing.needed_keys import keys_needed, queries, require_vault_keys
from paydesk.domain.sealing.resealing import PLACES, held, reseal


@pytest.fixture(autouse=True)
async def _no_accounts_left(database: Database) -> AsyncIterator[None]:
    """Accounts are the deployment's: every process would open them."""
    yield
    await breaking.no_accounts(database)


async def rest_everywhere(database: Database, vault: Vault) -> None:
    """Something rests under the vault's key in each place."""
    merchant = await create_merchant(database, vault, name="Corner Shop", email="o@shop.example", now=utc_now())
    key = vault.current_key_id
    await database.execute(
        "insert into card (merchant_id, live, number_sealed, vault_key_id, bin, last4, brand, exp_month, exp_year,"
        " holder, created_at) values ($1, false, '\\x00', $2, '', '', 'visa', 1, 2040, 'A', now())",
        merchant.id, key,
    )  # fmt: skip
    await database.execute(
        "insert into person (email, name, totp_sealed, vault_key_id, created_at) values ($1, 'A', '\\x00', $2, now())",
        f"{secrets.token_hex(6)}@shop.example", key,
    )  # fmt: skip
    await database.execute(
        "insert into business_profile (merchant_id, iban_sealed, vault_key_id, changed_at)"
        " values ($1, '\\x00', $2, now())",
        merchant.id, key,
    )  # fmt: skip
    texts = "legal_name, street, postal_code, city, country, registration, vat_number, website, support_email"
    nothing = ", ".join(["''"] * 14)
    texts += ", support_phone, description, goods, account_holder, iban_last4"
    await database.execute(
        f"insert into profile_change (merchant_id, iban_sealed, vault_key_id, proposed_at, proposed_by, {texts})"
        f" values ($1, '\\x00', $2, now(), 1, {nothing})",
        merchant.id, key,
    )  # fmt: skip
    await database.execute(
        "insert into mail (merchant_id, kind, recipient, language, facts, once, due_at, created_at)"
        " values ($1, 'reset', 'a@shop.example', 'en', $2, 'reset', now(), now())",
        merchant.id, json.dumps({"token": seal_fact(vault, "secret", row_id=1)}),
    )  # fmt: skip
    await set_back.account(database, key)


async def test_every_key_in_every_place_is_found(
    database: Database, merchant: Merchant, vault: Vault, deployment_keys: dict[str, str]
) -> None:
    other = Vault.from_settings(generate_key_setting(), deployment_keys["secret_key"])
    await rest_everywhere(database, other)
    needed = await keys_needed(database)
    assert set(needed[other.current_key_id]) == {place.name for place in PLACES}
    assert "private_keys" in needed[vault.current_key_id]
    counted = {(key, one.place.name) for one in await held(database) for key in one.by_key}
    found = {(key, place) for key, places in needed.items() for place in places}
    assert found <= counted, "what is counted one by one"
    assert {pair for pair in counted if pair[1] != "mail_facts"} <= found


async def test_a_start_without_a_key_names_it_and_says_what_to_do(own_database_url: str) -> None:
    old, new, secret = generate_key_setting(), generate_key_setting(), generate_secret()
    async with connected(own_database_url, most=2) as database:
        before = Vault.from_settings(old, secret)
        await rest_everywhere(database, before)
        await require_vault_keys(database, before)
        await require_vault_keys(database, Vault.from_settings(f"{new},{old}", secret))
        with pytest.raises(SetupError, match="put them back behind the first key") as refused:
            await require_vault_keys(database, Vault.from_settings(new, secret))
        assert f'"{before.current_key_id}"' in refused.value.message
        assert all(place.needed in refused.value.message for place in PLACES)
        await require_vault_keys(database, Vault.from_settings(new, secret), lost=frozenset({before.current_key_id}))
        with pytest.raises(SetupError, match="LOST_VAULT_KEYS"):
            await require_vault_keys(database, Vault.from_settings(new, secret), lost=frozenset({"another"}))
        await reseal(database, Vault.from_settings(f"{new},{old}", secret))
        await database.execute("delete from card; delete from profile_change; delete from business_profile")
        await breaking.no_accounts(database)
        await breaking.say(database, "person", {}, totp_sealed=None)
        await require_vault_keys(database, Vault.from_settings(new, secret))


async def test_it_asks_the_indexes_and_reads_no_table(database: Database) -> None:
    async with database.acquire() as connection, connection.transaction():
        await connection.execute("set local enable_seqscan = off")
        plan = "\n".join(row[0] for row in await connection.fetch(f"explain {queries.keys_needed.sql}"))
    tables = {place.table for place in PLACES}
    assert {name for name in tables if f"using {name}_sealed_under on" in plan} == tables
    assert not re.search(rf"Seq Scan on ({'|'.join(tables)})\b", plan)
