"""Why a test clock stops on its way: whoever moves it is told how far it came."""

from __future__ import annotations

from datetime import datetime

from paydesk.core.errors import IN_A_MOMENT, Held, TooMany


class Stopped(TooMany):
    """A call has worked for as long as it may; the clock stands at `now`,
    where the next call goes on.
    """

    def __init__(self, start: datetime, now: datetime, target: datetime) -> None:
        super().__init__(
            f"the test clock has come to {now:%Y-%m-%d %H:%M:%S} UTC; what falls due by {target:%Y-%m-%d %H:%M:%S} is "
            "too much for one call: advance it by the rest",
            retry_after=1,
        )
        self.started_at = start
        self.now = now


class HeldUp(Held):
    """Payments came to be held on the way; the clock stands at `now`,
    where a later call goes on.
    """

    def __init__(self, start: datetime, now: datetime, held: Held) -> None:
        super().__init__(
            f"the test clock has come to {now:%Y-%m-%d %H:%M:%S} UTC; advance it by the rest later. From there on "
            f"{held.message}",
            held.retry_after,
        )
        self.started_at = start
        self.now = now


class OnItsWay(TooMany):
    """The merchant goes to another cell, and its shop is to wait for no test clock; that stands at
    `now`, where a later call goes on, in the cell that has the merchant then.
    """

    def __init__(self, start: datetime, now: datetime, target: datetime) -> None:
        super().__init__(
            f"the test clock stands at {now:%Y-%m-%d %H:%M:%S} UTC, for the account is being moved to another server; "
            f"once its shop is open again, advance it by the rest, up to {target:%Y-%m-%d %H:%M:%S}",
            IN_A_MOMENT,
        )
        self.started_at = start
        self.now = now
