"""Whoever belongs to a merchant's team goes along, as they are at the end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paydesk.adapters.vault import Sealed, Vault
from paydesk.database.records import records_of
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
    person: str


async def bring_team(opens: Vault, seals: Vault, pair: Pair) -> list[int]:
    """Make the team there what it is here, with password and second factor; the people who were
    made for that. Nobody is an operator there by that.

    Who is known there by their address, and belongs to somebody else or has an account of their
    own, stays as they are; whose account came with the merchant, or was left when it went, is what
    it is here by now.
    """
    made = []
    await queries.dismiss_team(pair.there, merchant_id=pair.merchant_id)
    for member in await records_of(_Member, queries.team(pair.here, merchant_id=pair.merchant_id)):
        person_id = await queries.known_person(pair.there, id=member.id, email=member.email)
        if person_id in (None, member.id):
            anew = _sealed_for(opens, seals, member)
            sealed = {"totp_sealed": anew and anew.blob, "vault_key_id": anew.key_id if anew else member.vault_key_id}
            if person_id is None:
                await queries.add_person(pair.there, person=member.person, **sealed)
                made.append(member.id)
            else:
                await queries.renew_person(pair.there, person=member.person, **sealed)
        await queries.add_member(
            pair.there,
            merchant_id=pair.merchant_id,
            person_id=person_id or member.id,
            role=member.role,
            created_at=member.created_at,
        )
    return made


def _sealed_for(opens: Vault, seals: Vault, member: _Member) -> Sealed | None:
    if member.totp_sealed is None or member.vault_key_id is None:
        return None
    sealed, purpose = Sealed(member.vault_key_id, member.totp_sealed), second_factor.PURPOSE
    secret = opens.open(sealed, purpose=purpose, merchant_id=0, row_id=member.id)
    return seals.seal(secret, purpose=purpose, merchant_id=0, row_id=member.id)
