"""What a wish for a subscription comes to in money, once it is carried out; of a preview, would."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from paydesk.domain.billing.differences import ChangedAtOnce
from paydesk.domain.subscriptions.prorating import charge_for

HELD = timedelta(minutes=15)
"""So long what was shown is charged."""
_REVISION = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shown:
    """When somebody was shown what a change at once charges, and of which revision."""

    at: datetime
    revision: int


def shown(at: str, revision: str, *, now: datetime) -> Shown | None:
    """What a form of ours says of that; None if it is too long ago to be charged, or says nothing
    of it.
    """
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    lately = moment.tzinfo is not None and now - HELD <= moment <= now
    return Shown(moment, int(revision)) if lately and _REVISION.fullmatch(revision) else None


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What is charged now and next, in main units of `currency`: `next_at` is None if nothing is.

    `prorated` is what the wish puts into the balance, and `balance` what the next charge finds
    there; a credit is less than 0. `begins` says that another period begins now.
    """

    currency: str
    charged_now: Decimal
    prorated: Decimal
    balance: Decimal
    next_at: datetime | None
    next_amount: Decimal
    begins: bool


def foreseen(done: ChangedAtOnce, balance: Decimal, *, preview: bool) -> Foreseen:
    """What came of a wish, or would: `balance` is the subscription's as it stands.
    Moves no money.
    """
    changed, difference = done.changed, done.difference
    proration, version = changed.proration, changed.subscription
    terms, at = version.as_charged_next.package.terms, version.charged_next_at
    prorated = proration.amount if proration else Decimal(0)
    begins = proration is not None and proration.begins
    if preview:
        balance += prorated - difference.amount - difference.taken_up + (terms.price if begins else 0)
    return Foreseen(
        currency=terms.currency,
        charged_now=difference.amount,
        prorated=prorated,
        balance=balance,
        next_at=at,
        next_amount=charge_for(terms.price, balance, terms.currency, live=version.live) if at else Decimal(0),
        begins=begins,
    )
