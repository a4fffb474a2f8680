"""The cells that know a refund of which an acquirer says that it failed, as they say when they are
asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta

from paydesk.database.pool import Database
from paydesk.domain.acquirers.other_cells import MOST, Elsewhere
from paydesk.domain.payments.waiting_refunds import AskedRefund
from paydesk.web.cells.asking import Asking
from paydesk.web.cells.knowing import elsewhere_by

REFUNDS: Final = "/cells/refunds"
"""Where a cell is asked under which keys it has refunds."""

LARGEST_QUESTION: Final = 64 * 1024
"""Of as many keys as fit into one; JSON writes some signs of a key as two."""


@dataclass(frozen=True, slots=True)
class AskedRefunds:
    """Keys of refunds."""

    keys: Annotated[list[AskedRefund], Meta(max_length=MOST)]


def refunds_elsewhere(asking: Asking, database: Database) -> Elsewhere[AskedRefund]:
    """What asks all other cells for refunds."""
    return elsewhere_by(asking, database, REFUNDS, lambda keys: AskedRefunds(list(keys)))
