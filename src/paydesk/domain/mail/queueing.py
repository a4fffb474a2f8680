"""Queueing a mail in the transaction of the event that it tells;
whoever sends reads the table `mail`.

Secrets in a mail, such as the token of a link, don't rest readable in `facts`: they are sealed by
the vault under the purpose "mail" (`seal_fact`) and opened only when the mail is written
(`open_facts`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime

import msgspec

from paydesk.adapters.vault import Sealed, Vault
from paydesk.core.storable import storable_json
from paydesk.database.statements import Connection, load_statements

queries = load_statements(__package__ or "")

PURPOSE = "mail"


class _Secret(msgspec.Struct, frozen=True):
    """A sealed value among a mail's facts."""

    sealed: str
    vault_key_id: str
    row_id: int


async def queue_mail(
    connection: Connection,
    *,
    merchant_id: int | None,
    live: bool | None,
    kind: str,
    to: str,
    language: str,
    facts: Mapping[str, object],
    once: str,
    now: datetime,
) -> None:
    """Queue one mail to one address; a second call for the same event changes nothing, and one to
    nobody (an empty address) neither. Moves no money.

    Args: connection is in the transaction of the event; merchant_id is None for what concerns a
    person alone; kind names the template; language is a tag like `de`; facts are what the template
    shows (JSON; decimals and times become text); once names the event among the merchant's, for
    example `receipt 13330`.
    """
    await queries.queue_mail(
        connection,
        merchant_id=merchant_id or 0,
        live=live,
        kind=kind,
        recipient=to,
        language=language,
        facts=storable_json(facts),
        once=once,
        now=now,
    )


def seal_fact(vault: Vault, value: str, *, row_id: int) -> dict[str, object]:
    """A secret as it may rest among a mail's facts, bound to the id of the row
    that it belongs to.
    """
    sealed = vault.seal(value.encode(), purpose=PURPOSE, merchant_id=0, row_id=row_id)
    return {"sealed": base64.b64encode(sealed.blob).decode(), "vault_key_id": sealed.key_id, "row_id": row_id}


def open_facts(vault: Vault, facts: Mapping[str, object]) -> dict[str, object]:
    """The facts as the template shows them, with each sealed one opened.

    Raises: VaultError if one was sealed under a key that is not configured.
    """
    return {name: _opened(vault, secret) if (secret := _secret(value)) else value for name, value in facts.items()}


def reseal_facts(vault: Vault, facts: Mapping[str, object], seals: Vault | None = None) -> dict[str, object]:
    """The facts with each sealed one sealed anew, under the newest key of the vault, or of another
    one that `seals`.

    Raises: VaultError if one was sealed under a key that is not configured.
    """
    return {
        name: seal_fact(seals or vault, _opened(vault, secret), row_id=secret.row_id)
        if (secret := _secret(value))
        else value
        for name, value in facts.items()
    }


def sealed_under(facts: Mapping[str, object]) -> list[str]:
    """The ids of the keys that sealed what is sealed among the facts."""
    return [secret.vault_key_id for value in facts.values() if (secret := _secret(value))]


def _secret(value: object) -> _Secret | None:
    is_sealed = isinstance(value, dict) and set(value) == set(_Secret.__struct_fields__)
    return msgspec.convert(value, _Secret) if is_sealed else None


def _opened(vault: Vault, secret: _Secret) -> str:
    sealed = Sealed(secret.vault_key_id, base64.b64decode(secret.sealed))
    return vault.open(sealed, purpose=PURPOSE, merchant_id=0, row_id=secret.row_id).decode()
