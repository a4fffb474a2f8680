"""What the sample shop remembers: its orders, every pingback that came in, genuine or not,
and its calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from paydesk.web.demo.journal import Journal, Record
from paydesk.web.demo.orders import Call, Order, ReceivedPingback, Sheet, judge, named_in, recurring_id_of, reference_of

MOST_ORDERS: Final = 500
MOST_PINGBACKS_OF_AN_ORDER: Final = 20
MOST_PINGBACKS_OF_A_SUBSCRIPTION: Final = 150
"""More than ten years of monthly payments."""
MOST_CALLS_OF_AN_ORDER: Final = 20
MOST_STRAYS: Final = 50
"""How many refused pingbacks are kept, and how many genuine ones about nothing
that this shop knows."""

_SPARE_LINES: Final = 1000


class Records:
    """The shop's memory; every change is on the disk before it counts.
    Bounded: what is oldest goes first.
    """

    def __init__(self, folder: Path) -> None:
        """Read what a former run left in `folder` (blocks). Raises: OSError if it can't be used."""
        self._journal = Journal(folder / "shop.jsonl")
        self._lock = asyncio.Lock()
        self._sheets: dict[str, Sheet] = {}
        self._strays: dict[bool, list[ReceivedPingback]] = {True: [], False: []}
        for record in self._journal.read():
            self._take_in(record)

    def sheet(self, reference: str) -> Sheet | None:
        """The order of that reference with its pingbacks, or None."""
        return self._sheets.get(reference)

    def sheets(self) -> list[Sheet]:
        """All orders, newest first."""
        return list(reversed(self._sheets.values()))

    def strays(self) -> list[ReceivedPingback]:
        """The pingbacks that belong to no order: refused ones,
        and genuine ones about something else; newest first.
        """
        return sorted(self._strays[True] + self._strays[False], key=lambda one: one.received_at, reverse=True)

    def refused_for(self, order: Order) -> list[ReceivedPingback]:
        """The refused pingbacks that name the order, oldest first;
        they prove nothing but are good to look at.
        """
        return [pingback for pingback in self._strays[False] if order.reference in pingback.body]

    async def add_order(self, order: Order) -> None:
        """Keep a new order; beyond MOST_ORDERS the oldest unpaid one is forgotten,
        or the oldest.
        """
        async with self._lock:
            await self._keep(order)

    async def add_call(self, call: Call) -> None:
        """Keep what the shop asked of Paydesk about one of its orders, and the answer."""
        async with self._lock:
            await self._keep(call)

    async def refuse(self, pingback: ReceivedPingback) -> None:
        """Keep a pingback that failed validation; it changes no order."""
        async with self._lock:
            await self._keep(pingback)

    async def accept(self, pingback: ReceivedPingback, payload: Mapping[str, object]) -> ReceivedPingback:
        """Keep a genuine pingback and do what it says, at most once per order;
        returns it with the verdict.

        One at a time, and on the disk before the caller answers `ok`: of two equal pingbacks at the
        same moment one fulfils the order, and after a crash the service sends again what was
        not answered.
        """
        async with self._lock:
            sheet = self._sheets.get(reference_of(payload)) or self._subscribed(recurring_id_of(payload))
            judgement = judge(payload, sheet)
            judged = msgspec.structs.replace(
                pingback,
                reference=sheet.order.reference if sheet else "",
                verdict=judgement.verdict,
                fulfils=judgement.fulfils,
                renews=judgement.renews,
                ends=judgement.ends,
                reversal=judgement.reversal,
                **named_in(payload),
            )
            await self._keep(judged)
            return judged

    def _subscribed(self, first_payment: str) -> Sheet | None:
        """The subscription that began with a payment: its end names no order reference
        (interface.md §6.2).
        """
        known = (sheet for sheet in self._sheets.values() if sheet.order.plan is not None and sheet.first_payment)
        return next((sheet for sheet in known if sheet.first_payment == first_payment), None)

    async def _keep(self, record: Record) -> None:
        await asyncio.to_thread(self._journal.append, record)
        self._take_in(record)
        kept = list(self._all())
        if self._journal.lines > 2 * len(kept) + _SPARE_LINES:
            await asyncio.to_thread(self._journal.replace, kept)

    def _take_in(self, record: Record) -> None:
        if isinstance(record, Order):
            if len(self._sheets) >= MOST_ORDERS:
                self._forget_an_order()
            self._sheets[record.reference] = Sheet(record)
        elif isinstance(record, Call):
            if sheet := self._sheets.get(record.reference):
                self._sheets[record.reference] = replace(sheet, calls=_latest((*sheet.calls, record)))
        elif record.genuine and (sheet := self._sheets.get(record.reference)):
            self._sheets[record.reference] = replace(sheet, pingbacks=_bounded(sheet.order, (*sheet.pingbacks, record)))
        else:
            strays = self._strays[record.genuine]
            strays.append(record)
            del strays[:-MOST_STRAYS]

    def _forget_an_order(self) -> None:
        unpaid = (reference for reference, sheet in self._sheets.items() if not sheet.paid)
        del self._sheets[next(unpaid, next(iter(self._sheets)))]

    def _all(self) -> Iterator[Record]:
        """Everything that is remembered, each order before its pingbacks and calls."""
        for sheet in self._sheets.values():
            yield sheet.order
            yield from sheet.pingbacks
            yield from sheet.calls
        for strays in self._strays.values():
            yield from strays


def _latest(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """As many calls as are kept for an order, but never without the one that shipped it."""
    oldest = next((index for index, call in enumerate(calls) if not (call.what == "shipment" and call.done)), 0)
    return calls if len(calls) <= MOST_CALLS_OF_AN_ORDER else calls[:oldest] + calls[oldest + 1 :]


def _bounded(order: Order, pingbacks: tuple[ReceivedPingback, ...]) -> tuple[ReceivedPingback, ...]:
    """As many as are kept for an order, the oldest go first but never one
    that changed how the order stands.
    """
    most = MOST_PINGBACKS_OF_AN_ORDER if order.plan is None else MOST_PINGBACKS_OF_A_SUBSCRIPTION
    if len(pingbacks) <= most:
        return pingbacks
    idle = (index for index, pingback in enumerate(pingbacks) if not pingback.fulfils and pingback.reversal is None)
    oldest = next(idle, 1)
    return pingbacks[:oldest] + pingbacks[oldest + 1 :]
