from __future__ import annotations

from datetime import timedelta
from typing import Any

from paydesk.core.clock import utc_now
from paydesk.core.errors import Forbidden
from paydesk.database.pool import Database
from paydesk.domain.merchants.ignored_fields import SentWith, note_ignored
from paydesk.domain.merchants.refused_forms import log_rejected_form
from paydesk.domain.merchants.shop import Shop


async def test_refused_forms_are_listed_newest_first(account: dict[str, Any], paydesk: Any, database: Database) -> None:
    now = utc_now()
    for minutes, amount in ((5, "1"), (1, "2\x1b[31m")):
        await log_rejected_form(
            database,
            Shop(account["id"], live=False),
            Forbidden("hash is wrong"),
            {"amount": amount},
            now - timedelta(minutes=minutes),
        )
    listed = (await paydesk("merchant", "rejected-forms", account["id"], "--json")).result
    assert [form["fields"] for form in listed] == [{"amount": "2\x1b[31m"}, {"amount": "1"}]
    assert (listed[0]["status"], listed[0]["reason"], listed[0]["live"]) == (403, "hash is wrong", False)
    text = (await paydesk("merchant", "rejected-forms", account["id"], "--last", 1)).out
    assert "hash is wrong" in text
    assert "\x1b" not in text
    assert text.count("status") == 1


async def test_ignored_fields_are_listed(account: dict[str, Any], paydesk: Any, database: Database) -> None:
    shop = Shop(account["id"], live=False)
    await note_ignored(database, shop, SentWith.DELIVERY, ["carrier_name\x1b[31m"], now=utc_now())
    (listed,) = (await paydesk("merchant", "ignored-fields", account["id"], "--json")).result
    assert (listed["name"], listed["sent_with"]) == ("carrier_name\x1b[31m", "delivery")
    assert "\x1b" not in (await paydesk("merchant", "ignored-fields", account["id"])).out
    assert (await paydesk("merchant", "ignored-fields", account["id"], "--live", "--json")).result == []
