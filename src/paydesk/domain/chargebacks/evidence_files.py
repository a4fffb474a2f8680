"""The files of an answer to a dispute: taken in as what they show and nothing else, handed out to
who may read the answer, and erased when nobody needs them any more.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paydesk.adapters.acquirers.disputes import MEDIA_TYPES, EvidenceKind
from paydesk.adapters.pdf_process import rewrite_pdf
from paydesk.core.card_numbers import masked
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.pictures import Largest
from paydesk.core.shrinking import redrawn
from paydesk.core.wording import plural, worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.database.surely import drawn_key
from paydesk.domain.chargebacks.for_api import reference_of
from paydesk.domain.chargebacks.giving_evidence import why_not
from paydesk.domain.merchants.hash_threads import Aside
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

queries = load_statements(__package__ or "", "evidence_files.sql")

MOST_BYTES = 4_500_000
"""Of all files of an answer (Stripe: docs.stripe.com/disputes/responding)."""

MOST_PAGES = 50
"""Of all files of an answer; a picture is one (Stripe: the same)."""

KEPT_FOR = timedelta(days=120)
"""So long after its end a dispute may be taken up again by a bank."""

LARGEST_SENT = 8_000_000
"""Bytes of one file as it comes; a photograph becomes smaller when it is drawn anew."""

FILE = "file"
"""What problems with one name."""

_PICTURES = Largest(content=LARGEST_SENT, side=8192, pixels=16_000_000)
_LONGEST_NAME, _LONGEST_SENT_NAME = 80, 400
_BATCH = 200

_drawing = Aside("evidence", threads=1, most=1_000)
"""One at a time: each is unpacked in memory."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file of an answer; the bank may name it once it `is_uploaded`. Times are UTC."""

    id: int
    kind: EvidenceKind
    name: str
    media_type: str
    size: int
    pages: int
    is_uploaded: bool
    is_erased: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FileContent:
    """What is in a file."""

    kind: EvidenceKind
    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Written:
    """A file as we have written it."""

    media_type: str
    content: bytes = field(repr=False)
    pages: int = 1


async def add_file(
    desk: Desk, shop: Shop, chargeback_id: int, kind: EvidenceKind, name: str, content: bytes, *, now: datetime
) -> None:
    """Add a file to the draft of an answer, drawn or written anew; `now` is real time. Moves no
    money.

    Raises: Malformed; NotFound; Conflict if it is closed or handed over already, if there is one
        of this kind, or if all together are too large.
    """
    await _require_takes_files(desk, shop, chargeback_id)
    if not content:
        raise Malformed(worded("choose a file first"), FILE)
    if len(content) > LARGEST_SENT:
        raise Malformed(
            worded(
                "the file has %(length)s kB; at most %(largest_sent)s kB are taken",
                length=_kb(len(content)),
                largest_sent=_kb(LARGEST_SENT),
            ),
            FILE,
        )
    written = await _written_anew(content)
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    async with desk.database.acquire() as connection, connection.transaction():
        if await queries.hold_answer(connection, **side, id=chargeback_id) is None:
            raise await why_not(desk, shop, chargeback_id)
        _require_room(await _listed(connection, shop, chargeback_id), written)
        added = await queries.add_file(
            connection,
            **side,
            chargeback_id=chargeback_id,
            kind=str(kind),
            name=_plain_name(name, written.media_type),
            media_type=written.media_type,
            size=len(written.content),
            pages=written.pages,
            content=written.content,
            upload_key=drawn_key(),
            now=now,
        )
    if added is None:
        raise Conflict(worded("there is a file of this kind already, and the bank takes one of each: remove it first"))


