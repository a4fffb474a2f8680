"""A merchant's server, and a sender of pingbacks, as the tests of pingbacks have them."""

from tests.domain.pingbacks.conftest import make_sender, outbound, receiver, sender

__all__ = ["make_sender", "outbound", "receiver", "sender"]
