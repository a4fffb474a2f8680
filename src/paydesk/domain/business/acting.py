"""What a team's member does to payments, subscriptions and deliveries:
by permission, and kept in the audit log.

`shop_now` is the shop's time (a test clock may run ahead), `now` is real time; both UTC.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from decimal import Decimal

from paydesk.core.wording import worded
from paydesk.database.pool import Database
from paydesk.domain.accounts.access_needs import ConfirmationNeeded
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, is_recent, require
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.billing.differences import ChangedAtOnce
from paydesk.domain.business.payments_for_team import find_payment_for_team
from paydesk.domain.chargebacks.for_api import find_chargeback
from paydesk.domain.chargebacks.giving_evidence import give_evidence
from paydesk.domain.deliveries.confirmations import Delivery, NamedOrder
from paydesk.domain.deliveries.confirming import Confirmed, confirm
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refundable import OverLimit, RefundLimits
from paydesk.domain.payments.refunding import Refund, refund
from paydesk.domain.subscriptions.changes import ChangeType
from paydesk.domain.subscriptions.changing import Changed
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.items import ItemDone
from paydesk.domain.subscriptions.lifecycle import Subscription

Wish = Callable[..., Awaitable[Changed]]
"""What is wanted of a subscription: a function of `subscriptions.changing`."""

ItemWish = Callable[..., Awaitable[ItemDone]]
"""What is wanted of a subscription's items: a function of `subscriptions.items`."""

REFUND_LIMIT = Decimal(500)
"""Giving back more than this of one payment needs the password again;
in dollars, euros or pounds."""
REFUND_DAY = Decimal(5000)
"""The same for all that somebody gives back at a merchant in a day."""


async def refund_payment(
    desk: Desk,
    session: Session,
    payment_id: int,
    amount: Decimal,
    *,
    request_key: str,
    shop_now: datetime,
    now: datetime,
) -> Refund:
    """Give back an amount of a payment, in main units of its currency. Moves money.

    `request_key` names this one wish: however often it comes, money moves once, and the log has
    one line.

    Both limits stand in the statement that begins the refund, so that parallel ones are no way
    around them.

    Raises: Forbidden; ConfirmationNeeded over the limits, which count what was given back of the
        payment before, and by this person today; NotFound, Malformed, Conflict as
        `refunding.refund` does.
    """
    shop = require(session, Permission.refund)
    payment = await find_payment_for_team(desk.database, shop, payment_id)
    currency = payment.seen.currency
    limits = None if is_recent(session, now=now) else RefundLimits(REFUND_LIMIT, REFUND_DAY)
    key, asked_by = f"account {request_key}", f"person {session.person.id}"
    try:
        given = await refund(
            desk, shop, payment_id, amount, requested_by=asked_by, request_key=key, limits=limits, now=shop_now
        )
    except OverLimit as error:
        raise ConfirmationNeeded(worded("%(message)s; give it again to go on", message=error.message)) from error
    if not given.again:
        subject = f"payment {payment_id}"
        details = {"amount": str(given.amount), "currency": currency, "reference_id": given.reference_id}
        await record(
            desk.database, session.actor, Action.payment_refunded, now=now, shop=shop, subject=subject, details=details
        )
    return given


async def cancel_subscription(
    database: Database, session: Session, subscription_id: int, *, shop_now: datetime, now: datetime
) -> Subscription:
    """End all future charges of a subscription; one that has ended stays as it is. Moves no money.

    Raises: Forbidden; NotFound, Conflict as `ending.cancel` does.
    """
    shop = require(session, Permission.cancel_subscription)
    ended = await cancel(database, shop, subscription_id, by="merchant", now=shop_now)
    if ended.date_cancelled == shop_now:
        # It was this call that ended it, not one before or beside it.
        subject = f"subscription {subscription_id}"
        await record(database, session.actor, Action.subscription_cancelled, now=now, shop=shop, subject=subject)
    return ended


