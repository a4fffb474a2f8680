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


async def bring_team(opens: Vault, seals: Vault, pair: Pair) -> None:
    """Make the team there what it is here, of who is known there by their address or came before,
    else with password and second factor. Nobody is an operator there by that.
    """
    await queries.dismiss_team(pair.there, merchant_id=pair.merchant_id)
    for member in await records_of(_Member, queries.team(pair.here, merchant_id=pair.merchant_id)):
        person_id = await queries.known_person(pair.there, id=member.id, email=member.email)
        if person_id is None:
            anew = _sealed_for(opens, seals, member)
            person_id, blob, key_id = member.id, anew and anew.blob, anew.key_id if anew else member.vault_key_id
            await queries.add_person(pair.there, person=member.person, totp_sealed=blob, vault_key_id=key_id)
        await queries.add_member(
            pair.there,
            merchant_id=pair.merchant_id,
            person_id=person_id,
            role=member.role,
            created_at=member.created_at,
        )


def _sealed_for(opens: Vault, seals: Vault, member: _Member) -> Sealed | None:
    if member.totp_sealed is None or member.vault_key_id is None:
        return None
    sealed, purpose = Sealed(member.vault_key_id, member.totp_sealed), second_factor.PURPOSE
    secret = opens.open(sealed, purpose=purpose, merchant_id=0, row_id=member.id)
    return seals.seal(secret, purpose=purpose, merchant_id=0, row_id=member.id)
