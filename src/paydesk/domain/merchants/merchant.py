"""Merchants' accounts: creating, finding and changing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Literal

import asyncpg

from paydesk.adapters.vault import Vault
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.core.money import FeePlan
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, record_of, records_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.cells.entering import ALONE, Entering
from paydesk.domain.merchants import keys
from paydesk.domain.merchants.app_schemes import parse_app_schemes
from paydesk.domain.merchants.customer_ways import PortalCancels, PortalPlans
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.trade_terms import TradeTerms

queries = load_statements(__package__ or "")

BodyFormat = Literal["json", "form"]

MUTABLE_EVENTS = (
    "refund",
    "partial_refund",
    "refund_failed",
    "chargeback",
    "chargeback_reversed",
    "subscription_cancelled",
    "subscription_stopped",
)
"""Pingbacks that an account may do without: those beyond the three that are always there."""


@dataclass(frozen=True, slots=True)
class Merchant:
    """An account. `test_mode` is its toggle: forms at the live base count as test; times are UTC.

    `muted_events` are pingbacks that it does not want; `app_schemes` are of apps to which its
    customers are led at once; `fees_returned`: a refund gives back its share of the fees too;
    `saves_cards`: its customers may save a card for their next visit;
    `signs_quantities` and `signs_line_items`: forms may bring `recurring_quantity`, `line_items`;
    `slow_methods`: its customers may pay by what takes days, where the operator allows that;
    `portal_cancels` and `portal_pauses`: what they may do with a subscription on its page;
    `dunning_hours`: from each failed charge to its next try, none: the usual ones;
    `dunning_by_reason`: tries look at the bank's reason; `dunning_end`: what is after the last one;
    `charge_notice_days`: how long before certain charges customers are told of them, none: not;
    `trials_without_card`: a free trial asks for no card.
    """

    id: int
    name: str
    email: str
    time_zone: str
    test_mode: bool
    went_live_at: datetime | None
    pingback_url: str | None
    test_pingback_url: str | None
    pingback_format: BodyFormat
    shipped_goods: bool
    created_at: datetime
    muted_events: tuple[str, ...] = ()
    app_schemes: tuple[str, ...] = ()
    fees_returned: bool = False
    saves_cards: bool = False
    signs_quantities: bool = False
    signs_line_items: bool = False
    slow_methods: bool = False
    portal_cancels: PortalCancels = PortalCancels.NOW
    portal_pauses: bool = False
    portal_plans: PortalPlans = PortalPlans.PERIOD_END
    portal_quantities: bool = False
    dunning_hours: tuple[int, ...] = ()
    dunning_by_reason: bool = False
    dunning_end: DunningEnd = DunningEnd.CANCEL
    charge_notice_days: int | None = None
    trials_without_card: bool = False
    public_key: str = ""
    key_scopes: tuple[keys.KeyScope, ...] = ()
    private_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class _Row:
    id: int
    name: str
    email: str
    time_zone: str
    test_mode: bool
    went_live_at: datetime | None
    pingback_url: str | None
    test_pingback_url: str | None
    pingback_format: BodyFormat
    shipped_goods: bool
    created_at: datetime
    muted_events: Sequence[str]
    app_schemes: Sequence[str]
    saves_cards: bool
    signs_quantities: bool
    signs_line_items: bool
    fees_returned: bool
    slow_methods: bool
    portal_cancels: PortalCancels
    portal_pauses: bool
    portal_plans: PortalPlans
    portal_quantities: bool
    dunning_hours: Sequence[int] | None
    dunning_by_reason: bool
    dunning_end: DunningEnd
    charge_notice_days: int | None
    trials_without_card: bool


@dataclass(frozen=True, slots=True)
class _WithKey(_Row):
    """An account with its newest key that is valid."""

    public_key: str | None
    scopes: Sequence[str] | None


def shop_of(merchant: Merchant, *, live: bool) -> Shop:
    """The merchant's live or test side."""
    return Shop(merchant.id, live)


