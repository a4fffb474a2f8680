"""Letting go of what an acquirer keeps of an instrument, so that nobody charges it any more."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class LetsGo(Protocol):
    """An acquirer that keeps instruments, and lets go of them when it is told to."""

    async def release_kept(self, reference: str) -> None:
        """See to it that what is kept under a reference is charged never again. Moves no money.

        Told again, or of what it does not keep, it does nothing. Raises: AcquirerRefused,
        OutcomeUnknown.
        """


async def release_kept(acquirer: object, reference: str) -> None:
    """Have an acquirer let go of what it keeps; one that keeps nothing has nothing to do.

    Raises: as `LetsGo.release_kept`.
    """
    if isinstance(acquirer, LetsGo):
        await acquirer.release_kept(reference)
