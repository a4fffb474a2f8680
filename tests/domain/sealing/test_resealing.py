"""Each column that holds sealed values is known, says who needs what is in it,
and moves to the newest key.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from tests import breaking, set_back
from tests.banks import ObedientBank
from tests.conftest import propose_change
from tests.domain.subscriptions.test_card_numbers import buy, challenging
from tests.shopfront import MONTHLY
from tests.till import Till

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.adapters.vault import Sealed, Vault, generate_key_setting
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.mail.queueing import PURPOSE, open_facts, seal_fact
from paydesk.domain.merchants.keys import pairs_of
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.challenges import leave_challenge
from paydesk.domain.payments.checkouts import find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.results import ConfirmWithBank, Refused
from paydesk.domain.sealing.resealing import (
    BATCH,
    PLACES,
    forget_spare_numbers,
    held,
    merchants_with_numbers,
    queries,
    reseal,
)
from paydesk.domain.subscriptions.ending import cancel

NUMBER = "4242424242424242"


@pytest.fixture
def new_key() -> str:
    """A key that is put in front."""
    return generate_key_setting()


@pytest.fixture
def newer(new_key: str, deployment_keys: dict[str, str]) -> Vault:
    """The deployment's vault after that."""
    return Vault.from_settings(f"{new_key},{deployment_keys['vault_keys']}", deployment_keys["secret_key"])


@pytest.fixture(autouse=True)
async def _no_accounts_left(database: Database) -> AsyncIterator[None]:
    """Accounts are the deployment's: every process would open them."""
    yield
    await breaking.no_accounts(database)


@pytest.fixture(autouse=True)
async def _sealed_as_before(database: Database, new_key: str, deployment_keys: dict[str, str]) -> AsyncIterator[None]:
    """What other tests have sealed opens for them afterwards."""
    yield
    await reseal(
        database, Vault.from_settings(f"{deployment_keys['vault_keys']},{new_key}", deployment_keys["secret_key"])
    )


@pytest.fixture
async def whole(database: Database, merchant: Merchant, vault: Vault, shop: Shop, desk: Desk) -> Till:
    """One sealed value in each place, of the merchant or of a person of this test's own."""
    club = Till(desk, shop).at(ObedientBank())
    await club.subscribe()
    person = await set_back.somebody(database)
    totp = vault.seal(b"SECRET", purpose="second factor", merchant_id=0, row_id=person)
    await breaking.say(database, "person", {"id": person}, totp_sealed=totp.blob, vault_key_id=totp.key_id)
    iban = vault.seal(b"DE02", purpose="bank account", merchant_id=merchant.id, row_id=merchant.id)
    await database.execute(
        "insert into business_profile (merchant_id, iban_sealed, vault_key_id, changed_at) values ($1, $2, $3, now())",
        merchant.id, iban.blob, iban.key_id,
    )  # fmt: skip
    await propose_change(database, merchant.id, iban=iban)
    facts = {"link": seal_fact(vault, "token", row_id=person), "name": "Ada", "count": 3}
    await database.execute(
        "insert into mail (merchant_id, kind, recipient, language, facts, once, due_at, created_at)"
        " values ($1, 'reset', 'a@shop.example', 'en', $2, 'reset', now(), now())",
        merchant.id, json.dumps(facts),
    )  # fmt: skip
    account = await set_back.account(database, vault.current_key_id)
    key = vault.seal(b"sk_live_1", purpose="acquirer key", merchant_id=0, row_id=account)
    await breaking.say(database, "acquirer_account", {"id": account}, key_sealed=key.blob)
    secret = vault.seal(b"whsec_1", purpose="acquirer webhook secret", merchant_id=0, row_id=account)
    await breaking.say(
        database, "acquirer_account", {"id": account}, webhook_sealed=secret.blob, webhook_key_id=secret.key_id
    )
    return club


async def keys_of(database: Database, vault: Vault) -> dict[str, int]:
    """How many values of each place are not under the vault's newest key,
    among those that it can open.
    """
    return {
        one.place.name: sum(n for key, n in one.by_key.items() if key != vault.current_key_id and vault.knows(key))
        for one in await held(database)
    }


