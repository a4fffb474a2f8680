"""Cards that customers have saved at the shop: kind and last four digits, and what they allow."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.domain.accounts.roles import Permission
from paydesk.domain.billing.charging_saved import LIMITED
from paydesk.domain.shoppers.for_api import list_instruments
from paydesk.web.account.face import FACE
from paydesk.web.console.guards import Section
from paydesk.web.console.list_parameters import ROWS, list_address, mark_of, page_asked, searched
from paydesk.web.console.payment_words import instrument_words
from paydesk.web.console.visit import Visit

section = Section(FACE)


@section.page("/account/{merchant_id}/saved-cards", needs=Permission.view)
async def show_saved_cards(visit: Visit) -> Response:
    """A page of the list, newest first: of all customers, or of the one with an address."""
    email = searched(visit)
    found = await list_instruments(visit.database, visit.shop, email or None, page_asked(visit))
    shown, path = found[:ROWS], visit.url("saved-cards")
    last = shown[-1] if len(found) > ROWS else None
    return visit.page(
        "saved_cards.html",
        cards=shown,
        email=email,
        words=instrument_words,
        limit=visit.money,
        within=LIMITED,
        newest=list_address(path, {"q": email}) if visit.form.text("before") else "",
        older=list_address(path, {"q": email, "before": mark_of(last.created_at, last.id)}) if last else "",
    )
