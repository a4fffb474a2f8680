"""Balance: what the merchant has, when the reserve is released, payouts,
and the statement that explains it all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import groupby

from babel.dates import format_time
from starlette.responses import Response

from paydesk.core.money import plain_number
from paydesk.core.paging import Page
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.ledger.balances import (
    Balance,
    PostingKind,
    Release,
    balances,
    list_postings,
    names_on_lines,
    payouts_wait_until,
    reserve_calendar,
    statement,
)
from paydesk.domain.ledger.payouts import list_payouts
from paydesk.web.account.face import FACE
from paydesk.web.console.amounts import exact
from paydesk.web.console.day_names import named
from paydesk.web.console.exports import begin_export, csv_file
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import ROWS, days_asked, list_address, mark_of, page_asked
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

section = Section(FACE)
_BALANCE = "/account/{merchant_id}/balance"
_NEWEST_PAYOUTS = 10
_COLUMNS = (
    "id", "at", "kind", "payment_id", "payout_id", "currency", "gross", "fees", "pending", "available", "reserve"
)  # fmt: skip

KINDS = {
    PostingKind.CAPTURE: mark("Payment"),
    PostingKind.SETTLEMENT: mark("Became available"),
    PostingKind.RESERVE_RELEASE: mark("Reserve released"),
    PostingKind.REFUND: mark("Refund"),
    PostingKind.REFUND_FAILURE: mark("Refund came back"),
    PostingKind.CHARGEBACK: mark("Chargeback"),
    PostingKind.CHARGEBACK_FEE: mark("Chargeback fee"),
    PostingKind.CHARGEBACK_REVERSAL: mark("Chargeback won"),
    PostingKind.PAYOUT: mark("Payout"),
}
"""What a line of the statement is for, in words."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a balance, and where it stands in the bar of its positive parts, in percent."""

    name: str
    hint: str
    tone: str
    amount: Decimal
    begins: Decimal
    width: Decimal


@dataclass(frozen=True, slots=True)
class MonthlyRelease:
    """How much of the reserve is released in a month, by currency."""

    month: date
    amounts: Mapping[str, Decimal]


@section.page(_BALANCE, needs=Permission.payouts_view)
async def show_balance(visit: Visit) -> Response:
    """What may be paid out next, the balances as they are, and a page of the statement by days,
    newest first.
    """
    asked = days_asked(visit)
    found = await list_postings(visit.database, visit.shop, page_asked(visit))
    shown, path = found[:ROWS], visit.url("balance")
    before = mark_of(shown[-1].at, shown[-1].id) if len(found) > ROWS else ""
    held = await balances(visit.database, visit.shop)
    return visit.page(
        "balance.html",
        balances=held,
        ready=[one for one in held if one.available > 0],
        waits_until=await payouts_wait_until(visit.database, visit.merchant_id, now=visit.now)
        if visit.shop.live
        else None,
        parts=parts_of,
        releases=by_month(await reserve_calendar(visit.database, visit.shop)),
        payouts=await list_payouts(visit.database, visit.shop, Page(_NEWEST_PAYOUTS)),
        days=[(day, list(lines)) for day, lines in groupby(shown, lambda one: one.at.astimezone(visit.zone).date())],
        names=await names_on_lines(visit.database, visit.shop, shown),
        kinds=KINDS,
        exact=partial(exact, visit),
        month=partial(named, visit, by_month=True),
        clock=lambda at: format_time(at, "short", tzinfo=visit.zone, locale=visit.texts.locale),
        asked=asked,
        filtered=any(asked.values()),
        newest=list_address(path, asked) if visit.form.text("before") else "",
        older=list_address(path, {**asked, "before": before}) if before else "",
        export=list_address(visit.url("balance/statement"), asked),
    )


def parts_of(balance: Balance) -> list[Part]:
    """The parts of a balance one after the other, as shares of what is not negative."""
    amounts = (
        (mark("Available"), mark("To be paid out"), "available", balance.available),
        (mark("Pending"), mark("Captured, not settled yet"), "pending", balance.pending),
        (mark("Reserve"), mark("Held for a time, then available"), "reserve", balance.reserve),
    )
    whole = sum((max(amount, Decimal(0)) for *_, amount in amounts), Decimal(0))
    parts, begins = [], Decimal(0)
    for name, hint, tone, amount in amounts:
        width = round(max(amount, Decimal(0)) * 100 / whole, 2) if whole else Decimal(0)
        parts.append(Part(name, hint, tone, amount, begins, width))
        begins += width
    return parts


def by_month(releases: Sequence[Release]) -> list[MonthlyRelease]:
    """A calendar of days as one of months, each with its currencies by name."""
    sums: dict[date, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for one in releases:
        sums[one.day.replace(day=1)][one.currency] += one.amount
    return [MonthlyRelease(month, dict(sorted(amounts.items()))) for month, amounts in sorted(sums.items())]


@section.page(f"{_BALANCE}/statement", needs=Permission.payouts_view)
async def export_statement(visit: Visit) -> Response:
    """The statement of the days asked for as a file, oldest first;
    the audit log keeps who took it.
    """
    share = await begin_export(visit)
    chosen = {name: day for name, day in days_asked(visit).items() if day}
    async with visit.database.acquire() as connection:
        await record(
            connection,
            visit.session.actor,
            Action.exported,
            now=visit.now,
            shop=visit.shop,
            subject="statement",
            details=chosen,
        )
    name = f"statement-{visit.merchant_id}{'' if visit.shop.live else '-test'}.csv"
    return csv_file(share, name, _COLUMNS, _cells(visit))


async def _cells(visit: Visit) -> AsyncIterator[Iterable[object]]:
    """The lines of the file; those of any period add up to the difference of the balances
    at its two ends.
    """
    period = page_asked(visit)
    async for one in statement(visit.database, visit.shop, since=period.since, until=period.until):
        amounts = (one.gross, one.fees, one.pending, one.available, one.reserve)
        facts = (one.id, one.at, one.kind, one.payment_id, one.payout_id, one.currency)
        yield (*facts, *(plain_number(amount) for amount in amounts))
