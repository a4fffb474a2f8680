"""What an operator sees of merchants and decides about them:
suspension, fees, how long money is held.

No secret is shown: of keys the public half, of a bank account nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.paging import LARGEST_ID, read_id
from paydesk.core.wording import plural, worded
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.roles import Role
from paydesk.domain.business.key_pairs import PublicKey, public_keys
from paydesk.domain.business.profiles import ProfileStatus
from paydesk.domain.mail.kinds import MailKind
from paydesk.domain.mail.notifying import tell_owners
from paydesk.domain.merchants.trade_terms import TradeTerms
from paydesk.domain.operations.missed_periods import want_all_missed

queries = load_statements(__package__ or "", "merchants.sql")

LONGEST_REASON = 500
_MOST_SHOWN = 50
_LIKE = str.maketrans({"\\": r"\\", "%": r"\%", "_": r"\_"})


class MerchantStanding(StrEnum):
    """Which merchants a list shows."""

    test = "test"
    """Never went live."""
    live = "live"
    """Went live at some time."""
    suspended = "suspended"


@dataclass(frozen=True, slots=True)
class ListedMerchant:
    """A line of the list; times are UTC, None for what has not happened."""

    id: int
    name: str
    email: str
    test_mode: bool
    went_live_at: datetime | None
    suspended_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OwnTerms:
    """A merchant whose terms are its own."""

    merchant_id: int
    merchant_name: str
    terms: TradeTerms


@dataclass(frozen=True, slots=True)
class TeamMember:
    """Somebody in a merchant's team."""

    id: int
    name: str
    email: str
    role: Role
    second_factor: bool
    last_seen_at: datetime | None


@dataclass(frozen=True, slots=True)
class MerchantForOperator:
    """A merchant as an operator sees it; `profile` is None until something was written into it."""

    merchant: ListedMerchant
    suspended_reason: str
    time_zone: str
    shipped_goods: bool
    pingback_url: str
    profile: ProfileStatus | None
    profile_change: bool
    terms: TradeTerms
    keys: tuple[PublicKey, ...]
    team: tuple[TeamMember, ...]


@dataclass(frozen=True, slots=True)
class _WithTerms:
    """A merchant's row that has its terms beside other columns."""

    id: int
    name: str
    rate: Decimal
    fixed: Decimal
    reserve_rate: Decimal
    fees_returned: bool
    chargeback_fee: Decimal
    settlement_days: int
    reserve_days: int

    @property
    def terms(self) -> TradeTerms:
        """Its terms alone."""
        return TradeTerms(
            rate=self.rate,
            fixed=self.fixed,
            reserve_rate=self.reserve_rate,
            fees_returned=self.fees_returned,
            chargeback_fee=self.chargeback_fee,
            settlement_days=self.settlement_days,
            reserve_days=self.reserve_days,
        )


@dataclass(frozen=True, slots=True)
class _Found(_WithTerms):
    """One merchant with all that is shown of it but its keys and its team."""

    email: str
    test_mode: bool
    went_live_at: datetime | None
    suspended_at: datetime | None
    suspended_reason: str
    created_at: datetime
    time_zone: str
    shipped_goods: bool
    pingback_url: str | None
    profile_status: ProfileStatus | None
    profile_change: bool

    @property
    def merchant(self) -> ListedMerchant:
        """It as a line of the list."""
        return ListedMerchant(
            id=self.id,
            name=self.name,
            email=self.email,
            test_mode=self.test_mode,
            went_live_at=self.went_live_at,
            suspended_at=self.suspended_at,
            created_at=self.created_at,
        )


async def search_merchants(
    database: Database, text: str, standing: MerchantStanding | None, *, before_id: int | None, most: int
) -> list[ListedMerchant]:
    """A page of merchants, newest first, from below an id on.

    `text` is an id, or the beginning of a name, an address or a public key; empty for all.
    """
    common = {"before_id": before_id or LARGEST_ID, "most": most}
    if text:
        beginning = text.translate(_LIKE)
        rows = queries.search_merchants(
            database,
            id=read_id(text),
            prefix=f"{beginning}%",
            key_prefix=f"{beginning}%",
            standing=standing,
            **common,
        )
    else:
        lists = {
            None: queries.every_merchant,
            MerchantStanding.test: queries.test_merchants,
            MerchantStanding.live: queries.live_merchants,
            MerchantStanding.suspended: queries.suspended_merchants,
        }
        rows = lists[standing](database, **common)
    return await records_of(ListedMerchant, rows)


async def find_merchant_for_operator(database: Database, merchant_id: int) -> MerchantForOperator:
    """A merchant with its terms, public keys and team. Raises: NotFound."""
    row = record_if_any(_Found, await queries.find_merchant(database, merchant_id=merchant_id))
    if row is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    keys = await public_keys(database, merchant_id, most=_MOST_SHOWN)
    team = await records_of(TeamMember, queries.team_of(database, merchant_id=merchant_id, most=_MOST_SHOWN))
    return MerchantForOperator(
        merchant=row.merchant,
        suspended_reason=row.suspended_reason,
        time_zone=row.time_zone,
        shipped_goods=row.shipped_goods,
        pingback_url=row.pingback_url or "",
        profile=row.profile_status,
        profile_change=row.profile_change,
        terms=row.terms,
        keys=tuple(keys),
        team=tuple(team),
    )


