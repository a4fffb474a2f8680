"""The log of refused checkout forms, which a merchant's programmer reads to find what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from paydesk.core.card_numbers import MASK, masked
from paydesk.core.errors import Forbidden, PaydeskError
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "")

MOST_PER_MERCHANT = 1000
_MOST_FIELDS = 60
_LONGEST_VALUE = 200
PRIVATE_KEY = "••••• (the private key)"
"""What is kept, and shown, in the place of a private key."""

_OURS = ("api_key", "hash")
_CARD_NUMBER = re.compile(r"(?:[0-9][\s.\-\u2010-\u2015]*){12,}")


@dataclass(frozen=True, slots=True)
class RejectedForm:
    """A refused form: when (UTC), the answer's status, the reason in words,
    and its fields, shortened.

    Of a wrong hash, `hashed` is the string that was hashed, without the private key (None where a
    field was shortened or masked), and `suspect` the likeliest reason, in English.
    """

    live: bool
    id: int
    at: datetime
    status: int
    reason: str
    fields: Mapping[str, str]
    hashed: str | None
    suspect: str | None


class WrongHash(Forbidden):
    """A form's hash is not the one that its merchant's key gives: `hashed` is what was hashed, and
    `suspect` what is most likely wrong, as far as that was looked for; `fields` are at fault.
    """

    def __init__(self, hashed: str = "", suspect: str = "") -> None:
        super().__init__("hash is wrong: it does not match the posted fields and the private key of this api_key")
        self.hashed = hashed
        self.suspect = suspect
        self.fields = ("hash",)


async def log_rejected_form(
    database: Database,
    shop: Shop,
    error: PaydeskError,
    fields: Mapping[str, object],
    now: datetime,
    *,
    secret: str = "",
) -> None:
    """Keep a refused form for the merchant; only the newest are kept,
    and nothing that looks like a card number or is the `secret`, their private key.
    """
    kept = _shortened(fields, secret)
    await queries.log_rejected_form(
        database,
        merchant_id=shop.merchant_id,
        live=shop.live,
        status=error.status,
        reason=_kept(error.message, secret),
        fields=msgspec.json.encode(kept).decode(),
        hashed=error.hashed if isinstance(error, WrongHash) and _is_whole(kept, fields) else None,
        suspect=error.suspect or None if isinstance(error, WrongHash) else None,
        now=now,
        most=MOST_PER_MERCHANT,
    )


def _shortened(fields: Mapping[str, object], secret: str = "") -> dict[str, str]:
    return {_kept(str(name), secret): _kept(str(value), secret) for name, value in list(fields.items())[:_MOST_FIELDS]}


def _kept(text: str, secret: str) -> str:
    return storable(text.replace(secret, PRIVATE_KEY) if secret else text)


def _is_whole(kept: Mapping[str, str], fields: Mapping[str, object]) -> bool:
    """Whether nothing was left out or masked: only then the signed string says nothing more than
    what is kept, so that whoever erases finds it by that.
    """
    # Key and hash are no customer's, and digits of ours that look like a card's are none.
    return all(name in _OURS or kept.get(name) == str(value) for name, value in fields.items())


def storable(text: str) -> str:
    """Cut long texts, hide digits that may be a card's, and replace NUL,
    which PostgreSQL does not store.
    """
    return masked(_CARD_NUMBER.sub(MASK, text)).replace("\x00", "\ufffd")[:_LONGEST_VALUE]


async def rejected_forms(database: Database, merchant_id: int, most: int = 50) -> list[RejectedForm]:
    """A merchant's newest refused forms, newest first."""
    rows = queries.rejected_forms(database, merchant_id=merchant_id, most=most)
    return await records_of(RejectedForm, rows)


async def list_rejected_forms(database: Database, shop: Shop, page: Page) -> list[RejectedForm]:
    """A page of the refused forms of one side, newest first;
    the last one's (at, id) is the next page's `before`.
    """
    cut = page.parameters()
    rows = queries.list_rejected_forms(database, merchant_id=shop.merchant_id, live=shop.live, **cut)
    return await records_of(RejectedForm, rows)


async def forget_form_counts(database: Database, *, before: datetime) -> None:
    """Drop the rate limit's counters of past minutes."""
    await queries.forget_form_counts(database, before=before)
