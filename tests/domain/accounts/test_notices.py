from __future__ import annotations

from datetime import timedelta

from tests.domain.accounts.conftest import Join, Mails
from tests.domain.accounts.someone import Someone

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.gate import Gate
from paydesk.domain.accounts.roles import Role
from paydesk.domain.merchants.integration import GRACE_PERIODS, public_keys, rotate_keys
from paydesk.domain.merchants.profiles import Details, save_profile


async def whats(mails: Mails, someone: Someone) -> list[str]:
    return [one["facts"]["what"] for one in await mails(someone.email) if one["kind"] == "security_notice"]


async def test_all_owners_and_nobody_else_hear_of_keys_and_bank_accounts(
    ada: Someone, stranger: Someone, joined: Join, gate: Gate, mails: Mails
) -> None:
    now = utc_now() + timedelta(seconds=1)
    partner, developer = await joined(ada, Role.owner), await joined(ada, Role.developer)
    newest = (await public_keys(gate.database, ada.merchant_id))[0].id
    await rotate_keys(gate, developer.session, replaces=newest, grace=GRACE_PERIODS[0], now=now)
    await save_profile(gate, ada.session, Details(), iban="DE89370400440532013000", now=now)
    for owner in (ada, partner):
        assert await whats(mails, owner) == ["key_rotated", "bank_account_changed"]
    assert await whats(mails, developer) + await whats(mails, stranger) == []


async def test_a_profile_without_another_bank_account_is_no_notice(ada: Someone, gate: Gate, mails: Mails) -> None:
    await save_profile(gate, ada.session, Details(legal_name="Ada"), now=utc_now())
    assert await whats(mails, ada) == []
