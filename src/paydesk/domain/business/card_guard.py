"""The guard against card testing as people meet it: its figures, a merchant's own limits,
and a pause that is lifted.

A merchant may ask for more than the operator does, never for less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from paydesk.core.errors import Conflict, Forbidden, Malformed, NotFound
from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, record_of, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import settle_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.card_guard import ABOUT, AUTHENTICATE_FOR, DAY, HOUR, RATE_WINDOW, Counted, Limits

queries = load_statements(__package__ or "", "card_guard.sql")

WINDOWS = (RATE_WINDOW, HOUR, DAY)
_SUBJECT = "card guard"
"""Over which tries are summed up."""


class GuardState(StrEnum):
    """How a side is guarded; `by_choice` is 3-D Secure for everybody because the merchant
    wants it.
    """

    normal = "normal"
    by_choice = "by_choice"
    challenged = "challenged"
    paused = "paused"


@dataclass(frozen=True, slots=True)
class Figures:
    """How the tries of a time that ends now have gone;
    `refused` are those that no bank was asked about.
    """

    span: timedelta
    tries: int
    declines: int
    refused: int

    @property
    def share(self) -> int:
        """The share of declines in per cent."""
        return round(100 * self.declines / self.tries) if self.tries else 0


@dataclass(frozen=True, slots=True)
class OwnLimits:
    """What a merchant asks for itself: lower limits, and 3-D Secure of everybody."""

    limits: Mapping[Counted, int] = field(default_factory=dict)
    always_authenticate: bool = False


@dataclass(frozen=True, slots=True)
class CardGuard:
    """How a side is guarded: by the operator's limits and its own.
    Times are real (UTC), None for what is not so.
    """

    operators: Limits
    own: OwnLimits
    figures: tuple[Figures, ...]
    authenticate_since: datetime | None
    authenticate_until: datetime | None
    paused_until: datetime | None

    @property
    def state(self) -> GuardState:
        """The strictest thing that holds now."""
        if self.paused_until:
            return GuardState.paused
        if self.authenticate_until:
            return GuardState.challenged
        return GuardState.by_choice if self.own.always_authenticate else GuardState.normal

    def holds(self, kind: Counted) -> int:
        """The limit that holds: the lower one."""
        most = self.operators.most(kind)
        return min(most, self.own.limits.get(kind, most))


@dataclass(frozen=True, slots=True)
class _Own:
    limits: str
    always_authenticate: bool

    @property
    def parsed(self) -> OwnLimits:
        """What is stored; a limit that only another release knows counts there."""
        stored: dict[str, int] = msgspec.json.decode(self.limits)
        return OwnLimits({kind: stored[kind] for kind in Counted if kind in stored}, self.always_authenticate)


@dataclass(frozen=True, slots=True)
class _Found(_Own):
    authenticate_since: datetime | None
    authenticate_until: datetime | None
    paused_until: datetime | None


async def find_card_guard(database: Database, shop: Shop, operators: Limits, *, now: datetime) -> CardGuard:
    """How a side is guarded at a real time. Raises: NotFound."""
    side = {"merchant_id": shop.merchant_id, "live": shop.live}
    row = record_if_any(_Found, await queries.find(database, **side, now=now))
    if row is None:
        raise NotFound(f"there is no merchant {shop.merchant_id}; see: paydesk merchant list")
    figures = await records_of(Figures, queries.figures(database, **side, windows=list(WINDOWS), now=now))
    return CardGuard(
        operators=operators,
        own=row.parsed,
        figures=tuple(figures),
        authenticate_since=row.authenticate_since,
        authenticate_until=row.authenticate_until,
        paused_until=row.paused_until,
    )


async def tighten(
    database: Database, actor: Actor, shop: Shop, wanted: OwnLimits, operators: Limits, *, now: datetime
) -> None:
    """Let a side's own limits be these, and no others;
    who wants them must have been asked whether they may.

    Raises: Malformed, naming the field, for a limit that is above the operator's or lets
        nobody pay.
    """
    await _save(database, actor, shop, lambda _: wanted, operators, now=now)


async def tighten_some(
    database: Database,
    actor: Actor,
    shop: Shop,
    limits: Mapping[Counted, int],
    operators: Limits,
    *,
    always_authenticate: bool | None = None,
    now: datetime,
) -> None:
    """Let some of a side's own limits be these (0: the operator's), and leave all others as they
    are by then, whoever changes them at the same moment.

    Raises: what `tighten` raises.
    """

    def changed(before: OwnLimits) -> OwnLimits:
        left = {kind: most for kind, most in {**before.limits, **limits}.items() if most}
        return OwnLimits(left, before.always_authenticate if always_authenticate is None else always_authenticate)

    await _save(database, actor, shop, changed, operators, now=now)


async def _save(
    database: Database,
    actor: Actor,
    shop: Shop,
    change: Callable[[OwnLimits], OwnLimits],
    operators: Limits,
    *,
    now: datetime,
) -> None:
    """Make of a side's own limits, which nobody else changes meanwhile, what they are to be."""
    names = {"merchant_id": shop.merchant_id, "live": shop.live}
    async with database.acquire() as connection, connection.transaction():
        await queries.begin(connection, **names)
        before = record_of(_Own, await queries.lock(connection, **names)).parsed
        wanted = change(before)
        _check(wanted, operators)
        if not (changes := _changes(before, wanted)):
            return
        limits = msgspec.json.encode({str(kind): most for kind, most in wanted.limits.items()}).decode()
        await queries.save(connection, **names, limits=limits, always_authenticate=wanted.always_authenticate)
        await record(
            connection, actor, Action.card_guard_changed, now=now, shop=shop, subject=_SUBJECT, details=changes
        )


