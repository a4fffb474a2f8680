"""The points about pages that an acquirer hosts; a person pays on some of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Final

from paydesk.adapters.acquirers.hosted_pages import PageRequest, PageState
from paydesk.adapters.acquirers.interface import Approved, KeyUsed, NoSuchPage
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.acquirers.verifying.points import Case, Skipped, named, paid_with, refusal_of, require
from paydesk.adapters.acquirers.verifying.trial import AMOUNT, PART, Trial


class PagePoints:
    """Pages that are opened, found, listed, ended and paid."""

    def __init__(self, trial: Trial) -> None:
        self._trial: Final = trial
        self._page: PageRequest | None = None

    def cases(self) -> list[Case]:
        """What is tried, in this order."""
        held = ("a person pays what is only held", "held, then captured in part", self._hold_on_page)
        kept = ("charge what a person left to be kept", "approved without them", self._keep)
        """What is tried, in this order."""
        return [
            ("ask for a page", "open, at an address", self._open),
            ("the same page again", "the same page", self._open_again),
            ("another amount under its key", "refused", self._open_other),
            ("look at the page", "open, of our amount and key", self._look),
            ("list the pages", "the page is among them", self._list_pages),
            ("a page that is none", "said to be none", self._no_page),
            ("end the page", "ended, or it ends by itself", self._end),
            ("a person pays on a page", "paid, and found by its key", self._pay_on_page),
            ("refund a part of that, twice under one key", "given back once", self._refund_of_page),
            *([held] if self._trial.acquirer.hold_period else []),
            *([kept] if self._trial.acquirer.capabilities.stored else []),
        ]

    async def _open(self) -> str:
        self._page = self._trial.page()
        page = await self._trial.opened(self._page)
        require(page.state is PageState.OPEN and page.url.startswith("http"), f"{page.state} at {page.url or 'none'}")
        return f"{page.reference} at {page.url.partition('?')[0][:60]}"

    async def _open_again(self) -> str:
        wanted = self._first_page()
        again = await self._trial.opened(wanted)
        reference = self._trial.pages[wanted.key]
        require(again.reference == reference, f"{again.reference}, and not {reference}")
        return f"{reference} again"

    async def _open_other(self) -> str:
        other = replace(self._first_page(), amount=AMOUNT + PART)
        return await refusal_of(self._trial.opened(other), KeyUsed)

    async def _look(self) -> str:
        wanted = self._first_page()
        page = await self._trial.acquirer.find_page(wanted.key, self._trial.pages[wanted.key])
        seen = f"{page.state}, {page.amount:f} {page.currency}"
        asked = (PageState.OPEN, wanted.key, wanted.amount, wanted.currency)
        require((page.state, page.key, page.amount, page.currency) == asked, f"{seen}, key {page.key or 'none'}")
        return seen

    async def _list_pages(self) -> str:
        reference, cursor, read = self._trial.pages[self._first_page().key], "", 0
        while True:
            listed = await self._trial.acquirer.list_pages(self._trial.began - timedelta(minutes=5), cursor)
            read, cursor = read + len(listed.pages), listed.next
            if reference in {one.page.reference for one in listed.pages}:
                return f"{reference} is there"
            require(bool(cursor), f"it is not among {read}")

    async def _no_page(self) -> str:
        reference = self._trial.pages[self._first_page().key]
        none = reference[: reference.find("_") + 1] + "paydeskverifynone"
        return await refusal_of(self._trial.acquirer.find_page(self._trial.key(), none), NoSuchPage)

    async def _end(self) -> str:
        wanted = self._first_page()
        page = await self._trial.acquirer.end_page(wanted.key, self._trial.pages[wanted.key])
        require(page.state in {PageState.ENDED, PageState.OPEN}, str(page.state))
        if page.state is PageState.OPEN:
            return f"open: it ends by itself at {wanted.expires_at:%H:%M} UTC"
        return "ended"

    async def _pay_on_page(self) -> str:
        self._page = None
        wanted = self._trial.page()
        page = await self._trial.paid(wanted, "pay")
        found = await self._trial.acquirer.find(wanted.key)
        require(isinstance(found, Approved) and found.reference == page.payment, f"found as {named(found)}")
        self._page = wanted
        return f"paid as {page.payment}{paid_with(page)}"

    async def _refund_of_page(self) -> str:
        return await self._trial.refund(self._first_page().key)

    async def _hold_on_page(self) -> str:
        wanted = self._trial.page(capture=False)
        page = await self._trial.paid(wanted, "pay, which is only held")
        until = f"held until {page.hold_until:%Y-%m-%d %H:%M} UTC" if page.hold_until else "held, until is not told"
        return f"{until}; {await self._trial.capture(wanted.key, page.payment)}"

    async def _keep(self) -> str:
        wanted = self._trial.page(keep=True)
        page = await self._trial.paid(wanted, "pay, and what you pay with is kept")
        kept = page.instrument.reference if page.instrument else ""
        require(bool(kept), "nothing is kept")
        nobodys = CardDetails(number="", exp_month=0, exp_year=0, holder="")
        later = replace(self._trial.purchase(), card=nobodys, stored_reference=kept)
        self._trial.taken[later.key] = ""
        answer = await self._trial.acquirer.charge_stored(later)
        require(isinstance(answer, Approved), named(answer))
        return f"approved{paid_with(page)}"

    def _first_page(self) -> PageRequest:
        """The page that was opened, or paid. Raises: Skipped if none was."""
        if self._page is None or self._page.key not in self._trial.pages:
            raise Skipped("there is no such page")
        return self._page
