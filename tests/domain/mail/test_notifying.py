"""Owners hear what was decided about their business:
each once, in their language, or nobody does.
"""

from __future__ import annotations

import json
import secrets

import pytest
from tests import breaking, set_back
from tests.conftest import accept_waiting, submit_profile
from tests.till import Till
from tests.web.mails.every_mail import ADDRESSES, mail_of

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.business.profile_changes import refuse, seen_now
from paydesk.domain.mail.kinds import MailKind
from paydesk.domain.mail.notifying import tell_owners
from paydesk.domain.operations.merchants import resume_merchant, suspend_merchant
from paydesk.web.mails.writing import write


async def join(mails: Till, name: str, role: str, language: str, *, confirmed: bool = True) -> str:
    """A colleague in the team; returns their address."""
    email = f"{name}.{secrets.token_hex(4)}@mails.example"
    person = await set_back.somebody(mails.database, email, name=name, language=language, confirmed=confirmed)
    await set_back.member(mails.database, mails.shop.merchant_id, person, role)
    return email


async def test_each_owner_with_a_confirmed_address_reads_it_in_their_language(mails: Till) -> None:
    ford = await join(mails, "Ford", "owner", "de")
    trillian = await join(mails, "Trillian", "owner", "ja")
    await join(mails, "Zaphod", "owner", "fr", confirmed=False)
    await join(mails, "Arthur", "developer", "es")
    now = utc_now()
    for _ in range(2):
        await tell_owners(
            mails.database,
            mails.shop.merchant_id,
            MailKind.merchant_suspended,
            now=now,
            reason="You sell <b>towels</b>",
        )
    told = await mails.rows("mail")
    assert {(mail["recipient"], mail["language"]) for mail in told} == {(ford, "de"), (trillian, "ja")}
    assert len(told) == 2
    facts = json.loads(next(mail["facts"] for mail in told if mail["recipient"] == ford))
    letter = write(mail_of(MailKind.merchant_suspended, "de", facts=facts), ADDRESSES)
    assert "Guten Tag Ford," in letter.text
    assert "You sell <b>towels</b>" in letter.text
    assert "<b>" not in letter.html
    assert f"/account/{mails.shop.merchant_id}/overview" in letter.text


async def test_without_such_an_owner_the_merchants_own_address_is_told(mails: Till) -> None:
    await join(mails, "Zaphod", "owner", "fr", confirmed=False)
    await tell_owners(mails.database, mails.shop.merchant_id, MailKind.profile_accepted, now=utc_now())
    (mail,) = await mails.rows("mail")
    assert mail["recipient"] == "owner@shop.example"


async def test_what_is_rolled_back_is_not_told(mails: Till) -> None:
    async with mails.database.acquire() as connection:
        change = connection.transaction()
        await change.start()
        await tell_owners(connection, mails.shop.merchant_id, MailKind.profile_accepted, now=utc_now())
        await change.rollback()
    assert await mails.rows("mail") == []


async def test_a_profiles_answers_are_told(mails: Till) -> None:
    await submit_profile(mails.database, mails.shop.merchant_id)
    merchant_id = mails.shop.merchant_id
    seen, now = await seen_now(mails.database, merchant_id), utc_now()
    await refuse(mails.database, COMMAND_LINE, merchant_id, seen=seen, reason="Name your towels.", now=now)
    await breaking.say(mails.database, "business_profile", {"merchant_id": mails.shop.merchant_id}, status="submitted")
    await accept_waiting(mails.database, merchant_id, seen=seen)
    refused, accepted = await mails.rows("mail")
    assert (refused["kind"], json.loads(refused["facts"])["reason"]) == ("profile_refused", "Name your towels.")
    assert accepted["kind"] == "profile_accepted"
    with pytest.raises(Conflict):
        await accept_waiting(mails.database, merchant_id, seen=seen)
    assert len(await mails.rows("mail")) == 2


async def test_a_suspension_and_its_end_are_told(mails: Till) -> None:
    merchant_id = mails.shop.merchant_id
    with pytest.raises(Malformed):
        await suspend_merchant(mails.database, COMMAND_LINE, merchant_id, reason=" ", now=utc_now())
    await suspend_merchant(mails.database, COMMAND_LINE, merchant_id, reason="Too many disputes.", now=utc_now())
    with pytest.raises(Conflict):
        await suspend_merchant(mails.database, COMMAND_LINE, merchant_id, reason="Again.", now=utc_now())
    await resume_merchant(mails.database, COMMAND_LINE, merchant_id, now=utc_now())
    suspended, restored = await mails.rows("mail")
    assert (suspended["kind"], json.loads(suspended["facts"])["reason"]) == (
        "merchant_suspended",
        "Too many disputes.",
    )
    assert restored["kind"] == "merchant_restored"
