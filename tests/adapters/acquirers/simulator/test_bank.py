"""What the simulated bank keeps beyond every acquirer's promises:
by its test cards, its record and its disputes.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.counters import TEN, approved
from tests.adapters.acquirers.counters import BankCounter as Counter

from paydesk.adapters.acquirers.disputes import Dispute, DisputePage, DisputeStatus, EvidenceFile, EvidenceKind
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Challenged,
    Declined,
    DeclineReason,
    KeyUsed,
    NothingHeld,
    Refused,
    Voided,
)
from paydesk.adapters.acquirers.purchases import CardDetails
from paydesk.adapters.acquirers.simulator.record import Kind

DISPUTED_CARD = "4000000000000259"


class TestDeciding:
    async def test_an_american_express_card_is_charged(self, counter: Counter) -> None:
        key, reference = await approved(counter, number="378282246310005")
        assert (await counter.standing(key)).net == TEN
        assert await counter.acquirer.find(key) == Approved(reference, f"network_{reference}")

    @pytest.mark.parametrize(
        ("number", "reason"),
        [
            ("4000000000000002", DeclineReason.DECLINED),
            ("4000000000009995", DeclineReason.INSUFFICIENT_FUNDS),
            ("4000000000000069", DeclineReason.EXPIRED_CARD),
            ("4000000000000127", DeclineReason.WRONG_CVC),
            ("4000000000000119", DeclineReason.PROCESSING_ERROR),
            ("4111111111111111", DeclineReason.DECLINED),
        ],
    )
    async def test_a_declined_card_is_not_charged(self, counter: Counter, number: str, reason: DeclineReason) -> None:
        purchase = counter.purchase(number)
        assert await counter.acquirer.authorize(purchase) == Declined(reason)
        assert await counter.acquirer.find(purchase.key) == Declined(reason)
        assert (await counter.standing(purchase.key)).net == 0

    async def test_3d_secure_may_be_asked_for_from_every_card(self, counter: Counter) -> None:
        asked = replace(counter.purchase("4242424242424242"), authenticate=True)
        assert isinstance(await counter.acquirer.authorize(asked), Challenged)
        assert isinstance(await counter.acquirer.end_challenge(asked.key), Voided)
        assert (await counter.standing(asked.key)).net == 0

    async def test_a_good_card_past_its_date_is_declined(self, counter: Counter) -> None:
        old = CardDetails("4242424242424242", 4, 2026, "Ada Lovelace", "123")
        assert await counter.acquirer.authorize(counter.purchase(card=old)) == Declined(DeclineReason.EXPIRED_CARD)
        good = replace(old, exp_month=5)
        assert isinstance(await counter.acquirer.authorize(counter.purchase(card=good)), Approved)


class TestRepeating:
    async def test_a_repeated_key_gets_the_first_answer_and_one_charge(self, counter: Counter) -> None:
        purchase = counter.purchase()
        answers = await asyncio.gather(*(counter.acquirer.authorize(purchase) for _ in range(20)))
        assert len(set(answers)) == 1
        assert [line.kind for line in counter.record.operations()] == [Kind.AUTHORIZE]

    async def test_equal_amounts_may_be_written_differently(self, counter: Counter) -> None:
        purchase = counter.purchase(amount="10.00")
        again = replace(purchase, amount=Decimal("10"))
        assert await counter.acquirer.authorize(purchase) == await counter.acquirer.authorize(again)

    @pytest.mark.parametrize(
        "change",
        [
            {"amount": Decimal("10.01")},
            {"currency": "EUR"},
            {"card": CardDetails("5555555555554444", 12, 2030, "Ada Lovelace", "123")},
            {"capture": False},
        ],
    )
    async def test_a_key_can_not_be_used_for_another_purchase(self, counter: Counter, change: dict[str, Any]) -> None:
        purchase = counter.purchase()
        first = await counter.acquirer.authorize(purchase)
        with pytest.raises(AcquirerRefused, match="another purchase"):
            await counter.acquirer.authorize(replace(purchase, **change))
        assert await counter.acquirer.find(purchase.key) == first
        assert [line.kind for line in counter.record.operations()] == [Kind.AUTHORIZE, Kind.REFUSE]

    async def test_the_key_of_a_capture_can_not_be_used_for_a_purchase(self, counter: Counter) -> None:
        _, reference = await approved(counter, capture=False)
        purchase = counter.purchase()
        await counter.acquirer.capture(purchase.key, reference, TEN, "USD")
        with pytest.raises(AcquirerRefused, match="used for a capture"):
            await counter.acquirer.authorize(purchase)


class TestComingTooLate:
    async def test_after_its_time_a_key_is_refused_for_good(self, counter: Counter) -> None:
        purchase = counter.purchase()
        counter.clock.now = purchase.not_after + timedelta(microseconds=1)
        assert await counter.acquirer.find(purchase.key) == NothingHeld()
        assert await counter.acquirer.authorize(purchase) == Declined(DeclineReason.TOO_LATE)
        assert await counter.acquirer.find(purchase.key) == Declined(DeclineReason.TOO_LATE)
        counter.clock.now -= timedelta(hours=1)
        assert await counter.acquirer.authorize(purchase) == Declined(DeclineReason.TOO_LATE)
        assert (await counter.standing(purchase.key)).net == 0

    async def test_a_key_voided_before_it_arrives_is_refused_for_good(self, counter: Counter) -> None:
        purchase = counter.purchase()
        assert await counter.acquirer.void("void", purchase.key) == NothingHeld()
        assert await counter.acquirer.void("void", purchase.key) == NothingHeld()
        assert await counter.acquirer.find(purchase.key) == NothingHeld()
        assert await counter.acquirer.authorize(purchase) == Declined(DeclineReason.TOO_LATE)
        assert await counter.acquirer.find(purchase.key) == Declined(DeclineReason.TOO_LATE)
        assert await counter.acquirer.void("void", purchase.key) == Declined(DeclineReason.TOO_LATE)
        assert (await counter.standing(purchase.key)).net == 0


class TestVoiding:
    async def test_the_key_of_a_void_stands_for_one_purchase(self, counter: Counter) -> None:
        first, _ = await approved(counter, capture=False)
        second, _ = await approved(counter, capture=False)
        await counter.acquirer.void("void", first)
        with pytest.raises(KeyUsed, match="another void"):
            await counter.acquirer.void("void", second)
        assert (await counter.standing(second)).held == TEN


class TestChargingStoredCards:
    @pytest.mark.parametrize("number", ["4242424242424242", "4000000000003220"])
    async def test_a_stored_card_is_charged_without_the_customer(self, counter: Counter, number: str) -> None:
        card = CardDetails(number, 12, 2030, "Ada Lovelace")
        purchase = counter.purchase(card=card, network_reference="network_1", return_url="")
        assert isinstance(await counter.acquirer.charge_stored(purchase), Approved)
        assert (await counter.standing(purchase.key)).net == TEN


class TestFailedRefunds:
    async def test_a_refund_that_failed_is_told_and_its_money_is_there_again(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        made = await counter.acquirer.refund("one", reference, Decimal(4), "USD")
        for _ in range(2):
            await counter.acquirer.fail_refund(made, "expired_or_canceled_card")
        page = await counter.acquirer.failed_refunds("")
        (failed,) = page.refunds
        assert (failed.reference, failed.key, failed.reason) == (made, "one", "expired_or_canceled_card")
        assert (failed.amount, failed.currency, failed.at) == (Decimal(4), "USD", counter.clock.now)
        assert (await counter.acquirer.failed_refunds(page.next)).refunds == ()
        assert (await counter.standing(key)).net == TEN
        await counter.acquirer.refund("two", reference, TEN, "USD")

    async def test_its_key_never_counts_as_made_again(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        made = await counter.acquirer.refund("one", reference, Decimal(4), "USD")
        await counter.acquirer.fail_refund(made, "unknown")
        assert isinstance(await counter.acquirer.find_movement("one", key, reference), Refused)
        with pytest.raises(AcquirerRefused, match="failed: unknown"):
            await counter.acquirer.refund("one", reference, Decimal(4), "USD")

    async def test_only_a_refund_fails(self, counter: Counter) -> None:
        _, reference = await approved(counter)
        with pytest.raises(AcquirerRefused, match="no refund"):
            await counter.acquirer.fail_refund(reference, "unknown")
        with pytest.raises(AcquirerRefused, match="cursor"):
            await counter.acquirer.failed_refunds("yesterday")


class TestFindingMovements:
    async def test_a_refusal_is_found_and_stays(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        with pytest.raises(AcquirerRefused, match="0 is left"):
            await counter.acquirer.refund("refund", reference, TEN, "USD")
        found = await counter.acquirer.find_movement("refund", key, reference)
        assert isinstance(found, Refused)
        assert "0 is left" in found.reason
        await counter.acquirer.capture("capture", reference, TEN, "USD")
        with pytest.raises(AcquirerRefused, match="0 is left"):
            await counter.acquirer.refund("refund", reference, TEN, "USD")
        assert (await counter.standing(key)).net == TEN

    async def test_a_void_of_nothing_is_found_as_refused(self, counter: Counter) -> None:
        purchase = counter.purchase("4000000000000002")
        await counter.acquirer.authorize(purchase)
        await counter.acquirer.void("void", purchase.key)
        found = await counter.acquirer.find_movement("void", purchase.key, "")
        assert isinstance(found, Refused)


async def disputed(counter: Counter, **changes: Any) -> tuple[str, str, Dispute]:
    key, reference = await approved(counter, number=DISPUTED_CARD, **changes)
    (dispute,) = (await counter.acquirer.disputes("")).disputes
    return key, reference, dispute


class TestDisputing:
    async def test_the_disputed_card_is_charged_back_as_soon_as_it_is_charged(self, counter: Counter) -> None:
        key, _, dispute = await disputed(counter)
        assert dispute == Dispute(
            dispute.reference,
            key,
            TEN,
            "USD",
            "fraudulent",
            DisputeStatus.OPEN,
            counter.clock.now,
            respond_by=counter.clock.now + timedelta(days=7),
        )
        assert ((await counter.standing(key)).net, (await counter.standing(key)).charged_back) == (0, TEN)
        assert isinstance(await counter.acquirer.find(key), Approved)

    async def test_or_as_soon_as_it_is_captured_and_over_what_was_captured(self, counter: Counter) -> None:
        key, reference = await approved(counter, number=DISPUTED_CARD, capture=False)
        assert await counter.acquirer.disputes("") == DisputePage((), "")
        for _ in range(2):
            await counter.acquirer.capture("capture", reference, Decimal(4), "USD")
        (dispute,) = (await counter.acquirer.disputes("")).disputes
        assert (dispute.of_key, dispute.amount) == (key, Decimal(4))

    async def test_a_stored_card_too(self, counter: Counter) -> None:
        stored = CardDetails(DISPUTED_CARD, 12, 2030, "Ada Lovelace")
        purchase = counter.purchase(card=stored, network_reference="network_1", return_url="")
        assert isinstance(await counter.acquirer.charge_stored(purchase), Approved)
        assert (await counter.standing(purchase.key)).charged_back == TEN

    async def test_a_checked_card_has_nothing_to_dispute(self, counter: Counter) -> None:
        await approved(counter, number=DISPUTED_CARD, amount="0", capture=False)
        assert (await counter.acquirer.disputes("")).disputes == ()

    async def test_a_cursor_gives_only_what_changed_since(self, counter: Counter) -> None:
        _, _, dispute = await disputed(counter)
        first = await counter.acquirer.disputes("")
        assert await counter.acquirer.disputes(first.next) == DisputePage((), first.next)
        counter.clock.now += timedelta(days=3)
        await counter.acquirer.close_dispute(dispute.reference, False)
        (closed,) = (await counter.acquirer.disputes(first.next)).disputes
        assert closed == replace(dispute, status=DisputeStatus.LOST, at=counter.clock.now, respond_by=None)

    async def test_a_dispute_that_is_asked_for_is_told_as_it_stands(self, counter: Counter) -> None:
        _, _, dispute = await disputed(counter)
        assert await counter.acquirer.find_dispute(dispute.reference) == replace(dispute, answered=False)
        counter.clock.now += timedelta(days=3)
        await counter.acquirer.close_dispute(dispute.reference, True)
        closed = await counter.acquirer.find_dispute(dispute.reference)
        assert closed == replace(
            dispute, status=DisputeStatus.WON, at=counter.clock.now, respond_by=None, answered=False
        )
        assert await counter.acquirer.find_dispute("dispute_of_nobody") is None

    async def test_pages_lead_through_all_disputes_in_order(self, counter: Counter) -> None:
        keys = [(await approved(counter, number=DISPUTED_CARD))[0] for _ in range(120)]
        seen, cursor = [], ""
        while (page := await counter.acquirer.disputes(cursor)).disputes:
            seen += [dispute.of_key for dispute in page.disputes]
            cursor = page.next
        assert seen == keys

    @pytest.mark.parametrize("cursor", ["x", "-1", "9" * 30, "1; drop table operation"])
    async def test_a_cursor_of_nobody_is_refused(self, counter: Counter, cursor: str) -> None:
        with pytest.raises(AcquirerRefused, match="cursor"):
            await counter.acquirer.disputes(cursor)

    async def test_a_dispute_covers_what_refunds_left(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        await counter.acquirer.refund("refund", reference, Decimal("3.50"), "USD")
        opened = await counter.acquirer.open_dispute(key, "product_not_received")
        assert await counter.acquirer.open_dispute(key, "again") == opened
        (dispute,) = (await counter.acquirer.disputes("")).disputes
        assert (dispute.amount, dispute.reason) == (Decimal("6.50"), "product_not_received")
        assert (await counter.standing(key)).net == 0

    async def test_what_is_not_captured_can_not_be_disputed(self, counter: Counter) -> None:
        held, _ = await approved(counter, capture=False)
        for key, why in ((held, "nothing"), ("never seen", "no purchase")):
            with pytest.raises(AcquirerRefused, match=why):
                await counter.acquirer.open_dispute(key, "fraudulent")

    @pytest.mark.parametrize("lost", [False, True])
    async def test_disputed_money_can_be_neither_refunded_nor_undone(self, counter: Counter, lost: bool) -> None:
        key, reference, dispute = await disputed(counter)
        if lost:
            await counter.acquirer.close_dispute(dispute.reference, False)
        with pytest.raises(AcquirerRefused, match=dispute.reference):
            await counter.acquirer.refund("refund", reference, Decimal(1), "USD")
        with pytest.raises(AcquirerRefused, match=dispute.reference):
            await counter.acquirer.undo("undo", key)
        assert (await counter.standing(key)).net == 0

    async def test_a_won_dispute_gives_the_money_back_and_it_can_be_refunded(self, counter: Counter) -> None:
        key, reference, dispute = await disputed(counter)
        for _ in range(2):
            await counter.acquirer.close_dispute(dispute.reference, True)
        assert ((await counter.standing(key)).net, (await counter.standing(key)).charged_back) == (TEN, 0)
        await counter.acquirer.refund("refund", reference, TEN, "USD")
        assert (await counter.standing(key)).net == 0

    @pytest.mark.parametrize("won", [True, False])
    async def test_the_end_of_a_dispute_is_final(self, counter: Counter, won: bool) -> None:
        _, _, dispute = await disputed(counter)
        await counter.acquirer.close_dispute(dispute.reference, won)
        with pytest.raises(AcquirerRefused, match="already"):
            await counter.acquirer.close_dispute(dispute.reference, not won)
        with pytest.raises(AcquirerRefused, match="too late"):
            await counter.acquirer.submit_evidence(dispute.reference, "a receipt", {})

    async def test_evidence_is_kept_for_the_bank(self, counter: Counter) -> None:
        _, _, dispute = await disputed(counter)
        for text in ("a receipt", "a receipt", "a signature"):
            await counter.acquirer.submit_evidence(dispute.reference, text, {})
        given = [line.result for line in counter.record.operations() if line.kind is Kind.EVIDENCE]
        assert given == ["a receipt", "a signature"]
        assert len((await counter.acquirer.disputes("")).disputes) == 1

    async def test_files_belong_to_the_evidence_that_names_them(self, counter: Counter) -> None:
        _, _, dispute = await disputed(counter)
        files = [
            EvidenceFile("one", EvidenceKind.RECEIPT, "application/pdf", b"%PDF"),
            EvidenceFile("two", EvidenceKind.OTHER, "image/png", b"png"),
        ]
        names = {file.kind: await counter.acquirer.upload_evidence(file) for file in files}
        assert {file.kind: await counter.acquirer.upload_evidence(file) for file in files} == names
        assert counter.record.evidence.of_dispute(dispute.reference) == []
        await counter.acquirer.submit_evidence(dispute.reference, "a receipt", names)
        given = counter.record.evidence.of_dispute(dispute.reference)
        assert [(one.kind, one.media_type, one.size) for one in given] == [
            ("other", "image/png", 3),
            ("receipt", "application/pdf", 4),
        ]

    async def test_what_is_no_file_of_evidence_is_refused(self, counter: Counter) -> None:
        _, _, dispute = await disputed(counter)
        large = EvidenceFile("one", EvidenceKind.RECEIPT, "application/pdf", bytes(6 * 1024**2))
        for file in (large, replace(large, content=b""), replace(large, media_type="text/html", content=b"<p>")):
            with pytest.raises(AcquirerRefused, match="a file is a PDF"):
                await counter.acquirer.upload_evidence(file)
        await counter.acquirer.upload_evidence(replace(large, content=b"%PDF"))
        with pytest.raises(AcquirerRefused, match="another file"):
            await counter.acquirer.upload_evidence(replace(large, content=b"%PDF-"))
        with pytest.raises(AcquirerRefused, match="no file"):
            await counter.acquirer.submit_evidence(dispute.reference, "a receipt", {EvidenceKind.RECEIPT: "file_x"})

    async def test_a_dispute_of_nobody_is_refused(self, counter: Counter) -> None:
        with pytest.raises(AcquirerRefused, match="no dispute"):
            await counter.acquirer.submit_evidence("dispute_unknown", "a receipt", {})
        with pytest.raises(AcquirerRefused, match="no dispute"):
            await counter.acquirer.close_dispute("dispute_unknown", True)

    async def test_of_a_refund_and_a_dispute_at_once_only_one_gets_the_money(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        await asyncio.gather(
            counter.acquirer.refund("refund", reference, TEN, "USD"),
            counter.acquirer.open_dispute(key, "fraudulent"),
            return_exceptions=True,
        )
        assert (await counter.standing(key)).net == 0
        assert (await counter.standing(key)).refunded + (await counter.standing(key)).charged_back == TEN


class TestListing:
    async def test_any_number_is_listed_page_by_page_and_nothing_before_the_time(self, counter: Counter) -> None:
        await approved(counter)
        counter.clock.now += timedelta(hours=1)
        since, keys = counter.clock.now, [(await approved(counter))[0] for _ in range(230)]
        listed: list[str] = []
        cursor, pages = "", 0
        while pages == 0 or cursor:
            page = await counter.acquirer.list_purchases(since, cursor)
            listed += [one.key for one in page.purchases]
            cursor, pages = page.next, pages + 1
        assert (listed, pages) == (keys, 3)

    async def test_a_check_of_a_card_moves_no_money_and_is_not_listed(self, counter: Counter) -> None:
        await approved(counter, amount="0", capture=False)
        assert (await counter.acquirer.list_purchases(counter.clock.now, "")).purchases == ()

    async def test_a_cursor_of_nobody_is_refused(self, counter: Counter) -> None:
        for ask in (counter.acquirer.list_purchases, counter.acquirer.list_refunds):
            with pytest.raises(AcquirerRefused, match="cursor"):
                await ask(counter.clock.now, "x")
