"""Renewals that took nothing: tried again three times, or by their account's plan, then the
subscription stops (interface.md §7.2), or stays open or is paused if its account wants that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from msgspec.structs import replace

from paydesk.adapters.acquirers.interface import DeclineReason
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.reading_again import ALL_READ_AGAIN
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import Worked, set_aside, together
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks import waking
from paydesk.domain.pingbacks.destinations import Account, body_format, destination
from paydesk.domain.pingbacks.payload import subscription_envelope
from paydesk.domain.subscriptions.dunning import Dunning, dunning_of
from paydesk.domain.subscriptions.failing import failed, refused, undecided
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.rows import StandingRow, as_rows, subscription_of
from paydesk.domain.subscriptions.subscription_object import subscription_object

queries = load_statements(__package__ or "")

STOPPED_EVENT = "subscription_stopped"
PAUSED_EVENT = "subscription_paused"

HARD_DECLINES = frozenset({str(DeclineReason.STOLEN_CARD), str(DeclineReason.CLOSED_ACCOUNT)})
"""Declines that no later attempt with the same card can change."""

DECLINED = "declined"


@dataclass(frozen=True, slots=True)
class EndedRenewal:
    """A renewal's attempt that ended without money; only a declined one counts as a failure."""

    shop: Shop
    attempt_id: int
    state: str
    reason: str
    lookup_at: datetime | None


class _Failure(StandingRow, frozen=True):
    """A subscription whose renewal took nothing, and what its next step and its pingback need."""

    attempt_id: int
    attempt_card_id: int
    refusals: int
    unreached: int
    dunning_hours: list[int] | None
    dunning_by_reason: bool
    dunning_end: DunningEnd
    account_url: str | None
    test_pingback_url: str | None
    went_live_at: datetime | None
    pingback_format: str

    @property
    def plan(self) -> Dunning | None:
        """The plan that the failing charge has, or gets with its first failure."""
        if self.failures:
            return self.dunning
        return dunning_of(self.dunning_hours, by_reason=self.dunning_by_reason, end=self.dunning_end)

    @property
    def send_to(self) -> str | None:
        """The URL that its pingback is sent to."""
        account = Account(self.account_url, self.test_pingback_url, self.went_live_at)
        return destination(self.pingback_url, account, live=self.live)


@dataclass(frozen=True, slots=True)
class _Moved:
    attempt_id: int


async def record_failures(database: Database, ended: Sequence[EndedRenewal], *, now: datetime) -> set[int]:
    """Record renewals that took nothing with what follows for their subscriptions;
    returns the attempts that moved.

    A subscription that others change at the same moment is read again; one whose next step can't be
    worked out waits in the operator's list and stops no other. `now` is the shops' time, UTC. Moves
    no money.
    """
    recorded: set[int] = set()
    aside: Worked[EndedRenewal, int] = Worked()
    left = list(ended)
    for _ in range(ALL_READ_AGAIN):
        worked = await together(left, partial(_record, database, now=now))
        aside.failed.extend(worked.failed)
        recorded |= set(worked.results)
        failed = {one.attempt_id for one, _ in worked.failed}
        left = [one for one in left if one.attempt_id not in recorded | failed]
        if not left:
            break
    await set_aside(
        database,
        aside,
        lambda one: (one.shop, f"attempt {one.attempt_id}"),
        doing=noted("its failure can't be recorded"),
    )
    return recorded


async def _record(database: Database, failures: Sequence[EndedRenewal], *, now: datetime) -> set[int]:
    """One try, of all or of nothing; returns the attempts that moved."""
    ended = {one.attempt_id: one for one in failures}
    asked = queries.failures_to_report(
        database,
        merchant_ids=[one.shop.merchant_id for one in ended.values()],
        lives=[one.shop.live for one in ended.values()],
        attempt_ids=list(ended),
    )
    rows = await records_of(_Failure, asked)
    if not rows:
        return set()
    versions = [_after(row, ended[row.attempt_id], now) for row in rows]
    known = [ended[row.attempt_id] for row in rows]
    moved = queries.record_failures(
        database,
        attempt_ids=[one.attempt_id for one in known],
        attempt_states=[one.state for one in known],
        reasons=[one.reason for one in known],
        lookup_ats=[one.lookup_at for one in known],
        hard=[one.reason in HARD_DECLINES for one in known],
        subscriptions=as_rows(versions),
        paused_since=[_paused_since(version) for version in versions],
        events=[_event(row, version) for row, version in zip(rows, versions, strict=True)],
        send_to=[row.send_to for row in rows],
        pingback_formats=[body_format(row.sign_version, row.pingback_format) for row in rows],
        payloads=[_told(row, version) for row, version in zip(rows, versions, strict=True)],
        now=now,
    )
    written = {row.attempt_id for row in await records_of(_Moved, moved)}
    waking.told()
    return written


def _after(row: _Failure, ended: EndedRenewal, now: datetime) -> Subscription:
    """Unknown is never a failure, nor is a charge that the bank got too late to consider.

    A card that the customer replaced while it was being charged says nothing about the new one,
    which is tried at once. What the acquirer refused as a request is a failure of its own kind.
    """
    subscription = subscription_of(row)
    replaced = row.card_id != row.attempt_card_id
    if replaced:
        return undecided(subscription, at=now)
    if ended.state != DECLINED or ended.reason == DeclineReason.TOO_LATE:
        return undecided(subscription, at=now, before=row.unreached)
    if ended.reason == DeclineReason.REQUEST_REFUSED:
        return refused(subscription, row.refusals + 1, at=now)
    return failed(replace(subscription, dunning=row.plan), at=now, reason=ended.reason)


def _paused_since(version: Subscription) -> datetime | None:
    """Since when a subscription is paused whose last try this failure was; None of any other."""
    return version.change.since if version.change is not None and version.paused_by_retries else None


def _event(row: _Failure, version: Subscription) -> str | None:
    """What a failure is reported as that ends the tries; by itself one is not reported."""
    if version.date_stopped is not None:
        return STOPPED_EVENT if row.date_stopped is None else None
    return PAUSED_EVENT if version.paused_by_retries and version.tells_pauses else None


def _told(row: _Failure, version: Subscription) -> str | None:
    """The pingback of what a failure is reported as."""
    event = _event(row, version)
    return subscription_envelope(event, subscription_object(version)) if event else None