def _check(wanted: OwnLimits, operators: Limits) -> None:
    for kind, own in wanted.limits.items():
        most = operators.most(kind)
        if not 1 <= own <= most:
            raise Malformed(
                worded(
                    "this is a number from 1 to %(most)s, which is the operator's; leave it empty for that", most=most
                ),
                kind,
            )


def _changes(before: OwnLimits, after: OwnLimits) -> dict[str, object]:
    changed = {
        str(kind): f"{before.limits.get(kind, 'operator')} → {after.limits.get(kind, 'operator')}"
        for kind in Counted
        if before.limits.get(kind) != after.limits.get(kind)
    }
    if before.always_authenticate != after.always_authenticate:
        changed["always_authenticate"] = f"{before.always_authenticate} → {after.always_authenticate}"
    return dict(changed)


async def lift_pause(database: Database, actor: Actor, shop: Shop, *, now: datetime, note: str = "") -> None:
    """Let a merchant take cards again before its pause is over, with 3-D Secure for all;
    its alarm is settled.

    Args: note says why, for the operators' log; now is real time.
    Raises: Conflict if there is no pause.
    """
    names = {"merchant_id": shop.merchant_id, "live": shop.live}
    async with database.acquire() as connection, connection.transaction():
        lifted = await queries.lift_pause(connection, **names, now=now, authenticate_until=now + AUTHENTICATE_FOR)
        if lifted is None:
            raise Conflict(f"merchant {shop.merchant_id} is not paused on this side; there is nothing to lift")
        by = f"person {actor.person_id}" if actor.person_id else actor.client_address
        await settle_alarms(connection, AlarmKind.card_testing, [ABOUT], shop=shop, by=by, now=now)
        why = {"note": note} if note else {}
        await record(connection, actor, Action.card_pause_lifted, now=now, shop=shop, subject=_SUBJECT, details=why)
    metrics.GUARD_STEPS.labels("lift").inc()


async def forget_test_tries(database: Database, actor: Actor, shop: Shop, *, now: datetime) -> None:
    """Begin anew on a test side: nothing was tried, nothing is asked for.

    Raises: Forbidden on a live one.
    """
    if shop.live:
        raise Forbidden("what was tried with live cards is forgotten by itself, after an hour or a day")
    async with database.acquire() as connection, connection.transaction():
        await queries.forget_test_tries(connection, merchant_id=shop.merchant_id)
        await record(connection, actor, Action.card_tries_forgotten, now=now, shop=shop, subject=_SUBJECT)
