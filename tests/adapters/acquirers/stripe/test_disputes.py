"""Disputes, which localstripe does not know."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, get_type_hints

import pytest
import stripe
from stripe.params import DisputeUpdateParamsEvidence
from stripe.params import _dispute_update_params as params
from tests.adapters.acquirers.stripe.stub import (
    INTENTS,
    KEY_REUSED,
    NOON,
    NOTHING,
    Stub,
    intent,
    listed,
)

from paydesk.adapters.acquirers.disputes import Dispute, DisputeStatus, EvidenceFile, EvidenceKind
from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.stripe.objects import metadata_of

DISPUTE = "/v1/disputes/du_1"
MARK = Mark("deployment", 1, "tag", live=True, kind=PurchaseKind.ORDER, order="A-1")
RECEIPT = EvidenceKind.RECEIPT
FILE = EvidenceFile("upload-key", RECEIPT, "application/pdf", b"%PDF-1.7")


def made(name: str) -> dict[str, Any]:
    """A file as Stripe answers it (docs.stripe.com/api/files/object)."""
    return {
        "id": name,
        "object": "file",
        "created": 1777896000,
        "expires_at": None,
        "filename": "receipt.pdf",
        "links": {"object": "list", "data": [], "has_more": False, "url": f"/v1/file_links?file={name}"},
        "purpose": "dispute_evidence",
        "size": 8,
        "title": None,
        "type": "pdf",
        "url": f"https://files.stripe.com/v1/files/{name}/contents",
    }


def dispute(status: str, **changes: Any) -> dict[str, Any]:
    made = {
        "id": "du_1",
        "object": "dispute",
        "amount": 1000,
        "currency": "usd",
        "reason": "fraudulent",
        "status": status,
        "payment_intent": "pi_1",
    }
    return made | changes


def event(name: str, status: str, **changes: Any) -> dict[str, Any]:
    return {"id": name, "object": "event", "created": 1777896000, "data": {"object": dispute(status, **changes)}}


def moved(amount: int, currency: str = "usd", rate: float | None = None) -> dict[str, Any]:
    """A balance transaction of a dispute, its fee beside the amount."""
    fee = 1500 if amount < 0 else 0
    return {"amount": amount, "fee": fee, "net": amount - fee, "currency": currency, "exchange_rate": rate}


class TestDisputes:
    OPENED = Dispute("du_1", "one", Decimal(10), "USD", "fraudulent", DisputeStatus.OPEN, NOON)

    async def test_a_dispute_is_told_as_it_stands_and_the_newest_event_is_the_cursor(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", "/v1/events", listed(event("evt_3", "needs_response"), more=True))
        stub.will("GET", "/v1/events", listed(event("evt_2", "lost"), event("evt_1", "needs_response")))
        stub.will("GET", DISPUTE, dispute("lost", balance_transactions=[moved(-1000)]))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        page = await acquirer.disputes("")
        (told,) = page.disputes
        assert (told.status, told.taken, told.returned) == (DisputeStatus.LOST, Decimal(10), Decimal(0))
        assert (told.reference, told.of_key, told.at) == ("du_1", "one", NOON)
        assert page.next == "evt_3"
        assert stub.to("GET", "/v1/events")[1].params["starting_after"] == "evt_3"

    @pytest.mark.parametrize(("mark", "merchant"), [(MARK, MARK.merchant), (None, "")])
    async def test_a_dispute_names_the_merchant_with_whom_its_purchase_is_marked(
        self, acquirer: StripeAcquirer, stub: Stub, mark: Mark | None, merchant: str
    ) -> None:
        stub.will("GET", DISPUTE, dispute("needs_response"))
        stub.will("GET", f"{INTENTS}/pi_1", intent(metadata=metadata_of("one", NOON, mark)))
        told = await acquirer.find_dispute("du_1")
        assert told is not None
        assert told.of_merchant == merchant

    async def test_an_event_is_believed_if_its_dispute_is_not_found_any_more(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        stub.will("GET", "/v1/events", listed(event("evt_1", "needs_response")))
        stub.will("GET", DISPUTE, {"error": {"type": "invalid_request_error", "message": "No such dispute"}}, 404)
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        assert (await acquirer.disputes("")).disputes == (self.OPENED,)

    async def test_a_cursor_asks_only_for_what_is_newer(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", "/v1/events", NOTHING)
        page = await acquirer.disputes("evt_3")
        assert (page.disputes, page.next) == ((), "evt_3")
        (sent,) = stub.asked
        assert sent.params["ending_before"] == "evt_3"
        assert "charge.dispute.created" in sent.params.values()
        assert "charge.dispute.funds_reinstated" in sent.params.values()

    async def test_a_cursor_that_stripe_forgot_reads_all_that_is_kept(
        self, acquirer: StripeAcquirer, stub: Stub
    ) -> None:
        told = {"error": {"type": "invalid_request_error", "code": "resource_missing", "message": "No such event"}}
        stub.will("GET", "/v1/events", told, 400)
        stub.will("GET", "/v1/events", listed(event("evt_9", "won")))
        stub.will("GET", DISPUTE, dispute("won"))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        page = await acquirer.disputes("evt_old")
        assert ([dispute.status for dispute in page.disputes], page.next) == (["won"], "evt_9")

    async def test_payments_of_others_are_passed_over(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will(
            "GET",
            "/v1/events",
            listed(
                event("evt_2", "needs_response", id="du_2", payment_intent="pi_2"),
                event("evt_1", "needs_response", id="du_3", payment_intent=None),
            ),
        )
        stub.will("GET", "/v1/events", listed(event("evt_4", "needs_response")))
        stub.will("GET", DISPUTE, dispute("needs_response"))
        stub.will("GET", "/v1/disputes/du_2", dispute("needs_response", id="du_2", payment_intent="pi_2"))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        stub.will("GET", f"{INTENTS}/pi_2", intent(id="pi_2", metadata={}))
        page = await acquirer.disputes("")
        assert (page.disputes, page.next) == ((self.OPENED,), "evt_4")
        assert stub.to("GET", "/v1/events")[1].params["ending_before"] == "evt_2"

    @pytest.mark.parametrize(
        ("word", "transactions", "status", "taken", "returned"),
        [
            ("warning_needs_response", [], DisputeStatus.INQUIRY, 0, 0),
            ("warning_under_review", [], DisputeStatus.INQUIRY, 0, 0),
            ("warning_closed", [], DisputeStatus.DROPPED, 0, 0),
            ("prevented", [], DisputeStatus.DROPPED, 0, 0),
            ("prevented", [moved(-1000)], DisputeStatus.LOST, 10, 0),
            ("needs_response", [moved(-1000)], DisputeStatus.OPEN, 10, 0),
            ("appeal_under_review", [moved(-1000)], DisputeStatus.OPEN, 10, 0),
            ("a_word_of_next_year", [moved(-1000)], DisputeStatus.OPEN, 10, 0),
            ("won", [moved(-1000)], DisputeStatus.WON, 10, 0),
            ("won", [moved(-1000), moved(1000)], DisputeStatus.WON, 10, 10),
            ("lost", [moved(-1000), moved(400)], DisputeStatus.LOST, 10, 4),
            ("needs_response", [moved(-1000), moved(1000), moved(-1000)], DisputeStatus.OPEN, 20, 10),
            ("lost", [moved(-880, "eur", 0.88), moved(344, "eur", 0.86)], DisputeStatus.LOST, 10, 4),
            ("needs_response", [moved(-881, "eur", 0.8808)], DisputeStatus.OPEN, 10, 0),
        ],
    )
    async def test_money_is_what_the_balance_says_and_a_status_is_stripes_word_in_ours(
        self, acquirer: StripeAcquirer, stub: Stub, word: str, transactions: list[Any], status: str, taken: int,
        returned: int,
    ) -> None:  # fmt: skip
        stub.will("GET", DISPUTE, dispute(word, balance_transactions=transactions))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        told = await acquirer.find_dispute("du_1")
        assert told is not None
        assert (str(told.status), told.taken, told.returned) == (status, Decimal(taken), Decimal(returned))

    @pytest.mark.parametrize(
        ("details", "respond_by", "answered"),
        [
            (None, None, None),
            ({"due_by": None, "submission_count": 1}, None, True),
            ({"due_by": 1793404800, "submission_count": 0}, datetime(2026, 10, 31, tzinfo=UTC), False),
        ],
    )
    async def test_until_when_evidence_is_taken_and_whether_it_was_given(
        self, acquirer: StripeAcquirer, stub: Stub, details: Any, respond_by: datetime | None, answered: bool | None
    ) -> None:
        stub.will("GET", DISPUTE, dispute("needs_response", evidence_details=details))
        stub.will("GET", f"{INTENTS}/pi_1", intent())
        told = await acquirer.find_dispute("du_1")
        assert told is not None
        assert (told.respond_by, told.answered) == (respond_by, answered)

    async def test_a_dispute_that_stripe_does_not_know_is_none(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("GET", DISPUTE, {"error": {"type": "invalid_request_error", "message": "No such dispute"}}, 404)
        assert await acquirer.find_dispute("du_1") is None
        assert await acquirer.find_dispute("../charges") is None
        assert len(stub.asked) == 1

    async def test_evidence_is_handed_in(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", "/v1/disputes/du_1", {"id": "du_1"})
        await acquirer.submit_evidence("du_1", "a receipt", {})
        (sent,) = stub.asked
        assert sent.params == {"evidence[uncategorized_text]": "a receipt", "submit": "true"}

    async def test_each_file_goes_into_the_field_it_belongs_to(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", "/v1/disputes/du_1", {"id": "du_1"})
        names = {kind: f"file_{number}" for number, kind in enumerate(EvidenceKind)}
        await acquirer.submit_evidence("du_1", "a receipt", names)
        (sent,) = stub.asked
        fields = {name[9:-1]: value for name, value in sent.params.items() if value.startswith("file_")}
        assert sorted(fields.values()) == sorted(names.values())
        known = get_type_hints(DisputeUpdateParamsEvidence, vars(params), include_extras=True)
        assert set(fields) < set(known), "Stripe's own library knows these fields"
        documented = inspect.getsource(DisputeUpdateParamsEvidence)
        for name in fields:
            assert re.search(rf'{name}: NotRequired\[str\]\s+"""\s+\(ID of a \[file upload\]', documented), name
        assert (fields["receipt"], fields["uncategorized_file"]) == (names[RECEIPT], names[EvidenceKind.OTHER])
        assert fields["shipping_documentation"] == names[EvidenceKind.DELIVERY]
        assert fields["customer_communication"] == names[EvidenceKind.MESSAGES]

    async def test_a_file_is_uploaded_as_stripe_documents_it(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        stub.will("POST", "/v1/files", made("file_1"))
        content = b"%PDF-1.7\r\n--x\r\n" + bytes(range(256))
        for _ in range(2):
            assert await acquirer.upload_evidence(replace(FILE, content=content)) == "file_1"
        for sent in stub.to("POST", "/v1/files"):
            assert sent.key == "upload-key", "it may be sent again"
            assert sent.params["purpose"] == "dispute_evidence"
            assert (sent.files["file"].name, sent.files["file"].content) == ("receipt.pdf", content)

    async def test_what_the_library_reads_of_a_file_is_what_the_stub_tells(self) -> None:
        assert made("file_1").keys() <= stripe.File.__annotations__.keys()

    @pytest.mark.parametrize(
        ("status", "said", "meant"),
        [
            (400, {"type": "invalid_request_error", "message": "File too large"}, AcquirerRefused),
            (400, KEY_REUSED["error"], AcquirerRefused),
            (500, {"type": "api_error", "message": "Sorry"}, OutcomeUnknown),
            (200, None, OutcomeUnknown),
        ],
    )
    async def test_a_file_that_is_not_taken_is_told_from_one_of_which_nobody_knows(
        self, acquirer: StripeAcquirer, stub: Stub, status: int, said: Any, meant: type[Exception]
    ) -> None:
        stub.will("POST", "/v1/files", said and {"error": said}, status)
        with pytest.raises(meant):
            await acquirer.upload_evidence(FILE)

    async def test_evidence_for_nothing_is_refused(self, acquirer: StripeAcquirer, stub: Stub) -> None:
        for reference in ("", "du_1/close"):
            with pytest.raises(AcquirerRefused, match="no dispute"):
                await acquirer.submit_evidence(reference, "a receipt", {})
        assert stub.asked == []
