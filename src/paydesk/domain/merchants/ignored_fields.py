"""Fields that shops send with checkout forms and deliveries and that mean nothing here,
for the shop's programmer.

Plugins send fields of their own, so they are not refused; but one that is ignored may be one that
was mistyped. Names alone are kept: what they hold may be anybody's. A picture that was left out
stands here as its field, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from paydesk.database.pool import AWAY, Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.refused_forms import storable
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "ignored_fields.sql")

MOST_NAMES = 100
"""How many names are kept of one side, with forms and with deliveries each."""

_MOST_AT_ONCE = 20
_PAUSE = 600.0
"""Seconds for which a process takes a name as noted: a plugin sends the same with every order."""

_MOST_REMEMBERED = 10_000


class SentWith(StrEnum):
    """What a field came with."""

    FORM = "form"
    DELIVERY = "delivery"


@dataclass(frozen=True, slots=True)
class IgnoredField:
    """A name that was sent and ignored; times are UTC,
    `last_at` is at most ten minutes old news.
    """

    sent_with: SentWith
    name: str
    first_at: datetime
    last_at: datetime


_noted: dict[tuple[Shop, SentWith, str], float] = {}
"""What this process has noted, and until when (monotonic seconds) that is enough."""


async def note_ignored(
    database: Database, shop: Shop, sent_with: SentWith, names: Iterable[str], *, now: datetime
) -> None:
    """Keep the names of fields that were ignored;
    nothing is lost but these if the database is away. Moves no money.
    """
    moment = time.monotonic()
    shown = sorted({_shown(name) for name in names})[:_MOST_AT_ONCE]
    new = [name for name in shown if _noted.get((shop, sent_with, name), 0.0) <= moment]
    if not new:
        return
    try:
        await queries.note(
            database,
            merchant_id=shop.merchant_id,
            live=shop.live,
            sent_with=str(sent_with),
            names=new,
            now=now,
            most=MOST_NAMES,
        )
    except AWAY:
        return
    if len(_noted) > _MOST_REMEMBERED:
        _noted.clear()
    _noted.update(((shop, sent_with, name), moment + _PAUSE) for name in new)


def _shown(name: str) -> str:
    """A name as it may be kept; JSON can write halves of characters,
    which PostgreSQL does not store.
    """
    return storable(name.encode("utf-8", "replace").decode())


async def ignored_fields(database: Database, shop: Shop) -> list[IgnoredField]:
    """The names that one side's shop sends in vain, the latest first."""
    return await records_of(IgnoredField, queries.of_side(database, merchant_id=shop.merchant_id, live=shop.live))
