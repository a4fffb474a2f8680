from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tests import set_back
from tests.domain.accounts.conftest import Join, Mails
from tests.domain.accounts.someone import Someone

from paydesk.core.clock import utc_now
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.roles import Role
from paydesk.domain.business.key_pairs import GRACE_PERIODS, end_key, public_keys, rotate_keys
from paydesk.domain.business.pingback_settings import find_pingback_settings, save_pingback_settings
from paydesk.domain.business.profiles import save_profile


async def whats(mails: Mails, someone: Someone) -> list[str]:
    return [one["facts"]["what"] for one in await mails(someone.email) if one["kind"] == "security_notice"]


async def test_all_owners_and_who_did_it_hear_of_keys_and_bank_accounts_and_nobody_else(
    ada: Someone, stranger: Someone, joined: Join, gate: Gate, mails: Mails
) -> None:
    now = utc_now() + timedelta(seconds=1)
    partner, developer, viewer = [await joined(ada, role) for role in (Role.owner, Role.developer, Role.viewer)]
    first = (await public_keys(gate.database, ada.merchant_id))[0].id
    await rotate_keys(gate, developer.session, replaces=first, grace=GRACE_PERIODS[1], now=now)
    await end_key(gate, developer.session, first, now=now)
    await save_profile(gate, ada.session, {}, iban="DE89370400440532013000", now=now)
    for owner in (ada, partner):
        assert await whats(mails, owner) == ["key_rotated", "key_ended", "bank_account_changed"]
    assert await whats(mails, developer) == ["key_rotated", "key_ended"]
    assert await whats(mails, viewer) + await whats(mails, stranger) == []
    told = (await mails(partner.email))[-1]["facts"]
    assert (told["shop"], told["by"], told["name"]) == ("Corner Shop", "Ada Lovelace", "Bob")


async def test_all_owners_hear_of_another_pingback_url_but_not_of_the_first(
    ada: Someone, joined: Join, gate: Gate, mails: Mails
) -> None:
    now = utc_now() + timedelta(seconds=1)
    partner, developer = await joined(ada, Role.owner), await joined(ada, Role.developer)
    present = await find_pingback_settings(gate.database, ada.merchant_id)
    for number, url in enumerate(("https://shop.example/a", "https://shop.example/b", None)):
        wanted = replace(present, pingback_url=url)
        await save_pingback_settings(gate, developer.session, wanted, now=now + timedelta(seconds=number))
    for one in (ada, partner, developer):
        assert await whats(mails, one) == ["pingback_url_changed"] * 2
    urls = [one["facts"].get("pingback_url") for one in await mails(ada.email) if one["kind"] == "security_notice"]
    assert urls == ["https://shop.example/b", ""]


async def test_the_first_pingback_url_of_a_live_shop_is_told(ada: Someone, gate: Gate, mails: Mails) -> None:
    await set_back.went_live(gate.database, ada.merchant_id, test_mode=True)
    wanted = replace(await find_pingback_settings(gate.database, ada.merchant_id), pingback_url="https://evil.example/")
    await save_pingback_settings(gate, await ada.again(), wanted, now=utc_now())
    assert await whats(mails, ada) == ["pingback_url_changed"]


async def test_a_profile_without_another_bank_account_is_no_notice(ada: Someone, gate: Gate, mails: Mails) -> None:
    await save_profile(gate, ada.session, {"legal_name": "Ada"}, now=utc_now())
    assert await whats(mails, ada) == []
