"""One log-in for all cells: somebody's shops in others, the way there, and who comes from there."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.responses import Response

from paydesk.core.errors import Forbidden, NotFound, PaydeskError
from paydesk.core.wording import worded
from paydesk.domain.accounts.handing_over import HandOver, arrive, hand_over, read_hand_over
from paydesk.domain.accounts.sessions import end_session
from paydesk.domain.cells.directory import all_other_cells, cell_by_number
from paydesk.web.account.face import FACE
from paydesk.web.account.getting_in import begin
from paydesk.web.cells.passing_on import BetweenCells
from paydesk.web.cells.shops import shops_elsewhere
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.problems import error_words
from paydesk.web.console.return_paths import HOME, own_path
from paydesk.web.console.visit import Visit
from paydesk.web.hosts import Host, parse_host
from paydesk.web.page_headers import page_headers
from paydesk.web.same_site import split_sent

section = Section(FACE)

ARRIVE = "/account/arrive"
_LONGEST = 8192


@section.page("/account/cells", needs=Access.person)
async def show_shops(visit: Visit) -> Response:
    """The shops that the person has in other cells, as these say."""
    between = _between(visit)
    found = await shops_elsewhere(
        between.watch.asking, visit.gate, visit.elsewhere, visit.person, own=between.own, now=visit.now
    )
    hosts = {one.cell.number: urlsplit(one.cell.address).netloc for one in found}
    return visit.page("elsewhere.html", elsewhere=found, hosts=hosts)


@section.action("/account/cells/go", needs=Access.person)
async def go(visit: Visit) -> Response:
    """Hand the person over: a page whose form takes them there, by itself where scripts run."""
    between = _between(visit)
    number = visit.form.number("cell")
    cell = None if number is None else await cell_by_number(visit.database, number)
    if cell is None:
        raise NotFound("there is no such cell")
    goal = own_path(visit.form.text("next"))
    token = await hand_over(visit.gate, visit.session, source=between.own, target=cell.number, goal=goal, now=visit.now)
    there = urlsplit(cell.address)
    action = cell.address.rstrip("/") + ARRIVE
    response = visit.page("going.html", host=there.netloc, token=token, action=action)
    # Else browsers keep from the other cell which page its form came from.
    response.headers.update({**page_headers(f"{there.scheme}://{there.netloc}"), "Referrer-Policy": "strict-origin"})
    return response


@section.action(ARRIVE, needs=Access.other_cell)
async def come(visit: Visit) -> Response:
    """Take somebody in whom another cell has handed over, from a page of a cell and no other site:
    nobody else may log a browser in.
    """
    try:
        between = _between(visit)
        # What is no token is not looked up: anybody may send anything.
        said = read_hand_over(visit.gate.vault, visit.form.raw("token")[:_LONGEST], here=between.own, now=visit.now)
        await _require_page_of_a_cell(visit, between)
        logged_in = await arrive(visit.gate, said, visit.client, now=visit.now)
    except PaydeskError as error:
        return visit.page("login.html", status=error.status, error=error_words(visit.texts, error), email="", goal=HOME)
    if visit.entered:
        await end_session(visit.gate, visit.entered, visit.entered.id, now=visit.now)
    return await begin(visit, logged_in, own_path(said.goal), _welcome(visit, said))


def _welcome(visit: Visit, said: HandOver) -> str:
    """Who is logged in now: whoever expects to be somebody else sees it."""
    return visit.texts.get("You are logged in here as %(email)s.") % {"email": said.email}


def _between(visit: Visit) -> BetweenCells:
    """What there is of other cells. Raises: NotFound if there are none."""
    if visit.between is None or not visit.between.has_others:
        raise NotFound("this deployment has no other cells")
    return visit.between


async def _require_page_of_a_cell(visit: Visit, between: BetweenCells) -> None:
    """Make sure that a browser says that the form came from a cell's page. Raises: Forbidden."""
    sent = visit.request.headers.getlist("origin")
    origin = _origin(sent[0]) if len(sent) == 1 else None
    known = {_origin(one.address) for one in await all_other_cells(visit.database)}
    known |= {(split_sent(visit.services.address).scheme, Host(name)) for name in between.names}
    if origin is None or origin not in known:
        raise Forbidden(worded("this form was sent by another site; open the page here and send it again"))


def _origin(address: str) -> tuple[str, Host] | None:
    """Scheme and host of an address, as far as it is one."""
    parts = split_sent(address)
    host = parse_host(parts.netloc)
    return None if host is None else (parts.scheme, host)
