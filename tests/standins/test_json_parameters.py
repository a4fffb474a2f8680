"""Planted errors, one of each kind, are found in a request to Mollie that is otherwise right."""

from __future__ import annotations

from typing import Any

import pytest
from mollie.models import PaymentRequestTypedDict
from tests.standins.json_parameters import checked, problems

from paydesk.adapters.acquirers.interface import OutcomeUnknown
from paydesk.adapters.acquirers.mollie.calls import Calls
from paydesk.adapters.acquirers.mollie.objects import Payment

RIGHT: dict[str, Any] = {
    "description": "A mug",
    "amount": {"currency": "EUR", "value": "10.00"},
    "redirect_url": "https://pay.example/result",
    "locale": "de_DE",
    "method": ["creditcard", "ideal"],
    "billing_address": {"email": "ada@example.com"},
    "digital_goods": True,
    "metadata": {"any": "thing"},
}


def test_a_right_request_is_right() -> None:
    assert list(problems(RIGHT, PaymentRequestTypedDict)) == []


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ({"redirectUrl": "https://pay.example"}, ["redirectUrl: no such parameter"]),
        ({"amount": {"currency": "EUR", "value": "10.00", "vat": "1"}}, ["amount.vat: no such parameter"]),
        ({"amount": {"currency": "EUR"}}, ["amount.value: missing"]),
        ({"locale": "de"}, ["locale: 'de' is not listed"]),
        ({"method": ["creditcard", "cash"]}, ["method[1]: 'cash' is not listed"]),
        ({"billing_address": "ada@example.com"}, ["billing_address: is no object"]),
        ({"digital_goods": 1}, ["digital_goods: 1 is no bool"]),
        ({"description": 7}, ["description: 7 is no str"]),
    ],
)
def test_a_planted_error_is_found(planted: dict[str, Any], found: list[str]) -> None:
    assert list(problems(RIGHT | planted, PaymentRequestTypedDict)) == found


def test_a_missing_name_is_found() -> None:
    short = {name: value for name, value in RIGHT.items() if name != "amount"}
    assert list(problems(short, PaymentRequestTypedDict)) == ["amount: missing"]


async def test_what_the_library_would_drop_is_seen_before_it_does() -> None:
    calls = Calls("test_x", "http://127.0.0.1:9", 1)
    with checked() as found, pytest.raises(OutcomeUnknown):
        await calls.ask(
            lambda: calls.sdk.payments.create_async(payment_request=RIGHT | {"dropped": "silently"}), Payment
        )
    assert found == ["payment_request.dropped: no such parameter"]
    await calls.close()
