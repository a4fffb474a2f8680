"""The simulated bank's decisions; each is made and recorded in one transaction of its record.

The bank never takes the word of Paydesk's database for anything, and stores no card number and no
security code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import msgspec

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, EvidenceFile, EvidenceKind, FailedRefundPage
from paydesk.adapters.acquirers.instruments import Instrument
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Captured,
    Challenged,
    Declined,
    DeclineReason,
    Earlier,
    Finding,
    KeyUsed,
    Moved,
    MovementFinding,
    NothingHeld,
    Outcome,
    OutcomeUnknown,
    Refused,
    Release,
    Voided,
)
from paydesk.adapters.acquirers.listing import PurchasePage, RefundPage
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.simulator import disputing, failing, listing, refusing, remembering
from paydesk.adapters.acquirers.simulator.balance import BalanceBook
from paydesk.adapters.acquirers.simulator.own_pages import Pages, debit_of
from paydesk.adapters.acquirers.simulator.purchase_state import Challenge, Decision, Standing, Status, standing_of
from paydesk.adapters.acquirers.simulator.record import Kind, Operation, Record, new_reference
from paydesk.adapters.acquirers.simulator.test_cards import (
    ANY_OTHER,
    APPROVED,
    BY_LAST4,
    BY_NUMBER,
    CHALLENGED,
    FROM_BANK,
)
from paydesk.core.clock import utc_now
from paydesk.core.wording import noted

_MOVEMENTS = frozenset({Kind.CAPTURE, Kind.VOID, Kind.REFUND})
_GIVES_REFERENCE = (Kind.AUTHORIZE, Kind.CHARGE, Kind.APPROVE)


class Bank:
    """Decides purchases by card number, challenges by what customers press, by its own clock."""

    def __init__(self, record: Record, *, now: Callable[[], datetime] = utc_now) -> None:
        self.record = record
        self.pages = Pages(record, now)
        self.balance = BalanceBook(record, now)
        self._now = now

    def purchase(self, purchase: Purchase, *, stored: bool) -> Outcome:
        """Decide a purchase once; a repeated key gets the first answer. Moves money.

        Raises: AcquirerRefused if the key was used for something else or the request makes no
        sense; OutcomeUnknown for the card whose answer is lost (the approval is recorded).
        """
        with self.record.transaction():
            answer = self._purchase(purchase, Kind.CHARGE if stored else Kind.AUTHORIZE)
            disputing.dispute_if_asked(self.record, purchase.key, at=self._now())
        if isinstance(answer, Exception):
            raise answer
        return answer

    def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Take what is held, once, at most all of it. Moves money. Raises: AcquirerRefused."""
        with self.record.transaction():
            answer = self._move(Kind.CAPTURE, key, reference, amount, currency, refusing.why_not_capture)
            taken = self.record.decided(key)
            if taken is not None and taken.of_key is not None:
                disputing.dispute_if_asked(self.record, taken.of_key, at=self._now())
        if isinstance(answer, Exception):
            raise answer

    def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Give back up to what was captured. Moves money. Raises: AcquirerRefused."""
        with self.record.transaction():
            answer = self._move(Kind.REFUND, key, reference, amount, currency, refusing.why_not_refund)
            if isinstance(answer, str):
                self.record.write_number(answer, number)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def void(self, key: str, of_key: str) -> Release:
        """Let go of a hold, or block its key for good. Moves money. Raises: AcquirerRefused."""
        with self.record.transaction():
            standing = self._standing(of_key)
            if standing is not None and standing.captured:
                return Captured(standing.reference, standing.captured)
            answer = self._void(key, of_key)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def undo(self, key: str, of_key: str) -> Finding:
        """Undo a purchase, or block its key for good. Moves money. Raises: AcquirerRefused."""
        with self.record.transaction():
            answer = self._void(key, of_key)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end_challenge(self, of_key: str) -> Finding:
        """End an open challenge; anything else stays as it is. Moves no money."""
        with self.record.transaction():
            standing = remembering.listed(self.record, of_key)
            if standing is None or standing.status is not Status.CHALLENGED:
                return standing.finding() if standing else NothingHeld()
            self._write(standing, Kind.END, key=None, result="ended")
            return Voided()

    def find(self, key: str) -> Finding:
        """What became of the purchase under `key`. Moves no money."""
        self.pages.pass_time(key, only_if_over=True)
        standing = remembering.listed(self.record, key)
        return remembering.told(self.record, standing, standing.finding()) if standing else NothingHeld()

    def look_back(self, key: str) -> Earlier | None:
        """The purchase ever made under `key`; Voided for one only used up. Moves no money."""
        self.pages.pass_time(key, only_if_over=True)
        return remembering.look_back(self.record, key)

    def list_purchases(self, since: datetime, after: str) -> PurchasePage:
        """The purchases since a time, after a cursor. Moves no money. Raises: AcquirerRefused."""
        return listing.purchases_since(self.record, since, after)

    def list_refunds(self, since: datetime, after: str) -> RefundPage:
        """The refunds since a time, after a cursor. Moves no money. Raises: AcquirerRefused."""
        return listing.refunds_since(self.record, since, after)

    def find_movement(self, key: str, of_key: str) -> MovementFinding:
        """What became of the movement `key` of the purchase `of_key`. Moves no money."""
        used = self.record.decided(key)
        if used is None:
            refusal = self.record.refused(key, of_key)
            return Refused(refusal.result) if refusal else NothingHeld()
        if used.kind not in _MOVEMENTS or used.of_key != of_key:
            return Refused(refusing.why_used(used))
        if used.kind is Kind.VOID and used.result == Status.DECLINED:
            return Refused(noted("the payment was declined: there is nothing to void"))
        failed = failing.why_failed(self.record, used)
        return Refused(failed) if failed else Moved(used.reference, used.amount)

    def disputes(self, after: str) -> DisputePage:
        """The disputes that changed after a cursor. Moves no money. Raises: AcquirerRefused."""
        return disputing.disputes_after(self.record, after)

    def failed_refunds(self, after: str) -> FailedRefundPage:
        """The refunds that failed after a cursor. Moves no money. Raises: AcquirerRefused."""
        return failing.failed_after(self.record, after)

    def fail_refund(self, reference: str, reason: str) -> None:
        """Let a refund that was made fail later. Moves money. Raises: AcquirerRefused."""
        with self.record.transaction():
            failing.fail_refund(self.record, reference, reason, at=self._now())

    def find_dispute(self, reference: str) -> Dispute | None:
        """How a dispute stands now, None if there is none of this reference. Moves no money."""
        return disputing.find_dispute(self.record, reference)

    def open_dispute(self, of_key: str, reason: str) -> str:
        """Take back what is left of a purchase. Moves money. Raises: AcquirerRefused."""
        with self.record.transaction():
            return disputing.open_dispute(self.record, of_key, reason, at=self._now())

    def close_dispute(self, reference: str, won: bool) -> None:
        """Decide a dispute for one of the two. Moves money. Raises: AcquirerRefused."""
        with self.record.transaction():
            disputing.close_dispute(self.record, reference, won=won, at=self._now())

    def upload_evidence(self, file: EvidenceFile) -> str:
        """Take a file that evidence will name. Moves no money. Raises: AcquirerRefused."""
        with self.record.transaction():
            return disputing.upload_evidence(self.record, file)

    def submit_evidence(self, reference: str, text: str, files: Mapping[EvidenceKind, str]) -> None:
        """Keep the merchant's side of an open dispute. Moves no money. Raises: AcquirerRefused."""
        with self.record.transaction():
            disputing.submit_evidence(self.record, reference, text, files, at=self._now())

    def release_kept(self, reference: str) -> None:
        """Forget an instrument that is kept, so that nobody charges it any more.
        Moves no money.
        """
        with self.record.transaction():
            self.record.forget_kept(reference)

    def challenge(self, reference: str) -> Challenge | None:
        """The challenge for its page, None if there is none of that reference."""
        opened = self.record.named(reference, Kind.CHALLENGE)
        standing = self._standing(opened.of_key) if opened and opened.of_key else None
        if standing is None:
            return None
        return Challenge(
            reference=reference,
            amount=standing.amount,
            currency=standing.currency,
            last4=standing.last4,
            return_url=self.record.way_back(reference),
            status=standing.status,
        )

    def decide(self, reference: str, decision: Decision) -> Challenge | None:
        """Take the customer's decision if the challenge is still open. Moves money."""
        with self.record.transaction():
            opened = self.record.named(reference, Kind.CHALLENGE)
            standing = self._standing(opened.of_key) if opened and opened.of_key else None
            if standing is not None and standing.status is Status.CHALLENGED:
                self._take(standing, decision)
            return self.challenge(reference)

    def _take(self, standing: Standing, decision: Decision) -> None:
        """Record a customer's decision on an open challenge; closing the page decides nothing."""
        if decision == "approve":
            self._write(standing, Kind.APPROVE, key=None, result=APPROVED, reference=new_reference("payment"))
        elif decision == "reject":
            self._write(standing, Kind.REJECT, key=None, result=DeclineReason.AUTHENTICATION_FAILED)
        else:
            self._write(standing, Kind.CLOSE, key=None, result="left open")

    def _purchase(self, purchase: Purchase, kind: Kind) -> Outcome | Exception:
        """The recorded answer to a purchase; an error is returned,
        to be raised after the commit.
        """
        name = remembering.name_of(self.record, purchase.key, now=self._now())
        used = self.record.decided(name)
        if used is not None and used.of_key != name:
            return self._refuse(name, None, noted("the key was used for a %(kind)s before", kind=used.kind), KeyUsed)
        asked = self._asked(purchase, kind, name)
        standing = self._standing(name)
        if standing is not None and standing.first_answer is not None:
            if standing.is_for(asked) and remembering.is_for_the_same(self.record, name, purchase):
                return remembering.told(self.record, standing, standing.first_answer)
            return self._refuse(name, name, noted("the key was used for another purchase before"), KeyUsed)
        nonsense = refusing.why_nonsense(purchase, kind) or refusing.why_not_kept(self.record, purchase)
        if nonsense:
            return self._refuse(name, name, nonsense)
        if standing is not None or self._now() > purchase.not_after:
            self.record.write(replace(asked, kind=Kind.REFUSE, result=DeclineReason.TOO_LATE))
            return Declined(DeclineReason.TOO_LATE)
        return self._decide(purchase, asked)

    def _asked(self, purchase: Purchase, kind: Kind, name: str) -> Operation:
        """A purchase as the record would hold it, not yet decided."""
        card, kept = purchase.card, purchase.stored_reference
        told = self.record.kept(kept) if kept else ""
        last4 = msgspec.json.decode(told, type=Instrument).last4 if told else card.number[-4:]
        token = kept or f"{card.number} {card.exp_month}/{card.exp_year}"
        return Operation(
            at=self._now(),
            key=name,
            kind=kind,
            of_key=name,
            result="",
            amount=purchase.amount,
            currency=purchase.currency,
            last4=last4,
            card_token=self.record.card_token(purchase.key, token),
            capture=purchase.capture,
        )

    def _decide(self, purchase: Purchase, asked: Operation) -> Outcome | Exception:
        """Decide by the card's number, then by its expiry date, and record the decision."""
        sample = BY_NUMBER.get(purchase.card.number, ANY_OTHER)
        if purchase.stored_reference:
            sample = BY_LAST4.get(asked.last4, FROM_BANK)
        decided_by = sample.later if asked.kind is Kind.CHARGE else sample.at_checkout
        result = debit_of(self.record, purchase.stored_reference) or decided_by
        if result in {APPROVED, CHALLENGED} and self._is_expired(purchase):
            result = DeclineReason.EXPIRED_CARD
        if result == APPROVED and purchase.authenticate and asked.kind is Kind.AUTHORIZE:
            result = CHALLENGED
        if result == CHALLENGED:
            reference = new_reference("challenge")
            self.record.write(replace(asked, kind=Kind.CHALLENGE, result=result, reference=reference))
            self.record.write_mark(asked.of_key or "", purchase.not_after, purchase.mark)
            self.record.write_way_back(reference, purchase.return_url)
            return Challenged(reference, url="")
        decided = replace(
            asked, result=result, reference="" if result in set(DeclineReason) else new_reference("payment")
        )
        self.record.write(decided)
        self.record.write_mark(asked.of_key or "", purchase.not_after, purchase.mark)
        if sample.answer_lost and result == APPROVED:
            return OutcomeUnknown("the answer was lost on its way")
        standing = standing_of([decided])
        assert standing is not None
        assert standing.first_answer is not None
        return remembering.told(self.record, standing, standing.first_answer)

    def _is_expired(self, purchase: Purchase) -> bool:
        """Whether the card's last month is over by the bank's clock; one that is kept is renewed by
        its bank.
        """
        now, card = self._now(), purchase.card
        return not purchase.stored_reference and (card.exp_year, card.exp_month) < (now.year, now.month)

    def _move(
        self,
        kind: Kind,
        key: str,
        reference: str,
        amount: Decimal,
        currency: str,
        why_not: Callable[[Standing, Decimal], str],
    ) -> str | Exception:
        """Capture or refund once per key; the answer is the reference of what was done."""
        opened = self.record.named(reference, *_GIVES_REFERENCE)
        standing = self._standing(opened.of_key) if opened and opened.of_key else None
        if standing is None:
            return self._refuse(key, None, noted("there is no payment of this reference to %(kind)s", kind=kind))
        key = remembering.name_of(self.record, key, now=self._now())
        used = self.record.decided(key)
        if used is not None:
            same = (used.kind, used.of_key, used.amount, used.currency) == (kind, standing.key, amount, currency)
            if not same:
                return self._refuse(key, standing.key, refusing.why_used(used), KeyUsed)
            failed = failing.why_failed(self.record, used)
            return AcquirerRefused(failed) if failed else used.reference
        refused = self.record.refused(key, standing.key)
        if refused is not None:
            return AcquirerRefused(refused.result)
        problem = refusing.why_not_money(standing, amount, currency) or why_not(standing, amount)
        if problem:
            return self._refuse(key, standing.key, problem)
        done = new_reference(kind)
        self._write(standing, kind, key=key, result="done", reference=done, amount=amount)
        return done

    def _void(self, key: str, of_key: str) -> Finding | Exception:
        """Void once per key; the answer is how the purchase stands afterwards."""
        used = self.record.decided(key)
        standing = self._standing(of_key)
        if used is not None:
            if used.kind is not Kind.VOID or used.of_key != of_key or standing is None:
                return self._refuse(key, of_key, refusing.why_used(used), KeyUsed)
            return standing.finding()
        refused = self.record.refused(key, of_key)
        if refused is not None:
            return AcquirerRefused(refused.result)
        problem = refusing.why_not_void(standing) if standing is not None else ""
        if problem:
            return self._refuse(key, of_key, problem)
        before = standing or Standing(of_key, Status.BLOCKED)
        self._write(before, Kind.VOID, key=key, result=before.status, amount=before.captured or before.held)
        after = self._standing(of_key)
        assert after is not None
        return after.finding()

    def _standing(self, key: str) -> Standing | None:
        """How the purchase under `key` stands."""
        return standing_of(self.record.of_purchase(key))

    def _write(
        self,
        standing: Standing,
        kind: Kind,
        *,
        key: str | None,
        result: str,
        reference: str = "",
        amount: Decimal | None = None,
    ) -> None:
        """Record what was done to a purchase."""
        self.record.write(
            Operation(
                at=self._now(),
                key=key,
                kind=kind,
                of_key=standing.key,
                result=result,
                amount=standing.amount if amount is None else amount,
                currency=standing.currency,
                last4=standing.last4,
                reference=reference,
            )
        )

    def _refuse(
        self, key: str, of_key: str | None, reason: str, error: type[AcquirerRefused] = AcquirerRefused
    ) -> AcquirerRefused:
        """Record a refusal; the caller gets it as the error to raise."""
        self.record.write(Operation(at=self._now(), key=key, kind=Kind.REFUSE, of_key=of_key, result=reason))
        return error(reason)
