"""A shop's settings: its name and address, its calendar, whether goods are shipped,
and which mails go out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.core.email_addresses import parse_email
from paydesk.core.errors import Malformed, NotFound, Unavailable
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, record_of
from paydesk.database.statements import load_statements
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.people import no_such_zone, parse_name, parse_time_zone
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require, require_recent
from paydesk.domain.merchants.app_schemes import parse_app_schemes
from paydesk.domain.merchants.customer_ways import PortalCancels, PortalPlans
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.notice_days import parse_notice_days
from paydesk.domain.merchants.taking_turns import take_turn
from paydesk.domain.payments.time_to_ship import require_one_holds

queries = load_statements(__package__ or "", "shop_settings.sql")


@dataclass(frozen=True, slots=True)
class ShopSettings:
    """What a team decides for both sides of its shop.

    `email` is where the merchant is reached, `time_zone` decides calendar days; with
    `shipped_goods` new payments are only held until a shipment is confirmed (interface.md §7.4).
    `customer_mails`: customers get receipts and the like; `test_mails`: the merchant gets those
    about test data. Customers are led into apps of `app_schemes` by themselves. With `saves_cards`
    they may save a card for their next visit, and with `slow_methods` pay by what takes days, where
    the operator allows that. With `signs_quantities` several of a thing may be sold
    (`recurring_quantity`), and with `signs_line_items` forms may bring `line_items`.
    `portal_cancels`, `portal_pauses`, `portal_plans` and `portal_quantities`: what they may do with
    a subscription on its page. A charge
    of one that failed is tried again after `dunning_hours` (None: as usual), and with
    `dunning_by_reason` later where its reason says so; `dunning_end` is what becomes of it when the
    last try has failed. Customers are told of certain charges `charge_notice_days` before (None:
    not). With `trials_without_card` a free trial asks for none.
    """

    name: str
    email: str
    time_zone: str
    shipped_goods: bool
    customer_mails: bool
    test_mails: bool
    app_schemes: tuple[str, ...] = ()
    saves_cards: bool = False
    signs_quantities: bool = False
    signs_line_items: bool = False
    portal_cancels: PortalCancels = PortalCancels.NOW
    portal_pauses: bool = False
    portal_plans: PortalPlans = PortalPlans.PERIOD_END
    portal_quantities: bool = False
    slow_methods: bool = False
    dunning_hours: tuple[int, ...] | None = None
    dunning_by_reason: bool = False
    dunning_end: DunningEnd = DunningEnd.CANCEL
    charge_notice_days: int | None = None
    trials_without_card: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    email: str
    time_zone: str
    shipped_goods: bool
    customer_mails: bool
    test_mails: bool
    app_schemes: Sequence[str]
    saves_cards: bool
    signs_quantities: bool
    signs_line_items: bool
    portal_cancels: PortalCancels
    portal_pauses: bool
    portal_plans: PortalPlans
    portal_quantities: bool
    slow_methods: bool
    dunning_hours: Sequence[int] | None
    dunning_by_reason: bool
    dunning_end: DunningEnd
    charge_notice_days: int | None
    trials_without_card: bool
    held: int


async def find_shop_settings(database: Database, merchant_id: int) -> tuple[ShopSettings, int]:
    """The settings, and how many live orders are held until they are shipped (counted up to 1000).

    Raises: NotFound.
    """
    row = record_if_any(_Row, await queries.find(database, merchant_id=merchant_id))
    if row is None:
        raise NotFound(f"there is no merchant {merchant_id}")
    return _settings(row), row.held


async def save_shop_settings(
    gate: Gate, session: Session, wanted: ShopSettings, sides: Sequence[Sequence[Acquirer]], *, now: datetime
) -> None:
    """Take new settings; what was paid before stays as it is.
    `sides` are the acquirers that serve the shop, live and in tests: one of each has to hold money.

    Raises: Forbidden; Malformed, naming the field; ConfirmationNeeded for another e-mail address.
    """
    merchant_id = require(session, Permission.manage_settings).merchant_id
    checked = replace(
        wanted,
        email=parse_email(wanted.email),
        time_zone=parse_time_zone(wanted.time_zone),
        app_schemes=parse_app_schemes(wanted.app_schemes),
        charge_notice_days=parse_notice_days(str(wanted.charge_notice_days or ""), "charge_notice_days"),
    )
    async with gate.database.acquire() as connection, connection.transaction():
        await take_turn(connection, merchant_id)
        before = _settings(record_of(_Row, await queries.find(connection, merchant_id=merchant_id)))
        if checked.name != before.name:
            checked = replace(checked, name=parse_name(checked.name))
        if checked.time_zone != before.time_zone and not await queries.knows_zone(
            connection, time_zone=checked.time_zone
        ):
            raise no_such_zone()
        if checked.email != before.email:
            require_recent(session, now=now)
        if checked.shipped_goods and not before.shipped_goods:
            _require_holds(sides)
        if checked == before:
            return
        await queries.save(connection, merchant_id=merchant_id, **asdict(checked))
        await record(
            connection,
            session.actor,
            Action.settings_changed,
            now=now,
            merchant_id=merchant_id,
            subject="shop",
            details=_difference(before, checked),
        )


def _require_holds(sides: Sequence[Sequence[Acquirer]]) -> None:
    try:
        for serving in sides:
            require_one_holds(serving)
    except Unavailable as error:
        raise Malformed(error.message, "shipped_goods") from error


def _difference(before: ShopSettings, after: ShopSettings) -> dict[str, object]:
    names = [name for name in ShopSettings.__slots__ if getattr(before, name) != getattr(after, name)]
    return {name: f"{getattr(before, name)} → {getattr(after, name)}" for name in names}


def _settings(row: _Row) -> ShopSettings:
    return ShopSettings(
        name=row.name,
        email=row.email,
        time_zone=row.time_zone,
        shipped_goods=row.shipped_goods,
        customer_mails=row.customer_mails,
        test_mails=row.test_mails,
        app_schemes=tuple(row.app_schemes),
        saves_cards=row.saves_cards,
        signs_quantities=row.signs_quantities,
        signs_line_items=row.signs_line_items,
        portal_cancels=row.portal_cancels,
        portal_pauses=row.portal_pauses,
        portal_plans=row.portal_plans,
        portal_quantities=row.portal_quantities,
        slow_methods=row.slow_methods,
        dunning_hours=None if row.dunning_hours is None else tuple(row.dunning_hours),
        dunning_by_reason=row.dunning_by_reason,
        dunning_end=row.dunning_end,
        charge_notice_days=row.charge_notice_days,
        trials_without_card=row.trials_without_card,
    )
