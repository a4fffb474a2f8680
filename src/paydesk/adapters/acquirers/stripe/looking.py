"""Finding a purchase at Stripe by our idempotency key, which Stripe has no strongly consistent way
to do.

Its search knows our metadata, but may lag behind by a minute or, on a bad day, an hour; its lists
don't lag, and know only when an object was made. What they have is true. What they don't have may
be on its way, **until the purchase's time is over**: so long a purchase is looked for and its key
is left alone, for it may be about to be sent.

Once its time is over, an empty search is settled by **trying to use the key up**: an empty
PaymentIntent (no card, so no money) is asked for under the very idempotency key of the purchase.

- Stripe makes it: the key was free. The purchase had not arrived, and now never can, since Stripe
  refuses a key that comes back with another request. Not found, for good.
- Stripe refuses the key: the purchase has arrived. The intents of its time are looked through; if
  it is not among them the outcome stays unknown, and a later search will have it.

Stripe forgets keys after 24 hours at the earliest. By then search is long up to date, and a
purchase is never sent after its `not_after` (minutes after it began), so a key that is free again
can't be used for a late purchase. But a key that is free so late says nothing by itself: search
never has checked cards, and merchants in India have none. Then the list of the purchase's time is
looked through too, to its end; where nobody knows that time, and there is no search, all that may
still be held is, and the outcome stays unknown of what is not there.

Source: docs.stripe.com/search, "Data freshness" and "Limitations";
    docs.stripe.com/api/idempotent_requests.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from paydesk.adapters.acquirers.interface import AcquirerRefused, Undecided
from paydesk.adapters.acquirers.stripe.calls import Calls, KeyTaken
from paydesk.adapters.acquirers.stripe.objects import KEY, USED_UP, VOID, Intent, IntentList, Named, Refund, RefundList

_REFERENCE: Final = re.compile(r"(pi|seti)_[A-Za-z0-9_]{1,200}")
_REMEMBERED: Final = 40_000
"""More than are listed at a time: what was found must not be forgotten by the end of its list."""
_LIST_WINDOW: Final = timedelta(hours=26)
_AROUND: Final = timedelta(minutes=20)
"""How long before and after a purchase's last moment Stripe may have made it,
clocks that differ included."""
_KEY_KEPT: Final = timedelta(hours=23)
"""How long a key is relied on: Stripe keeps it for 24 hours at least."""
_HELD: Final = timedelta(days=31)
"""How long a payment is held at most."""
_MOST_PAGES: Final = 20
_MOST_PROVING_PAGES: Final = 100
"""As many are read where what is not listed was never made."""
_PAGE: Final = 100


@dataclass(frozen=True, slots=True)
class _Listed:
    """A time whose intents were looked through, and when that began (on this process's own clock).

    All of them were (`is_whole`), or so many pages of each kind.
    """

    since: datetime
    until: datetime
    began: float
    most_pages: int
    is_whole: bool

    def answers(self, since: datetime, until: datetime, most_pages: int, asked: float) -> bool:
        """Whether who asks for a time at a moment needs no look of their own."""
        is_far_enough = self.is_whole or most_pages <= self.most_pages
        return is_far_enough and self.began >= asked and self.since <= since and until <= self.until


class Looking:
    """Looks purchases and refunds up; remembers which intents stand for which keys,
    to save searches.
    """

    def __init__(self, calls: Calls, now: Callable[[], datetime]) -> None:
        self._calls: Final = calls
        self._now: Final = now
        self._made: Final[OrderedDict[str, str]] = OrderedDict()
        self._used_up: Final[OrderedDict[str, None]] = OrderedDict()
        self._one_lists: Final = asyncio.Lock()
        self._listed: _Listed | None = None

    def remember(self, key: str, intent: Intent) -> None:
        """Keep which intent a purchase became; the oldest are forgotten."""
        self._made[key] = intent.id
        if len(self._made) > _REMEMBERED:
            self._made.popitem(last=False)

    async def so_far(self, key: str, not_after: datetime | None = None) -> Intent | None:
        """The purchase under `key` as it stands, None if it has not arrived yet;
        the key is left alone. Moves no money.

        Raises: OutcomeUnknown.
        """
        reference = self._made.get(key) or await self._searched(key) or await self._found_in_list(key, not_after)
        return None if reference is None else await self._named(reference)

    async def purchase(self, key: str, not_after: datetime | None = None) -> Intent | None:
        """The purchase under `key` as it stands, None if it never arrived; then it never will.
        Moves no money.

        Only for a purchase whose time is over, or that is to be ended: its key is used up if it
        is free.

        Raises: OutcomeUnknown.
        """
        if key in self._used_up:
            return None
        reference, has_search = self._made.get(key), True
        if reference is None:
            try:
                reference = await self._search(key)
            except AcquirerRefused:
                has_search = False
        if reference is None:
            is_free = await self._use_up(key)
            is_known = has_search if not_after is None else self._now() <= not_after + _KEY_KEPT
            if not (is_free and is_known):
                # Whose key is free is too old for a look at the last day.
                window = _HELD if is_free else _LIST_WINDOW
                reference = await self._found_in_list(key, not_after, window, proves=is_free)
            if reference is None and is_free and (is_known or not_after is not None):
                self._remember_used_up(key)
                return None
        if reference is None:
            raise Undecided("Stripe has seen the key, or forgotten it, and does not show yet what became of it")
        return await self._named(reference)

    async def ever(self, key: str) -> Intent | None:
        """The purchase that was ever made under `key`, or what used the key up, whatever its age.
        Moves no money.

        The list has what is too new for search, search has what is too old for the list. Raises:
        OutcomeUnknown.
        """
        reference = self._made.get(key) or await self._found_in_list(key, None) or await self._searched(key)
        reference = reference or await self._searched(key, USED_UP)
        return None if reference is None else await self._named(reference)

    async def intent(self, reference: str) -> Intent | None:
        """An intent by its name at Stripe, None if there is none. Moves no money.

        Raises: OutcomeUnknown.
        """
        if not _REFERENCE.fullmatch(reference):
            return None
        if reference.startswith("seti_"):
            return await self._calls.look(self._calls.v1.setup_intents.retrieve_async(reference), Intent)
        expanded = {"expand": ["latest_charge"]}
        return await self._calls.look(self._calls.v1.payment_intents.retrieve_async(reference, expanded), Intent)

    async def refunds(self, intent: Intent) -> list[Refund]:
        """All refunds of a purchase. Moves no money. Raises: OutcomeUnknown."""
        found: list[Refund] = []
        asked: dict[str, object] = {"payment_intent": intent.id, "limit": _PAGE}
        while True:
            page = await self._calls.look(self._calls.v1.refunds.list_async(asked), RefundList)
            found += page.data if page else []
            if page is None or not page.has_more or not page.data:
                return found
            asked["starting_after"] = page.data[-1].id

    async def is_voided(self, intent: Intent) -> bool:
        """Whether a void of ours gave the captured money back. Moves no money.

        Raises: OutcomeUnknown.
        """
        if intent.is_setup or not intent.may_have_refunds:
            return False
        return any(VOID in refund.metadata and refund.counts for refund in await self.refunds(intent))

    async def _named(self, reference: str) -> Intent:
        """What is known by a name that Stripe has just given. Raises: OutcomeUnknown."""
        found = await self.intent(reference)
        if found is None:
            raise Undecided(f"Stripe knows {reference} by its key and not by its name")
        return found

    async def _searched(self, key: str, field: str = KEY) -> str | None:
        """The name of what has the key in a metadata field, if search has it already.

        Where there is no search the list alone must do.
        """
        try:
            return await self._search(key, field)
        except AcquirerRefused:
            return None

    async def _search(self, key: str, field: str = KEY) -> str | None:
        """As `_searched`. Raises: AcquirerRefused where there is no search."""
        quoted = key.replace("\\", "\\\\").replace("'", "\\'")
        asked = {"query": f"metadata['{field}']:'{quoted}'", "limit": 1}
        found = await self._calls.ask(self._calls.v1.payment_intents.search_async(asked), IntentList)
        return found.data[0].id if found.data else None

    async def _use_up(self, key: str) -> bool:
        """Whether the key was free and is now used up by an intent without a card.
        Moves no money.
        """
        asked = {"amount": 100, "currency": "usd", "metadata": {USED_UP: key}}
        try:
            await self._calls.ask(self._calls.v1.payment_intents.create_async(asked, {"idempotency_key": key}), Named)
        except KeyTaken:
            return False
        except AcquirerRefused as refused:
            raise Undecided(f"Stripe can't say what became of the key: {refused}") from None
        return True

    def _remember_used_up(self, key: str) -> None:
        """Keep that there is nothing under a key: it is asked for again and again for a week, in
        case of an approval that can't come any more.
        """
        self._used_up[key] = None
        if len(self._used_up) > _REMEMBERED:
            self._used_up.popitem(last=False)

    async def _found_in_list(
        self, key: str, not_after: datetime | None, window: timedelta = _LIST_WINDOW, *, proves: bool = False
    ) -> str | None:
        """The name of the purchase among the intents of its time, of the last `window` if that is
        not known. Moves no money.

        Raises: OutcomeUnknown, also if it `proves` something that it is not there, and the list is
            too long to be read to its end.

        Whoever waits while others list uses what they found: a hundred look-ups at once are
        one list.
        """
        asked, now = time.monotonic(), self._now()
        since = now - window if not_after is None else not_after - _AROUND
        until = now + _AROUND if not_after is None else not_after + _AROUND
        most = _MOST_PROVING_PAGES if proves else _MOST_PAGES
        async with self._one_lists:
            if key not in self._made and not (self._listed and self._listed.answers(since, until, most, asked)):
                # The time of those who wait is nearly the same, so that a little more answers
                # them too.
                since, until = since - _AROUND, until + _AROUND
                began = time.monotonic()
                is_whole = await self._list(since, until, most)
                self._listed = _Listed(since, until, began, most, is_whole)
            found = self._made.get(key)
            if found is None and proves and self._listed is not None and not self._listed.is_whole:
                raise Undecided("Stripe may have forgotten the key, and lists too much to be looked through")
            return found

    async def _list(self, since: datetime, until: datetime, most_pages: int) -> bool:
        """Remember all purchases of a time, as far as so many pages go; whether those are all.
        Moves no money.

        Raises: OutcomeUnknown.
        """
        made = {"gte": int(since.timestamp()), "lte": int(until.timestamp())}
        are_whole = []
        # Checked cards too: search never has them.
        for service in (self._calls.v1.setup_intents, self._calls.v1.payment_intents):
            asked: dict[str, object] = {"limit": _PAGE, "created": made}
            has_more = True
            for _ in range(most_pages):
                page = await self._calls.look(service.list_async(asked), IntentList) or IntentList([])
                for intent in page.data:
                    if KEY in intent.metadata:
                        self.remember(intent.metadata[KEY], intent)
                has_more = page.has_more and bool(page.data)
                if not has_more:
                    break
                asked["starting_after"] = page.data[-1].id
            are_whole.append(not has_more)
        return all(are_whole)
