"""How long money must be held for goods that are shipped, and which acquirers hold it
for so long.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from paydesk.adapters.acquirers.interface import Acquirer
from paydesk.core.errors import Unavailable

TIME_TO_SHIP = timedelta(days=7)
"""How long an authorization waits for a confirmed shipment before it is voided
(interface.md §7.4)."""

REMINDED_BEFORE = timedelta(days=1)
"""How long before that the merchant is reminded to ship."""

SOONER_BY = timedelta(hours=1)
"""By how much a hold has to end sooner than that for the merchant to be told so at once."""


def require_holds(acquirer: Acquirer) -> None:
    """Make sure that an acquirer holds money for as long as an order may wait to be shipped;
    a single hold may end sooner, and its order is to be shipped by then.

    Raises: Unavailable, naming the acquirer.
    """
    if acquirer.hold_period < TIME_TO_SHIP:
        raise Unavailable(
            f"{acquirer.name} holds money for {in_words(acquirer.hold_period)}, and goods that are shipped need "
            f"{in_words(TIME_TO_SHIP)}; choose another acquirer or sell without --shipped-goods"
        )


def require_one_holds(acquirers: Sequence[Acquirer]) -> None:
    """Make sure that one of those that serve a shop holds money so long: what is shipped goes
    there.

    Raises: Unavailable, naming the last one, which is that of the settings.
    """
    if acquirers and all(one.hold_period < TIME_TO_SHIP for one in acquirers):
        require_holds(acquirers[-1])


def in_words(period: timedelta) -> str:
    """A time to ship in English: `7 days`, `156 hours`."""
    hours = int(period / timedelta(hours=1))
    return f"{hours // 24} days" if hours % 24 == 0 else f"{hours} hours"
