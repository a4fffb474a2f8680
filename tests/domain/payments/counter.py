"""A merchant, its customers and a bank that takes its time, for all that may happen
after the payment at once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, TypeVar

from tests import set_back, shopfront
from tests.banks import OwnBank
from tests.domain.ledger.paying_out import record_payout
from tests.proving import check
from tests.standings import standings
from tests.till import Till as Side

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Earlier,
    Finding,
    MovementFinding,
    Outcome,
    OutcomeUnknown,
    Release,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.purchase_state import Standing
from paydesk.adapters.acquirers.simulator.record import Kind
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.deliveries.confirming import Confirmed
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.ledger.balances import balances
from paydesk.domain.ledger.settling import settle_due
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.failed_refunds import read_failed_refunds
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import Refund, refund

TOLD_OF = (
    ({Kind.DISPUTE}, {"chargeback"}),
    ({Kind.DISPUTE_WON}, {"chargeback_reversed"}),
)
"""What the bank may do after the payment, and the pingbacks that tell of it, but for refunds."""

_Answer = TypeVar("_Answer")


class Teller(OwnBank):
    """The simulated bank in this very thread; each answer takes some turns of the event loop,
    left to chance.

    `lose` is what gets lost of a movement, "question" or "answer", and `refuse` why the bank will
    not make any.
    """

    def __init__(self, bank: Bank, chance: Random, turns: int = 30) -> None:
        self.bank, self.lose, self.refuse = bank, "", ""
        self._chance, self._turns = chance, turns

    async def authorize(self, purchase: Purchase) -> Outcome:
        return await self._serve(lambda: self.bank.purchase(purchase, stored=False))

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        return await self._serve(lambda: self.bank.purchase(purchase, stored=True))

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        await self._move(lambda: self.bank.capture(key, reference, amount, currency))

    async def void(self, key: str, of_key: str) -> Release:
        return await self._move(lambda: self.bank.void(key, of_key))

    async def undo(self, key: str, of_key: str) -> Finding:
        return await self._move(lambda: self.bank.undo(key, of_key))

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        return await self._move(lambda: self.bank.refund(key, reference, amount, currency))

    async def end_challenge(self, of_key: str) -> Finding:
        return await self._serve(lambda: self.bank.end_challenge(of_key))

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        return await self._serve(lambda: self.bank.look_back(key))

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        return await self._serve(lambda: self.bank.find(key))

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        return await self._serve(lambda: self.bank.find_movement(key, of_key))

    async def disputes(self, after: str) -> DisputePage:
        return await self._serve(lambda: self.bank.disputes(after))

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        return await self._serve(lambda: self.bank.failed_refunds(after))

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        return await self._serve(lambda: self.bank.list_purchases(since, after))

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        return await self._serve(lambda: self.bank.list_refunds(since, after))

    async def find_dispute(self, reference: str) -> Dispute | None:
        return await self._serve(lambda: self.bank.find_dispute(reference))

    async def upload_evidence(self, file: EvidenceFile) -> str:
        return await self._serve(lambda: self.bank.upload_evidence(file))

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        await self._serve(lambda: self.bank.submit_evidence(reference, text, files))

    async def _move(self, call: Callable[[], _Answer]) -> _Answer:
        if self.refuse:
            raise AcquirerRefused(self.refuse)
        if self.lose == "question":
            raise OutcomeUnknown("the question was lost")
        answer = await self._serve(call)
        if self.lose == "answer":
            raise OutcomeUnknown("the answer was lost")
        return answer

    async def _serve(self, call: Callable[[], _Answer]) -> _Answer:
        await self.pause()
        answer = call()
        await self.pause()
        return answer

    async def pause(self) -> None:
        """Let others go first, as many as chance says."""
        for _ in range(self._chance.randrange(self._turns)):
            await asyncio.sleep(0)


@dataclass
class Till:
    """One merchant's test side, whose clock may be set ahead, and everybody who moves its money."""

    database: Database
    desk: Desk
    shop: Shop
    teller: Teller
    ahead: timedelta = timedelta()
    prices: dict[int, Decimal] = field(default_factory=dict)
    payouts: dict[int, Decimal] = field(default_factory=dict)
    """What was paid out, by the payout's id: two who send the same at once record it once."""
    came_back: bool = False
    """Whether a refund came back of which nobody has read yet."""

    @property
    def bank(self) -> Bank:
        return self.teller.bank

    @property
    def now(self) -> datetime:
        """The merchant's own time."""
        return utc_now() + self.ahead

    async def sell(self, amount: str = "10.00", *, shipped: bool = False) -> int:
        """A customer pays for goods that are shipped or not; the payment's id."""
        await shopfront.ships(self.database, self.shop, shipped=shipped)
        payment_id = await shopfront.buy(self.desk, self.shop, amount=amount)
        self.prices[payment_id] = Decimal(amount)
        return payment_id

    async def ship(self, payment_id: int, parcel: int = 0) -> Confirmed | str:
        """The merchant confirms a shipment: what came of it, or the words of the refusal."""
        parcel_id = f"0034043416109402{parcel:04}"
        await self.teller.pause()
        try:
            return await shopfront.ship(self.desk, self.shop, payment_id, carrier_tracking_id=parcel_id, now=self.now)
        except (Malformed, Conflict) as error:
            return error.message

    async def refund(self, payment_id: int, amount: str | None = None, key: str | None = None) -> Refund | str:
        """The merchant gives money back: what came of it, or the words of the refusal."""
        asked = None if amount is None else Decimal(amount)
        await self.teller.pause()
        try:
            return await refund(
                self.desk, self.shop, payment_id, asked, requested_by="api", request_key=key, now=self.now
            )
        except (Malformed, Conflict) as error:
            return error.message

    async def dispute(self, payment_id: int) -> str:
        """The customer's bank takes back what is left;
        the dispute's reference, empty if there is nothing to take.
        """
        key = await self.key_of(payment_id)
        await self.teller.pause()
        try:
            return self.bank.open_dispute(key, "fraudulent")
        except AcquirerRefused:
            return ""

    async def decide(self, payment_id: int, *, won: bool) -> None:
        """The customer's bank decides a payment's dispute, if there is one and it is open."""
        standing = (await self.at_the_bank())[payment_id]
        await self.teller.pause()
        try:
            self.bank.close_dispute(standing.dispute, won)
        except AcquirerRefused:
            return

    async def come_back(self, payment_id: int, which: int) -> None:
        """A refund does not reach its customer after all, if there is any."""
        key = await self.key_of(payment_id)
        made = [one for one in self.bank.record.operations() if one.of_key == key and one.kind is Kind.REFUND]
        await self.teller.pause()
        if made:
            self.came_back = True
            self.bank.fail_refund(made[which % len(made)].reference, "lost_card")

    async def read_failed(self, **later: float) -> None:
        """A worker reads of refunds that came back, and tries those again that have waited."""
        await self.teller.pause()
        await read_failed_refunds(self.desk, now=utc_now() + timedelta(**later))

    async def read(self, **later: float) -> None:
        """A worker reads of disputes, and tries those again that have waited by then."""
        await self.teller.pause()
        await read_disputes(self.desk, now=utc_now() + timedelta(**later))

    async def deadlines(self, **later: float) -> None:
        """A worker voids what was not shipped in time, now or some time from now."""
        await self.teller.pause()
        at = self.now + timedelta(**later)
        await act_on_due(self.desk, real_now=utc_now(), merchant_id=self.shop.merchant_id, at=at)

    async def settle(self) -> int:
        """A worker makes money available whose time has come."""
        await self.teller.pause()
        return await settle_due(
            self.database, real_now=utc_now(), merchant_id=self.shop.merchant_id, at=self.now, most=50
        )

    async def pay_out(self) -> None:
        """An operator sends the merchant half of what is available, if there is any."""
        available = sum((one.available for one in await balances(self.database, self.shop)), Decimal(0))
        amount = (available / 2).quantize(Decimal("0.01"))
        if amount <= 0:
            return
        try:
            recorded = await record_payout(
                self.database, self.shop, amount, "USD", reference="T-1", recorded_by="operator", now=self.now
            )
        except Conflict:
            return
        self.payouts[recorded.id] = amount

    async def finish(self, **later: float) -> int:
        """The janitor's round, some real time from now."""
        return await finish_movements(self.desk, now=utc_now() + timedelta(**later))

    async def wait(self, **days: float) -> None:
        """Let the merchant's time pass."""
        self.ahead += timedelta(**days)
        await set_back.clock_runs_ahead(self.database, self.shop.merchant_id, self.ahead)

    async def key_of(self, payment_id: int) -> str:
        """The name of a payment's purchase at the bank."""
        return str(
            await self.database.fetchval(
                "select idempotency_key from payment_attempt where merchant_id = $1 and payment_id = $2",
                self.shop.merchant_id,
                payment_id,
            )
        )

    async def payments(self) -> dict[int, Any]:
        """The merchant's payments, each with its key at the bank and what the acquirer owes for it
        by the ledger.
        """
        return await Side(self.desk, self.shop).payments_owed()

    async def at_the_bank(self) -> dict[int, Standing]:
        """How each payment stands by the bank's own record."""
        found = standings(self.bank.record.operations())
        return {payment_id: found[row["idempotency_key"]] for payment_id, row in (await self.payments()).items()}

    async def done_at_the_bank(self) -> dict[int, list[Kind]]:
        """What the bank did to each payment, in order, refusals left out."""
        keys = {row["idempotency_key"]: payment_id for payment_id, row in (await self.payments()).items()}
        done: dict[int, list[Kind]] = {payment_id: [] for payment_id in keys.values()}
        for operation in self.bank.record.operations():
            if operation.kind is not Kind.REFUSE and operation.of_key in keys:
                done[keys[operation.of_key]].append(operation.kind)
        return done

    async def told(self) -> dict[int, list[str]]:
        """The events of each payment's pingbacks, in order."""
        rows = await self.database.fetch(
            "select payment_id, event from pingback where merchant_id = $1 order by id", self.shop.merchant_id
        )
        events: dict[int, list[str]] = {payment_id: [] for payment_id in self.prices}
        for row in rows:
            events[row["payment_id"]].append(row["event"])
        return events

    async def in_order(self) -> None:
        """What must hold at any time, whatever is under way: `paydesk check` finds nothing."""
        found = await check(self.database, now=self.now, merchant_id=self.shop.merchant_id, record=self.bank.record)
        wrong = [
            (finding.rule.statement, one.detail)
            for finding in found
            for one in finding.differences
            if finding.rule.statement != "outcomes_known"  # the clock jumps over days
            and not (self.came_back and finding.rule.statement == "approved_money_at_bank")
        ]
        assert not wrong, wrong

    async def come_to_rest(self) -> None:
        """Let the janitor and the readers of disputes and of refunds that came back finish what was
        begun, with a bank that answers.
        """
        self.teller.lose = self.teller.refuse = ""
        for _ in range(5):
            await set_back.movements_let_go(self.database)
            if not await self.finish(hours=30):
                break
        await self.read(minutes=10)
        for minutes in (10, 100):
            await self.read_failed(minutes=minutes)
        self.came_back = False

    async def agree(self) -> None:
        """What must hold at rest: the bank's record, payments, ledger,
        balances and pingbacks tell the same.
        """
        await self.in_order()
        bank, done, told = await self.at_the_bank(), await self.done_at_the_bank(), await self.told()
        payments = await self.payments()
        assert set(payments) == set(self.prices)
        for payment_id, payment in payments.items():
            standing, facts = bank[payment_id], dict(payment)
            assert (payment["refunding"], payment["moving_id"]) == (0, None), facts
            assert payment["owed"] == standing.net, (facts, standing)
            assert (payment["refunded"], payment["charged_back"]) == (standing.refunded, standing.charged_back), facts
            assert standing.held == (self.prices[payment_id] if payment["state"] == "authorized" else 0), facts
            assert standing.refunded <= standing.captured, facts
            _assert_told(done[payment_id], told[payment_id])
        await self._assert_balances(sum((one.net for one in bank.values()), Decimal(0)), done)

    async def _assert_balances(self, net: Decimal, done: dict[int, list[Kind]]) -> None:
        """The merchant has what the bank took from customers,
        without fees and what was paid out.
        """
        fees = await self.database.fetchval(
            "select coalesce(sum(fees - fees_taken), 0) from payment"
            " where merchant_id = $1 and captured_at is not null",
            self.shop.merchant_id,
        )
        disputes = sum(kinds.count(Kind.DISPUTE) for kinds in done.values())
        has = sum((one.pending + one.available + one.reserve for one in await balances(self.database, self.shop)), 0)
        assert has == net - fees - 15 * disputes - sum(self.payouts.values())


def _assert_told(done: list[Kind], told: list[str]) -> None:
    """Each thing that the bank did is told once, and nothing else is."""
    counts = Counter(told)
    assert counts.pop("payment") == 1
    given = counts.pop("refund", 0) + counts.pop("partial_refund", 0) - counts.pop("refund_failed", 0)
    # One that came back before anybody knew that it was made is told neither as made nor as failed.
    assert given == done.count(Kind.VOID) + done.count(Kind.REFUND) - done.count(Kind.REFUND_FAILED), (done, told)
    for kinds, events in TOLD_OF:
        assert sum(counts.pop(event, 0) for event in events) == sum(map(done.count, kinds)), (done, told)
    assert not counts, (done, told)
