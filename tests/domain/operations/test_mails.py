"""The outbox as an operator sees it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.mail.queueing import queue_mail
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.mails import ListedMail, MailState, masked, newest_mails, resend_mail

ALL = 100_000
"""Mails of a list: more than other tests have left behind."""


async def queued(database: Database, shop: Shop, *recipients: str) -> list[ListedMail]:
    """Receipts to some customers, each tried a minute after the one before;
    as the list shows them.
    """
    for place, recipient in enumerate(recipients):
        await queue_mail(
            database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            kind="receipt",
            to=recipient,
            language="en",
            facts={},
            once=recipient,
            now=utc_now() + timedelta(minutes=place),
        )
    return [one for one in await newest_mails(database, most=ALL) if one.merchant_id == shop.merchant_id]


async def test_all_mails_are_listed_newest_first_and_those_that_wait_soonest_first(
    database: Database, shop: Shop
) -> None:
    newest, oldest = await queued(database, shop, "ada@people.example", "bob@people.example")
    assert [newest.recipient, oldest.recipient] == ["bob@people.example", "ada@people.example"]
    due = [
        one
        for one in await newest_mails(database, state=MailState.DUE, most=ALL)
        if one.merchant_id == shop.merchant_id
    ]
    assert due == [oldest, newest]
    assert newest not in await newest_mails(database, state=MailState.SENT, most=ALL)


async def test_only_what_was_given_up_is_sent_once_more(database: Database, shop: Shop) -> None:
    [one] = await queued(database, shop, "ada@people.example")
    with pytest.raises(Conflict, match="is being sent"):
        await resend_mail(database, COMMAND_LINE, one.id, now=utc_now())
    with pytest.raises(NotFound, match="there is no mail"):
        await resend_mail(database, COMMAND_LINE, 2**52, now=utc_now())


async def test_a_readers_name_is_hidden_also_in_what_their_server_said(database: Database, shop: Shop) -> None:
    [one] = await queued(database, shop, "ada@people.example")
    hidden = masked(replace(one, last_error="no Ada@People.example"))
    assert (hidden.recipient, hidden.last_error) == ("a…@people.example", "no a…@people.example")
