"""What a live merchant changes of its business profile:
proposed by an owner, in force once an operator has seen it.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests import set_back
from tests.conftest import accept_waiting
from tests.web.account.conftest import Join, Visitor, fields_of, leads_to, text_of
from tests.web.account.test_settings import COMPLETE
from tests.web.operator.test_merchants import merchant_id_of

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.accounts.roles import Role
from paydesk.domain.business.profile_changes import refuse, seen_now
from paydesk.domain.business.profiles import bank_account_of

FIRST, SECOND = "DE89370400440532013000", "GB33BUKB20201555555555"


@pytest.fixture
async def shop(owner: Visitor, database: Database) -> Visitor:
    """An owner whose profile is accepted and whose bank account is old enough."""
    profile = profile_of(owner)
    await owner.send(profile, **COMPLETE)
    await set_back.address_confirmed(database, owner.email)
    await owner.send(profile, f"{profile}/submit")
    await accept_waiting(database, merchant_id_of(owner), now=utc_now() - timedelta(days=10))
    return owner


def profile_of(visitor: Visitor) -> str:
    return f"{visitor.merchant_path}/settings/profile"


async def propose(visitor: Visitor, **changed: str) -> Any:
    return await visitor.send(profile_of(visitor), **{**COMPLETE, "iban": "", **changed})


async def told(database: Database, visitor: Visitor) -> list[str]:
    """What an owner's mails tell of the profile, oldest first."""
    rows = await database.fetch(
        "select coalesce(facts ->> 'what', kind) as told from mail where recipient = $1 and kind <> 'confirm_email'"
        " and (kind like 'profile%' or facts ->> 'what' like any(array['profile_change%', 'bank%'])) order by id",
        visitor.email,
    )
    return [row["told"] for row in rows if row["told"] not in ("profile_accepted", "bank_account_changed")]


async def payouts_from(database: Database, visitor: Visitor) -> datetime | None:
    found: datetime | None = await database.fetchval(
        "select payouts_from from business_profile where merchant_id = $1", merchant_id_of(visitor)
    )
    return found


async def test_an_accepted_profile_stays_in_force_until_an_operator_has_seen_the_change(
    operator: Visitor, shop: Visitor, database: Database, vault: Vault
) -> None:
    page = f"/operator/profiles/{merchant_id_of(shop)}"
    answer = await propose(shop, legal_name="Other Shop Ltd", website="https://other.example", iban=SECOND)
    assert leads_to(answer) == profile_of(shop)
    assert await bank_account_of(database, vault, merchant_id_of(shop)) == ("Corner Shop Ltd", FIRST)
    mine = text_of(await shop.see(profile_of(shop)))
    assert "Waiting for review" in mine
    assert "•••• 3000" in mine
    assert "•••• 5555" in mine
    assert "A change" in text_of(await operator.see("/operator/profiles"))
    assert "A change waits" in text_of(await operator.see(f"/operator/merchants/{merchant_id_of(shop)}"))
    shown = text_of(await operator.see(page))
    assert "Legal name Corner Shop Ltd Other Shop Ltd" in shown
    assert "IBAN •••• 3000 •••• 5555" in shown
    assert "Postal code 10115 10115" not in shown, "only what differs"
    assert SECOND[8:16] not in shown, "no whole number of an account"
    assert leads_to(await operator.send(page, f"{page}/accept")) == "/operator/profiles"
    assert await bank_account_of(database, vault, merchant_id_of(shop)) == ("Corner Shop Ltd", SECOND)
    assert "Other Shop Ltd" in (await shop.see(profile_of(shop))).text
    assert await told(database, shop) == ["bank_account_proposed", "profile_change_accepted"]
    assert await database.fetchval(
        "select count(*) = 0 from profile_change where merchant_id = $1 and iban_sealed is not null",
        merchant_id_of(shop),
    )


async def test_payouts_wait_for_days_after_a_new_bank_account_and_for_nothing_else(
    shop: Visitor, database: Database
) -> None:
    before = await payouts_from(database, shop)
    assert before is not None
    assert before < utc_now()
    await propose(shop, support_email="new@shop.example", iban=FIRST)
    await accept_waiting(database, merchant_id_of(shop))
    assert await payouts_from(database, shop) == before, "the same account is no new one"
    await propose(shop, support_email="new@shop.example", iban=SECOND)
    now = utc_now()
    await accept_waiting(database, merchant_id_of(shop), now=now)
    assert await payouts_from(database, shop) == now + timedelta(days=3)
    assert await told(database, shop) == [
        *("profile_change_proposed", "profile_change_accepted", "bank_account_proposed", "profile_change_accepted")
    ]


async def test_a_refused_change_says_why_and_changes_nothing(
    operator: Visitor, shop: Visitor, database: Database, vault: Vault
) -> None:
    page = f"/operator/profiles/{merchant_id_of(shop)}"
    await propose(shop, legal_name="Evil Ltd", iban=SECOND)
    assert (await operator.send(page, f"{page}/refuse", reason=" ")).status_code == 400
    assert leads_to(await operator.send(page, f"{page}/refuse", reason="Who is that?")) == "/operator/profiles"
    shown = await shop.see(profile_of(shop))
    assert "Change refused Who is that?" in text_of(shown)
    assert "Evil Ltd" not in shown.text
    assert await bank_account_of(database, vault, merchant_id_of(shop)) == ("Corner Shop Ltd", FIRST)
    assert await told(database, shop) == ["bank_account_proposed", "profile_change_refused"]
    assert leads_to(await propose(shop, legal_name="Better Ltd")) == profile_of(shop)


