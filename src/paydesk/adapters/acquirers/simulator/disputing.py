"""Disputes at the simulated bank: each step is one operation of its record,
made inside a transaction of the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from paydesk.adapters.acquirers.disputes import (
    MEDIA_TYPES,
    Dispute,
    DisputePage,
    DisputeStatus,
    EvidenceFile,
    EvidenceKind,
)
from paydesk.adapters.acquirers.interface import AcquirerRefused
from paydesk.adapters.acquirers.simulator.evidence_record import GivenFile
from paydesk.adapters.acquirers.simulator.purchase_state import Standing, standing_of
from paydesk.adapters.acquirers.simulator.record import Kind, Operation, Record, new_reference
from paydesk.adapters.acquirers.simulator.test_cards import DISPUTED_LAST4
from paydesk.core.wording import noted

_PAGE: Final = 100
_CARDS_REASON: Final = "fraudulent"
_LONGEST_EVIDENCE: Final = 20_000
_LARGEST_FILE: Final = 5 * 1024 * 1024
TIME_TO_ANSWER: Final = timedelta(days=7)
"""How long evidence is taken for."""
_STATUS_AFTER: Final = {
    Kind.DISPUTE: DisputeStatus.OPEN,
    Kind.DISPUTE_WON: DisputeStatus.WON,
    Kind.DISPUTE_LOST: DisputeStatus.LOST,
}


def dispute_if_asked(record: Record, of_key: str, *, at: datetime) -> None:
    """Open the dispute of a card that is charged back as soon as its money is taken.
    Moves money.
    """
    standing = standing_of(record.of_purchase(of_key))
    if standing is not None and standing.last4 in DISPUTED_LAST4 and standing.net and not standing.dispute:
        _open(record, standing, _CARDS_REASON, at)


def open_dispute(record: Record, of_key: str, reason: str, *, at: datetime) -> str:
    """Take back what is left of a purchase and return the dispute's reference, an open one's again.
    Moves money.

    Raises: AcquirerRefused if there is nothing to take back.
    """
    standing = standing_of(record.of_purchase(of_key))
    if standing is None:
        raise AcquirerRefused(noted("there is no purchase under this key to dispute"))
    if standing.dispute_status is DisputeStatus.OPEN:
        return standing.dispute
    if standing.dispute_status is DisputeStatus.LOST:
        raise AcquirerRefused(
            noted("the dispute %(reference)s of this purchase was lost already", reference=standing.dispute)
        )
    if standing.net <= 0:
        raise AcquirerRefused(noted("nothing of this purchase is captured and left to dispute"))
    return _open(record, standing, reason, at)


def close_dispute(record: Record, reference: str, *, won: bool, at: datetime) -> None:
    """Decide an open dispute: the money returns if it is won and stays away if not. Moves money.

    Raises: AcquirerRefused if there is no such dispute, or it was decided the other way.
    """
    decision = DisputeStatus.WON if won else DisputeStatus.LOST
    opened, status = _found(record, reference)
    if status is decision:
        return
    if status is not DisputeStatus.OPEN:
        raise AcquirerRefused(
            noted("the dispute %(reference)s was %(status)s already", reference=reference, status=status)
        )
    kind = Kind.DISPUTE_WON if won else Kind.DISPUTE_LOST
    record.write(replace(opened, at=at, kind=kind))


def upload_evidence(record: Record, file: EvidenceFile) -> str:
    """Note a file that evidence will name, and return its reference; what is in it is not kept.
    Moves no money.

    Raises: AcquirerRefused if it is of another kind, too large, or its key stands for another file.
    """
    if file.media_type not in MEDIA_TYPES or not 0 < len(file.content) <= _LARGEST_FILE:
        raise AcquirerRefused(noted("a file is a PDF, PNG or JPEG of at most %(most)s kB", most=_LARGEST_FILE // 1024))
    made = GivenFile.of(file, new_reference("file"))
    kept = record.evidence.keep(file.key, made)
    if replace(kept, reference=made.reference) != made:
        raise AcquirerRefused(noted("the key was used for another file before"))
    return kept.reference


def submit_evidence(
    record: Record, reference: str, text: str, files: Mapping[EvidenceKind, str], *, at: datetime
) -> None:
    """Keep the merchant's text about an open dispute, and which files belong to it; the latest
    again changes nothing. Moves no money.

    Raises: AcquirerRefused if there is no such dispute, it is closed, the text is none or too long,
        or there is no such file.
    """
    opened, status = _found(record, reference)
    if status is not DisputeStatus.OPEN:
        raise AcquirerRefused(
            noted(
                "the dispute %(reference)s was %(status)s; evidence comes too late", reference=reference, status=status
            )
        )
    if at >= opened.at + TIME_TO_ANSWER:
        raise AcquirerRefused(
            noted(
                "evidence for the dispute %(reference)s was taken for %(days)s days",
                reference=reference,
                days=TIME_TO_ANSWER.days,
            )
        )
    if not text.strip() or len(text) > _LONGEST_EVIDENCE:
        raise AcquirerRefused(noted("evidence is a text of 1 to %(most)s characters", most=_LONGEST_EVIDENCE))
    if any(record.evidence.file(name) is None for name in files.values()):
        raise AcquirerRefused(noted("there is no file of this reference"))
    given = [line.result for line in record.of_purchase(opened.of_key or "") if _is_evidence(line, reference)]
    record.evidence.give(reference, files)
    if given[-1:] != [text]:
        record.write(replace(opened, at=at, kind=Kind.EVIDENCE, amount=Decimal(0), result=text))


def disputes_after(record: Record, after: str) -> DisputePage:
    """A page of the openings and endings after a cursor, which is a place in the record.

    Raises: AcquirerRefused.
    """
    if after and not (after.isascii() and after.isdigit() and len(after) <= 18):
        raise AcquirerRefused(noted("the cursor is none of this bank"))
    lines = record.dispute_operations(int(after or 0), _PAGE)
    return DisputePage(tuple(_dispute(record, line) for line in lines), str(lines[-1].seq) if lines else after)


def find_dispute(record: Record, reference: str) -> Dispute | None:
    """A dispute as it stands now, None if there is none of this reference."""
    line = _latest(record, reference)
    if line is None:
        return None
    given = any(_is_evidence(one, reference) for one in record.of_purchase(line.of_key or ""))
    return replace(_dispute(record, line), answered=given)


def why_disputed(standing: Standing) -> str:
    """Why no money of a disputed purchase can be given back, empty if it can."""
    if standing.dispute_status in {DisputeStatus.OPEN, DisputeStatus.LOST}:
        if standing.dispute_status is DisputeStatus.OPEN:
            return noted(
                "the payment is disputed (dispute %(reference)s): the customer's bank has taken the money back",
                reference=standing.dispute,
            )
        return noted(
            "the payment was charged back (dispute %(reference)s): the customer's bank has taken the money back",
            reference=standing.dispute,
        )
    return ""


def _open(record: Record, standing: Standing, reason: str, at: datetime) -> str:
    """Record a new dispute over all that is left."""
    reference = new_reference("dispute")
    record.write(
        Operation(
            at=at,
            key=None,
            kind=Kind.DISPUTE,
            of_key=standing.key,
            result=reason,
            amount=standing.net,
            currency=standing.currency,
            last4=standing.last4,
            reference=reference,
        )
    )
    return reference


def _found(record: Record, reference: str) -> tuple[Operation, DisputeStatus]:
    """How a dispute was opened, and how it stands. Raises: AcquirerRefused."""
    line = _latest(record, reference)
    if line is None:
        raise AcquirerRefused(noted("there is no dispute of this reference"))
    return line, _STATUS_AFTER[line.kind]


def _latest(record: Record, reference: str) -> Operation | None:
    """The line that ended a dispute, or the one that opened it while it is open."""
    named = (record.named(reference, kind) for kind in (Kind.DISPUTE_WON, Kind.DISPUTE_LOST, Kind.DISPUTE))
    return next((line for line in named if line is not None), None)


def _is_evidence(line: Operation, reference: str) -> bool:
    """Whether a line is the merchant's text about this dispute."""
    return line.kind is Kind.EVIDENCE and line.reference == reference


def _dispute(record: Record, line: Operation) -> Dispute:
    """A line of the record as the dispute that it opened or decided."""
    assert line.of_key is not None
    _, mark = record.mark(line.of_key) or (None, None)
    return Dispute(
        reference=line.reference,
        of_key=line.of_key,
        amount=line.amount,
        currency=line.currency,
        reason=line.result,
        status=_STATUS_AFTER[line.kind],
        at=line.at,
        respond_by=line.at + TIME_TO_ANSWER if line.kind is Kind.DISPUTE else None,
        of_merchant=mark.merchant if mark else "",
    )
