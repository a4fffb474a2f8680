"""Whose a key is: an acquirer's own name for the account that is asked, by which two keys of one
account are known for what they are.
"""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

UNTOLD: Final = ""
"""What an acquirer is called that has no accounts, as a simulated bank has none."""


@runtime_checkable
class NamesItself(Protocol):
    """An acquirer that tells whose the key is that it is asked with."""

    async def own_id(self) -> str:
        """Its own name of the account, and its side where lists of the two are apart. Moves no
        money.

        Raises: AcquirerRefused if this key may not ask for it; OutcomeUnknown.
        """


async def own_id_of(acquirer: object) -> str:
    """Whose account an acquirer asks, UNTOLD if it has none. Raises: as `own_id`."""
    return await acquirer.own_id() if isinstance(acquirer, NamesItself) else UNTOLD
