"""Mollie behind the acquirer interface, through its official library: customers pay on Mollie's
own page.
"""

from paydesk.adapters.acquirers.mollie.acquirer import MollieAcquirer

__all__ = ["MollieAcquirer"]
