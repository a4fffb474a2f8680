"""Where an operator begins."""

from __future__ import annotations

from starlette.responses import Response

from paydesk.web.console.guards import Access, Section
from paydesk.web.console.shell import first_page
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE

section = Section(FACE)


@section.page("/operator", needs=Access.operator)
async def home(visit: Visit) -> Response:
    """The first page of the console."""
    return visit.go(first_page(visit))
