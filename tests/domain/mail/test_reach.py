"""Where mails may go: nothing but a link that proves an address leaves for one
that nobody has confirmed.
"""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from tests import breaking, set_back
from tests.domain.mail.conftest import UNCAPPED
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.domain.mail.kinds import LINK_KINDS, MERCHANT_KINDS, MailKind
from paydesk.domain.mail.queueing import queue_mail
from paydesk.domain.mail.sending import LEASE, queries


def address() -> str:
    return f"{secrets.token_hex(8)}@shop.example"


async def add_person(mails: Till, email: str, role: str | None, *, confirmed: bool) -> None:
    person = await set_back.somebody(mails.database, email, confirmed=confirmed)
    if role is not None:
        await set_back.member(mails.database, mails.shop.merchant_id, person, role)


async def goes_to(mails: Till, kind: MailKind, to: str, *, live: bool | None = None, of_shop: bool = True) -> str:
    """Queue a mail and claim it: the address that it is handed over to, empty if to none."""
    now = utc_now()
    await queue_mail(
        mails.database,
        merchant_id=mails.shop.merchant_id if of_shop else None,
        live=live,
        kind=kind,
        to=to,
        language="en",
        facts={},
        once=f"test {secrets.token_hex(8)}",
        now=now,
    )
    claimed: list[Any] = [
        row
        async for row in queries.claim(
            mails.database,
            now=now,
            most=100,
            lease=LEASE,
            merchant_kinds=[str(one) for one in MERCHANT_KINDS],
            link_kinds=[str(one) for one in LINK_KINDS],
            **UNCAPPED,
        )
    ]
    return str(claimed[-1]["recipient"])


@pytest.fixture
async def shops_own(mails: Till) -> str:
    """The address in the shop's settings, which is anybody's."""
    email = address()
    await breaking.say(mails.database, "merchant", {"id": mails.shop.merchant_id}, email=email)
    return email


async def test_an_account_that_an_operator_opened_is_told_at_its_address(mails: Till, shops_own: str) -> None:
    assert await goes_to(mails, MailKind.chargeback_alert, shops_own, live=True) == shops_own


async def test_a_shops_address_that_is_nobodys_of_the_team_gets_nothing(mails: Till, shops_own: str) -> None:
    await add_person(mails, address(), "owner", confirmed=False)
    assert await goes_to(mails, MailKind.chargeback_alert, shops_own, live=True) == ""
    assert await goes_to(mails, MailKind.receipt, shops_own, live=False) == "", "mails about test data"


async def test_what_a_shop_must_know_goes_to_its_confirmed_owner_instead(mails: Till, shops_own: str) -> None:
    await add_person(mails, address(), "owner", confirmed=False)
    await add_person(mails, owner := address(), "owner", confirmed=True)
    assert await goes_to(mails, MailKind.failing_endpoint, shops_own, live=True) == owner
    assert await goes_to(mails, MailKind.receipt, shops_own, live=False) == owner
    assert await goes_to(mails, MailKind.chargeback_alert, owner.upper(), live=True) == owner.upper()


async def test_a_member_of_the_team_may_be_the_shops_address(mails: Till, shops_own: str) -> None:
    await add_person(mails, address(), "owner", confirmed=True)
    await add_person(mails, shops_own.upper(), "support", confirmed=True)
    assert await goes_to(mails, MailKind.chargeback_alert, shops_own, live=True) == shops_own


async def test_a_stranger_whose_address_was_taken_gets_links_alone(mails: Till) -> None:
    await add_person(mails, victim := address(), None, confirmed=False)
    assert await goes_to(mails, MailKind.security_notice, victim, of_shop=False) == ""
    assert await goes_to(mails, MailKind.confirm_email, victim, of_shop=False) == victim
    assert await goes_to(mails, MailKind.reset_password, victim, of_shop=False) == victim


async def test_nobody_takes_a_customers_receipt_away_by_signing_up_with_the_address(mails: Till) -> None:
    await add_person(mails, customer := address(), None, confirmed=False)
    assert await goes_to(mails, MailKind.receipt, customer, live=True) == customer
