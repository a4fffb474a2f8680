"""An acquirer at which money is begun only while nothing is held:
the last door, beside the bank itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from paydesk.adapters.acquirers.interface import Acquirer, OutcomeUnknown
from paydesk.adapters.acquirers.wrapping import PassingAcquirer

_Answer = TypeVar("_Answer")


class GatedAcquirer(PassingAcquirer):
    """Sends nothing that moves money while `held()` gives a reason;
    an intent committed before is not begun then.

    It counts as unknown like a question that was lost on its way: a later look-up finds that the
    acquirer never saw the key, and what was wanted is tried again. Look-ups and lists go on.
    """

    def __init__(self, honest: Acquirer, held: Callable[[], str], *, name: str = "") -> None:
        """Stand before an acquirer; `name` is that of the account that it is asked for."""
        super().__init__(honest)
        self.name = name or honest.name
        self._held = held

    async def _move(self, key: str, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Make a call that moves money, unless that is held.

        Raises: OutcomeUnknown, and nothing was sent.
        """
        if why := self._held():
            raise OutcomeUnknown(f"not sent to the acquirer: {why}")
        return await call()
