from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests import set_back
from tests.databases import until_waiting

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database


@pytest.fixture
async def answered(account: dict[str, Any], add_pingback: Any, database: Database) -> int:
    """An exhausted pingback with one recorded attempt."""
    pingback_id = int(await add_pingback(account["id"], state="exhausted", attempts=1))
    await database.execute(
        """
        insert into pingback_attempt (merchant_id, live, pingback_id, number, at, url, request_headers, request_body,
                                      status, response_body, error, duration_ms)
        values ($1, false, $2, 1, $3, 'https://shop.example/p', '{"X-ApiKey": "***"}', '{"event":"test"}', 500,
                E'no\x1b[2J', 'answered with status 500', 17)
        """.replace("\x1b", "\\x1b"),
        account["id"],
        pingback_id,
        utc_now(),
    )
    return pingback_id


async def test_the_newest_pingbacks_come_first_and_can_be_narrowed(
    account: dict[str, Any], paydesk: Any, add_pingback: Any
) -> None:
    due, waiting = await add_pingback(account["id"]), await add_pingback(account["id"], state="waiting", url=None)

    async def listed(*options: object) -> list[int]:
        result = (await paydesk("pingback", "list", account["id"], "--json", *options)).result
        return [one["id"] for one in result]

    assert await listed() == [waiting, due]
    assert await listed("--state", "due") == [due]
    assert await listed("--last", 1) == [waiting]
    assert await listed("--test") == [waiting, due]
    assert await listed("--live") == []
    everybody = (await paydesk("pingback", "list", "--json", "--last", 2)).result
    assert [(one["merchant_id"], one["id"]) for one in everybody] == [(account["id"], waiting), (account["id"], due)]


async def test_a_list_for_people_is_a_table(account: dict[str, Any], paydesk: Any, add_pingback: Any) -> None:
    pingback_id = await add_pingback(account["id"])
    titles, row = (await paydesk("pingback", "list", account["id"])).out.splitlines()
    assert titles.split()[:4] == ["id", "merchant", "mode", "event"]
    assert row.split()[:4] == [str(pingback_id), str(account["id"]), "test", "test"]


async def test_a_pingback_is_shown_with_every_attempt(answered: int, account: dict[str, Any], paydesk: Any) -> None:
    said = await paydesk("pingback", "show", answered, "--json")
    assert '"paid_amount": -0.2608' in said.out
    shown = said.result
    assert (shown["merchant_id"], shown["payload"]["event"]) == (account["id"], "test")
    (attempt,) = shown["sent"]
    assert attempt["request_headers"] == {"X-ApiKey": "***"}
    assert attempt["request_body"] == '{"event":"test"}'
    assert (attempt["status"], attempt["response_body"], attempt["duration_ms"]) == (500, "no\x1b[2J", 17)
    assert attempt["error"] == "answered with status 500"


async def test_an_answer_cannot_steer_the_operators_terminal(answered: int, paydesk: Any) -> None:
    text = (await paydesk("pingback", "show", answered)).out
    assert "no\\x1b[2J" in text
    assert "\x1b" not in text
    assert '"paid_amount":-0.2608' in text


async def test_a_pingback_is_resent_at_once(answered: int, paydesk: Any, database: Database) -> None:
    said = await paydesk("pingback", "resend", answered)
    assert said.out.startswith(f"pingback {answered} is sent again now")
    row = await database.fetchrow("select state, due_at from pingback where id = $1", answered)
    assert row["state"] == "due"
    assert row["due_at"] <= utc_now()


async def test_a_pingback_is_resent_to_another_url_and_that_is_kept(
    answered: int, account: dict[str, Any], paydesk: Any, database: Database
) -> None:
    there = "https://other.example/pay"
    said = await paydesk("pingback", "resend", answered, "--url", there)
    assert f"is sent again now to {there}" in said.out
    assert await database.fetchval("select url from pingback where id = $1", answered) == there
    kept = await database.fetchval(
        "select details ->> 'url' from audit_entry where merchant_id = $1 and action = 'pingback_resent'", account["id"]
    )
    assert kept == there
    assert "absolute" in (await paydesk("pingback", "resend", answered, "--url", "other.example")).err
    many = await paydesk("pingback", "resend", "--failed", "--merchant", account["id"], "--url", there)
    assert "give either" in many.err


async def test_all_exhausted_pingbacks_of_a_merchant_are_resent(
    answered: int, account: dict[str, Any], paydesk: Any, add_pingback: Any, database: Database
) -> None:
    other = await add_pingback(account["id"], state="exhausted", attempts=11)
    done = await add_pingback(account["id"], state="acknowledged", attempts=1)
    said = await paydesk("pingback", "resend", "--failed", "--merchant", account["id"], "--json")
    assert said.result == {"resent": [answered, other], "without_url": []}
    assert await database.fetchval("select state from pingback where id = $1", done) == "acknowledged"
    kept = "select subject from audit_entry where merchant_id = $1 and action = 'pingback_resent' order by id"
    subjects = [row["subject"] for row in await database.fetch(kept, account["id"])]
    assert subjects == [f"pingback {one}" for one in (answered, other)]


async def test_what_somebody_else_has_had_sent_by_then_is_not_sent_again(
    answered: int, account: dict[str, Any], paydesk: Any, database: Database
) -> None:
    """The shop has said `ok` to it meanwhile."""
    async with database.acquire() as first, first.transaction():
        await set_back.acknowledged(first, {"id": answered})
        second = asyncio.create_task(paydesk("pingback", "resend", "--failed", "--merchant", account["id"], "--json"))
        await until_waiting(database, second)
    assert (await second).result == {"resent": [], "without_url": []}
    assert await database.fetchval("select state from pingback where id = $1", answered) == "acknowledged"


async def test_pingbacks_without_a_place_to_go_are_counted(
    answered: int, account: dict[str, Any], paydesk: Any, database: Database
) -> None:
    await set_back.went_live(database, account["id"], test_mode=True)
    said = await paydesk("pingback", "resend", "--failed", "--merchant", account["id"], "--json")
    assert said.result == {"resent": [], "without_url": [answered]}
    assert "there is no URL: 1 pingback;" in said.err


async def test_a_waiting_pingback_is_not_resent_but_explained(
    account: dict[str, Any], paydesk: Any, add_pingback: Any
) -> None:
    waiting = await add_pingback(account["id"], state="waiting", url=None)
    said = await paydesk("pingback", "resend", waiting)
    assert said.status == 1
    assert "has no URL to go to" in said.err


@pytest.mark.parametrize("command", ["show", "resend"])
async def test_an_unknown_pingback_is_named_with_the_next_step(paydesk: Any, command: str) -> None:
    said = await paydesk("pingback", command, 999_999_999)
    assert (said.status, said.out) == (1, "")
    assert said.err == "paydesk: there is no pingback 999999999; see: paydesk pingback list\n"


@pytest.mark.parametrize("words", [(), ("1", "--failed", "--merchant", "1"), ("--failed",), ("1", "--merchant", "1")])
async def test_resend_wants_either_an_id_or_a_merchants_failed_ones(paydesk: Any, words: tuple[str, ...]) -> None:
    said = await paydesk("pingback", "resend", *words)
    assert said.status == 1
    assert "give either a pingback's id, or --failed and --merchant" in said.err
