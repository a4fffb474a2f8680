"""Paydesk for merchants: build the signed checkout form and verify pingbacks, with the standard library alone."""

from paydesk_client.gateway import Gateway
from paydesk_client.parameters import MalformedForm, Parameters, Value
from paydesk_client.payment_form import PaymentForm
from paydesk_client.pingback import InvalidPingback, Pingback
from paydesk_client.signature import Signature, UnknownSignatureVersion, Verification

__all__ = [
    "Gateway",
    "InvalidPingback",
    "MalformedForm",
    "Parameters",
    "PaymentForm",
    "Pingback",
    "Signature",
    "UnknownSignatureVersion",
    "Value",
    "Verification",
]
