"""The billing run: claims what is due, charges stored cards, records what came of it;
in batches, many in flight.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import msgspec

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Declined,
    DeclineReason,
    Pending,
    is_earlier,
)
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.vault import Sealed
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted
from paydesk.database.records import records_of
from paydesk.database.statements import load_statements
from paydesk.domain.alarms.setting_aside import ASIDE, DueRow, claimed, names_of, one_by_one, set_aside
from paydesk.domain.billing.marking import RenewalMarks
from paydesk.domain.billing.pacing import Lane, Pace, Room
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import FIRST_LOOK, KEY_LIFETIME, Desk
from paydesk.domain.payments.forgotten_purchases import Wish
from paydesk.domain.payments.off_session import charge_unattended
from paydesk.domain.payments.outcomes import Approval, Ending, record_approvals, record_endings
from paydesk.domain.payments.pending import PENDING_LOOK, OnItsWay, record_pending
from paydesk.domain.payments.refused_requests import RefusedRequest, report_refused
from paydesk.domain.payments.states import AttemptState
from paydesk.domain.payments.stored_cards import CARD_NUMBER
from paydesk.domain.payments.unanswered import left_to_the_janitor
from paydesk.domain.subscriptions.changing import carry_out_due
from paydesk.domain.subscriptions.ending import expire_due
from paydesk.domain.subscriptions.rows import RenewalRow
from paydesk.loops.repeating import repeat

queries = load_statements(__package__ or "", "charging.sql")


@dataclass(frozen=True, slots=True)
class Side:
    """A merchant's live or test side that has something due by its own time `now` (UTC)."""

    shop: Shop
    now: datetime


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A side of a merchant, with its time and whether it has something due."""

    merchant_id: int
    live: bool
    shop_now: datetime
    due: bool


class ClaimedRenewal(msgspec.Struct, frozen=True, gc=False):
    """A claimed renewal whose intent is committed; `now` is the shop's time, UTC,
    `report` what an approval tells.
    """

    shop: Shop
    attempt_id: int
    acquirer: str
    refused_as: str
    wish: Wish
    now: datetime
    report: RenewalRow


async def run_billing(desk: Desk, stop: asyncio.Event, pace: Pace | None = None, *, pause: float = 1.0) -> None:
    """Charge, expire and change what is due until told to stop;
    the pause between rounds without work is in seconds.
    """
    billing = BillingRun(desk, pace)

    async def charge(lane: Lane) -> bool:
        if not desk.gate.is_open:
            return False
        return await billing.charge_due(lane=lane) > 0 or not billing.round_complete

    async def expire() -> bool:
        return await expire_due(desk.database, real_now=utc_now()) > 0

    async def change() -> bool:
        return await carry_out_due(desk.database, real_now=utc_now()) > 0

    async with asyncio.TaskGroup() as tasks:
        for number in range(1, billing.pace.lanes + 1):
            turn = partial(charge, Lane(billing.pace))
            tasks.create_task(repeat(f"billing {number}", turn, stop, rest=pause, due=True))
        tasks.create_task(repeat("ending of subscriptions", expire, stop, rest=pause, due=True))
        tasks.create_task(repeat("changes of subscriptions", change, stop, rest=pause, due=True))


COVERED = ""
"""What no acquirer was asked for has no reference there."""

FIRST = (0, False)
"""Before the first side."""


class BillingRun:
    """Charges what is due; any number of runs may work on one database, and any number of batches
    on one run.
    """

    def __init__(self, desk: Desk, pace: Pace | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is what a bank's answers are timed by, in seconds."""
        self.pace = pace or Pace()
        self._desk = desk
        self._gate = asyncio.Semaphore(self.pace.in_flight)
        self._room = Room(self.pace)
        self._clock = clock
        self._after = FIRST

    @property
    def round_complete(self) -> bool:
        """Whether the last look for work reached the last side:
        the next one begins with the first again.
        """
        return self._after == FIRST

    async def charge_due(
        self, *, merchant_id: int | None = None, at: datetime | None = None, lane: Lane | None = None
    ) -> int:
        """Charge one batch of what is due and record it; returns how many charges were tried.
        Moves money.

        Each side has its own time: real time, for a test side plus its clock. With `merchant_id`
        only that merchant's test side is charged, and `at` is its time (the clock is being moved).
        `lane` says how large the batch is, and learns from how it is answered.

        Raises: Held.
        """
        lane = lane or Lane(self.pace)
        async with self._room.batch(lane) as most:
            await self._desk.gate.require()
            real_now = utc_now()
            if merchant_id is None:
                sides = await self._sides(real_now)
            else:
                sides = [Side(Shop(merchant_id, live=False), at or real_now)]
            charges = await self.claim(sides, real_now, most=most) if sides else []
            began = self._clock()
            answers = await self._ask(charges)
            lane.learn(len(charges), self._clock() - began, answered=None not in answers)
        await self._record(list(zip(charges, answers, strict=True)))
        return len(charges)

    async def charge_one(self, side: Side, subscription_id: int) -> None:
        """Charge one subscription that is due, and record it; nothing if somebody else is at it.
        Moves money.

        Raises: Held.
        """
        await self._desk.gate.require()
        charges = await self.claim([side], utc_now(), only=[subscription_id])
        await self._record([(charge, await self._call(charge)) for charge in charges])

    async def _sides(self, real_now: datetime) -> list[Side]:
        """The next sides that have something due;
        moves the place on, or back to the start at the end of a round.
        """
        most = self.pace.sides
        asked = queries.sides_to_charge(
            self._desk.database, real_now=real_now, after_merchant=self._after[0], after_live=self._after[1], most=most
        )
        rows = await records_of(_Waiting, asked)
        self._after = (rows[-1].merchant_id, rows[-1].live) if len(rows) == most else FIRST
        return [Side(Shop(row.merchant_id, row.live), row.shop_now) for row in rows if row.due]

    async def claim(
        self, sides: Sequence[Side], real_now: datetime, *, only: Sequence[int] | None = None, most: int | None = None
    ) -> list[ClaimedRenewal]:
        """Claim due subscriptions, at most so many, an equal share of each side (or `only` those
        that are named), and commit the intents. Moves no money.
        """
        not_after = real_now + KEY_LIFETIME
        rows = await self._begin(sides, real_now, not_after=not_after, named=only, most=most or self.pace.batch)

        marks = RenewalMarks()

        async def opened(row: RenewalRow) -> ClaimedRenewal:
            return self._charge(row, marks, not_after)

        # Nothing is sent for what can't be read: the janitor finds that nothing happened, and it is
        # due again.
        worked = await one_by_one(rows, opened)
        await set_aside(
            self._desk.database, worked, _named, doing=noted("its card can't be read, so it is not charged")
        )
        return worked.results

    async def _begin(
        self, sides: Sequence[Side], real_now: datetime, *, not_after: datetime, named: Sequence[int] | None, most: int
    ) -> list[RenewalRow]:
        """Commit the intents; a subscription whose intent can't be written is set aside,
        and stops no other.
        """
        database, per_side = self._desk.database, max(most // len(sides), 1)
        times = {side.shop: side.now for side in sides}
        asked = {
            "merchant_ids": [shop.merchant_id for shop in times],
            "lives": [shop.live for shop in times],
            "shop_nows": list(times.values()),
        }

        async def begin(only: Sequence[int] | None) -> list[RenewalRow]:
            keys = {"pads": self._desk.pads, "not_after": not_after, "lookup_at": real_now + FIRST_LOOK}
            ids = named if only is None else only
            begun = queries.begin_renewals(database, **asked, **keys, per_side=per_side, most=most, only=ids)
            return await records_of(RenewalRow, begun)

        async def due() -> list[DueRow]:
            return await records_of(DueRow, queries.due_to_renew(database, **asked, most=per_side))

        async def postpone(rows: Sequence[DueRow]) -> None:
            nows = [times[row.shop] for row in rows]
            await queries.postpone(database, **names_of(rows), shop_nows=nows, pause=ASIDE)

        return await claimed(
            database, begin, due, postpone, noun="subscription", doing=noted("its charge can't be begun")
        )

    def _charge(self, row: RenewalRow, marks: RenewalMarks, not_after: datetime) -> ClaimedRenewal:
        """What is asked of the acquirer; the card number stays in memory only for the call.

        An acquirer that keeps the instrument charges it by its reference, one that keeps the card
        of a first payment by the network reference, without a number.
        """
        acquirer = self._desk.acquirers.get(row.acquirer)
        kept = row.stored_reference != "" or (acquirer is not None and acquirer.keeps_cards)
        # Where nobody here can ask, nothing is known of what is kept there.
        erased = row.number_sealed is None and not kept and acquirer is not None
        number = "" if kept or row.number_sealed is None else self._number(row)
        purchase = Purchase(
            key=row.idempotency_key,
            amount=row.amount,
            currency=row.currency,
            card=CardDetails(number, row.exp_month, row.exp_year, row.holder),
            capture=True,
            not_after=not_after,
            network_reference=row.network_reference,
            stored_reference=row.stored_reference,
            mark=marks.of(row),
        )
        shop = row.shop
        # What has been due for longer than the acquirer knows keys may have been charged before
        # a restore; of what was paused, nobody knows any more when it was due then.
        old = acquirer is not None and (row.was_paused or row.shop_now > row.date_next + acquirer.key_lifetime)
        return ClaimedRenewal(
            shop=shop,
            attempt_id=row.attempt_id,
            acquirer=row.acquirer,
            refused_as=row.refused_as or (str(DeclineReason.CLOSED_ACCOUNT) if erased else ""),
            wish=Wish(shop, row.attempt_id, purchase, self._desk.pads, old, row.was_forgotten),
            now=row.shop_now,
            report=row,
        )

    def _number(self, row: RenewalRow) -> str:
        """The card number, opened. Raises: VaultError."""
        assert row.number_sealed is not None, "what is erased is not opened"
        sealed = Sealed(row.vault_key_id, row.number_sealed)
        names = {"merchant_id": row.merchant_id, "row_id": row.card_id}
        return self._desk.vault.open(sealed, purpose=CARD_NUMBER, **names).decode()

    async def _ask(
        self, charges: Sequence[ClaimedRenewal]
    ) -> list[Approved | Declined | Pending | RefusedRequest | None]:
        """Ask for all, as many at once as may be in flight; the answers in the same order.
        Moves money.
        """
        answers: list[Approved | Declined | Pending | RefusedRequest | None] = [None] * len(charges)
        left = iter(enumerate(charges))

        async def ask() -> None:
            for place, charge in left:
                answers[place] = await self._call(charge)

        # A task for each charge would cost more than what it does, where the bank answers at once.
        await asyncio.gather(*(ask() for _ in range(min(len(charges), self.pace.in_flight))))
        return answers

    async def _call(self, charge: ClaimedRenewal) -> Approved | Declined | Pending | RefusedRequest | None:
        """Ask the acquirer; None means that nobody knows yet. Moves money.

        A card that was refused for good or erased is not put to the network; that counts as
        another decline. Nobody is asked for what the subscription's balance covers whole.
        """
        if not charge.wish.purchase.amount:
            return Approved(COVERED)
        if charge.refused_as:
            return Declined(DeclineReason(charge.refused_as))
        with left_to_the_janitor(attempt_id=charge.attempt_id):
            try:
                async with self._gate:
                    if utc_now() > charge.wish.purchase.not_after:
                        return None  # It waited too long for its turn: given up by the janitor, and due again.
                    acquirer = self._desk.acquirers[charge.acquirer]
                    return await charge_unattended(self._desk.database, acquirer, charge.wish)
            except AcquirerRefused as error:
                return RefusedRequest(charge.shop, charge.acquirer, f"attempt {charge.attempt_id}", str(error))
        return None

    async def _record(
        self, answered: Sequence[tuple[ClaimedRenewal, Approved | Declined | Pending | RefusedRequest | None]]
    ) -> None:
        """Record what is known, time by time; the rest is the janitor's, as is what banks take days
        over.
        """
        for now in sorted({charge.now for charge, _ in answered}):
            pairs = [(charge, answer) for charge, answer in answered if charge.now == now]
            approvals = [
                Approval(charge.shop, charge.attempt_id, answer, _report(charge, answer))
                for charge, answer in pairs
                if isinstance(answer, Approved)
            ]
            endings = [
                Ending(charge.shop, charge.attempt_id, AttemptState.DECLINED, _reason(answer), renewal=True)
                for charge, answer in pairs
                if isinstance(answer, Declined | RefusedRequest)
            ]
            if approvals:
                await record_approvals(self._desk.database, approvals, now=now)
            if endings:
                await record_endings(self._desk.database, endings, now=now, real_now=utc_now())
        pending = [
            OnItsWay(charge.shop, charge.attempt_id, answer, PENDING_LOOK)
            for charge, answer in answered
            if isinstance(answer, Pending)
        ]
        if pending:
            await record_pending(self._desk.database, pending, now=utc_now())
        refused = [answer for _, answer in answered if isinstance(answer, RefusedRequest)]
        await report_refused(self._desk.database, refused, now=utc_now())


def _report(charge: ClaimedRenewal, answer: Approved) -> RenewalRow | None:
    """What is told of an approval; None if it is of an older purchase,
    which is not what its intent said.
    """
    return None if is_earlier(answer, charge.wish.purchase.not_after) else charge.report


def _named(row: RenewalRow) -> tuple[Shop, str]:
    """What a renewal is called in the operator's list."""
    return row.shop, f"subscription {row.subscription_id}"


def _reason(answer: Declined | RefusedRequest) -> DeclineReason:
    """Why it took nothing: the bank's reason, or that no bank was asked."""
    return answer.reason if isinstance(answer, Declined) else DeclineReason.REQUEST_REFUSED
