"""The acquirers' contract, tried with small amounts at the acquirer itself: by an operator, with a
sandbox's key, before anybody pays there. What was made is given back, let go of and ended again.

What no program can do is to pay on a page: a person is told its address, and is waited for.
"""

from __future__ import annotations

from paydesk.adapters.acquirers.verifying.cards import CardPoints
from paydesk.adapters.acquirers.verifying.lists import ListPoints
from paydesk.adapters.acquirers.verifying.pages import PagePoints
from paydesk.adapters.acquirers.verifying.points import Point, PointState, try_point
from paydesk.adapters.acquirers.verifying.trial import Trial

__all__ = ["Point", "PointState", "Trial", "verify"]


async def verify(trial: Trial) -> list[Point]:
    """Try everything that the acquirer can do. Moves money (back in the end)."""
    can = trial.acquirer.capabilities
    cards, pages = CardPoints(trial).cases() if can.cards else [], PagePoints(trial).cases() if can.pages else []
    points: list[Point] = []
    try:
        for tried, expected, attempt in [*cards, *pages, *ListPoints(trial).cases()]:
            points.append(await try_point(tried, expected, attempt))
    finally:
        points.append(await try_point("clean up", "nothing is held or taken any more", trial.clean_up))
    return points
