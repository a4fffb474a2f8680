"""The amounts of a merchant's fees in each currency:
its own where they were set, else those of its plan by rule.

The rule: an amount of the plan is set for dollars, euros and pounds, and multiplied by the
currency's unit elsewhere (core/units.py). Moves no money.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import Malformed, NotFound
from paydesk.core.money import parse_currency, plain_number
from paydesk.core.units import in_currency
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.audit import Action, Actor, record

queries = load_statements(__package__ or "", "fees.sql")

MOST = Decimal(1000)
"""The largest amount of a fee, in dollars."""

SHOWN = ("EUR", "GBP", "JPY", "USD")
"""Currencies in which a plan is shown as examples of the rule."""


@dataclass(frozen=True, slots=True)
class FeeAmounts:
    """What a merchant pays in a currency, in its main units;
    `own` if this was set, not worked out by the rule.
    """

    currency: str
    fixed: Decimal
    chargeback_fee: Decimal
    own: bool


@dataclass(frozen=True, slots=True)
class _Fees:
    """What a merchant pays in a currency now."""

    fixed: Decimal
    chargeback_fee: Decimal


async def fee_amounts(database: Database, merchant_id: int, currencies: Sequence[str] = SHOWN) -> list[FeeAmounts]:
    """What a merchant pays in the currencies that have amounts of their own, first,
    and in those named.
    """
    rows = queries.amounts(database, merchant_id=merchant_id, currencies=list(currencies))
    return await records_of(FeeAmounts, rows)


async def set_fee_amounts(
    database: Database,
    actor: Actor,
    merchant_id: int,
    currency: str,
    *,
    fixed: Decimal,
    chargeback_fee: Decimal,
    now: datetime,
) -> None:
    """Set what a merchant pays in a currency from now on;
    payments that were made keep what they were split into.

    Raises: Malformed, naming the field; NotFound.
    """
    parse_currency(currency)
    for name, amount in (("fixed", fixed), ("chargeback_fee", chargeback_fee)):
        if not 0 <= amount <= in_currency(MOST, currency) or amount != round(amount, 4):
            most = in_currency(MOST, currency)
            raise Malformed(
                f"a fee in {currency} is from 0 to {f'{most:f}'}, with at most 4 decimals",
                name,
            )
    async with database.acquire() as connection, connection.transaction():
        before = await _locked(connection, merchant_id, currency)
        await queries.set_amounts(
            connection, merchant_id=merchant_id, currency=currency, fixed=fixed, chargeback_fee=chargeback_fee
        )
        details: dict[str, object] = {
            "currency": currency,
            "fixed": f"{plain_number(before.fixed)} → {fixed}",
            "chargeback_fee": f"{plain_number(before.chargeback_fee)} → {chargeback_fee}",
        }
        await record(
            connection,
            actor,
            Action.fee_plan_changed,
            now=now,
            merchant_id=merchant_id,
            subject=f"merchant {merchant_id}",
            details=details,
        )


async def follow_the_rule(database: Database, actor: Actor, merchant_id: int, currency: str, *, now: datetime) -> None:
    """Let a merchant pay in a currency what its plan says by the rule again;
    nothing happens if it does.

    Raises: Malformed; NotFound.
    """
    parse_currency(currency)
    async with database.acquire() as connection, connection.transaction():
        await _locked(connection, merchant_id, currency)
        if await queries.forget_amounts(connection, merchant_id=merchant_id, currency=currency) is not None:
            await record(
                connection,
                actor,
                Action.fee_plan_changed,
                now=now,
                merchant_id=merchant_id,
                subject=f"merchant {merchant_id}",
                details={"currency": currency, "amounts": "by the rule"},
            )


async def _locked(connection: Connection, merchant_id: int, currency: str) -> _Fees:
    fees = record_if_any(_Fees, await queries.lock_plan(connection, merchant_id=merchant_id, currency=currency))
    if fees is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    return fees
