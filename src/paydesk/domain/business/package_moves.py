"""Moving what runs to another version of a package, as its team, or an operator, wishes it."""

from __future__ import annotations

from datetime import datetime

from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, Actor, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions import moving
from paydesk.domain.subscriptions.moving import Begun


async def move_subscriptions(
    gate: Gate, session: Session, shop: Shop, from_id: int, to_id: int, *, shop_now: datetime, now: datetime
) -> Begun:
    """Have what is on a version go on as another one, each from its next period on; sent twice, it
    is wished once. Moves no money.

    Raises: Forbidden; NotFound; Malformed; Conflict if there is nothing to move.
    """
    require(session, Permission.manage_settings)
    return await move_by(gate.database, session.actor, shop, from_id, to_id, shop_now=shop_now, now=now)


async def move_by(
    database: Database, actor: Actor, shop: Shop, from_id: int, to_id: int, *, shop_now: datetime, now: datetime
) -> Begun:
    """The same by whoever may."""
    async with database.acquire() as connection, connection.transaction():
        begun = await moving.begin_move(connection, shop, from_id, to_id, shop_now=shop_now, now=now)
        if begun.fresh:
            details = {"what": "begun", "from_version": from_id, "to_version": to_id}
            await record(
                connection,
                actor,
                Action.subscription_changed,
                now=now,
                shop=shop,
                subject=f"package move {begun.id}",
                details=details,
            )
    return begun


async def take_move_back(gate: Gate, session: Session, shop: Shop, move_id: int, *, now: datetime) -> None:
    """Have what is still to come of a move not come; once is enough. Moves no money.

    Raises: Forbidden; NotFound.
    """
    require(session, Permission.manage_settings)
    await take_back_by(gate.database, session.actor, shop, move_id, now=now)


async def take_back_by(database: Database, actor: Actor, shop: Shop, move_id: int, *, now: datetime) -> None:
    """The same by whoever may."""
    async with database.acquire() as connection, connection.transaction():
        if await moving.take_back(connection, shop, move_id):
            await record(
                connection,
                actor,
                Action.subscription_changed,
                now=now,
                shop=shop,
                subject=f"package move {move_id}",
                details={"what": "taken back"},
            )