async def test_the_places_are_all_the_columns_that_hold_sealed_values(database: Database) -> None:
    columns = await database.fetch(
        "select table_name, column_name from information_schema.columns"
        " where table_schema = 'public' and column_name like '%sealed%'"
    )
    keyed = await database.fetch(
        "select table_name from information_schema.columns"
        " where table_schema = 'public' and column_name = 'vault_key_id'"
    )
    in_columns = {(place.table, place.column) for place in PLACES if place.purpose is not None}
    assert {(row["table_name"], row["column_name"]) for row in columns} == in_columns
    assert {row["table_name"] for row in keyed} == {table for table, _ in in_columns}
    assert [(place.table, place.column) for place in PLACES if place.purpose is None] == [("mail", "facts")]
    assert all(place.needed.startswith("to ") for place in PLACES)


async def test_who_needs_what_is_kept(database: Database, whole: Till, merchant: Merchant) -> None:
    """One customer subscribed; others paid once, were declined, left their bank or ended:
    one number is there.
    """
    await buy(whole, None)
    await cancel(database, whole.shop, (await whole.subscribe(order="ended")).id, by="api", now=utc_now())
    _, declined = await buy(whole.at(ObedientBank(refuse=DeclineReason.INSUFFICIENT_FUNDS)), MONTHLY)
    token, left = await buy(challenging(whole), MONTHLY)
    assert (type(declined), type(left)) == (Refused, ConfirmWithBank)
    checkout = await find_checkout(database, token, now=utc_now())
    assert checkout.attempt is not None
    await leave_challenge(challenging(whole).desk, checkout, checkout.attempt, now=utc_now())
    counts = {
        place.name: await database.fetchval(
            f"select count({place.column}) from {place.table} where merchant_id = $1", merchant.id
        )
        for place in PLACES
        if place.table not in ("person", "acquirer_account")
    }
    assert counts == dict.fromkeys(
        ("private_keys", "card_numbers", "bank_accounts", "proposed_accounts", "mail_facts"), 1
    )
    rows = await database.fetch(
        "select s.state, a.state as attempt, c.number_sealed is not null as kept"
        "  from payment_attempt a"
        "  join card c on c.merchant_id = a.merchant_id and c.id = a.card_id"
        "  left join subscription s on s.merchant_id = a.merchant_id and s.card_id = c.id"
        " where a.merchant_id = $1 order by a.id",
        merchant.id,
    )
    assert [tuple(row) for row in rows] == [
        ("Active", "approved", True),
        (None, "approved", False),
        ("Cancelled", "approved", False),
        (None, "declined", False),
        (None, "abandoned", False),
    ]


async def test_everything_moves_to_the_newest_key_and_still_opens(
    database: Database,
    whole: Till,
    merchant: Merchant,
    newer: Vault,
    new_key: str,
    deployment_keys: dict[str, str],
) -> None:
    assert all(count >= 1 for count in (await keys_of(database, newer)).values())
    looked: list[None] = []
    moved = await reseal(database, newer, report=lambda: looked.append(None))
    assert set(moved) == {place.name for place in PLACES}
    assert len(looked) >= sum(moved.values()) >= len(PLACES)
    for place in ("merchant_key", "card", "business_profile", "profile_change"):
        keys = await database.fetch(f"select vault_key_id from {place} where merchant_id = $1", merchant.id)
        assert [row["vault_key_id"] for row in keys] == [newer.current_key_id], place
    alone = Vault.from_settings(new_key, deployment_keys["secret_key"])
    assert await pairs_of(database, alone, merchant.id) == [(merchant.public_key, merchant.private_key)]
    card = await database.fetchrow("select * from card where merchant_id = $1", merchant.id)
    bound = {"purpose": "card number", "merchant_id": merchant.id, "row_id": card["id"]}
    assert alone.open(Sealed(card["vault_key_id"], card["number_sealed"]), **bound) == NUMBER.encode()
    account = await database.fetchrow("select * from acquirer_account order by id desc limit 1")
    bound = {"purpose": "acquirer key", "merchant_id": 0, "row_id": account["id"]}
    assert alone.open(Sealed(account["vault_key_id"], account["key_sealed"]), **bound) == b"sk_live_1"
    bound = {"purpose": "acquirer webhook secret", "merchant_id": 0, "row_id": account["id"]}
    assert alone.open(Sealed(account["webhook_key_id"], account["webhook_sealed"]), **bound) == b"whsec_1"
    facts = json.loads(await database.fetchval("select facts from mail where merchant_id = $1", merchant.id))
    assert open_facts(alone, facts) == {"link": "token", "name": "Ada", "count": 3}
    assert (PURPOSE, set(facts["link"])) == ("mail", {"sealed", "vault_key_id", "row_id"})
    bound = {"purpose": "bank account", "merchant_id": merchant.id, "row_id": merchant.id}
    for place in ("business_profile", "profile_change"):
        profile = await database.fetchrow(f"select * from {place} where merchant_id = $1", merchant.id)
        assert alone.open(Sealed(profile["vault_key_id"], profile["iban_sealed"]), **bound) == b"DE02"
    assert sum((await reseal(database, newer)).values()) == 0, "a second time there is nothing to do"


