"""Coupons as their team makes them, switches them, and lets customers and forms use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from paydesk.database.pool import Database
from paydesk.database.records import record_of
from paydesk.database.statements import Connection, load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.coupons import keeping
from paydesk.domain.coupons.coupons import Coupon, CouponTerms
from paydesk.domain.merchants.live_amounts import require_typed_taken
from paydesk.domain.merchants.shop import Shop

queries = load_statements(__package__ or "", "coupons_for_team.sql")


@dataclass(frozen=True, slots=True)
class CouponSettings:
    """Whether customers may type coupons on the checkout page, and whether forms may bring one in
    `recurring_coupon`.
    """

    types_coupons: bool
    signs_coupons: bool


async def find_coupon_settings(database: Database, merchant_id: int) -> CouponSettings:
    """What an account has chosen."""
    return record_of(CouponSettings, await queries.find_settings(database, merchant_id=merchant_id))


async def save_coupon_settings(
    gate: Gate, session: Session, shop: Shop, chosen: CouponSettings, *, now: datetime
) -> None:
    """Let coupons be used, or not, on both sides of the account.

    Raises: Forbidden.
    """
    require(session, Permission.manage_settings)
    async with gate.database.acquire() as connection, connection.transaction():
        await queries.save_settings(
            connection,
            merchant_id=shop.merchant_id,
            types_coupons=chosen.types_coupons,
            signs_coupons=chosen.signs_coupons,
        )
        await _note(connection, session.actor, shop, "coupons", asdict(chosen), now=now)


async def make_coupon(gate: Gate, session: Session, shop: Shop, terms: CouponTerms, *, now: datetime) -> Coupon:
    """Make a coupon.

    Raises: Forbidden; Malformed if a live one takes off more decimals than acquirers take; Conflict
        if its code is another's, or there are too many.
    """
    require(session, Permission.manage_settings)
    if terms.currency is not None:
        require_typed_taken(shop, terms.currency, amount=terms.amount)
    return await make_coupon_by(gate.database, session.actor, shop, terms, now=now)


async def make_coupon_by(database: Database, actor: Actor, shop: Shop, terms: CouponTerms, *, now: datetime) -> Coupon:
    """The same by whoever may."""
    async with database.acquire() as connection, connection.transaction():
        made = await keeping.make_coupon(connection, shop, terms, now=now)
        off = f"{terms.percent} %" if terms.percent is not None else f"{terms.amount} {terms.currency}"
        told = {"what": "made", "code": made.code, "off": off}
        await _note(connection, actor, shop, f"coupon {made.id}", told, now=now)
    return made


async def switch_coupon(gate: Gate, session: Session, shop: Shop, coupon_id: int, *, on: bool, now: datetime) -> Coupon:
    """Let a coupon be used, or not any more; who has used it keeps what they agreed to.

    Raises: Forbidden; NotFound.
    """
    require(session, Permission.manage_settings)
    return await switch_coupon_by(gate.database, session.actor, shop, coupon_id, on=on, now=now)


async def switch_coupon_by(
    database: Database, actor: Actor, shop: Shop, coupon_id: int, *, on: bool, now: datetime
) -> Coupon:
    """The same by whoever may."""
    async with database.acquire() as connection, connection.transaction():
        switched = await keeping.switch_coupon(connection, shop, coupon_id, on=on)
        told = {"what": "on" if on else "off", "code": switched.code}
        await _note(connection, actor, shop, f"coupon {coupon_id}", told, now=now)
    return switched


async def _note(
    connection: Connection,
    actor: Actor,
    shop: Shop,
    subject: str,
    details: Mapping[str, object],
    *,
    now: datetime,
) -> None:
    """Write it into the audit log."""
    await record(
        connection,
        actor,
        Action.settings_changed,
        now=now,
        merchant_id=shop.merchant_id,
        subject=subject,
        details={"side": "live" if shop.live else "test", **details},
    )
