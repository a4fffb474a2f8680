"""Banks that are not well, made once: each stands before an honest one, which has the money
and keeps the record, or is one of a test's own, in memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NoReturn

from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer

from paydesk.adapters.acquirers.balance import Balance
from paydesk.adapters.acquirers.disputes import (
    Dispute,
    DisputePage,
    DisputeStatus,
    EvidenceFile,
    EvidenceKind,
    FailedRefundPage,
)
from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageList, PageRequest
from paydesk.adapters.acquirers.interface import (
    Acquirer,
    AcquirerRefused,
    Approved,
    Declined,
    DeclineReason,
    Earlier,
    Finding,
    Moved,
    MovementFinding,
    NothingHeld,
    Outcome,
    OutcomeUnknown,
    Release,
    Voided,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.notices import Notice, NoticeRefused
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer


def answering(honest: Acquirer, **calls: Callable[..., Awaitable[Any]]) -> LyingAcquirer:
    """A bank of which some calls (`authorize=…`) are answered by others, and the rest honestly."""
    bank = LyingAcquirer(honest, Lies())
    for name, call in calls.items():
        assert callable(getattr(bank, name))
        setattr(bank, name, call)
    return bank


def ending_in(error: Exception) -> Callable[..., Awaitable[NoReturn]]:
    """A call that reaches nobody, and ends in this."""

    async def call(*_asked: Any, **_named: Any) -> NoReturn:
        raise error

    return call


class WithoutPages:
    """A bank that hosts no page: what it can't do is never asked of it."""

    capabilities: Capabilities = Capabilities()
    balance: Balance | None = None

    async def open_page(self, wanted: PageRequest) -> Page:
        raise AcquirerRefused("this bank hosts no page")

    async def find_page(self, key: str, reference: str) -> Page:
        raise AcquirerRefused("this bank hosts no page")

    async def end_page(self, key: str, reference: str) -> Page:
        raise AcquirerRefused("this bank hosts no page")

    async def list_pages(self, since: datetime, after: str) -> PageList:
        raise AcquirerRefused("this bank hosts no page")

    def read_notification(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        raise NoticeRefused("this bank tells nothing")


class OwnBank(WithoutPages):
    """A bank of a test's own, in memory and under the name of test mode's: it has nothing to tell,
    and makes nothing that a subclass doesn't make.
    """

    name = "simulator"
    hold_period = timedelta(days=7)
    key_lifetime = timedelta(hours=24)
    keeps_cards = False
    challenge_origins: tuple[str, ...] = ()

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        raise AcquirerRefused("not asked for here")

    async def void(self, key: str, of_key: str) -> Release:
        raise AcquirerRefused("not asked for here")

    async def undo(self, key: str, of_key: str) -> Finding:
        return Voided()

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        raise AcquirerRefused("not asked for here")

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        return None

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        return NothingHeld()

    async def end_challenge(self, of_key: str) -> Finding:
        return await self.find(of_key)

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        return NothingHeld()

    async def disputes(self, after: str) -> DisputePage:
        return DisputePage((), after)

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        return FailedRefundPage((), after)

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        raise AcquirerRefused("its list is not read here")

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        raise AcquirerRefused("its list is not read here")

    async def find_dispute(self, reference: str) -> Dispute | None:
        return None

    async def upload_evidence(self, file: EvidenceFile) -> str:
        return file.key

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """It is read by a person."""

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class ObedientBank(OwnBank):
    """Does as it is told: `refuse` says why it declines, `why_not` why it takes no request,
    `lose` what gets lost, `hide` that it is slow to know.
    """

    refuse: DeclineReason | None = None
    why_not: AcquirerRefused | None = None
    lose: str = ""
    hide: bool = False
    asked: list[str] = field(default_factory=list)
    decided: dict[str, Outcome] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    voided: set[str] = field(default_factory=set)
    keeps_cards: bool = False

    async def authorize(self, purchase: Purchase) -> Outcome:
        return await self.charge_stored(purchase)

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        self.asked.append(purchase.key)
        if self.why_not:
            raise self.why_not
        if self.lose == "question":
            raise OutcomeUnknown("lost")
        answer: Outcome = Declined(self.refuse) if self.refuse else Approved(purchase.key, f"net-{purchase.key}")
        answer = self.decided.setdefault(purchase.key, answer)
        if self.hide:
            self.hidden.add(purchase.key)
        if self.lose == "answer":
            raise OutcomeUnknown("lost")
        return answer

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        if key in self.voided:
            return Voided()
        return NothingHeld() if key in self.hidden else self.decided.get(key, NothingHeld())

    async def undo(self, key: str, of_key: str) -> Finding:
        self.voided.add(of_key)
        return Voided()

    @property
    def kept(self) -> set[str]:
        """The keys under which it took money and kept it."""
        return {key for key, answer in self.decided.items() if isinstance(answer, Approved)} - self.voided


@dataclass
class TakingBackBank(ObedientBank):
    """An obedient bank that also gives back what it took (`lose` holds for that, too), and takes it
    back itself when customers dispute it.
    """

    given: dict[str, tuple[str, Decimal]] = field(default_factory=dict)
    """What it gave back of which purchase, by the refund's key."""
    disputed: list[Dispute] = field(default_factory=list)

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        if self.lose == "question":
            raise OutcomeUnknown("lost")
        if key not in self.given and reference in self.taken_back:
            raise AcquirerRefused("the customer's bank has taken the money back")
        self.given.setdefault(key, (reference, amount))
        if self.lose == "answer":
            raise OutcomeUnknown("lost")
        return f"refund-{key}"

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        return Moved(f"refund-{key}", self.given[key][1]) if key in self.given else NothingHeld()

    def dispute(self, key: str, amount: Decimal, *, at: datetime) -> None:
        """A customer's bank takes back what is left of a purchase, if anything is."""
        left = amount - self.given_of(key)
        if key in self.kept and key not in self.taken_back and left > 0:
            self.disputed.append(Dispute(f"dispute-{key}", key, left, "USD", "fraudulent", DisputeStatus.OPEN, at))

    async def disputes(self, after: str) -> DisputePage:
        place = int(after or 0)
        return DisputePage(tuple(self.disputed[place:]), str(len(self.disputed)))

    @property
    def taken_back(self) -> set[str]:
        """The keys of the purchases that were disputed."""
        return {one.of_key for one in self.disputed}

    def given_of(self, key: str) -> Decimal:
        """What was given back of a purchase."""
        return sum((amount for of_key, amount in self.given.values() if of_key == key), Decimal(0))


class HeardBank(LyingAcquirer):
    """An honest bank that keeps what it was asked: `purchases`, by a customer or again by us.

    One that is `held` decides at once, and `asked` says so; its answer waits until `let_go`.
    """

    def __init__(self, honest: Acquirer, *, held: bool = False) -> None:
        super().__init__(honest, Lies())
        self.purchases: list[Purchase] = []
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()
        if not held:
            self.let_go.set()

    async def authorize(self, purchase: Purchase) -> Outcome:
        return await self._heard(purchase, super().authorize(purchase))

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        return await self._heard(purchase, super().charge_stored(purchase))

    async def _heard(self, purchase: Purchase, deciding: Awaitable[Outcome]) -> Outcome:
        self.purchases.append(purchase)
        answer = await deciding
        self.asked.set()
        await self.let_go.wait()
        return answer


def live_bank_of(bank: Bank) -> SimulatedAcquirer:
    """The simulated bank under another name: it stands in for a real one."""
    made = SimulatedAcquirer(bank, base_url="http://pay.test")
    made.name = "live bank"
    return made
