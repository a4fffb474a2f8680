"""The cells that know the purchase of a dispute, and whether they have booked what was told of it,
as they say when they are asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from paydesk.database.pool import Database
from paydesk.domain.acquirers.other_cells import MOST, Elsewhere
from paydesk.domain.chargebacks.waiting_disputes import AskedDispute
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.knowing import elsewhere_by

DISPUTES: Final = "/cells/disputes"
"""Where a cell is asked which disputes are of its purchases."""

LARGEST_QUESTION: Final = 256 * 1024
"""Of as many disputes as fit into one; JSON writes some signs of a key as two, of a name as six."""


@dataclass(frozen=True, slots=True)
class AskedDisputes:
    """Disputes as they were told."""

    disputes: Annotated[list[AskedDispute], Meta(max_length=MOST)]


def disputes_elsewhere(asking: Asking, database: Database) -> Elsewhere[AskedDispute]:
    """What asks all other cells for disputes."""
    return elsewhere_by(asking, database, DISPUTES, lambda disputes: AskedDisputes(list(disputes)))
