"""Which merchant is looked at, which side of it, and in what colours; and opening another shop."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.core.errors import PaydeskError
from paydesk.domain.accounts.roles import Permission
from paydesk.domain.accounts.sessions import look_at
from paydesk.domain.accounts.signing_in import open_another_shop
from paydesk.domain.business.switching import switch_test_mode
from paydesk.web.account.face import FACE
from paydesk.web.console.cookies import THEMES
from paydesk.web.console.guards import Access, Section, field_errors
from paydesk.web.console.return_paths import own_path
from paydesk.web.console.visit import Visit

section = Section(FACE)


@section.action("/account/theme", needs=Access.anybody)
async def choose_theme(visit: Visit) -> Response:
    """Show the pages light, dark, or as the system has it."""
    theme = visit.form.text("theme")
    response = visit.go(own_path(visit.form.text("back")))
    visit.cookies.choose_theme(response, theme if theme in THEMES else "auto")
    return response


@section.page("/account/shops/new", needs=Access.person)
async def show_new_shop(visit: Visit) -> Response:
    """The form to open another shop."""
    return visit.page("shop_new.html", errors={}, shop_name="")


@section.action("/account/shops/new", needs=Access.person)
async def new_shop(visit: Visit) -> Response:
    """Open another shop, in test mode, and look at it."""
    name = visit.form.text("shop_name", 300)
    try:
        merchant_id = await open_another_shop(visit.gate, visit.session, shop_name=name, now=visit.now)
    except PaydeskError as error:
        errors = field_errors(visit, error, "shop_name")
        return visit.page("shop_new.html", status=error.status, errors=errors, shop_name=name)
    return visit.go(f"/account/{merchant_id}", visit.texts.get("%(shop)s is open, in test mode.") % {"shop": name})


@section.page("/account/{merchant_id}", needs=Permission.view)
async def begin(visit: Visit) -> Response:
    """The first page of a merchant that this person may see; what there is to say is said there."""
    return visit.go(visit.first_page, visit.said.text if visit.said else "", visit.said.tone if visit.said else "")


@section.action("/account/{merchant_id}/mode", needs=Permission.view)
async def change_mode(visit: Visit) -> Response:
    """Look at the other side; who decides for all is asked whether customers are to pay
    on that side too.
    """
    live, back = visit.form.text("live") == "1", _back(visit)
    decides = visit.can(Permission.toggle_test_mode) and visit.session.went_live_at is not None
    if decides and visit.session.test_mode == live:
        return visit.page("mode.html", live=live, back=back)
    return await _look(visit, live, back)


@section.action("/account/{merchant_id}/mode/look", needs=Permission.view)
async def only_look(visit: Visit) -> Response:
    """Look at the other side, and change nothing else."""
    return await _look(visit, visit.form.text("live") == "1", _back(visit))


@section.action("/account/{merchant_id}/mode/take", needs=Permission.toggle_test_mode)
async def take_forms(visit: Visit) -> Response:
    """Decide for all whether forms at the live base count as test, and look at that side."""
    live = visit.form.text("live") == "1"
    await switch_test_mode(visit.gate, visit.session, on=not live, now=visit.now)
    return await _look(visit, live, _back(visit))


async def _look(visit: Visit, live: bool, back: str) -> Response:
    await look_at(visit.gate, visit.session, visit.merchant_id, live=live)
    if live and visit.session.went_live_at is None:
        said = visit.texts.get("These are live data. There are none until this merchant goes live.")
        return visit.go(back, said, "info")
    return visit.go(back)


def _back(visit: Visit) -> str:
    """The list that was looked at; a single payment or subscription of one side doesn't exist
    on the other.
    """
    path = own_path(visit.form.text("back"))
    head, _, last = path.rpartition("/")
    return head if last.isdigit() and head != "/account" else path