async def change_subscription(
    database: Database, session: Session, subscription_id: int, wish: Wish, *, shop_now: datetime, now: datetime
) -> Changed:
    """Have a subscription end with its period, go on after all, pause or resume. Moves no money.

    Raises: Forbidden; NotFound, Malformed, Conflict as the functions of `changing` do.
    """
    shop = require(session, Permission.cancel_subscription)
    changed = await wish(database, shop, subscription_id, now=shop_now)
    if changed.moved:
        details = _change_in_audit(changed)
        subject = f"subscription {subscription_id}"
        action = Action.subscription_changed
        await record(database, session.actor, action, now=now, shop=shop, subject=subject, details=details)
    return changed


async def change_items(
    database: Database,
    session: Session,
    subscription_id: int,
    wish: ItemWish,
    *,
    shop_now: datetime,
    now: datetime,
) -> ItemDone:
    """Add a one-off item to a subscription's next charge, or take one back. Moves no money.

    Raises: Forbidden; NotFound, Conflict, Busy as the functions of `items` do.
    """
    shop = require(session, Permission.cancel_subscription)
    done = await wish(database, shop, subscription_id, now=shop_now)
    if done.moved and done.item is not None:
        details = {"item": done.item.description, "amount": str(done.item.amount), "status": str(done.item.state)}
        action, subject = Action.subscription_changed, f"subscription {subscription_id}"
        await record(database, session.actor, action, now=now, shop=shop, subject=subject, details=details)
    return done


async def charge_difference(desk: Desk, session: Session, wish: AtOnce, *, now: datetime) -> ChangedAtOnce:
    """Have a subscription be of another plan now, and charge the difference. Moves money.

    Raises: Forbidden; as `change_and_charge` does.
    """
    shop = require(session, Permission.cancel_subscription)
    done = await change_and_charge(desk, shop, wish)
    difference = done.difference
    if (done.changed.moved or difference.is_open) and not difference.again:
        details = {"at_once": str(ChangeType.PLAN), "charged": str(difference.amount)}
        action, subject = Action.subscription_changed, f"subscription {wish.subscription_id}"
        await record(desk.database, session.actor, action, now=now, shop=shop, subject=subject, details=details)
    return done


def _change_in_audit(changed: Changed) -> dict[str, str]:
    """What the audit log says of a change: which one is to come, or was carried out at once."""
    if changed.carried_out is not None:
        return {"at_once": str(changed.carried_out.type)}
    change = changed.subscription.change
    return {"to_come": str(change.type), "at": f"{change.due_at or ''}"} if change else {}


async def answer_dispute(
    desk: Desk, session: Session, chargeback_id: int, text: str, *, shop_now: datetime, now: datetime
) -> None:
    """Hand evidence to the bank, once: it can't be taken back. Moves no money.

    The log has it before anybody else hears of it. Raises: Forbidden; as `giving_evidence` does.
    """
    shop = require(session, Permission.answer_disputes)
    await find_chargeback(desk.database, shop, chargeback_id)
    subject = f"chargeback {chargeback_id}"
    await record(desk.database, session.actor, Action.evidence_given, now=now, shop=shop, subject=subject)
    await give_evidence(desk, shop, chargeback_id, text, now=shop_now, once=True)


async def confirm_delivery(
    desk: Desk, session: Session, order: NamedOrder, delivery: Delivery, *, shop_now: datetime, now: datetime
) -> Confirmed:
    """Confirm what became of an order's goods; a shipment takes the money that is held.
    Moves money.

    Raises: Forbidden; NotFound, Malformed, Conflict as `confirming.confirm` does.
    """
    shop = require(session, Permission.confirm_delivery)
    confirmed = await confirm(desk, shop, order, delivery, now=shop_now)
    if confirmed.at != shop_now:
        # It was said before.
        return confirmed
    details = {"status": delivery.status, "carrier": delivery.carrier}
    subject = f"payment {confirmed.payment_id}"
    kept = {name: value for name, value in details.items() if value}
    await record(
        desk.database, session.actor, Action.delivery_confirmed, now=now, shop=shop, subject=subject, details=kept
    )
    return confirmed


async def note_export(
    database: Database, session: Session, what: str, filters: Mapping[str, object], *, now: datetime
) -> None:
    """Write down that a list is taken out as a file; what was searched for may be a customer's,
    so only that it was.

    Raises: Forbidden.
    """
    shop = require(session, Permission.export)
    kept = {key: "…" if key == "q" else value for key, value in filters.items() if value}
    await record(database, session.actor, Action.exported, now=now, shop=shop, subject=what, details=kept)
