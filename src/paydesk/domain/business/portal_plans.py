"""Which plans a shop's customers may change to on their page: its team chooses."""

from __future__ import annotations

from datetime import datetime

from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.packages import offer


async def offer_plan(
    gate: Gate, session: Session, shop: Shop, package_id: int, version_id: int, *, on: bool, now: datetime
) -> None:
    """Offer a version of a package on the pages of customers who have a subscription in its
    currency, or not any more. Whoever has chosen it keeps it. Moves no money.

    Raises: Forbidden; NotFound; Conflict if as many are offered as may be.
    """
    require(session, Permission.manage_settings)
    async with gate.database.acquire() as connection, connection.transaction():
        await offer(connection, shop, package_id, version_id, offered=on)
        await record(
            connection,
            session.actor,
            Action.settings_changed,
            now=now,
            shop=shop,
            subject=f"package {package_id}",
            details={"version": version_id, "on_customers_pages": on},
        )
