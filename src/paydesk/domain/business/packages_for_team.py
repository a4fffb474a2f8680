"""Packages as their team makes them, and the versions that new customers are to get."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from paydesk.core.errors import Malformed
from paydesk.core.money import (
    parse_currency,
    parse_exact,
    parse_typed,
    plain_number,
    refuse_thousands,
    with_dot,
)
from paydesk.core.periods import Period, parse_period
from paydesk.core.wording import worded
from paydesk.database.statements import Connection
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import Session, require
from paydesk.domain.business.payment_links import sell_on_pages
from paydesk.domain.merchants.live_amounts import require_typed_taken
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.packages import MadeVersion, find_sku, make_package, make_version
from paydesk.domain.subscriptions.subscription_terms import MOST_PAYMENTS, Terms, Trial, named, sku_of


@dataclass(frozen=True, slots=True)
class TypedPackage:
    """What somebody typed to make a package, or another version of one; units are the letters of
    a form's period.
    """

    name: str = ""
    sku_id: str = ""
    currency: str = ""
    price: str = ""
    period_length: str = "1"
    period_unit: str = "m"
    trial_length: str = ""
    trial_unit: str = "d"
    trial_price: str = ""
    payments: str = ""


FIELDS = tuple(TypedPackage.__slots__)


def read_package(shop: Shop, typed: TypedPackage) -> Terms:
    """What was typed, checked; a live price is one that acquirers take.

    Raises: Malformed, naming the field.
    """
    name, sku_id = named(typed.name, "name"), sku_of(typed.sku_id, "sku_id")
    currency = parse_currency(typed.currency)
    terms = Terms(
        name=name,
        sku_id=sku_id,
        currency=currency,
        price=parse_typed(typed.price, currency, "price"),
        period=_period(typed.period_length, typed.period_unit, "period_length"),
        trial=_trial(typed, currency),
        limit=_payments(typed.payments),
    )
    trial_price = terms.trial.price if terms.trial else None
    require_typed_taken(shop, currency, price=terms.price, trial_price=trial_price)
    return terms


def as_typed(terms: Terms) -> TypedPackage:
    """Terms, as they would be typed."""
    trial = terms.trial
    return TypedPackage(
        name=terms.name,
        sku_id=terms.sku_id,
        currency=terms.currency,
        price=_number(terms.price),
        period_length=str(terms.period.length),
        period_unit=terms.period.unit[0],
        trial_length=str(trial.period.length) if trial else "",
        trial_unit=trial.period.unit[0] if trial else "d",
        trial_price=_number(trial.price) if trial and trial.price else "",
        payments=str(terms.limit or ""),
    )


def _number(price: Decimal) -> str:
    return f"{plain_number(price):f}"


def _period(length: str, unit: str, field: str) -> Period:
    try:
        return parse_period(f"{length}{unit}", field)
    except Malformed as error:
        raise Malformed(worded("write a whole number, for at most 10 years"), field) from error


def _trial(typed: TypedPackage, currency: str) -> Trial | None:
    price = Decimal(0)
    if typed.trial_price:
        like = worded('"1.00", or 0 for free')
        price = parse_exact(with_dot(typed.trial_price), currency, "trial_price", like=like)
        refuse_thousands(typed.trial_price, currency, "trial_price")
    if typed.trial_length:
        return Trial(price, _period(typed.trial_length, typed.trial_unit, "trial_length"))
    if price:
        raise Malformed(worded("say how long the trial is that this is the price of"), "trial_length")
    return None


def _payments(text: str) -> int:
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or len(text) > len(str(MOST_PAYMENTS)):
        raise Malformed(
            worded("this must be a whole number from 1 to %(most_payments)s, or empty", most_payments=MOST_PAYMENTS),
            "payments",
        )
    if not 1 <= int(text) <= MOST_PAYMENTS:
        raise Malformed(
            worded("this must be from 1 to %(most_payments)s, or empty", most_payments=MOST_PAYMENTS), "payments"
        )
    return int(text)


async def add_package(gate: Gate, session: Session, shop: Shop, typed: TypedPackage, *, now: datetime) -> MadeVersion:
    """Make a package with its first version; what was made just so before is found.
    Moves no money.

    Raises: Forbidden; Malformed, naming the field; Conflict if its SKU is another package's.
    """
    require(session, Permission.manage_settings)
    terms = read_package(shop, typed)
    async with gate.database.acquire() as connection, connection.transaction():
        made = await make_package(connection, shop, terms, now=now)
        await _note(connection, session, shop, made, terms, now=now)
    return made


async def add_version(
    gate: Gate,
    session: Session,
    shop: Shop,
    package_id: int,
    typed: TypedPackage,
    *,
    on_pages: bool = False,
    now: datetime,
) -> MadeVersion:
    """Make a version of a package for new customers; what runs stays as it is, and the package
    keeps its SKU. `on_pages`: pricing pages sell it from now on. Moves no money.

    Raises: Forbidden; NotFound; Malformed, naming the field.
    """
    require(session, Permission.manage_settings)
    sku_id = await find_sku(gate.database, shop, package_id)
    terms = read_package(shop, replace(typed, sku_id=sku_id))
    async with gate.database.acquire() as connection, connection.transaction():
        made = await make_version(connection, shop, terms, now=now)
        await _note(connection, session, shop, made, terms, now=now)
        if on_pages:
            await sell_on_pages(connection, session, shop, made, now=now)
    return made


async def _note(
    connection: Connection, session: Session, shop: Shop, made: MadeVersion, terms: Terms, *, now: datetime
) -> None:
    """Write what is new into the audit log."""
    if not made.fresh:
        return
    each = f"{terms.period.length}{terms.period.unit[0]}"
    await record(
        connection,
        session.actor,
        Action.settings_changed,
        now=now,
        shop=shop,
        subject=f"package {made.package_id}",
        details={
            "what": "new version",
            "version": made.version_id,
            "name": terms.name,
            "price": f"{terms.price:f} {terms.currency} / {each}",
        },
    )
