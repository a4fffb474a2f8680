"""Mails to send in a database of nobody else's, and a writer that needs no templates."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from tests import breaking, set_back
from tests.adapters.mail.post_offices import PostOffice, post_office
from tests.sweeping import database, database_url
from tests.till import Till

from paydesk.adapters.mail import Letter, SmtpMailer, parse_smtp_url
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.mail.queueing import queue_mail
from paydesk.domain.mail.sending import Caps, DueMail, MailSender
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

__all__ = ["database", "database_url"]


@pytest.fixture(autouse=True)
async def _no_mails_yet(database: Database) -> AsyncIterator[None]:
    """A sender takes what is due of all merchants, so that what the tests before have left would be
    in the way.
    """
    await breaking.say(database, "mail", {"state": "due"}, state="failed")
    yield
    await breaking.say(database, "mail", {"state": "due"}, state="failed")


@pytest.fixture
async def office() -> AsyncIterator[PostOffice]:
    """A real SMTP server."""
    async with post_office() as opened:
        yield opened


def plainly(mail: DueMail) -> Letter:
    """A letter that shows its facts."""
    said = " ".join(f"{name}={value}" for name, value in sorted(mail.facts.items()))
    return Letter(
        reference=f"m{mail.merchant_id}-{mail.id}",
        sender_name=mail.merchant_name,
        reply_to="",
        recipient=mail.recipient,
        subject=f"{mail.kind} {mail.language}",
        language=mail.language,
        at=mail.created_at,
        text=said,
        html=f"<p>{said}</p>",
    )


UNCAPPED: dict[str, Any] = {
    "customer_kinds": [],
    **dict.fromkeys(("per_address", "per_team_address", "per_merchant", "per_person")),
}
"""What a claim says of caps if there are none."""


async def queue(mails: Till, **given: Any) -> None:
    """Queue one mail of the merchant's, a second ago."""
    usual: dict[str, Any] = {
        "merchant_id": mails.shop.merchant_id,
        "live": mails.shop.live,
        "kind": "receipt",
        "to": "ada@people.example",
        "language": "de",
        "facts": {"order": "A1"},
        "once": secrets.token_hex(8),
        "now": utc_now() - timedelta(seconds=1),
    }
    await queue_mail(mails.database, **{**usual, **given})


def sender_of(
    mails: Till, url: str, *, write: Any = plainly, in_flight: int = 8, caps: Caps | None = None, **patience: float
) -> MailSender:
    """A sender of its own, as of one more worker."""
    mailer = SmtpMailer(parse_smtp_url(url), mail_from="Paydesk <pay@desk.example>", **patience)
    return MailSender(mails.database, mails.desk.vault, mailer, write, in_flight=in_flight, caps=caps or Caps())


@pytest.fixture
def mails(desk: Desk, shop: Shop) -> Till:
    """One merchant's mails, as they stand among its rows."""
    return Till(desk, shop)


@pytest.fixture
async def subscriber(desk: Desk, shop: Shop) -> Till:
    """The merchant's customers."""
    await set_back.nothing_to_look_up(desk.database)
    return Till(desk, shop)
