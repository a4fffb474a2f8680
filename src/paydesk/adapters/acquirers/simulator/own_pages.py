"""The simulated bank's own pages: each is made, paid and ended in one transaction of its record.

A page takes a card, a simulated wallet, and a bank that confirms at once; the bank takes the money
at once, so that a page whose money is only to be held does not offer it. Where slow methods are
wanted, it takes transfers too, which last two days, and of which one sort comes to nothing; or,
where what is paid with is kept, direct debits, each of which lasts two days. While the customer is
with their bank the page can't be ended: nobody could tell what the bank will say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

import msgspec

from paydesk.adapters.acquirers.hosted_pages import (
    LONGEST_LIFE,
    ListedPage,
    Page,
    PageList,
    PageRequest,
    PageState,
)
from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.interface import AcquirerRefused, DeclineReason, KeyUsed, NoSuchPage
from paydesk.adapters.acquirers.marks import Mark
from paydesk.adapters.acquirers.simulator import disputing, listing, remembering
from paydesk.adapters.acquirers.simulator.holding import hold_until
from paydesk.adapters.acquirers.simulator.purchase_state import Standing, Status, standing_of
from paydesk.adapters.acquirers.simulator.record import Kind, Operation, Record, new_reference
from paydesk.adapters.acquirers.simulator.test_cards import (
    ANY_OTHER,
    APPROVED,
    BY_NUMBER,
    CHALLENGED,
    NOT_COMING,
    ON_ITS_WAY,
)
from paydesk.core.cards import detect_brand

WALLET = Instrument(InstrumentKind.CARD, "visa", "4242", "test_wallet")
BANK = Instrument(InstrumentKind.BANK)
TRANSFER = Instrument(InstrumentKind.SLOW_BANK)
ACCOUNT = Instrument(InstrumentKind.SLOW_BANK, slow=True)

_LEAST_LEFT = timedelta(minutes=30)
_STATES = {
    Status.APPROVED: PageState.PAID,
    Status.CHALLENGED: PageState.OPEN,
    Status.PENDING: PageState.PENDING,
}


class Way(StrEnum):
    """How a customer may pay on a page."""

    CARD = "card"
    WALLET = "wallet"
    BANK = "bank"
    TRANSFER = "transfer"
    FAILING_TRANSFER = "failing_transfer"
    DEBIT = "debit"
    """From an account that is kept, to be debited again."""
    FAILING_DEBIT = "failing_debit"
    """The same, but the account pays only once."""


SLOW_WAYS = (Way.TRANSFER, Way.FAILING_TRANSFER)
DEBITS = (Way.DEBIT, Way.FAILING_DEBIT)


@dataclass(frozen=True, slots=True)
class Shown:
    """A page as its customer sees it.

    `ways` are how it may be paid, `asks` while their bank waits for a yes or no, `declined` says
    why the last try failed, empty if none did; `keep` and `notify_url` are its request's.
    """

    reference: str
    state: PageState
    shop: str
    description: str
    amount: Decimal
    currency: str
    return_url: str
    ways: tuple[Way, ...]
    asks: bool
    declined: str
    keep: bool = False
    notify_url: str = ""


class Pages:
    """Pages of the bank, by its own clock."""

    def __init__(self, record: Record, now: Callable[[], datetime]) -> None:
        self._record = record
        self._now = now

    def open(self, wanted: PageRequest) -> Page:
        """Make a page once per key; the same request gets the same page. Moves no money.

        Raises: KeyUsed if the key was used for anything else, AcquirerRefused if no page can be
            made of the request.
        """
        with self._record.transaction():
            name = remembering.name_of(self._record, wanted.key, now=self._now())
            used, asked = self._record.decided(name), msgspec.json.encode(wanted).decode()
            if used is None:
                answer: Page | Exception = self._make(wanted, name, asked)
            elif used.kind is Kind.PAGE and self._asked(used.reference) == wanted:
                answer = self._page(used.reference)
            else:
                answer = self._refused(name, f"the key was used for another {used.kind} before", KeyUsed)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def find(self, reference: str) -> Page:
        """How a page stands. Moves no money. Raises: NoSuchPage."""
        with self._record.transaction():
            self._require(reference)
            return self._page(reference)

    def end(self, reference: str) -> Page:
        """End a page, unless its customer is with their bank. Moves no money.

        Raises: NoSuchPage.
        """
        with self._record.transaction():
            self._require(reference)
            standing, asks, _ = self._standing(reference)
            if standing.status is Status.CHALLENGED and not asks:
                self._write(standing, Kind.END, "ended")
            return self._page(reference)

    def since(self, since: datetime, after: str) -> PageList:
        """The pages made since a time that are not over without a payment, after a place in the
        record. Moves no money. Raises: AcquirerRefused.
        """
        with self._record.transaction():
            lines = self._record.made_since(since, listing.place_of(after), listing.PAGE, Kind.PAGE)
            listed = [ListedPage(self._page(line.reference), line.at, self._mark(line)) for line in lines]
        not_over = tuple(one for one in listed if one.page.state is not PageState.ENDED)
        return PageList(not_over, listing.place_after(lines))

    def pass_time(self, key: str, *, only_if_over: bool = False) -> None:
        """Let the days of a transfer be over, or see whether they are. Moves money."""
        if (standing := remembering.listed(self._record, key)) is None or standing.status is not Status.PENDING:
            return
        with self._record.transaction():
            done = self._record.of_purchase(standing.key)
            now = standing_of(done)
            if now is not None and now.status is Status.PENDING and not (only_if_over and not self._is_over(done)):
                self._arrive(now, remembering.left_for(done).result)

    def show(self, reference: str) -> Shown | None:
        """What a customer sees of a page, None if there is none."""
        if not self._record.page(reference):
            return None
        with self._record.transaction():
            return self._shown(reference)

    def pay(self, reference: str, way: Way, number: str) -> Shown | None:
        """Pay an open page, or go to the bank that has to confirm it. Moves money."""
        if not self._record.page(reference):
            return None
        with self._record.transaction():
            standing, asks, _ = self._standing(reference)
            if standing.status is Status.CHALLENGED and not asks and way in self._ways(reference, standing):
                self._choose(standing, way, number, authenticate=self._asked(reference).authenticate)
            return self._shown(reference)

    def decide(self, reference: str, *, approve: bool) -> Shown | None:
        """Take the word of the customer at their bank. Moves money."""
        if not self._record.page(reference):
            return None
        with self._record.transaction():
            standing, asks, last = self._standing(reference)
            if standing.status is Status.CHALLENGED and asks:
                if approve:
                    chosen = msgspec.json.decode(last.result, type=Instrument)
                    self._take(standing, replace(chosen, authenticated=chosen.kind is InstrumentKind.CARD))
                else:
                    self._write(standing, Kind.PAGE_DECLINED, DeclineReason.AUTHENTICATION_FAILED)
            return self._shown(reference)

    def _make(self, wanted: PageRequest, name: str, asked: str) -> Page | AcquirerRefused:
        """Record a new page, or why there can be none."""
        problem = self._why_not(wanted)
        if problem:
            return self._refused(name, problem)
        reference = new_reference("page")
        self._record.write(
            Operation(
                at=self._now(),
                key=name,
                kind=Kind.PAGE,
                of_key=name,
                result=CHALLENGED,
                amount=wanted.amount,
                currency=wanted.currency,
                capture=wanted.capture,
                reference=reference,
            )
        )
        self._record.write_page(reference, asked)
        self._record.write_mark(name, wanted.expires_at, wanted.mark)
        return self._page(reference)

    def _why_not(self, wanted: PageRequest) -> str:
        """What is wrong with a request for a page, empty if nothing."""
        if not wanted.amount.is_finite() or wanted.amount < 0 or not (wanted.amount or wanted.keep):
            return f"the amount {wanted.amount} is not a sum of money"
        if not wanted.return_url.startswith(("https://", "http://")):
            return "a page needs a return_url that starts with https:// or http://"
        # A minute is for the way and for clocks that differ.
        if not _LEAST_LEFT.total_seconds() <= self._left(wanted) <= LONGEST_LIFE.total_seconds() + 60:
            return "a page has to end between 30 minutes and 24 hours from now"
        return ""

    def _left(self, wanted: PageRequest) -> float:
        return (wanted.expires_at - self._now()).total_seconds()

    def _choose(self, standing: Standing, way: Way, number: str, *, authenticate: bool) -> None:
        """Take a customer's choice on an open page; with `authenticate` no card is taken
        without the word of its bank.
        """
        if way is Way.WALLET:
            return self._take(standing, WALLET)
        if way is Way.BANK:
            return self._leave(standing, BANK)
        if way in DEBITS and not standing.amount:
            # Nothing is debited yet: what will come of it later is written down with what is kept.
            self._write(standing, Kind.PAGE_LEFT, way)
            return self._take(standing, ACCOUNT)
        if way in SLOW_WAYS + DEBITS:
            return self._write(standing, Kind.PAGE_PENDING, way, reference=new_reference("payment"))
        sample = BY_NUMBER.get(number, ANY_OTHER)
        card = Instrument(InstrumentKind.CARD, str(detect_brand(number)), number[-4:])
        if sample.at_checkout == CHALLENGED or (sample.at_checkout == APPROVED and authenticate):
            return self._leave(standing, card)
        if sample.at_checkout == APPROVED:
            return self._take(standing, card)
        return self._write(standing, Kind.PAGE_DECLINED, sample.at_checkout)

    def _arrive(self, standing: Standing, left_for: str) -> None:
        """Let a transfer or a debit arrive, or come to nothing."""
        if left_for == ON_ITS_WAY:
            return self._write(standing, Kind.APPROVE, APPROVED, reference=standing.reference)
        if left_for == NOT_COMING:
            return self._write(standing, Kind.REJECT, DeclineReason.INSUFFICIENT_FUNDS)
        if left_for == Way.FAILING_TRANSFER:
            return self._write(standing, Kind.END, "the transfer came to nothing")
        return self._take(standing, TRANSFER if left_for == Way.TRANSFER else ACCOUNT)

    def _take(self, standing: Standing, instrument: Instrument) -> None:
        """Take the money of a page with an instrument, and keep that if the page is for it."""
        if self._asks_to_keep(standing, instrument):
            instrument = self._kept(standing, instrument)
        reference = standing.reference if standing.status is Status.PENDING else new_reference("payment")
        self._write(standing, Kind.APPROVE, APPROVED, reference=reference, last4=instrument.last4)
        self._record.write_instrument(standing.key, msgspec.json.encode(instrument).decode())
        disputing.dispute_if_asked(self._record, standing.key, at=self._now())

    def _asks_to_keep(self, standing: Standing, instrument: Instrument) -> bool:
        """Whether a page was made to keep what is paid with, or it is a card and these are kept."""
        opened = next(done for done in self._record.of_purchase(standing.key) if done.kind is Kind.PAGE)
        asked = self._asked(opened.reference)
        return asked.keep or (asked.keep_card and instrument.kind is InstrumentKind.CARD)

    def _kept(self, standing: Standing, instrument: Instrument) -> Instrument:
        """An instrument under the reference by which it is charged again; cards end some day."""
        reference = new_reference("kept")
        self._record.write_kept(reference, standing.key)
        ends = (12, self._now().year + 4) if instrument.kind is InstrumentKind.CARD else (0, 0)
        return replace(instrument, reference=reference, exp_month=ends[0], exp_year=ends[1])

    def _leave(self, standing: Standing, instrument: Instrument) -> None:
        """Let the customer go to their bank with an instrument."""
        self._write(standing, Kind.PAGE_LEFT, msgspec.json.encode(instrument).decode())

    def _standing(self, reference: str) -> tuple[Standing, bool, Operation]:
        """How a page's purchase stands, whether its customer is with their bank,
        and what was done last; one whose time is over is ended.
        """
        opened = self._record.named(reference, Kind.PAGE)
        assert opened is not None
        done = [one for one in self._record.of_purchase(opened.of_key or "") if one.kind is not Kind.REFUSE]
        standing = standing_of(done)
        assert standing is not None
        if standing.status is Status.CHALLENGED and self._now() > self._asked(reference).expires_at:
            self._write(standing, Kind.END, "its time was over")
            return self._standing(reference)
        if standing.status is Status.PENDING and self._is_over(done):
            self._arrive(standing, remembering.left_for(done).result)
            return self._standing(reference)
        return standing, done[-1].kind is Kind.PAGE_LEFT, done[-1]

    def _is_over(self, done: list[Operation]) -> bool:
        """Whether the days of a pending transfer are over, by the bank's own clock."""
        return self._now() >= remembering.sure_by(done)

    def _page(self, reference: str) -> Page:
        """A page as Paydesk is told of it."""
        standing, _, last = self._standing(reference)
        told, is_pending = self._record.instrument(standing.key), standing.status is Status.PENDING
        instrument = msgspec.json.decode(told, type=Instrument) if told else None
        return Page(
            reference=reference,
            state=_STATES.get(standing.status, PageState.ENDED),
            key=remembering.key_of(standing.key),
            amount=standing.amount,
            currency=standing.currency,
            payment=standing.reference if standing.status is Status.APPROVED or is_pending else "",
            instrument=TRANSFER if is_pending else instrument,
            hold_until=hold_until(self._record, standing),
            until=last.at + remembering.TRANSFER_TAKES if is_pending else None,
        )

    def _shown(self, reference: str) -> Shown:
        standing, asks, last = self._standing(reference)
        asked = self._asked(reference)
        return Shown(
            reference=reference,
            state=_STATES.get(standing.status, PageState.ENDED),
            shop=asked.shop,
            description=asked.description,
            amount=asked.amount,
            currency=asked.currency,
            return_url=asked.return_url,
            ways=self._ways(reference, standing),
            asks=asks,
            declined=last.result if last.kind is Kind.PAGE_DECLINED else "",
            keep=asked.keep or asked.keep_card,
            notify_url=asked.notify_url,
        )

    def _ways(self, reference: str, standing: Standing) -> tuple[Way, ...]:
        """How a page may be paid: money that is to be held comes from what holds it."""
        if not standing.capture:
            return Way.CARD, Way.WALLET
        asked = self._asked(reference)
        slow = DEBITS if asked.keep else SLOW_WAYS
        return (Way.CARD, Way.WALLET, Way.BANK, *(slow if asked.slow else ()))

    def _asked(self, reference: str) -> PageRequest:
        return msgspec.json.decode(self._record.page(reference), type=PageRequest)

    def _mark(self, line: Operation) -> Mark | None:
        """The mark that stands with the purchase of a page."""
        kept = self._record.mark(line.of_key or "")
        return kept[1] if kept else None

    def _require(self, reference: str) -> None:
        """Raises: NoSuchPage."""
        if not self._record.page(reference):
            raise NoSuchPage("there is no page of this reference")

    def _write(self, standing: Standing, kind: Kind, result: str, *, reference: str = "", last4: str = "") -> None:
        self._record.write(
            Operation(
                at=self._now(),
                key=None,
                kind=kind,
                of_key=standing.key,
                result=result,
                amount=standing.amount,
                currency=standing.currency,
                last4=last4,
                reference=reference,
            )
        )

    def _refused(self, name: str, reason: str, error: type[AcquirerRefused] = AcquirerRefused) -> AcquirerRefused:
        """Record a refusal; the caller gets it as the error to raise."""
        self._record.write(Operation(at=self._now(), key=name, kind=Kind.REFUSE, of_key=name, result=reason))
        return error(reason)


def debit_of(record: Record, reference: str) -> str:
    """What becomes of the next debit of an account that is kept; empty for anything else."""
    told = record.kept(reference) if reference else ""
    if not told or not msgspec.json.decode(told, type=Instrument).slow:
        return ""
    done = record.of_purchase(record.kept_by(reference))
    return NOT_COMING if any(one.result == Way.FAILING_DEBIT for one in done) else ON_ITS_WAY
