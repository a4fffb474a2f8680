"""Balance: what the merchant has, when the reserve is released, payouts,
and the statement that explains it all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import partial

from starlette.responses import Response

from paydesk.core.money import plain_number
from paydesk.core.paging import Page
from paydesk.domain.accounts.audit import Action, record
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.ledger.balances import PostingKind, balances, list_postings, reserve_calendar, statement
from paydesk.domain.ledger.payouts import list_payouts
from paydesk.web.account.face import FACE
from paydesk.web.console.amounts import exact
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


@section.page(_BALANCE, needs=Permission.payouts_view)
async def show_balance(visit: Visit) -> Response:
    """The balances as they are, and a page of the statement, newest first."""
    asked = days_asked(visit)
    found = await list_postings(visit.database, visit.shop, page_asked(visit))
    shown, path = found[:ROWS], visit.url("balance")
    before = mark_of(shown[-1].at, shown[-1].id) if len(found) > ROWS else ""
    return visit.page(
        "balance.html",
        balances=await balances(visit.database, visit.shop),
        releases=await reserve_calendar(visit.database, visit.shop),
        payouts=await list_payouts(visit.database, visit.shop, Page(_NEWEST_PAYOUTS)),
        postings=shown,
        kinds=KINDS,
        exact=partial(exact, visit),
        asked=asked,
        filtered=any(asked.values()),
        newest=list_address(path, asked) if visit.form.text("before") else "",
        older=list_address(path, {**asked, "before": before}) if before else "",
        export=list_address(visit.url("balance/statement"), asked),
    )


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
