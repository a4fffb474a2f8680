"""A client in the field writes ids as `orderId.toString(8)`: a number in octal."""

from __future__ import annotations

from typing import Any

import pytest
from tests import breaking
from tests.databases import unguarded
from tests.standings import standings
from tests.web.api.conftest import subscribe

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop

OLD, MEANT = 32032, 13338
"""The octal text of the second is the decimal text of the first."""


@pytest.fixture
async def paid(customers: Any, database: Database, shop: Shop) -> int:
    """The id of a payment of 10 USD."""
    return await buy(customers, database, shop)


async def buy(customers: Any, database: Database, shop: Shop) -> int:
    await customers.buy()
    return int(await database.fetchval("select max(id) from payment where merchant_id = $1", shop.merchant_id))


async def rename(database: Database, shop: Shop, was: int, wanted: int) -> int:
    """Give a payment another id, with all that names it, as if it had come under that one."""
    async with database.acquire() as connection, connection.transaction(), unguarded(connection):
        for table in ("payment_attempt", "ledger_posting", "movement", "pingback"):
            await connection.execute(
                f"update {table} set payment_id = $3 where merchant_id = $1 and payment_id = $2",
                shop.merchant_id, was, wanted,
            )  # fmt: skip
        await breaking.say(connection, "payment", {"merchant_id": shop.merchant_id, "id": was}, id=wanted)
    return wanted


def kept(bank: Bank) -> list[int]:
    """What the bank's purchases hold, in the order in which they were made."""
    return [int(standing.net) for standing in standings(bank.record.operations()).values()]


async def test_every_id_ends_in_8_and_stays_below_2_to_the_53(database: Database, paid: int) -> None:
    rows = await database.fetch(
        "select sequencename as name, increment_by, max_value, min_value from pg_sequences"
        " where sequencename in ('payment_id_seq', 'subscription_id_seq')"
    )
    assert [(row["increment_by"], row["min_value"] % 10) for row in rows] == [(10, 8)] * 2
    assert all(row["max_value"] < 2**53 for row in rows)
    assert paid % 10 == 8
    for name in ("payment_id_seq", "subscription_id_seq"):
        drawn = await database.fetch(f"select nextval('{name}') as id from generate_series(1, 50)")
        assert {row["id"] % 10 for row in drawn} == {8}


async def test_a_payment_is_read_and_refunded_by_its_id_in_octal(server: Any, paid: int, bank: Bank) -> None:
    written = f"{paid:o}"
    assert (await server.call("GET", f"/api/v1/payments/{written}")).json()["data"]["payment_order"]["id"] == paid
    answered = await server.call("POST", f"/payment/{written}/refund", json={"amount": "4.00"})
    assert answered.status_code == 200, answered.text
    assert answered.json()["data"]["id"] == paid
    assert kept(bank) == [6]


async def test_a_payment_of_the_shops_own_with_that_id_is_meant_first(
    server: Any, customers: Any, database: Database, shop: Shop, paid: int, bank: Bank
) -> None:
    await rename(database, shop, paid, 1)
    other = await buy(customers, database, shop)
    await rename(database, shop, other, MEANT)
    await rename(database, shop, 1, OLD)
    answered = await server.call("POST", f"/payment/{OLD}/refund", json={"amount": "4.00"})
    assert answered.json()["data"]["id"] == OLD
    assert kept(bank) == [6, 10]


async def test_another_merchants_payment_is_never_meant(
    server_of: Any, database: Database, vault: Vault, paid: int, bank: Bank
) -> None:
    other = await create_merchant(database, vault, name="Other", email="other@shop.example", now=utc_now())
    written = f"{paid:o}"
    answered = await server_of(other.private_key).call("POST", f"/payment/{written}/refund", json={"amount": "4.00"})
    assert (answered.status_code, answered.json()["message"]) in [
        (404, f"there is no payment {one}") for one in (written, paid)
    ]
    assert kept(bank) == [10]


async def test_an_id_given_before_is_not_read_as_octal(
    server: Any, database: Database, shop: Shop, paid: int, bank: Bank
) -> None:
    await rename(database, shop, paid, MEANT + 1)
    answered = await server.call("POST", f"/payment/{MEANT + 1:o}/refund", json={"amount": "4.00"})
    assert answered.status_code == 404
    assert kept(bank) == [10]


@pytest.mark.parametrize("text", ["7" * 16, "1" * 18, "377777777777777770"])
async def test_an_octal_text_beyond_every_id_is_not_found(server: Any, paid: int, text: str) -> None:
    assert (await server.call("POST", f"/payment/{text}/refund", json={"amount": "4.00"})).status_code == 404


async def test_a_subscription_is_read_and_cancelled_by_its_id_in_octal(server: Any, customers: Any) -> None:
    subscription = (await subscribe(customers)).id
    written = f"{subscription:o}"
    assert subscription % 10 == 8
    assert (await server.call("GET", f"/api/v1/subscriptions/{written}")).json()["data"]["id"] == subscription
    cancelled = await server.call("POST", f"/api/subscription/{written}/cancel", json={})
    assert (cancelled.status_code, cancelled.json()["data"]["id"]) == (200, subscription)
    assert cancelled.json()["data"]["status"] == "Cancelled"
