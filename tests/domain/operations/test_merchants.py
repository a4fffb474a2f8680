"""What an operator sees of all merchants, and does to one: suspending it, and setting its terms."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.trade_terms import TradeTerms
from paydesk.domain.operations.merchants import (
    MerchantStanding,
    change_terms,
    find_merchant_for_operator,
    own_terms,
    resume_merchant,
    search_merchants,
    suspend_merchant,
)


async def found(database: Database, text: str, standing: MerchantStanding | None = None) -> list[int]:
    return [one.id for one in await search_merchants(database, text, standing, before_id=None, most=50)]


async def test_a_merchant_is_found_by_its_id_its_key_and_how_it_stands(database: Database, merchant: Merchant) -> None:
    # Another merchant's key may begin with the same digits.
    assert merchant.id in await found(database, str(merchant.id))
    assert await found(database, merchant.public_key[:12]) == [merchant.id]
    assert merchant.id in await found(database, "corner sh")
    assert merchant.id not in await found(database, str(merchant.id), MerchantStanding.suspended)
    await suspend_merchant(database, COMMAND_LINE, merchant.id, reason="forged goods", now=utc_now())
    assert merchant.id in await found(database, str(merchant.id), MerchantStanding.suspended)
    assert (await find_merchant_for_operator(database, merchant.id)).suspended_reason == "forged goods"


async def test_a_suspension_needs_a_reason_and_is_there_once(database: Database, merchant: Merchant) -> None:
    with pytest.raises(Malformed, match="say why"):
        await suspend_merchant(database, COMMAND_LINE, merchant.id, reason=" ", now=utc_now())
    with pytest.raises(Conflict):
        await resume_merchant(database, COMMAND_LINE, merchant.id, now=utc_now())
    await suspend_merchant(database, COMMAND_LINE, merchant.id, reason="forged goods", now=utc_now())
    with pytest.raises(Conflict, match="suspended already"):
        await suspend_merchant(database, COMMAND_LINE, merchant.id, reason="forged goods", now=utc_now())
    await resume_merchant(database, COMMAND_LINE, merchant.id, now=utc_now())
    assert (await find_merchant_for_operator(database, merchant.id)).merchant.suspended_at is None
    with pytest.raises(NotFound):
        await suspend_merchant(database, COMMAND_LINE, 2**52, reason="forged goods", now=utc_now())


async def test_new_terms_are_logged_with_what_they_were_and_listed_as_the_merchants_own(
    database: Database, merchant: Merchant
) -> None:
    usual = TradeTerms()
    agreed = replace(usual, fixed=Decimal("0.1000"), reserve_days=30)
    for _ in range(2):
        await change_terms(database, COMMAND_LINE, merchant.id, agreed, now=utc_now())
    assert (await find_merchant_for_operator(database, merchant.id)).terms == agreed
    [noted] = await database.fetch("select details from audit_entry where merchant_id = $1", merchant.id)
    assert f"{usual.reserve_days} → 30" in noted["details"]
    [own] = await own_terms(database, before_id=merchant.id + 1, most=1)
    assert (own.merchant_id, own.merchant_name, own.terms) == (merchant.id, "Corner Shop", agreed)
    assert merchant.id not in [one.merchant_id for one in await own_terms(database, before_id=merchant.id, most=50)]


@pytest.mark.parametrize(
    ("field", "value"),
    [("rate", Decimal(1)), ("fixed", Decimal(-1)), ("chargeback_fee", Decimal("0.00001")), ("reserve_days", 3651)],
)
async def test_terms_that_make_no_sense_are_refused_by_their_field(
    database: Database, merchant: Merchant, field: str, value: Any
) -> None:
    with pytest.raises(Malformed) as refused:
        await change_terms(database, COMMAND_LINE, merchant.id, replace(TradeTerms(), **{field: value}), now=utc_now())
    assert refused.value.fields == (field,)
    assert (await find_merchant_for_operator(database, merchant.id)).terms == TradeTerms()
