from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants import merchant as merchants
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.trade_terms import TradeTerms

DOCS = Path(__file__).parents[3] / "docs"
TERMS = """
select m.settlement_days, m.reserve_days, f.rate, f.fixed, f.reserve_rate, f.fees_returned, f.chargeback_fee
  from merchant m
  join fee_plan f on f.merchant_id = m.id
 where m.id = $1
"""


async def test_a_new_merchant_has_the_usual_terms_whatever_they_are(
    database: Database, vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = partial(TradeTerms, fees_returned=True, chargeback_fee=Decimal("19.5"), settlement_days=3, reserve_days=90)
    for usual in (TradeTerms, others):
        monkeypatch.setattr(merchants, "TradeTerms", usual)
        made = await create_merchant(database, vault, name="S", email="s@shop.example", now=utc_now())
        assert dict(await database.fetchrow(TERMS, made.id)) == asdict(usual())


async def test_no_column_has_days_of_its_own_for_the_reserve(database: Database) -> None:
    default = "select column_default from information_schema.columns where column_name = 'reserve_days'"
    assert await database.fetchval(default) is None


async def test_code_of_before_which_names_no_days_still_opens_accounts(database: Database) -> None:
    insert = (
        "insert into merchant (name, email, created_at) values ('S', 's@shop.example', now()) returning reserve_days"
    )
    assert await database.fetchval(insert) == 180


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("integrate.md", "until it settles, {settlement_days} days after the capture"),
        ("integrate.md", "becomes available {reserve_days} days after the capture"),
        ("architecture.md", "| `settlement` | {settlement_days} days after the capture |"),
        ("architecture.md", "| `reserve_release` | {reserve_days} days after the capture |"),
    ],
)
def test_the_docs_name_the_usual_days(page: str, words: str) -> None:
    assert words.format(**asdict(TradeTerms())) in " ".join((DOCS / page).read_text().split())
