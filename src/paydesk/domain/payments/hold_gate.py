"""Whether anything that moves money may be begun:
not while the database may have forgotten what was begun before.

Where the operator wants that, nor while a failover would make it forget what is begun now
(second_server.py).
"""

from __future__ import annotations

import asyncio
from enum import StrEnum

from paydesk.core.errors import IN_A_MOMENT, Held

PATIENCE = 2.0
"""Seconds that who would begin something waits while it is being looked at:
mostly it takes no longer."""

SOON, LATER = IN_A_MOMENT, 60
"""After how many seconds to try again: while it is being looked at, and while it is held."""

LOOKING = "payments wait for some seconds: the database was moved or started, and it is looked whether it is whole"


class Standing(StrEnum):
    """Whether money may be begun, is about to be again, or waits for reconciliation
    or an operator.
    """

    OPEN = "open"
    LOOKING = "looking"
    HELD = "held"


class MoneyGate:
    """What everything passes that begins to move money;
    whoever watches the database opens and shuts it.
    """

    def __init__(self, standing: Standing = Standing.OPEN) -> None:
        self.standing = standing
        self._why = LOOKING
        self._shut: dict[str, str] = {}
        self._decided = asyncio.Event()
        self.say(standing, LOOKING)

    @property
    def is_open(self) -> bool:
        """Whether money may be begun now."""
        return not self.held()

    def say(self, standing: Standing, why: str = "") -> None:
        """Open or shut it; `why` is for who is sent away."""
        self.standing, self._why = standing, why
        if standing is Standing.LOOKING:
            self._decided.clear()
        else:
            self._decided.set()

    def shut(self, by: str, why: str) -> None:
        """Shut it for a reason of its own as well, until `reopen`;
        `by` names the reason, `why` is as for `say`.
        """
        self._shut[by] = why

    def reopen(self, by: str) -> None:
        """Take a reason back; others may still hold."""
        self._shut.pop(by, None)

    def held(self) -> str:
        """Why nothing may be sent to an acquirer now; empty if it may."""
        return next(iter(self._shut.values()), "") if self.standing is Standing.OPEN else self._why

    async def require(self) -> None:
        """Let through who is about to begin something that moves money;
        a look is waited for, briefly.

        Raises: Held; nothing was begun.
        """
        if self.standing is Standing.LOOKING:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._decided.wait()
            except TimeoutError:
                raise Held(f"{self._why}; nothing was begun, try again", SOON) from None
        if self.standing is not Standing.OPEN:
            raise Held(
                f"payments are held: {self._why}. Nothing was begun and nobody charged; try again in a minute, or ask "
                "the operator of this service, who compares with the acquirers' own lists",
                LATER,
            )
        if why := self.held():
            raise Held(f"payments are held: {why}. Nothing was begun and nobody charged; try again in a minute", LATER)
