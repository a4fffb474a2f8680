"""Until when the simulated bank holds what was paid on a page of its own."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.acquirers.simulator.record import Kind, Record

HOLD_PERIOD: Final = timedelta(days=7)
WALLET_HOLD_PERIOD: Final = timedelta(days=5)
"""How long money from the wallet is held: methods differ in this, and a shop has to ship sooner."""


def hold_until(record: Record, standing: Standing) -> datetime | None:
    """When the bank lets go of a hold; None of what is taken, and of a card that was typed
    elsewhere, of which it does not tell.
    """
    told = record.instrument(standing.key)
    if not standing.held or standing.capture or not told:
        return None
    period = WALLET_HOLD_PERIOD if msgspec.json.decode(told, type=Instrument).wallet else HOLD_PERIOD
    approved = next(done for done in record.of_purchase(standing.key) if done.kind is Kind.APPROVE)
    return approved.at + period
