"""Finding a purchase at Stripe by our idempotency key, which Stripe has no strongly consistent way to do.

Its search knows our metadata, but may lag behind by a minute or, on a bad day, an hour: what it finds is true, what it
does not find may still be there. So an empty search is settled by **trying to use the key up**: an empty PaymentIntent
(no card, so no money) is asked for under the very idempotency key of the purchase.

- Stripe makes it: the key was free. The purchase had not arrived, and now never can, since Stripe refuses a key that
  comes back with another request. Not found, for good.
- Stripe refuses the key: the purchase has arrived. The newest intents, whose list does not lag, are looked through; if
  it is not among them the outcome stays unknown, and a later search will have it.

Stripe forgets keys after 24 hours at the earliest. By then search is long up to date, and a purchase is never sent
after its `not_after` (minutes after it began), so a key that is free again can't be used for a late purchase.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.stripe.calls import Calls, KeyTaken
from paydesk.adapters.acquirers.stripe.objects import KEY, VOID, Intent, IntentList, Named, Refund, RefundList

_REFERENCE: Final = re.compile(r"(pi|seti)_[A-Za-z0-9_]{1,200}")
_REMEMBERED: Final = 10_000
_LIST_WINDOW: Final = timedelta(hours=26)
_MOST_PAGES: Final = 20
_PAGE: Final = 100


class Looking:
    """Looks purchases and refunds up; remembers which intent this process made for a key, to save a search."""

    def __init__(self, calls: Calls, now: Callable[[], datetime]) -> None:
        self._calls: Final = calls
        self._now: Final = now
        self._made: Final[OrderedDict[str, str]] = OrderedDict()

    def remember(self, key: str, intent: Intent) -> None:
        """Keep which intent a purchase became; the oldest are forgotten."""
        self._made[key] = intent.id
        if len(self._made) > _REMEMBERED:
            self._made.popitem(last=False)

    async def purchase(self, key: str) -> Intent | None:
        """The purchase under `key` as it stands, None if it never arrived (and never will). Moves no money.

        Raises: OutcomeUnknown.
        """
        reference = self._made.get(key) or await self._searched(key)
        if reference is None:
            if await self._use_up(key):
                return None
            reference = await self._listed(key)
        found = await self.intent(reference)
        if found is None:
            raise OutcomeUnknown(f"Stripe knows {reference} by its key and not by its name")
        return found

    async def intent(self, reference: str) -> Intent | None:
        """An intent by its name at Stripe, None if there is none. Moves no money. Raises: OutcomeUnknown."""
        if not _REFERENCE.fullmatch(reference):
            return None
        if reference.startswith("seti_"):
            return await self._calls.look(self._calls.v1.setup_intents.retrieve_async(reference), Intent)
        expanded = {"expand": ["latest_charge"]}
        return await self._calls.look(self._calls.v1.payment_intents.retrieve_async(reference, expanded), Intent)

    async def refunds(self, intent: Intent) -> list[Refund]:
        """All refunds of a purchase. Moves no money. Raises: OutcomeUnknown."""
        found: list[Refund] = []
        asked: dict[str, Any] = {"payment_intent": intent.id, "limit": _PAGE}
        while True:
            page = await self._calls.look(self._calls.v1.refunds.list_async(asked), RefundList)
            found += page.data if page else []
            if page is None or not page.has_more or not page.data:
                return found
            asked["starting_after"] = page.data[-1].id

    async def is_voided(self, intent: Intent) -> bool:
        """Whether a void of ours gave the captured money back. Moves no money. Raises: OutcomeUnknown."""
        if intent.is_setup or not intent.may_have_refunds:
            return False
        return any(VOID in refund.metadata and refund.counts for refund in await self.refunds(intent))

    async def _searched(self, key: str) -> str | None:
        """The name of the purchase, if search has it already."""
        quoted = key.replace("\\", "\\\\").replace("'", "\\'")
        asked = {"query": f"metadata['{KEY}']:'{quoted}'", "limit": 1}
        try:
            found = await self._calls.ask(self._calls.v1.payment_intents.search_async(asked), IntentList)
        except AcquirerRefused:
            # Some countries have no search: there the list alone must do.
            return None
        return found.data[0].id if found.data else None

    async def _use_up(self, key: str) -> bool:
        """Whether the key was free and is now used up by an intent without a card. Moves no money."""
        asked = {"amount": 100, "currency": "usd", "metadata": {"paydesk_used_up": key}}
        try:
            await self._calls.ask(self._calls.v1.payment_intents.create_async(asked, {"idempotency_key": key}), Named)
        except KeyTaken:
            return False
        except AcquirerRefused as refused:
            raise OutcomeUnknown(f"Stripe can't say what became of the key: {refused}") from None
        return True

    async def _listed(self, key: str) -> str:
        """The name of the purchase among the newest intents. Raises: OutcomeUnknown if it is not there."""
        # Checked cards first: they are few, and search never has them.
        for service in (self._calls.v1.setup_intents, self._calls.v1.payment_intents):
            asked: dict[str, Any] = {"limit": _PAGE, "created": {"gte": int((self._now() - _LIST_WINDOW).timestamp())}}
            for _ in range(_MOST_PAGES):
                page = await self._calls.look(service.list_async(asked), IntentList) or IntentList([])
                for intent in page.data:
                    if intent.metadata.get(KEY) == key:
                        return intent.id
                if not page.has_more or not page.data:
                    break
                asked["starting_after"] = page.data[-1].id
        raise OutcomeUnknown("Stripe has seen the key, and does not show yet what became of it")