async def suspend_merchant(database: Database, actor: Actor, merchant_id: int, *, reason: str, now: datetime) -> None:
    """Let no live checkout and no live charge of a merchant begin any more;
    renewals wait, and are not failures.

    What is under way is finished, but for pages of an acquirer's, which are ended there; refunds,
    voids, shipments, cancellations, pingbacks and tests go on.
    Raises: Malformed without a reason; NotFound; Conflict if it is suspended already.
    """
    words = reason.strip().replace("\x00", "")
    if not words or len(words) > LONGEST_REASON:
        raise Malformed(
            plural(
                "say why in at most %(count)s character; the merchant's team reads it",
                "say why in at most %(count)s characters; the merchant's team reads it",
                count=LONGEST_REASON,
            ),
            "reason",
        )
    async with database.acquire() as connection, connection.transaction():
        if await queries.suspend(connection, merchant_id=merchant_id, reason=words, now=now) is None:
            await _require(database, merchant_id)
            raise Conflict(worded("merchant %(merchant_id)s is suspended already", merchant_id=merchant_id))
        await queries.hurry_pages(connection, merchant_id=merchant_id, now=now)
        subject, why = f"merchant {merchant_id}", {"reason": words}
        await record(
            connection,
            actor,
            Action.merchant_suspended,
            now=now,
            merchant_id=merchant_id,
            subject=subject,
            details=why,
        )
        await tell_owners(connection, merchant_id, MailKind.merchant_suspended, now=now, reason=words)


async def resume_merchant(
    database: Database, actor: Actor, merchant_id: int, *, all_periods: bool = False, now: datetime
) -> None:
    """Lift a suspension: of what fell due meanwhile one period of each subscription is charged from
    now on, or `all_periods`.

    Raises: NotFound; Conflict if there is none, and nobody is charged for more than before.
    """
    async with database.acquire() as connection, connection.transaction():
        if await queries.resume(connection, merchant_id=merchant_id) is None:
            await _require(database, merchant_id)
            raise Conflict(
                worded(
                    "merchant %(merchant_id)s is not suspended, or this is a copy, where all stay so",
                    merchant_id=merchant_id,
                )
            )
        subject = f"merchant {merchant_id}"
        await record(connection, actor, Action.merchant_resumed, now=now, merchant_id=merchant_id, subject=subject)
        if all_periods:
            await want_all_missed(connection, actor, merchant_id, now=now)
        await tell_owners(connection, merchant_id, MailKind.merchant_restored, now=now)


async def change_terms(
    database: Database, actor: Actor, merchant_id: int, terms: TradeTerms, *, now: datetime
) -> TradeTerms:
    """Set what a merchant pays from now on and how long its money is held;
    returns the terms before.

    Payments that were made keep what they were split into, and settle when they would have; their
    reserve is held by the days that stand at their settlement. Raises: Malformed, naming the
    field; NotFound.
    """
    _check(terms)
    async with database.acquire() as connection, connection.transaction():
        before = record_if_any(TradeTerms, await queries.lock_terms(connection, merchant_id=merchant_id))
        if before is None:
            raise NotFound(f"there is no merchant {merchant_id}")
        if before != terms:
            await queries.change_terms(connection, merchant_id=merchant_id, **asdict(terms))
            await record(
                connection,
                actor,
                Action.fee_plan_changed,
                now=now,
                merchant_id=merchant_id,
                subject=f"merchant {merchant_id}",
                details=_difference(before, terms),
            )
    return before


async def own_terms(database: Database, *, before_id: int | None, most: int) -> list[OwnTerms]:
    """Merchants whose terms are not the usual ones (`TradeTerms()`), newest first,
    from below an id on.
    """
    rows = queries.other_terms(database, **asdict(TradeTerms()), before_id=before_id or LARGEST_ID, most=most)
    return [OwnTerms(row.id, row.name, row.terms) for row in await records_of(_WithTerms, rows)]


def _check(terms: TradeTerms) -> None:
    for name in ("rate", "reserve_rate"):
        if not 0 <= getattr(terms, name) < 1 or -getattr(terms, name).as_tuple().exponent > 6:
            raise Malformed(worded("a share is from 0 %% to less than 100 %%, with at most 4 decimals"), name)
    for name in ("fixed", "chargeback_fee"):
        if not 0 <= getattr(terms, name) <= 1000 or -getattr(terms, name).as_tuple().exponent > 4:
            raise Malformed(worded("a fee is from 0 to 1000, with at most 4 decimals"), name)
    for name, most in (("settlement_days", 365), ("reserve_days", 3650)):
        if not 0 <= getattr(terms, name) <= most:
            raise Malformed(worded("this is a number of days, from 0 to %(most)s", most=most), name)


def _difference(before: TradeTerms, after: TradeTerms) -> dict[str, object]:
    names = [name for name in TradeTerms.__slots__ if getattr(before, name) != getattr(after, name)]
    return {name: f"{getattr(before, name)} → {getattr(after, name)}" for name in names}


async def _require(database: Database, merchant_id: int) -> None:
    if await queries.find_merchant(database, merchant_id=merchant_id) is None:
        raise NotFound(f"there is no merchant {merchant_id}")
