"""What acquirers keep of payments and pay out to the operator's bank: margins, payouts with their
lines, and what differs.
"""

from __future__ import annotations

from functools import partial

from dateutil.relativedelta import relativedelta
from starlette.responses import Response

from paydesk.adapters.acquirers.balance import PayoutState
from paydesk.core.errors import Malformed, NotFound
from paydesk.core.wording import worded
from paydesk.domain.acquirers.accounts import list_accounts
from paydesk.domain.operations.proceeds import LONGEST_NOTE, accept_finding, list_fees
from paydesk.domain.proceeds.for_operator import (
    ListedLine,
    ListedPayout,
    find_bank_payout,
    list_bank_payouts,
    list_findings,
    list_lines,
    list_margins,
)
from paydesk.web.console.amounts import exact
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import ROWS, days_asked, list_address, page_asked
from paydesk.web.console.problems import error_words
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.operator.kind_names import FINDINGS
from paydesk.web.texts import mark

section = Section(FACE)
_PROCEEDS = "/operator/proceeds"
_PAYOUT = f"{_PROCEEDS}/payout"
_MONTHS = 3
"""Of how many months margins are shown, this one included."""

STATES = {
    PayoutState.ON_ITS_WAY: (mark("On its way"), "yellow"),
    PayoutState.ARRIVED: (mark("Arrived"), "green"),
    PayoutState.FAILED: (mark("Failed"), "red"),
}
"""What a payout's state is called, and its colour."""
_MATCHED, _DIFFERS, _OPEN = (mark("Matched"), "green"), (mark("Differs"), "red"), (mark("Not read yet"), "secondary")
_UNTRACED = mark("Made by hand"), "secondary"
_UNCOMPARED = mark("Not compared yet"), "secondary"
_FOREIGN = mark("Other software"), "secondary"


@section.page(_PROCEEDS, needs=Access.operator)
async def show_proceeds(visit: Visit) -> Response:
    """Margins of the last months, what differs, and the payouts, newest first."""
    return await _proceeds(visit)


async def _proceeds(visit: Visit, error: str = "", status: int = 200) -> Response:
    month = visit.now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    since = month - relativedelta(months=_MONTHS - 1)
    page = page_asked(visit)
    findings, accounts = await list_findings(visit.database), await list_accounts(visit.database)
    for_tests = {visit.services.desk.test_acquirer, *(one.name for one in accounts if not one.live)}
    return visit.page(
        "proceeds.html",
        status=status,
        margins=await list_margins(visit.database, since=since, until=visit.now),
        for_tests=for_tests,
        findings=findings[:ROWS],
        unseen=max(0, len(findings) - ROWS),
        payouts=await list_bank_payouts(visit.database, since=page.since, until=page.until, most=ROWS),
        asked=days_asked(visit),
        contracts=await list_fees(visit.database),
        state_of=lambda one: STATES[one.state],
        match_of=_match_of,
        name_of=lambda kind: visit.texts.get(FINDINGS[kind]),
        address_of=_address_of,
        payment_of=_payment_of,
        exact=partial(exact, visit),
        error=error,
        longest_note=LONGEST_NOTE,
        action=f"{_PROCEEDS}/accept",
    )


@section.action(f"{_PROCEEDS}/accept", needs=Access.operator)
async def accept(visit: Visit) -> Response:
    """Take a finding as it is, with the reason."""
    finding_id, why = visit.form.number("id"), visit.form.text("note", LONGEST_NOTE + 1)
    if finding_id is None:
        raise Malformed(worded("the form is incomplete; open its page again"))
    try:
        await accept_finding(visit.database, visit.session.operator, finding_id, why, now=visit.now)
    except NotFound:
        return visit.go(_PROCEEDS, visit.texts.get("This is settled by now."), "info")
    except Malformed as error:
        return await _proceeds(visit, error_words(visit.texts, error), error.status)
    return visit.go(_PROCEEDS, visit.texts.get("Accepted; it stays quiet while it says the same."))


@section.page(_PAYOUT, needs=Access.operator)
async def show_payout(visit: Visit) -> Response:
    """One payout with its lines."""
    acquirer, reference = visit.form.text("acquirer", 60), visit.form.text("payout", 250)
    payout = await find_bank_payout(visit.database, acquirer, reference)
    lines = await list_lines(visit.database, payout, after=visit.form.text("after", 250), most=ROWS + 1)
    shown = lines[:ROWS]
    return visit.page(
        "proceeds_payout.html",
        payout=payout,
        lines=shown,
        findings=await list_findings(visit.database, acquirer=acquirer, payout=reference),
        state=STATES[payout.state],
        match=_match_of(payout),
        line_state=_line_state,
        name_of=lambda kind: visit.texts.get(FINDINGS[kind]),
        payment_of=_payment_of,
        exact=partial(exact, visit),
        back=_PROCEEDS,
        first=_address_of(payout) if visit.form.text("after", 250) else "",
        further=_address_of(payout, shown[-1].id) if len(lines) > ROWS else "",
    )


def _match_of(payout: ListedPayout) -> tuple[str, str]:
    """How a payout's lines agree with our books, and the colour of that."""
    if payout.findings:
        return _DIFFERS
    if not payout.is_traced:
        return _UNTRACED
    return _MATCHED if payout.is_matched else _OPEN


def _line_state(line: ListedLine) -> tuple[str, str]:
    if line.findings:
        return _DIFFERS
    if line.is_ours is False:
        return _FOREIGN
    return _MATCHED if line.is_examined else _UNCOMPARED


def _address_of(payout: ListedPayout, after: str = "") -> str:
    named = {"acquirer": payout.acquirer, "payout": payout.reference}
    return list_address(_PAYOUT, named | ({"after": after} if after else {}))


def _payment_of(one: ListedLine) -> str:
    """How the payment of a line, or finding, is called; empty without one."""
    return f"{one.payment_id}" if one.payment_id is not None else ""
