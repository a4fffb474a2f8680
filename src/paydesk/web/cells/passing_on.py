"""Passes on, once, what has come to another cell than its merchant's, and gives the answer back.

A cell first does what it always does: what it has itself costs nothing more. Only an answer that
says that nothing was found is held back until the directory says that it is nowhere else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final

import structlog
from prometheus_client import Counter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paydesk.adapters.vault import Vault
from paydesk.core.errors import PaydeskError, TooLarge
from paydesk.database.pool import AWAY
from paydesk.domain.accounts.access_needs import Gate
from paydesk.domain.cells.directory import Cell, Kind
from paydesk.domain.cells.finding import Finder, NotKnownYet
from paydesk.web.cells.arriving import target_of
from paydesk.web.cells.calling import OF_ONE_HOP, Answer, OtherCells, why_away
from paydesk.web.cells.marks import HEADER, Passed, mark
from paydesk.web.cells.naming import (
    Named,
    asker_of,
    may_be_elsewhere,
    named_by_address,
    named_by_body,
)
from paydesk.web.cells.places import Asker, NoPlace
from paydesk.web.cells.watching import Watch
from paydesk.web.connections.limits import LARGEST_BODY
from paydesk.web.minute_budgets import MinuteBudget
from paydesk.web.visits import PASSED_ON, SANDBOX, TAKEN_ELSEWHERE, Network, client_address

PASSED = Counter(
    "paydesk_passed_on_total",
    "Requests for merchants of other cells, by cell and what came of them",
    ["cell", "outcome"],
)

HOME_A_MINUTE, HOME_ADDRESS_A_MINUTE = 600, 60
"""Times that one process asks the home cell in a minute for what strangers name, and for those of
one address."""

LARGEST_PLAIN: Final = 128 * 1024
"""Bytes of a body that no private key leads to a cell: as many as a door reads of a stranger's. Who
names one may bring files; a header alone says nothing, where a link has led.
"""

_REFUSES: Final = (400, 403, 404)
"""What another cell says of what is none of its own; whoever has verified it here is told that."""

_NOT_SENT: Final = frozenset((*OF_ONE_HOP, b"content-length", b"expect", b"x-forwarded-for", HEADER.encode()))
NOT_HERE: Final = "x-paydesk-not-here"
"""The header of an answer to another cell which says that what it has passed on belongs to a third
one, and that nothing was done: its copy of the directory may be behind.
"""

_NOT_GIVEN: Final = frozenset((*OF_ONE_HOP, b"date", b"x-request-id", NOT_HERE.encode()))
"""What this process says itself."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class BetweenCells:
    """What a process works with; it stands in the state that every request carries. `names` are
    host names that cells have in common.
    """

    key: ClassVar[str] = "cells"

    finder: Finder
    others: OtherCells
    watch: Watch
    gate: Gate
    names: tuple[str, ...] = ()

    @property
    def has_others(self) -> bool:
        """Whether there are other cells, or may soon be."""
        return self.finder.standing.has_cells

    @property
    def own(self) -> int:
        """This cell's number."""
        return self.finder.standing.number


class _NotHere(NotKnownYet):
    """Another cell has passed on what is a third one's, or what nobody has just now."""


class _NotThere(NotKnownYet):
    """The cell to which it was passed on says that it is not there, and nothing was done."""


