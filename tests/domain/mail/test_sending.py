from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta
from email.message import EmailMessage
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from structlog.testing import capture_logs
from tests import set_back
from tests.adapters.mail.post_offices import PostOffice, post_office, silent_server
from tests.domain.mail.conftest import UNCAPPED, queue, sender_of
from tests.domain.mail.rounds import send_due
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.database.records import records_of
from paydesk.domain.mail.queueing import seal_fact
from paydesk.domain.mail.sending import KEPT, PAUSES, TOO_OLD, ClaimedMail, DueMail, MailSender, queries


def ids(mails: list[EmailMessage]) -> list[str]:
    return sorted(str(mail["Message-ID"]) for mail in mails)


async def test_what_is_due_is_sent_and_recorded(mails: Till, office: PostOffice) -> None:
    await queue(mails)
    assert await send_due(sender_of(mails, office.url), now=utc_now()) == 1
    (mail,) = office.mails
    assert (mail["To"], mail["Subject"], mail["From"]) == (
        "ada@people.example",
        "receipt de",
        "Corner Shop <pay@desk.example>",
    )
    (row,) = await mails.rows("mail")
    assert (row["state"], row["attempts"], row["leased_until"], row["last_error"]) == ("sent", 1, None, "")
    assert row["sent_at"] is not None


async def test_what_is_not_due_yet_waits(mails: Till, office: PostOffice) -> None:
    await queue(mails, now=utc_now() + timedelta(minutes=5))
    assert await send_due(sender_of(mails, office.url), now=utc_now()) == 0
    assert office.mails == []


async def test_eight_senders_at_once_send_each_mail_once(mails: Till, office: PostOffice) -> None:
    for _ in range(60):
        await queue(mails)
    senders = [sender_of(mails, office.url, in_flight=3) for _ in range(8)]
    tried = await asyncio.gather(*(send_due(sender, now=utc_now()) for sender in senders))
    assert sum(tried) == len(office.mails) == len(set(ids(office.mails))) == 60
    assert {row["state"] for row in await mails.rows("mail")} == {"sent"}


async def test_no_more_are_handed_over_at_once_than_allowed(mails: Till, office: PostOffice) -> None:
    for _ in range(12):
        await queue(mails)
    await send_due(sender_of(mails, office.url, in_flight=3), now=utc_now())
    assert len(office.mails) == 12
    assert office.connections <= 3


async def test_a_delayed_mail_is_tried_again_after_growing_pauses_for_a_day_then_given_up(mails: Till) -> None:
    async with post_office() as office:
        office.answers = ["451 4.3.0 not now"]
        await queue(mails)
        pauses = []
        with capture_logs() as logs:
            for _ in range(len(PAUSES)):
                began = utc_now()
                await send_due(sender_of(mails, office.url), now=began)
                (row,) = await mails.rows("mail")
                assert row["state"] == "due"
                assert row["last_error"].startswith("451")
                pauses.append(row["due_at"] - began)
                await mails.database.execute("update mail set due_at = created_at where id = $1", row["id"])
            await send_due(sender_of(mails, office.url), now=utc_now())
    (row,) = await mails.rows("mail")
    assert (row["state"], row["attempts"]) == ("failed", len(PAUSES) + 1)
    assert pauses == sorted(pauses)
    assert timedelta(hours=20) < sum(PAUSES, timedelta()) <= timedelta(days=1)
    assert [(line["event"], line["log_level"]) for line in logs][-1] == ("a mail was given up", "error")


async def test_a_mail_that_was_delayed_arrives_when_the_server_is_back(mails: Till, office: PostOffice) -> None:
    async with silent_server() as away:
        pass
    await queue(mails)
    await send_due(sender_of(mails, away), now=utc_now())
    assert office.mails == []
    await send_due(sender_of(mails, office.url), now=utc_now() + timedelta(minutes=2))
    assert len(office.mails) == 1
    (row,) = await mails.rows("mail")
    assert (row["state"], row["attempts"], row["last_error"]) == ("sent", 2, "")


