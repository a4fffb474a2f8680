"""The simulated bank in a process of its own, behind the acquirer interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final, TypeVar, cast

import aiohttp
import msgspec

from paydesk.adapters.acquirers.balance import Balance, BalanceLine, LinePage, PayoutPage
from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageList, PageRequest
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Earlier,
    Finding,
    KeyUsed,
    MovementFinding,
    NoSuchPage,
    NothingBegun,
    Outcome,
    OutcomeUnknown,
    Release,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.notices import Notice, NoticeRefused
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator.challenge import origin_of, with_address, with_addresses, with_page
from paydesk.adapters.acquirers.simulator.holding import HOLD_PERIOD
from paydesk.adapters.acquirers.simulator.remembering import KEY_LIFETIME
from paydesk.adapters.acquirers.simulator.wire import (
    AboutDispute,
    AboutKept,
    AboutKey,
    AboutPage,
    AboutPayout,
    After,
    Answer,
    Claim,
    Decided,
    DisputeAnswer,
    EarlierAnswer,
    Evidence,
    Failure,
    Movement,
    Refusal,
    Since,
    earlier_of,
    finding_of,
    movement_finding_of,
    release_of,
)

_Question = (
    Purchase
    | PageRequest
    | Movement
    | AboutKept
    | AboutKey
    | AboutPage
    | AboutPayout
    | AboutDispute
    | After
    | Since
    | Claim
    | Decided
    | Evidence
    | EvidenceFile
    | Failure
)
_Wanted = TypeVar("_Wanted")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long to wait, in seconds: for a connection, and for the whole answer."""

    connect: float = 2.0
    total: float = 10.0


