"""Who calls the API: the merchant whose private key the call carries, or has signed its body
(interface.md §8.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from paydesk.adapters.vault import Vault
from paydesk.core.errors import Forbidden, Malformed, TooMany, Unauthorized
from paydesk.database.pool import Database
from paydesk.database.records import record_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.keys import ALL_SCOPES, PURPOSE, KeyScope, find_signer, refuse_in_a_copy, scopes_there
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.verifying import is_genuine
from paydesk_client.signature import MalformedForm, Parameters, UnknownSignatureVersion, signature_version

queries = load_statements(__package__ or "", "callers.sql")


@dataclass(frozen=True, slots=True)
class Caller:
    """The side of the merchant that a call is about, its time, UTC (a test clock may run ahead),
    and the key pair that the call was made with.
    """

    shop: Shop
    now: datetime
    key_id: int
    scopes: frozenset[KeyScope] = ALL_SCOPES


@dataclass(frozen=True, slots=True)
class _Found:
    """Whose a private key is, and its client's calls of this minute;
    without a merchant all of that is null.
    """

    merchant_id: int | None
    key_id: int
    scopes: Sequence[str]
    moves_live: bool
    test_mode: bool
    went_live_at: datetime | None
    test_clock: timedelta
    calls: int
    in_a_copy: bool


async def identify(
    database: Database,
    vault: Vault,
    private_key: str,
    *,
    client_address: str,
    sandbox: bool,
    calls_per_minute: int,
    now: datetime,
) -> Caller:
    """The caller by the private key, found by its keyed HMAC; `sandbox` makes everything test data,
    `now` is real time.

    Raises: Unauthorized if no merchant has this key now; Conflict for a live side in a copy;
        TooMany if the client has used up its calls of this minute.
    """
    found = record_of(
        _Found,
        await queries.find_caller(
            database,
            private_key_lookup=vault.fingerprint(private_key, purpose=PURPOSE),
            client_address=client_address,
            minute=now.replace(second=0, microsecond=0),
            now=now,
        ),
    )
    _refuse_too_many(found.calls, calls_per_minute, now)
    if found.merchant_id is None:
        raise Unauthorized("X-ApiKey is wrong: no merchant has this private key; copy it from your account")
    live = not sandbox and not found.test_mode and found.went_live_at is not None
    refuse_in_a_copy(live=live, in_a_copy=found.in_a_copy)
    scopes = scopes_there(found.scopes, live=live, moves_live=found.moves_live)
    return Caller(Shop(found.merchant_id, live), now if live else now + found.test_clock, found.key_id, scopes)


async def identify_signer(
    database: Database,
    vault: Vault,
    fields: Parameters,
    *,
    client_address: str,
    sandbox: bool,
    calls_per_minute: int,
    now: datetime,
) -> Caller:
    """The caller by the key and the hash in a call's body (interface.md §8.6); else as `identify`.

    Raises: Unauthorized if no merchant has this key now or the body is not signed; Forbidden if the
        hash is wrong; Malformed for an unknown version or what can't be signed; Conflict for a live
        side in a copy; TooMany.
    """
    public_key, given = fields.get("public_key"), fields.get("hash")
    if not isinstance(public_key, str) or not isinstance(given, str) or not public_key or not given:
        raise Unauthorized(
            "send your private key in the header X-ApiKey, or sign the body: public_key, sign_version and hash"
        )
    # Calls count apart from checkout forms.
    client = f"api {client_address}"
    signer = await find_signer(database, vault, _storable(public_key), client, now)
    if signer is None:
        raise Unauthorized("public_key is wrong: no merchant has this key; copy it from your account")
    _refuse_too_many(signer.forms_this_minute, calls_per_minute, now)
    try:
        version = signature_version(fields)
        genuine = await is_genuine(database, signer, fields, given, version, client=client, now=now)
    except (UnknownSignatureVersion, MalformedForm) as error:
        raise Malformed(str(error), "hash") from error
    if not genuine:
        raise Forbidden("hash is wrong: it does not match the body's other fields and the private key of public_key")
    live = not sandbox and not signer.test_mode and signer.went_live_at is not None
    refuse_in_a_copy(live=live, in_a_copy=signer.in_a_copy)
    scopes = scopes_there(signer.scopes, live=live, moves_live=signer.moves_live)
    return Caller(Shop(signer.merchant_id, live), now if live else now + signer.test_clock, signer.key_id, scopes)


def _refuse_too_many(calls: int, calls_per_minute: int, now: datetime) -> None:
    if calls > calls_per_minute:
        raise TooMany("too many calls from this address; wait a minute", retry_after=60 - now.second)


def _storable(key: str) -> str:
    """The key as the database can be asked for it."""
    return key.replace("\x00", "").encode("utf-8", "replace").decode()