async def test_a_refused_recipient_is_given_up_at_once(mails: Till, office: PostOffice) -> None:
    office.recipient_answers = ["550 5.1.1 no such mailbox"]
    await queue(mails)
    await send_due(sender_of(mails, office.url), now=utc_now())
    (row,) = await mails.rows("mail")
    assert (row["state"], row["attempts"]) == ("failed", 1)
    assert "no such mailbox" in row["last_error"]


@pytest.mark.parametrize("behaviour", ["refuses", "hangs", "drops"])
async def test_a_server_that_misbehaves_costs_the_mail_nothing_but_time(mails: Till, behaviour: str) -> None:
    await queue(mails)
    greeting = {"refuses": b"554 5.7.1 go away\r\n", "hangs": b"", "drops": b"220 mail.test\r\n"}[behaviour]
    async with silent_server(greeting, hang_up=behaviour == "drops") as url:
        await send_due(sender_of(mails, url, answer=0.2, whole=0.5), now=utc_now())
    (row,) = await mails.rows("mail")
    assert (row["state"], row["attempts"], row["leased_until"]) == ("due", 1, None)


async def test_one_mail_that_hangs_holds_up_no_other(mails: Till) -> None:
    await queue(mails, to="slow@people.example")
    for _ in range(5):
        await queue(mails)

    sent, let_go, stop = list[str](), asyncio.Event(), asyncio.Event()

    async def send(letter: Any) -> None:
        if letter.recipient.startswith("slow"):
            await let_go.wait()
        sent.append(letter.recipient)
        if len(sent) == 5:
            let_go.set()

    mailer: Any = SimpleNamespace(send=send, rest=AsyncMock())
    sender = MailSender(mails.database, mails.desk.vault, mailer, lambda mail: mail, in_flight=2)  # type: ignore[arg-type, return-value]
    running = asyncio.create_task(sender.run(stop))
    await asyncio.wait_for(let_go.wait(), 30)
    stop.set()
    await running
    assert sent == [*["ada@people.example"] * 5, "slow@people.example"]


async def test_a_process_that_dies_before_it_records_sends_the_same_mail_again(mails: Till, office: PostOffice) -> None:
    await queue(mails)
    claimed = queries.claim(
        mails.database,
        now=utc_now(),
        most=1,
        lease=timedelta(seconds=0),
        merchant_kinds=["void_reminder"],
        link_kinds=[],
        **UNCAPPED,
    )
    dying = sender_of(mails, office.url)
    (taken,) = await records_of(ClaimedMail, claimed)
    await dying._mailer.send(dying._write(dying._opened(taken)))
    await dying.finish()
    assert await send_due(sender_of(mails, office.url), now=utc_now()) == 1
    first, second = office.envelopes
    assert first.content == second.content
    assert len(set(ids(office.mails))) == 1
    (mail,) = await mails.rows("mail")
    assert (mail["state"], mail["attempts"]) == ("sent", 2)


async def test_a_mail_under_a_lease_is_nobody_elses(mails: Till, office: PostOffice) -> None:
    await queue(mails)
    claim = {"now": utc_now(), "most": 1, "merchant_kinds": ["void_reminder"], "link_kinds": [], **UNCAPPED}
    assert len([row async for row in queries.claim(mails.database, lease=timedelta(minutes=3), **claim)]) == 1
    assert await send_due(sender_of(mails, office.url), now=utc_now() + timedelta(hours=1)) == 0
    assert office.mails == []