class PassingOn:
    """Stands before the doors of a cell; `refusal` makes an answer of an error."""

    def __init__(
        self,
        app: ASGIApp,
        vault: Vault,
        trusted_proxies: tuple[Network, ...],
        refusal: Callable[[Request, PaydeskError], Awaitable[Response]],
        now: Callable[[], datetime],
    ) -> None:
        self.app = app
        self._vault = vault
        self._trusted = trusted_proxies
        self._refusal = refusal
        self._now = now
        self._budget = MinuteBudget(HOME_A_MINUTE, HOME_ADDRESS_A_MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer here, or have another cell answer."""
        between: BetweenCells | None = scope.get("state", {}).get(BetweenCells.key)
        if scope["type"] != "http" or between is None or not await self._has_cells(between.finder):
            await self.app(scope, receive, send)
            return
        body, answer = _Body(receive), _HeldBack(scope, send)
        is_gone = await self._is_of_gone(between.finder, scope)
        if not is_gone:
            await self.app(scope, body.receive, answer.send)
            if not answer.held:
                return
        try:
            named = named_by_address(scope, self._vault) or named_by_body(scope, body.so_far)
            cell = await self._other_cell(between.finder, scope, named) if named else None
            if named and cell and await self._pass_on(between, cell, named, scope, body, answer):
                return
            if is_gone:
                raise NotKnownYet
            await answer.let_go()
        except PaydeskError as error:
            refusal = await self._refusal(Request(scope, receive), error)
            if isinstance(error, _NotHere):
                refusal.headers[NOT_HERE] = "1"
            await refusal(scope, receive, send)
        except ClientDisconnect:
            await answer.let_go()

    async def _has_cells(self, finder: Finder) -> bool:
        """Whether there are other cells: looked for now where the database was away when this
        process began, or what another cell has would be refused until the next look.
        """
        if not finder.has_looked:
            with suppress(*AWAY):
                await finder.look_at_standing()
        return finder.standing.has_cells

    async def _is_of_gone(self, finder: Finder, scope: Scope) -> bool:
        """Whether it names a merchant that has left, and has not come back since somebody looked:
        what is here would be answered as it was.
        """
        named = named_by_address(scope, self._vault) if finder.gone else None
        if named is None or named.kind is not Kind.merchant or int(named.value) not in finder.gone:
            return False
        with suppress(*AWAY):
            await finder.look_at_standing()
        return int(named.value) in finder.gone

    async def _other_cell(self, finder: Finder, scope: Scope, named: Named) -> Cell | None:
        """The cell that has what this one has not; None if none has.

        Raises: NotKnownYet.
        """
        try:
            return await finder.find_other(*named, self._may_ask(scope))
        except AWAY as error:
            log.warning("the directory can't be read", why=f"{type(error).__name__}: {error}")
            raise NotKnownYet from error

    def _may_ask(self, scope: Scope) -> Callable[[], bool]:
        """Whether home may be asked once more for who has sent a request."""
        client = client_address(scope, self._trusted)
        return lambda: self._budget.take(client, now=self._now())

    async def _pass_on(
        self, between: BetweenCells, cell: Cell, named: Named, scope: Scope, body: _Body, own: _HeldBack
    ) -> bool:
        """Have another cell answer; false if it refuses what was good here, whose answer stands.

        If that one says that it is a third one's, whom home knows by now, that one is asked.
        Raises: Unavailable, Unsure, TooLarge, ClientDisconnect.
        """
        if PASSED_ON in scope:
            log.warning("another cell has passed on what is not here", cell=cell.number)
            PASSED.labels(str(cell.number), "not_again").inc()
            raise _NotHere
        try:
            return await self._answered(between.others, cell, named, scope, body, own)
        except _NotThere:
            third = await between.finder.find_at_home(*named, self._may_ask(scope))
            if third is None or third.number == cell.number:
                raise
        return await self._answered(between.others, third, named, scope, body, own)

    async def _answered(
        self, others: OtherCells, cell: Cell, named: Named, scope: Scope, body: _Body, own: _HeldBack
    ) -> bool:
        """The same of one cell. Raises: _NotThere, and what `_pass_on` raises."""
        whole = await body.whole(LARGEST_BODY if named.kind is Kind.private_key else LARGEST_PLAIN)
        target, method = target_of(scope), scope["method"]
        client = client_address(scope, self._trusted)
        passed = Passed(client, scope.get(SANDBOX))
        asker = asker_of(scope, named, client, is_verified=own.is_good)
        # The mark comes first: it makes room for itself in the head that the other cell reads.
        marked = (HEADER, mark(self._vault, method, target, passed, now=self._now()))
        headers = [marked, *_texts(_without(scope["headers"], _NOT_SENT)), ("content-length", str(len(whole)))]
        try:
            async with others.asked(cell, method, target, headers, whole, asker=asker) as answer:
                if NOT_HERE in answer.head.headers:
                    raise _NotThere
                log.info("passed on", cell=cell.number, their_id=answer.head.headers.get("x-request-id", ""))
                PASSED.labels(str(cell.number), "answered").inc()
                if answer.head.ok and TAKEN_ELSEWHERE in scope:
                    scope[TAKEN_ELSEWHERE]()
                if own.is_good and answer.head.status in _REFUSES:
                    return False
                await _give_back(answer, own.send_through)
                return True
        except _NotThere:
            log.warning("another cell does not have what this one's directory says", cell=cell.number)
            PASSED.labels(str(cell.number), "not_there").inc()
            raise
        except PaydeskError as error:
            _note_in_vain(cell, named, asker, error)
            raise


def _note_in_vain(cell: Cell, named: Named, asker: Asker, error: PaydeskError) -> None:
    """Count and log why another cell has not answered; no client's address, as in all logs."""
    if isinstance(error, NoPlace):
        sender = "address" if asker.sender.startswith("address ") else asker.sender
        log.warning("no place at another cell for who asks", cell=cell.number, about=str(named), sender=sender)
        PASSED.labels(str(cell.number), "full" if error.is_full else "share").inc()
        return
    log.warning("another cell does not answer", cell=cell.number, why=why_away(error))
    PASSED.labels(str(cell.number), "away").inc()


class _Body:
    """A request's body, as the door reads it, kept for the other cell."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._parts: list[bytes] = []
        self._is_whole = False

    @property
    def so_far(self) -> bytes:
        """What the door has read of it."""
        return b"".join(self._parts)

    async def receive(self) -> Message:
        """For the door."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._parts.append(message.get("body", b""))
            self._is_whole = not message.get("more_body", False)
        return message

    async def whole(self, largest: int) -> bytes:
        """All of it. Raises: TooLarge, ClientDisconnect."""
        while not self._is_whole and sum(map(len, self._parts)) <= largest:
            if (await self.receive())["type"] == "http.disconnect":
                raise ClientDisconnect
        if sum(map(len, self._parts)) > largest:
            raise TooLarge(f"the request is larger than {largest // 1024} KiB; send less")
        return self.so_far


class _HeldBack:
    """An answer, which goes out as it comes unless it says that nothing was found here."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.held = False
        self.is_good = False
        self.send_through = send
        self._scope = scope
        self._messages: list[Message] = []

    async def send(self, message: Message) -> None:
        """For the door."""
        if message["type"] == "http.response.start":
            self.is_good = message["status"] < 300
            self.held = may_be_elsewhere(self._scope, message["status"])
        if self.held:
            self._messages.append(message)
        else:
            await self.send_through(message)

    async def let_go(self) -> None:
        """Send what was held back."""
        for message in self._messages:
            await self.send_through(message)


async def _give_back(answer: Answer, send: Send) -> None:
    headers = list(_without(((name.lower(), value) for name, value in answer.head.raw_headers), _NOT_GIVEN))
    await send({"type": "http.response.start", "status": answer.head.status, "headers": headers})
    async for part in answer.parts():
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _without(headers: Iterable[tuple[bytes, bytes]], left_out: frozenset[bytes]) -> list[tuple[bytes, bytes]]:
    """Header fields without those left out, and without those that `Connection` names."""
    given = list(headers)
    named = {one.strip().lower() for name, value in given if name == b"connection" for one in value.split(b",")}
    return [one for one in given if one[0] not in left_out and one[0] not in named]


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("utf-8", "replace")) for name, value in headers]
