"""What an operator sees of acquirers' fees and payouts: margins, payouts with their lines, and what
differs. Moves no money.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from paydesk.adapters.acquirers.balance import LineKind, PayoutState
from paydesk.core.errors import NotFound
from paydesk.core.paging import EARLIEST, LATEST
from paydesk.database.pool import Database
from paydesk.database.records import record_if_any, records_of
from paydesk.database.statements import load_statements
from paydesk.domain.proceeds.findings import ADVICE, FindingKind

queries = load_statements(__package__ or "", "for_operator.sql")

LAST_PLACE = (LATEST, "", "")
"""A place in the list of payouts before all of them."""


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """Something that differs, as it stands; `corrected` is what was posted for it since, as what
    the acquirer owes more, 0 if nothing was.
    """

    id: int
    acquirer: str
    kind: FindingKind
    subject: str
    payout: str | None
    merchant_id: int | None
    live: bool | None
    payment_id: int | None
    reason: str
    found_at: datetime
    accepted_at: datetime | None
    accepted_by: str
    accepted_why: str
    corrected: Decimal
    corrected_currency: str

    @property
    def advice(self) -> str:
        """What to do about it."""
        return ADVICE[self.kind]


@dataclass(frozen=True, slots=True)
class ListedPayout:
    """A payout to the operator's bank, of so many `lines`, its own included; `findings` of them
    differ.
    """

    acquirer: str
    reference: str
    at: datetime
    currency: str
    amount: Decimal
    state: PayoutState
    is_traced: bool
    lines_read: bool
    bank_reference: str
    lines: int
    findings: int

    @property
    def is_matched(self) -> bool:
        """Whether each of its lines agrees with our books."""
        return self.lines_read and not self.findings

    @property
    def place(self) -> tuple[datetime, str, str]:
        """Its place in the list."""
        return self.at, self.acquirer, self.reference


@dataclass(frozen=True, slots=True)
class ListedLine:
    """A line of a payout; `findings` are the kinds of what differs, None if nothing does."""

    id: str
    kind: LineKind
    type: str
    at: datetime
    currency: str
    amount: Decimal
    fee: Decimal
    source: str
    merchant_id: int | None
    live: bool | None
    payment_id: int | None
    is_ours: bool | None
    is_examined: bool
    findings: str | None

    @property
    def net(self) -> Decimal:
        """What it adds to the payout."""
        return self.amount - self.fee


@dataclass(frozen=True, slots=True)
class _Sum:
    acquirer: str
    month: date
    currency: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Margin:
    """What is left of our fees for payments at an account, in a month (UTC) and currency: `income`
    is what merchants paid us, `cost` what the acquirer kept.
    """

    acquirer: str
    month: date
    currency: str
    income: Decimal
    cost: Decimal

    @property
    def margin(self) -> Decimal:
        """What is left."""
        return self.income - self.cost


async def list_findings(
    database: Database, *, acquirer: str | None = None, payout: str | None = None, accepted: bool = False
) -> list[OpenFinding]:
    """What differs, the newest first, at most a thousand; those that an operator took as they are
    only if asked for.
    """
    rows = queries.findings(database, acquirer=acquirer, payout=payout, accepted=accepted)
    return await records_of(OpenFinding, rows)


async def list_bank_payouts(
    database: Database,
    *,
    acquirer: str | None = None,
    since: datetime = EARLIEST,
    until: datetime = LATEST,
    before: tuple[datetime, str, str] = LAST_PLACE,
    most: int = 50,
) -> list[ListedPayout]:
    """Payouts to the operator's bank, the newest first."""
    at, account, name = before
    place = {"before_at": at, "before_acquirer": account, "before_payout": name}
    rows = queries.payouts(database, acquirer=acquirer, since=since, until=until, **place, most=most)
    return await records_of(ListedPayout, rows)


async def find_bank_payout(database: Database, acquirer: str, reference: str) -> ListedPayout:
    """One payout. Raises: NotFound."""
    found = record_if_any(ListedPayout, await queries.payout(database, acquirer=acquirer, payout=reference))
    if found is None:
        raise NotFound(f'there is no payout "{reference[:80]}" of {acquirer[:40]}')
    return found


async def list_lines(database: Database, payout: ListedPayout, *, after: str = "", most: int = 200) -> list[ListedLine]:
    """What a payout is of, its own line left out."""
    rows = queries.lines(database, acquirer=payout.acquirer, payout=payout.reference, after=after, most=most)
    return await records_of(ListedLine, rows)


async def list_margins(database: Database, *, since: datetime, until: datetime) -> list[Margin]:
    """What is left of our fees, by account, month (UTC) and currency, the newest month first."""
    costs = await records_of(_Sum, queries.costs(database, since=since, until=until))
    incomes = await records_of(_Sum, queries.incomes(database, since=since, until=until))
    cost = {(one.month, one.acquirer, one.currency): one.amount for one in costs}
    income = {(one.month, one.acquirer, one.currency): one.amount for one in incomes}
    named = sorted({*cost, *income}, key=lambda key: (-key[0].toordinal(), key[1], key[2]))
    nothing = Decimal(0)
    return [
        Margin(acquirer, month, currency, income.get(key, nothing), cost.get(key, nothing))
        for key in named
        for month, acquirer, currency in [key]
    ]
