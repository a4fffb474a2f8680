"""Who calls the API: the merchant whose private key the call carries (wire.md §3)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paydesk.adapters.vault import Vault
from paydesk.core.errors import TooMany, Unauthorized
from paydesk.database.pool import Database
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.merchants.keys import PURPOSE

queries = load_statements(__package__ or "", "callers.sql")


@dataclass(frozen=True, slots=True)
class Caller:
    """The side of the merchant that a call is about, and its time, UTC (a test clock may run ahead)."""

    shop: Shop
    now: datetime


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
    """The caller by the private key, found by its keyed HMAC; `sandbox` makes everything test data, `now` is real time.

    Raises: Unauthorized if no merchant has this key now; TooMany if the client has used up its calls of this minute.
    """
    row = await queries.find_caller(
        database,
        private_key_lookup=vault.fingerprint(private_key, purpose=PURPOSE),
        client_address=client_address,
        minute=now.replace(second=0, microsecond=0),
        now=now,
    )
    if row["calls"] > calls_per_minute:
        raise TooMany("too many calls from this address; wait a minute", retry_after=60 - now.second)
    if row["merchant_id"] is None:
        raise Unauthorized("X-ApiKey is wrong: no merchant has this private key; copy it from your account")
    live = not sandbox and not row["test_mode"] and row["went_live_at"] is not None
    return Caller(Shop(row["merchant_id"], live), now if live else now + row["test_clock"])
