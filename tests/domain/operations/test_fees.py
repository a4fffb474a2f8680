"""Fees have amounts per currency: set by hand where that was agreed, else by a published rule."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests import breaking

from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed, NotFound
from paydesk.core.units import UNITS, in_currency
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business.acting import REFUND_LIMIT
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.fees import fee_amounts, follow_the_rule, set_fee_amounts

OPERATE = Path(__file__).parents[3] / "docs" / "operate.md"
Fees = Callable[..., Awaitable[tuple[Any, Any]]]


@pytest.fixture
def fees(database: Database, shop: Shop) -> Fees:
    """The fixed part and the fee of a chargeback, as statements read them."""

    async def read(currency: str) -> tuple[Any, Any]:
        row = await database.fetchrow("select * from fees_in($1, $2)", shop.merchant_id, currency)
        return row["fixed"], row["chargeback_fee"]

    return read


@pytest.fixture
def pay_in(database: Database, buy: Any) -> Callable[[str, str], Awaitable[Any]]:
    """A customer pays an amount in a currency; the payment's row."""

    async def pay(currency: str, amount: str) -> Any:
        payment_id = await buy(order=secrets.token_hex(4), currency=currency, amount=amount)
        return await database.fetchrow("select * from payment where id = $1", payment_id)

    return pay


async def set_to(database: Database, shop: Shop, currency: str, fixed: str, chargeback_fee: str) -> None:
    await set_fee_amounts(
        database, COMMAND_LINE, shop.merchant_id, currency,
        fixed=Decimal(fixed), chargeback_fee=Decimal(chargeback_fee), now=utc_now(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("currency", "fixed", "chargeback_fee"),
    [("USD", "0.30", "15"), ("EUR", "0.30", "15"), ("GBP", "0.30", "15"), ("CHF", "0.30", "15"),
     ("JPY", "30", "1500"), ("KRW", "300", "15000"), ("KWD", "0.06", "3")],
)  # fmt: skip
async def test_the_usual_fees_are_worth_about_the_same_in_every_currency(
    fees: Fees, currency: str, fixed: str, chargeback_fee: str
) -> None:
    assert await fees(currency) == (Decimal(fixed), Decimal(chargeback_fee))


async def test_amounts_set_by_hand_hold_in_their_currency_alone(database: Database, shop: Shop, fees: Fees) -> None:
    await set_to(database, shop, "JPY", "25", "2000")
    assert await fees("JPY") == (25, 2000)
    assert (await fees("USD"), await fees("KRW")) == ((Decimal("0.30"), 15), (300, 15000))
    (own, *others) = await fee_amounts(database, shop.merchant_id)
    assert (own.currency, str(own.fixed), own.own) == ("JPY", "25.0000", True)
    assert [one.currency for one in others] == ["EUR", "GBP", "USD"]
    await follow_the_rule(database, COMMAND_LINE, shop.merchant_id, "JPY", now=utc_now())
    assert await fees("JPY") == (30, 1500)
    logged = await database.fetch(
        "select details from audit_entry where merchant_id = $1 and action = 'fee_plan_changed' order by id",
        shop.merchant_id,
    )
    assert len(logged) == 2
    assert "30 → 25" in str(logged[0]["details"])


async def test_a_change_of_the_plan_changes_every_currency_that_follows_it(
    database: Database, shop: Shop, fees: Fees
) -> None:
    await set_to(database, shop, "KRW", "1", "2")
    await breaking.say(
        database, "fee_plan", {"merchant_id": shop.merchant_id}, fixed=Decimal("0.10"), chargeback_fee=20
    )
    assert (await fees("JPY"), await fees("KRW")) == ((10, 2000), (1, 2))


@pytest.mark.parametrize(
    ("currency", "fixed", "fee", "named"),
    [("YEN", "1", "1", "currency"), ("JPY", "-1", "1", "fixed"), ("JPY", "1", "100001", "chargeback_fee"),
     ("USD", "1001", "1", "fixed"), ("USD", "0.00001", "1", "fixed"), ("USD", "1", "1000.1", "chargeback_fee")],
)  # fmt: skip
async def test_nonsense_is_refused_by_name(
    database: Database, shop: Shop, currency: str, fixed: str, fee: str, named: str
) -> None:
    with pytest.raises(Malformed) as refused:
        await set_to(database, shop, currency, fixed, fee)
    assert refused.value.fields == (named,)
    assert not any(one.own for one in await fee_amounts(database, shop.merchant_id))


async def test_a_merchant_that_is_not_there_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound):
        await set_to(database, Shop(2**50, live=True), "JPY", "1", "1")


async def test_a_payment_in_yen_costs_yen(database: Database, shop: Shop, pay_in: Any) -> None:
    payment = await pay_in("JPY", "1000")
    assert (payment["fees"], payment["net"], payment["reserve"]) == (60, 890, 50)
    await set_to(database, shop, "JPY", "5", "1500")
    assert (await pay_in("JPY", "1000"))["fees"] == 35


def test_limits_are_worth_about_the_same_in_every_currency() -> None:
    assert [in_currency(REFUND_LIMIT, currency) for currency in ("USD", "JPY", "KRW", "KWD")] == [
        *(500, 50_000, 500_000, 100),
    ]


async def test_statements_and_documentation_know_the_same_units(database: Database) -> None:
    assert {row["currency"]: row["units"] for row in await database.fetch("select * from currency_unit")} == dict(UNITS)
    rows = [line.split("|")[1:3] for line in OPERATE.read_text().splitlines() if line.count("|") == 3]
    told: dict[str, Decimal] = {}
    for units, currencies in rows:
        if all(len(one.strip()) == 3 and one.strip().isupper() for one in currencies.split(",")):
            told |= {one.strip(): Decimal(units.strip().replace(",", "")) for one in currencies.split(",")}
    assert told == dict(UNITS)
    assert in_currency(Decimal(15), "JPY") == 1500
