"""Giving another card, on our page or on an acquirer's: for the subscription's next charge, or to
pay at once what is open.
"""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from paydesk.core.errors import Conflict
from paydesk.domain.billing.card_changes import CardChange, Result
from paydesk.domain.billing.replacing_cards import NewCard, acquirer_for_cards, replace_card, settle_challenge
from paydesk.domain.billing.replacing_on_pages import PortalCaller, go_to_page
from paydesk.domain.payments.receiving import read_form
from paydesk.domain.payments.results import ConfirmWithBank, Refused
from paydesk.domain.payments.states import PAGE_LEFT
from paydesk.domain.subscriptions.states import OPEN_CHANGES, CardChangeState
from paydesk.web.card_fields import read_card, text_of
from paydesk.web.portal import pages
from paydesk.web.portal.visiting import LARGEST_BODY, PortalVisit, open_visit
from paydesk.web.portal.wording import CHARGE_DECLINED
from paydesk.web.visits import client_address, read_form_body


async def show_card(visit: PortalVisit) -> Response:
    """The form for another card, or the way to where a change stands."""
    if not visit.holding.subscription.running:
        return visit.go(visit.path)
    if _change_state(visit) is CardChangeState.PROCESSING:
        return visit.go(visit.result_path)
    if not visit.has_page:
        await acquirer_for_cards(visit.services.desk, visit.holding.subscription)
    return visit.card_form(notice=visit.left_open if _change_state(visit) is CardChangeState.CHALLENGED else None)


async def submit_card(visit: PortalVisit) -> Response:
    """Check the new card with the bank and put it in the old one's place. Moves no money."""
    form = read_form(await read_form_body(visit.request, LARGEST_BODY))
    held, services = visit.holding, visit.services
    if not held.subscription.running:
        return visit.go(visit.path)
    if _change_state(visit) is CardChangeState.PROCESSING:
        return visit.go(visit.result_path)
    errors: dict[str, str] = {}
    card = read_card(form, errors, held.now)
    typed = (text_of(form, "holder"), text_of(form, "expiry")[:9])
    if errors:
        return visit.card_form(400, errors=errors, typed=typed)
    new = NewCard(
        card=card,
        client_address=client_address(visit.request.scope, services.trusted_proxies),
        return_url=services.public_url(visit.request, visit.result_route),
    )
    try:
        result = await replace_card(services.desk, held.subscription, held.change, new, now=services.now())
    except Conflict:
        return visit.go(visit.result_path)
    return _follow(visit, result, typed)


async def go_on(visit: PortalVisit) -> Response:
    """Lead the customer to the acquirer's page, to choose what is charged. Moves no money."""
    held, services = visit.holding, visit.services
    if not held.subscription.running or not visit.has_page:
        return visit.go(visit.path)
    if _change_state(visit) is CardChangeState.PROCESSING:
        return visit.go(visit.result_path)
    address = client_address(visit.request.scope, services.trusted_proxies)
    caller = PortalCaller(address, visit.texts.mail_language, visit.period)
    where = {"shop_name": held.merchant_name, "base": services.public_url(visit.request, "")}
    try:
        result = await go_to_page(services.desk, held.subscription, held.change, caller, **where, now=services.now())
    except Conflict:
        return visit.go(visit.result_path)
    if isinstance(result, Refused) and result.reason != "too_many_attempts":
        result = Refused("page_failed")
    return _follow(visit, result)


async def back_to_card(visit: PortalVisit) -> Response:
    """Going on is a POST: a browser that reloads this address is sent back to the form."""
    return visit.go(visit.card_path)


def _follow(visit: PortalVisit, result: Result, typed: tuple[str, str] = ("", "")) -> Response:
    """Where a result leads: the bank, the form again, or the page that says how it stands."""
    match result:
        case Refused("too_many_attempts"):
            return pages.stopped_page(visit.view)
        case Refused(reason):
            return visit.card_form(402, notice=reason, typed=typed)
        case ConfirmWithBank(url):
            return visit.go(url)
        case _:
            return visit.go(visit.result_path)


async def show_card_result(visit: PortalVisit) -> Response:
    """What has come of the last change of the card. The bank sends customers here."""
    change = visit.holding.change
    if change is None:
        return visit.go(visit.path)
    result: Result | None = None
    if change.state is CardChangeState.CHALLENGED:
        result = await settle_challenge(visit.services.desk, change, now=visit.services.now())
        # What it was for may have ended meanwhile, or be paid: then no card is asked for.
        visit = await open_visit(visit.request)
        change = visit.holding.change or change
    if visit.settled:
        return visit.go(visit.result_path)
    if not visit.holding.subscription.running:
        return visit.go(visit.path)
    if isinstance(result, ConfirmWithBank):
        return visit.card_form(notice=visit.left_open)
    if change.state in OPEN_CHANGES:
        # A page that the customer has come back from must not be led to again.
        waits = change.page is not None and change.state is CardChangeState.CHALLENGED
        query = visit.request.url.query
        return pages.checking_page(visit.view, waits="?waits" if waits else "", query=query)
    if change.state is CardChangeState.APPROVED:
        return visit.card_form(402, notice=CHARGE_DECLINED) if visit.pays else pages.card_replaced_page(visit.view)
    return visit.card_form(402, notice=_told(change, change.decline_reason))


def _told(change: CardChange, reason: str) -> str:
    """Why a change came to nothing, as its customer is told: on a page of the acquirer's no card
    need have been declined.
    """
    return reason if change.page is None or reason == PAGE_LEFT else "page_failed"


async def show_card_status(visit: PortalVisit) -> Response:
    """For the waiting page: whether there is a result, and where it is."""
    change = visit.holding.change
    waits = "waits" in visit.request.query_params and _change_state(visit) is CardChangeState.CHALLENGED
    done = change is None or not (waits or change.state is CardChangeState.PROCESSING)
    url = visit.result_path
    if change is not None and change.state is CardChangeState.CHALLENGED and not visit.pays:
        # It may have been begun in the portal, and would lead whoever may only pay back to there.
        url = change.challenge_url
    body = {"state": "done", "url": url} if done else {"state": "processing"}
    return JSONResponse(body, headers={"Cache-Control": "no-store"})


def _change_state(visit: PortalVisit) -> CardChangeState | None:
    return visit.holding.change.state if visit.holding.change else None
