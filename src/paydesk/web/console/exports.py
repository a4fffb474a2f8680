"""Lists as files: sent row by row, few at once per person, broken off when nobody reads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence

import structlog
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from paydesk.core.spreadsheets import csv_line
from paydesk.database.waiting import may_wait_only_briefly
from paydesk.domain.merchants.heavy_work import Asker, Work, WorkShare, take_share
from paydesk.web.console.visit import Visit

STALLED_AFTER = 60.0
"""Seconds after which a reader that takes nothing has gone."""

log = structlog.get_logger()


class _Stalled(Exception):
    """Nobody reads the file."""


async def begin_export(visit: Visit) -> WorkShare:
    """Take one of the exports that this person, merchant and address may have under way.

    Raises: TooMany.
    """
    shop = visit.shop if visit.at_shop else None
    return await take_share(visit.database, Work.EXPORT, Asker(visit.client.address, shop, visit.person.id))


def csv_file(
    share: WorkShare, filename: str, columns: Sequence[str], rows: AsyncIterator[Iterable[object]]
) -> Response:
    """A list as a CSV file, sent row by row; no spreadsheet takes any of it for a formula."""
    return _File(
        share,
        _csv_lines(columns, rows),
        media_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{filename}"',
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        },
    )


class _File(StreamingResponse):
    """Holds its share until the last row is sent or the reader is gone."""

    def __init__(self, share: WorkShare, lines: AsyncIterator[str], media_type: str, headers: dict[str, str]) -> None:
        super().__init__(lines, media_type=media_type, headers=headers)
        self._share = share

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""

        async def send_to_a_reader(message: Message) -> None:
            limit = asyncio.timeout(STALLED_AFTER)
            try:
                async with limit:
                    await send(message)
            except TimeoutError as error:
                raise _Stalled from error

        # A file that has begun is not broken off because others are being served.
        may_wait_only_briefly(only_reads=False)
        async with self._share.held():
            try:
                await super().__call__(scope, receive, send_to_a_reader)
            except _Stalled:
                log.info("an export was broken off, since nobody reads it", seconds=STALLED_AFTER)


async def _csv_lines(columns: Sequence[str], rows: AsyncIterator[Iterable[object]]) -> AsyncIterator[str]:
    yield csv_line(columns)
    async for row in rows:
        yield csv_line(row)
