from __future__ import annotations

import asyncio
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from paydesk.adapters.vault import Vault, VaultError, generate_key_setting, generate_secret
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.mail.queueing import open_facts, queue_mail, seal_fact
from paydesk.domain.merchants.shop import Shop


async def queue(database: Any, shop: Shop, **given: Any) -> None:
    usual: dict[str, Any] = {
        "merchant_id": shop.merchant_id,
        "live": shop.live,
        "kind": "receipt",
        "to": "ada@people.example",
        "language": "de",
        "facts": {"amount": Decimal("10.00")},
        "once": "receipt 1",
        "now": utc_now(),
    }
    await queue_mail(database, **{**usual, **given})


async def mails_of(database: Database, shop: Shop) -> list[Any]:
    return list(await database.fetch("select * from mail where merchant_id = $1 order by id", shop.merchant_id))


async def test_a_mail_waits_with_all_that_its_template_shows(database: Database, shop: Shop) -> None:
    now = utc_now()
    await queue(database, shop, facts={"amount": Decimal("10.00"), "at": now, "name": "Ada\x00 \\u0000"}, now=now)
    (mail,) = await mails_of(database, shop)
    assert (mail["kind"], mail["recipient"], mail["language"], mail["live"]) == (
        "receipt",
        "ada@people.example",
        "de",
        False,
    )
    assert (mail["state"], mail["attempts"], mail["due_at"], mail["leased_until"]) == ("due", 0, now, None)
    facts = msgspec.json.decode(mail["facts"])
    assert (facts["amount"], datetime.fromisoformat(facts["at"])) == ("10.00", now)
    assert facts["name"].startswith("Ada\ufffd")


async def test_an_event_is_told_once_however_often_and_by_how_many_it_is_queued(database: Database, shop: Shop) -> None:
    await asyncio.gather(*(queue(database, shop, to=f"p{n}@people.example") for n in range(8)))
    await queue(database, shop, once="receipt 2")
    assert [mail["once"] for mail in await mails_of(database, shop)] == ["receipt 1", "receipt 2"]


async def test_merchants_do_not_share_events(database: Database, shop: Shop, other_shop: Shop) -> None:
    await queue(database, shop)
    await queue(database, other_shop)
    assert len(await mails_of(database, shop)) == len(await mails_of(database, other_shop)) == 1


async def test_what_concerns_a_person_alone_belongs_to_no_merchant(database: Database, shop: Shop) -> None:
    once = f"for a person {shop.merchant_id}"
    await queue(database, shop, merchant_id=None, live=None, once=once)
    row = await database.fetchrow("select * from mail where merchant_id = 0 and once = $1", once)
    assert (row["live"], row["state"]) == (None, "due")


async def test_a_mail_goes_with_its_event_or_not_at_all(database: Database, shop: Shop) -> None:
    async with database.acquire() as connection:
        event = connection.transaction()
        await event.start()
        await queue(connection, shop)
        await event.rollback()
    assert await mails_of(database, shop) == []


async def test_secrets_rest_sealed_and_are_opened_for_the_template(
    database: Database, shop: Shop, vault: Vault
) -> None:
    await queue(database, shop, facts={"token": seal_fact(vault, "a secret tökén", row_id=7), "name": "Ada"})
    (mail,) = await mails_of(database, shop)
    assert "secret" not in mail["facts"]
    assert open_facts(vault, msgspec.json.decode(mail["facts"])) == {"token": "a secret tökén", "name": "Ada"}


def test_a_sealed_fact_opens_only_for_its_row_and_under_its_key(vault: Vault) -> None:
    fact = seal_fact(vault, "a secret", row_id=7)
    with pytest.raises(VaultError, match="belongs to another row"):
        open_facts(vault, {"token": {**fact, "row_id": 8}})
    with pytest.raises(VaultError, match="not configured"):
        open_facts(Vault.from_settings(generate_key_setting(), generate_secret()), {"token": fact})


def test_what_only_looks_sealed_is_left_as_it_is(vault: Vault) -> None:
    facts: dict[str, Any] = {"a": {"sealed": "x"}, "b": ["sealed"], "c": None}
    assert open_facts(vault, facts) == facts
