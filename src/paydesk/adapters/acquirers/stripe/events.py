"""Stripe's list of events, read on from a cursor: the newest event that was read before.

Stripe keeps events for 30 days: a reading that pauses for longer starts from what is kept, and its
reader sees some things again.

Source: docs.stripe.com/api/events/list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

import msgspec

from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.stripe.calls import Calls

Object = TypeVar("Object")

_PAGE: Final = 100


class About(msgspec.Struct, Generic[Object], frozen=True):
    """What an event is about, as it stood then."""

    object: Object


class Event(msgspec.Struct, Generic[Object], frozen=True):
    """Something that happened, at a time in Unix seconds."""

    id: str
    created: int
    data: About[Object]


class EventPage(msgspec.Struct, Generic[Object], frozen=True):
    """A page of events, the newest first."""

    data: list[Event[Object]]
    has_more: bool = False


class Events(Generic[Object]):
    """The events of some types, which are about one kind of object."""

    def __init__(self, calls: Calls, types: Sequence[str], page: type[EventPage[Object]]) -> None:
        self._calls: Final = calls
        self._types: Final = list(types)
        self._shape: Final = page

    async def since(self, cursor: str) -> list[Event[Object]]:
        """The events just after a cursor, the newest first;
        all that are kept if it is none that Stripe knows.

        Raises: AcquirerRefused if the account's key may not read events, OutcomeUnknown.
        """
        if cursor:
            try:
                return (await self._page({"ending_before": cursor})).data
            except AcquirerRefused:
                pass  # A cursor of more than 30 days ago: Stripe has forgotten it.
        found: list[Event[Object]] = []
        older: dict[str, object] = {}
        while True:
            page = await self._page(older)
            found += page.data
            if not page.has_more or not page.data:
                return found
            older = {"starting_after": page.data[-1].id}

    async def _page(self, place: dict[str, object]) -> EventPage[Object]:
        asked: dict[str, object] = {"types": self._types, "limit": _PAGE, **place}
        return await self._calls.ask(self._calls.v1.events.list_async(asked), self._shape)
