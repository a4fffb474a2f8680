"""Purchases by card as Stripe is asked for them: a PaymentIntent, or a SetupIntent where no money
is taken. Whether one was asked for before, and what came of it, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

from paydesk.adapters.acquirers.interface import AcquirerRefused, DeclineReason, OutcomeUnknown
from paydesk.adapters.acquirers.purchases import Purchase
from paydesk.adapters.acquirers.stripe.amounts import minor_units
from paydesk.adapters.acquirers.stripe.calls import Calls, Rejected
from paydesk.adapters.acquirers.stripe.objects import (
    ALWAYS_AUTHENTICATE,
    DEBITS,
    KEY,
    Intent,
    Method,
    Named,
    metadata_of,
)


class Charging:
    """Asks for purchases, each under its key; none after its time."""

    def __init__(self, calls: Calls, now: Callable[[], datetime]) -> None:
        self._calls: Final = calls
        self._now: Final = now

    async def present(self, purchase: Purchase) -> Intent:
        """Make and confirm a PaymentIntent with the customer's card. Moves money."""
        method = await self._payment_method(purchase)
        kept: dict[str, object] = {}
        if purchase.keep_card:
            kept = {"customer": await self._customer(purchase), "setup_future_usage": "off_session"}
        return await self._pay(purchase, {"payment_method": method, "return_url": purchase.return_url, **kept})

    async def one_click(self, purchase: Purchase) -> Intent:
        """Make and confirm a PaymentIntent with what Stripe keeps, and with its customer there:
        never off-session, so that their bank may ask for them. Moves money.
        """
        customer, method, kind = [*purchase.stored_reference.split("/"), "card"][:3]
        how: dict[str, object] = {"return_url": purchase.return_url, "allowed_payment_method_types": [kind]}
        return await self._pay_by(customer, method, purchase, how)

    async def kept(self, purchase: Purchase) -> Intent:
        """Make and confirm a PaymentIntent with what Stripe keeps, without the customer: by its own
        reference, or by that of a first payment with a card that was typed. Moves money.
        """
        kept = purchase.stored_reference or purchase.network_reference or ""
        customer, method, kind = [*kept.split("/"), "card"][:3]
        how: dict[str, object] = {"off_session": True, "allowed_payment_method_types": [kind]}
        if kind in DEBITS:
            # What it waits for is told of the charge.
            how["expand"] = ["latest_charge"]
        return await self._pay_by(customer, method, purchase, how)

    async def _pay_by(self, customer: str, method: str, purchase: Purchase, how: dict[str, object]) -> Intent:
        """Ask for the money by what Stripe keeps. Moves money.

        A method that was detached, or whose customer was deleted, is never taken again, which
        Stripe calls an invalid request: it is a decline, so that its customer is asked for another.
        Source: docs.stripe.com/api/payment_methods/detach, docs.stripe.com/api/customers/delete.
        """
        try:
            return await self._pay(purchase, how | {"customer": customer, "payment_method": method})
        except AcquirerRefused:
            if await self._is_gone(customer, method):
                raise Rejected(DeclineReason.DECLINED) from None
            raise

    async def _is_gone(self, customer: str, method: str) -> bool:
        """Whether Stripe surely does not keep a method with a customer any more. Moves no money.

        Another account, or the other side of this one, has no method of that name either: where
        there is none, its customer must be known, which deleted ones are.
        """
        try:
            kept = await self._calls.look(self._calls.v1.payment_methods.retrieve_async(method), Method)
            if kept is not None:
                return kept.customer != customer
            return await self._calls.look(self._calls.v1.customers.retrieve_async(customer), Named) is not None
        except OutcomeUnknown:
            return False

    async def _pay(self, purchase: Purchase, how: dict[str, object]) -> Intent:
        """Ask for the money, in one call, unless getting the card there took too long."""
        self._refuse_late(purchase)
        asked: dict[str, object] = {
            "amount": minor_units(purchase.amount, purchase.currency),
            "currency": purchase.currency.lower(),
            "capture_method": "automatic" if purchase.capture else "manual",
            "confirm": True,
            "metadata": metadata_of(purchase.key, purchase.not_after, purchase.mark),
            "allowed_payment_method_types": ["card"],
            **how,
        }
        if not purchase.capture:
            # How long it is held differs by card and kind of payment, and is told of the charge.
            # Source: docs.stripe.com/payments/place-a-hold-on-a-payment-method, `capture_before`.
            asked["expand"] = ["latest_charge"]
        if purchase.authenticate:
            asked |= ALWAYS_AUTHENTICATE
        options = {"idempotency_key": purchase.key}
        return await self._calls.ask(self._calls.v1.payment_intents.create_async(asked, options), Intent)

    async def check(self, purchase: Purchase) -> Intent:
        """Check a card without taking money, and keep it if asked to: a SetupIntent.
        Moves no money.
        """
        method = await self._payment_method(purchase)
        metadata = metadata_of(purchase.key, purchase.not_after, purchase.mark)
        asked: dict[str, object] = {"metadata": metadata, "allowed_payment_method_types": ["card"]}
        if purchase.authenticate:
            asked |= ALWAYS_AUTHENTICATE
        if purchase.keep_card:
            asked |= {"customer": await self._customer(purchase), "usage": "off_session"}
        self._refuse_late(purchase)
        service = self._calls.v1.setup_intents
        made = await self._calls.ask(service.create_async(asked, {"idempotency_key": purchase.key}), Named)
        how = {"payment_method": method, "return_url": purchase.return_url}
        options = {"idempotency_key": f"{purchase.key}:confirm"}
        return await self._calls.ask(service.confirm_async(made.id, how, options), Intent)

    def _refuse_late(self, purchase: Purchase) -> None:
        """Send no purchase after its time. Raises: Rejected."""
        if self._now() > purchase.not_after:
            raise Rejected(DeclineReason.TOO_LATE)

    async def _payment_method(self, purchase: Purchase) -> str:
        """Hand the card over and get Stripe's name for it."""
        card = purchase.card
        numbers = {"number": card.number, "exp_month": card.exp_month, "exp_year": card.exp_year}
        if card.cvc is not None:
            numbers["cvc"] = card.cvc
        address = {name: text for name, text in (("city", card.city), ("postal_code", card.postal_code)) if text}
        holder = {"name": card.holder} | ({"address": address} if address else {})
        asked = {"type": "card", "card": numbers, "billing_details": holder}
        options = {"idempotency_key": _own_key(purchase, "card")}
        call = self._calls.v1.payment_methods.create_async(asked, options)
        return (await self._calls.ask(call, Named, begins=False)).id

    async def _customer(self, purchase: Purchase) -> str:
        """A customer of Stripe's to keep the card with."""
        asked = {"name": purchase.card.holder, "metadata": {KEY: purchase.key}}
        options = {"idempotency_key": _own_key(purchase, "customer")}
        call = self._calls.v1.customers.create_async(asked, options)
        return (await self._calls.ask(call, Named, begins=False)).id


def _own_key(purchase: Purchase, what: str) -> str:
    """The key of what goes before a purchase and moves no money:
    an older purchase under its key had another card.
    """
    return f"{purchase.key}:{what}:{purchase.not_after.timestamp():.6f}"
