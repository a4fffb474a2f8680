"""Mollie as an acquirer: customers pay on its page, and each page is a payment of Mollie's with our
key in its metadata.

No card number goes through us; nothing is taken by a method whose money is not sure for days.
Cards that were paid with on its page are kept at Mollie, and charged by its mandates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from urllib.parse import urlsplit

from paydesk.adapters.acquirers.balance import Balance
from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageList, PageRequest
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Earlier,
    Finding,
    MovementFinding,
    NothingHeld,
    Outcome,
    Release,
    UnderWay,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.mollie.balance import MollieBalance
from paydesk.adapters.acquirers.mollie.calls import Calls
from paydesk.adapters.acquirers.mollie.disputes import Disputes
from paydesk.adapters.acquirers.mollie.failed_refunds import FailedRefunds
from paydesk.adapters.acquirers.mollie.holding import Holds
from paydesk.adapters.acquirers.mollie.kept import BEFORE, Kept
from paydesk.adapters.acquirers.mollie.listing import Listing
from paydesk.adapters.acquirers.mollie.looking import Looking
from paydesk.adapters.acquirers.mollie.movements import Movements
from paydesk.adapters.acquirers.mollie.objects import Named, finding_of
from paydesk.adapters.acquirers.mollie.pages import KEY_KEPT, Pages
from paydesk.adapters.acquirers.notices import Notice, NoticeRefused
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.reaching import one_call
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted, worded

_PAGE_ORIGINS: Final = ("https://www.mollie.com", "https://*.mollie.com")


class MollieAcquirer:
    """Asks Mollie, or what stands in for it at `api_base`."""

    name: str = "mollie"
    hold_period: timedelta = timedelta(days=7)
    key_lifetime: timedelta = KEY_KEPT
    keeps_cards: bool = False

    def __init__(
        self,
        key: str,
        *,
        api_base: str = "",
        timeout: float = 30.0,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """Prepare calls; no connection is made yet.
        `timeout` is the seconds that Mollie has for a whole answer.

        After the API key, and a blank, `key` may have an access token, by which balances are read.

        Raises: SetupError.
        """
        elsewhere = urlsplit(api_base)
        own = (f"{elsewhere.scheme}://{elsewhere.netloc}",) if api_base else ()
        self.capabilities: Capabilities = Capabilities(
            cards=False,
            pages=True,
            stored=True,
            answered_at=worded("Mollie takes a merchant's side in its dashboard only"),
        )
        self.challenge_origins: tuple[str, ...] = (*_PAGE_ORIGINS, *own)
        api_key, _, token = key.strip().partition(" ")
        self._calls: Final = Calls(api_key, api_base, timeout)
        self._by_token: Final = Calls(token.strip(), api_base, timeout, is_token=True) if token else None
        self._side: Final = "live" if key.startswith("live_") else "test"
        self._looking: Final = Looking(self._calls, now)
        self._kept: Final = Kept(self._calls, self._looking, now)
        self._pages: Final = Pages(self._calls, self._looking, self._kept, now)
        self._holds: Final = Holds(self._calls, self._looking)
        self._movements: Final = Movements(self._calls, self._looking, self._kept, self._holds)
        self._disputes: Final = Disputes(self._calls, self._looking, now)
        self._failed_refunds: Final = FailedRefunds(self._calls, now)
        self._listing: Final = Listing(self._calls)
        self.balance: Balance | None = (
            MollieBalance(self._calls, self._by_token, for_tests=api_key.startswith("test_"))
            if self._by_token is not None
            else None
        )

    async def authorize(self, purchase: Purchase) -> Outcome:
        """Never: cards are typed on Mollie's page. Moves no money. Raises: AcquirerRefused."""
        raise AcquirerRefused(noted("customers pay on Mollie's own page: no card number is sent"))

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """Take money by a mandate that Mollie keeps since the first payment. Moves money.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown.
        """
        async with one_call():
            return await self._kept.charge(purchase)

    async def open_page(self, wanted: PageRequest) -> Page:
        """Make a payment, or show the one that was made. Moves no money.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown.
        """
        async with one_call():
            return await self._pages.open(wanted)

    async def find_page(self, key: str, reference: str) -> Page:
        """How a payment stands. Moves no money. Raises: NoSuchPage, OutcomeUnknown."""
        return await self._pages.find(key, reference)

    async def end_page(self, key: str, reference: str) -> Page:
        """Cancel a payment, if Mollie lets us; most stay open until their own end.
        Moves no money. Raises: NoSuchPage, OutcomeUnknown.
        """
        return await self._pages.end(key, reference)

    async def list_pages(self, since: datetime, after: str) -> PageList:
        """The payments since a time that are open, on their way or paid. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._pages.since(since, after)

    def read_notification(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        """Never: Mollie signs nothing, the address says it all. Moves no money.

        Raises: NoticeRefused.
        """
        raise NoticeRefused("Mollie signs no notification: its address has a token of ours")

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Take what is held, or a part of it. Moves money.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown.
        """
        await self._holds.capture(key, reference, amount, currency)

    async def void(self, key: str, of_key: str) -> Release:
        """Let go of what is held, or end what is open. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._movements.void(key, of_key)

    async def undo(self, key: str, of_key: str) -> Finding | UnderWay:
        """Undo a payment: give it all back. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._movements.undo(key, of_key)

    async def end_challenge(self, of_key: str) -> Finding:
        """End an open payment; anything else stays. Moves no money. Raises: OutcomeUnknown."""
        return await self._movements.end_challenge(of_key)

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Give captured money back. Moves money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._movements.refund(key, reference, amount, currency, number)

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """What became of a payment, as far as Mollie's list of the last weeks goes.
        Moves no money. Raises: OutcomeUnknown.
        """
        payment = await self._looking.under(key, not_after and not_after - BEFORE)
        if payment is None:
            return NothingHeld()
        return finding_of(payment, voided=await self._looking.is_voided(payment))

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        """The payment that was ever made under a key, by Mollie's list. Moves no money.

        Raises: OutcomeUnknown.
        """
        payment = await self._looking.under(key, since)
        if payment is None:
            return None
        finding = finding_of(payment, voided=await self._looking.is_voided(payment))
        return Earlier(finding, payment.amount.amount, payment.amount.currency, not payment.may_be_held, payment.mark)

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """What became of a refund or an undoing. Moves no money. Raises: OutcomeUnknown."""
        return await self._movements.find(key, of_key, reference)

    async def disputes(self, after: str) -> DisputePage:
        """What happened to chargebacks after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._disputes.after(after)

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        """The refunds that failed. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._failed_refunds.after(after)

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """The payments since a time, after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._listing.purchases(since, after)

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """The refunds since a time, after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._listing.refunds(since, after)

    async def find_dispute(self, reference: str) -> Dispute | None:
        """How a chargeback stands now. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._disputes.named(reference)

    async def upload_evidence(self, file: EvidenceFile) -> str:
        """Never: Mollie's interface takes none. Moves no money. Raises: AcquirerRefused."""
        self._disputes.refuse_evidence()

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """Never: Mollie's interface takes none. Moves no money. Raises: AcquirerRefused."""
        self._disputes.refuse_evidence()

    async def release_kept(self, reference: str) -> None:
        """Revoke a mandate: it is charged never again. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        await self._kept.revoke(reference)

    async def own_id(self) -> str:
        """The profile's name at Mollie, to which a key and its lists belong, and the key's side.
        Moves no money. Raises: AcquirerRefused, OutcomeUnknown.
        """
        profile = await self._calls.ask(self._calls.sdk.profiles.get_current_async, Named)
        return f"{profile.id} {self._side}"

    async def close(self) -> None:
        """Let go of connections."""
        await self._calls.close()
        if self._by_token is not None:
            await self._by_token.close()