async def remove_file(desk: Desk, shop: Shop, chargeback_id: int, file_id: int) -> None:
    """Take a file out of the draft, for good. Moves no money.

    Raises: NotFound; Conflict if the answer is closed or handed over already.
    """
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    async with desk.database.acquire() as connection, connection.transaction():
        if await queries.hold_answer(connection, **side, id=chargeback_id) is None:
            raise await why_not(desk, shop, chargeback_id)
        gone = await queries.remove_file(connection, **side, chargeback_id=chargeback_id, id=file_id)
    if gone is None:
        raise NotFound("there is no such file any more")


async def list_files(database: Database, shop: Shop, chargeback_id: int) -> list[SeenFile]:
    """The files of an answer, in the order in which they were added."""
    return await _listed(database, shop, chargeback_id)


async def find_file(database: Database, shop: Shop, chargeback_id: int, file_id: int) -> FileContent:
    """What is in a file of an answer. Raises: NotFound, if it was erased too."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    row = await queries.find_content(database, **side, chargeback_id=chargeback_id, id=file_id)
    found = record_if_any(FileContent, row)
    if found is None:
        raise NotFound("there is no such file any more")
    return found


async def erase_past_files(database: Database, *, now: datetime) -> None:
    """Erase what is in the files of disputes that are long over; `now` is real time."""
    status = f"UPDATE {_BATCH}"
    while status == f"UPDATE {_BATCH}":
        status = await queries.erase_past_files(database, kept_for=KEPT_FOR, now=now, most=_BATCH)


async def _require_takes_files(desk: Desk, shop: Shop, chargeback_id: int) -> None:
    """Refuse what could never be sent before anybody works on it. Raises: NotFound, Conflict."""
    name, _ = await reference_of(desk.database, shop, chargeback_id)
    acquirer = desk.acquirers.get(name)
    if acquirer is None or not acquirer.capabilities.evidence_files:
        raise Conflict(worded("%(name)s takes no files with an answer", name=name))


async def _written_anew(content: bytes) -> _Written:
    """The file without anything that is not seen. Raises: Malformed."""
    if content.startswith(b"%PDF-"):
        rewritten = await rewrite_pdf(content, FILE)
        return _Written("application/pdf", rewritten.content, rewritten.pages)
    if not content.startswith((b"\x89PNG", b"\xff\xd8\xff")):
        raise Malformed(worded("the file must be a PDF, or a PNG or JPEG picture"), FILE)
    return _Written(*await _drawing.do(lambda: redrawn(content, _PICTURES, FILE)))


async def _listed(database: Database | Connection, shop: Shop, chargeback_id: int) -> list[SeenFile]:
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    return await records_of(SeenFile, queries.list_files(database, **side, chargeback_id=chargeback_id))


def _require_room(held: list[SeenFile], written: _Written) -> None:
    """Make sure that the bank takes all files together. Raises: Malformed."""
    size = sum(one.size for one in held) + len(written.content)
    if size > MOST_BYTES:
        raise Malformed(
            worded(
                "with this file all have %(size)s kB; at most %(most_bytes)s kB are taken",
                size=_kb(size),
                most_bytes=_kb(MOST_BYTES),
            ),
            FILE,
        )
    pages = sum(one.pages for one in held) + written.pages
    if pages > MOST_PAGES:
        raise Malformed(
            plural(
                "with this file all have %(count)s page; at most %(most_pages)s are taken",
                "with this file all have %(count)s pages; at most %(most_pages)s are taken",
                count=pages,
                most_pages=MOST_PAGES,
            ),
            FILE,
        )


def _plain_name(name: str, media_type: str) -> str:
    """A name that is harmless wherever it is shown or stored, and ends as the file is."""
    last = re.split(r"[/\\]", name[-_LONGEST_SENT_NAME:])[-1].rpartition(".")
    stem = re.sub(r"[^\w .()-]+", "_", masked(last[0] or last[2])).strip(" ._")
    return f"{stem[:_LONGEST_NAME] or 'file'}.{MEDIA_TYPES[media_type]}"


def _kb(size: int) -> int:
    return -(-size // 1000)
