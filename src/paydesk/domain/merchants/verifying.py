"""Whether what a merchant's key is said to have signed is genuine;
looking for it is limited before it begins.
"""

from __future__ import annotations

import asyncio
import hmac
from datetime import datetime
from typing import cast
from weakref import WeakValueDictionary

from paydesk.core.errors import TooMany
from paydesk.database.pool import Database
from paydesk.domain.merchants.hash_threads import checks
from paydesk.domain.merchants.keys import Signer, queries
from paydesk_client.signature import Parameters, Version, sign, verify

MOST_REFUSED = 30
"""Forms or calls with a wrong hash that one client may send a merchant in a minute;
more are not looked at."""

MOST_AT_ONCE = 40, 2000
"""Fields, and characters in them, up to which a hash is checked at once:
that is less than a thread would cost."""

_turns: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()


async def is_genuine(
    database: Database,
    signer: Signer,
    fields: Parameters,
    given: str,
    version: Version,
    *,
    client: str,
    now: datetime,
) -> bool:
    """Whether a hash is right for the fields, in one of the ways in which clients write them.

    What is not written in the usual way is counted against the client first, and taken back if it
    is genuine. One such form of a client at a time, so that genuine ones which come together are
    not taken for a flood.

    Raises: TooMany if the client has sent too much with a wrong hash; MalformedForm for what can't
        be signed.
    """
    _refuse_flood(signer.refused_this_minute, now)
    if _is_short(fields):
        usual = _is_usual(fields, given, signer.private_key, version)
    else:
        usual = await checks.do(lambda: _is_usual(fields, given, signer.private_key, version))
    if usual:
        return True
    counted = {
        "merchant_id": signer.merchant_id,
        "client_address": client,
        "minute": now.replace(second=0, microsecond=0),
    }
    async with _turns.setdefault((signer.merchant_id, client), asyncio.Lock()):
        _refuse_flood(await queries.count_refused(database, **counted) - 1, now)
        if not await checks.do(lambda: verify(fields, given, signer.private_key, version)):
            return False
        await queries.take_back_refused(database, **counted)
        return True


def _refuse_flood(refused: int, now: datetime) -> None:
    """Refuse whoever has sent so much with a wrong hash in this minute. Raises: TooMany."""
    if refused >= MOST_REFUSED:
        raise TooMany("too much with a wrong hash came from this address; wait a minute", retry_after=60 - now.second)


def _is_short(fields: Parameters) -> bool:
    """Whether there is so little of it that checking the hash holds up nobody:
    what shops send, as a rule.
    """
    most_fields, most_characters = MOST_AT_ONCE
    if len(fields) > most_fields or not all(isinstance(value, str) for value in fields.values()):
        return False
    return sum(len(name) + len(cast("str", value)) for name, value in fields.items()) <= most_characters


def _is_usual(fields: Parameters, given: str, private_key: str, version: Version) -> bool:
    expected = sign(fields, private_key, version)
    return hmac.compare_digest(expected.encode(), given.lower().encode("utf-8", "surrogatepass"))
