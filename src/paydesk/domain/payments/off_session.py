"""Charges that are made without the customer: a bank that asks to see them has refused."""

from __future__ import annotations

from datetime import datetime

from paydesk.adapters.acquirers.interface import (
    Acquirer,
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    Finding,
    NothingHeld,
    OutcomeUnknown,
    Pending,
    Voided,
)
from paydesk.database.pool import Database
from paydesk.domain.payments.forgotten_purchases import Wish, under_its_key


async def charge_unattended(database: Database, acquirer: Acquirer, wish: Wish) -> Approved | Declined | Pending:
    """Charge a stored instrument without its customer. Moves money.

    Raises: OutcomeUnknown, AcquirerRefused.
    """
    said, asked = await under_its_key(database, acquirer, wish, acquirer.charge_stored)
    return await end_challenge(acquirer, asked.key) if isinstance(said, Challenged) else said


async def find_unattended(acquirer: Acquirer, key: str, not_after: datetime) -> Finding:
    """What became of a charge without its customer. Moves no money. Raises: OutcomeUnknown."""
    said = await acquirer.find(key, not_after)
    return await end_challenge(acquirer, key) if isinstance(said, Challenged) else said


async def end_challenge(acquirer: Acquirer, key: str) -> Approved | Declined | Pending:
    """End a challenge that nobody can answer, which makes it a decline, or say what it came
    to before. Moves no money.

    Left open at the bank it could be approved long after we gave it up.

    Raises: OutcomeUnknown if the bank does not say what became of it.
    """
    ended = await acquirer.end_challenge(key)
    if isinstance(ended, Voided):
        return Declined(DeclineReason.AUTHENTICATION_FAILED)
    if isinstance(ended, NothingHeld | Challenged):
        raise OutcomeUnknown("the bank asked for a customer who is not there, and its question can't be ended")
    return ended


def decided(said: Approved | Declined | Pending) -> Approved | Declined:
    """An answer that is one by now, for a charge that waits for no slow method.

    Raises: OutcomeUnknown.
    """
    if isinstance(said, Pending):
        raise OutcomeUnknown("the bank takes some days over it")
    return said