async def test_it_goes_on_where_it_was_stopped(
    database: Database, merchant: Merchant, vault: Vault, newer: Vault
) -> None:
    await database.execute(
        "insert into merchant_key (merchant_id, public_key, private_key_lookup, private_key_sealed, vault_key_id,"
        " created_at) select $1::bigint, 'p' || n || '-' || $1::bigint,"
        " sha256(('l' || n || '-' || $1::bigint)::bytea), '\\x00', 'lost-' || $1::bigint, now()"
        " from generate_series(1, $2::integer) n",
        merchant.id, BATCH + 10,
    )  # fmt: skip

    seen: list[None] = []

    def stop() -> None:
        seen.append(None)
        if len(seen) == BATCH:
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        await reseal(database, newer, report=stop)
    await reseal(database, newer)
    left = {one.place.name: one.by_key for one in await held(database)}["private_keys"]
    assert left[f"lost-{merchant.id}"] == BATCH + 10, "what can't be opened stays, and stops nothing"
    assert (vault.current_key_id in left, left[newer.current_key_id] >= 1) == (False, True)


async def test_what_is_erased_meanwhile_stays_erased(
    database: Database, whole: Till, merchant: Merchant, newer: Vault
) -> None:
    """Between reading a batch and writing it, the subscription is cancelled."""
    (place,) = (place for place in PLACES if place.name == "card_numbers")
    rows = queries.read_card_numbers(database, after_merchant=-1, after_id=-1, key_id=newer.current_key_id, most=BATCH)
    (row,) = [row async for row in rows if row["merchant_id"] == merchant.id]
    subscription = await database.fetchval("select id from subscription where merchant_id = $1", merchant.id)
    await cancel(database, whole.shop, subscription, by="api", now=utc_now())
    written = await queries.write_card_numbers(
        database, merchant_ids=[merchant.id], ids=[row["id"]], were=[row["was"]], blobs=[b"x"], key_id="k"
    )
    assert (written, place.table) == (0, "card")
    assert await database.fetchval("select number_sealed from card where merchant_id = $1", merchant.id) is None


async def test_numbers_that_an_older_process_left_are_erased(
    database: Database, whole: Till, merchant: Merchant
) -> None:
    await cancel(database, whole.shop, (await whole.subscribe(order="ended")).id, by="api", now=utc_now())
    await breaking.say(database, "card", {"merchant_id": merchant.id}, number_sealed=bytes.fromhex("01"))
    assert merchant.id in await merchants_with_numbers(database)
    assert await forget_spare_numbers(database, merchant.id, ["stripe"], now=utc_now()) == 1
    assert await forget_spare_numbers(database, merchant.id, ["stripe"], now=utc_now() + timedelta(days=1)) == 0
    assert await forget_spare_numbers(database, merchant.id, ["simulator"], now=utc_now()) == 1
