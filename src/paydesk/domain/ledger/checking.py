"""What `paydesk check` proves: one statement per rule names the rows that break it.
Moves no money, changes nothing.

It may run beside a service at work: each statement sees one moment, and what moves at the bank
meanwhile is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import islice

from dateutil.relativedelta import relativedelta

from paydesk.adapters.acquirers.simulator import Record
from paydesk.adapters.acquirers.simulator.purchase_state import standing_of
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.database.durability import ConfirmedConnection
from paydesk.database.pool import Database
from paydesk.database.records import record_of
from paydesk.database.statements import Statements, load_statements
from paydesk.domain.payments.lookups import ALERT_AFTER
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.domain.pingbacks.schedule import MOST_ATTEMPTS, RESEND_INTERVAL
from paydesk.domain.subscriptions.dunning import LONGEST_WAIT, MOST_TRIES
from paydesk.domain.subscriptions.retry_times import longest_pause

queries = load_statements(__package__ or "", "checking.sql")
payment_checks = load_statements(__package__ or "", "check_payments.sql")
after_checks = load_statements(__package__ or "", "check_after.sql")
subscription_checks = load_statements(__package__ or "", "check_subscriptions.sql")
bank_checks = load_statements(__package__ or "", "check_bank.sql")
coupon_checks = load_statements(__package__ or "", "check_coupons.sql")
figure_checks = load_statements(__package__ or "", "check_figures.sql")
proceeds_checks = load_statements(__package__ or "", "check_proceeds.sql")

_PATIENCE = 24 * 3600.0
"""Seconds that one statement may take: on a big table a rule reads all of it."""

_BATCH = 1000
_COLUMNS = ("key", "currency", "net", "held", "charged_back", "disputed_at_line", "deployment", "merchant_tag")
_PURCHASES = frozenset({Kind.AUTHORIZE, Kind.CHARGE, Kind.CHALLENGE, Kind.PAGE})
_DISPUTES = frozenset({Kind.DISPUTE, Kind.DISPUTE_WON, Kind.DISPUTE_LOST})


@dataclass(frozen=True, slots=True)
class Rule:
    """A statement with its parameters in the order of their appearance, and what it demands,
    in words.
    """

    statement: str
    words: str
    parameters: tuple[str, ...] = ("merchant_id",)


PAYMENT_RULES = (
    Rule("postings_balance", "every ledger posting sums to zero in each currency"),
    Rule(
        "payments_posted",
        "a captured payment has exactly one capture posting, of its amount, net, reserve and fees; no other has one",
    ),
    Rule("amounts_split", "what was paid is net + reserve + fees, and an unpaid payment has none of them"),
    Rule("payments_reported", "every paid payment has its payment pingback, and no other payment has one"),
    Rule("attempts_agree", "a payment is held by an attempt of its own whose state agrees"),
    Rule("approved_once", "a payment has at most one approved attempt, the one that holds it"),
    Rule("approved_amounts", "an approved attempt has the amount and currency of its payment"),
    Rule("modes_apart", "test and live never mix"),
    Rule(
        "parents_exist",
        "what a checkout, a customer, a card, a payment, an attempt, a ledger entry or a pingback belongs to exists",
    ),
    Rule(
        "pingbacks_follow",
        "a pingback's state follows from its attempts",
        ("merchant_id", "log_kept_since", "most_attempts"),
    ),
    Rule(
        "outcomes_known",
        f"no outcome is unknown for more than {ALERT_AFTER // timedelta(hours=1)} hours, and every open one will be "
        "looked up",
        ("merchant_id", "opened_before"),
    ),
)

AFTER_RULES = (
    Rule("funds_agree", "what a payment has pending, reserved and taken as fees is what its ledger entries sum to"),
    Rule(
        "reversals_add_up",
        "refunds and chargebacks of a payment sum to what it says, and refunds never to more than was captured",
    ),
    Rule("chargebacks_posted", "what chargebacks took, returned and cost is what the ledger says of their payment"),
    Rule("movements_agree", "a capture or void and its payment agree on where it stands"),
    Rule("reversals_reported", "every refund, void and step of a chargeback has one pingback, unless muted"),
    Rule("authorizations_stand", "every authorization has a deadline, and nothing else has one"),
    Rule("closings_agree", "the kept sums of a merchant's old ledger entries are what these sum to"),
)
"""What must hold after the payment: captures, voids, refunds, chargebacks,
and where the money is."""

SUBSCRIPTION_RULES = (
    Rule("periods_paid", "a subscription is paid for every period before the next one, once, and for none after it"),
    Rule("counters_agree", "a subscription counts its payments, and a package its subscriptions"),
    Rule("subscriptions_stand", "a subscription's dates and its charge in flight agree with its state"),
    Rule(
        "changes_agree",
        "a subscription waits for its open change, ends when it was to, and is not charged while it is paused",
    ),
    Rule("balances_add_up", "a subscription's balance is what its prorated changes and renewals come to"),
    Rule(
        "dunning_kept",
        "a charge that fails by a plan is tried as often as that says, and not once the plan is over",
        ("merchant_id", "most_tries"),
    ),
    Rule("numbers_needed", "a card number is kept only for a subscription that will be charged, and for one only"),
    Rule(
        "trials_without_card",
        "a subscription without a card is in a free trial, waits for its end, and nobody was asked for money",
    ),
    Rule("ends_reported", "a subscription that was cancelled or stopped has one pingback that says so"),
)

COUPON_RULES = (
    Rule("coupons_kept", "a coupon is used as often as it may be at most, and by what is paid with it"),
    Rule("discounts_kept", "a subscription is charged what its coupon leaves, for as long as that lasts"),
    Rule("quantities_kept", "a subscription to several of a thing costs that many times what one costs"),
)

FIGURE_RULES = (
    Rule("postings_whole", "a ledger posting is of one kind, one payment or payout, and in its currency"),
    Rule("payouts_posted", "a payout has exactly one posting, of its amount, and no other posting is a payout's"),
    Rule("uncaptured_unposted", "of a payment that was not captured nothing is given back or in the ledger"),
    Rule("payments_found", "each payment is found by its state, and by the time at which its money moves on"),
    Rule("funds_settle", "captured money has a day on which its next part becomes available, until all of it is"),
    Rule("payloads_agree", "a pingback tells the figures of its payment, refund or chargeback"),
    Rule("reserves_add_up", "what is kept of when the reserve is released is what settled payments hold"),
    Rule("sales_add_up", "what is kept of sales by quarters of an hour and days is what payments say"),
    Rule("mrr_adds_up", "what subscriptions bring in a month is what its movements sum to, over any range of days"),
    Rule(
        "dates_in_range",
        "what is due is due soon, by its side's own time",
        ("now", "merchant_id", "resend_interval", "time_to_ship", "longest_pause", "longest_dunning"),
    ),
)
"""What is kept beside what it follows from: figures, dates and texts."""

OPERATOR_RULES = (
    Rule("operator_postings_balance", "every posting of the operator's own books sums to zero in each currency"),
    Rule("lines_posted", "what an acquirer keeps or pays out by a line of its balance is posted once, as it says"),
    Rule("corrections_posted", "a correction of the operator's books is posted once, while what it corrects differs"),
    Rule("arrivals_posted", "what arrived of an acquirer's payouts is at the operator's bank, and nothing else is"),
    Rule("payouts_whole", "an acquirer's payout is the sum of its lines, or is named"),
)
"""What acquirers keep and pay out; of no merchant."""

RULES = PAYMENT_RULES + AFTER_RULES + SUBSCRIPTION_RULES + COUPON_RULES + FIGURE_RULES + OPERATOR_RULES

BANK_RULES = (
    Rule("bank_money_known", "money at the simulated bank belongs to an attempt"),
    Rule("approved_money_at_bank", "an approved attempt has exactly its money at the simulated bank"),
    Rule("chargebacks_at_bank", "a payment has as much charged back as at the simulated bank"),
    Rule("given_up_without_money", "an attempt that was declined or given up has no money at the simulated bank"),
)
"""Compare the simulated bank's own record, the outside witness, with what Paydesk believes."""