async def create_merchant(
    database: Database,
    vault: Vault,
    *,
    name: str,
    email: str,
    now: datetime,
    pingback_url: str | None = None,
    public_key: str | None = None,
    private_key: str | None = None,
    shipped_goods: bool = False,
    fees: FeePlan | None = None,
    scopes: frozenset[keys.KeyScope] = keys.ALL_SCOPES,
    entering: Entering = ALONE,
) -> Merchant:
    """Open an account in test mode with a pair of keys, random unless given;
    the result carries the private key.

    Raises: Malformed if a given key is too short or only one of the pair is given; Conflict if a
        key is taken; Unavailable if the directory of cells can't be asked.
    """
    async with database.acquire() as connection, connection.transaction():
        return await open_account(
            connection,
            vault,
            name=name,
            email=email,
            now=now,
            pingback_url=pingback_url,
            public_key=public_key,
            private_key=private_key,
            shipped_goods=shipped_goods,
            fees=fees,
            scopes=scopes,
            entering=entering,
        )


async def open_account(
    connection: Connection,
    vault: Vault,
    *,
    name: str,
    email: str,
    now: datetime,
    pingback_url: str | None = None,
    public_key: str | None = None,
    private_key: str | None = None,
    shipped_goods: bool = False,
    fees: FeePlan | None = None,
    scopes: frozenset[keys.KeyScope] = keys.ALL_SCOPES,
    entering: Entering = ALONE,
) -> Merchant:
    """What `create_merchant` does, as a part of the connection's transaction,
    which an error ends.
    """
    terms = replace(TradeTerms(), **asdict(fees)) if fees else TradeTerms()
    public, private = _pair(public_key, private_key)
    try:
        row = record_of(
            _Row,
            await queries.create_merchant(
                connection,
                name=name,
                email=email,
                pingback_url=pingback_url,
                shipped_goods=shipped_goods,
                **asdict(terms),
                now=now,
            ),
        )
        await keys.add(
            connection,
            vault,
            row.id,
            public=public,
            private=private,
            now=now,
            scopes=scopes,
            entering=entering,
            is_first=True,
        )
    except asyncpg.UniqueViolationError as error:
        raise keys.taken() from error
    return replace(_merchant(row), public_key=public, private_key=private, key_scopes=keys.in_order(scopes))


def _pair(public: str | None, private: str | None) -> tuple[str, str]:
    if (public is None) != (private is None):
        raise Malformed("give both the public and the private key, or neither", "public_key", "private_key")
    if public is None or private is None:
        return keys.random_pair()
    if len(public) < 8 or len(private) < 16 or not (public + private).isascii() or public == private:
        raise Malformed(
            "a given public key needs at least 8 characters and a private key at least 16, ASCII, and not the same",
            "public_key",
            "private_key",
        )
    return public, private


async def find_merchant(database: Database, merchant_id: int) -> Merchant:
    """The account with this id, without keys.

    Raises: NotFound.
    """
    row = record_if_any(_Row, await queries.find_merchant(database, merchant_id=merchant_id))
    if row is None:
        raise NotFound(f"there is no merchant {merchant_id}; see: paydesk merchant list")
    return _merchant(row)


async def list_merchants(database: Database) -> list[Merchant]:
    """All accounts with their public keys and what these may do, oldest first."""
    return [
        replace(_merchant(row), public_key=row.public_key or "", key_scopes=keys.in_order(row.scopes or ()))
        for row in await records_of(_WithKey, queries.list_merchants(database))
    ]


