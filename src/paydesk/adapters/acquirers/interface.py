"""What Paydesk asks of an acquirer, and the answers that it may get.

Every call that may move money carries an idempotency key that was committed before the call. An
acquirer must treat a repeated key as the same request, and must be able to say by that key what
became of it. Disputes are polled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Protocol, runtime_checkable

from paydesk.adapters.acquirers.balance import Balance
from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.hosted_pages import Capabilities, Page, PageList, PageRequest
from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.marks import Mark
from paydesk.adapters.acquirers.notices import Notice
from paydesk.adapters.acquirers.purchases import Purchase


class DeclineReason(StrEnum):
    """Why a bank refused, as far as a customer or a merchant may act on it."""

    DECLINED = "declined"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    EXPIRED_CARD = "expired_card"
    WRONG_CVC = "wrong_cvc"
    PROCESSING_ERROR = "processing_error"
    AUTHENTICATION_FAILED = "authentication_failed"
    STOLEN_CARD = "stolen_card"
    CLOSED_ACCOUNT = "closed_account"
    TOO_LATE = "too_late"
    REQUEST_REFUSED = "request_refused"
    """The acquirer would not take the request as such: no bank was asked."""
    NOT_REACHED = "not_reached"
    """There was no connection to the acquirer, or it took no request: nothing was begun."""


@dataclass(frozen=True, slots=True)
class Approved:
    """The money is taken (or held); `reference` names it at the acquirer.

    `until` (here, in Declined and in Challenged) is the `not_after` of the purchase that was so
    answered, as far as the acquirer keeps it: another than one's own tells that the key met an
    older purchase, which we have forgotten. `instrument` is what was paid with on a page of the
    acquirer's; what was typed on ours we know. `hold_until` (UTC, real time) is when the acquirer
    lets go of money that is only held; None if it does not tell: then its `hold_period` counts.
    """

    reference: str
    network_reference: str = ""
    until: datetime | None = field(default=None, compare=False)
    instrument: Instrument | None = field(default=None, compare=False)
    hold_until: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Declined:
    """The bank said no; nothing was taken."""

    reason: DeclineReason
    until: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Challenged:
    """The bank wants to see the customer first: send the browser to `url` (3-D Secure)."""

    reference: str
    url: str
    until: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Pending:
    """The customer has paid by a slow method, and the money is not sure yet; `reference` as in
    Challenged.

    `until` (UTC, real time) is when the bank will know at the latest, None if nobody can say;
    `instrument` is what was paid with.
    """

    reference: str
    until: datetime | None = field(default=None, compare=False)
    instrument: Instrument | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Voided:
    """The purchase was undone, or an open challenge was ended; nothing is held any more."""


@dataclass(frozen=True, slots=True)
class NothingHeld:
    """The acquirer has never seen the key (so far)."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The money is taken, nothing is held: `amount` was captured, in the purchase's currency."""

    reference: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Moved:
    """The movement was made; `reference` names it at the acquirer, if it names such a thing.

    `amount` is what a refund gave back, in the main unit of its currency, where it was looked up.
    """

    reference: str
    amount: Decimal | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """The movement was refused for `reason`: nothing moved, and never will under its key."""

    reason: str


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The acquirer has taken the request and does not show yet what came of it: ask it later,
    send nothing again.
    """


Outcome = Approved | Declined | Challenged | Pending
Finding = Approved | Declined | Challenged | Pending | Voided | NothingHeld
Release = Finding | Captured | UnderWay
MovementFinding = Moved | Refused | NothingHeld | UnderWay


@dataclass(frozen=True, slots=True)
class Earlier:
    """A purchase under a key, as the acquirer's own list has it; Voided also for a used-up key.

    `amount` is what was asked for, in the main unit of `currency`, and `capture` whether it was to
    be taken at once.
    """

    finding: Finding
    amount: Decimal
    currency: str
    capture: bool
    mark: Mark | None


def is_earlier(answer: Finding, not_after: datetime) -> bool:
    """Whether an answer is to an older purchase under the key than that with this `not_after`."""
    until = answer.until if isinstance(answer, Approved | Declined | Challenged) else None
    return until is not None and until != not_after


class OutcomeUnknown(Exception):
    """The call may or may not have reached the acquirer: only a later look-up can tell."""


class Undecided(OutcomeUnknown):
    """The acquirer answered, and does not say yet what came of it: it is well, and is asked later
    all the same.
    """


class NothingBegun(OutcomeUnknown):
    """No request of the call had a connection, or was taken (429): nothing was begun by it.

    Of what was sent before under the same key it says nothing. Whoever can't make use of the
    difference takes it for unknown.
    """


class AcquirerRefused(Exception):
    """The acquirer refused a request as such; the message is its reason, nothing moved.

    A purchase that it can't take (a card that it does not keep any more, an amount below its least
    one), or a capture, void or refund that is not possible.
    """


class NoSuchPage(AcquirerRefused):
    """The acquirer has no such page, or does not know it any more."""


class KeyUsed(AcquirerRefused):
    """The key was used for something else: this request moved nothing;
    `find` tells what that was.
    """


class Acquirer(Protocol):
    """A bank's interface; each method says whether it moves money.

    A repeated key gets the first answer again, whatever happened since; `find` tells how the
    purchase stands now. A purchase that differs from the first in anything is refused (KeyUsed).
    After `key_lifetime` the acquirer may have forgotten the key, and takes a purchase under it for
    a new one; its list (`look_back`) knows it still. A capture, a void and a refund are repeated
    too: a caller that lost the answer may finish what it began by sending the same key again. (A
    purchase is never sent again: its card is not kept for that.)

    Raises (all methods): OutcomeUnknown when no trustworthy answer came back. Methods that take a
    new key also raise AcquirerRefused, and KeyUsed for a key that was used for something else.
    """

    name: str
    capabilities: Capabilities
    """What it can do; what it can't is never asked of it."""
    hold_period: timedelta
    """How long an authorization holds the customer's money, where an approval does not tell."""
    key_lifetime: timedelta
    """How long it surely knows an idempotency key again."""
    keeps_cards: bool
    """Whether it keeps subscriptions' cards itself: renewals name them by `network_reference`."""
    challenge_origins: tuple[str, ...]
    """Origins (scheme://host:port) of challenge pages, and of pages that it hosts, for the
    Content-Security-Policy.
    """
    balance: Balance | None
    """What it tells of the balance that it keeps for us; None if it tells nothing of it."""

    async def authorize(self, purchase: Purchase) -> Outcome:
        """Take or hold money from the card of a customer who is present. Moves money."""

    async def charge_stored(self, purchase: Purchase) -> Outcome:
        """Take money from a stored card, or from an instrument that is kept, without the customer
        (merchant-initiated). Moves money.

        Pending is the answer where its bank takes some days; `find` tells what it came to.
        """

    async def open_page(self, wanted: PageRequest) -> Page:
        """Make a page for the customer to pay on, or show the one that was made under this key.
        Moves no money by itself.

        Raises: AcquirerRefused, KeyUsed.
        """

    async def find_page(self, key: str, reference: str) -> Page:
        """How the page `reference`, made under `key`, stands now. Moves no money.

        Raises: NoSuchPage, AcquirerRefused.
        """

    async def end_page(self, key: str, reference: str) -> Page:
        """See to it that nobody pays on the page any more. Moves no money.

        Returns how it stands afterwards: ENDED; PAID or PENDING if it had come to that before; or
        still OPEN: this acquirer can't end it now, and it stays until its own end.
        Raises: NoSuchPage, AcquirerRefused.
        """

    async def list_pages(self, since: datetime, after: str) -> PageList:
        """The pages made since a time (UTC) that are not over without a payment, as they stand now,
        after a cursor, "" to begin. Moves no money.

        One that changes meanwhile may come twice. Also those of other software on the same account.
        Raises: AcquirerRefused if it may not be asked.
        """

    def read_notification(self, headers: Mapping[str, str], body: bytes) -> Notice | None:
        """What a notification, with the names of its headers in lower case, is about, if the
        acquirer has signed it; None if it is about nothing that we ask about. Moves no money.

        Raises: NoticeRefused, also from an acquirer that signs none.
        """

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Take what an authorization holds, or a part of it. Moves money.

        Raises: AcquirerRefused.
        """

    async def void(self, key: str, of_key: str) -> Release:
        """Let go of what `of_key` holds, or end its challenge; never gives back. Moves money.

        Returns what is true of `of_key` afterwards: Voided (also if it was already), Captured (the
        money was taken and stays so), NothingHeld (and it never will be accepted later), or
        Declined; UnderWay if it was only asked for, and `find_movement` will tell. Raises:
        AcquirerRefused.
        """

    async def undo(self, key: str, of_key: str) -> Finding | UnderWay:
        """Undo a purchase that must not be: end it, let go, or give it all back. Moves money.

        Only for a purchase that nobody counts on, such as a second approval of a paid order.
        Returns what is true of `of_key` afterwards: Voided (also if it was already), NothingHeld
        (and it never will be accepted later), or Declined; UnderWay if it was only asked for: the
        same key asks again. Raises: AcquirerRefused if it can't be undone any more (refunded or
        disputed).
        """

    async def end_challenge(self, of_key: str) -> Finding:
        """End the open challenge of `of_key`, so that it can't be approved later, but no approval.

        Returns Voided if it is ended, otherwise what the key came to before. Moves no money.
        """

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Give captured money back and return the refund's reference. Moves money.

        The acquirer keeps `number`, by which our books, and the shop, know the refund.

        Raises: AcquirerRefused if it is more than what is left, or disputed (unless that was won),
            and for the key of a refund that failed.
        """

    async def find(self, key: str, not_after: datetime | None = None) -> Finding:
        """What became of the purchase under `key`. Moves no money.

        `not_after` is the purchase's own. Until it is past the key is left as it is, since the
        purchase may still be on its way, and NothingHeld says nothing of what is to come. Once it
        is past, NothingHeld is final: the acquirer has made sure that the key can't be used any
        more. Without it nothing is made sure of.
        """

    async def look_back(self, key: str, since: datetime | None = None) -> Earlier | None:
        """The purchase ever made under `key`, found by what stands with it. Moves no money.

        One that took money goes before others. None if there is none, or none that can be
        found yet. It was not made before `since` (UTC), where that is known.
        """

    async def find_movement(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """What became of the movement `key` of the purchase `of_key`/`reference`. Moves no money.

        Moved and Refused are final, but for a refund that fails after it was made (see
        `failed_refunds`): it is Refused from then on. NothingHeld is not final: a question still on
        its way may arrive later, and an acquirer may keep no record of refusals; finish it by
        sending the same key again. UnderWay has arrived, and is to be asked for again.
        """

    async def disputes(self, after: str) -> DisputePage:
        """The disputes that opened or changed after a cursor, "" for all. Moves no money.

        The cursor is the acquirer's own business. Raises: AcquirerRefused if it is none.
        """

    async def failed_refunds(self, after: str) -> FailedRefundPage:
        """The refunds that failed after a cursor, "" for all known. Moves no money.

        The cursor is the acquirer's own business. Raises: AcquirerRefused if it is none.
        """

    async def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """The purchases made since a time (UTC), as they stand now, after a cursor, "" to begin.

        Also those of other software on the same account; not the checks of cards without an amount.
        Moves no money.
        Raises: AcquirerRefused if it may not be asked.
        """

    async def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """The refunds asked for since a time (UTC), as `list_purchases`. Moves no money."""

    async def find_dispute(self, reference: str) -> Dispute | None:
        """How the dispute of this name stands now; None if there is none. Moves no money.

        Raises: AcquirerRefused if it may not be asked.
        """

    async def upload_evidence(self, file: EvidenceFile) -> str:
        """Hand over a file that evidence will name, and return what the bank calls it; under the
        same key it is the same file. It is evidence of nothing until then. Moves no money.

        Raises: AcquirerRefused if it takes no such file.
        """

    async def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """Tell the bank the merchant's side of an open dispute, the latest last, with `files` by
        what the bank calls them. Moves no money.

        Raises: AcquirerRefused if there is no such dispute or it is closed.
        """

    async def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class FollowsTestClocks(Protocol):
    """An acquirer of test mode: what takes days there takes them of a merchant's test clock."""

    async def pass_time(self, key: str) -> None:
        """Let the days be over that the slow method takes of the purchase under `key`; nothing if
        there is none. Moves money.
        """
