"""Pages of an acquirer's that our database has forgotten: in no list of payments, and open to
whoever was led there. They are ended, so that nobody pays on them any more.

What was paid on one by then, or is on its way, is among the acquirer's purchases, and is adopted
as any other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import structlog

from paydesk.adapters.acquirers.hosted_pages import ListedPage, Page, PageList, PageState
from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, NoSuchPage, OutcomeUnknown
from paydesk.core.money import written
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.operations.differences import Difference, DifferenceKind, Ended, subject_of
from paydesk.domain.payments.states import AttemptState

queries = load_statements(__package__ or "", "forgotten_pages.sql")
log = structlog.get_logger()

LIVES = timedelta(hours=25)
"""How long ago a page may have been made that is open now: none lives longer than a day."""

NOBODY_WAITS = frozenset({AttemptState.FAILED, AttemptState.DECLINED, AttemptState.VOIDED})
"""States of an attempt whose page nobody looks at any more."""

WHAT = "page"
"""What a page is called among differences."""

Ask = Callable[[str], Awaitable[PageList]]
"""Reads a part of the acquirer's list, after a cursor."""


@dataclass(frozen=True, slots=True)
class _Booked:
    """The attempt behind a key."""

    key: str
    state: AttemptState


@dataclass(frozen=True, slots=True)
class _Told:
    """A page that the operator's list has, by what the acquirer calls it."""

    key: str
    reference: str


@dataclass(slots=True)
class Pages:
    """One reading of an acquirer's list of pages; those of another deployment, as their marks say,
    and those without a mark are nobody's business here.
    """

    database: Database
    bank: Acquirer
    tags: frozenset[str]
    states: dict[str, AttemptState] = field(default_factory=dict)

    async def read(
        self, ask: Ask, told: Callable[[], Awaitable[None]], *, fix: bool
    ) -> tuple[list[Ended], list[Difference]]:
        """What was ended, with `fix`, and what may still be paid and is not in our books.
        Moves no money.

        `told` comes before each page is ended, and raises if it may not be. Raises:
        AcquirerRefused, OutcomeUnknown.
        """
        forgotten = dict[str, ListedPage]()
        after, is_over = "", False
        while not is_over:
            part = await ask(after)
            forgotten |= {one.page.key: one for one in await self._forgotten(part.pages)}
            after, is_over = part.next, not part.next
            await told()
        ended, differences = list[Ended](), list[Difference]()
        for one in forgotten.values():
            page = await self._ended(one.page) if fix else one.page
            if page is not None and page.state is PageState.ENDED:
                ended.append(self._as_ended(one))
            elif page is None or page.state is PageState.OPEN:
                differences.append(self._difference(one))
            await told()
        return ended, differences

    async def _forgotten(self, listed: Sequence[ListedPage]) -> list[ListedPage]:
        """The pages of ours that may be paid, and for which nobody waits."""
        ours = [one for one in listed if self._is_ours(one) and one.page.state is PageState.OPEN]
        if not ours:
            return []
        asked: dict[str, object] = {"acquirer": self.bank.name, "keys": [one.page.key for one in ours]}
        self.states |= {
            row.key: row.state for row in await records_of(_Booked, queries.states_named(self.database, **asked))
        }
        emptied = {row.key for row in await records_of(_Booked, queries.emptied(self.database, **asked))}
        return [
            one
            for one in ours
            if one.page.key not in emptied and self.states.get(one.page.key, AttemptState.FAILED) in NOBODY_WAITS
        ]

    def _is_ours(self, one: ListedPage) -> bool:
        return bool(one.page.key) and one.mark is not None and one.mark.deployment in self.tags

    async def _ended(self, page: Page) -> Page | None:
        """How a page stands once it was to be ended; None if that is not known."""
        try:
            return await self.bank.end_page(page.key, page.reference)
        except (AcquirerRefused, OutcomeUnknown) as error:
            log.warning("a forgotten page can't be ended yet", key=page.key, why=str(error))
            return None

    def _as_ended(self, one: ListedPage) -> Ended:
        log.warning("a forgotten page is ended", key=one.page.key, reference=one.page.reference)
        reason = f"nobody pays any more {_amount(one.page)} for order {one.mark.order if one.mark else ''} on it"
        return Ended(self.bank.name, WHAT, one.page.key, one.page.reference, reason)

    def _difference(self, one: ListedPage) -> Difference:
        order = one.mark.order if one.mark else ""
        why = noted(
            "%(amount)s for order %(order)s: the page can be paid still, and nobody here waits for that",
            amount=_amount(one.page),
            order=order,
        )
        kind = DifferenceKind.DIFFERS if one.page.key in self.states else DifferenceKind.UNKNOWN_HERE
        return Difference(self.bank.name, WHAT, one.page.key, one.page.reference, why, kind)

    async def mended(self, differing: Sequence[Difference], asked: Callable[[], Awaitable[None]]) -> list[str]:
        """Which pages of the operator's list, by their subjects there, are over by now.

        `asked` comes after each that the acquirer was asked for: there may be very many of them.
        """
        still = {one.key for one in differing}
        rows = queries.told_of(self.database, acquirer=self.bank.name)
        over = list[str]()
        for one in await records_of(_Told, rows):
            if one.key in still:
                continue
            if await self._is_over(one):
                over.append(subject_of(WHAT, one.key, self.bank.name))
            await asked()
        return over

    async def _is_over(self, one: _Told) -> bool:
        """Whether nobody pays on a page any more; what was paid on it is a purchase of its own."""
        try:
            page = await self.bank.find_page(one.key, one.reference)
        except NoSuchPage:
            return True
        except (AcquirerRefused, OutcomeUnknown):
            return False
        return page.state is not PageState.OPEN


def _amount(page: Page) -> str:
    return f"{written(page.amount, page.currency)} {page.currency}"
