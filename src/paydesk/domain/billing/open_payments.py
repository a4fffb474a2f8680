"""What a link that pays a subscription's open charge finds: something to pay, or why there is
nothing. Nothing here moves money.
"""

from __future__ import annotations

from enum import StrEnum

from paydesk.domain.billing.for_customer import Holding


class Standing(StrEnum):
    """How the charge for the period that a link is good for stands."""

    OPEN = "open"
    """It failed, and may be paid now."""
    CHARGING = "charging"
    """It is being charged just now, or about to be: nobody may be asked to pay it once more."""
    ON_ITS_WAY = "on_its_way"
    """It was charged, and its bank takes some days to say whether it pays."""
    PAID = "paid"
    ENDED = "ended"
    """The subscription has ended: nothing is charged any more."""
    NOTHING = "nothing"
    """Nothing is open at present: it is paused by somebody, or waits for something else."""
    SUSPENDED = "suspended"
    """Nothing is charged for its merchant at present."""


def standing_of(held: Holding, period: int) -> Standing:
    """How the charge of a subscription for a period stands."""
    subscription = held.subscription
    if period < subscription.next_period:
        return Standing.PAID
    if not subscription.running:
        return Standing.ENDED
    paused, change = subscription.paused_by_retries, subscription.change
    if period > subscription.next_period or not subscription.failures or not (change is None or paused):
        return Standing.NOTHING
    if held.sure_by is not None:
        return Standing.ON_ITS_WAY
    if held.charging:
        return Standing.CHARGING
    if held.suspended:
        return Standing.SUSPENDED
    due = change.due_at if change is not None else subscription.date_next
    return Standing.CHARGING if due is not None and due <= held.now else Standing.OPEN
