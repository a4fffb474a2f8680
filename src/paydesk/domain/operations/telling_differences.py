"""What a comparison tells an operator: what differs, and what agrees again. An older finding never
takes the place of a newer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from paydesk.core.wording import noted
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.leases import Reader
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import raise_alarms, settle_alarms
from paydesk.domain.operations.differences import Difference

queries = load_statements(__package__ or "", "telling_differences.sql")

AGREED: Final = noted("the acquirer's list and our books agree")
ENDED: Final = noted("nobody pays on the page any more")
"""Why a difference settles itself."""


@dataclass(frozen=True, slots=True)
class _Later:
    """What a comparison that began later has told of something."""

    subject: str
    is_open: bool


@dataclass(frozen=True, slots=True)
class Telling:
    """What a comparison tells that `began` then, in database time; nothing unless it `tells`.

    Two may compare one account, a worker and an operator: who began later is believed.
    """

    reader: Reader
    acquirer: str
    began: datetime
    tells: bool

    async def differing(self, found: Sequence[Difference]) -> list[Difference]:
        """Raise what differs; what of it no later comparison has settled. Raises: ReadByAnother."""
        if not self.tells or not found:
            return list(found)
        alarms = [one.alarm for one in found]
        async with self.reader.holding() as connection:
            later = await self._later(connection, [one.key[3] for one in alarms])
            await raise_alarms(connection, [one for one in alarms if one.key[3] not in later], now=self.began)
        return [one for one, alarm in zip(found, alarms, strict=True) if later.get(alarm.key[3], True)]

    async def over(self, subjects: Sequence[str], by: str) -> None:
        """Settle what differs no more. Raises: ReadByAnother."""
        if not self.tells or not subjects:
            return
        async with self.reader.holding() as connection:
            later = await self._later(connection, subjects)
            mended = [one for one in subjects if one not in later]
            await settle_alarms(connection, AlarmKind.not_reconciled, mended, shop=None, by=by, now=self.began)

    async def _later(self, connection: Connection, subjects: Sequence[str]) -> dict[str, bool]:
        """Of what a later comparison has told, and whether it is open since."""
        await queries.one_at_a_time(connection, acquirer=self.acquirer)
        rows = queries.told_later(connection, subjects=list(subjects), began=self.began, bys=[AGREED, ENDED])
        return {one.subject: one.is_open for one in sorted(await records_of(_Later, rows), key=lambda one: one.is_open)}
