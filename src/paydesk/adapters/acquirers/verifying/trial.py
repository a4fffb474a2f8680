"""What is asked of an acquirer while its contract is tried, and how all of it is undone."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from paydesk.adapters.acquirers.hosted_pages import Page, PageRequest, PageState
from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Approved,
    Captured,
    Declined,
    Moved,
    NothingHeld,
    Outcome,
    UnderWay,
    Voided,
)
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.verifying.points import Differs, Skipped, named, require, said
from paydesk.core.clock import utc_now

AMOUNT = Decimal(2)
PART = Decimal(1)
"""What is taken, and a part of it, in main units: acquirers take no less than about half a euro."""

GOOD, DECLINED, ASKS = "4242424242424242", "4000000000000002", "4000000000003220"
"""Test cards that sandboxes know: one pays, one never does, one asks its customer."""

_LIFE = timedelta(hours=1)
_PAUSE: Final = 1.0
"""Seconds between looks at a page that a person pays on."""


class Trial:
    """The keys, purchases and pages of one trial; `taken` and `pages` have references by key."""

    def __init__(
        self,
        acquirer: Acquirer,
        *,
        currency: str,
        return_url: str,
        wait: timedelta,
        ask: Callable[[str, str], None],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`ask` tells a person what to do at an address, for which `wait` is waited, not at all
        if it is 0. Nothing is told to `return_url`: it is where a page leads back to.
        """
        self.acquirer: Final = acquirer
        self.currency: Final = currency
        self._return_url: Final = return_url
        self._wait: Final = wait
        self._ask: Final = ask
        self.now: Final = now
        self._run: Final = f"verify-{secrets.token_hex(6)}"
        # Of no deployment: whose lists it comes into takes it for another's.
        self.mark: Final = Mark(self._run, 1, "verify", False, PurchaseKind.ORDER, self._run, 1, 1)
        self.began: Final = now()
        self._keys = 0
        self.taken: dict[str, str] = {}
        self.given_back: dict[str, Decimal] = {}
        self.pages: dict[str, str] = {}
        self._made: set[tuple[str, str]] = set()
        self._besides: dict[str, Decimal] = {}

    async def authorize(self, purchase: Purchase) -> Outcome:
        """Ask for a purchase that is undone in the end, whatever its answer is. Moves money."""
        self.taken[purchase.key] = ""
        answer = await self.acquirer.authorize(purchase)
        if isinstance(answer, Declined):
            del self.taken[purchase.key]
        return answer

    async def again(self, purchase: Purchase) -> Outcome:
        """Ask for a purchase under a key that was used; what is taken besides is given back in the
        end. Moves money.
        """
        answer = await self.acquirer.authorize(purchase)
        if isinstance(answer, Approved) and answer.reference != self.taken[purchase.key]:
            self._besides[answer.reference] = purchase.amount
        return answer

    async def approved(self, purchase: Purchase) -> Approved:
        """Ask for a purchase that is to be approved. Moves money."""
        answer = await self.authorize(purchase)
        if not isinstance(answer, Approved):
            raise Differs(named(answer))
        self.taken[purchase.key] = answer.reference
        return answer

    async def opened(self, wanted: PageRequest) -> Page:
        """Ask for a page that is ended in the end."""
        page = await self.acquirer.open_page(wanted)
        self.pages.setdefault(wanted.key, page.reference)
        self._made.add((wanted.key, page.reference))
        return page

    async def paid(self, wanted: PageRequest, what: str) -> Page:
        """A page that a person has paid on. Moves money."""
        if not self._wait:
            raise Skipped("it needs a person at a browser: run it again with --wait")
        page, until = await self.opened(wanted), self.now() + self._wait
        self._ask(what, page.url)
        while page.state is not PageState.PAID:
            if self.now() > until:
                raise Skipped(f"nobody paid in time, it is {page.state}")
            await asyncio.sleep(_PAUSE)
            page = await self.acquirer.find_page(wanted.key, page.reference)
        self.taken[wanted.key] = page.payment
        require((page.key, page.amount) == (wanted.key, wanted.amount), f"{page.amount:f}, key {page.key or 'none'}")
        return page

    async def refund(self, key: str) -> str:
        """Give a part of a purchase back, twice under one key. Moves money (back)."""
        reference, refund = self.reference_of(key), self.key()
        made = list[str]()
        for _ in range(2):
            made.append(await self.acquirer.refund(refund, reference, PART, self.currency, 1))
            self.given_back[key] = PART * len(set(made))
        require(made[0] == made[1], f"{made[0]}, and then {made[1]}")
        found = await self.acquirer.find_movement(refund, key, reference)
        require(isinstance(found, Moved | UnderWay), f"found as {named(found)}")
        return f"{PART} {self.currency} as {made[0]}"

    async def capture(self, key: str, reference: str) -> str:
        """Take a part of what is held, twice under one key. Moves money."""
        capture = self.key()
        for _ in range(2):
            await self.acquirer.capture(capture, reference, PART, self.currency)
        after = await self.acquirer.void(self.key(), key)
        require(isinstance(after, Captured) and after.amount == PART, named(after))
        return f"{PART} {self.currency} captured"

    async def let_go(self, key: str) -> str:
        """Let go of what is held. Moves money (back)."""
        void = self.key()
        for _ in range(2):
            after = await self.acquirer.void(void, key)
            require(isinstance(after, Voided | UnderWay), named(after))
        return "let go" if isinstance(after, Voided) else "asked for, not shown yet"

    def purchase(self, number: str = GOOD) -> Purchase:
        """A charge of a test card, under a key of its own."""
        now = self.now()
        card = CardDetails(number, 12, now.year + 3, "Paydesk Verify", "123")
        return Purchase(
            key=self.key(),
            amount=AMOUNT,
            currency=self.currency,
            card=card,
            capture=True,
            not_after=now + timedelta(minutes=5),
            return_url=self._return_url,
            mark=self.mark,
        )

    def page(self, *, capture: bool = True, keep: bool = False) -> PageRequest:
        """A page; no address is named that an acquirer would tell of it."""
        now = self.now().replace(microsecond=0)
        return PageRequest(
            key=self.key(),
            amount=AMOUNT,
            currency=self.currency,
            order=self._run,
            shop="Paydesk",
            description="paydesk acquirer verify",
            email="verify@example.com",
            language="en",
            return_url=self._return_url,
            expires_at=now + _LIFE,
            capture=capture,
            keep=keep,
            asked_at=now,
            mark=self.mark,
        )

    def key(self) -> str:
        """A key that nobody has used."""
        self._keys += 1
        return f"{self._run}-{self._keys}"

    def reference_of(self, key: str) -> str:
        """The payment that was made under a key. Raises: Skipped if none was."""
        if not self.taken.get(key):
            raise Skipped("nothing was paid")
        return self.taken[key]

    async def clean_up(self) -> str:
        """Give back, let go of and end what is left. Moves money (back)."""
        pages = [(reference, self._end_left(key, reference)) for key, reference in sorted(self._made)]
        problems = await left_undone(pages)
        purchases = [(reference or key, self._give_back(key, reference)) for key, reference in self.taken.items()]
        problems += await left_undone(purchases)
        besides = [(name, self._give_back_besides(name, amount)) for name, amount in self._besides.items()]
        problems += await left_undone(besides)
        require(not problems, f"left for you: {'; '.join(problems)}")
        return f"{len(purchases)} purchases undone, {len(pages)} pages looked after"

    async def _end_left(self, key: str, reference: str) -> None:
        """End a page, unless it came to a payment: that is given back."""
        if key not in self.taken:
            page = await self.acquirer.end_page(key, reference)
            if page.state in {PageState.PAID, PageState.PENDING}:
                self.taken[key] = page.payment

    async def _give_back_besides(self, reference: str, amount: Decimal) -> None:
        """Give back what an acquirer took a second time."""
        await self.acquirer.refund(self.key(), reference, amount, self.currency)

    async def _give_back(self, key: str, reference: str) -> None:
        """Undo a purchase, or give back what is left of it."""
        if back := self.given_back.get(key):
            if back < AMOUNT:
                await self.acquirer.refund(self.key(), reference, AMOUNT - back, self.currency)
            return
        after = await self.acquirer.undo(f"{key}:void", key)
        require(isinstance(after, Voided | NothingHeld | Declined | UnderWay), named(after))


async def left_undone(work: Sequence[tuple[str, Awaitable[None]]]) -> list[str]:
    """What could not be cleaned up, and why; one that fails stops no other."""
    problems = []
    for name, doing in work:
        try:
            await doing
        except Exception as error:
            problems.append(f"{name}: {said(error)}")
    return problems
