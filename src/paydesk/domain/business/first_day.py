"""A shop's first day: what there is to do until it takes real money, each line read from
what is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.business.profile_details import REQUIRED
from paydesk.domain.business.profiles import ProfileStatus
from paydesk.domain.payments.states import REPORTED

queries = load_statements(__package__ or "", "first_day.sql")

_ASKED = (*REQUIRED, "iban_last4")


class Step(StrEnum):
    """What there is to do, in the order in which it is shown."""

    CHECKOUT = "checkout"
    """See the checkout as customers do."""
    BRANDING = "branding"
    KEYS = "keys"
    PAYMENT = "payment"
    """Take a first test payment."""
    PINGBACK = "pingback"
    """Let the shop's server acknowledge a pingback."""
    PROFILE = "profile"
    """Hand the business profile in."""
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class FirstDay:
    """How far a shop is. `said` of `asked` answers stand in its business profile."""

    done: frozenset[Step]
    said: int
    asked: int
    profile: ProfileStatus
    may_go_live: bool
    is_over: bool
    """Nothing is left to do, or the shop takes real money, or its team put the list away."""


@dataclass(frozen=True, slots=True)
class _Row:
    put_away: bool
    tried: bool
    branded: bool
    has_keys: bool
    paid: bool
    paid_live: bool
    answered: bool
    profile: ProfileStatus
    said: int
    may_go_live: bool
    test_mode: bool


async def find_first_day(database: Database, merchant_id: int) -> FirstDay:
    """How far a shop is with its first day. Raises: NotFound."""
    asked = {"required": list(_ASKED), "reported": sorted(REPORTED)}
    row = record_if_any(_Row, await queries.find(database, merchant_id=merchant_id, **asked))
    if row is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    answered = row.profile in (ProfileStatus.submitted, ProfileStatus.accepted)
    true = {
        Step.CHECKOUT: row.tried or row.paid,
        Step.BRANDING: row.branded,
        Step.KEYS: row.has_keys,
        Step.PAYMENT: row.paid,
        Step.PINGBACK: row.answered,
        Step.PROFILE: answered or row.may_go_live,
        Step.LIVE: row.may_go_live and not row.test_mode,
    }
    done = frozenset(step for step, is_true in true.items() if is_true)
    return FirstDay(
        done=done,
        said=row.said,
        asked=len(_ASKED),
        profile=row.profile,
        may_go_live=row.may_go_live,
        is_over=row.put_away or row.paid_live or len(done) == len(Step),
    )


async def put_first_day_away(gate: Gate, session: Session, *, now: datetime) -> None:
    """Show the list no more, to nobody of the team; a second time changes nothing.

    Raises: Forbidden.
    """
    merchant_id = require(session, Permission.manage_integration).merchant_id
    async with gate.database.acquire() as connection, connection.transaction():
        if await queries.put_away(connection, merchant_id=merchant_id, now=now) is not None:
            await record(
                connection,
                session.actor,
                Action.settings_changed,
                now=now,
                merchant_id=merchant_id,
                subject="first day",
                details={"list": "put away"},
            )