@dataclass(frozen=True, slots=True)
class BrokenRow:
    """A row that breaks a rule. `id` is the simulated bank's key, and there is no merchant,
    if Paydesk has no row.

    A closing has its account and currency for an id.
    """

    table: str
    merchant_id: int | None
    id: int | str
    detail: str


@dataclass(frozen=True, slots=True)
class _Broken:
    """A row that breaks a rule, as the rule's statement names it."""

    table_name: str
    merchant_id: int | None
    id: int | str
    detail: str

    @property
    def difference(self) -> BrokenRow:
        """It as it is told."""
        return BrokenRow(self.table_name, self.merchant_id, self.id, self.detail)


@dataclass(frozen=True, slots=True)
class _BrokenAtBank(_Broken):
    """The same of a purchase at the simulated bank:
    its key, and what the bank had taken and held of it.
    """

    key: str | None
    net: Decimal | None
    held: Decimal | None


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What came of one rule: how many rows break it, and the first of them; of one about the
    simulated bank also how many purchases were `left_out`, which other cells made there.
    """

    rule: Rule
    found: int
    differences: tuple[BrokenRow, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class CheckScope:
    """What is checked: all merchants or one, at the merchant's time `now` (UTC),
    against the bank's record if given.

    `most` limits the differences kept per rule; `retention_months` says how long pingback attempts
    are kept.
    """

    now: datetime
    merchant_id: int | None = None
    record: Record | None = None
    most: int = 20
    retention_months: int = 13

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that apply, in order."""
        return RULES + BANK_RULES if self.record is not None else RULES

    def values(self, rule: Rule) -> list[object]:
        """The rule's parameters."""
        this_month = datetime(self.now.year, self.now.month, 1, tzinfo=UTC)
        known = {
            "merchant_id": self.merchant_id,
            "log_kept_since": this_month - relativedelta(months=self.retention_months),
            "most_attempts": MOST_ATTEMPTS,
            "resend_interval": RESEND_INTERVAL,
            "time_to_ship": TIME_TO_SHIP,
            "longest_pause": longest_pause(),
            "longest_dunning": LONGEST_WAIT,
            "most_tries": MOST_TRIES,
            "opened_before": self.now - ALERT_AFTER,
            "now": self.now,
        }
        return [known[name] for name in rule.parameters]