class RemoteSimulator:
    """Asks a simulated bank over HTTP at `base_url`;
    whatever is not a clear answer is OutcomeUnknown.
    """

    name: str = "simulator"
    capabilities: Capabilities = Capabilities(pages=True, one_click=True, evidence_files=True)
    hold_period: timedelta = HOLD_PERIOD
    key_lifetime: timedelta = KEY_LIFETIME
    keeps_cards: bool = False

    def __init__(self, base_url: str, *, timeouts: Timeouts | None = None) -> None:
        self.challenge_origins: tuple[str, ...] = (origin_of(base_url),)
        self._base_url: Final = base_url.rstrip("/")
        waits = timeouts or Timeouts()
        self._timeout: Final = aiohttp.ClientTimeout(total=waits.total, connect=waits.connect)
        self._session: aiohttp.ClientSession | None = None
        self.balance: Balance | None = self

    async def authorize(self, purchase: Purchase) -> Outcome:
        """Decide a purchase of a customer who is present. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return cast("Outcome", await self._finding("authorize", purchase))

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """Decide a charge of a stored card. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return cast("Outcome", await self._finding("charge_stored", purchase))

    async def open_page(self, wanted: PageRequest) -> Page:
        """Make a page, or show the one that was made. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return with_address(self._base_url, await self._read("open_page", wanted, Page))

    async def find_page(self, key: str, reference: str) -> Page:
        """How a page stands. Moves no money. Raises: NoSuchPage, OutcomeUnknown."""
        return with_address(self._base_url, await self._read("find_page", AboutPage(reference), Page))

    async def end_page(self, key: str, reference: str) -> Page:
        """End a page. Moves no money. Raises: NoSuchPage, OutcomeUnknown."""
        return with_address(self._base_url, await self._read("end_page", AboutPage(reference), Page))

    async def list_pages(self, since: datetime, after: str) -> PageList:
        """The pages since a time that are not over. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return with_addresses(self._base_url, await self._read("pages", Since(since, after), PageList))

    def read_notification(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        """The bank signs nothing: its address has a token. Raises: NoticeRefused."""
        raise NoticeRefused("the simulated bank signs nothing: it is told an address with a token")

    async def pass_time(self, key: str) -> None:
        """Let the days of a transfer be over. Moves money. Raises: OutcomeUnknown."""
        await self._ask("pass_time", AboutKey(key))

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Take what an authorization holds. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        await self._ask("capture", Movement(key, reference, amount, currency))

    async def void(self, key: str, of_key: str) -> Release:
        """Let go of a hold, or block its key for good. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        answer = await self._ask("void", AboutKey(of_key, key))
        try:
            return with_page(self._base_url, release_of(answer))
        except ValueError as error:
            raise OutcomeUnknown(str(error)) from error

    async def undo(self, key: str, of_key: str) -> Finding:
        """Undo a purchase, or block its key for good. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._finding("undo", AboutKey(of_key, key))

    async def end_challenge(self, of_key: str) -> Finding:
        """End an open challenge; anything else stays. Moves no money. Raises: OutcomeUnknown."""
        return await self._finding("end_challenge", AboutKey(of_key))

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Give captured money back. Moves money. Raises: AcquirerRefused, OutcomeUnknown."""
        return (await self._ask("refund", Movement(key, reference, amount, currency, number))).reference

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """What became of a purchase; by its own clock the bank takes none that is late.
        Moves no money.

        Raises: OutcomeUnknown.
        """
        return await self._finding("find", AboutKey(key))

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        """The purchase that was ever made under a key. Moves no money. Raises: OutcomeUnknown."""
        answer = await self._read("look_back", AboutKey(key), EarlierAnswer)
        try:
            return earlier_of(answer)
        except ValueError as error:
            raise OutcomeUnknown(str(error)) from error

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """What became of a capture, void or refund. Moves no money. Raises: OutcomeUnknown."""
        answer = await self._ask("find_movement", AboutKey(of_key, key))
        try:
            return movement_finding_of(answer)
        except ValueError as error:
            raise OutcomeUnknown(str(error)) from error

    async def disputes(self, after: str) -> DisputePage:
        """The disputes that changed after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._read("disputes", After(after), DisputePage)

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        """The refunds that failed after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._read("failed_refunds", After(after), FailedRefundPage)

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """The purchases since a time, after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._read("purchases", Since(since, after), PurchasePage)

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """The refunds since a time, after a cursor. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._read("refunds", Since(since, after), RefundPage)

    async def lines(self, since: datetime, after: str) -> LinePage:
        """The movements of the balance since a time. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return await self._read("balance_lines", Since(since, after), LinePage)

    async def payouts(self, since: datetime, after: str) -> PayoutPage:
        """The payouts since a time. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._read("payouts", Since(since, after), PayoutPage)

    async def lines_of(self, payout: str, after: str) -> LinePage:
        """The movements of a payout. Moves no money. Raises: AcquirerRefused, OutcomeUnknown."""
        return await self._read("payout_lines", AboutPayout(payout, after), LinePage)

    async def with_keys(self, lines: Sequence[BalanceLine]) -> Sequence[BalanceLine]:
        """They have them. Moves no money."""
        return lines

    async def fail_refund(self, reference: str, reason: str) -> None:
        """Fail a refund as the customer's bank would. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        await self._ask("fail_refund", Failure(reference, reason))

    async def find_dispute(self, reference: str) -> Dispute | None:
        """How a dispute stands now. Moves no money. Raises: OutcomeUnknown."""
        return (await self._read("find_dispute", AboutDispute(reference), DisputeAnswer)).dispute

    async def upload_evidence(self, file: EvidenceFile) -> str:
        """Hand over a file that evidence will name. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return (await self._ask("upload_evidence", file)).reference

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """Tell the merchant's side of a dispute. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        await self._ask("submit_evidence", Evidence(reference, text, dict(files)))

    async def open_dispute(self, of_key: str, reason: str) -> str:
        """Dispute a purchase as its customer would. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        return (await self._ask("open_dispute", Claim(of_key, reason))).reference

    async def close_dispute(self, reference: str, won: bool) -> None:
        """Decide a dispute as the customer's bank would. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        await self._ask("close_dispute", Decided(reference, won))

    async def release_kept(self, reference: str) -> None:
        """Forget an instrument that is kept. Moves no money. Raises: OutcomeUnknown."""
        await self._ask("release_kept", AboutKept(reference))

    async def close(self) -> None:
        """Let go of connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _finding(self, path: str, question: Purchase | AboutKey) -> Finding:
        """Ask for a finding."""
        answer = await self._ask(path, question)
        try:
            return with_page(self._base_url, finding_of(answer))
        except ValueError as error:
            raise OutcomeUnknown(str(error)) from error

    async def _ask(self, path: str, question: _Question) -> Answer:
        """Ask for an answer."""
        return await self._read(path, question, Answer)

    async def _read(self, path: str, question: _Question, wanted: type[_Wanted]) -> _Wanted:
        """Ask once (a POST is never repeated by the HTTP client) and trust nothing
        but a complete answer.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        try:
            async with self._session.post(
                f"{self._base_url}/{path}", data=msgspec.json.encode(question), allow_redirects=False
            ) as response:
                status, body = response.status, await response.read()
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NothingBegun(f"no connection to the bank: {type(error).__name__}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise OutcomeUnknown(f"no answer from the bank: {type(error).__name__}") from error
        try:
            if status == 200:
                return msgspec.json.decode(body, type=wanted)
            if status == 409:
                refusal = msgspec.json.decode(body, type=Refusal)
                raise _meaning(refusal)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise OutcomeUnknown("the bank's answer can't be read") from error
        raise OutcomeUnknown(f"the bank answered with status {status}")


def _meaning(refusal: Refusal) -> AcquirerRefused:
    """The error that a refusal of the bank's is."""
    if refusal.key_used:
        return KeyUsed(refusal.refused)
    return NoSuchPage(refusal.refused) if refusal.no_page else AcquirerRefused(refusal.refused)
