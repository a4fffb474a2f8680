from __future__ import annotations

from typing import Any

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop


async def test_alarms_are_listed_with_their_reason_and_settled_once(
    account: dict[str, Any], paydesk: Any, database: Database
) -> None:
    shop = Shop(account["id"], live=True)
    alarm = Alarm(AlarmKind.set_aside, "payment 8", "no such currency\x1b[2J", shop, {"attempt": 18})
    await raise_alarms(database, [alarm], now=utc_now())
    table = (await paydesk("alarm", "list", "--last", 10000)).out
    assert "no such currency" in table
    assert "\x1b" not in table

    async def listed(*options: str) -> list[dict[str, Any]]:
        found = (await paydesk("alarm", "list", "--last", 10000, "--json", *options)).result
        return [one for one in found if one["merchant_id"] == account["id"]]

    [one] = await listed("--kind", "set_aside")
    assert (one["merchant_id"], one["subject"], one["details"]) == (account["id"], "payment 8", {"attempt": 18})
    settled = await paydesk("alarm", "settle", one["id"], "--note", "booked by hand", "--json")
    assert settled.result == {"settled": [one["id"]]}
    assert await listed() == []
    [last] = await listed("--settled")
    assert (last["id"], last["settled_by"]) == (one["id"], "command line")
    entry = await database.fetchrow(
        "select subject, details from audit_entry where merchant_id = $1 and action = 'alarm_settled'", account["id"]
    )
    assert entry["subject"] == f"alarm {one['id']}"
    assert "booked by hand" in entry["details"]
    again = await paydesk("alarm", "settle", one["id"])
    assert again.status != 0
    assert "settled already" in again.err


async def test_an_alarm_that_nobody_raised_is_said_to_be_none(paydesk: Any) -> None:
    answer = await paydesk("alarm", "settle", 987654321)
    assert answer.status != 0
    assert "there is no alarm 987654321" in answer.err


async def test_a_difference_is_accepted_with_a_reason_and_can_wait_again(paydesk: Any, database: Database) -> None:
    subject = "purchase 7-abc at simulator"
    await raise_alarms(database, [Alarm(AlarmKind.not_reconciled, subject, "10.00 USD there")], now=utc_now())

    async def listed(*options: str) -> list[dict[str, Any]]:
        found = (await paydesk("alarm", "list", "--kind", "not_reconciled", "--json", *options)).result
        return [one for one in found if one["subject"] == subject]

    [one] = await listed()
    silent = await paydesk("alarm", "accept", one["id"])
    assert (silent.status, "say why in a note" in silent.err) == (1, True)
    said = await paydesk("alarm", "accept", one["id"], "--note", "back by bank transfer")
    assert (said.status, said.out) == (0, f"alarm {one['id']} is accepted\n")
    assert await listed() == []
    [kept] = await listed("--accepted")
    assert (kept["accepted_by"], kept["accepted_why"]) == ("command line", "back by bank transfer")
    assert "command line: back by bank transfer" in (await paydesk("alarm", "list", "--accepted")).out
    back = await paydesk("alarm", "accept", one["id"], "--take-back", "--json")
    assert back.result == {"taken_back": [one["id"]]}
    assert len(await listed()) == 1
