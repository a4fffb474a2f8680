"""Disputes that can't be booked: those of a purchase that is not known in this cell wait for its
merchant, the others for what their reason says. Moves no money.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Final, TypeAlias

import msgspec

from paydesk.adapters.acquirers.disputes import Dispute
from paydesk.core.storable import storable_json
from paydesk.core.wording import noted
from paydesk.database.records import records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.acquirers.other_cells import MOST, Elsewhere, Heard, Known, may_be_ours
from paydesk.domain.acquirers.trying_again import pause
from paydesk.domain.acquirers.waiting import KEPT, Kind, Reference, Waiting, columns_of, settle
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.chargebacks.reckoning import OF_NOBODY, InBooks, Waits, says_no_more, sums_of
from paydesk.domain.chargebacks.states import ChargebackState

queries = load_statements(__package__ or "", "waiting_disputes.sql")

PATIENCE: Final = timedelta(hours=1)
"""How long a dispute of a payment that is here may wait for what passes by itself before an
operator is told."""

AskedDispute: TypeAlias = Dispute
"""A dispute as it was told, without what is no other cell's business."""


@dataclass(frozen=True)
class WaitingDispute(Waiting):
    """A dispute that waits, as it was told."""

    @cached_property
    def dispute(self) -> Dispute:
        """The dispute."""
        return msgspec.json.decode(self.told, type=Dispute, strict=False)

    @property
    def known_by(self) -> str:
        """All that read the account call it so."""
        return self.acquirer_reference


@dataclass(frozen=True, slots=True)
class _Standing:
    """A purchase of this cell that is disputed, and what is booked of that."""

    reference: str
    is_forgotten: bool
    currency: str
    amount: Decimal
    charged_back: Decimal
    chargeback_state: ChargebackState | None
    chargeback_amount: Decimal | None
    taken: Decimal | None
    returned: Decimal | None
    told_at: datetime | None

    def is_over(self, told: Dispute) -> bool:
        """Whether there is nothing more to book of what was told."""
        sums = sums_of(self.chargeback_amount, self.taken, self.returned)
        state = self.chargeback_state
        books = InBooks(self.currency, self.amount, self.charged_back, state, sums, self.told_at)
        return self.is_forgotten or says_no_more(books, told)


async def known_here(database: Connection, disputes: Sequence[AskedDispute]) -> list[Known]:
    """Those of these disputes whose purchases a merchant of this cell has made; over is what its
    books have whole, and what was of a test side that was emptied since.
    """
    told = {one.reference: one for one in disputes}
    rows = queries.standing(
        database,
        keys=[one.of_key for one in told.values()],
        references=list(told),
        tags=[one.of_merchant for one in told.values()],
        untold=[one.of_key for one in told.values() if not one.of_merchant],
    )
    found = await records_of(_Standing, rows)
    return [Known(one.reference, one.is_over(told[one.reference])) for one in found]


async def heard_of(elsewhere: Elsewhere[AskedDispute], waiting: Sequence[WaitingDispute]) -> Heard:
    """What other cells say of those that are not known here. What names no key of ours is asked of
    nobody.
    """
    if not waiting:
        return Heard()
    asked = [_asked(one.dispute) for one in waiting if may_be_ours(one.dispute.of_key)]
    return await elsewhere(asked)


def _asked(dispute: Dispute) -> AskedDispute:
    tag = dispute.of_merchant if may_be_ours(dispute.of_merchant) else ""
    return replace(dispute, reason="", respond_by=None, answered=None, of_merchant=tag)


async def due(database: Connection, acquirer: str, *, now: datetime) -> list[WaitingDispute]:
    """Those that are to be tried again, as many as are at once: those first that were tried the
    least.
    """
    return await records_of(WaitingDispute, queries.due(database, acquirer=acquirer, now=now, most=MOST))


async def untried(database: Connection, *, before: datetime, reads: Sequence[str], most: int) -> list[WaitingDispute]:
    """Those that nobody has tried since."""
    return await records_of(WaitingDispute, queries.untried(database, before=before, reads=list(reads), most=most))


def _subject(acquirer: str, reference: str) -> str:
    return f"dispute {reference} at {acquirer}"


def _alarm_of(acquirer: str, dispute: Dispute, why: str) -> Alarm:
    reason = noted(
        "%(why)s (%(amount)s %(currency)s for %(reason)s, %(status)s)",
        why=why,
        amount=dispute.amount,
        currency=dispute.currency,
        reason=repr(dispute.reason),
        status=dispute.status,
    )
    return Alarm(AlarmKind.dispute_waits, _subject(acquirer, dispute.reference), reason)


DISPUTES: Final = Kind(
    alarm=AlarmKind.dispute_waits,
    alarm_of=lambda one, why: _alarm_of(one.acquirer, one.dispute, why),
    subject_of=_subject,
    nobody_knows=OF_NOBODY.reason,
    try_later=lambda connection, acquirer, stood: queries.try_later(connection, acquirer=acquirer, **columns_of(stood)),
    wait_no_more=lambda connection, acquirer, references: records_of(
        Reference, queries.wait_no_more(connection, acquirer=acquirer, references=list(references))
    ),
    untried=untried,
    heard_of=heard_of,
    again_over=timedelta(days=1),
    given_up_after=KEPT,
)
"""How disputes wait whose purchase is not known here."""


async def keep_unknown(connection: Connection, acquirer: str, disputes: Sequence[Dispute], *, now: datetime) -> None:
    """Have disputes wait whose purchase is not known here."""
    told = _told(disputes)
    if told:
        await queries.keep_unknown(
            connection,
            acquirer=acquirer,
            references=list(told),
            told=list(told.values()),
            reason=OF_NOBODY.reason,
            now=now,
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    acquirer_reference: str
    first_at: datetime
    was_told: bool


async def keep_known(
    connection: Connection,
    acquirer: str,
    waiting: Mapping[str, tuple[Dispute, Waits]],
    tries: Mapping[str, int],
    *,
    now: datetime,
) -> None:
    """Have disputes wait that are of payments here, each for its reason; an operator is told once
    it is nothing that passes.
    """
    if not waiting:
        return
    rows = queries.keep_known(
        connection,
        acquirer=acquirer,
        references=list(waiting),
        told=list(_told([dispute for dispute, _ in waiting.values()]).values()),
        reasons=[why.reason for _, why in waiting.values()],
        next_ats=[now + pause(tries.get(reference, 0)) for reference in waiting],
        now=now,
    )
    kept = await records_of(_Kept, rows)
    known = [one.acquirer_reference for one in kept if one.was_told]
    await settle(connection, DISPUTES, acquirer, known, by=noted("its payment is here"), now=now)
    alarms = []
    for one in kept:
        dispute, why = waiting[one.acquirer_reference]
        if not why.soon or now - one.first_at > PATIENCE:
            alarms.append(_alarm_of(acquirer, dispute, why.reason))
    await raise_alarms(connection, alarms, now=now)


def _told(disputes: Sequence[Dispute]) -> dict[str, str]:
    return {one.reference: storable_json(msgspec.to_builtins(one)) for one in disputes}


async def forget(connection: Connection, *, now: datetime) -> None:
    """Forget those that another cell has booked, and nobody tells any more, and those that are
    given up, once an operator has settled their alarm.
    """
    await queries.forget(connection, told_before=now - KEPT)
