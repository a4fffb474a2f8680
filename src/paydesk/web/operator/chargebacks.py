"""Chargebacks over all merchants, to be read: the merchants give the evidence, the banks decide."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.domain.business.chargebacks_for_team import known_facts
from paydesk.domain.chargebacks.evidence_files import list_files
from paydesk.domain.chargebacks.states import ChargebackState, EvidenceState
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.test_clock import shop_time
from paydesk.domain.operations.chargebacks import list_waiting
from paydesk.domain.operations.chargebacks_for_operator import (
    MerchantsChargeback,
    find_chargeback_for_operator,
    list_all_chargebacks,
)
from paydesk.web.console.chargeback_words import reason_of
from paydesk.web.console.evidence_files import KINDS, download
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.list_parameters import ROWS, list_address, mark_of, page_asked
from paydesk.web.console.places import placed
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.operator.live_or_test import is_live, side_field, side_tabs
from paydesk.web.texts import mark

section = Section(FACE)
_CHARGEBACKS = "/operator/chargebacks"
STATES = {
    ChargebackState.OPEN: (mark("Open"), "yellow"),
    ChargebackState.WON: (mark("Won"), "green"),
    ChargebackState.LOST: (mark("Lost"), "red"),
    ChargebackState.INQUIRY: (mark("Inquiry"), "yellow"),
    ChargebackState.DROPPED: (mark("Dropped"), "secondary"),
}
"""What a state is called, and its colour."""

HANDED_OVER = {
    EvidenceState.SENDING: (mark("Being handed to the bank"), "yellow"),
    EvidenceState.SENT: (mark("The bank has it"), "green"),
    EvidenceState.REFUSED: (mark("The bank did not take it"), "red"),
    EvidenceState.UNKNOWN: (mark("Nobody knows whether the bank has it"), "yellow"),
}
"""What became of the merchant's evidence, and its colour."""

_PARTLY_WON = (mark("Partly won"), "yellow")


def badge_of(one: MerchantsChargeback) -> tuple[str, str]:
    """What a chargeback's state is called, and its colour;
    one that was lost may have given a part back.
    """
    partly = one.state is ChargebackState.LOST and 0 < one.returned < one.taken
    return _PARTLY_WON if partly else STATES[one.state]


@section.page(_CHARGEBACKS, needs=Access.operator)
async def show_chargebacks(visit: Visit) -> Response:
    """All merchants' chargebacks, newest first, of one state if asked."""
    asked, side = visit.form.text("state", 10), side_field(visit)
    state = ChargebackState(asked) if asked in set(ChargebackState) else None
    found = await list_all_chargebacks(visit.database, page_asked(visit), live=is_live(visit), state=state)
    shown = found[:ROWS]
    kept = {"state": state or "", **side}
    before = mark_of(shown[-1].opened_at, shown[-1].id) if len(found) > ROWS else ""
    views = [(list_address(_CHARGEBACKS, side), visit.texts.get("All"))]
    for one, (name, _) in STATES.items():
        views.append((list_address(_CHARGEBACKS, {"state": one, **side}), visit.texts.get(name)))
    other = side_tabs(visit, _CHARGEBACKS)[1 if is_live(visit) else 0]
    return visit.page(
        "chargebacks.html",
        found=shown,
        waiting=await list_waiting(visit.database, most=ROWS),
        badge_of=badge_of,
        reason_of=reason_of,
        views=views,
        current=list_address(_CHARGEBACKS, kept),
        other=other,
        newest=list_address(_CHARGEBACKS, kept) if visit.form.text("before") else "",
        older=list_address(_CHARGEBACKS, {**kept, "before": before}) if before else "",
    )


@section.page(f"{_CHARGEBACKS}/{{merchant_id}}/{{chargeback_id}}", needs=Access.operator)
async def show_chargeback(visit: Visit) -> Response:
    """One chargeback, with what its merchant sees of the payment, and what the bank was told."""
    one = await find_chargeback_for_operator(visit.database, visit.number("merchant_id"), visit.number("chargeback_id"))
    acquirer = visit.services.desk.acquirers.get(one.acquirer)
    shop = Shop(one.merchant_id, one.live)
    shop_now = await shop_time(visit.database, shop, real_now=visit.now)
    return visit.page(
        "chargeback.html",
        one=one,
        facts=await known_facts(visit.database, shop, one.payment_id),
        placed=placed,
        payment_url="",
        reason=reason_of(one.reason),
        state=badge_of(one),
        shop_now=shop_now,
        # The bank goes by real time; beside a test clock its day is one of the shop's own.
        answer_until=one.respond_by and one.respond_by + (shop_now - visit.now),
        elsewhere=visit.texts.get(said) if (said := acquirer and acquirer.capabilities.answered_at) else "",
        handed_over=HANDED_OVER.get(one.evidence_state),
        files=await list_files(visit.database, shop, one.id),
        files_url=f"{_CHARGEBACKS}/{one.merchant_id}/{one.id}/files",
        kinds=KINDS,
        answered=bool(one.evidence),
        removable=False,
    )


@section.page(f"{_CHARGEBACKS}/{{merchant_id}}/{{chargeback_id}}/files/{{file_id}}", needs=Access.operator)
async def download_file(visit: Visit) -> Response:
    """A file of the merchant's answer, to be saved."""
    one = await find_chargeback_for_operator(visit.database, visit.number("merchant_id"), visit.number("chargeback_id"))
    return await download(visit, Shop(one.merchant_id, one.live), one.id, visit.number("file_id"))
