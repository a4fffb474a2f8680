"""Between rows and what they mean: reading `subscription_planned` and `package_terms`,
writing versions as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from paydesk.core.periods import Period, Unit
from paydesk.domain.merchants.customer_links import Link, LinkTo
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.destinations import Addressed
from paydesk.domain.subscriptions.changes import Change, ChangeType
from paydesk.domain.subscriptions.dunning import Dunning
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.retry_times import refused_retry_at
from paydesk.domain.subscriptions.states import SubscriptionState
from paydesk.domain.subscriptions.subscription_terms import Discount, Package, Terms, Trial

NO_ACCOUNT = ""
"""The acquirer of what began without a card, until its customer has given one."""

_KEPT = (
    "merchant_id", "live", "id", "init_payment_id", "init_merchant_order_id", "time_zone", "anchor", "next_period",
    "date_next", "date_start", "created_at", "failures", "counter", "paid_number_counter", "date_active", "date_paid",
    "date_end", "date_expired", "date_cancelled", "date_stopped", "cancelled_by", "revision",
    "skipped",
)  # fmt: skip
"""Columns that a version carries under the same name."""

_kept = attrgetter(*_KEPT)


class Moves(NamedTuple):
    """The columns that payments for subscriptions write, each as the array that their statement
    takes; null where there is no subscription, or where it begins.
    """

    revision: list[object]
    state: list[object]
    next_period: list[object]
    date_next: list[object]
    failures: list[object]
    counter: list[object]
    paid_number_counter: list[object]
    date_active: list[object]
    date_paid: list[object]
    date_end: list[object]
    skipped: list[object]


_moved = attrgetter(*Moves._fields)
_UNMOVED = (None,) * len(Moves._fields)


class PackageRow(msgspec.Struct, frozen=True):
    """A row of `package_terms`."""

    merchant_id: int
    live: bool
    package_version_id: int
    package_id: int
    sku_id: str
    subscriptions_count: int
    package_name: str
    currency: str
    price: Decimal
    period_length: int
    period_unit: Unit
    trial_price: Decimal
    trial_length: int
    trial_unit: Unit
    payment_limit: int
    list_price: Decimal | None
    discount_periods: int | None
    quantity: int


class SubscriptionRow(PackageRow, frozen=True):
    """A row of `subscription_planned`."""

    id: int
    state: SubscriptionState
    init_payment_id: int
    init_merchant_order_id: str
    time_zone: str
    anchor: datetime
    next_period: int
    date_next: datetime | None
    date_start: datetime
    created_at: datetime
    failures: int
    counter: int
    paid_number_counter: int
    date_active: datetime | None
    date_paid: datetime | None
    date_end: datetime | None
    date_expired: datetime | None
    date_cancelled: datetime | None
    date_stopped: datetime | None
    cancelled_by: str | None
    revision: int
    charging_attempt_id: int | None
    portal_token: str | None
    terms_agreed: str
    card_id: int
    customer_id: int
    acquirer: str
    network_reference: str
    sign_version: str
    key_id: int
    pingback_url: str | None
    email: str
    skipped: int
    set_back: int
    portal_seed: str | None
    change_type: ChangeType | None
    change_due_at: datetime | None
    change_since: datetime | None
    change_by: str | None
    change_terms: str | None
    tells_pauses: bool

    @property
    def change(self) -> Change | None:
        """The open change."""
        if self.change_type is None or self.change_since is None:
            return None
        package = None
        if self.change_terms is not None:
            package = package_of(msgspec.json.decode(self.change_terms, type=PackageRow))
        return Change(self.change_type, self.change_due_at, self.change_since, self.change_by or "", package)


class StandingRow(SubscriptionRow, frozen=True):
    """A row of it with the plan by which a charge that fails is tried again."""

    dunning: Dunning | None


class TriedRow(StandingRow, frozen=True):
    """A row of `subscription_tried`."""

    refused_at: datetime | None
    refusals_until_then: int | None

    @property
    def refused_until(self) -> datetime | None:
        """When the next charge is tried again, if the acquirer refused it as a request."""
        if self.refused_at is None or not self.refusals_until_then:
            return None
        return refused_retry_at(self.refused_at, self.refusals_until_then)


class Report(Addressed, frozen=True):
    """What is told of a payment's approval, and what it needs to be worked out;
    without a subscription some is null.
    """

    merchant_id: int
    attempt_id: int
    amount: Decimal
    currency: str
    payment_id: int
    merchant_order_id: str
    first_name: str
    last_name: str
    username: str
    country: str
    email: str
    rate: Decimal
    fixed: Decimal
    reserve_rate: Decimal
    time_zone: str
    renewal: bool
    subscription_id: int | None
    period_number: int | None
    card_id: int
    acquirer: str
    package_version_id: int | None

    @property
    def shop(self) -> Shop:
        """Whose payment it is."""
        return Shop(self.merchant_id, self.live)


class OrderReport(Report, frozen=True):
    """Of an order: what a subscription that it begins needs besides."""

    customer_id: int
    key_id: int
    terms_agreed: str | None
    fresh_subscription_id: int | None


class RenewalRow(Report, frozen=True, gc=False):
    """A renewal whose intent has just been committed, with its subscription as it stands:
    a row of `begin_renewals`.
    """

    idempotency_key: str
    number: int
    was_forgotten: bool
    was_paused: bool
    key_tag: str
    deployment: str
    epoch: int
    shop_now: datetime
    network_reference: str
    tried_at: datetime
    charge_missed_until: datetime | None
    id: int
    state: SubscriptionState
    init_payment_id: int
    init_merchant_order_id: str
    anchor: datetime
    next_period: int
    date_next: datetime
    date_start: datetime
    created_at: datetime
    failures: int
    counter: int
    paid_number_counter: int
    date_active: datetime | None
    date_paid: datetime | None
    date_end: datetime | None
    date_expired: datetime | None
    date_cancelled: datetime | None
    date_stopped: datetime | None
    cancelled_by: str | None
    revision: int
    skipped: int
    package_id: int
    sku_id: str
    subscriptions_count: int
    package_name: str
    price: Decimal
    period_length: int
    period_unit: Unit
    trial_price: Decimal
    trial_length: int
    trial_unit: Unit
    payment_limit: int
    list_price: Decimal | None
    discount_periods: int | None
    quantity: int
    number_sealed: bytes | None
    vault_key_id: str
    exp_month: int
    exp_year: int
    holder: str
    refused_as: str
    stored_reference: str


def package_in(row: object) -> Package:
    """The package in the object of a row that joins `package_terms` to other things."""
    return package_of(msgspec.convert(row, PackageRow, from_attributes=True))


def package_of(row: PackageRow | RenewalRow) -> Package:
    """The package in a row."""
    trial = None
    if row.trial_length:
        trial = Trial(row.trial_price, Period(row.trial_length, row.trial_unit))
    terms = Terms(
        name=row.package_name,
        sku_id=row.sku_id,
        currency=row.currency,
        price=row.price,
        period=Period(row.period_length, row.period_unit),
        trial=trial,
        limit=row.payment_limit,
        discount=None if row.list_price is None else Discount(row.list_price, row.discount_periods),
        quantity=row.quantity,
    )
    assert row.package_version_id is not None, "what is charged again has its terms"
    return Package(row.package_id, row.package_version_id, terms, row.subscriptions_count)


class Packages:
    """The packages of renewals, each made once: most of a batch are of the same few versions."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], Package] = {}

    def of(self, row: RenewalRow) -> Package:
        """The package in a row."""
        # A version's terms never change, how many subscriptions its package has had does.
        name = (row.merchant_id, row.live, row.package_version_id, row.subscriptions_count)
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = package_of(row)
        return made


