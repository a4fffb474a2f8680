"""An acquirer that stands before another one, and passes on what is asked;
what spoils or refuses calls begins here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from paydesk.adapters.acquirers.balance import Balance
from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.fraud_warnings import FraudWarning, fraud_warnings_of
from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageList, PageRequest
from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Earlier,
    Finding,
    FollowsTestClocks,
    MovementFinding,
    Outcome,
    Release,
    UnderWay,
)
from paydesk.adapters.acquirers.letting_go import release_kept
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.notices import Notice
from paydesk.adapters.acquirers.own_ids import own_id_of
from paydesk.adapters.acquirers.purchases import Purchase

_Answer = TypeVar("_Answer")


class PassingAcquirer:
    """Passes everything on; a subclass says what becomes of calls that move money,
    and of those that only tell.
    """

    def __init__(self, honest: Acquirer) -> None:
        self.honest = honest
        self.name: str = honest.name
        self.capabilities: Capabilities = honest.capabilities
        self.hold_period: timedelta = honest.hold_period
        self.key_lifetime: timedelta = honest.key_lifetime
        self.keeps_cards: bool = honest.keeps_cards
        self.challenge_origins: tuple[str, ...] = honest.challenge_origins
        self.balance: Balance | None = honest.balance

    async def _move(self, key: str, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Make a call that moves money under a key."""
        return await call()

    async def _tell(self, call: Callable[[], Awaitable[_Answer]]) -> _Answer:
        """Make a call that changes something, and moves no money."""
        return await call()

    async def authorize(self, purchase: Purchase) -> Outcome:
        """As the other acquirer, if this lets it. Moves money."""
        return await self._move(purchase.key, lambda: self.honest.authorize(purchase))

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """As the other acquirer, if this lets it. Moves money."""
        return await self._move(purchase.key, lambda: self.honest.charge_stored(purchase))

    async def open_page(self, wanted: PageRequest) -> Page:
        """As the other acquirer, if this lets it: money may come of it."""
        return await self._move(wanted.key, lambda: self.honest.open_page(wanted))

    async def find_page(self, key: str, reference: str) -> Page:
        """As the other acquirer. Moves no money."""
        return await self.honest.find_page(key, reference)

    async def end_page(self, key: str, reference: str) -> Page:
        """As the other acquirer, if this lets it. Moves no money."""
        return await self._tell(lambda: self.honest.end_page(key, reference))

    async def list_pages(self, since: datetime, after: str) -> PageList:
        """As the other acquirer. Moves no money."""
        return await self.honest.list_pages(since, after)

    def read_notification(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        """As the other acquirer. Moves no money."""
        return self.honest.read_notification(headers, body)

    async def pass_time(self, key: str) -> None:
        """As the other acquirer, if it follows test clocks and this lets it. Moves money."""
        follower = self.honest
        if isinstance(follower, FollowsTestClocks):
            await self._move(key, lambda: follower.pass_time(key))

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """As the other acquirer, if this lets it. Moves money."""
        await self._move(key, lambda: self.honest.capture(key, reference, amount, currency))

    async def void(self, key: str, of_key: str) -> Release:
        """As the other acquirer, if this lets it. Moves money."""
        return await self._move(key, lambda: self.honest.void(key, of_key))

    async def undo(self, key: str, of_key: str) -> Finding | UnderWay:
        """As the other acquirer, if this lets it. Moves money."""
        return await self._move(key, lambda: self.honest.undo(key, of_key))

    async def end_challenge(self, of_key: str) -> Finding:
        """As the other acquirer, if this lets it. Moves no money."""
        return await self._tell(lambda: self.honest.end_challenge(of_key))

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """As the other acquirer, if this lets it. Moves money."""
        return await self._move(key, lambda: self.honest.refund(key, reference, amount, currency, number))

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """As the other acquirer. Moves no money."""
        return await self.honest.find(key, not_after)

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        """As the other acquirer. Moves no money."""
        return await self.honest.look_back(key, since)

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """As the other acquirer. Moves no money."""
        return await self.honest.find_movement(key, of_key, reference)

    async def disputes(self, after: str) -> DisputePage:
        """As the other acquirer. Moves no money."""
        return await self.honest.disputes(after)

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        """As the other acquirer. Moves no money."""
        return await self.honest.failed_refunds(after)

    async def fraud_warnings(self, since: datetime) -> tuple[FraudWarning, ...]:
        """As the other acquirer, if it warns of any. Moves no money."""
        return await fraud_warnings_of(self.honest, since)

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """As the other acquirer. Moves no money."""
        return await self.honest.list_purchases(since, after)

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """As the other acquirer. Moves no money."""
        return await self.honest.list_refunds(since, after)

    async def find_dispute(self, reference: str) -> Dispute | None:
        """As the other acquirer. Moves no money."""
        return await self.honest.find_dispute(reference)

    async def upload_evidence(self, file: EvidenceFile) -> str:
        """As the other acquirer, if this lets it. Moves no money."""
        return await self._tell(lambda: self.honest.upload_evidence(file))

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """As the other acquirer, if this lets it. Moves no money."""
        await self._tell(lambda: self.honest.submit_evidence(reference, text, files))

    async def release_kept(self, reference: str) -> None:
        """As the other acquirer, if this lets it. Moves no money."""
        await self._tell(lambda: release_kept(self.honest, reference))

    async def own_id(self) -> str:
        """As the other acquirer. Moves no money."""
        return await own_id_of(self.honest)

    async def close(self) -> None:
        """Let go of the other acquirer."""
        await self.honest.close()
