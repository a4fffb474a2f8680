"""The guard against card testing: a try is counted before the bank is asked,
and forgiven when it was none.

It is counted by who tries and by which card, in the statement that every try needs anyway
(`prepare_attempt`, `prepare_card_change`); so of any number of parallel tries no more reach the
bank than one after another would. A merchant whose customers are mostly declined has everybody
asked for 3-D Secure, and if that does not end it, pauses.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from ipaddress import IPv6Network, ip_address
from typing import TypeAlias

import msgspec
import structlog

from paydesk.adapters.acquirers.interface import Approved, Declined, DeclineReason, Outcome
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.vault import Vault
from paydesk.core.wording import noted
from paydesk.database.pool import AWAY, Database
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.kinds import AlarmKind
from paydesk.domain.alarms.raising import Alarm, raise_alarms
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments import metrics

queries = load_statements(__package__ or "", "card_guard.sql")
log = structlog.get_logger()

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

RATE_WINDOW = timedelta(minutes=10)
"""Over which a merchant's share of declines is reckoned."""

MINUTES_KEPT = timedelta(days=1)
"""How long the figures of single minutes are kept."""

AUTHENTICATE_FOR = timedelta(hours=1)
PAUSE_FOR = timedelta(minutes=15)

ABOUT = "checkouts"
"""What the alarm of a pause is about."""

MOSTLY = 0.5
"""The share of declines from which customers are no longer believed to be customers."""

CHECKS_PER_ADDRESS = 6
"""How many times as many free trials and checks of cards one address may make
as one card may pass."""

WIDER = {64: 1, 56: 2, 48: 4}
"""IPv6 prefixes that are counted, and how many times as much passes as from one /64,
which one household has."""


ANYWHERE = 3
"""How many times as much of a card passes at all merchants together as at one:
else each more would be more guesses."""

OUT_OF_THE_WAY = 1_000_000
"""A limit that nobody meets: the test side's, so that no test card ever stops a developer's
own tests."""


class Counted(StrEnum):
    """What is counted; a merchant may lower each limit by this name."""

    CHECKOUT = "checkout"
    ADDRESS = "address"
    CARD = "card"
    WRONG_CVC = "wrong_cvc"
    CHECK = "check"
    DECLINES = "declines"


@dataclass(frozen=True, slots=True)
class Limits:
    """Guards against card testing, for each merchant and mode:
    an hour's tries, a day's wrong security codes.

    `declines_before_challenge` are the declines in ten minutes from which, if most tries fail,
    everybody is asked for 3-D Secure; the same again afterwards makes the merchant pause.
    """

    attempts_per_checkout: int = 10
    declines_per_hour: int = 30
    tries_per_card: int = 20
    wrong_cvcs_per_card: int = 10
    checks_per_card: int = 10
    declines_before_challenge: int = 50

    def most(self, kind: Counted) -> int:
        """How many of a kind pass."""
        return {
            Counted.CHECKOUT: self.attempts_per_checkout,
            Counted.ADDRESS: self.declines_per_hour,
            Counted.CARD: self.tries_per_card,
            Counted.WRONG_CVC: self.wrong_cvcs_per_card,
            Counted.CHECK: self.checks_per_card,
            Counted.DECLINES: self.declines_before_challenge,
        }[kind]


def in_test_mode(limits: Limits) -> Limits:
    """The limits of test sides: only a checkout's stays, until a merchant sets others
    to see the guard at work.
    """
    return replace(
        limits,
        declines_per_hour=OUT_OF_THE_WAY,
        tries_per_card=OUT_OF_THE_WAY,
        wrong_cvcs_per_card=OUT_OF_THE_WAY,
        checks_per_card=OUT_OF_THE_WAY,
        declines_before_challenge=OUT_OF_THE_WAY,
    )


@dataclass(frozen=True, slots=True)
class Count:
    """One thing that a try is counted by; `factor` is how many times the limit of its kind passes.

    `anywhere`: the count is one for all merchants, whose own limits don't touch it.
    """

    kind: Counted
    subject: str
    factor: int = 1
    anywhere: bool = False

    @property
    def name(self) -> str:
        """What its limit is called in metrics; merchants' own limits are by this name, too."""
        return f"{self.kind}_anywhere" if self.anywhere else str(self.kind)

    @property
    def span(self) -> timedelta:
        """How long a try is remembered, from the first one on."""
        return DAY if self.kind is Counted.WRONG_CVC else HOUR