def subscription_of(row: SubscriptionRow | RenewalRow, package: Package | None = None) -> Subscription:
    """The subscription in a row, whose `package` may be made already."""
    values = dict(zip(_KEPT, _kept(row), strict=True))
    whole = Subscription(
        **values,
        state=row.state,
        package=package or package_of(row),
        email=row.email,
        has_card=row.acquirer != NO_ACCOUNT,
        dunning=row.dunning if isinstance(row, StandingRow) else None,
        refused_until=row.refused_until if isinstance(row, TriedRow) else None,
    )
    if isinstance(row, RenewalRow):
        # What is being charged has no open change.
        return whole
    change = row.change
    if change is None and not row.tells_pauses and not row.set_back:
        return whole
    due = change.due_at if change is not None and change.type is ChangeType.PLAN else whole.date_next
    return replace(whole, change=change, date_next=due, tells_pauses=row.tells_pauses, set_back=row.set_back)


def link_of(row: SubscriptionRow) -> Link:
    """The link to the portal of the subscription in a row: who has it may cancel.

    One of an older version stays what it is told by as long as it stands in its row in clear.
    """
    shop = Shop(row.merchant_id, row.live)
    old = row.portal_token if row.portal_seed is None else None
    return Link(LinkTo.PORTAL, shop, row.id, row.portal_seed or "", old)


def paying_link(row: SubscriptionRow, period: int) -> Link:
    """The link that pays what is open for one period of the subscription in a row, and no more."""
    return Link(LinkTo.PAYING, Shop(row.merchant_id, row.live), row.id, row.portal_seed or "", period=period)


def as_rows(versions: Sequence[Subscription], details: Sequence[Mapping[str, object]] = ()) -> str:
    """Versions as a JSON array that `jsonb_populate_recordset(null::subscription, …)` reads.

    `details` adds columns that a version does not carry, one mapping for each version (new
    subscriptions need them).
    """
    if not details:
        # Straight from the dataclasses: what is no column of the table (the package, the e-mail) is
        # not read.
        return msgspec.json.encode(versions).decode()
    rows = [as_columns(version) | dict(more) for version, more in zip(versions, details, strict=True)]
    return msgspec.json.encode(rows).decode()


def as_moved(versions: Sequence[Subscription | None]) -> Moves:
    """Versions that payments have moved on, without what stays as it is."""
    rows = [_UNMOVED if version is None else _moved(version) for version in versions]
    return Moves(*map(list, zip(*rows, strict=True)))


def as_columns(version: Subscription) -> dict[str, object]:
    """A version by its columns."""
    values: dict[str, object] = {name: getattr(version, name) for name in _KEPT}
    return values | {"state": str(version.state), "package_version_id": version.package.version_id}
