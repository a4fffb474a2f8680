"""Refunding and undoing at Mollie; each looks first at how the payment stands.

A movement's key is Mollie's idempotency key and stands in metadata too, so that a repeated key gets
the first answer after Mollie has forgotten it as an idempotency key.

A refund is made once Mollie has taken it: until it is with the customer it may wait for the
account's balance (`queued`), be `pending` or `processing` for days, and be canceled in the
dashboard or fail; that is told by `failed_refunds.py`. An undoing is under way until its refund is
`refunded`; of one that came to nothing another refund is made, a few times.

Source: docs.mollie.com/docs/refunds, docs.mollie.com/reference/create-refund.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Final

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Captured,
    Finding,
    KeyUsed,
    Moved,
    MovementFinding,
    NothingHeld,
    Refused,
    Release,
    Undecided,
    UnderWay,
    Voided,
)
from paydesk.adapters.acquirers.mollie.amounts import plain, value_of
from paydesk.adapters.acquirers.mollie.calls import Calls, header_of
from paydesk.adapters.acquirers.mollie.holding import Holds
from paydesk.adapters.acquirers.mollie.kept import Kept
from paydesk.adapters.acquirers.mollie.looking import Looking
from paydesk.adapters.acquirers.mollie.objects import KEY, NUMBER, VOID, Payment, Refund, finding_of, written
from paydesk.core.wording import noted

MOST_REFUNDS: Final = 3
"""How many refunds are made to undo one payment, each after the one before came to nothing."""


class Movements:
    """What may be done to a payment afterwards."""

    def __init__(self, calls: Calls, looking: Looking, kept: Kept, holds: Holds) -> None:
        self._calls: Final = calls
        self._kept: Final = kept
        self._holds: Final = holds
        self._looking: Final = looking

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Give captured money back and return the refund's reference. Moves money.

        Raises: AcquirerRefused, also while the money is charged back; OutcomeUnknown.
        """
        payment = await self._money(reference, amount, currency)
        refunds = await self._looking.refunds(payment)
        before = _under(key, refunds)
        if before is not None:
            if before.amount.amount != amount:
                raise KeyUsed(noted("the key was used for another refund"))
            return _made(before).id
        left = payment.captured - sum((one.amount.amount for one in refunds if one.counts), Decimal(0))
        if amount > left:
            raise AcquirerRefused(
                noted(
                    "%(amount)s can't be refunded, %(left)s is left of what was captured",
                    amount=plain(amount),
                    left=plain(left),
                )
            )
        await self._refuse_charged_back(payment)
        called = {NUMBER: str(number)} if number else {}
        return _made(await self._give_back(payment, key, amount, {KEY: key} | called)).id

    async def void(self, key: str, of_key: str) -> Release:
        """End what is open, or let go of what is held; what is taken stays taken. Moves money.

        UnderWay until Mollie has let go. Raises: AcquirerRefused, OutcomeUnknown.
        """
        ended = await self._end(of_key)
        if isinstance(ended, Payment) and ended.is_held:
            ended = await self._holds.release(ended, key)
            if ended.is_held:
                return UnderWay()
        if not isinstance(ended, Payment):
            return ended
        if ended.may_be_held and ended.status != "paid":
            return Voided()
        if not ended.captured:
            return await self._give_all_back(ended, key)
        return Voided() if await self._looking.is_voided(ended) else Captured(ended.id, ended.captured)

    async def undo(self, key: str, of_key: str) -> Finding | UnderWay:
        """Undo a payment: end what is open, give back what is taken. Moves money.

        UnderWay until Mollie has refunded it, or let go; asked again, a refund that failed is made
        anew. Raises: AcquirerRefused, OutcomeUnknown.
        """
        ended = await self._end(of_key)
        if isinstance(ended, Payment) and ended.is_held:
            ended = await self._holds.release(ended, key)
            if ended.status != "paid":
                return UnderWay() if ended.is_held else Voided()
        return await self._give_all_back(ended, key) if isinstance(ended, Payment) else ended

    async def end_challenge(self, of_key: str) -> Finding:
        """End an open payment; anything else stays. Moves no money. Raises: OutcomeUnknown."""
        ended = await self._end(of_key)
        if not isinstance(ended, Payment):
            return ended
        return finding_of(ended, voided=await self._looking.is_voided(ended))

    async def find(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """What became of a refund or an undoing. Moves no money. Raises: OutcomeUnknown.

        Refusals leave no trace at Mollie: they are not found, and decided again if the key is
        sent again.
        """
        payment = await self._looking.payment(reference) or await self._looking.under(of_key)
        if payment is None or payment.key != of_key:
            return NothingHeld()
        if payment.status == "paid" and not payment.captured:
            return Moved(payment.id) if await self._looking.is_voided(payment) else NothingHeld()
        if (captured := await self._holds.find(key, payment)) is not None:
            return captured
        refund = _under(key, await self._looking.refunds(payment))
        if refund is None:
            return NothingHeld()
        if not refund.counts:
            return Refused(_why_not_made(refund))
        if written(refund.metadata, VOID) and not refund.is_over:
            return UnderWay()
        return Moved(refund.id, refund.amount.amount)

    async def _end(self, of_key: str) -> Finding | Payment:
        """End a payment that is open, and say what is true of it then; the payment itself if it is
        paid, or its money is held.

        Raises: OutcomeUnknown, also for one that Mollie has not, or can't end.
        """
        payment = await self._looking.under(of_key)
        if payment is None:
            raise Undecided("Mollie's list has no payment under this key")
        if payment.is_open:
            await self._cancel(payment)
            payment = await self._looking.payment(payment.id) or payment
        if payment.is_open:
            raise Undecided(f"Mollie can't end {payment.id} now")
        if payment.is_held:
            return payment
        if payment.status != "paid":
            return finding_of(payment, voided=False)
        is_gone = not payment.captured and await self._looking.is_voided(payment)
        return Voided() if is_gone else payment

    async def _cancel(self, payment: Payment) -> None:
        """Cancel an open payment, if that can be. Raises: OutcomeUnknown if not."""
        if not payment.is_cancelable:
            raise Undecided(f"Mollie can't end {payment.id} now")
        cancel = partial(self._calls.sdk.payments.cancel_async, payment_id=payment.id)
        try:
            await self._calls.ask(cancel, Payment)
        except AcquirerRefused as refused:
            raise Undecided(str(refused)) from None

    async def _money(self, reference: str, amount: Decimal, currency: str) -> Payment:
        """The payment that is to be refunded. Raises: AcquirerRefused, OutcomeUnknown."""
        payment = await self._looking.payment(reference)
        if payment is None or not payment.key:
            raise AcquirerRefused(noted("there is no payment of this reference to refund"))
        if not amount.is_finite() or amount <= 0:
            raise AcquirerRefused(noted("%(amount)s is not an amount above 0", amount=amount))
        if payment.amount.currency != currency:
            raise AcquirerRefused(
                noted(
                    "the payment is in %(currency)s, not in %(asked)s", currency=payment.amount.currency, asked=currency
                )
            )
        value_of(amount, currency)
        return payment

    async def _give_all_back(self, payment: Payment, key: str) -> Voided | UnderWay:
        """Give a whole payment back, or let go of what is kept for nothing. Moves money.

        Raises: AcquirerRefused if it was refunded or charged back, or its refunds come to nothing
            again and again; OutcomeUnknown.
        """
        if not payment.captured:
            await self._kept.let_go(payment)
            return Voided()
        refunds = await self._looking.refunds(payment)
        undoing = [refund for refund in refunds if written(refund.metadata, VOID)]
        made = next((refund for refund in undoing if refund.counts), None)
        if made is None:
            if any(refund.counts for refund in refunds):
                raise AcquirerRefused(noted("the payment was refunded and can't be undone any more"))
            made = await self._undone_by(payment, key, undoing)
        return Voided() if made.is_over else UnderWay()

    async def _undone_by(self, payment: Payment, key: str, failed: list[Refund]) -> Refund:
        """The refund that is to undo a payment, after others that came to nothing. Moves money.

        Raises: AcquirerRefused, KeyUsed, OutcomeUnknown.
        """
        if len(failed) >= MOST_REFUNDS:
            raise AcquirerRefused(
                noted(
                    "%(why)s, as %(before)s before it: give its customer the money back another way, and note so at "
                    "Mollie",
                    why=_why_not_made(failed[0]),
                    before=len(failed) - 1,
                )
            )
        await self._refuse_charged_back(payment)
        own = f"{key}:{len(failed)}" if failed else key
        return _made(await self._give_back(payment, own, payment.captured, {KEY: own, VOID: key}))

    async def _refuse_charged_back(self, payment: Payment) -> None:
        """Make sure that no bank has taken the money already. Raises: AcquirerRefused."""
        if any(one.reversed_at is None for one in await self._looking.chargebacks(payment)):
            raise AcquirerRefused(noted("the payment is charged back: its customer's bank has taken the money"))

    async def _give_back(self, payment: Payment, key: str, amount: Decimal, metadata: dict[str, str]) -> Refund:
        """Make a refund. Moves money. Raises: AcquirerRefused, KeyUsed, OutcomeUnknown."""
        currency = payment.amount.currency
        asked = {"amount": {"currency": currency, "value": value_of(amount, currency)}, "metadata": metadata}
        create = partial(
            self._calls.sdk.refunds.create_async,
            payment_id=payment.id,
            idempotency_key=header_of(key),
            refund_request=asked,
        )
        made = await self._calls.ask(create, Refund)
        if made.key != key or made.amount.amount != amount:
            raise KeyUsed(noted("the key was used for another request"))
        return made


def _made(refund: Refund) -> Refund:
    """The refund, unless it came to nothing. Raises: AcquirerRefused."""
    if not refund.counts:
        raise AcquirerRefused(_why_not_made(refund))
    return refund


def _why_not_made(refund: Refund) -> str:
    return noted("Mollie's refund %(refund)s is %(status)s", refund=refund.id, status=refund.status)


def _under(key: str, refunds: list[Refund]) -> Refund | None:
    """The refund that was made under a key; of several that were to undo a payment, one that
    counts, else the newest.
    """
    named = [refund for refund in refunds if key in {refund.key, written(refund.metadata, VOID)}]
    return next((refund for refund in named if refund.counts), named[0] if named else None)
