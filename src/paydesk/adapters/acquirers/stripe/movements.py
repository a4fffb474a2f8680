"""Capturing, voiding and refunding at Stripe; each looks first at how the purchase stands.

A movement's key is Stripe's idempotency key and stands in metadata too, so that a repeated key gets
the first answer after Stripe has forgotten it as an idempotency key.

An undoing is under way until Stripe has made its refund, which it holds as pending while the
account's balance does not cover it: one that comes to nothing then is made anew, a few times.

To capture is answered by an intent that has succeeded, or by one that is processing, and may fail
yet: that is under way until Stripe says what came of it.
Source: docs.stripe.com/payments/paymentintents/lifecycle, "processing".
"""

from __future__ import annotations

from collections.abc import Awaitable
from decimal import Decimal
from typing import Final, TypeVar

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
from paydesk.adapters.acquirers.stripe.amounts import main_units, minor_units, plain
from paydesk.adapters.acquirers.stripe.calls import Calls, KeyTaken, Rejected
from paydesk.adapters.acquirers.stripe.looking import Looking
from paydesk.adapters.acquirers.stripe.objects import (
    CAPTURE,
    KEY,
    NUMBER,
    VOID,
    Intent,
    Refund,
    finding_of,
    released_by,
)
from paydesk.core.wording import noted

_Shape = TypeVar("_Shape")
_OPEN: Final = frozenset({"requires_action", "requires_capture", "requires_confirmation"})

MOST_REFUNDS: Final = 3
"""How many refunds are made to undo one charge, each after the one before came to nothing."""


