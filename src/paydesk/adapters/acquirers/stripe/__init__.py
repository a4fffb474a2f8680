"""Stripe behind the acquirer interface, through its official library: live mode's acquirer."""

from paydesk.adapters.acquirers.stripe.acquirer import StripeAcquirer

__all__ = ["StripeAcquirer"]
