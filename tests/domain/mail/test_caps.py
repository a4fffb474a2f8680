"""Mails a day: to one address, in one merchant's name, by one person's doing."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from tests.adapters.mail.post_offices import PostOffice
from tests.domain.mail.conftest import queue, sender_of
from tests.domain.mail.rounds import send_due
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.domain.mail.sending import OVER, TEAM_SHARE, Caps
from paydesk.domain.operations.mails import MailState, newest_mails


@pytest.fixture
def address() -> str:
    """Somebody whom no other test writes to."""
    return f"grace-{secrets.token_hex(6)}@people.example"


async def standing(mails: Till) -> Counter[str]:
    """How many of the merchant's mails are in which state, and why."""
    return Counter(row["last_error"] or row["state"] for row in await mails.rows("mail"))


async def test_a_thousand_events_send_one_address_no_more_than_the_cap(
    mails: Till, office: PostOffice, address: str
) -> None:
    for number in range(40):
        await queue(mails, to=address if number % 2 else address.upper())
    senders = [sender_of(mails, office.url, in_flight=3, caps=Caps(per_address=5)) for _ in range(6)]
    await asyncio.gather(*(send_due(sender, now=utc_now()) for sender in senders))
    assert len(office.mails) == 5, "however many senders there are"
    assert await standing(mails) == {"sent": 5, OVER["address"]: 35}
    listed = await newest_mails(mails.database, state=MailState.FAILED, most=1000)
    assert sum(one.recipient.lower() == address and one.last_error == OVER["address"] for one in listed) == 35


async def test_what_a_shop_causes_keeps_no_link_and_no_notice_from_its_person(
    mails: Till, office: PostOffice, address: str
) -> None:
    caps = Caps(per_address=2)
    for _ in range(5):
        await queue(mails, to=address)
    for kind in ("reset_password", "confirm_email", "security_notice"):
        await queue(mails, to=address, kind=kind, merchant_id=None, live=None, facts={})
    await send_due(sender_of(mails, office.url, caps=caps), now=utc_now())
    assert sorted(str(mail["Subject"]).split()[0] for mail in office.mails) == [
        *("confirm_email", "receipt", "receipt", "reset_password", "security_notice")
    ]


async def test_links_to_one_address_have_a_cap_too_and_teams_a_higher_one(
    mails: Till, office: PostOffice, address: str
) -> None:
    for _ in range(2 * TEAM_SHARE):
        await queue(mails, to=address, kind="reset_password", merchant_id=None, live=None, facts={})
        await queue(mails, to=address, kind="security_notice", merchant_id=None, live=None, facts={})
    await send_due(sender_of(mails, office.url, caps=Caps(per_address=1)), now=utc_now())
    sent = Counter(str(mail["Subject"]).split()[0] for mail in office.mails)
    assert sent == {"reset_password": 1, "security_notice": TEAM_SHARE}


@pytest.mark.parametrize(
    ("caps", "given", "why"),
    [
        (Caps(per_merchant=3), {}, "merchant"),
        (Caps(per_person=3), {"kind": "invitation", "facts": {"by_person": secrets.randbelow(2**40)}}, "person"),
    ],
)
async def test_a_merchant_and_a_person_have_caps_whoever_they_write_to(
    mails: Till, office: PostOffice, caps: Caps, given: dict[str, Any], why: str
) -> None:
    for _ in range(8):
        await queue(mails, to=f"{secrets.token_hex(6)}@people.example", **given)
    await send_due(sender_of(mails, office.url, caps=caps), now=utc_now())
    assert len(office.mails) == 3
    assert await standing(mails) == {"sent": 3, OVER[why]: 5}


async def test_a_new_day_has_a_new_count_and_a_second_try_is_counted_once(
    mails: Till, office: PostOffice, address: str
) -> None:
    now = utc_now()
    office.answers = ["451 4.3.0 not now"]
    await queue(mails, to=address)
    await send_due(sender_of(mails, office.url, caps=Caps(per_address=1)), now=now)
    office.answers = ["250 OK"]
    await mails.database.execute("update mail set due_at = created_at where recipient = $1", address)
    await send_due(sender_of(mails, office.url, caps=Caps(per_address=1)), now=now)
    assert len(office.mails) == 1, "the second try of what the server would not take"
    await queue(mails, to=address)
    await send_due(sender_of(mails, office.url, caps=Caps(per_address=1)), now=now)
    assert len(office.mails) == 1
    await queue(mails, to=address)
    await send_due(sender_of(mails, office.url, caps=Caps(per_address=1)), now=now + timedelta(days=1))
    assert len(office.mails) == 2
