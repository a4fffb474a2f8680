from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database

Queue = Callable[..., Awaitable[int]]


@pytest.fixture
def queue(account: dict[str, Any], database: Database) -> Queue:
    """Puts one mail of the account's into the outbox; returns its id."""

    async def insert(state: str = "failed", *, kind: str = "receipt", error: str = "") -> int:
        mail_id = await database.fetchval(
            "insert into mail (merchant_id, live, kind, recipient, language, facts, once, state, attempts, due_at,"
            " created_at, last_error) values ($1, true, $2, 'ada.lovelace@people.example', 'en', '{}',"
            " gen_random_uuid()::text, $3, 8, $4, $4, $5) returning id",
            account["id"],
            kind,
            state,
            utc_now() - timedelta(days=5),
            error,
        )
        return int(mail_id)

    return insert


async def test_mails_are_listed_by_state_newest_first(queue: Queue, paydesk: Any) -> None:
    failed, sent, due = await queue(), await queue("sent"), await queue("due")

    async def listed(*options: object) -> list[int]:
        return [one["id"] for one in (await paydesk("mail", "list", "--json", *options)).result]

    assert await listed("--last", 3) == [due, sent, failed]
    assert await listed("--state", "failed", "--last", 1) == [failed]
    assert await listed("--state", "sent", "--last", 1) == [sent]
    assert due in await listed("--state", "due", "--last", 10000)


async def test_addresses_are_masked_unless_they_are_asked_for(queue: Queue, paydesk: Any) -> None:
    mail_id = await queue(error="550 <Ada.Lovelace@people.example>: no such user\x1b[2J")
    table = (await paydesk("mail", "list", "--state", "failed", "--last", 1)).out
    assert "a…@people.example" in table
    assert "lovelace" not in table.lower()
    assert "\x1b" not in table
    (shown,) = (await paydesk("mail", "list", "--state", "failed", "--last", 1, "--json")).result
    assert "lovelace" not in str(shown).lower()
    (whole,) = (await paydesk("mail", "list", "--state", "failed", "--last", 1, "--full", "--json")).result
    assert (whole["id"], whole["recipient"]) == (mail_id, "ada.lovelace@people.example")


async def test_a_mail_that_was_given_up_is_queued_once_more_and_that_is_on_record(
    queue: Queue, account: dict[str, Any], paydesk: Any, database: Database
) -> None:
    mail_id = await queue(error="no answer")
    assert (await paydesk("mail", "resend", mail_id, "--json")).result == {"resent": [mail_id]}
    mail = await database.fetchrow("select * from mail where id = $1", mail_id)
    assert (mail["state"], mail["attempts"], mail["last_error"]) == ("due", 0, "")
    assert utc_now() - mail["created_at"] < timedelta(minutes=1)  # else the sender would find it too old
    written = await database.fetchval(
        "select subject from audit_entry where merchant_id = $1 and action = 'mail_resent'", account["id"]
    )
    assert written == f"mail {mail_id}"
    again = await paydesk("mail", "resend", mail_id)
    assert again.status == 1
    assert "is being sent" in again.err


@pytest.mark.parametrize(
    ("state", "kind", "said"),
    [("sent", "receipt", "was sent already"), ("failed", "reset_password", "have a new one asked for")],
)
async def test_what_went_out_and_links_that_were_forgotten_are_not_resent(
    queue: Queue, paydesk: Any, state: str, kind: str, said: str
) -> None:
    refused = await paydesk("mail", "resend", await queue(state, kind=kind))
    assert refused.status == 1
    assert said in refused.err


async def test_a_mail_that_is_not_there_is_said_so(paydesk: Any) -> None:
    refused = await paydesk("mail", "resend", 2**40)
    assert refused.status == 1
    assert "there is no mail" in refused.err