async def test_a_sender_that_lost_its_lease_does_not_undo_what_the_next_one_did(
    mails: Till, office: PostOffice
) -> None:
    await queue(mails)
    claim = {"now": utc_now(), "most": 1, "merchant_kinds": ["void_reminder"], "link_kinds": [], **UNCAPPED}
    (late,) = await records_of(ClaimedMail, queries.claim(mails.database, lease=timedelta(seconds=0), **claim))
    (_next,) = [row async for row in queries.claim(mails.database, lease=timedelta(minutes=3), **claim)]
    await sender_of(mails, office.url)._delay(late, "451 not now", utc_now())
    (row,) = await mails.rows("mail")
    assert row["leased_until"] is not None
    await sender_of(mails, office.url)._give_up(late, "550 no")
    assert (await mails.rows("mail"))[0]["state"] == "due"


async def test_a_mail_that_cannot_be_written_stops_no_other_and_is_tried_again(mails: Till, office: PostOffice) -> None:
    def write(mail: DueMail) -> Any:
        raise KeyError(mail.facts["order"])

    await queue(mails, facts={"order": "private-reference"})
    with capture_logs() as logs:
        await send_due(sender_of(mails, office.url, write=write), now=utc_now())
    (row,) = await mails.rows("mail")
    assert (row["state"], row["last_error"]) == ("due", "could not be written: KeyError")
    assert "private-reference" not in json.dumps(logs)


async def test_a_mail_that_waited_for_days_is_not_sent_any_more(mails: Till, office: PostOffice) -> None:
    await queue(mails, now=utc_now() - TOO_OLD - timedelta(minutes=1))
    await send_due(sender_of(mails, office.url), now=utc_now())
    (row,) = await mails.rows("mail")
    assert (row["state"], office.mails) == ("failed", [])
    assert "older than 3 days" in row["last_error"]


async def test_a_secret_reaches_the_mail_and_then_rests_nowhere(mails: Till, office: PostOffice) -> None:
    await queue(
        mails, kind="reset_password", facts={"token": seal_fact(mails.desk.vault, "the-secret-token", row_id=3)}
    )
    with capture_logs() as logs:
        await send_due(sender_of(mails, office.url), now=utc_now())
    (mail,) = office.mails
    assert "the-secret-token" in mail.as_string()
    (row,) = await mails.rows("mail")
    assert json.loads(row["facts"]) == {}
    assert "the-secret-token" not in json.dumps(logs)


async def test_neither_addresses_nor_passwords_are_logged(
    mails: Till, office: PostOffice, caplog: pytest.LogCaptureFixture
) -> None:
    office.recipient_answers = ["451 4.7.1 <ada@people.example> later", "550 <ada@people.example> no"]
    await queue(mails)
    with capture_logs() as logs, caplog.at_level(logging.DEBUG):
        await send_due(sender_of(mails, office.url), now=utc_now())
        await send_due(sender_of(mails, office.url), now=utc_now() + timedelta(hours=1))
    assert len(logs) == 2
    assert "ada@people.example" not in json.dumps(logs)
    assert "hunter2" not in caplog.text


async def test_merchants_are_written_to_in_the_language_of_who_logs_in(mails: Till, office: PostOffice) -> None:
    address = f"owner-{mails.shop.merchant_id}@shop.example"
    await set_back.somebody(mails.database, address, language="fr")
    await queue(mails, kind="void_reminder", to=address.upper(), language="en")
    await queue(mails, kind="receipt", to=address, language="en")
    await send_due(sender_of(mails, office.url), now=utc_now())
    assert sorted(str(mail["Subject"]) for mail in office.mails) == ["receipt en", "void_reminder fr"]


async def test_old_mails_are_forgotten_but_not_those_that_are_due(mails: Till) -> None:
    long_ago = utc_now() - KEPT - timedelta(days=1)
    await queue(mails, now=long_ago, once="due")
    await queue(mails, now=long_ago, once="sent")
    await queue(mails, once="young")
    await mails.database.execute(
        "update mail set state = 'sent' where merchant_id = $1 and once <> 'due'", mails.shop.merchant_id
    )
    await queries.forget_mails(mails.database, before=utc_now() - KEPT)
    assert [row["once"] for row in await mails.rows("mail")] == ["due", "young"]
