from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.breaking import say
from tests.databases import knows_capitals
from tests.domain.accounts.conftest import IsStored, Join, Mails
from tests.domain.accounts.someone import PASSWORD, Someone, confirmed, new_client, new_email

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Forbidden, Gone, Malformed, NotFound, PaydeskError, TooMany
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import list_entries
from paydesk.domain.accounts.joining import sign_up_invited
from paydesk.domain.accounts.roles import Permission, Role
from paydesk.domain.accounts.sessions import require
from paydesk.domain.accounts.team import (
    accept_invitation,
    change_role,
    find_invitation,
    invitations_of,
    invite,
    members_of,
    memberships_of,
    remove_member,
    withdraw_invitation,
)


async def link_for(owner: Someone, email: str, role: Role, mails: Mails) -> str:
    """The token of an invitation's link, as its mail carries it."""
    await invite(owner.gate, confirmed(owner.session), email=email, role=role, now=utc_now())
    return str((await mails(email))[-1]["facts"]["token"])


async def test_nobody_invites_from_an_address_that_is_not_confirmed(ada: Someone, mails: Mails) -> None:
    email = new_email()
    with pytest.raises(Forbidden, match="confirm your own e-mail address first"):
        await invite(ada.gate, ada.session, email=email, role=Role.owner, now=utc_now())
    assert await mails(email) == []


async def test_invitations_are_capped_by_person_and_by_recipient(ada: Someone, stranger: Someone, mails: Mails) -> None:
    now, victim = utc_now(), new_email()
    for one in (ada, stranger, ada, stranger, ada):
        await invite(one.gate, confirmed(one.session), email=victim, role=Role.viewer, now=now)
    with pytest.raises(TooMany):
        await invite(stranger.gate, confirmed(stranger.session), email=victim.upper(), role=Role.viewer, now=now)
    assert len(await mails(victim)) == 5
    for _ in range(17):
        await invite(ada.gate, confirmed(ada.session), email=new_email(), role=Role.viewer, now=now)
    with pytest.raises(TooMany):
        await invite(ada.gate, confirmed(ada.session), email=new_email(), role=Role.viewer, now=now)


async def roles(owner: Someone) -> dict[str, str]:
    return {member.email: str(member.role) for member in await members_of(owner.gate, owner.merchant_id)}


async def test_who_has_no_account_joins_by_the_link_with_that_address_and_role(
    ada: Someone, joined: Join, mails: Mails
) -> None:
    bob = await joined(ada, Role.developer)
    session = bob.session
    assert (session.merchant_id, session.role, session.live) == (ada.merchant_id, Role.developer, False)
    assert (session.person.email, session.person.email_confirmed_at is not None) == (bob.email, True)
    (mail,) = await mails(bob.email)
    facts = mail["facts"]
    assert (mail["kind"], mail["merchant_id"]) == ("invitation", ada.merchant_id)
    assert (facts["merchant_name"], facts["role"], facts["invited_by"]) == ("Corner Shop", "developer", "Ada Lovelace")
    assert await roles(ada) == {ada.email: "owner", bob.email: "developer"}


async def test_who_has_an_account_accepts_by_logging_in_and_looks_at_the_team_then(
    ada: Someone, stranger: Someone, gate: Gate, mails: Mails
) -> None:
    token = await link_for(ada, stranger.email, Role.viewer, mails)
    assert (await find_invitation(gate, token, now=utc_now())).has_account
    with pytest.raises(Conflict, match="log in to accept"):
        await sign_up_invited(gate, token, name="X", password=PASSWORD, client=new_client(), now=utc_now())
    assert await accept_invitation(gate, stranger.session, token, now=utc_now()) == ada.merchant_id
    assert (await stranger.again()).merchant_name == "Corner Shop"
    assert [one.merchant_name for one in await memberships_of(gate, stranger.id)] == ["Corner Shop", "Other Shop"]
    assert (await roles(ada))[stranger.email] == "viewer"


async def test_an_invitation_is_for_its_address_in_whatever_letters(
    ada: Someone, stranger: Someone, gate: Gate, mails: Mails
) -> None:
    """Whose address it is is the one that log-ins find by it."""
    await say(gate.database, "person", {"id": stranger.id}, email=f"i{stranger.email}")
    token = await link_for(ada, f"İ{stranger.email}", Role.viewer, mails)
    found = await find_invitation(gate, token, now=utc_now())
    assert found.has_account is await knows_capitals(gate.database)
    assert await accept_invitation(gate, await stranger.again(), token, now=utc_now()) == ada.merchant_id


