"""Taking due pingbacks from the database, fairly:
merchants in turn, no URL and no merchant more than its share.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.pool import Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.pingbacks import metrics
from paydesk.domain.pingbacks.keyring import Keyring
from paydesk.domain.pingbacks.passed_sides import PassedSides, Side
from paydesk.domain.pingbacks.recording import Name, postpone, subject_of

queries = load_statements(__package__ or "")

Endpoint = tuple[int, bool, str]
"""Where pingbacks of one merchant's side go: its id, live or test, the URL."""

_FIRST: Side = (0, False)


class Claimed(msgspec.Struct, frozen=True):
    """A pingback that this process may send.

    The lease began at `began` (monotonic seconds), when the merchant's side had the time `now` (a
    test clock may run ahead).
    """

    name: Name
    url: str
    sign_version: str
    body_format: str
    payload: str
    private_key: str
    due_at: datetime
    now: datetime
    began: float

    def __repr__(self) -> str:
        """No more than which it is: the rest is the customer's and the merchant's."""
        return f"Claimed({self.name}, {self.url!r})"

    def at(self) -> datetime:
        """This moment in the merchant's time."""
        return self.now + timedelta(seconds=time.monotonic() - self.began)


class _Row(msgspec.Struct, frozen=True):
    """A row of `claim`: where it goes on, and a pingback; without an id a side and how far it was
    passed, or nothing of its own at all if nothing was found.
    """

    next_merchant_id: int | None
    next_live: bool | None
    merchant_id: int | None
    live: bool
    id: int | None
    url: str
    sign_version: str
    format: str
    payload: str
    due_at: datetime
    shop_now: datetime
    passed_to: datetime | None
    key_id: int

    @property
    def next_place(self) -> Side:
        """The merchant's side that the next claim goes on after."""
        return _FIRST if self.next_merchant_id is None else (self.next_merchant_id, bool(self.next_live))

    @property
    def name(self) -> Name:
        """The pingback that was taken."""
        assert self.merchant_id is not None, "a pingback is a merchant's"
        assert self.id is not None, "only rows with an id are pingbacks"
        return self.merchant_id, self.live, self.id

    @property
    def passed_side(self) -> Side | None:
        """The side of which the row tells how far it was passed, if it does."""
        return (self.merchant_id, self.live) if self.id is None and self.merchant_id is not None else None

    @property
    def key(self) -> tuple[int, int]:
        """The key that it is stamped with."""
        return self.name[0], self.key_id


@dataclass(frozen=True, slots=True)
class Load:
    """What a sender has in hand for one endpoint, and how much more of it may come."""

    endpoint: Endpoint
    load: int
    room: int


@dataclass(frozen=True, slots=True)
class ClaimShare:
    """How much one claim takes: of all, of all test sides, of an owner, of a side, of a URL;
    how many sides it sees.
    """

    room: int
    test: int
    owner: int
    side: int
    endpoint: int
    sides: int


class Claims:
    """Goes round the merchants, so that each has its turn however many there are."""

    def __init__(self, database: Database, keyring: Keyring, lease: timedelta) -> None:
        self._database = database
        self._keyring = keyring
        self._lease = lease
        self._place = _FIRST
        self._passed_sides = PassedSides()

    @property
    def is_round_complete(self) -> bool:
        """Whether the last claim came to the end of the merchants, so that the next begins anew."""
        return self._place == _FIRST

    async def take(
        self, now: datetime, share: ClaimShare, lanes: Sequence[Load], *, merchant_id: int | None = None
    ) -> list[Claimed]:
        """Lease pingbacks that are due at `now` (real time; each side has its own by it),
        each merchant's oldest first.

        With `merchant_id` only that merchant's test side counts, and `now` is its time.

        Raises: what the database raises when it is away.
        """
        began = time.monotonic()
        place = self._place if merchant_id is None else (merchant_id - 1, True)
        full = _full_urls(lanes) if merchant_id is None else {}
        known = self._passed_sides.known(full) if merchant_id is None else {}
        rows = await records_of(
            _Row,
            queries.claim(
                self._database,
                now=now,
                merchant_id=merchant_id,
                lease=self._lease,
                after_merchant_id=place[0],
                after_live=place[1],
                most_sides=share.sides if merchant_id is None else 1,
                room=share.room,
                test_room=share.test,
                owner_room=share.owner,
                side_room=share.side,
                endpoint_room=share.endpoint,
                lane_merchant_ids=[lane.endpoint[0] for lane in lanes],
                lane_lives=[lane.endpoint[1] for lane in lanes],
                lane_urls=[lane.endpoint[2] for lane in lanes],
                lane_loads=[lane.load for lane in lanes],
                lane_rooms=[lane.room for lane in lanes],
                known_merchant_ids=[side[0] for side in known],
                known_lives=[side[1] for side in known],
                known_sinces=list(known.values()),
            ),
        )
        if merchant_id is None:
            self._place = rows[0].next_place
            self._note(rows, full, known)
        return await self._opened([row for row in rows if row.id is not None], began)

    async def is_any_due(self) -> bool:
        """Whether anything is due to anybody, now or later: what costs next to nothing to ask."""
        return await queries.first_due(self._database) is not None

    def look_anew(self) -> None:
        """Have the next claims look at all that is due, whatever those before have seen."""
        self._passed_sides = PassedSides()

    def _note(
        self, rows: Sequence[_Row], full: Mapping[Side, frozenset[str]], known: Mapping[Side, datetime | None]
    ) -> None:
        """Remember how far the sides were passed."""
        for row in rows:
            if side := row.passed_side:
                urls, is_whole = full.get(side, frozenset()), known.get(side) is None
                self._passed_sides.note(side, urls, row.passed_to, at=row.shop_now, is_whole=is_whole)

    async def _opened(self, rows: Sequence[_Row], began: float) -> list[Claimed]:
        """Add the private keys; what can't be stamped is tried again later,
        and waits in the operator's list.
        """
        metrics.CLAIMED.inc(len(rows))
        keys = await self._keyring.private_keys({row.key for row in rows})
        await self._set_aside([row for row in rows if row.key not in keys])
        return [
            Claimed(
                name=row.name,
                url=row.url,
                sign_version=row.sign_version,
                body_format=row.format,
                payload=row.payload,
                private_key=keys[row.key],
                due_at=row.due_at,
                now=row.shop_now,
                began=began,
            )
            for row in rows
            if row.key in keys
        ]

    async def _set_aside(self, rows: Sequence[_Row]) -> None:
        """Once a key can be opened again its pingbacks go out, half an hour later at most."""
        names = [row.name for row in rows]
        await postpone(self._database, names)
        alarms = []
        for name in names:
            shop, subject = subject_of(name)
            alarms.append(Alarm(AlarmKind.set_aside, subject, noted("its private key can't be opened"), shop))
        await raise_alarms(self._database, alarms, now=utc_now())

    async def give_back(self, names: Iterable[Name]) -> None:
        """End the leases of what was not sent."""
        merchant_ids, lives, ids = zip(*names, strict=True)
        await queries.release(self._database, merchant_ids=merchant_ids, lives=lives, ids=ids)


def _full_urls(lanes: Iterable[Load]) -> dict[Side, frozenset[str]]:
    """The URLs that have no room, side by side."""
    full = defaultdict[Side, set[str]](set)
    for lane in lanes:
        if lane.room <= 0:
            full[lane.endpoint[:2]].add(lane.endpoint[2])
    return {side: frozenset(urls) for side, urls in full.items()}
