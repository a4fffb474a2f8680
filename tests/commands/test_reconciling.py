from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from paydesk.adapters.acquirers.interface import CardDetails, Purchase
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.simulator import Bank, Record
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database


@pytest.fixture(autouse=True)
async def _nothing_of_other_tests(database: Database) -> None:
    await database.execute("update payment_attempt set acquirer = 'elsewhere' where state = 'approved'")
    await database.execute("delete from alarm where kind = 'not_reconciled'")


@pytest.fixture
def forgotten(environment: dict[str, str], database: Database) -> Path:
    """The bank has taken 10.00 USD an hour ago, and our books don't know it."""
    path = Path(environment["PAYDESK_DATA_DIR"], "simulator", "record.sqlite")
    path.parent.mkdir()
    return path


def take(path: Path, deployment: str) -> None:
    """Have the bank take money an hour ago."""
    an_hour_ago = utc_now() - timedelta(hours=1)
    record = Record(path)
    card = CardDetails("4242424242424242", 12, 2030, "Ada Lovelace", "987")
    mark = Mark(deployment, 1, "shop", False, PurchaseKind.ORDER, "A-1", payment_id=18)
    purchase = Purchase("forgotten", Decimal(10), "USD", card, True, an_hour_ago + timedelta(minutes=1), mark=mark)
    Bank(record, now=lambda: an_hour_ago).purchase(purchase, stored=False)
    record.close()


async def test_books_that_agree_end_well(account: dict[str, Any], paydesk: Any, forgotten: Path) -> None:
    take(forgotten, "another deployment")
    said = await paydesk("reconcile")
    assert (said.status, said.err) == (0, "")
    assert said.out == "1 purchase and 0 refunds of simulator read, 1 of other software: 0 differences\n"


async def test_what_differs_is_named_and_ends_with_status_1(
    account: dict[str, Any], paydesk: Any, forgotten: Path, database: Database
) -> None:
    take(forgotten, await database.fetchval("select tag from deployment"))
    said = await paydesk("reconcile", "--since", "1d")
    assert said.status == 1
    assert said.out.splitlines()[0] == "1 purchase and 0 refunds of simulator read: 1 difference"
    assert "it is not in our books, and its mark says that it is ours (order A-1, payment 18" in said.out
    told = await paydesk("reconcile", "--json")
    (acquirer,) = told.result["acquirers"]
    assert (told.status, told.result["agrees"], acquirer["differences"][0]["key"]) == (1, False, "forgotten")
    assert (await paydesk("alarm", "list", "--kind", "not_reconciled", "--json")).result[0]["times"] == 2


async def test_what_is_asked_wrongly_is_one_clear_line(account: dict[str, Any], paydesk: Any) -> None:
    for words, line in (
        (("--acquirer", "nobody"), 'there is no acquirer "nobody" here, only simulator'),
        (("--since", "yesterday"), '--since "yesterday" is not a period'),
    ):
        said = await paydesk("reconcile", *words)
        assert said.status == 1
        assert line in said.err


async def test_after_a_restore_ids_leave_a_gap_and_what_was_forgotten_is_named(
    account: dict[str, Any], paydesk: Any, forgotten: Path, database: Database
) -> None:
    take(forgotten, await database.fetchval("select tag from deployment"))
    before = await database.fetchval("select nextval('payment_id_seq')")
    said = await paydesk("restored", "--since", "1d", "--gap", 1000)
    assert said.status == 1
    first, second, *_ = said.out.splitlines()
    assert "go on behind a gap of 1,000 ids" in first
    assert second.endswith("1 difference")
    assert await database.fetchval("select nextval('payment_id_seq')") >= before + 10_000
    told = await paydesk("restored", "--json")
    assert (told.status, told.result["agrees"], told.result["epoch"] > 1) == (1, False, True)