async def test_an_invitation_is_for_its_address_alone(
    ada: Someone, stranger: Someone, gate: Gate, mails: Mails
) -> None:
    email = new_email()
    token = await link_for(ada, email, Role.owner, mails)
    with pytest.raises(Forbidden, match=email):
        await accept_invitation(gate, stranger.session, token, now=utc_now())
    assert stranger.email not in await roles(ada)
    assert not (await find_invitation(gate, token, now=utc_now())).has_account


async def test_of_many_that_use_one_link_at_once_one_joins(ada: Someone, gate: Gate, mails: Mails) -> None:
    email = new_email()
    token = await link_for(ada, email, Role.support, mails)

    async def use() -> object:
        return await sign_up_invited(gate, token, name="Bob", password=PASSWORD, client=new_client(), now=utc_now())

    ended = await asyncio.gather(*(use() for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(one, Gone | Conflict) for one in ended) == 4
    assert await roles(ada) == {ada.email: "owner", email: "support"}


async def test_a_link_ends_after_a_week_when_withdrawn_and_when_invited_anew(
    ada: Someone, gate: Gate, mails: Mails
) -> None:
    email, now = new_email(), utc_now()
    first = await link_for(ada, email, Role.viewer, mails)
    second = await link_for(ada, email, Role.support, mails)
    with pytest.raises(Gone):
        await find_invitation(gate, first, now=now)
    (open_one,) = await invitations_of(gate, ada.merchant_id, now=now)
    assert (open_one.email, open_one.role, open_one.invited_by) == (email, Role.support, "Ada Lovelace")
    with pytest.raises(Gone):
        await find_invitation(gate, second, now=now + timedelta(days=8))
    await withdraw_invitation(gate, ada.session, open_one.id, now=now)
    for attempt in (
        find_invitation(gate, second, now=now),
        sign_up_invited(gate, second, name="B", password=PASSWORD, client=new_client(), now=now),
    ):
        with pytest.raises(Gone):
            await attempt
    assert await invitations_of(gate, ada.merchant_id, now=now) == []


async def test_an_invitation_falls_with_the_role_of_who_made_it(
    ada: Someone, joined: Join, gate: Gate, mails: Mails
) -> None:
    bob = await joined(ada, Role.owner)
    token = await link_for(bob, new_email(), Role.owner, mails)
    await change_role(gate, ada.session, bob.id, Role.viewer, now=utc_now())
    with pytest.raises(Gone):
        await sign_up_invited(gate, token, name="Eve", password=PASSWORD, client=new_client(), now=utc_now())


async def test_members_are_not_invited_again_and_addresses_are_checked(ada: Someone, joined: Join, gate: Gate) -> None:
    bob = await joined(ada, Role.viewer)
    with pytest.raises(Conflict, match="change the role"):
        await invite(gate, confirmed(ada.session), email=bob.email, role=Role.owner, now=utc_now())
    with pytest.raises(Malformed):
        await invite(gate, confirmed(ada.session), email="nobody", role=Role.owner, now=utc_now())


async def test_only_owners_change_the_team(ada: Someone, joined: Join, gate: Gate) -> None:
    carol = await joined(ada, Role.viewer)
    for role in (Role.developer, Role.support, Role.viewer):
        bob = await joined(ada, role)
        attempts: list[Any] = [
            invite(gate, confirmed(bob.session), email=new_email(), role=Role.owner, now=utc_now()),
            withdraw_invitation(gate, bob.session, 1, now=utc_now()),
            change_role(gate, bob.session, bob.id, Role.owner, now=utc_now()),
            remove_member(gate, bob.session, carol.id, now=utc_now()),
            remove_member(gate, bob.session, ada.id, now=utc_now()),
        ]
        for attempt in attempts:
            with pytest.raises(Forbidden):
                await attempt


async def test_a_changed_role_counts_from_the_next_request_on(ada: Someone, joined: Join, gate: Gate) -> None:
    bob = await joined(ada, Role.owner)
    await change_role(gate, ada.session, bob.id, Role.viewer, now=utc_now())
    with pytest.raises(Forbidden, match="has changed"):
        await change_role(gate, bob.session, ada.id, Role.viewer, now=utc_now())
    with pytest.raises(Forbidden):
        require(await bob.again(), Permission.refund)


async def test_a_removed_member_sees_nothing_any_more_and_stays_logged_in(
    ada: Someone, joined: Join, gate: Gate
) -> None:
    bob = await joined(ada, Role.support)
    await remove_member(gate, ada.session, bob.id, now=utc_now())
    session = await bob.again()
    assert session.merchant_id is None
    with pytest.raises(NotFound):
        require(session, Permission.view)
    assert bob.email not in await roles(ada)


async def test_anybody_may_leave(ada: Someone, joined: Join, gate: Gate) -> None:
    bob = await joined(ada, Role.viewer)
    await remove_member(gate, bob.session, bob.id, now=utc_now())
    assert await roles(ada) == {ada.email: "owner"}


async def test_the_last_owner_stays(ada: Someone, joined: Join, gate: Gate) -> None:
    await joined(ada, Role.developer)
    for attempt in (
        change_role(gate, ada.session, ada.id, Role.viewer, now=utc_now()),
        remove_member(gate, ada.session, ada.id, now=utc_now()),
    ):
        with pytest.raises(Conflict, match="needs an owner"):
            await attempt
    await change_role(gate, ada.session, ada.id, Role.owner, now=utc_now())
    assert (await roles(ada))[ada.email] == "owner"


@pytest.mark.parametrize("other", [True, False])
async def test_owners_who_demote_or_leave_at_once_leave_an_owner(
    ada: Someone, joined: Join, gate: Gate, *, other: bool
) -> None:
    owners = [ada, *[await joined(ada, Role.owner) for _ in range(3)]]

    async def go(one: Someone, next_one: Someone) -> None:
        if other:
            await change_role(gate, one.session, next_one.id, Role.viewer, now=utc_now())
        else:
            await remove_member(gate, one.session, one.id, now=utc_now())

    around = zip(owners, [*owners[1:], ada], strict=True)
    ended = await asyncio.gather(*(go(*pair) for pair in around), return_exceptions=True)
    assert all(one is None or isinstance(one, PaydeskError) for one in ended), ended
    assert list((await roles(ada)).values()).count("owner") >= 1
    assert any(one is not None for one in ended)


async def test_another_merchants_team_is_out_of_reach(
    ada: Someone, stranger: Someone, joined: Join, gate: Gate
) -> None:
    bob = await joined(ada, Role.viewer)
    invitation = await invite(gate, confirmed(ada.session), email=new_email(), role=Role.viewer, now=utc_now())
    attempts: list[Any] = [
        change_role(gate, stranger.session, bob.id, Role.owner, now=utc_now()),
        remove_member(gate, stranger.session, bob.id, now=utc_now()),
        withdraw_invitation(gate, stranger.session, invitation, now=utc_now()),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            await attempt
    assert [member.email for member in await members_of(gate, stranger.merchant_id)] == [stranger.email]
    assert await invitations_of(gate, stranger.merchant_id, now=utc_now()) == []
    assert (await roles(ada))[bob.email] == "viewer"


async def test_an_invitations_token_rests_unreadable(ada: Someone, mails: Mails, is_stored: IsStored) -> None:
    token = await link_for(ada, new_email(), Role.viewer, mails)
    for table in ("mail", "invitation", "audit_entry"):
        assert not await is_stored(token, table)


async def test_the_log_tells_what_was_done_to_the_team(
    ada: Someone, joined: Join, gate: Gate, database: Database
) -> None:
    bob = await joined(ada, Role.viewer)
    await change_role(gate, ada.session, bob.id, Role.support, now=utc_now())
    await change_role(gate, ada.session, bob.id, Role.support, now=utc_now())
    await remove_member(gate, ada.session, bob.id, now=utc_now())
    entries = list(reversed(await list_entries(database, ada.merchant_id, Page(50))))
    assert [(str(entry.action), entry.email) for entry in entries] == [
        ("merchant_opened", ada.email),
        ("member_invited", ada.email),
        ("member_joined", bob.email),
        ("role_changed", ada.email),
        ("member_removed", ada.email),
    ]
    assert entries[3].details == {"before": "viewer", "after": "support"}
    assert entries[3].subject == f"person {bob.id} ({bob.email})"
    assert entries[3].client_address == ada.client.address
