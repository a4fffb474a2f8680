"""Early fraud warnings: a card's issuer holds a payment for fraud, and no money has moved yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class FraudWarning:
    """What an issuer said of a payment.

    `of_key` is the purchase's own idempotency key, and `of_merchant` the tag of its merchant, as
    the purchase is marked; empty if it is not. `kind` is the acquirer's word for the fraud, such as
    "made_with_stolen_card". It `may_be_averted` as long as the payment is neither wholly refunded
    nor disputed.
    """

    reference: str
    of_key: str
    of_merchant: str
    kind: str
    may_be_averted: bool


@runtime_checkable
class WarnsOfFraud(Protocol):
    """An acquirer that passes on what issuers say of payments before they take them back."""

    async def fraud_warnings(self, since: datetime) -> tuple[FraudWarning, ...]:
        """The warnings since a time (UTC) that are of our purchases, as they stand now. Moves no
        money.

        Raises: AcquirerRefused if this key may not read them; OutcomeUnknown.
        """


async def fraud_warnings_of(acquirer: object, since: datetime) -> tuple[FraudWarning, ...]:
    """What an acquirer warns of; none if it never does.

    Raises: as `WarnsOfFraud.fraud_warnings`.
    """
    return await acquirer.fraud_warnings(since) if isinstance(acquirer, WarnsOfFraud) else ()
