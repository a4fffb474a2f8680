"""What is only held at Mollie: taken, wholly or in part, or let go of.

A capture is decided a moment after it was asked for, and a release is only asked for: "Mollie will
do its best". So both are under way until a payment, or its list of captures, shows what came of
them. A capture has our key in its metadata; a release leaves no trace but its payment's end.

Source: docs.mollie.com/docs/place-a-hold-for-a-payment; docs.mollie.com/reference/create-capture,
    /list-captures, /release-authorization.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Final

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    KeyUsed,
    Moved,
    MovementFinding,
    OutcomeUnknown,
    Refused,
    Undecided,
    UnderWay,
)
from paydesk.adapters.acquirers.mollie.amounts import value_of
from paydesk.adapters.acquirers.mollie.calls import Calls, header_of
from paydesk.adapters.acquirers.mollie.looking import Looking
from paydesk.adapters.acquirers.mollie.objects import KEY, Capture, Listed, Payment
from paydesk.core.wording import noted


class Holds:
    """Takes what is held, or lets go of it."""

    def __init__(self, calls: Calls, looking: Looking, pauses: Sequence[float] = (0.5, 1.0)) -> None:
        """Prepare calls; `pauses` are seconds between looks at a capture that is not decided."""
        self._pauses: Final = pauses
        self._calls: Final = calls
        self._looking: Final = looking

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Take what is held, or a part, and let go of the rest: once. Moves money.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown, also while Mollie has not decided it.
        """
        payment = await self._looking.payment(reference)
        if payment is None or not payment.key:
            raise AcquirerRefused(noted("there is no payment of this reference to capture"))
        before = await self.captures(payment)
        made = _under(key, before)
        if made is not None and (made.amount is None or made.amount.amount != amount):
            raise KeyUsed(noted("the key was used for another capture"))
        if made is None:
            _require_held(payment, before, amount, currency)
            made = await self._decided(await self._take(key, payment, amount, currency), payment)
        if made.status == "failed":
            raise AcquirerRefused(noted("Mollie could not capture what was held"))
        if made.status != "succeeded":
            raise Undecided(f"Mollie's capture {made.id} is {made.status[:40]}")
        if amount < payment.amount.amount:
            # The rest of a hold ends by itself; sooner is better, and nothing depends on it.
            with suppress(AcquirerRefused, OutcomeUnknown):
                await self.release(payment, f"{key}:rest")

    async def release(self, payment: Payment, key: str) -> Payment:
        """Ask to let go of what is held; the payment as it stands then. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        ask = self._calls.sdk.payments.release_authorization_async
        await self._calls.do(partial(ask, payment_id=payment.id, idempotency_key=header_of(key)))
        return await self._looking.payment(payment.id) or payment

    async def find(self, key: str, payment: Payment) -> MovementFinding | None:
        """What became of a capture under a key, None if there is none. Moves no money.

        Raises: OutcomeUnknown.
        """
        made = _under(key, await self.captures(payment)) if payment.may_be_held else None
        if made is None:
            return None
        if made.status == "failed":
            return Refused(noted("Mollie could not capture what was held"))
        return Moved(payment.id) if made.status == "succeeded" else UnderWay()

    async def captures(self, payment: Payment) -> list[Capture]:
        """All captures of a payment. Moves no money. Raises: OutcomeUnknown."""
        ask = partial(self._calls.sdk.captures.list_async, payment_id=payment.id)
        return (await self._calls.look(ask, Listed) or Listed()).embedded.captures

    async def _decided(self, made: Capture, payment: Payment) -> Capture:
        """A capture as it stands once Mollie has decided it, or has had a moment for that.

        Raises: OutcomeUnknown.
        """
        for pause in self._pauses:
            if made.status != "pending":
                break
            await asyncio.sleep(pause)
            made = _under(made.key, await self.captures(payment)) or made
        return made

    async def _take(self, key: str, payment: Payment, amount: Decimal, currency: str) -> Capture:
        """Ask for a capture. Moves money. Raises: AcquirerRefused, OutcomeUnknown."""
        asked = {"amount": {"currency": currency, "value": value_of(amount, currency)}, "metadata": {KEY: key}}
        create = self._calls.sdk.captures.create_async
        return await self._calls.ask(
            partial(create, payment_id=payment.id, idempotency_key=header_of(key), entity_capture=asked), Capture
        )


def _under(key: str, captures: list[Capture]) -> Capture | None:
    return next((one for one in captures if one.key == key), None)


def _require_held(payment: Payment, before: list[Capture], amount: Decimal, currency: str) -> None:
    """Make sure that so much may be taken. Raises: AcquirerRefused."""
    if not payment.is_held or any(one.status != "failed" for one in before):
        raise AcquirerRefused(noted("nothing is held by %(payment)s any more", payment=payment.id))
    if not amount.is_finite() or amount <= 0:
        raise AcquirerRefused(noted("%(amount)s is not an amount above 0", amount=amount))
    if payment.amount.currency != currency:
        raise AcquirerRefused(
            noted("the payment is in %(currency)s, not in %(asked)s", currency=payment.amount.currency, asked=currency)
        )
    if amount > payment.amount.amount:
        raise AcquirerRefused(
            noted("%(amount)s can't be captured, %(held)s is held", amount=amount, held=payment.amount.amount)
        )
