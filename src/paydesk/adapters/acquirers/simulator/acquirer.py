"""The simulated bank in this process, behind the acquirer interface."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Final, TypeVar

from paydesk.adapters.acquirers.balance import Balance
from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageList, PageRequest
from paydesk.adapters.acquirers.interface import Earlier, Finding, MovementFinding, Outcome, Release
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.notices import Notice, NoticeRefused
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator.balance import AskedBalance
from paydesk.adapters.acquirers.simulator.bank import Bank
from paydesk.adapters.acquirers.simulator.challenge import origin_of, with_address, with_addresses, with_page
from paydesk.adapters.acquirers.simulator.holding import HOLD_PERIOD
from paydesk.adapters.acquirers.simulator.remembering import KEY_LIFETIME

_Answer = TypeVar("_Answer")


class SimulatedAcquirer:
    """Test mode's acquirer: asks a `Bank` in this process, whose record other processes may share.

    `latency` in seconds: half of it passes before the bank decides and half before its answer
    arrives, so that a crash may hit either way. `base_url` is where the challenge pages are served,
    below /simulator.
    """

    name: str = "simulator"
    capabilities: Capabilities = Capabilities(pages=True, one_click=True, evidence_files=True)
    hold_period: timedelta = HOLD_PERIOD
    key_lifetime: timedelta = KEY_LIFETIME
    keeps_cards: bool = False

    def __init__(self, bank: Bank, *, base_url: str, latency: float = 0.0) -> None:
        self.bank: Final = bank
        self.challenge_origins: tuple[str, ...] = (origin_of(base_url),)
        self._base_url = base_url
        self._latency = latency
        # Another process may hold the record's lock for a moment: one thread waits for it, not the
        # event loop.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="simulator")
        self.balance: Balance | None = AskedBalance(bank.balance, self._ask)

    async def authorize(self, purchase: Purchase) -> Outcome:
        """Decide a purchase of a customer who is present. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return with_page(self._base_url, await self._ask(partial(self.bank.purchase, purchase, stored=False)))

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """Decide a charge of a stored card. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return with_page(self._base_url, await self._ask(partial(self.bank.purchase, purchase, stored=True)))

    async def open_page(self, wanted: PageRequest) -> Page:
        """Make a page, or show the one that was made. Moves no money. Raises: AcquirerRefused."""
        return with_address(self._base_url, await self._ask(partial(self.bank.pages.open, wanted)))

    async def find_page(self, key: str, reference: str) -> Page:
        """How a page stands. Moves no money. Raises: NoSuchPage."""
        return with_address(self._base_url, await self._ask(partial(self.bank.pages.find, reference)))

    async def end_page(self, key: str, reference: str) -> Page:
        """End a page. Moves no money. Raises: NoSuchPage."""
        return with_address(self._base_url, await self._ask(partial(self.bank.pages.end, reference)))

    async def list_pages(self, since: datetime, after: str) -> PageList:
        """The pages since a time that are not over. Moves no money. Raises: AcquirerRefused."""
        return with_addresses(self._base_url, await self._ask(partial(self.bank.pages.since, since, after)))

    def read_notification(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        """The bank signs nothing: its address has a token. Raises: NoticeRefused."""
        raise NoticeRefused("the simulated bank signs nothing: it is told an address with a token")

    async def pass_time(self, key: str) -> None:
        """Let the days of a transfer be over. Moves money."""
        await self._ask(partial(self.bank.pages.pass_time, key))

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Take what an authorization holds. Moves money. Raises: AcquirerRefused."""
        await self._ask(partial(self.bank.capture, key, reference, amount, currency))

    async def void(self, key: str, of_key: str) -> Release:
        """Let go of a hold, or block its key for good. Moves money. Raises: AcquirerRefused."""
        return with_page(self._base_url, await self._ask(partial(self.bank.void, key, of_key)))

    async def undo(self, key: str, of_key: str) -> Finding:
        """Undo a purchase, or block its key for good. Moves money. Raises: AcquirerRefused."""
        return with_page(self._base_url, await self._ask(partial(self.bank.undo, key, of_key)))

    async def end_challenge(self, of_key: str) -> Finding:
        """End an open challenge; anything else stays. Moves no money."""
        return with_page(self._base_url, await self._ask(partial(self.bank.end_challenge, of_key)))

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Give captured money back. Moves money. Raises: AcquirerRefused."""
        return await self._ask(partial(self.bank.refund, key, reference, amount, currency, number))

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """What became of a purchase; by its own clock the bank takes none that is late.
        Moves no money.
        """
        return with_page(self._base_url, await self._ask(partial(self.bank.find, key)))

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        """The purchase that was ever made under a key. Moves no money."""
        return await self._ask(partial(self.bank.look_back, key))

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """What became of a capture, void or refund. Moves no money."""
        return await self._ask(partial(self.bank.find_movement, key, of_key))

    async def disputes(self, after: str) -> DisputePage:
        """The disputes that opened or changed after a cursor. Moves no money.

        Raises: AcquirerRefused.
        """
        return await self._ask(partial(self.bank.disputes, after))

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        """The refunds that failed after a cursor. Moves no money. Raises: AcquirerRefused."""
        return await self._ask(partial(self.bank.failed_refunds, after))

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """The purchases since a time, after a cursor. Moves no money. Raises: AcquirerRefused."""
        return await self._ask(partial(self.bank.list_purchases, since, after))

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """The refunds since a time, after a cursor. Moves no money. Raises: AcquirerRefused."""
        return await self._ask(partial(self.bank.list_refunds, since, after))

    async def fail_refund(self, reference: str, reason: str) -> None:
        """Fail a refund as the customer's bank would. Moves money. Raises: AcquirerRefused."""
        await self._ask(partial(self.bank.fail_refund, reference, reason))

    async def find_dispute(self, reference: str) -> Dispute | None:
        """How a dispute stands now. Moves no money."""
        return await self._ask(partial(self.bank.find_dispute, reference))

    async def upload_evidence(self, file: EvidenceFile) -> str:
        """Hand over a file that evidence will name. Moves no money. Raises: AcquirerRefused."""
        return await self._ask(partial(self.bank.upload_evidence, file))

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """Tell the merchant's side of an open dispute. Moves no money. Raises: AcquirerRefused."""
        await self._ask(partial(self.bank.submit_evidence, reference, text, files))

    async def open_dispute(self, of_key: str, reason: str) -> str:
        """Dispute a purchase as its customer would; returns the reference. Moves money.

        Raises: AcquirerRefused.
        """
        return await self._ask(partial(self.bank.open_dispute, of_key, reason))

    async def close_dispute(self, reference: str, won: bool) -> None:
        """Decide a dispute as the customer's bank would. Moves money. Raises: AcquirerRefused."""
        await self._ask(partial(self.bank.close_dispute, reference, won))

    async def release_kept(self, reference: str) -> None:
        """Forget an instrument that is kept. Moves no money."""
        await self._ask(partial(self.bank.release_kept, reference))

    async def close(self) -> None:
        """Let the bank finish what it has begun, and close its record."""
        await asyncio.to_thread(self._thread.shutdown)
        self.bank.record.close()

    async def _ask(self, question: Callable[[], _Answer]) -> _Answer:
        """Put a question to the bank, which takes its time."""
        if self._latency:
            await asyncio.sleep(self._latency / 2)
        answer = await asyncio.get_running_loop().run_in_executor(self._thread, question)
        if self._latency:
            await asyncio.sleep(self._latency / 2)
        return answer