async def test_a_change_can_be_taken_back_and_one_waits_at_a_time(
    operator: Visitor, shop: Visitor, database: Database
) -> None:
    await propose(shop, city="Bonn")
    assert (await shop.web.post(profile_of(shop), data=await fields(shop, city="Ulm"))).status_code == 409
    assert leads_to(await shop.send(profile_of(shop), f"{profile_of(shop)}/withdraw-change")) == profile_of(shop)
    again = await shop.web.post(f"{profile_of(shop)}/withdraw-change", data=await fields(shop))
    assert again.status_code == 409
    assert f"/profiles/{merchant_id_of(shop)}" not in (await operator.see("/operator/profiles")).text
    assert leads_to(await propose(shop, city="Ulm")) == profile_of(shop)


async def fields(visitor: Visitor, **changed: str) -> dict[str, str]:
    token = fields_of((await visitor.see("/account/security")).text, "/account/logout")
    return {**token, **COMPLETE, "iban": "", **changed}


async def test_an_operator_answers_only_what_was_looked_at(
    operator: Visitor, shop: Visitor, database: Database, vault: Vault
) -> None:
    """Who takes a change back and proposes another one between the look
    and the answer gains nothing.
    """
    page = f"/operator/profiles/{merchant_id_of(shop)}"
    await propose(shop, city="Bonn")
    looked_at = fields_of((await operator.see(page)).text, f"{page}/accept")
    await shop.send(profile_of(shop), f"{profile_of(shop)}/withdraw-change")
    await propose(shop, city="Bonn", iban=SECOND)
    for answer in ("accept", "refuse"):
        refused = await operator.web.post(f"{page}/{answer}", data={**looked_at, "reason": "No"})
        assert refused.status_code == 409
        assert "look at it anew" in text_of(refused)
    assert await bank_account_of(database, vault, merchant_id_of(shop)) == ("Corner Shop Ltd", FIRST)
    edges = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
    for seen in ("", "yesterday", "2026-01-01", "9" * 40, *edges):
        for answer in ("accept", "refuse"):
            sent = {**looked_at, "seen": seen, "reason": "No"}
            assert (await operator.web.post(f"{page}/{answer}", data=sent)).status_code == 400


async def test_a_change_is_accepted_with_the_password_alone(
    operator: Visitor, shop: Visitor, database: Database
) -> None:
    page = f"/operator/profiles/{merchant_id_of(shop)}"
    await propose(shop, city="Bonn")
    await set_back.password_long_ago(database)
    assert 'name="_password"' in (await operator.send(page, f"{page}/accept")).text
    assert (await shop.see(profile_of(shop))).text.count('value="Bonn"') == 0


async def test_another_bank_account_is_proposed_with_the_password_alone(shop: Visitor, database: Database) -> None:
    await set_back.password_long_ago(database)
    assert 'name="_password"' in (await propose(shop, iban=SECOND)).text
    assert await told(database, shop) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "nothing is changed"),
        ({"iban": FIRST}, "nothing is changed"),
        ({"goods": ""}, "be empty"),
        ({"iban": "DE00"}, "no IBAN"),
    ],
)
async def test_what_is_no_change_or_leaves_something_out_is_not_proposed(
    shop: Visitor, database: Database, changed: dict[str, str], said: str
) -> None:
    answer = await propose(shop, **changed)
    assert (answer.status_code, said in text_of(answer).lower() or said in text_of(answer)) == (400, True)
    assert await told(database, shop) == []


async def test_only_owners_propose_and_take_back(shop: Visitor, join: Join, database: Database) -> None:
    await propose(shop, city="Bonn")
    for role in set(Role) - {Role.owner}:
        colleague = await join(shop, role)
        for action in (profile_of(shop), f"{profile_of(shop)}/withdraw-change"):
            assert (await colleague.web.post(action, data=await fields(colleague))).status_code == 403
    assert "Waiting for review" in text_of(await shop.see(profile_of(shop)))


async def test_all_owners_hear_of_every_step(shop: Visitor, join: Join, database: Database) -> None:
    partner, viewer = await join(shop, Role.owner), await join(shop, Role.viewer)
    await set_back.address_confirmed(database, partner.email)
    await propose(shop, city="Bonn")
    await refuse(
        database,
        COMMAND_LINE,
        merchant_id_of(shop),
        seen=await seen_now(database, merchant_id_of(shop)),
        reason="No",
        now=utc_now(),
    )
    await propose(shop, city="Ulm")
    await accept_waiting(database, merchant_id_of(shop))
    steps = ["profile_change_proposed", "profile_change_refused", "profile_change_proposed", "profile_change_accepted"]
    assert await told(database, partner) == await told(database, shop) == steps
    assert await told(database, viewer) == []


async def test_the_log_keeps_every_step(shop: Visitor, database: Database) -> None:
    await propose(shop, iban=SECOND)
    await shop.send(profile_of(shop), f"{profile_of(shop)}/withdraw-change")
    rows = await database.fetch(
        "select action, details from audit_entry where merchant_id = $1 and action like 'profile_change%' order by id",
        merchant_id_of(shop),
    )
    assert [(row["action"], json.loads(row["details"])) for row in rows] == [
        ("profile_change_asked", {"bank_account": True}),
        ("profile_change_withdrawn", {}),
    ]
    assert "Proposed another profile" in text_of(await shop.see(f"{shop.merchant_path}/settings/audit"))
