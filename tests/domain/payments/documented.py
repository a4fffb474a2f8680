"""A bank written from what Stripe and Mollie document of refunds, disputes and idempotency,
not from our simulated one.

It knows nothing of Paydesk, and keeps its own account of each purchase. Its sources, by what
they promise:

- Stripe, "Idempotent requests": a key that comes again with the same parameters gets the first
  answer, an error too; with others it is refused. Mollie's `Idempotency-Key` does the same.
- Stripe, "Refunds": no more than what is left of the charge; a charge that is disputed can't be
  refunded unless `is_charge_refundable` (an inquiry). Mollie: no more than `amountRemaining`, from
  which chargebacks are gone too.
- Stripe, "The dispute object": an amount that is usually the charge's, and may differ; `warning_*`
  for inquiries, which take nothing and may become disputes; zero or more balance transactions that
  withdraw and reinstate; a partial win is `lost` with a part reinstated; `prevented` and
  `warning_closed` end without money; a full amount may be disputed after a partial refund. Events
  come in no promised order, and more than once.
- Mollie, "Chargebacks": several for one payment, each of an amount of its own; taken when created,
  given back at `reversedAt`.

It may be made to lose questions and answers, to tell late, to repeat itself, and to tell how things
stood before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from random import Random

from tests.banks import OwnBank

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, DisputeStatus
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Finding,
    Moved,
    MovementFinding,
    NothingHeld,
    Outcome,
    OutcomeUnknown,
    Refused,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.clock import utc_now

ZERO = Decimal(0)


@dataclass
class Account:
    """What the bank has of one purchase, in its currency."""

    key: str
    reference: str
    amount: Decimal
    currency: str
    refunded: Decimal = ZERO
    disputes: dict[str, Dispute] = field(default_factory=dict)

    @property
    def away(self) -> Decimal:
        """What disputes have taken and not given back."""
        return sum(((one.taken or ZERO) - (one.returned or ZERO) for one in self.disputes.values()), ZERO)

    @property
    def is_disputed(self) -> bool:
        """Whether a formal dispute is open or was lost: then Stripe refunds nothing more."""
        return any(one.status in (DisputeStatus.OPEN, DisputeStatus.LOST) for one in self.disputes.values())


class DocumentedBank(OwnBank):
    """One acquirer under the name of test mode's; `by` is whose documents it follows,
    "stripe" or "mollie".
    """

    def __init__(self, by: str, chance: Random) -> None:
        self.by, self.lose = by, ""
        self.accounts: dict[str, Account] = {}
        self.told: list[Dispute] = []
        self.late: list[Dispute] = []
        self._chance = chance
        self._answers: dict[str, tuple[object, str | Exception]] = {}

    # What Paydesk may ask.

    async def authorize(self, purchase: Purchase) -> Outcome:
        reference = f"pay_{len(self.accounts)}"
        account = Account(purchase.key, reference, purchase.amount, purchase.currency)
        return Approved(self.accounts.setdefault(purchase.key, account).reference)

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        return await self.authorize(purchase)

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        if self.lose == "question":
            raise OutcomeUnknown("the question was lost")
        await self.pause()
        asked = (reference, amount, currency)
        before, answer = self._answers.setdefault(key, (asked, self._refund(*asked)))
        if before != asked:
            raise AcquirerRefused("keys can only be used with the same parameters they were first used with")
        await self.pause()
        if self.lose == "answer":
            raise OutcomeUnknown("the answer was lost")
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        account = self.accounts.get(key)
        return Approved(account.reference) if account else NothingHeld()

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        await self.pause()
        if key not in self._answers:
            return NothingHeld()
        answer = self._answers[key][1]
        return Refused(str(answer)) if isinstance(answer, Exception) else Moved(answer)

    async def disputes(self, after: str) -> DisputePage:
        await self.pause()
        place = int(after or 0)
        page = self.told[place : place + 3]
        return DisputePage(tuple(page), str(place + len(page)))

    async def find_dispute(self, reference: str) -> Dispute | None:
        await self.pause()
        for account in self.accounts.values():
            if reference in account.disputes:
                return replace(account.disputes[reference], at=utc_now())
        return None

    async def pause(self) -> None:
        """Let others go first, as many as chance says."""
        for _ in range(self._chance.randrange(20)):
            await asyncio.sleep(0)

    # What customers, their banks, and the bank's own computers do.

    def dispute(self, key: str, share: Decimal, *, inquiry: bool = False) -> None:
        """A customer wants a share of a purchase back, which may be more than all of it."""
        account = self.accounts[key]
        amount = (account.amount * share).quantize(Decimal("0.01")) or Decimal("0.01")
        status = DisputeStatus.INQUIRY if inquiry and self.by == "stripe" else DisputeStatus.OPEN
        if self.by == "mollie":
            status = DisputeStatus.LOST
        taken = ZERO if status is DisputeStatus.INQUIRY else amount
        reference = f"{key}-{len(account.disputes)}"
        self._now(account, Dispute(reference, key, amount, account.currency, "general", status, utc_now(), taken, ZERO))

    def decide(self, key: str, number: int, how: str) -> None:
        """The bank decides one of a purchase's disputes: `won`, `lost`, `partly`, `dropped`,
        or `again` after that.
        """
        account = self.accounts[key]
        if not account.disputes:
            return
        one = list(account.disputes.values())[number % len(account.disputes)]
        after = self._reversed(one, how) if self.by == "mollie" else self._decided(one, how)
        if after is not None:
            self._now(account, replace(after, at=utc_now()))

    def garble(self, number: int) -> None:
        """Tell something once more, as it stood then:
        if it can be, a contradiction to what was told since.
        """
        if stale := self._stale() or self.told:
            self.told.append(stale[number % len(stale)])

    def _stale(self) -> list[Dispute]:
        """What was told and is not true any more, though what is true was told as well."""
        stands = {one.reference: one for account in self.accounts.values() for one in account.disputes.values()}
        known = {one.reference for one in self.told if one == stands[one.reference]}
        return [one for one in self.told if one.reference in known and one != stands[one.reference]]

    def arrive(self) -> None:
        """What was late is told."""
        self.told += self.late
        self.late.clear()

    def _now(self, account: Account, dispute: Dispute) -> None:
        """A dispute stands anew; it is told now or later, once or twice, in any order."""
        account.disputes[dispute.reference] = dispute
        match self._chance.randrange(4):
            case 0:
                self.late.append(dispute)
            case 1:
                self.told += [dispute, dispute]
            case 2:
                self.told.append(dispute)
                self.told.append(self._chance.choice(self.told))
            case _:
                self.told.append(dispute)

    def _decided(self, one: Dispute, how: str) -> Dispute | None:
        """A dispute at Stripe after a decision; None if that can't be decided of it."""
        taken, returned = one.taken or ZERO, one.returned or ZERO
        left = taken - returned
        match how, one.status:
            case "dropped", DisputeStatus.INQUIRY:
                return replace(one, status=DisputeStatus.DROPPED)
            case _, DisputeStatus.INQUIRY:
                return replace(one, status=DisputeStatus.OPEN, taken=one.amount)
            case "won", DisputeStatus.OPEN:
                return replace(one, status=DisputeStatus.WON, returned=taken)
            case "partly", DisputeStatus.OPEN:
                part = (left / 3).quantize(Decimal("0.01"))
                return replace(one, status=DisputeStatus.LOST, returned=returned + part)
            case "lost", DisputeStatus.OPEN:
                return replace(one, status=DisputeStatus.LOST)
            case "again", DisputeStatus.WON:
                return replace(one, status=DisputeStatus.OPEN, taken=taken + one.amount)
        return None

    def _reversed(self, one: Dispute, how: str) -> Dispute | None:
        """A chargeback at Mollie that is reversed, which ends it."""
        if how != "won" or one.status is DisputeStatus.WON:
            return None
        return replace(one, status=DisputeStatus.WON, returned=one.taken)

    def _refund(self, reference: str, amount: Decimal, currency: str) -> str | Exception:
        """Make a refund, or the reason why not."""
        account = next((one for one in self.accounts.values() if one.reference == reference), None)
        if account is None or currency != account.currency:
            return AcquirerRefused("there is no such charge")
        if self.by == "stripe" and account.is_disputed:
            return AcquirerRefused("the charge has been charged back; it can't be refunded")
        gone = account.refunded + (account.away if self.by == "mollie" else ZERO)
        if amount > account.amount - gone:
            return AcquirerRefused("the refund is greater than what is left of the charge")
        account.refunded += amount
        return f"re_{reference}_{account.refunded}"
