from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from starlette.responses import StreamingResponse
from tests.web.account.conftest import Visitor, text_of

from paydesk.core.errors import TooMany
from paydesk.database.pool import Database
from paydesk.domain.merchants.heavy_work import Asker, Work, WorkShare, take_share
from paydesk.domain.merchants.shop import Shop
from paydesk.web.console import exports
from paydesk.web.console.exports import csv_file

WHEN = datetime(2026, 11, 21, 3, 20, tzinfo=UTC)
COLUMNS = ["id", "reference"]


async def rows() -> AsyncIterator[list[object]]:
    yield [1, '=HYPERLINK("x")', Decimal("-5.00"), None, WHEN]
    yield [-2, "+49", "a,b\nc", "@x", "\t=1"]


@pytest.fixture
async def share(database: Database, shop: Shop) -> WorkShare:
    return await take_share(database, Work.EXPORT, asker(shop))


def asker(shop: Shop) -> Asker:
    return Asker(f"shop {shop.merchant_id}'s", shop, person_id=-shop.merchant_id)


async def test_a_csv_file_runs_nothing_in_a_spreadsheet(share: WorkShare) -> None:
    answer = csv_file(share, "payments.csv", COLUMNS, rows())
    assert isinstance(answer, StreamingResponse)
    text = "".join([str(part) async for part in answer.body_iterator])
    assert text == (
        '"id","reference"\r\n"1","\'=HYPERLINK(""x"")","-5.00","","2026-11-21T03:20:00+00:00"\r\n'
        '"-2","\'+49","a,b\nc","\'@x","\t\'=1"\r\n'
    )
    assert answer.headers["content-disposition"] == 'attachment; filename="payments.csv"'
    assert answer.headers["cache-control"] == "no-store"


async def send_it(share: WorkShare, take: Any) -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    scope = {"type": "http", "method": "GET", "asgi": {"spec_version": "2.3"}}
    await csv_file(share, "payments.csv", COLUMNS, rows())(scope, receive, take)


async def test_a_file_that_nobody_reads_is_broken_off_and_another_may_be_asked_for(
    share: WorkShare, shop: Shop, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "STALLED_AFTER", 0.05)
    await take_share(database, Work.EXPORT, asker(shop))
    sent: list[str] = []

    async def takes_the_beginning(message: dict[str, Any]) -> None:
        sent.append(message["type"])
        if message["type"] != "http.response.start":
            with pytest.raises(TooMany):
                await take_share(database, Work.EXPORT, asker(shop))
            await asyncio.Event().wait()

    await send_it(share, takes_the_beginning)
    assert sent == ["http.response.start", "http.response.body"]
    await take_share(database, Work.EXPORT, asker(shop))


async def test_a_person_fetches_two_files_at_once(owner: Visitor, database: Database) -> None:
    person_id = await database.fetchval("select id from person where email = $1", owner.email)
    held = [await take_share(database, Work.EXPORT, Asker("elsewhere", person_id=person_id)) for _ in range(2)]
    for page in ("/payments/export", "/balance/statement", "/subscriptions/dunning/export"):
        refused = await owner.see(f"{owner.merchant_path}{page}")
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
        assert "wait until one is there" in text_of(refused)
    audited = "select count(*) from audit_entry where action = 'exported' and person_id = $1"
    assert await database.fetchval(audited, person_id) == 0, "nothing was handed out"
    async with held[0].held():
        pass
    for page in ("/payments/export", "/balance/statement", "/subscriptions/dunning/export"):
        assert (await owner.see(f"{owner.merchant_path}{page}")).status_code == 200, "each gives its share back"