class Movements:
    """What may be done to a purchase afterwards."""

    def __init__(self, calls: Calls, looking: Looking) -> None:
        self._calls: Final = calls
        self._looking: Final = looking

    async def capture(self, key: str, reference: str, amount: Decimal, currency: str) -> None:
        """Take what an authorization holds, or a part of it. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown, also while Stripe works on it.
        """
        intent, units = await self._money(reference, amount, currency, "capture")
        if intent.status == "processing":
            raise Undecided(f"Stripe is not done with {intent.id}")
        if intent.metadata.get(CAPTURE) == key and intent.status == "succeeded":
            if intent.amount_received != units:
                raise KeyUsed(noted("the key was used for another capture"))
            return
        if not intent.held:
            gone = intent.status == "canceled"
            raise AcquirerRefused(noted("nothing is held any more") if gone else noted("nothing is left to capture"))
        if units > intent.held:
            held = plain(intent.held, currency)
            raise AcquirerRefused(
                noted("%(amount)s can't be captured, %(held)s is held", amount=plain(units, currency), held=held)
            )
        asked = {"amount_to_capture": units, "metadata": {CAPTURE: key}}
        call = self._calls.v1.payment_intents.capture_async(reference, asked, {"idempotency_key": key})
        taken = await self._do(call, Intent)
        if taken.status != "succeeded":
            raise Undecided(f"Stripe is not done with {taken.id}: {taken.status[:40]}")

    async def refund(self, key: str, reference: str, amount: Decimal, currency: str, number: int = 0) -> str:
        """Give captured money back and return the refund's reference. Moves money.

        Raises: AcquirerRefused, also while the money is disputed; OutcomeUnknown.
        """
        intent, units = await self._money(reference, amount, currency, "refund")
        refunds = await self._looking.refunds(intent) if intent.amount_received else []
        before = _under(key, refunds)
        if before is not None:
            if before.amount != units:
                raise KeyUsed(noted("the key was used for another refund"))
            return _made(before).id
        left = intent.amount_received - _given_back(intent, refunds)
        if units > left:
            raise AcquirerRefused(
                noted(
                    "%(amount)s can't be refunded, %(left)s is left of what was captured",
                    amount=plain(units, currency),
                    left=plain(left, currency),
                )
            )
        called = {NUMBER: str(number)} if number else {}
        return _made(await self._give_back(intent, key, {"amount": units, "metadata": {KEY: key} | called})).id

    async def void(self, key: str, of_key: str) -> Release:
        """Let go of what is held, or end what is open; what is taken stays taken. Moves money.

        Stripe cancels only what is not captured, so a capture in between is seen. Raises:
        AcquirerRefused, OutcomeUnknown.
        """
        ended = await self._end(key, of_key)
        if not isinstance(ended, Intent):
            return ended
        if ended.is_setup:
            return await self._void_checked(ended, key)
        if await self._looking.is_voided(ended):
            return Voided()
        return Captured(ended.id, main_units(ended.amount_received, ended.currency))

    async def undo(self, key: str, of_key: str) -> Finding | UnderWay:
        """Undo a purchase: end what is open, release what is held, give back what is taken.
        Moves money.

        UnderWay until Stripe has given it back; asked again, a refund that came to nothing is made
        anew. Raises: AcquirerRefused, OutcomeUnknown.
        """
        ended = await self._end(key, of_key)
        return await self._give_all_back(ended, key) if isinstance(ended, Intent) else ended

    async def _end(self, key: str, of_key: str) -> Finding | Intent:
        """End or release a purchase, and say what is true of it then;
        the intent itself if it has succeeded.

        Looks again if it changed under our hands. Raises: OutcomeUnknown.
        """
        for _ in range(2):
            intent = await self._looking.purchase(of_key)
            if intent is None:
                return NothingHeld()
            standing = finding_of(intent, voided=False)
            if intent.status not in {*_OPEN, "succeeded"} or isinstance(standing, Voided):
                return standing
            if intent.status == "succeeded":
                return intent
            try:
                await self._cancel(intent, key)
            except AcquirerRefused:
                continue
            return Voided()
        raise Undecided("the payment changes while it is being voided")

    async def end_challenge(self, of_key: str) -> Finding:
        """End an open challenge; anything else stays. Moves no money. Raises: OutcomeUnknown.

        Stripe can't cancel on condition: an authorization that the customer approves within the
        moment between look and cancellation is released again, and reported as Voided, which is
        then true. A charge can't be undone so.
        """
        for _ in range(2):
            intent = await self._looking.purchase(of_key)
            if intent is None:
                return NothingHeld()
            if intent.status != "requires_action":
                return finding_of(intent, voided=await self._looking.is_voided(intent))
            try:
                await self._cancel(intent, "")
            except AcquirerRefused:
                continue
            return Voided()
        raise Undecided("the challenge changes while it is being ended")

    async def find(self, key: str, of_key: str, reference: str) -> MovementFinding:
        """What became of a capture, void or refund. Moves no money. Raises: OutcomeUnknown.

        Refusals leave no trace at Stripe: they are not found, and decided again if the key is
        sent again.
        """
        intent = await self._looking.intent(reference) or await self._looking.purchase(of_key)
        if intent is None or intent.metadata.get(KEY) != of_key:
            return NothingHeld()
        if intent.metadata.get(CAPTURE) == key and intent.status == "succeeded":
            return Moved(intent.id)
        if intent.metadata.get(CAPTURE) == key and intent.status == "processing":
            return UnderWay()
        if intent.metadata.get(VOID) == key and (intent.status == "canceled" or intent.is_setup):
            return Moved(intent.id)
        # Not by what the charge says was refunded: the amount of a refund that failed is taken out
        # of that again.
        refund = None if intent.is_setup else _under(key, await self._looking.refunds(intent))
        if refund is None:
            return NothingHeld()
        if not refund.counts:
            return Refused(_why_not_made(refund))
        return Moved(_made(refund).id, main_units(refund.amount, intent.currency))

    async def _money(self, reference: str, amount: Decimal, currency: str, action: str) -> tuple[Intent, int]:
        """The purchase and the amount that is to be moved, in minor units.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        intent = await self._looking.intent(reference)
        if intent is None or intent.is_setup or KEY not in intent.metadata:
            raise AcquirerRefused(noted("there is no payment of this reference to %(kind)s", kind=action))
        if not amount.is_finite() or amount <= 0:
            raise AcquirerRefused(noted("%(amount)s is not an amount above 0", amount=amount))
        if intent.currency != currency.lower():
            raise AcquirerRefused(
                noted(
                    "the payment is in %(currency)s, not in %(asked)s", currency=intent.currency.upper(), asked=currency
                )
            )
        return intent, minor_units(amount, currency)

    async def _give_all_back(self, intent: Intent, key: str) -> Voided | UnderWay:
        """Give a whole charge back, or mark a checked card as void. Moves money.

        Raises: AcquirerRefused if it was refunded, or its refunds come to nothing again and again;
            OutcomeUnknown.
        """
        if intent.is_setup:
            return await self._void_checked(intent, key)
        refunds = await self._looking.refunds(intent)
        undoing = [refund for refund in refunds if VOID in refund.metadata]
        made = next((refund for refund in undoing if refund.counts), None)
        if made is None:
            if any(refund.counts for refund in refunds):
                raise AcquirerRefused(noted("the payment was refunded and can't be undone any more"))
            made = await self._undone_by(intent, key, undoing)
        return Voided() if made.is_final else UnderWay()

    async def _undone_by(self, intent: Intent, key: str, failed: list[Refund]) -> Refund:
        """The refund that is to undo a charge, after others that came to nothing: under a key of
        its own, since Stripe only tells of the first one again under theirs. Moves money.

        Raises: AcquirerRefused, OutcomeUnknown.
        """
        if len(failed) >= MOST_REFUNDS:
            raise AcquirerRefused(
                noted(
                    "%(why)s, as %(before)s before it: give its customer the money back another way, and note so at "
                    "Stripe",
                    why=_why_not_made(failed[0]),
                    before=len(failed) - 1,
                )
            )
        own = f"{key}:{len(failed)}" if failed else key
        return await self._give_back(intent, own, {"metadata": {KEY: own, VOID: key}})

    async def _void_checked(self, intent: Intent, key: str) -> Voided:
        """Mark a checked card as void. Raises: AcquirerRefused, OutcomeUnknown."""
        marked = {"metadata": {VOID: key}}
        await self._do(self._calls.v1.setup_intents.update_async(intent.id, marked), Intent)
        return Voided()

    async def _give_back(self, intent: Intent, key: str, asked: dict[str, object]) -> Refund:
        """Make a refund. Raises: AcquirerRefused, OutcomeUnknown."""
        asked = {"payment_intent": intent.id, **asked}
        done = await self._do(self._calls.v1.refunds.create_async(asked, {"idempotency_key": key}), Refund)
        if not done.counts:
            raise AcquirerRefused(_why_not_made(done))
        return done

    async def _cancel(self, intent: Intent, key: str) -> None:
        """Cancel an open intent for good, marked with the void's key.

        Raises: AcquirerRefused if it is not open.
        """
        service = self._calls.v1.setup_intents if intent.is_setup else self._calls.v1.payment_intents
        if key:
            await self._do(service.update_async(intent.id, {"metadata": {VOID: key}}), Intent)
        await self._do(service.cancel_async(intent.id), Intent)

    async def _do(self, call: Awaitable[object], shape: type[_Shape]) -> _Shape:
        """A call that moves money. Raises: AcquirerRefused, OutcomeUnknown."""
        try:
            return await self._calls.ask(call, shape)
        except KeyTaken:
            raise KeyUsed(noted("the key was used for another request")) from None
        except Rejected as rejected:
            raise AcquirerRefused(noted("Stripe refused: %(reason)s", reason=rejected.reason)) from None


def _given_back(intent: Intent, refunds: list[Refund]) -> int:
    """What refunds took of what was captured, in minor units;
    what a partial capture released is not part of it.
    """
    return sum(refund.amount for refund in refunds if refund.counts) - released_by(intent, refunds)


def _made(refund: Refund) -> Refund:
    """The refund, once it is made.

    Raises: OutcomeUnknown while it is on its way, AcquirerRefused if it failed.
    """
    if not refund.counts:
        raise AcquirerRefused(_why_not_made(refund))
    if not refund.is_final:
        raise Undecided(f"Stripe's refund {refund.id} is {refund.status}")
    return refund


def _why_not_made(refund: Refund) -> str:
    """That a refund failed or was canceled, and Stripe's word for why."""
    what = noted("Stripe's refund %(refund)s %(status)s", refund=refund.id, status=refund.status)
    return f"{what}: {refund.failure_reason}" if refund.failure_reason else what


def _under(key: str, refunds: list[Refund]) -> Refund | None:
    """The refund that was made under a key."""
    return next((refund for refund in refunds if refund.metadata.get(KEY) == key), None)
