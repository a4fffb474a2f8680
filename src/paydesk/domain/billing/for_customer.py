"""What the customer's own page shows of a subscription: a link opens this one, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from paydesk.core.cards import BRAND_RULES, Brand
from paydesk.core.errors import NotFound
from paydesk.core.payment_systems import PAYMENT_SYSTEMS
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.billing.card_changes import CardChange, ChangePage
from paydesk.domain.merchants.customer_links import Link, OpenedLink, wrong_link
from paydesk.domain.merchants.customer_ways import PortalCancels, PortalPlans
from paydesk.domain.merchants.imprints import NO_IMPRINT, Imprint, imprint_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.states import PaymentState
from paydesk.domain.subscriptions.changes import NO_CARD, Change, ChangeType
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.domain.subscriptions.rows import TriedRow, subscription_of
from paydesk.domain.subscriptions.states import CardChangeState

queries = load_statements(__package__ or "", "for_customer.sql")

NEWEST = 2**63 - 1
"""Below which every payment's id is."""


@dataclass(frozen=True, slots=True)
class StoredCard:
    """What may be shown of a card: the brand's name (empty if unknown), the last four digits,
    holder and expiry; `instead` names what it is instead of one (`bank`, `other`).
    """

    brand: str
    last4: str
    holder: str
    exp_month: int
    exp_year: int
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Holding:
    """A subscription as its customer sees it.

    `now` is the shop's time when it was read (a test clock may run ahead), UTC; `charging` says
    that a charge is in flight, and `sure_by` by when the bank says whether it pays, if it takes
    some days over that; `change` is the last change of the card; `agreed` is the wording
    that the customer agreed to, and `plan_changed` whether other terms hold now. `cancels`,
    `pauses`, `plans` and `quantities` say what its merchant lets customers do, and `has_plans`
    whether it offers others to change to; by what is `slow` nothing can be charged at once.
    `branded_at` is when the merchant chose colour and logo; for one that is `suspended` nothing is
    charged.
    """

    shop: Shop
    subscription: Subscription
    merchant_name: str
    agreed: str
    card: StoredCard
    change: CardChange | None
    charging: bool
    now: datetime
    cancels: PortalCancels = PortalCancels.NOW
    pauses: bool = False
    plans: PortalPlans = PortalPlans.PERIOD_END
    quantities: bool = False
    slow: bool = False
    has_plans: bool = False
    plan_changed: bool = False
    branded_at: datetime | None = None
    has_logo: bool = False
    suspended: bool = False
    sure_by: datetime | None = None
    shop_url: str = ""
    """The shop's own address: as its operator has seen it, else as its checkout named it."""
    imprint: Imprint = NO_IMPRINT
    balance: Decimal = Decimal(0)
    """What its next charges have besides their prices."""

    @property
    def paid_until(self) -> datetime:
        """When the last period that was paid is over, or the trial if none was."""
        return self.subscription.paid_until

    @property
    def ends_later(self) -> bool:
        """Whether the customer may have it end with its period: there is one, and it was paid."""
        subscription = self.subscription
        open_end = self._goes_on and subscription.date_end is None
        return open_end and self.cancels is not PortalCancels.NOW and self.paid_until > self.now

    @property
    def ends_at_once(self) -> bool:
        """Whether the customer may end it at once: there must be a way to end it."""
        return self.subscription.running and (self.cancels is not PortalCancels.PERIOD_END or not self.ends_by_wish)

    @property
    def ends_by_wish(self) -> bool:
        """Whether it ends, or may end, with its period because its customer wants that."""
        return self.ends_later or (self._wish is not None and self._wish.type is ChangeType.CANCEL)

    @property
    def may_pause(self) -> bool:
        """Whether the customer may pause it."""
        return self.pauses and self._goes_on

    @property
    def may_change_plan(self) -> bool:
        """Whether the customer may choose another plan, or how many: there is something to choose,
        this period is paid, another follows, and the merchant wants no other one.
        """
        subscription = self.subscription
        own = subscription.change is None or subscription.change.by == "customer"
        follows = self._goes_on and own and subscription.has_card and subscription.date_end is None
        choice = self.has_plans or self.quantities
        return choice and follows and not subscription.failures and self.paid_until > self.now

    @property
    def may_choose_quantity(self) -> bool:
        """Whether the customer may choose how many it is of."""
        return self.quantities and self.may_change_plan

    @property
    def changes_later(self) -> bool:
        """Whether another plan may hold from the next period on: at once it may not, where that has
        to be charged and nothing can be.
        """
        return self.may_change_plan and (self.plans is not PortalPlans.NOW or not self.changes_now)

    @property
    def changes_now(self) -> bool:
        """Whether another plan may hold at once."""
        able = not self.slow and not self.suspended
        return self.may_change_plan and able and self.plans is not PortalPlans.PERIOD_END

    @property
    def _goes_on(self) -> bool:
        """Whether it is charged again as it stands, if nobody asks for anything else."""
        return self.subscription.running and (self._wish is None or self._wish.type is ChangeType.PLAN)

    @property
    def _wish(self) -> Change | None:
        """The change to come that somebody wants: that it ends without a card is nobody's wish."""
        change = self.subscription.change
        return None if change is not None and change.by == NO_CARD else change

    @property
    def may_undo(self) -> bool:
        """Whether the customer may take back what they have asked for themselves:
        an end that was to come, or a pause.
        """
        change = self.subscription.change
        due = change is None or (change.due_at is not None and change.due_at <= self.now)
        return change is not None and not due and change.by == "customer"


@dataclass(frozen=True, slots=True)
class PastPayment:
    """One payment of a subscription: for which period (or in which), when (UTC), how much, and
    where it stands.
    """

    id: int
    period: int
    at: datetime
    amount: Decimal
    currency: str
    state: PaymentState


