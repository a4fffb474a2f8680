"""The billing run: claims what is due, charges stored cards, records what came of it; in batches, many in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog

from paydesk.adapters.acquirers.interface import (
    Approved,
    CardDetails,
    Challenged,
    Declined,
    DeclineReason,
    Outcome,
    OutcomeUnknown,
    Purchase,
)
from paydesk.adapters.vault import Sealed
from paydesk.core.clock import utc_now
from paydesk.database.statements import load_statements
from paydesk.domain.merchants.accounts import Shop
from paydesk.domain.payments import metrics
from paydesk.domain.payments.outcomes import Approval, Ending, record_approvals, record_endings
from paydesk.domain.payments.paying import CARD_NUMBER, FIRST_LOOK, KEY_LIFETIME, Desk
from paydesk.domain.payments.states import AttemptState
from paydesk.domain.subscriptions.ending import expire_due

queries = load_statements(__package__ or "")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Pace:
    """How a billing run works: `batch` subscriptions a claim, `per_side` of one merchant, calls `in_flight` at once."""

    batch: int = 500
    per_side: int = 500
    sides: int = 200
    in_flight: int = 100


@dataclass(frozen=True, slots=True)
class Charge:
    """A claimed renewal whose intent is committed; `now` is the shop's time, UTC."""

    shop: Shop
    attempt_id: int
    acquirer: str
    refused_as: str
    purchase: Purchase
    now: datetime


async def run_billing(desk: Desk, stop: asyncio.Event, pace: Pace | None = None, *, pause: float = 1.0) -> None:
    """Charge and expire what is due until told to stop; the pause between rounds without work is in seconds."""
    billing = BillingRun(desk, pace)
    while not stop.is_set():
        try:
            busy = await billing.charge_due() + await expire_due(desk.database, real_now=utc_now())
        except Exception as error:
            log.warning("billing will try again", why=f"{type(error).__name__}: {error}")
            busy = 0
        if not busy and billing.round_complete:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stop.wait()


class BillingRun:
    """Charges what is due; any number of runs may work on one database."""

    def __init__(self, desk: Desk, pace: Pace | None = None) -> None:
        self._desk = desk
        self._pace = pace or Pace()
        self._gate = asyncio.Semaphore(self._pace.in_flight)
        self._after_merchant = 0

    @property
    def round_complete(self) -> bool:
        """Whether the last claim found nothing more among the merchants behind it."""
        return self._after_merchant == 0

    async def charge_due(self, *, merchant_id: int | None = None, at: datetime | None = None) -> int:
        """Charge one batch of what is due and record it; returns how many charges were tried. Moves money.

        Each side has its own time: real time, for a test side plus its clock. With `merchant_id` only that merchant's
        test side is charged, and `at` is its time (the clock is being moved).
        """
        charges = await self._claim(merchant_id=merchant_id, at=at)
        answers = await asyncio.gather(*(self._call(charge) for charge in charges))
        await self._record(list(zip(charges, answers, strict=True)))
        return len(charges)

    async def _claim(self, *, merchant_id: int | None, at: datetime | None) -> list[Charge]:
        """Claim due subscriptions and commit the intents, side after side. Moves no money."""
        real_now = utc_now()
        not_after = real_now + KEY_LIFETIME
        rows = [
            row
            async for row in queries.begin_renewals(
                self._desk.database,
                real_now=real_now,
                at=at,
                not_after=not_after,
                lookup_at=real_now + FIRST_LOOK,
                sides=self._pace.sides,
                per_side=self._pace.per_side,
                most=self._pace.batch,
                after_merchant=0 if merchant_id is not None else self._after_merchant,
                merchant_id=merchant_id,
            )
        ]
        self._after_merchant = max((row["merchant_id"] for row in rows), default=0)
        return [self._charge(row, not_after) for row in rows]

    def _charge(self, row: Mapping[str, Any], not_after: datetime) -> Charge:
        """What is asked of the acquirer; the card number is opened here and stays in memory only for the call."""
        sealed = Sealed(row["vault_key_id"], row["number_sealed"])
        number = self._desk.vault.open(
            sealed, purpose=CARD_NUMBER, merchant_id=row["merchant_id"], row_id=row["card_id"]
        ).decode()
        return Charge(
            shop=Shop(row["merchant_id"], row["live"]),
            attempt_id=row["attempt_id"],
            acquirer=row["acquirer"],
            refused_as=row["refused_as"],
            purchase=Purchase(
                key=row["idempotency_key"],
                amount=row["amount"],
                currency=row["currency"],
                card=CardDetails(number, row["exp_month"], row["exp_year"], row["holder"]),
                capture=True,
                not_after=not_after,
                network_reference=row["network_reference"],
            ),
            now=row["shop_now"],
        )

    async def _call(self, charge: Charge) -> Outcome | None:
        """Ask the acquirer; None means that nobody knows yet. Moves money.

        A card that was refused for good is not put to the network again; that counts as another decline.
        """
        if charge.refused_as:
            return Declined(DeclineReason(charge.refused_as))
        try:
            async with self._gate:
                return await self._desk.acquirers[charge.acquirer].charge_stored(charge.purchase)
        except OutcomeUnknown as error:
            log.warning("outcome unknown", attempt_id=charge.attempt_id, why=str(error))
        except Exception:
            log.exception("the call to the acquirer failed", attempt_id=charge.attempt_id)
        metrics.UNKNOWN.inc()
        return None

    async def _record(self, answered: Sequence[tuple[Charge, Outcome | None]]) -> None:
        """Record what is known, time by time; the rest is the janitor's."""
        for now in sorted({charge.now for charge, _ in answered}):
            pairs = [(charge, answer) for charge, answer in answered if charge.now == now]
            approvals = [
                Approval(charge.shop, charge.attempt_id, answer)
                for charge, answer in pairs
                if isinstance(answer, Approved)
            ]
            endings = [
                Ending(charge.shop, charge.attempt_id, AttemptState.DECLINED, _reason(answer), renewal=True)
                for charge, answer in pairs
                if isinstance(answer, Declined | Challenged)
            ]
            if approvals:
                await record_approvals(self._desk.database, approvals, now=now)
            if endings:
                await record_endings(self._desk.database, endings, now=now, real_now=utc_now())


def _reason(answer: Declined | Challenged) -> DeclineReason:
    """A bank that asks for a customer who is not there has refused."""
    return answer.reason if isinstance(answer, Declined) else DeclineReason.AUTHENTICATION_FAILED
