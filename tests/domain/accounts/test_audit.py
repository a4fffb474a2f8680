from __future__ import annotations

from datetime import UTC, datetime, timedelta

import asyncpg
import pytest
from tests import breaking
from tests.domain.accounts.someone import Someone

from paydesk.core.clock import utc_now
from paydesk.core.paging import Page, Place
from paydesk.database import partitions
from paydesk.database.partitions import keep_partitions
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import Action, Actor, list_entries, list_own_entries, record
from paydesk.domain.merchants.shop import Shop

SOMEBODY = Actor(None, "192.0.2.1")


async def test_a_line_says_who_what_when_and_from_where(ada: Someone, database: Database) -> None:
    now = utc_now()
    await record(
        database,
        ada.session.actor,
        Action.payment_refunded,
        now=now,
        merchant_id=ada.merchant_id,
        subject="payment 7\x00" + "x" * 500,
        details={"amount": "1.00", "text": "<b>\x00"},
    )
    entry, *_ = await list_entries(database, ada.merchant_id, Page(10))
    assert (entry.at, entry.action, entry.person_id, entry.name, entry.email) == (
        now,
        Action.payment_refunded,
        ada.id,
        "Ada Lovelace",
        ada.email,
    )
    assert (entry.client_address, entry.operator) == (ada.client.address, False)
    assert entry.details == {"amount": "1.00", "text": "<b>\ufffd"}
    assert entry.subject.startswith("payment 7\ufffdx")
    assert len(entry.subject) == 200


async def test_pages_go_on_where_the_last_one_ended_and_filters_narrow(
    ada: Someone, shop: Shop, database: Database
) -> None:
    now = utc_now()
    for n in range(10):
        actor, action = (ada.session.actor, Action.exported) if n % 2 else (SOMEBODY, Action.pingback_resent)
        await record(database, actor, action, now=now, merchant_id=shop.merchant_id, subject=str(n))
    first = await list_entries(database, shop.merchant_id, Page(4))
    second = await list_entries(database, shop.merchant_id, Page(10, before=Place(first[-1].at, first[-1].id)))
    assert [entry.subject for entry in (*first, *second)] == [str(n) for n in range(9, -1, -1)]
    odd = [str(n) for n in range(9, 0, -2)]
    by_action = await list_entries(database, shop.merchant_id, Page(10), action=Action.exported)
    by_person = await list_entries(database, shop.merchant_id, Page(10), person_id=ada.id)
    both = await list_entries(database, shop.merchant_id, Page(10), person_id=ada.id, action=Action.pingback_resent)
    assert [entry.subject for entry in by_action] == [entry.subject for entry in by_person] == odd
    assert both == []
    assert await list_entries(database, shop.merchant_id, Page(10, since=now + timedelta(seconds=1))) == []
    assert await list_entries(database, shop.merchant_id, Page(10, until=now)) == []


async def test_a_merchant_sees_its_own_lines_and_a_person_their_own(
    ada: Someone, stranger: Someone, database: Database
) -> None:
    await record(database, ada.session.actor, Action.exported, now=utc_now(), merchant_id=ada.merchant_id)
    seen = await list_entries(database, stranger.merchant_id, Page(99))
    assert {entry.merchant_id for entry in seen} == {stranger.merchant_id}
    own = await list_own_entries(database, stranger.id, Page(99))
    assert {entry.person_id for entry in own} == {stranger.id}
    assert Action.exported not in [entry.action for entry in await list_own_entries(database, ada.id, Page(99))]


async def test_a_line_goes_with_its_transaction_or_not_at_all(shop: Shop, database: Database) -> None:
    async with database.acquire() as connection:
        change = connection.transaction()
        await change.start()
        await record(connection, SOMEBODY, Action.exported, now=utc_now(), merchant_id=shop.merchant_id)
        await change.rollback()
    assert await list_entries(database, shop.merchant_id, Page(10)) == []


@pytest.mark.parametrize("partitioned", [False, True])
async def test_a_line_is_never_changed_and_goes_only_with_its_month(
    shop: Shop, database: Database, monkeypatch: pytest.MonkeyPatch, *, partitioned: bool
) -> None:
    monkeypatch.setattr(partitions, "LOGS", ("audit_entry",))
    now = datetime(2031, 5, 10, tzinfo=UTC) if partitioned else datetime(2061, 5, 10, tzinfo=UTC)
    await record(database, SOMEBODY, Action.exported, now=now, merchant_id=shop.merchant_id)
    if partitioned:
        await keep_partitions(database, now=now, months=13)
        await record(database, SOMEBODY, Action.exported, now=now, merchant_id=shop.merchant_id)
        with pytest.raises(asyncpg.RaiseError, match="append-only"):
            await database.execute("delete from audit_entry where merchant_id = $1", shop.merchant_id)
    with pytest.raises(asyncpg.RaiseError, match="append-only"):
        await breaking.say(database, "audit_entry", {"merchant_id": shop.merchant_id}, subject="x")
    assert len(await list_entries(database, shop.merchant_id, Page(10))) == 1 + partitioned
    if partitioned:
        await keep_partitions(database, now=now + timedelta(days=460), months=13)
        assert await list_entries(database, shop.merchant_id, Page(10)) == []