@dataclass(frozen=True, slots=True)
class PastPayments:
    """Some payments, newest first; `older` is the id to go on below, None after the last one."""

    shown: tuple[PastPayment, ...]
    older: int | None


@dataclass(frozen=True, slots=True)
class _Receipt:
    id: int
    merchant_order_id: str
    at: datetime
    amount: Decimal
    refunded: Decimal
    currency: str
    brand: str
    last4: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """One payment that was made: when (UTC), how much, how much of it was given back, by what."""

    id: int
    merchant_order_id: str
    at: datetime
    amount: Decimal
    refunded: Decimal
    currency: str
    card: StoredCard


RECEIPTS = (PaymentState.CAPTURED, PaymentState.PARTIALLY_REFUNDED, PaymentState.REFUNDED)
"""In these states there is a receipt for a payment."""


class _Holding(TriedRow, frozen=True):
    """A subscription with its card, and the last change of that, if there was one."""

    merchant_name: str
    branded_at: datetime | None
    has_logo: bool
    imprint: list[str] | None
    portal_cancels: PortalCancels
    portal_pauses: bool
    portal_plans: PortalPlans
    portal_quantities: bool
    slow: bool
    suspended: bool
    shop_url: str
    plan_changed: bool
    balance: Decimal
    has_plans: bool
    clock: timedelta
    brand: str
    last4: str
    holder: str
    exp_month: int
    exp_year: int
    change_id: int | None
    change_state: CardChangeState | None
    idempotency_key: str
    change_acquirer: str
    not_after: datetime
    challenge_url: str
    decline_reason: str
    page_reference: str
    page_currency: str
    page_ends_at: datetime | None
    sure_by: datetime | None


async def find_holding(database: Database, link: Link | OpenedLink, *, now: datetime) -> Holding:
    """The subscription behind a customer's link; `now` is real time, UTC.

    Raises: NotFound.
    """
    shop = link.shop
    row_id = await _old_link(database, link) if link.row_id is None else link.row_id
    row = record_if_any(
        _Holding, await queries.find_holding(database, merchant_id=shop.merchant_id, live=shop.live, id=row_id)
    )
    if row is None or not link.fits(row.portal_seed):
        raise wrong_link()
    return Holding(
        shop=shop,
        subscription=subscription_of(row),
        merchant_name=row.merchant_name,
        agreed=row.terms_agreed,
        card=_card(row),
        change=_change(shop, row),
        charging=row.charging_attempt_id is not None,
        now=now + row.clock,
        cancels=row.portal_cancels,
        pauses=row.portal_pauses,
        plans=row.portal_plans,
        quantities=row.portal_quantities,
        slow=row.slow,
        has_plans=row.has_plans,
        plan_changed=row.plan_changed,
        branded_at=row.branded_at,
        has_logo=row.has_logo,
        suspended=row.suspended,
        sure_by=row.sure_by,
        shop_url=row.shop_url,
        imprint=imprint_of(row.imprint),
        balance=row.balance,
    )


async def _old_link(database: Database, link: Link | OpenedLink) -> int | None:
    """The subscription whose link an older version made; None if there is none."""
    assert isinstance(link, OpenedLink)
    shop, names = link.shop, {"token": link.token, "token_hash": link.old_hash}
    found = await queries.find_old_link(database, merchant_id=shop.merchant_id, live=shop.live, **names)
    return None if found is None else int(found)


def _card(row: _Holding) -> StoredCard:
    return _shown(row.brand, row.last4, row.holder, row.exp_month, row.exp_year)


def _shown(brand: str, last4: str, holder: str = "", exp_month: int = 0, exp_year: int = 0) -> StoredCard:
    known = Brand(brand) if brand in set(Brand) else Brand.UNKNOWN
    label = BRAND_RULES[known].label if known is not Brand.UNKNOWN else ""
    return StoredCard(label, last4, holder, exp_month, exp_year, brand if brand in PAYMENT_SYSTEMS else "")


def _change(shop: Shop, row: _Holding) -> CardChange | None:
    if row.change_id is None or row.change_state is None:
        return None
    return CardChange(
        shop=shop,
        id=row.change_id,
        state=row.change_state,
        key=row.idempotency_key,
        acquirer=row.change_acquirer,
        not_after=row.not_after,
        challenge_url=row.challenge_url,
        decline_reason=row.decline_reason,
        page=ChangePage(row.page_reference, row.page_currency, row.page_ends_at) if row.page_ends_at else None,
    )


async def find_receipt(database: Database, subscription: Subscription, payment_id: int) -> Receipt:
    """The receipt for one payment of a subscription. Raises: NotFound if none was made."""
    found = await queries.find_receipt(
        database,
        merchant_id=subscription.merchant_id,
        live=subscription.live,
        subscription_id=subscription.id,
        id=payment_id,
        states=RECEIPTS,
    )
    row = record_if_any(_Receipt, found)
    if row is None:
        raise NotFound(f"there is no receipt for payment {payment_id}")
    card = _shown(row.brand, row.last4)
    return Receipt(row.id, row.merchant_order_id, row.at, row.amount, row.refunded, row.currency, card)


async def past_payments(
    database: Database, subscription: Subscription, *, before: int | None = None, most: int = 12
) -> PastPayments:
    """At most so many payments of a subscription, newest first, those with an id below `before` if
    given; what was charged for a change of plan is among them.
    """
    found = queries.past_payments(
        database,
        merchant_id=subscription.merchant_id,
        live=subscription.live,
        subscription_id=subscription.id,
        before=NEWEST if before is None else before,
        most=most + 1,
    )
    payments = await records_of(PastPayment, found)
    older = payments[most - 1].id if len(payments) > most else None
    return PastPayments(tuple(payments[:most]), older)
