"""What stands in for Stripe answers nothing that Stripe's library does not declare: a planted field
is found, wherever it stands.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.standins.declared import undeclared

CARD = {"brand": "visa", "last4": "4242", "wallet": {"type": "apple_pay"}}
CHARGE = {"object": "charge", "id": "ch_1", "payment_method_details": {"type": "card", "card": CARD}}
INTENT = {"object": "payment_intent", "id": "pi_1", "metadata": {"any": "thing"}, "latest_charge": CHARGE}
SESSION = {"object": "checkout.session", "id": "cs_1", "automatic_tax": {"enabled": False}, "payment_intent": INTENT}
LIST = {"object": "list", "data": [SESSION], "has_more": False, "url": "/v1/checkout/sessions"}
ERROR = {"error": {"type": "card_error", "code": "card_declined", "message": "No.", "payment_intent": INTENT}}


def planted(place: tuple[Any, ...], said: Any = LIST) -> Any:
    """An answer with a field that nobody declares in one place."""
    if not place:
        return {**said, "made_up": 1}
    copied = list(said) if isinstance(said, list) else dict(said)
    copied[place[0]] = planted(place[1:], said[place[0]])
    return copied


@pytest.mark.parametrize("said", [LIST, ERROR, SESSION, {"id": "any", "object": "event", "data": {"object": SESSION}}])
def test_what_is_declared_is_right(said: Any) -> None:
    assert list(undeclared(said)) == []


@pytest.mark.parametrize(
    "place",
    [
        (),
        ("data", 0),
        ("data", 0, "automatic_tax"),
        ("data", 0, "payment_intent"),
        ("data", 0, "payment_intent", "latest_charge"),
        ("data", 0, "payment_intent", "latest_charge", "payment_method_details"),
        ("data", 0, "payment_intent", "latest_charge", "payment_method_details", "card"),
        ("data", 0, "payment_intent", "latest_charge", "payment_method_details", "card", "wallet"),
    ],
)
def test_a_field_that_is_made_up_is_found(place: tuple[Any, ...]) -> None:
    (found,) = undeclared(planted(place))
    assert found.endswith("made_up: not declared")


@pytest.mark.parametrize("place", [("error",), ("error", "payment_intent")])
def test_a_field_of_an_error_that_is_made_up_is_found(place: tuple[Any, ...]) -> None:
    assert len(list(undeclared(planted(place, ERROR)))) == 1
