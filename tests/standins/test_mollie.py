"""The stand-in for Mollie answers what Mollie's types declare, and keeps its documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from mollie.models import (
    CaptureResponseTypedDict,
    CustomerResponseTypedDict,
    EntityChargebackTypedDict,
    ErrorResponseData,
    ListLinksTypedDict,
    MandateResponseTypedDict,
    PaymentResponseTypedDict,
    RefundResponseTypedDict,
)
from tests.standins.account import Account, running
from tests.standins.json_parameters import as_given, problems

PAYMENT = {
    "amount": {"currency": "EUR", "value": "10.00"},
    "description": "A mug",
    "redirectUrl": "https://pay.example/result",
    "metadata": {"any": "thing"},
}


@pytest.fixture(scope="module")
def started() -> Iterator[Account]:
    with running("tests.standins.mollie") as account:
        yield account


@pytest.fixture
def account(started: Account) -> Account:
    started.do("forget")
    return started


def ask(account: Account, path: str, body: Any = None, key: str = "", method: str = "") -> Any:
    headers = {"Authorization": "Bearer test_x", "Content-Type": "application/json", "Idempotency-Key": key}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{account.base_url}/v2/{path}", data, headers, method=method or None)) as answer:
        return json.load(answer)


def wrong(answer: Any, shape: Any) -> list[str]:
    return list(problems(as_given(answer), shape))


def test_its_answers_have_declared_fields_only(account: Account) -> None:
    made = ask(account, "payments", PAYMENT)
    assert wrong(made, PaymentResponseTypedDict) == []
    account.do("pay", made["id"])
    refund = ask(account, f"payments/{made['id']}/refunds", {"amount": {"currency": "EUR", "value": "4.00"}})
    assert wrong(refund, RefundResponseTypedDict) == []
    chargeback = account.do("charge_back", made["id"], "6.00")
    found = ask(account, f"payments/{made['id']}/chargebacks/{chargeback}")
    assert wrong(found, EntityChargebackTypedDict) == []
    assert wrong(ask(account, f"payments/{made['id']}"), PaymentResponseTypedDict) == []
    listed = ask(account, "payments?limit=1")
    assert wrong(listed["_links"], ListLinksTypedDict) == []
    with pytest.raises(HTTPError) as refused:
        ask(account, "payments", {"amount": PAYMENT["amount"]})
    assert ErrorResponseData.model_validate_json(refused.value.read()).status == 422


def test_what_it_keeps_has_declared_fields_only(account: Account) -> None:
    customer = ask(account, "customers", {"email": "ada@example.com"})
    assert wrong(customer, CustomerResponseTypedDict) == []
    first = ask(account, "payments", PAYMENT | {"sequenceType": "first", "customerId": customer["id"]})
    account.do("pay", first["id"])
    paid = ask(account, f"payments/{first['id']}")
    assert wrong(paid, PaymentResponseTypedDict) == []
    mandate = ask(account, f"customers/{customer['id']}/mandates/{paid['mandateId']}")
    assert wrong(mandate, MandateResponseTypedDict) == []
    later = {"sequenceType": "recurring", "customerId": customer["id"], "mandateId": paid["mandateId"]}
    assert wrong(ask(account, "payments", PAYMENT | later), PaymentResponseTypedDict) == []


def test_what_it_holds_has_declared_fields_only(account: Account) -> None:
    made = ask(account, "payments", PAYMENT | {"captureMode": "manual"})
    account.do("pay", made["id"])
    held = ask(account, f"payments/{made['id']}")
    assert (held["status"], wrong(held, PaymentResponseTypedDict)) == ("authorized", [])
    part = {"amount": {"currency": "EUR", "value": "4.00"}, "metadata": {"a": "b"}}
    assert wrong(ask(account, f"payments/{made['id']}/captures", part), CaptureResponseTypedDict) == []
    listed = ask(account, f"payments/{made['id']}/captures")["_embedded"]["captures"]
    assert [one["amount"]["value"] for one in listed] == ["4.00"]
    account.do("let_go", made["id"])
    assert ask(account, f"payments/{made['id']}")["status"] == "paid"


def test_a_key_gets_the_first_answer_for_an_hour_whatever_is_asked(account: Account) -> None:
    begun = datetime(2026, 5, 4, 12, tzinfo=UTC)
    account.do("set", time=begun.isoformat())
    first = ask(account, "payments", PAYMENT, key="one")
    assert ask(account, "payments", PAYMENT | {"description": "Two mugs"}, key="one") == first
    account.do("set", time=(begun + timedelta(hours=1)).isoformat())
    assert ask(account, "payments", PAYMENT, key="one")["id"] != first["id"]


def test_a_list_goes_on_where_its_link_says(account: Account) -> None:
    made = [ask(account, "payments", PAYMENT)["id"] for _ in range(3)]
    first = ask(account, "payments?limit=2")
    following = ask(account, first["_links"]["next"]["href"].partition("/v2/")[2])
    names = [one["id"] for part in (first, following) for one in part["_embedded"]["payments"]]
    assert names == made[::-1]
    assert following["_links"]["next"] is None


def test_a_payment_expires_and_most_cant_be_canceled(account: Account) -> None:
    account.do("set", time="2026-05-04T12:00:00+00:00")
    made = ask(account, "payments", PAYMENT)
    assert made["isCancelable"] is False
    with pytest.raises(HTTPError):
        ask(account, f"payments/{made['id']}", method="DELETE")
    account.do("set", time="2026-05-04T12:15:00+00:00")
    assert ask(account, f"payments/{made['id']}")["status"] == "expired"
    assert not account.do("pay", made["id"])