def counts_of(vault: Vault, card: CardDetails, client_address: str, *, live: bool, is_check: bool) -> list[Count]:
    """What a try is counted by; `is_check` if an approval takes little or nothing:
    a check of a card, a trial.

    Cards and addresses are known by fingerprints under the newest vault key, kept for a day at
    most. A live card is counted at all merchants together, besides; test cards are everybody's.
    """
    kinds = [Counted.CARD, *([Counted.WRONG_CVC] if card.cvc is not None else [])]
    subjects = [(kind, _subject(vault, _CALLED[kind], card.number)) for kind in kinds]
    counts = [*address_counts(vault, client_address), *(Count(kind, subject) for kind, subject in subjects)]
    if live:
        counts += [Count(kind, f"any {subject}", ANYWHERE, anywhere=True) for kind, subject in subjects]
    if is_check:
        counts.append(Count(Counted.CHECK, _subject(vault, "check", card.number)))
        counts.append(Count(Counted.CHECK, _subject(vault, "checks", client_address), CHECKS_PER_ADDRESS))
    return counts


def trial_counts(vault: Vault, email: str, client_address: str) -> list[Count]:
    """What the beginning of a trial without a card is counted by: who calls, and the address that
    is given, as a card would be.
    """
    counts = [*address_counts(vault, client_address), Count(Counted.CHECK, _subject(vault, "trial", email.lower()))]
    return [*counts, Count(Counted.CHECK, _subject(vault, "checks", client_address), CHECKS_PER_ADDRESS)]


_CALLED = {Counted.CARD: "card", Counted.WRONG_CVC: "cvc"}


def address_counts(vault: Vault, client_address: str) -> list[Count]:
    """What an address is counted by: IPv6 also by the wider networks that one customer
    of a provider may have.
    """
    networks = networks_of(client_address)
    return [Count(Counted.ADDRESS, _subject(vault, "address", name), factor) for name, factor in networks]


def networks_of(client_address: str) -> list[tuple[str, int]]:
    """The names under which an address is counted, and how many times as much passes."""
    try:
        address = ip_address(client_address)
    except ValueError:
        return [(client_address, 1)]
    if address.version == 4:
        return [(str(address), 1)]
    return [(str(IPv6Network((int(address), length), strict=False)), factor) for length, factor in WIDER.items()]


def _subject(vault: Vault, what: str, name: str) -> str:
    return f"{what} {vault.passing_fingerprint(f'{what} {name}', purpose='card try').hex()}"


def count_row(limits: Limits, counts: Sequence[Count], *, counted_at: datetime) -> dict[str, object]:
    """Counts as the statements that prepare a try take them; `counted_at` is real time."""
    return {
        "kinds": [count.name for count in counts],
        "subjects": [count.subject for count in counts],
        "anywhere": [count.anywhere for count in counts],
        "mosts": [limits.most(count.kind) for count in counts],
        "factors": [count.factor for count in counts],
        "spans": [count.span for count in counts],
        "checkout_most": limits.most(Counted.CHECKOUT),
        "address_most": limits.most(Counted.ADDRESS),
        "real_now": counted_at,
    }


class Try(msgspec.Struct, frozen=True):
    """What counting a try came to: who refuses it, and whether the bank is to see the customer."""

    card_id: int
    refused: list[str]
    authenticate: bool
    paused: bool


def is_refused(known: Try) -> bool:
    """Whether what was counted lets no further try pass."""
    refused = ["paused"] if known.paused else known.refused
    for guard in refused:
        metrics.GUARDED.labels(guard).inc()
    return bool(refused)


def forgiven_by(answer: Outcome, counts: Sequence[Count]) -> list[Count]:
    """What an answer clears: an approval all but checks; the code alone what says nothing of it.

    That is a decline for another reason, and 3-D Secure: whoever gets through that has the
    customer's phone.
    """
    if isinstance(answer, Approved):
        return [count for count in counts if count.kind is not Counted.CHECK]
    if not isinstance(answer, Declined) or answer.reason is not DeclineReason.WRONG_CVC:
        return [count for count in counts if count.kind is Counted.WRONG_CVC]
    return []


_Tries: TypeAlias = "Counter[tuple[int, bool, str]]"
"""How many times each was tried: merchant (0 for all), side, and by what it is counted."""

_MOMENT = 0.05
"""Seconds within which tries are taken back together. Each time is a commit, as dear as one of
a payment's own; who pays twice within them is counted twice."""


