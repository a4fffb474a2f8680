"""Stripe as an acquirer: each purchase is a PaymentIntent with our key in its metadata
and as its idempotency key.

Card numbers are sent through the API, which Stripe allows to accounts that it approved for
that only; any other account's customers pay on Stripe's own page (`sessions.py`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from urllib.parse import urlsplit

from paydesk.adapters.acquirers.balance import Balance
from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.fraud_warnings import FraudWarning
from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageList, PageRequest
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Challenged,
    Declined,
    DeclineReason,
    Earlier,
    Finding,
    KeyUsed,
    MovementFinding,
    NothingHeld,
    Outcome,
    Release,
    UnderWay,
    Voided,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.notices import Notice
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.reaching import one_call
from paydesk.adapters.acquirers.stripe.amounts import main_units, minor_units
from paydesk.adapters.acquirers.stripe.balance import StripeBalance
from paydesk.adapters.acquirers.stripe.calls import Calls, KeyTaken, Rejected
from paydesk.adapters.acquirers.stripe.charging import Charging
from paydesk.adapters.acquirers.stripe.disputes import Disputes
from paydesk.adapters.acquirers.stripe.failed_refunds import FailedRefunds
from paydesk.adapters.acquirers.stripe.fraud_warnings import FraudWarnings
from paydesk.adapters.acquirers.stripe.listing import Listing
from paydesk.adapters.acquirers.stripe.looking import Looking
from paydesk.adapters.acquirers.stripe.movements import Movements
from paydesk.adapters.acquirers.stripe.notices import Notices
from paydesk.adapters.acquirers.stripe.objects import (
    KEY,
    Intent,
    Method,
    Named,
    finding_of,
    mark_of,
)
from paydesk.adapters.acquirers.stripe.sessions import Sessions
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted

KEPT: Final = re.compile(r"(cus_\w{1,200})/((?:pm|card|src)_\w{1,200})(/\w{1,40})?")
"""What Stripe keeps of an instrument: its customer, its method, and of which kind that is."""

_CHALLENGE_ORIGIN: Final = "https://hooks.stripe.com"
_PAGE_ORIGIN: Final = "https://checkout.stripe.com"
_WITH_CARDS: Final = Capabilities(cards=True, pages=False, stored=True, one_click=True, evidence_files=True)
_WITH_PAGES: Final = Capabilities(cards=False, pages=True, stored=True, one_click=True, evidence_files=True)


class StripeAcquirer:
    """Asks Stripe, or what stands in for it at `api_base`.

    How unknown outcomes are resolved, and why that is safe, is told in `looking.py`.
    """

    name: str = "stripe"
    hold_period: timedelta = timedelta(days=7)
    key_lifetime: timedelta = timedelta(hours=24)
    keeps_cards: bool = True

    def __init__(
        self,
        secret_key: str,
        *,
        api_base: str = "",
        timeout: float = 30.0,
        now: Callable[[], datetime] = utc_now,
        hosts_pages: bool = False,
        checkout_domain: str = "",
        webhook_secrets: Sequence[str] = (),
    ) -> None:
        """Prepare calls; no connection is made yet.
        `timeout` is the seconds that Stripe has for a whole answer.

        With `hosts_pages` customers pay on Stripe's own page, and no card number is sent; its
        address is at `checkout_domain` where the account has one of its own. Notifications are
        signed with one of `webhook_secrets`.

        Raises: SetupError.
        """
        elsewhere = urlsplit(api_base)
        own = (f"{elsewhere.scheme}://{elsewhere.netloc}",) if api_base else ()
        pages = (_PAGE_ORIGIN, *([f"https://{checkout_domain}"] if checkout_domain else [])) if hosts_pages else ()
        self.capabilities: Capabilities = _WITH_PAGES if hosts_pages else _WITH_CARDS
        self.challenge_origins: tuple[str, ...] = (_CHALLENGE_ORIGIN, *pages, *own)
        self._now: Final = now
        self._side: Final = "live" if secret_key.startswith(("sk_live_", "rk_live_")) else "test"
        self._calls: Final = Calls(secret_key, api_base, timeout)
        self._charging: Final = Charging(self._calls, now)
        self._looking: Final = Looking(self._calls, now)
        self._sessions: Final = Sessions(self._calls, self._looking)
        self._movements: Final = Movements(self._calls, self._looking)
        self._disputes: Final = Disputes(self._calls, self._looking, now)
        self._failed_refunds: Final = FailedRefunds(self._calls, self._looking)
        self._fraud_warnings: Final = FraudWarnings(self._calls)
        self._listing: Final = Listing(self._calls)
        self.balance: Balance | None = StripeBalance(self._calls)
        self._notices: Final = Notices(webhook_secrets, now)

    async def authorize(self, purchase: Purchase) -> Outcome:
        """Take or hold money from the card of a customer who is present. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        if not (self.capabilities.cards or purchase.stored_reference):
            raise AcquirerRefused(noted("customers pay on Stripe's own page: no card number is sent"))
        if not purchase.return_url.startswith(("https://", "http://")):
            raise AcquirerRefused(noted("3-D Secure needs a return_url that starts with https:// or http://"))
        units = minor_units(purchase.amount, purchase.currency)
        if purchase.stored_reference and KEPT.fullmatch(purchase.stored_reference) is None:
            return Declined(DeclineReason.DECLINED)
        async with one_call():
            if purchase.stored_reference:
                return await self._once(purchase, self._charging.one_click)
            return await self._once(purchase, self._charging.check if units == 0 else self._charging.present)

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """Take money from what Stripe keeps since the first payment. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        kept = purchase.stored_reference or purchase.network_reference
        if not kept:
            raise AcquirerRefused(noted("a charge of a stored card must name the customer's first payment"))
        if not kept.startswith("cus_"):
            # Kept by another acquirer: a decline, so that the failing subscription asks its
            # customer for a card.
            return Declined(DeclineReason.DECLINED)
        minor_units(purchase.amount, purchase.currency)
        async with one_call():
            return await self._once(purchase, self._charging.kept)

    async def open_page(self, wanted: PageRequest) -> Page:
        """Make a Checkout Session, or show the one that was made. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        async with one_call():
            return await self._sessions.open(wanted)

    async def find_page(self, key: str, reference: str) -> Page:
        """How a Checkout Session stands. Moves no money.

        Raises: NoSuchPage, AcquirerRefused, OutcomeUnknown.
        """
        return await self._sessions.find(key, reference)

    async def end_page(self, key: str, reference: str) -> Page:
        """Expire a Checkout Session. Moves no money.

        Raises: NoSuchPage, AcquirerRefused, OutcomeUnknown.
        """
        return await self._sessions.end(key, reference)

    async def list_pages(self, since: datetime, after: str) -> PageList:
        """The Checkout Sessions since a time that are open or complete. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._sessions.since(since, after)

    def read_notification(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        """What an event that Stripe has signed is about. Moves no money. Raises: NoticeRefused."""
        return self._notices.read(headers, body)

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Take what an authorization holds. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        await self._movements.capture(key, reference, amount, currency)

    async def void(self, key: str, of_key: str) -> Release:
        """Let go of a hold, or use up its key. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._movements.void(key, of_key)

    async def undo(self, key: str, of_key: str) -> Finding | UnderWay:
        """Undo a purchase, or use up its key. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._movements.undo(key, of_key)

    async def end_challenge(self, of_key: str) -> Finding:
        """End an open challenge; anything else stays. Moves no money. Raises: OutcomeUnknown."""
        return await self._movements.end_challenge(of_key)

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Give captured money back. Moves money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._movements.refund(key, reference, amount, currency, number)

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """What became of a purchase; one that has not arrived in time never will. Moves no money.

        Raises: OutcomeUnknown.
        """
        over = not_after is not None and self._now() > not_after
        look = self._looking.purchase if over else self._looking.so_far
        intent = await look(key, not_after)
        if intent is None:
            return NothingHeld()
        return finding_of(intent, voided=await self._looking.is_voided(intent))

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        """The purchase that was ever made under a key, by list and search, or the page that nobody
        paid on. Moves no money.

        Raises: OutcomeUnknown.
        """
        intent = await self._looking.ever(key)
        if intent is None:
            return await self._sessions.expired(key, self._now()) if self.capabilities.pages else None
        if intent.status == "processing":
            # What it waits for is told of the payment alone.
            intent = await self._looking.intent(intent.id) or intent
        finding = finding_of(intent, voided=await self._looking.is_voided(intent))
        if KEY not in intent.metadata:
            finding = Voided()
        amount = main_units(intent.amount, intent.currency) if intent.currency else Decimal(0)
        capture = intent.capture_method != "manual" and not intent.is_setup
        return Earlier(finding, amount, intent.currency.upper(), capture, mark_of(intent.metadata))

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """What became of a capture, void or refund. Moves no money. Raises: OutcomeUnknown."""
        return await self._movements.find(key, of_key, reference)

    async def disputes(self, after: str) -> DisputePage:
        """What happened to disputes after a cursor. Moves no money. Raises: OutcomeUnknown."""
        return await self._disputes.after(after)

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        """The refunds that failed after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._failed_refunds.after(after)

    async def fraud_warnings(self, since: datetime) -> tuple[FraudWarning, ...]:
        """The early fraud warnings since a time. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._fraud_warnings.since(since)

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """The purchases since a time, after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._listing.purchases(since, after)

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """The refunds since a time, after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._listing.refunds(since, after)

    async def find_dispute(self, reference: str) -> Dispute | None:
        """How a dispute stands now. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._disputes.named(reference)

    async def upload_evidence(self, file: EvidenceFile) -> str:
        """Hand over a file. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._disputes.upload_evidence(file)

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """Hand in the merchant's side, once only. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        await self._disputes.submit_evidence(reference, text, files)

    async def release_kept(self, reference: str) -> None:
        """Detach a payment method from its customer: it can't be charged any more. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        names = KEPT.fullmatch(reference)
        if names is None:
            return
        service = self._calls.v1.payment_methods
        try:
            await self._calls.ask(service.detach_async(names[2]), Named)
        except (AcquirerRefused, Rejected) as refused:
            # What was detached before is refused; what is gone has no customer either.
            left = await self._calls.look(service.retrieve_async(names[2]), Method)
            if left is not None and left.customer:
                raise AcquirerRefused(str(refused)) from None

    async def own_id(self) -> str:
        """The account's name at Stripe, which is the same on both sides, and the key's side, which
        has lists of its own. Moves no money.

        Raises: AcquirerRefused for a restricted key that may not read its account, OutcomeUnknown.
        """
        account = await self._calls.ask(self._calls.v1.accounts.retrieve_current_async(), Named)
        return f"{account.id} {self._side}"

    async def close(self) -> None:
        """Let go of connections."""
        await self._calls.close()

    async def _once(self, purchase: Purchase, take: Callable[[Purchase], Awaitable[Intent]]) -> Outcome:
        """Send a purchase unless it is too late; say what its key stands for if
        that was used before. Moves money.
        """
        if self._now() > purchase.not_after:
            return _as_outcome(await self.find(purchase.key, purchase.not_after))
        try:
            intent = await take(purchase)
        except Rejected as rejected:
            return Declined(rejected.reason)
        except KeyTaken:
            raise KeyUsed(noted("the key was used for another purchase before")) from None
        self._looking.remember(purchase.key, intent)
        outcome = _as_outcome(finding_of(intent, voided=False))
        if isinstance(outcome, Challenged) and not outcome.url:
            # Nothing that a redirect could answer.
            await self._movements.end_challenge(purchase.key)
            return Declined(DeclineReason.AUTHENTICATION_FAILED)
        return outcome


def _as_outcome(finding: Finding) -> Outcome:
    """A finding as the answer to a purchase: one that never arrived, or was undone,
    comes too late.
    """
    if isinstance(finding, NothingHeld | Voided):
        return Declined(DeclineReason.TOO_LATE)
    return finding
