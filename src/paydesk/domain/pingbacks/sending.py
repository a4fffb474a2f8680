"""The sender: claims due pingbacks, posts them, records what came of it.

At least once, whatever dies: a pingback is leased, not taken away, and only a recorded outcome
moves it on. A sender that dies leaves leases that run out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from paydesk.adapters.outbound import Answer, OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.database.pool import AWAY, Database
from paydesk.database.statements import load_statements
from paydesk.domain.pingbacks import metrics
from paydesk.domain.pingbacks.claiming import Claimed, Claims, ClaimShare
from paydesk.domain.pingbacks.keyring import Keyring
from paydesk.domain.pingbacks.lanes import Lanes
from paydesk.domain.pingbacks.recording import Name, Recorder, Sending
from paydesk.domain.pingbacks.stamping import IN_CLEAR, is_in_clear, masked, stamp
from paydesk.domain.pingbacks.telling import tell
from paydesk.domain.pingbacks.waking import Paced
from paydesk.loops.repeating import repeat

_TO_RECORD_SECONDS = 5.0

_SPARE, _SPARE_PER_ENDPOINT = 4, 2
"""One part in so many is kept free beside what may be in hand;
and of one endpoint, until it is known to be quick."""

_OF_ONE_OWNER = 4
"""One part in so many of what may be in hand may hang for all the shops that one person owns."""

_LATELY = 5.0
"""Seconds after a word or a pingback in which more is looked for often: clocks differ a bit, so
what was said may be due here only a moment later, and words may be lost."""

_UNRECORDED = 3
"""So many times what may be in hand may wait to be recorded: it holds up no endpoint."""

queries = load_statements(__package__ or "")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """How a sender works; times in seconds.

    `in_hand` limits what one sender has claimed in all and has no answer to (and a quarter more for
    endpoints that owe none), `per_merchant` of one merchant's side, `per_endpoint` how many
    requests to one URL are under way at once. `poll` is the pause when nothing is due, unless a
    word ends it (`wake`), and `quiet` the one where words are heard and nothing was due lately.
    `lease` must be longer than a call's timeout with time to record it; what has waited too long
    for the lease to cover a call is not sent under it. `grace` is what requests under way get when
    the sender stops.
    """

    header_prefix: str = "X-Service"
    in_hand: int = 768
    per_merchant: int = 128
    per_endpoint: int = 32
    poll: float = 0.2
    quiet: float = 1.0
    lease: float = 40.0
    grace: float = 5.0
    sides_per_claim: int = 64


class PingbackSender:
    """Sends pingbacks; any number of senders may work on one database."""

    def __init__(
        self, database: Database, vault: Vault, outbound: OutboundClient, settings: SenderSettings | None = None
    ) -> None:
        self._database = database
        self._outbound = outbound
        self._settings = settings or SenderSettings()
        self._claims = Claims(database, Keyring(database, vault), timedelta(seconds=self._settings.lease))
        self._recorder = Recorder(database, self._let_go)
        self._lanes = Lanes(self._settings.per_endpoint, self._deliver)
        self._in_hand: set[Name] = set()
        self._unanswered: set[Name] = set()
        self._is_told = False
        self._is_telling = False
        self._is_behind = False
        self._is_idle = False
        self._busy_until = 0.0
        self.wake = Paced(self._look_at_once)

    async def run(self, stop: asyncio.Event, *, hears: Callable[[], bool] = lambda: False) -> None:
        """Send what is due, as it becomes due, until `stop` is set;
        then finish what is under way and record it. `hears` is whether other processes' words come.

        While the database is away it waits; outcomes are kept and recorded when it is back.
        """
        ended = asyncio.Event()
        recording = asyncio.ensure_future(self._recorder.run(ended))

        def rest() -> float:
            is_quiet = hears() and time.monotonic() > self._busy_until
            return self._settings.quiet if is_quiet else self._settings.poll

        try:
            await repeat("pingbacks", self._claim_once, stop, rest=rest, wake=self._lanes.hungry, due=True)
        finally:
            self.wake.stop()
            await self._lanes.stop(self._settings.grace)
            await self._wind_up()
            recording.cancel()
            await asyncio.gather(recording, return_exceptions=True)

    async def send_due_once(self, now: datetime, *, merchant_id: int | None = None) -> int:
        """Send everything that is due at `now` (real time), record it, and return how many attempts
        that were.

        With `merchant_id` only that merchant's test side is sent for, and `now` is its time (its
        clock is being moved).
        """
        self._claims.look_anew()
        sent = 0
        while of_round := await self._send_round(now, merchant_id):
            sent += of_round
        return sent

    async def _send_round(self, now: datetime, merchant_id: int | None) -> int:
        """Go once round the merchants, or to the one;
        returns how many attempts were made and recorded.
        """
        sent, is_complete = 0, False
        while not is_complete:
            sent += await self._claim(now, merchant_id)
            is_complete = merchant_id is not None or self._claims.is_round_complete
            await self._lanes.idle()
            await self._recorder.flush()
        return sent

    async def try_out(
        self, url: str, payload: str, *, sign_version: str, body_format: str, private_key: str, live: bool
    ) -> tuple[bytes, Answer]:
        """Post one payload that is no pingback, marked as a test event;
        returns the body as sent, and the answer.
        """
        body, headers = stamp(
            payload,
            sign_version=sign_version,
            body_format=body_format,
            private_key=private_key,
            header_prefix=self._settings.header_prefix,
            pingback_ts=int(utc_now().timestamp()),
        )
        marked = {**headers, f"{self._settings.header_prefix}-Test-Event": "1"}
        return body, await self._post(url, body, marked, sign_version=sign_version, live=live)

    @property
    def _room(self) -> int:
        """How many more may be claimed, of whomever."""
        return self._room_within(self._settings.in_hand)

    @property
    def _spare_room(self) -> int:
        """How many more may be claimed for endpoints that owe no answer:
        so many dead ones can't stop a living one.
        """
        return self._room_within(self._settings.in_hand + self._settings.in_hand // _SPARE)

    def _room_within(self, most: int) -> int:
        """How many more may be claimed if so many may wait for answers;
        none while the database lags behind with recording.
        """
        if len(self._recorder) >= most * _UNRECORDED:
            self._is_behind = True
            return 0
        return max(most - len(self._unanswered), 0)

    @property
    def _test_room(self) -> int:
        """How many more may be claimed of test sides:
        half of what is spare is there for live ones alone.
        """
        most = self._settings.in_hand + self._settings.in_hand // _SPARE // 2
        return max(most - sum(not live for _, live, _ in self._unanswered), 0)

    async def _claim_once(self) -> bool:
        """Claim what there is room for; true if there is room for more of the merchants who have
        not had their turn, or for what is due since.
        """
        was_told, self._is_told = self._is_told, False
        if self._is_idle and not was_told and not await self._claims.is_any_due():
            return False
        claimed = await self._claim(utc_now())
        self._is_idle = not claimed and self._claims.is_round_complete
        if claimed:
            self._busy_until = time.monotonic() + _LATELY
        is_told = self._is_told  # While it was claimed, so that the claim may not have seen it.
        return self._spare_room > 0 and (is_told or not self._claims.is_round_complete)

    def _look_at_once(self) -> None:
        """Something was said to be due."""
        self._is_told = True
        self._busy_until = time.monotonic() + _LATELY
        self._lanes.hungry.set()

    async def _claim(self, now: datetime, merchant_id: int | None = None) -> int:
        """Claim into the lanes what is due at `now`, of everybody or of one test side;
        returns how many.
        """
        # Asked once for all: who logs may be another one by now.
        self._is_telling = log.is_enabled_for(logging.DEBUG)
        room, is_spare = self._room or self._spare_room, not self._room
        if not room:
            return 0
        share = ClaimShare(
            room=room,
            test=self._test_room,
            owner=max(self._settings.in_hand // _OF_ONE_OWNER, self._settings.per_endpoint),
            side=self._settings.per_merchant,
            # Of an endpoint that nothing is known of yet, little of what is spare.
            endpoint=min(_SPARE_PER_ENDPOINT, self._settings.per_endpoint) if is_spare else self._settings.per_endpoint,
            sides=min(self._settings.sides_per_claim, room),
        )
        loads = self._lanes.loads
        lanes = [replace(each, room=0) if each.load else each for each in loads] if is_spare else loads
        claimed = await self._claims.take(now, share, lanes, merchant_id=merchant_id)
        fresh = [one for one in claimed if one.name not in self._in_hand]
        self._in_hand.update(one.name for one in fresh)
        self._unanswered.update(one.name for one in fresh)
        metrics.IN_HAND.set(len(self._in_hand))
        self._lanes.add(fresh, loads)
        return len(fresh)

    async def _deliver(self, one: Claimed) -> float:
        """Make one attempt, and return how long the endpoint took;
        what fails here is tried again later.
        """
        try:
            if time.monotonic() - one.began < self._settings.lease - self._outbound.timeout - _TO_RECORD_SECONDS:
                return await self._attempt(one)
        except Exception:
            log.exception("pingback_not_sent", merchant_id=one.name[0], pingback_id=one.name[2])
        self._let_go([one.name])
        return self._outbound.timeout

    async def _attempt(self, one: Claimed) -> float:
        """Post the pingback and have the attempt recorded; returns how long the endpoint took."""
        at = one.at()
        body, headers = stamp(
            one.payload,
            sign_version=one.sign_version,
            body_format=one.body_format,
            private_key=one.private_key,
            header_prefix=self._settings.header_prefix,
            pingback_ts=int(utc_now().timestamp()),
        )
        answer = await self._post(
            one.url, body, headers, sign_version=one.sign_version, live=one.name[1], merchant_id=one.name[0]
        )
        self._unanswered.discard(one.name)
        self._recorder.add(Sending(name=one.name, url=one.url, at=at, body=body, answer=answer))
        if self._is_telling:
            tell(log, "a pingback was answered", one.payload, one.url, answer)
        metrics.LAG.observe(max((at - one.due_at).total_seconds(), 0.0))
        return answer.duration

    async def _post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        sign_version: str,
        live: bool,
        merchant_id: int | None = None,
    ) -> Answer:
        """Post, unless that would give the private key away;
        then the answer says so, as of any attempt that failed.

        A connection is kept for one merchant in one mode: what is wrong with one shop's answers
        falls upon no other.
        """
        if is_in_clear(url, sign_version=sign_version, live=live):
            return Answer(None, b"", False, IN_CLEAR, 0.0, masked(headers))
        whose = None if merchant_id is None else (merchant_id, live)
        return await self._outbound.post(url, body, headers, whose=whose)

    def _let_go(self, names: Sequence[Name]) -> None:
        """These are no longer this sender's business."""
        self._in_hand.difference_update(names)
        self._unanswered.difference_update(names)
        metrics.IN_HAND.set(len(self._in_hand))
        if self._is_behind:
            self._is_behind = False
            self._lanes.hungry.set()

    async def _wind_up(self) -> None:
        """Record what was sent and give back what was not;
        if the database is away, the leases see to it.
        """
        with suppress(*AWAY):
            async with asyncio.timeout(self._settings.grace):
                await self._recorder.flush()
                if self._in_hand:
                    await self._claims.give_back(self._in_hand)
        self._in_hand.clear()
        self._unanswered.clear()