async def findings(database: Database, scope: CheckScope) -> AsyncIterator[RuleResult]:
    """Apply the scope's rules one after the other; each finding comes as soon as it is there."""
    for rule in RULES:
        async with (
            database.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            finding = await _apply(connection, rule, scope)
        yield finding
    if scope.record is not None:
        async with database.acquire() as connection, connection.transaction():
            left_out = await _bring_record(connection, scope.record)
            for rule in BANK_RULES:
                yield replace(await _apply(connection, rule, scope), left_out=left_out)


async def count_open(database: Database, merchant_id: int | None = None) -> int:
    """How many attempts have no outcome yet; that is no difference while the janitor looks
    after them.
    """
    return int(await queries.open_outcomes(database, merchant_id=merchant_id))


async def _apply(connection: ConfirmedConnection, rule: Rule, scope: CheckScope) -> RuleResult:
    """Count the rows that break a rule, but for those of who is on the way here; the first are
    kept.
    """
    found = 0
    kept: list[BrokenRow] = []
    arriving = set(await queries.arriving(connection))
    async for broken in _broken(connection, rule, scope):
        if broken.merchant_id in arriving:
            continue
        found += 1
        if len(kept) < scope.most:
            kept.append(broken.difference)
    return RuleResult(rule, found, tuple(kept))


async def _broken(connection: ConfirmedConnection, rule: Rule, scope: CheckScope) -> AsyncIterator[_Broken]:
    """Stream the rows that break a rule."""
    values, options = scope.values(rule), {"prefetch": _BATCH, "timeout": _PATIENCE}
    if scope.record is not None and rule in BANK_RULES:
        statement = getattr(bank_checks, rule.statement).sql
        async for row in connection.cursor(statement, *values, **options):
            at_bank = record_of(_BrokenAtBank, row)
            if not await asyncio.to_thread(_has_moved, scope.record, at_bank):
                yield at_bank
    else:
        rule_sql = getattr(
            _file_of(
                rule,
                (PAYMENT_RULES, payment_checks),
                (AFTER_RULES, after_checks),
                (SUBSCRIPTION_RULES, subscription_checks),
                (COUPON_RULES, coupon_checks),
                (FIGURE_RULES, figure_checks),
                (OPERATOR_RULES, proceeds_checks),
            ),
            rule.statement,
        ).sql
        async for one in connection.cursor(rule_sql, *values, **options):
            yield record_of(_Broken, one)


def _file_of(rule: Rule, *files: tuple[tuple[Rule, ...], Statements]) -> Statements:
    """The statements of the file that has a rule's."""
    return next(statements for rules, statements in files if rule in rules)


async def _bring_record(connection: ConfirmedConnection, record: Record) -> int:
    """Copy how each purchase stands at the bank into a temporary table, in batches; returns how
    many were left out, which are other deployments'.

    It is read before any attempt is: an intent is committed before its call, so no key of the
    record is unknown here.
    """
    await queries.make_bank_record(connection)
    purchases = _purchases(record)
    while batch := await asyncio.to_thread(lambda: list(islice(purchases, _BATCH))):
        await connection.copy_records_to_table("bank_record", records=batch, columns=_COLUMNS, timeout=_PATIENCE)
    await connection.execute("analyze bank_record", timeout=_PATIENCE)
    await connection.execute(queries.make_bank_purchase.sql, timeout=_PATIENCE)
    await connection.execute("analyze bank_purchase", timeout=_PATIENCE)
    return int(await queries.left_out(connection))


def _purchases(
    record: Record,
) -> Iterator[tuple[str, str, Decimal, Decimal, Decimal, int | None, str | None, str | None]]:
    """Key, currency, net, held and charged back money of every purchase of the bank, the line where
    a dispute of it last began or ended, and the deployment and merchant that its mark names.

    Each key is decided once.
    """
    for operation in record.operations():
        if operation.kind in _PURCHASES and operation.of_key is not None:
            lines = record.of_purchase(operation.of_key)
            standing = standing_of(lines)
            if standing is not None:
                money = (standing.net, standing.held, standing.charged_back)
                disputed_at = max((line.seq for line in lines if line.kind in _DISPUTES), default=None)
                mark = (record.mark(operation.of_key) or (None, None))[1]
                whose = (mark.deployment, mark.merchant) if mark is not None else (None, None)
                yield standing.key, standing.currency, *money, disputed_at, *whose


def _has_moved(record: Record, broken: _BrokenAtBank) -> bool:
    """Whether money has moved at the bank since its record was read:
    then nothing can be said of the purchase yet.
    """
    standing = standing_of(record.of_purchase(broken.key)) if broken.key is not None else None
    now = (standing.net, standing.held) if standing is not None else (0, 0)
    return now != (broken.net or 0, broken.held or 0)
