"""A bank of our own for test mode: it decides by card number, and keeps its own record
as a witness.
"""

from paydesk.adapters.acquirers.simulator.acquirer import SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.balance_record import Terms, parse_terms
from paydesk.adapters.acquirers.simulator.bank import Bank
from paydesk.adapters.acquirers.simulator.challenge import challenge_app
from paydesk.adapters.acquirers.simulator.notifying import Notifier
from paydesk.adapters.acquirers.simulator.record import Record
from paydesk.adapters.acquirers.simulator.remote import RemoteSimulator
from paydesk.adapters.acquirers.simulator.test_cards import TEST_CARDS, SampleCard

__all__ = [
    "TEST_CARDS",
    "Bank",
    "Notifier",
    "Record",
    "RemoteSimulator",
    "SampleCard",
    "SimulatedAcquirer",
    "Terms",
    "challenge_app",
    "parse_terms",
]
