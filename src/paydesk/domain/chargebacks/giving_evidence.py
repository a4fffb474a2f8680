"""Giving evidence: the merchant's side of a chargeback, written as a draft, and handed to the bank.

A bank may take it once only. So a handing over is written down before it begins, with a key of its
own: while it is under way nobody begins another, and one of which nobody knows what became stays
`unknown` until the bank was asked.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from paydesk.adapters.acquirers.interface import Acquirer, AcquirerRefused, OutcomeUnknown
from paydesk.core.card_numbers import masked
from paydesk.core.errors import Conflict, Malformed, PaydeskError, Unavailable
from paydesk.core.wording import plural, worded
from paydesk.database.records import record_of
from paydesk.database.statements import Connection, load_statements
from paydesk.database.surely import drawn_key, surely
from paydesk.domain.chargebacks.for_api import Chargeback, find_chargeback, reference_of
from paydesk.domain.chargebacks.states import Answer, EvidenceState
from paydesk.domain.chargebacks.uploading import upload_files
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

queries = load_statements(__package__ or "")

LONGEST_EVIDENCE = 20_000
"""Characters."""

PATIENCE = timedelta(minutes=5)
"""After which a handing over that has not ended is one of which nobody knows what became."""

_UNSURE = (
    "it is not known whether the evidence was recorded: the database went away over it. Send it again: a later text "
    "replaces an earlier one"
)


async def save_draft(desk: Desk, shop: Shop, chargeback_id: int, text: str) -> None:
    """Keep what the merchant is writing; empty it is forgotten. Moves no money.

    Raises: Malformed, NotFound; Conflict if it is closed, or handed over already.
    """
    if text.strip():
        _require_text(text)
    about = {"merchant_id": shop.merchant_id, "live": shop.live, "id": chargeback_id}
    if await queries.save_draft(desk.database, **about, draft=masked(text.strip()), patience=PATIENCE) is None:
        raise await why_not(desk, shop, chargeback_id)


async def give_evidence(
    desk: Desk, shop: Shop, chargeback_id: int, text: str, *, now: datetime, once: bool = False
) -> Chargeback:
    """Record the merchant's side of an open chargeback and hand it to the bank;
    a later text replaces it, unless it is given `once`. Moves no money.

    `now` is the shop's time, UTC.
    Raises: Malformed if the text is empty or too long, NotFound, Conflict if it is closed, the
    bank's time for it is over, or it is being handed over (with `once` also if it was),
    Unavailable if nobody knows whether the bank has it (it is recorded then), Unsure if nobody can
    say whether it was recorded.
    """
    _require_text(text)
    acquirer_name, reference = await reference_of(desk.database, shop, chargeback_id)
    acquirer = desk.acquirers.get(acquirer_name)
    if acquirer is None:
        raise Unavailable(
            worded(
                "%(acquirer_name)s is not set up here, so nobody can be told; ask who runs this service",
                acquirer_name=acquirer_name,
            )
        )
    if acquirer.capabilities.answered_at:
        raise Conflict(
            worded(
                "%(acquirer_name)s takes no evidence from here: %(answered_at)s",
                acquirer_name=acquirer_name,
                answered_at=acquirer.capabilities.answered_at,
            )
        )
    if once:
        await _look_for_unknown(desk, shop, chargeback_id, acquirer, reference)
    key = drawn_key()
    about = {"merchant_id": shop.merchant_id, "live": shop.live, "id": chargeback_id, "key": key}
    write = partial(queries.record_evidence, **about, evidence=masked(text), once=once, patience=PATIENCE, now=now)
    # What is not there was not written, or was not allowed: then the second try says so too.
    row = await surely(desk.database, write, partial(_written, shop, chargeback_id, key), unsure=_UNSURE)
    if row is None:
        raise await why_not(desk, shop, chargeback_id)
    try:
        files = await upload_files(desk.database, shop, chargeback_id, acquirer)
    except (AcquirerRefused, OutcomeUnknown) as error:
        # Files alone are no answer: the bank has none, for certain.
        await queries.evidence_ended(desk.database, **about, state=EvidenceState.REFUSED)
        raise _without_files(error) from error
    try:
        await acquirer.submit_evidence(reference, masked(text), files)
    except AcquirerRefused as error:
        await queries.evidence_ended(desk.database, **about, state=EvidenceState.REFUSED)
        raise Conflict(worded("the bank does not take the evidence: %(error)s", error=error)) from error
    except OutcomeUnknown as error:
        await queries.evidence_ended(desk.database, **about, state=EvidenceState.UNKNOWN)
        raise Unavailable(
            worded("the evidence is recorded, but the bank can't be reached; send it again later")
        ) from error
    await queries.evidence_ended(desk.database, **about, state=EvidenceState.SENT)
    return await find_chargeback(desk.database, shop, chargeback_id)


def _without_files(error: AcquirerRefused | OutcomeUnknown) -> PaydeskError:
    """What came of an answer whose files could not be handed over."""
    if isinstance(error, AcquirerRefused):
        return Conflict(f"the bank does not take a file, and was given nothing: {error}")
    return Unavailable("the bank could not be given the files, and has no answer yet; send it again later")


async def _written(shop: Shop, chargeback_id: int, key: str, connection: Connection) -> object:
    about = {"merchant_id": shop.merchant_id, "live": shop.live, "id": chargeback_id}
    return await queries.find_handing_over(connection, **about, key=key)


async def _look_for_unknown(desk: Desk, shop: Shop, chargeback_id: int, acquirer: Acquirer, reference: str) -> None:
    """Before evidence is given again of which nobody knows whether the bank has it, ask the bank.

    Raises: Conflict if it has; Unavailable if it can't be asked.
    """
    answer = await find_answer(desk, shop, chargeback_id)
    if not answer.is_unknown(PATIENCE):
        return
    try:
        told = await acquirer.find_dispute(reference)
    except (AcquirerRefused, OutcomeUnknown) as error:
        raise Unavailable(
            worded(
                "nobody knows yet whether the bank has the evidence, and it can't be asked just now; try again later"
            )
        ) from error
    if told is not None and told.answered:
        about = {"merchant_id": shop.merchant_id, "live": shop.live, "id": chargeback_id, "key": answer.evidence_key}
        await queries.evidence_ended(desk.database, **about, state=EvidenceState.SENT)
        raise Conflict(worded("the bank has the evidence: it came through the last time"))


async def find_answer(desk: Desk, shop: Shop, chargeback_id: int) -> Answer:
    """How the merchant's answer to a chargeback stands. Raises: NotFound."""
    await find_chargeback(desk.database, shop, chargeback_id)
    row = queries.find_answer(desk.database, merchant_id=shop.merchant_id, live=shop.live, id=chargeback_id)
    return record_of(Answer, await row)


async def why_not(desk: Desk, shop: Shop, chargeback_id: int) -> Conflict:
    """Why no evidence can be given, or written."""
    found = await find_chargeback(desk.database, shop, chargeback_id)
    answer = await find_answer(desk, shop, chargeback_id)
    if found.closed_at is not None:
        return Conflict(f"chargeback {chargeback_id} is closed; evidence comes too late")
    if answer.is_late:
        return Conflict(
            f"the bank took evidence for chargeback {chargeback_id} until {answer.respond_by:%Y-%m-%d %H:%M} UTC; it "
            "comes too late"
        )
    if answer.is_unknown(PATIENCE):
        return Conflict("nobody knows whether the bank has the evidence: send it again before you change its files")
    if answer.evidence_state is EvidenceState.SENDING:
        return Conflict("the evidence is being handed to the bank just now; look again in a minute")
    return Conflict("the bank has the evidence already, and takes it once")


def _require_text(text: str) -> None:
    if not text.strip() or len(text) > LONGEST_EVIDENCE or "\x00" in text:
        raise Malformed(
            plural(
                "evidence is a text of 1 to %(count)s character",
                "evidence is a text of 1 to %(count)s characters",
                count=LONGEST_EVIDENCE,
            ),
            "text",
        )
