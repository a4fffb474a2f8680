"""How purchases stand at the simulated bank, by its own record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from paydesk.adapters.acquirers.simulator.purchase_state import Standing, standing_of
from paydesk.adapters.acquirers.simulator.record import Operation


def standings(operations: Iterable[Operation]) -> dict[str, Standing]:
    """How each purchase stands, by idempotency key: what was held, taken and given back."""
    of_purchase: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        if operation.of_key is not None:
            of_purchase[operation.of_key].append(operation)
    found = {key: standing_of(done) for key, done in of_purchase.items()}
    return {key: standing for key, standing in found.items() if standing is not None}
