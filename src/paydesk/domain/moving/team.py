"""Whoever belongs to a merchant's team goes along, as they are at the end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paydesk.adapters.vault import Sealed, Vault
from paydesk.core.email_addresses import in_small_letters
from paydesk.core.errors import Conflict
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import Connection
from paydesk.domain.accounts import second_factor
from paydesk.domain.moving.copying import Pair, queries


@dataclass(frozen=True, slots=True)
class _Member:
    id: int
    email: str
    role: str
    created_at: datetime
    totp_sealed: bytes | None
    vault_key_id: str | None
    proven: bool
    person: str


async def bring_team(opens: Vault, seals: Vault, pair: Pair) -> list[int]:
    """Make the team there what it is here, with password and second factor; the people who were
    made for that. Nobody is an operator there by that.

    Who is known there by their address, and belongs to somebody else or has an account of their
    own, stays as they are; whose account came with the merchant, or was left when it went, is what
    it is here by now. An address leads to nobody there who has another one here by now, or who has
    never shown that it is theirs: that account is the member's, who has shown it here, or if they
    have not either, if it is nobody's else.

    Raises: Conflict if who has it there uses their account.
    """
    made = []
    await queries.dismiss_team(pair.there, merchant_id=pair.merchant_id)
    for member in await records_of(_Member, queries.team(pair.here, merchant_id=pair.merchant_id)):
        person_id = await _known_there(pair, member)
        anew = _sealed_for(opens, seals, member, person_id or member.id)
        sealed = {"totp_sealed": anew and anew.blob, "vault_key_id": anew.key_id if anew else member.vault_key_id}
        if person_id is None:
            await queries.add_person(pair.there, person=member.person, **sealed)
            made.append(member.id)
        else:
            taken = await queries.take_over_unproven(pair.there, id=person_id, person=member.person, **sealed)
            if not taken and await _unproven_other(pair.there, member) is not None:
                raise Conflict(f"nobody has shown in either cell that the address {member.email} is theirs")
        if person_id == member.id:
            await queries.renew_person(pair.there, person=member.person, **sealed)
        await queries.add_member(
            pair.there,
            merchant_id=pair.merchant_id,
            person_id=person_id or member.id,
            role=member.role,
            created_at=member.created_at,
        )
    return made


async def addresses_in_use(here: Database | Connection, there: Database | Connection, merchant_id: int) -> list[str]:
    """Addresses of the team that are other people's there: people who have another one here by now,
    and use their account there.
    """
    members = await records_of(_Member, queries.team(here, merchant_id=merchant_id))
    used = []
    for member in members:
        other = await _another_of_address(here, there, member)
        if other is not None and await queries.is_used(there, id=other.id, merchant_id=merchant_id):
            used.append(member.email)
    return used


async def unproven_addresses(here: Database | Connection, there: Database | Connection, merchant_id: int) -> list[str]:
    """Addresses of the team that somebody uses an account by there, too, and nobody has shown to be
    theirs in either cell: each may be a stranger to the other's shop.
    """
    members = await records_of(_Member, queries.team(here, merchant_id=merchant_id))
    return [member.email for member in members if await _may_be_strangers(there, member, merchant_id)]


async def _may_be_strangers(there: Database | Connection, member: _Member, merchant_id: int) -> bool:
    other = await _unproven_other(there, member)
    return other is not None and bool(await queries.is_used(there, id=other, merchant_id=merchant_id))


async def _unproven_other(there: Database | Connection, member: _Member) -> int | None:
    """Whose account a member's address leads to there, if neither has shown that it is theirs."""
    if member.proven:
        return None
    other: int | None = await queries.unproven_other(there, id=member.id, email=member.email)
    return other


@dataclass(frozen=True, slots=True)
class _Other:
    """Somebody else, and their address where the merchant comes from."""

    id: int
    email: str


async def _another_of_address(
    here: Database | Connection, there: Database | Connection, member: _Member
) -> _Other | None:
    """Who has a member's address there, and another one here by now."""
    person_id = await queries.known_person(there, id=member.id, email=member.email)
    if person_id in (None, member.id):
        return None
    email = await queries.address_of(here, id=person_id)
    if email is None or in_small_letters(email) == in_small_letters(member.email):
        return None
    return _Other(person_id, email)


async def _known_there(pair: Pair, member: _Member) -> int | None:
    """Whose account there is the member's; who has their address wrongly has it no more."""
    other = await _another_of_address(pair.here, pair.there, member)
    if other is not None:
        if await queries.is_used(pair.there, id=other.id, merchant_id=pair.merchant_id):
            raise Conflict(f"the address {member.email} is another person's in the other cell")
        await queries.readdress(pair.there, id=other.id, email=other.email)
    known: int | None = await queries.known_person(pair.there, id=member.id, email=member.email)
    return known


def _sealed_for(opens: Vault, seals: Vault, member: _Member, person_id: int) -> Sealed | None:
    """A member's second factor as it rests at a person's row there."""
    if member.totp_sealed is None or member.vault_key_id is None:
        return None
    sealed, purpose = Sealed(member.vault_key_id, member.totp_sealed), second_factor.PURPOSE
    secret = opens.open(sealed, purpose=purpose, merchant_id=0, row_id=member.id)
    return seals.seal(secret, purpose=purpose, merchant_id=0, row_id=person_id)
