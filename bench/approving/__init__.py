"""An acquirer for benches: it approves whatever it is asked, at once or after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from paydesk.adapters.acquirers.balance import Balance
from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageList, PageRequest
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Earlier,
    Finding,
    MovementFinding,
    NothingHeld,
    Outcome,
    Release,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.notices import Notice, NoticeRefused
from paydesk.adapters.acquirers.purchases import Purchase


class Approving:
    """An acquirer that approves everything after so many seconds."""

    name = "bench"
    hold_period = timedelta(days=7)
    key_lifetime = timedelta(hours=24)
    keeps_cards = False
    capabilities = Capabilities()
    challenge_origins: tuple[str, ...] = ()
    balance: Balance | None = None

    def __init__(self, latency: float) -> None:
        self.latency = latency
        self.calls = 0

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """Approve."""
        self.calls += 1
        if self.latency:
            await asyncio.sleep(self.latency)
        return Approved(purchase.key, purchase.key)

    async def authorize(self, purchase: Purchase) -> Outcome:
        """As any charge."""
        return await self.charge_stored(purchase)

    async def open_page(self, wanted: PageRequest) -> Page:
        """Nobody asks here."""
        raise AcquirerRefused("this bank hosts no page")

    async def find_page(self, key: str, reference: str) -> Page:
        """Nobody asks here."""
        raise AcquirerRefused("this bank hosts no page")

    async def end_page(self, key: str, reference: str) -> Page:
        """Nobody asks here."""
        raise AcquirerRefused("this bank hosts no page")

    async def list_pages(self, since: datetime, after: str) -> PageList:
        """Nobody asks here."""
        raise AcquirerRefused("this bank hosts no page")

    def read_notification(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        """It tells nothing."""
        raise NoticeRefused("this bank tells nothing")

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        """Nobody asks here."""
        return None

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """Nobody asks here."""
        return NothingHeld()

    async def end_challenge(self, of_key: str) -> Finding:
        """Nobody asks here."""
        return NothingHeld()

    async def void(self, key: str, of_key: str) -> Release:
        """Nobody asks here."""
        return NothingHeld()

    async def undo(self, key: str, of_key: str) -> Finding:
        """Nobody asks here."""
        return NothingHeld()

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Nobody asks here."""

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Nobody asks here."""
        return key

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """Nobody asks here."""
        return NothingHeld()

    async def disputes(self, after: str) -> DisputePage:
        """There are none."""
        return DisputePage((), after)

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        """There are none."""
        return FailedRefundPage((), after)

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """Nobody asks here."""
        raise AcquirerRefused("its list is not read here")

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """Nobody asks here."""
        raise AcquirerRefused("its list is not read here")

    async def find_dispute(self, reference: str) -> Dispute | None:
        """There are none."""
        return None

    async def upload_evidence(self, file: EvidenceFile) -> str:
        """Nobody asks here."""
        return file.key

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """Nobody asks here."""

    async def close(self) -> None:
        """Nothing is open."""
