"""Paydesk for merchants: signed checkout forms, pingbacks and calls of the API,
with the standard library alone.
"""

from paydesk_client.calls import ApiError
from paydesk_client.checkouts import Checkouts
from paydesk_client.deliveries import Deliveries
from paydesk_client.gateway import Gateway
from paydesk_client.parameters import MalformedForm, Parameters, Value
from paydesk_client.payment_form import PaymentForm
from paydesk_client.payments import Payments
from paydesk_client.pingback import InvalidPingback, Pingback
from paydesk_client.signature import Signature, UnknownSignatureVersion, Verification
from paydesk_client.subscriptions import Subscriptions

__all__ = [
    "ApiError",
    "Checkouts",
    "Deliveries",
    "Gateway",
    "InvalidPingback",
    "MalformedForm",
    "Parameters",
    "PaymentForm",
    "Payments",
    "Pingback",
    "Signature",
    "Subscriptions",
    "UnknownSignatureVersion",
    "Value",
    "Verification",
]