async def change_merchant(
    database: Database,
    merchant_id: int,
    *,
    pingback_url: str | None = None,
    test_pingback_url: str | None = None,
    pingback_format: BodyFormat | None = None,
    test_mode: bool | None = None,
    shipped_goods: bool | None = None,
    slow_methods: bool | None = None,
    muted: Sequence[str] = (),
    unmuted: Sequence[str] = (),
    fees_returned: bool | None = None,
    app_schemes: Sequence[str] | None = None,
    saves_cards: bool | None = None,
    signs_quantities: bool | None = None,
    signs_line_items: bool | None = None,
    portal_cancels: PortalCancels | None = None,
    portal_pauses: bool | None = None,
    portal_plans: PortalPlans | None = None,
    portal_quantities: bool | None = None,
    dunning_hours: Sequence[int] | None = None,
    dunning_by_reason: bool | None = None,
    dunning_end: DunningEnd | None = None,
    charge_notice_days: int | None = None,
    trials_without_card: bool | None = None,
    types_coupons: bool | None = None,
    signs_coupons: bool | None = None,
) -> Merchant:
    """Change settings of an account: None leaves one as it is, an empty URL clears it.

    `app_schemes` replace those that are there; an empty one clears them. `portal_cancels` and
    `portal_pauses`: what customers may do with a subscription on its page.
    `dunning_hours` and `dunning_by_reason`: when a failed charge is tried again; no hours: as
    usual. `dunning_end`: what becomes of it then. `charge_notice_days`: 0 clears them.
    `types_coupons` and `signs_coupons`: whether customers may type one at the checkout, and forms
    bring one.
    `muted` and `unmuted` are events (MUTABLE_EVENTS) that are not sent from now on, or are again.
    Raises: NotFound; Malformed for an event that can't be muted, or that is to be both, or a scheme
        that is no app's.
    """
    _check_events(muted, unmuted)
    row = record_if_any(
        _Row,
        await queries.change_merchant(
            database,
            merchant_id=merchant_id,
            pingback_url=pingback_url,
            test_pingback_url=test_pingback_url,
            pingback_format=pingback_format,
            test_mode=test_mode,
            shipped_goods=shipped_goods,
            slow_methods=slow_methods,
            muted=list(muted),
            unmuted=list(unmuted),
            fees_returned=fees_returned,
            app_schemes=None if app_schemes is None else list(parse_app_schemes(app_schemes)),
            saves_cards=saves_cards,
            signs_quantities=signs_quantities,
            signs_line_items=signs_line_items,
            portal_cancels=portal_cancels,
            portal_pauses=portal_pauses,
            portal_plans=portal_plans,
            portal_quantities=portal_quantities,
            dunning_hours=None if dunning_hours is None else list(dunning_hours),
            dunning_by_reason=dunning_by_reason,
            dunning_end=dunning_end,
            charge_notice_days=charge_notice_days,
            trials_without_card=trials_without_card,
            types_coupons=types_coupons,
            signs_coupons=signs_coupons,
        ),
    )
    if row is None:
        raise NotFound(f"there is no merchant {merchant_id}; see: paydesk merchant list")
    return _merchant(row)


def _check_events(muted: Sequence[str], unmuted: Sequence[str]) -> None:
    for event in (*muted, *unmuted):
        if event not in MUTABLE_EVENTS:
            raise Malformed(f'"{event[:40]}" can\'t be muted; only these can: {", ".join(MUTABLE_EVENTS)}')
    if both := sorted(set(muted) & set(unmuted)):
        raise Malformed(f"{both[0]} is to be muted and not to be muted; give it once")


async def go_live(database: Database, merchant_id: int, *, now: datetime) -> Merchant:
    """Turn an account's test mode off: forms at the live base are live from now on
    (interface.md §9.4).

    Whether there is an acquirer for that is the caller's to make sure of.

    Raises: NotFound; Conflict if its business profile was never accepted.
    """
    row = record_if_any(_Row, await queries.go_live(database, merchant_id=merchant_id, now=now))
    if row is None:
        await find_merchant(database, merchant_id)
        raise Conflict(
            f"the business profile of merchant {merchant_id} is not accepted: its owner fills it in and submits it in "
            f"the account, then: paydesk profile accept {merchant_id}"
        )
    return _merchant(row)


def _merchant(row: _Row) -> Merchant:
    """An account without its keys."""
    return Merchant(
        id=row.id,
        name=row.name,
        email=row.email,
        time_zone=row.time_zone,
        test_mode=row.test_mode,
        went_live_at=row.went_live_at,
        pingback_url=row.pingback_url,
        test_pingback_url=row.test_pingback_url,
        pingback_format=row.pingback_format,
        shipped_goods=row.shipped_goods,
        created_at=row.created_at,
        muted_events=tuple(row.muted_events),
        app_schemes=tuple(row.app_schemes),
        fees_returned=row.fees_returned,
        saves_cards=row.saves_cards,
        signs_quantities=row.signs_quantities,
        signs_line_items=row.signs_line_items,
        slow_methods=row.slow_methods,
        portal_cancels=PortalCancels(row.portal_cancels),
        portal_pauses=row.portal_pauses,
        portal_plans=PortalPlans(row.portal_plans),
        portal_quantities=row.portal_quantities,
        dunning_hours=tuple(row.dunning_hours or ()),
        dunning_by_reason=row.dunning_by_reason,
        dunning_end=row.dunning_end,
        charge_notice_days=row.charge_notice_days,
        trials_without_card=row.trials_without_card,
    )