class Amends:
    """Tries to take back that were no card testing: the first at once, and those that come up
    within a moment after that together, as payments do that are made side by side.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._waiting: _Tries = Counter()
        self._under_way = False
        self._hurried = asyncio.Event()

    def owe(self, shop: Shop, counts: Sequence[Count]) -> bool:
        """Take note of counts; whether somebody has to `make` amends for them,
        which nobody does yet.
        """
        self._waiting.update(_tries(shop, counts))
        idle, self._under_way = not self._under_way, self._under_way or bool(self._waiting)
        return idle and self._under_way

    async def make(self, database: Database) -> None:
        """Take back all that waits, and what comes up meanwhile. Moves no money."""
        try:
            while self._waiting:
                tries, self._waiting = self._waiting, Counter()
                await _forgive(database, tries)
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._hurried.wait(), _MOMENT)
        finally:
            self._under_way = False

    def hurry(self) -> None:
        """Wait for no others any more: the process is about to stop."""
        self._hurried.set()


def _tries(shop: Shop, counts: Sequence[Count]) -> _Tries:
    return Counter((0 if one.anywhere else shop.merchant_id, shop.live, one.subject) for one in counts)


async def _forgive(database: Database, tries: _Tries) -> None:
    if tries:
        merchant_ids, lives, subjects = map(list, zip(*tries, strict=True))
        names = {"merchant_ids": merchant_ids, "lives": lives, "subjects": subjects}
        await queries.forgive(database, **names, tries=list(tries.values()))


async def unless_away(accounting: Coroutine[object, None, None]) -> None:
    """Count what may be lost: a payment does not fail for it."""
    try:
        await accounting
    except AWAY as error:
        log.warning("the guard against card testing could not count", why=type(error).__name__)


async def take_back(database: Database, shop: Shop, counts: Sequence[Count], *, counted_at: datetime) -> None:
    """Take a try back that no bank was asked about after all:
    it counts in no share of declines either.
    """
    await _forgive(database, _tries(shop, counts))
    await queries.untry(database, merchant_id=shop.merchant_id, live=shop.live, counted_at=counted_at)


class _Rate(msgspec.Struct, frozen=True):
    """How the tries of one side of a merchant have gone lately."""

    merchant_id: int
    live: bool
    authenticate: bool
    own_limit: int | None
    tries: int
    declines: int


async def count_declines(
    database: Database, shops: Sequence[Shop], limits_of: Callable[[Shop], Limits], *, now: datetime
) -> None:
    """Count declines, and guard the merchants whose customers are mostly declined; now is real.
    Moves no money.

    First everybody is asked for 3-D Secure, for an hour; if as many are declined again, the
    merchant takes no cards for some minutes and an operator is told.
    """
    if not shops:
        return
    rows = queries.count_declines(
        database,
        merchant_ids=[shop.merchant_id for shop in shops],
        lives=[shop.live for shop in shops],
        now=now,
        since=now - RATE_WINDOW,
    )
    found = await records_of(_Rate, rows)
    tested = [row for row in found if _is_tested(row, limits_of(Shop(row.merchant_id, row.live)))]
    if first := [row for row in tested if not row.authenticate]:
        names = {"merchant_ids": [row.merchant_id for row in first], "lives": [row.live for row in first]}
        new = queries.demand_authentication(database, **names, now=now, until=now + AUTHENTICATE_FOR)
        metrics.GUARD_STEPS.labels("authenticate").inc(len([row async for row in new]))
    if again := [row for row in tested if row.authenticate]:
        await _pause(database, again, now=now)


def _is_tested(row: _Rate, limits: Limits) -> bool:
    """Whether there are many declines, and most tries are declined."""
    many = min(limits.declines_before_challenge, row.own_limit or limits.declines_before_challenge)
    return row.declines >= many and row.declines >= MOSTLY * row.tries


async def _pause(database: Database, tested: Sequence[_Rate], *, now: datetime) -> None:
    until = now + PAUSE_FOR
    rows = queries.pause(
        database,
        merchant_ids=[row.merchant_id for row in tested],
        lives=[row.live for row in tested],
        now=now,
        until=until,
        authenticate_until=until + AUTHENTICATE_FOR,
    )
    new = await records_of(Shop, rows)
    metrics.GUARD_STEPS.labels("pause").inc(len(new))
    reason = noted(
        "most cards are declined although everybody is asked for 3-D Secure; no card is taken until %(until)s UTC",
        until=f"{until:%H:%M}",
    )
    await raise_alarms(database, [Alarm(AlarmKind.card_testing, ABOUT, reason, shop) for shop in new], now=now)


async def forget_tries(database: Database, *, now: datetime) -> None:
    """Drop counts whose time is over, and the figures of past minutes; now is real."""
    await queries.forget_tries(database, now=now)
    await queries.forget_minutes(database, before=now - MINUTES_KEPT)
