"""What a card's issuer says of payments before it takes the money back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.adapters.acquirers.stripe.stub import NOON, Stub, intent, listed

from paydesk.adapters.acquirers.fraud_warnings import FraudWarning, fraud_warnings_of
from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.stripe import fraud_warnings as reading

WARNINGS = "/v1/radar/early_fraud_warnings"


def warning(name: str, payment: Any, **changes: Any) -> dict[str, Any]:
    return {
        "id": name,
        "object": "radar.early_fraud_warning",
        "actionable": True,
        "charge": "ch_1",
        "created": int(NOON.timestamp()),
        "fraud_type": "made_with_stolen_card",
        "payment_intent": payment,
    } | changes


async def test_those_of_our_payments_are_told_page_by_page(acquirer: StripeAcquirer, stub: Stub) -> None:
    ours, foreign = intent(), intent(metadata={})
    stub.will(
        "GET", WARNINGS, listed(warning("issfr_2", ours, actionable=False), warning("issfr_3", foreign), more=True)
    )
    stub.will("GET", WARNINGS, listed(warning("issfr_1", ours), warning("issfr_0", None)))
    told = await fraud_warnings_of(acquirer, NOON - timedelta(days=1))
    assert told == (
        FraudWarning("issfr_2", "one", "", "made_with_stolen_card", may_be_averted=False),
        FraudWarning("issfr_1", "one", "", "made_with_stolen_card", may_be_averted=True),
    )
    first, second = stub.to("GET", WARNINGS)
    assert first.params["created[gte]"] == str(int((NOON - timedelta(days=1)).timestamp()))
    assert second.params["starting_after"] == "issfr_3"


async def test_a_payment_of_somebody_else_that_makes_no_sense_hides_none_of_ours(
    acquirer: StripeAcquirer, stub: Stub
) -> None:
    odd = {"id": 5, "status": None, "amount": "much", "metadata": None}
    stub.will("GET", WARNINGS, listed(warning("issfr_2", odd), warning("issfr_1", intent())))
    assert [one.reference for one in await fraud_warnings_of(acquirer, NOON)] == ["issfr_1"]


async def test_a_look_reads_so_many_pages_and_the_newest_warnings(
    acquirer: StripeAcquirer, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_MOST_PAGES", 2)
    for name in ("issfr_3", "issfr_2", "issfr_1"):
        stub.will("GET", WARNINGS, listed(warning(name, intent()), more=True))
    assert [one.reference for one in await fraud_warnings_of(acquirer, NOON)] == ["issfr_3", "issfr_2"]
    assert len(stub.to("GET", WARNINGS)) == 2


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_key_that_may_not_read_them_is_refused(acquirer: StripeAcquirer, stub: Stub, status: int) -> None:
    stub.will("GET", WARNINGS, {"error": {"type": "invalid_request_error", "message": "no permission"}}, status)
    with pytest.raises(AcquirerRefused):
        await fraud_warnings_of(acquirer, NOON)


async def test_no_answer_is_unknown(acquirer: StripeAcquirer, stub: Stub) -> None:
    stub.will("GET", WARNINGS, {"error": {"type": "api_error", "message": "down"}}, 500)
    with pytest.raises(OutcomeUnknown):
        await fraud_warnings_of(acquirer, NOON)
