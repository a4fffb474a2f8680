"""One reading of an acquirer's list, and of our books beside it, both ways:
what differs, and what is adopted of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, Approved, OutcomeUnknown
from paydesk.adapters.acquirers.listing import ListedPurchase, ListedRefund
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.acquirers.accounts import tags_of
from paydesk.domain.acquirers.leases import Reader
from paydesk.domain.operations.accepting import those_accepted
from paydesk.domain.operations.adopting import adopt
from paydesk.domain.operations.catching_up import catch_up
from paydesk.domain.operations.comparing import UNKNOWN_HERE, difference, had_money, has_money, refund_difference
from paydesk.domain.operations.differences import (
    Adopted,
    Booked,
    BookedAttempt,
    BookedMovement,
    Difference,
    DifferenceKind,
    Differing,
    Listed,
    Reconciled,
    subject_of,
)
from paydesk.domain.operations.forgotten_pages import LIVES, Pages
from paydesk.domain.operations.telling_differences import AGREED, ENDED, Telling
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.found_movements import key_of

queries = load_statements(__package__ or "", "reconciling.sql")

_UNDONE = ":void"
"""What a key of a purchase ends with that was undone, since it must not have been."""

_AT_ONCE = 20
"""How many purchases that a list lacks are asked for at once."""

_PAUSES = (1.0, 5.0, 20.0)
"""Seconds before a page in the middle of a list is asked for again:
one lost answer must not end hours of reading."""

_Again = Callable[[], Awaitable[Sequence[Listed]]]
"""Reads a page once more."""
_Page = TypeVar("_Page")


@dataclass(frozen=True, slots=True)
class _Key:
    key: str


@dataclass(frozen=True, slots=True)
class _Approved:
    """An attempt that is approved in our books."""

    key: str
    merchant_id: int
    payment_id: int


@dataclass(slots=True)
class ListReading:
    """One reading of an acquirer's list; what is younger than `settled` is still being written
    down, here or there.

    `reader` proves before each write, and within it, that it is theirs to read still.
    """

    desk: Desk
    bank: Acquirer
    reader: Reader
    since: datetime
    now: datetime
    settled: timedelta
    found: Reconciled
    telling: Telling
    tags: frozenset[str] = frozenset()
    listed: set[str] = field(default_factory=set)
    undone: set[str] = field(default_factory=set)
    differing: list[Differing] = field(default_factory=list)
    strays: list[ListedRefund] = field(default_factory=list)
    paid_twice: list[str] = field(default_factory=list)

    @property
    def database(self) -> Database:
        """Our books."""
        return self.desk.database

    async def whole(self, told: Callable[[], None], *, fix: bool, both_ways: bool = True) -> None:
        """Pages, purchases, then refunds, then, `both_ways`, what the list lacks;
        with `fix` what was forgotten is adopted, and its pages are ended. Raises: ReadByAnother.
        """
        self.tags = await tags_of(self.database, self.bank.name)
        # Before the purchases: what is paid on a page until it is ended is one of them.
        await self._read_pages(told, fix=fix)
        after, is_over = "", False
        while not is_over:
            purchases = await self._page(self.bank.list_purchases, after)
            self.listed |= {one.key for one in purchases.purchases}
            self.found.purchases += len(purchases.purchases)
            await self._compare(purchases.purchases, self._purchases_again(after))
            after, is_over = purchases.next, not purchases.next
            await self._hold(told)
        after, is_over = "", False
        while not is_over:
            refunds = await self._page(self.bank.list_refunds, after)
            self.found.refunds += len(refunds.refunds)
            # Made in the acquirer's own pages, of what may be ours: known once its purchase is.
            self.strays += [one for one in refunds.refunds if one.of_key and not one.key]
            self.undone |= {one.key.removesuffix(_UNDONE) for one in refunds.refunds if one.key.endswith(_UNDONE)}
            await self._compare(refunds.refunds, self._refunds_again(after))
            after, is_over = refunds.next, not refunds.next
            await self._hold(told)
        # What was undone since it must not have been is none of our books' business.
        self.differing = [one for one in self.differing if one.booked is not None or one.listed.key not in self.undone]
        why = await self._fix(told) if fix else {}
        self._name(why)
        if both_ways:
            await self._look_for_missing()
        await self._leave_accepted()
        self.found.differences = await self.telling.differing(self.found.differences)

    async def _leave_accepted(self) -> None:
        """What an operator took as it is, and is so still, is no difference, nor given back."""
        self.found.accepted = await those_accepted(self.database, self.found.differences)
        left_alone = {one.subject for one in self.found.accepted}
        self.found.differences = [one for one in self.found.differences if one.subject not in left_alone]
        keys = {one.key for one in self.found.accepted}
        self.paid_twice = [key for key in self.paid_twice if key not in keys]

    async def _read_pages(self, told: Callable[[], None], *, fix: bool) -> None:
        """What may still be paid on pages that our books forgot; with `fix` they are ended."""
        if not self.bank.capabilities.pages:
            return
        since = max(self.since, self.now - LIVES)
        pages = Pages(self.database, self.bank, self.tags)

        async def hold() -> None:
            await self._hold(told)

        ended, differences = await pages.read(
            lambda after: self._page(self.bank.list_pages, after, since), hold, fix=fix
        )
        self.found.ended += ended
        self.found.differences += differences
        if self.telling.tells:
            await self.telling.over(await pages.mended(differences, hold), ENDED)

    async def _hold(self, told: Callable[[], None]) -> None:
        """Stay the one who reads this list, for one page more."""
        await self.reader.keep()
        told()

    async def _page(
        self, ask: Callable[[datetime, str], Awaitable[_Page]], after: str, since: datetime | None = None
    ) -> _Page:
        """A page of a list, tried again but for the first:
        that one shows at once whether the list can be read.
        """
        for pause in _PAUSES if after else ():
            try:
                return await ask(since or self.since, after)
            except OutcomeUnknown:
                await asyncio.sleep(pause)
        return await ask(since or self.since, after)

    def _purchases_again(self, after: str) -> _Again:
        async def again() -> Sequence[Listed]:
            return (await self._page(self.bank.list_purchases, after)).purchases

        return again

    def _refunds_again(self, after: str) -> _Again:
        async def again() -> Sequence[Listed]:
            return (await self._page(self.bank.list_refunds, after)).refunds

        return again

    async def _compare(self, page: Sequence[Listed], again: _Again) -> None:
        """Compare a page, and what differs once more:
        what moves between two readings is no difference.
        """
        differing = await self._differing(page)
        if differing:
            # Where others buy meanwhile, what stood last slides to the next page: it stays as it
            # was read.
            now = {_key(one): one for one in await again()}
            still = await self._differing([now.get(key, one.listed) for key, one in differing.items()])
            differing = {key: one for key, one in still.items() if one.difference == differing[key].difference}
        self.found.foreign += sum(not self._is_ours(one) for one in page if self._is_settled(one))
        self.differing += differing.values()
        await self._settle([one for one in page if one.key and _key(one) not in differing and self._is_settled(one)])

    async def _settle(self, agreeing: Sequence[Listed]) -> None:
        subjects = sorted(subject_of(_what(one), _key(one), self.bank.name) for one in agreeing)
        await self.telling.over(subjects, AGREED)

    def _is_settled(self, one: Listed) -> bool:
        return one.at < self.now - self.settled

    def _is_ours(self, one: Listed) -> bool:
        """Whether it carries a key of ours; a mark of another deployment says
        that it is that one's.
        """
        return bool(one.key) and not self._is_another_deployments(one)

    def _is_another_deployments(self, one: Listed) -> bool:
        return one.mark is not None and one.mark.deployment not in self.tags

    async def _differing(self, page: Sequence[Listed]) -> dict[str, Differing]:
        """What differs of our own, by key.

        What our books don't have is never too young: its intent is committed before it is
        asked for.
        """
        purchases = [one for one in page if isinstance(one, ListedPurchase) and self._is_ours(one)]
        refunds = [one for one in page if isinstance(one, ListedRefund) and (one.key or one.of_key)]
        if not purchases and not refunds:
            return {}
        keys = [one.key for one in purchases] + [key_of(one) for one in refunds]
        of_keys = (
            [one.key for one in purchases]
            + [one.of_key for one in refunds]
            + [one.key.removesuffix(_UNDONE) for one in refunds]
        )
        attempts = await self._attempts(of_keys)
        movements = await self._movements(keys)
        elsewhere = await self._elsewhere(keys, of_keys)
        differing: dict[str, Differing] = {}
        listed: list[Listed] = [*purchases, *refunds]
        for one in listed:
            if one.key in elsewhere or (isinstance(one, ListedRefund) and one.of_key in elsewhere):
                continue
            if isinstance(one, ListedPurchase):
                booked: Booked | None = attempts.get(one.key)
                reason = self._of_purchase(one, attempts.get(one.key))
            else:
                booked, reason = self._of_refund(one, movements.get(key_of(one)), attempts)
            if reason is not None:
                differing[_key(one)] = Differing(one, self._differs(one, reason, booked), booked)
        return differing

    def _of_purchase(self, one: ListedPurchase, attempt: BookedAttempt | None) -> str | None:
        """What differs of a purchase; one that is not in our books and took nothing,
        or has no mark, is no matter.
        """
        if attempt is not None:
            return difference(one, attempt) if self._is_settled(one) else None
        if one.mark is None or not had_money(one):
            return None
        return noted(
            "%(unknown)s (order %(order)s, payment %(payment_id)s, %(amount)s %(currency)s)",
            unknown=UNKNOWN_HERE,
            order=one.mark.order,
            payment_id=one.mark.payment_id,
            amount=one.amount,
            currency=one.currency,
        )

    def _of_refund(
        self, one: ListedRefund, movement: BookedMovement | None, attempts: Mapping[str, BookedAttempt]
    ) -> tuple[Booked | None, str | None]:
        """What we have of a refund, or of its purchase, and what differs."""
        purchase = attempts.get(one.of_key)
        was_undone = one.key.endswith(_UNDONE)
        is_foreign = self._is_another_deployments(one) or (not one.key and purchase is None)
        if is_foreign or was_undone or (movement is not None and not self._is_settled(one)):
            return None, None
        return movement or purchase, refund_difference(one, movement)

    def _differs(self, one: Listed, reason: str, booked: Booked | None) -> Difference:
        whose = (booked.merchant_id, booked.payment_id) if booked is not None else (None, None)
        is_known = isinstance(booked, BookedMovement) or (booked is not None and isinstance(one, ListedPurchase))
        kind = DifferenceKind.DIFFERS if is_known else DifferenceKind.UNKNOWN_HERE
        return Difference(self.bank.name, _what(one), one.key, one.reference, reason, kind, *whose)

    async def _attempts(self, keys: Sequence[str]) -> dict[str, BookedAttempt]:
        """The attempts behind keys."""
        rows = queries.attempts_named(self.database, acquirer=self.bank.name, keys=_named(keys))
        return {one.key: one for one in await records_of(BookedAttempt, rows)}

    async def _movements(self, keys: Sequence[str]) -> dict[str, BookedMovement]:
        """The captures, voids and refunds behind keys."""
        rows = queries.movements_named(self.database, acquirer=self.bank.name, keys=_named(keys))
        return {one.key: one for one in await records_of(BookedMovement, rows)}

    async def _elsewhere(self, keys: Sequence[str], of_keys: Sequence[str]) -> set[str]:
        """Which keys are of test sides that were emptied, or of checks of new cards."""
        acquirer = self.bank.name
        emptied = queries.forgotten(self.database, acquirer=acquirer, keys=_named([*keys, *of_keys]))
        checks = queries.card_changes_named(self.database, acquirer=acquirer, keys=_named(keys))
        return {one.key for one in (*await records_of(_Key, emptied), *await records_of(_Key, checks))}

    async def _fix(self, told: Callable[[], None]) -> dict[str, str]:
        """Adopt what can be; why the rest can't be, by key. Moves no money."""
        why: dict[str, str] = {}
        forgotten = [
            one.listed for one in self.differing if isinstance(one.listed, ListedPurchase) and one.booked is None
        ]
        within = self.reader.holding
        async for each in adopt(self.desk, self.bank.name, forgotten, within=within):
            if isinstance(each, Adopted):
                self.found.adopted.append(each)
            else:
                why[each.listed.key] = each.reason
                self.paid_twice += [each.listed.key] if each.twice else []
            told()
        known = {one.key for one in self.found.adopted}
        more = [one for one in self.strays if one.of_key in known]
        differing = await self._again(more)
        async for adopted in catch_up(self.desk, self.bank.name, differing, within=within, now=self.now):
            self.found.adopted.append(adopted)
            told()
        left = await self._again(more)
        keys = {_key(one.listed) for one in left}
        await self._settle([one.listed for one in self.differing if _key(one.listed) not in keys])
        self.differing = left
        return why

    async def _again(self, more: Sequence[Listed]) -> list[Differing]:
        """What differs still of what differed, and now of what was adopted."""
        return list((await self._differing([*(one.listed for one in self.differing), *more])).values())

    def _name(self, why: Mapping[str, str]) -> None:
        """Name what is left, with the reason why it can't be adopted where that is known.

        What can't be adopted, and of which all went back, is over: it is named no more, nor are
        its refunds.
        """
        over = {one.listed.key for one in self.differing if one.listed.key in why and not _has_money(one.listed)}
        for one in self.differing:
            if one.listed.key in over or (isinstance(one.listed, ListedRefund) and one.listed.of_key in over):
                continue
            reason = why.get(one.listed.key) if isinstance(one.listed, ListedPurchase) and one.booked is None else None
            told = one.difference
            if reason is not None:
                told = replace(told, reason=f"{told.reason}: {reason}", why_kept=reason)
            self.found.differences.append(told)

    async def _look_for_missing(self) -> None:
        """What is approved in our books, and neither listed there, though made in this time,
        nor known by key.
        """
        rows = queries.approved_between(
            self.database, acquirer=self.bank.name, since=self.since + self.settled, until=self.now - self.settled
        )
        unlisted = [one for one in await records_of(_Approved, rows) if one.key not in self.listed]
        missing = []
        for start in range(0, len(unlisted), _AT_ONCE):
            some = unlisted[start : start + _AT_ONCE]
            known = await asyncio.gather(*(self._is_known_there(one) for one in some))
            missing += [self._missing(one) for one, is_known in zip(some, known, strict=True) if not is_known]
            await self.reader.keep()
        self.found.differences += missing

    async def _is_known_there(self, one: _Approved) -> bool:
        """Whether the acquirer says, asked by key, that it approved a purchase
        which its list lacks.
        """
        try:
            return isinstance(await self.bank.find(one.key), Approved)
        except (AcquirerRefused, OutcomeUnknown):
            return False

    def _missing(self, one: _Approved) -> Difference:
        reason = noted("it is approved in our books, and the acquirer neither lists it nor knows it by its key")
        kind, whose = DifferenceKind.UNKNOWN_THERE, (one.merchant_id, one.payment_id)
        return Difference(self.bank.name, "purchase", one.key, "", reason, kind, *whose)


def _what(one: Listed) -> str:
    return "purchase" if isinstance(one, ListedPurchase) else "refund"


def _has_money(one: Listed) -> bool:
    return isinstance(one, ListedPurchase) and has_money(one)


def _key(one: Listed) -> str:
    """By what something listed is known."""
    return one.key if isinstance(one, ListedPurchase) else key_of(one)


def _named(keys: Sequence[str]) -> list[str]:
    """The keys to ask for, each once: what was made in an acquirer's own pages has none."""
    return sorted({key for key in keys if key})
