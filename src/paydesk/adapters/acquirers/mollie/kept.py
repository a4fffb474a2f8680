"""What Mollie keeps of a first payment, to charge it again without the customer: a customer of
Mollie's for each page, and the mandate that its payment gives.

A later charge is a payment with our key, under that mandate. It answers at once or within moments;
one that doesn't is looked at until it has. Other methods than cards give mandates for SEPA direct
debits, whose money is not sure for days: they are kept only where slow methods are wanted.

Source: docs.mollie.com/docs/recurring-payments; docs.mollie.com/docs/sepa-direct-debit;
    docs.mollie.com/reference/create-customer, /create-payment (`sequenceType`), /get-mandate,
    /revoke-mandate.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from paydesk.adapters.acquirers.hosted_pages import PageRequest
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Challenged,
    Declined,
    DeclineReason,
    KeyUsed,
    NothingHeld,
    Outcome,
    Undecided,
    Voided,
)
from paydesk.adapters.acquirers.mollie.amounts import value_of
from paydesk.adapters.acquirers.mollie.calls import Calls, Missing, header_of
from paydesk.adapters.acquirers.mollie.looking import Looking
from paydesk.adapters.acquirers.mollie.objects import (
    ASKED,
    KEY,
    UNTIL,
    Named,
    Payment,
    digest_of,
    finding_of,
    metadata_of,
    written,
)
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.core.wording import noted

METHODS: Final = ("applepay", "creditcard")
"""Methods whose later charges are answered at once."""
KEPT_AS_DEBITS: Final = ("bancontact", "belfius", "eps", "ideal", "kbc", "mybank")
"""Methods that pay at once from an account, which is charged by SEPA direct debit later."""
METHODS_FOR_NOTHING: Final = ("creditcard",)
"""Methods that are kept without a payment."""

BEFORE: Final = timedelta(hours=1)
"""How long before its last moment a charge may have been made."""

_REFERENCE: Final = re.compile(r"(cst_[A-Za-z0-9]{1,100})/(mdt_[A-Za-z0-9]{1,100})")
_LONGEST_NAME: Final = 255


class Kept:
    """Keeps what is paid with, and charges it again."""

    def __init__(
        self, calls: Calls, looking: Looking, now: Callable[[], datetime], pauses: Sequence[float] = (1.0, 2.0)
    ) -> None:
        """Prepare calls; `pauses` are the seconds between looks at a charge that is not decided."""
        self._calls: Final = calls
        self._looking: Final = looking
        self._now: Final = now
        self._pauses: Final = pauses

    async def customer(self, wanted: PageRequest) -> str:
        """The customer of Mollie's with whom a page keeps what is paid with: one for each page, the
        same one for the same request. Raises: AcquirerRefused, OutcomeUnknown.
        """
        create = partial(
            self._calls.sdk.customers.create_async,
            idempotency_key=header_of(f"{wanted.key}:customer"),
            entity_customer={"email": wanted.email, "metadata": {KEY: wanted.key}},
        )
        return (await self._calls.ask(create, Named)).id

    async def charge(self, purchase: Purchase) -> Outcome:
        """Take money by a mandate. Moves money.

        What Mollie does not keep, or not any more, is a decline, so that the failing subscription
        asks its customer for a card.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown.
        """
        names = _REFERENCE.fullmatch(purchase.stored_reference)
        if names is None:
            return Declined(DeclineReason.DECLINED)
        if self._now() > purchase.not_after:
            earlier = await self._looking.under(purchase.key, purchase.not_after - BEFORE)
            return Declined(DeclineReason.TOO_LATE) if earlier is None else await self._outcome(earlier)
        asked = _asked(purchase, names[1], names[2])
        digest = digest_of(asked)
        metadata = metadata_of(purchase.key, digest, purchase.mark) | {UNTIL: purchase.not_after.isoformat()}
        create = partial(
            self._calls.sdk.payments.create_async,
            idempotency_key=header_of(purchase.key),
            payment_request=asked | {"metadata": metadata},
        )
        try:
            payment = await self._calls.ask(create, Payment)
        except AcquirerRefused as refused:
            if isinstance(refused, Missing) or "mandate" in str(refused).lower():
                return Declined(DeclineReason.DECLINED)
            raise
        if payment.key != purchase.key or written(payment.metadata, ASKED) != digest:
            raise KeyUsed(noted("the key was used for another purchase before"))
        self._looking.remember(payment)
        return await self._outcome(payment)

    async def _outcome(self, payment: Payment) -> Outcome:
        """What a charge came to, if that is known within moments. Raises: OutcomeUnknown."""
        for pause in self._pauses:
            if not payment.is_open or payment.is_debit:
                break
            await asyncio.sleep(pause)
            payment = await self._looking.payment(payment.id) or payment
        finding = finding_of(payment, voided=False)
        if isinstance(finding, Challenged):
            raise Undecided(f"Mollie is not done with {payment.id}")
        return Declined(DeclineReason.TOO_LATE) if isinstance(finding, NothingHeld | Voided) else finding

    async def let_go(self, payment: Payment) -> None:
        """Revoke the mandate of a first payment: it is charged never again. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        await self.revoke(payment.kept)

    async def revoke(self, reference: str) -> None:
        """Revoke a mandate that is kept, if it is one. Moves no money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        names = _REFERENCE.fullmatch(reference)
        if names is not None:
            revoke = partial(self._calls.sdk.mandates.revoke_async, customer_id=names[1], mandate_id=names[2])
            with suppress(Missing):
                await self._calls.do(revoke)


def _asked(purchase: Purchase, customer: str, mandate: str) -> dict[str, object]:
    """The request for a later charge: the same for the same purchase, to the byte."""
    return {
        "description": (purchase.mark.order if purchase.mark else "")[:_LONGEST_NAME] or "Subscription",
        "amount": {"currency": purchase.currency, "value": value_of(purchase.amount, purchase.currency)},
        "sequence_type": "recurring",
        "customer_id": customer,
        "mandate_id": mandate,
    }
