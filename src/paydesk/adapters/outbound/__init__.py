"""HTTP calls to addresses that merchants choose: bounded in time and size,
and never into private networks.
"""

from paydesk.adapters.outbound.addresses import AddressNotAllowed, Network, refusal
from paydesk.adapters.outbound.client import Answer, OutboundClient, parse_endpoint
from paydesk.adapters.outbound.kept import Bounds

__all__ = ["AddressNotAllowed", "Answer", "Bounds", "Network", "OutboundClient", "parse_endpoint", "refusal"]
