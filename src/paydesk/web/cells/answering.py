"""Answers what other cells ask in their own name; to everybody else there is no such page."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from paydesk.core.clock import utc_now
from paydesk.domain.chargebacks import waiting_disputes
from paydesk.domain.operations.cell_figures import figures_of_this_cell
from paydesk.domain.operations.searching_cells import has_id
from paydesk.domain.payments import waiting_refunds
from paydesk.web.cells import disputes, refunds
from paydesk.web.cells.asking import QUESTION, who_asks
from paydesk.web.cells.holding import HOLDING, AskedId, Holds
from paydesk.web.cells.knowing import KnownThere
from paydesk.web.cells.passing_on import BetweenCells
from paydesk.web.cells.shops import SHOPS, AskedShops, shops_of
from paydesk.web.cells.watching import FIGURES
from paydesk.web.visits import read_body

_LARGEST: Final = 4096

T = TypeVar("T")


async def _figures(request: Request) -> Response:
    between: BetweenCells = request.state.cells
    await _asked(request, between, dict)
    return _answer(await figures_of_this_cell(between.gate.database, now=utc_now()))


async def _shops(request: Request) -> Response:
    between: BetweenCells = request.state.cells
    asked = await _asked(request, between, AskedShops)
    return _answer(await shops_of(between.gate, asked))


async def _holding(request: Request) -> Response:
    between: BetweenCells = request.state.cells
    asked = await _asked(request, between, AskedId)
    return _answer(Holds(await has_id(between.gate.database, asked.number)))


async def _refunds(request: Request) -> Response:
    between: BetweenCells = request.state.cells
    asked = await _asked(request, between, refunds.AskedRefunds, largest=refunds.LARGEST_QUESTION)
    return _answer(KnownThere(await waiting_refunds.known_here(between.gate.database, asked.keys)))


async def _disputes(request: Request) -> Response:
    between: BetweenCells = request.state.cells
    asked = await _asked(request, between, disputes.AskedDisputes, largest=disputes.LARGEST_QUESTION)
    return _answer(KnownThere(await waiting_disputes.known_here(between.gate.database, asked.disputes)))


async def _asked(request: Request, between: BetweenCells, kind: type[T], *, largest: int = _LARGEST) -> T:
    """What another cell asks. Raises: HTTPException if none does."""
    given = request.headers.getlist(QUESTION)
    if not between.has_others or len(given) != 1:
        raise HTTPException(404)
    body, vault = await read_body(request, largest), between.gate.vault
    if who_asks(vault, request.url.path, body, given[0], own=between.own, now=utc_now()) is None:
        raise HTTPException(404)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError:
        raise HTTPException(400, "this question is of another version") from None


def _answer(found: object) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(msgspec.json.encode(found), media_type="application/json", headers=headers)


routes: list[Route] = [
    Route(FIGURES, _figures, methods=["POST"]),
    Route(SHOPS, _shops, methods=["POST"]),
    Route(HOLDING, _holding, methods=["POST"]),
    Route(refunds.REFUNDS, _refunds, methods=["POST"]),
    Route(disputes.DISPUTES, _disputes, methods=["POST"]),
]
