"""All cells of the deployment: what waits in each, how it is kept, and the way to its console."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from babel.units import format_unit
from starlette.responses import Response

from paydesk.domain.cells.directory import Cell, all_other_cells
from paydesk.domain.cells.listing import ListedCell, list_cells
from paydesk.domain.operations.cell_figures import CellFigures, Copy, figures_of_this_cell
from paydesk.web.cells.asking import PATIENCE
from paydesk.web.cells.watching import Heard
from paydesk.web.console.guards import Access, Section
from paydesk.web.console.visit import Visit
from paydesk.web.operator.face import FACE
from paydesk.web.operator.merchant_words import count_words, upto
from paydesk.web.texts import mark

section = Section(FACE)

CELLS = "/operator/cells"
_KIBIBYTE = 1024
_MARGIN = 0.2
"""Seconds beyond those that a cell gets, so that who is silent is known to be."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell on the page; of its `own` nothing was asked over the network. `copy` is how its copy
    of the directory stands, as home says.
    """

    cell: ListedCell
    heard: Heard
    own: bool
    home: bool
    copy: Copy | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure of a cell, as it is written; `high` if it is worth a look."""

    label: str
    words: str
    high: bool = False


@section.page(CELLS, needs=Access.operator)
async def show_cells(visit: Visit) -> Response:
    """Every cell, those that are silent too."""
    cells = await _shown(visit)
    return visit.part(
        "cells.html",
        "news",
        cells=cells,
        count=partial(count_words, visit),
        facts=partial(_facts, visit),
        behind=partial(_behind, visit),
    )


async def heard_of_others(visit: Visit, *, patience: float) -> list[Heard]:
    """What other cells say of themselves, after at most so many seconds; nothing where there
    are none.
    """
    if visit.between is None or not visit.between.has_others:
        return []
    return await _heard(visit, await all_other_cells(visit.database), patience)


def cell_names(visit: Visit, heard: Sequence[Heard]) -> str:
    """What cells are called, in a row."""
    names = [visit.texts.get(mark("Cell %(number)s")) % {"number": one.cell.number} for one in heard]
    return ", ".join(names)


async def _heard(visit: Visit, cells: Sequence[Cell], patience: float) -> list[Heard]:
    between = visit.between
    assert between is not None, "whoever asks others knows of them"
    return await between.watch.look(cells, own=between.own, now=visit.now, patience=patience)


async def _shown(visit: Visit) -> list[Shown]:
    """All cells by number, this one's own figures among them; none where it stands alone."""
    if visit.between is None or not visit.between.has_others:
        return []
    listed = await list_cells(visit.database)
    own, standing = visit.between.own, visit.between.finder.standing
    cells = [Cell(one.number, one.address, one.inside) for one in listed]
    heard = {one.cell.number: one for one in await _heard(visit, cells, PATIENCE + _MARGIN)}
    mine = await figures_of_this_cell(visit.database, now=visit.now)
    shown = []
    for cell in listed:
        here = Heard(Cell(cell.number, cell.address, cell.inside), mine, visit.now, None)
        said = here if cell.number == own else heard[cell.number]
        shown.append(Shown(cell, said, own=cell.number == own, home=cell.number == standing.home))
    home = next((one.heard for one in shown if one.home and one.heard.answers), None)
    copies = {one.cell: one for one in home.figures.copies} if home is not None and home.figures else {}
    return [replace(one, copy=copies.get(one.cell.number)) for one in shown]


def _facts(visit: Visit, said: CellFigures, own: CellFigures | None) -> list[Fact]:
    """What a cell says of itself, by the console's own words; `own` are this cell's figures, with
    whose schema its own should agree.
    """
    say = visit.texts.get
    counted = [
        (mark("Alarms"), said.alarms, True),
        (mark("Unknown for a day"), said.unknown_for_a_day, True),
        (mark("Unknown outcomes"), said.unknown, False),
        (mark("Profiles to decide"), said.profiles, False),
        (mark("Chargebacks without evidence"), said.disputes, False),
        (mark("Payouts to make"), said.payouts, False),
        (mark("Acquirers failing"), said.failing, True),
        (mark("Queues behind"), said.behind, True),
    ]
    facts = [Fact(say(label), _counted(visit, number), bool(number) and worries) for label, number, worries in counted]
    facts.append(Fact(say(mark("Pingbacks due")), count_words(visit, said.due)))
    facts.append(Fact(say(mark("Workers alive")), count_words(visit, said.alive), not said.alive))
    differs = own is not None and (own.step, own.version) != (said.step, said.version)
    words = say(mark("%(version)s, schema %(step)s")) % {"version": said.version, "step": said.step}
    return [*facts, Fact(say(mark("Version")), words, differs)]


def _counted(visit: Visit, number: int | None) -> str:
    return "–" if number is None else upto(visit, number) or count_words(visit, 0)


def _behind(visit: Visit, copy: Copy) -> Fact:
    """How far a cell's copy of the directory is behind."""
    label = visit.texts.get(mark("Copy of the directory"))
    if not copy.is_read:
        return Fact(label, visit.texts.get(mark("It does not read home's changes")), high=True)
    if not copy.bytes_behind:
        return Fact(label, visit.texts.get(mark("Up to date")))
    size = format_unit(-(-copy.bytes_behind // _KIBIBYTE), "digital-kilobyte", "short", locale=visit.texts.locale)
    seconds = format_unit(round(copy.seconds_behind or 0), "duration-second", "short", locale=visit.texts.locale)
    return Fact(label, visit.texts.get(mark("%(size)s, %(time)s behind")) % {"size": size, "time": seconds})
