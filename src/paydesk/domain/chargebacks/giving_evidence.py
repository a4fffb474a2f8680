"""Giving evidence: the merchant's side of a chargeback, recorded and handed to the bank."""

from __future__ import annotations

from datetime import datetime
from functools import partial

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.card_numbers import masked
from paydesk.core.errors import Conflict, Malformed, Unavailable
from paydesk.database.statements import Connection, load_statements
from paydesk.database.surely import surely
from paydesk.domain.chargebacks.for_api import Chargeback, find_chargeback, reference_of
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk

queries = load_statements(__package__ or "")

LONGEST_EVIDENCE = 20_000
"""Characters."""

_UNSURE = (
    "it is not known whether the evidence was recorded: the database went away over it. Send it again: a later text "
    "replaces an earlier one"
)


async def give_evidence(desk: Desk, shop: Shop, chargeback_id: int, text: str, *, now: datetime) -> Chargeback:
    """Record the merchant's side of an open chargeback and hand it to the bank;
    a later text replaces it. Moves no money.

    `now` is the shop's time, UTC.
    Raises: Malformed if the text is empty or too long, NotFound, Conflict if it is closed,
    Unavailable if the bank could not be told (it is recorded then), Unsure if nobody can say
    whether it was recorded.
    """
    if not text.strip() or len(text) > LONGEST_EVIDENCE or "\x00" in text:
        raise Malformed(f"evidence is a text of 1 to {LONGEST_EVIDENCE} characters", "text")
    text = masked(text)
    acquirer, reference = await reference_of(desk.database, shop, chargeback_id)
    write = partial(
        queries.record_evidence, merchant_id=shop.merchant_id, live=shop.live, id=chargeback_id, evidence=text, now=now
    )
    # The same text again does no harm, so there is nothing to look for.
    row = await surely(desk.database, write, _nothing, unsure=_UNSURE)
    if row is None:
        raise Conflict(f"chargeback {chargeback_id} is closed; evidence comes too late")
    try:
        await desk.acquirers[acquirer].submit_evidence(reference, text)
    except AcquirerRefused as error:
        raise Conflict(f"the bank does not take the evidence: {error}") from error
    except (OutcomeUnknown, KeyError) as error:
        raise Unavailable("the evidence is recorded, but the bank can't be reached; send it again later") from error
    return await find_chargeback(desk.database, shop, chargeback_id)


async def _nothing(_connection: Connection) -> None:
    return None
