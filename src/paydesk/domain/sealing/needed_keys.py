"""Which keys of the vault are needed: a start without one of them would fail later,
at a charge or a payout.
"""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from paydesk.adapters.vault import Vault
from paydesk.core.errors import SetupError
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.sealing.resealing import PLACES

log = structlog.get_logger()
queries = load_statements(__package__ or "", "needed_keys.sql")


@dataclass(frozen=True, slots=True)
class _Need:
    """Something in a place rests under a key."""

    place: str
    key_id: str


async def keys_needed(database: Database) -> dict[str, list[str]]:
    """The ids of the keys that anything rests under, each with the names of its places;
    cheap at any size.
    """
    found: dict[str, list[str]] = {}
    for need in await records_of(_Need, queries.keys_needed(database)):
        found.setdefault(need.key_id, []).append(need.place)
    return found


async def require_vault_keys(database: Database, vault: Vault, *, lost: frozenset[str] = frozenset()) -> None:
    """Refuse to start without a key that something rests under;
    of those that are `lost` for good only warn.

    Raises: SetupError, naming each key that is missing, what it is needed for and the next step.
    """
    needed = {place.name: place.needed for place in PLACES}
    missing = {key: places for key, places in (await keys_needed(database)).items() if not vault.knows(key)}
    for key in lost & missing.keys():
        log.warning("what rests under a lost vault key can't be opened", key=key, places=missing.pop(key))
    if missing:
        keys = "; ".join(f'"{key}" ({", ".join(needed[place] for place in places)})' for key, places in missing.items())
        raise SetupError(
            f"PAYDESK_VAULT_KEYS lacks keys under which data rests: {keys}; put them back behind the first key "
            "(see: paydesk vault status); or, if they are gone for good, name them in PAYDESK_LOST_VAULT_KEYS"
        )
