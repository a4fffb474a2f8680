from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests import breaking
from tests.lengths import long
from tests.sweeping import database, database_url

from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record
from paydesk.core.clock import utc_now
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.operations.machinery import ActFilter, list_acts

__all__ = ["database", "database_url"]


@pytest.fixture(autouse=True)
async def _nothing_of_other_tests(database: Database) -> None:
    await breaking.paid_elsewhere(database)
    await breaking.no_alarms(database, "not_reconciled")


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


@long
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


@long
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


@long
async def test_the_check_looks_into_the_acquirers_lists_too(
    account: dict[str, Any], paydesk: Any, forgotten: Path, database: Database
) -> None:
    take(forgotten, await database.fetchval("select tag from deployment"))
    said = await paydesk("check", "--live")
    assert said.status == 1
    assert "1 row against the rule: what an acquirer's list says of us is in our books" in said.out
    assert "it is not in our books, and its mark says that it is ours (order A-1, payment 18" in said.out
    told = await paydesk("check", "--live", "--since", "1d", "--json")
    rules = {rule["name"]: rule["found"] for rule in told.result["rules"]}
    names = ("listed_money_known", "listed_money_agrees", "approved_money_listed")
    assert [rules[name] for name in names] == [1, 0, 0]
    assert await database.fetchval("select count(*) from alarm where kind = 'not_reconciled'") == 0
    other = await paydesk("check", "--live", "--merchant", account["id"], "--json")
    assert "listed_money_known" not in {rule["name"] for rule in other.result["rules"] if rule["found"]}


async def test_what_is_not_at_the_bank_is_found_by_the_check(
    account: dict[str, Any], paydesk: Any, forgotten: Path, database: Database
) -> None:
    Record(forgotten).close()
    await database.execute(
        """
        insert into payment_attempt (merchant_id, live, payment_id, state, idempotency_key, acquirer, capture, amount,
                                     currency, card_id, client_address, not_after, created_at)
        values ($1, false, 18, 'approved', 'never sent', 'simulator', true, 10, 'USD', 1, '', now() - interval '1 hour',
                now() - interval '1 hour')
        """,
        account["id"],
    )
    told = await paydesk("check", "--live", "--merchant", account["id"], "--json")
    (rule,) = [rule for rule in told.result["rules"] if rule["name"] == "approved_money_listed"]
    assert (rule["found"], rule["differences"][0]["id"]) == (1, "never sent")


async def test_an_operator_gives_back_what_nobody_has_in_the_books(
    account: dict[str, Any], paydesk: Any, forgotten: Path, database: Database
) -> None:
    take(forgotten, await database.fetchval("select tag from deployment"))
    wrong = await paydesk("undo", "forgotten", "--acquirer", "nobody", "--yes")
    assert 'there is no acquirer "nobody" here' in wrong.err
    none = await paydesk("undo", "forgotten", "--acquirer", "simulator", "--settled", "by bank transfer")
    assert none.status == 1
    assert "nothing is being undone under the key forgotten at simulator" in none.err
    asked = await paydesk("undo", "forgotten", "--acquirer", "simulator")
    assert asked.status == 1
    assert "Give back 10.00 USD, taken at simulator for order 'A-1'?" in asked.err
    told = await paydesk("undo", "forgotten", "--acquirer", "simulator", "--yes", "--json")
    assert (told.status, told.result["merchant_order_id"], told.result["amount"]) == (0, "A-1", 10)
    again = await paydesk("undo", "forgotten", "--acquirer", "simulator", "--yes")
    assert "there is nothing to give back" in again.err
    (line,) = [one for one in await list_acts(database, Page(5), ActFilter()) if one.subject == "purchase forgotten"]
    assert (line.action, line.client_address, line.person_id) == ("purchase_given_back", "command line", None)
    assert line.details == {"acquirer": "simulator", "order": "A-1", "amount": "10", "currency": "USD"}
    assert (await paydesk("reconcile")).status == 0
