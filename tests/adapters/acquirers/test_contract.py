"""What every acquirer must keep, whatever is behind it; a further acquirer joins as one more `counter`."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    CardDetails,
    Challenged,
    Declined,
    DeclineReason,
    Dispute,
    DisputePage,
    DisputeStatus,
    Moved,
    NotFound,
    OutcomeUnknown,
    Refused,
    Voided,
)
from paydesk.adapters.acquirers.simulator.record import Kind

CHALLENGED_CARD = "4000000000003220"
DISPUTED_CARD = "4000000000000259"
LOST_ANSWER_CARD = "4000000000009987"
TEN = Decimal("10.00")

Counter = Any


async def approved(counter: Counter, **changes: Any) -> tuple[str, str]:
    purchase = counter.purchase(**changes)
    outcome = await counter.acquirer.authorize(purchase)
    assert isinstance(outcome, Approved)
    return purchase.key, outcome.reference


async def challenged(counter: Counter, **changes: Any) -> tuple[str, Challenged]:
    purchase = counter.purchase(CHALLENGED_CARD, **changes)
    outcome = await counter.acquirer.authorize(purchase)
    assert isinstance(outcome, Challenged)
    return purchase.key, outcome


class TestAuthorizing:
    @pytest.mark.parametrize("number", ["4242424242424242", "5555555555554444", "378282246310005"])
    async def test_a_good_card_is_charged(self, counter: Counter, number: str) -> None:
        key, reference = await approved(counter, number=number)
        assert counter.standing(key).net == TEN
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
        assert counter.standing(purchase.key).net == 0

    async def test_a_good_card_past_its_date_is_declined(self, counter: Counter) -> None:
        old = CardDetails("4242424242424242", 4, 2026, "Ada Lovelace", "123")
        assert await counter.acquirer.authorize(counter.purchase(card=old)) == Declined(DeclineReason.EXPIRED_CARD)
        good = replace(old, exp_month=5)
        assert isinstance(await counter.acquirer.authorize(counter.purchase(card=good)), Approved)

    async def test_a_card_can_be_checked_without_taking_money(self, counter: Counter) -> None:
        key, _ = await approved(counter, amount="0", capture=False)
        assert (counter.standing(key).net, counter.standing(key).held) == (0, 0)

    async def test_a_lost_answer_is_unknown_and_found_later(self, counter: Counter) -> None:
        purchase = counter.purchase(LOST_ANSWER_CARD)
        with pytest.raises(OutcomeUnknown):
            await counter.acquirer.authorize(purchase)
        assert isinstance(await counter.acquirer.find(purchase.key), Approved)
        assert counter.standing(purchase.key).net == TEN

    async def test_a_key_that_was_never_seen_is_not_found(self, counter: Counter) -> None:
        assert await counter.acquirer.find("never seen") == NotFound()

    @pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity"])
    async def test_an_amount_that_is_none_is_refused(self, counter: Counter, amount: str) -> None:
        purchase = counter.purchase(amount=amount)
        with pytest.raises(AcquirerRefused, match="not a sum of money"):
            await counter.acquirer.authorize(purchase)
        assert await counter.acquirer.find(purchase.key) == NotFound()


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
        assert await counter.acquirer.find(purchase.key) == NotFound()
        assert await counter.acquirer.authorize(purchase) == Declined(DeclineReason.TOO_LATE)
        assert await counter.acquirer.find(purchase.key) == Declined(DeclineReason.TOO_LATE)
        counter.clock.now -= timedelta(hours=1)
        assert await counter.acquirer.authorize(purchase) == Declined(DeclineReason.TOO_LATE)
        assert counter.standing(purchase.key).net == 0

    async def test_a_key_decided_in_time_keeps_its_answer(self, counter: Counter) -> None:
        purchase = counter.purchase()
        first = await counter.acquirer.authorize(purchase)
        counter.clock.now = purchase.not_after + timedelta(days=1)
        assert await counter.acquirer.authorize(purchase) == first

    async def test_a_key_voided_before_it_arrives_is_refused_for_good(self, counter: Counter) -> None:
        purchase = counter.purchase()
        assert await counter.acquirer.void("void", purchase.key) == NotFound()
        assert await counter.acquirer.void("void", purchase.key) == NotFound()
        assert await counter.acquirer.find(purchase.key) == NotFound()
        assert await counter.acquirer.authorize(purchase) == Declined(DeclineReason.TOO_LATE)
        assert await counter.acquirer.find(purchase.key) == Declined(DeclineReason.TOO_LATE)
        assert await counter.acquirer.void("void", purchase.key) == Declined(DeclineReason.TOO_LATE)
        assert counter.standing(purchase.key).net == 0


class TestChallenging:
    async def test_nothing_is_taken_before_the_customer_approves(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        assert counter.standing(key).net == 0
        assert await counter.acquirer.find(key) == challenge
        assert challenge.url.startswith(counter.acquirer.challenge_origins[0])

    async def test_an_approved_challenge_is_charged_once_and_returns(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        for _ in range(2):
            assert await counter.press(challenge.url, "approve") == (303, "http://shop.test/checkout/abc?x=1")
        assert isinstance(await counter.acquirer.find(key), Approved)
        assert counter.standing(key).net == TEN

    async def test_an_approved_challenge_of_an_authorization_holds_and_is_captured(self, counter: Counter) -> None:
        key, challenge = await challenged(counter, capture=False)
        await counter.press(challenge.url, "approve")
        assert (counter.standing(key).net, counter.standing(key).held) == (0, TEN)
        found = await counter.acquirer.find(key)
        assert isinstance(found, Approved)
        await counter.acquirer.capture("capture", found.reference, TEN, "USD")
        assert counter.standing(key).net == TEN

    async def test_a_rejected_challenge_is_declined(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        assert (await counter.press(challenge.url, "reject"))[0] == 303
        assert await counter.acquirer.find(key) == Declined(DeclineReason.AUTHENTICATION_FAILED)

    async def test_a_closed_page_returns_and_leaves_the_challenge_open(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        assert await counter.press(challenge.url, "close") == (303, "http://shop.test/checkout/abc?x=1")
        assert await counter.acquirer.find(key) == challenge

    async def test_an_ended_challenge_can_not_be_approved(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        assert await counter.acquirer.end_challenge(key) == Voided()
        assert (await counter.press(challenge.url, "approve"))[0] == 409
        assert await counter.acquirer.find(key) == Voided()
        assert await counter.acquirer.end_challenge(key) == Voided()
        assert counter.standing(key).net == 0

    async def test_ending_a_challenge_leaves_an_approval_as_it_is(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        await counter.press(challenge.url, "approve")
        assert isinstance(await counter.acquirer.end_challenge(key), Approved)
        assert counter.standing(key).net == TEN

    async def test_ending_an_unknown_challenge_finds_nothing(self, counter: Counter) -> None:
        assert await counter.acquirer.end_challenge("never seen") == NotFound()

    async def test_voiding_ends_an_open_challenge(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        assert await counter.acquirer.void("void", key) == Voided()
        assert (await counter.press(challenge.url, "approve"))[0] == 409

    async def test_a_decision_after_another_changes_nothing(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        await counter.press(challenge.url, "reject")
        assert (await counter.press(challenge.url, "approve"))[0] == 409
        assert await counter.acquirer.find(key) == Declined(DeclineReason.AUTHENTICATION_FAILED)

    async def test_a_challenge_needs_a_way_back(self, counter: Counter) -> None:
        with pytest.raises(AcquirerRefused, match="return_url"):
            await counter.acquirer.authorize(counter.purchase(CHALLENGED_CARD, return_url="javascript:alert(1)"))


class TestCapturing:
    async def test_an_authorization_holds_the_money_until_it_is_captured(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        assert (counter.standing(key).net, counter.standing(key).held) == (0, TEN)
        for _ in range(2):
            await counter.acquirer.capture("capture", reference, TEN, "USD")
        assert (counter.standing(key).net, counter.standing(key).held) == (TEN, 0)

    async def test_part_of_it_may_be_captured(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        await counter.acquirer.capture("capture", reference, Decimal("4.50"), "USD")
        assert (counter.standing(key).net, counter.standing(key).held) == (Decimal("4.50"), 0)

    @pytest.mark.parametrize(
        ("amount", "currency", "why"), [("10.01", "USD", "is held"), ("0", "USD", "above 0"), ("10", "EUR", "in USD")]
    )
    async def test_no_more_than_what_is_held_can_be_captured(
        self, counter: Counter, amount: str, currency: str, why: str
    ) -> None:
        key, reference = await approved(counter, capture=False)
        with pytest.raises(AcquirerRefused, match=why):
            await counter.acquirer.capture("capture", reference, Decimal(amount), currency)
        assert counter.standing(key).held == TEN

    async def test_it_is_captured_once(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        await counter.acquirer.capture("capture", reference, Decimal(4), "USD")
        with pytest.raises(AcquirerRefused, match="nothing is left"):
            await counter.acquirer.capture("again", reference, Decimal(4), "USD")
        with pytest.raises(AcquirerRefused, match="used for another capture"):
            await counter.acquirer.capture("capture", reference, Decimal(5), "USD")
        assert counter.standing(key).net == 4

    async def test_a_voided_authorization_can_not_be_captured(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        assert await counter.acquirer.void("void", key) == Voided()
        with pytest.raises(AcquirerRefused, match="nothing is held"):
            await counter.acquirer.capture("capture", reference, TEN, "USD")

    async def test_an_unknown_reference_is_refused(self, counter: Counter) -> None:
        for reference in ("payment_unknown", ""):
            with pytest.raises(AcquirerRefused, match="no payment of this reference"):
                await counter.acquirer.capture("capture", reference, TEN, "USD")


class TestVoiding:
    async def test_a_voided_charge_takes_nothing(self, counter: Counter) -> None:
        key, _ = await approved(counter)
        for void in ("void", "void", "another void"):
            assert await counter.acquirer.void(void, key) == Voided()
        assert await counter.acquirer.find(key) == Voided()
        assert (counter.standing(key).net, counter.standing(key).held) == (0, 0)

    async def test_a_declined_purchase_stays_declined(self, counter: Counter) -> None:
        purchase = counter.purchase("4000000000000002")
        await counter.acquirer.authorize(purchase)
        assert await counter.acquirer.void("void", purchase.key) == Declined(DeclineReason.DECLINED)

    async def test_a_refunded_charge_can_not_be_voided(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        await counter.acquirer.refund("refund", reference, Decimal(1), "USD")
        with pytest.raises(AcquirerRefused, match="refunded"):
            await counter.acquirer.void("void", key)
        assert counter.standing(key).net == 9

    async def test_the_key_of_a_void_stands_for_one_purchase(self, counter: Counter) -> None:
        first, _ = await approved(counter)
        second, _ = await approved(counter)
        await counter.acquirer.void("void", first)
        with pytest.raises(AcquirerRefused, match="another void"):
            await counter.acquirer.void("void", second)
        assert counter.standing(second).net == TEN


class TestRefunding:
    async def test_a_charge_is_refunded_in_parts_up_to_all_of_it(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        first = await counter.acquirer.refund("one", reference, Decimal(4), "USD")
        assert await counter.acquirer.refund("one", reference, Decimal(4), "USD") == first
        assert await counter.acquirer.refund("two", reference, Decimal(6), "USD") != first
        assert counter.standing(key).net == 0
        with pytest.raises(AcquirerRefused, match="0 is left"):
            await counter.acquirer.refund("three", reference, Decimal("0.01"), "USD")
        assert isinstance(await counter.acquirer.find(key), Approved)

    async def test_what_is_only_held_can_not_be_refunded(self, counter: Counter) -> None:
        _, reference = await approved(counter, capture=False)
        with pytest.raises(AcquirerRefused, match="0 is left"):
            await counter.acquirer.refund("refund", reference, TEN, "USD")

    async def test_a_refunds_key_stands_for_one_amount(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        await counter.acquirer.refund("refund", reference, Decimal(4), "USD")
        with pytest.raises(AcquirerRefused, match="another refund"):
            await counter.acquirer.refund("refund", reference, Decimal(5), "USD")
        assert counter.standing(key).net == 6


class TestChargingStoredCards:
    @pytest.mark.parametrize("number", ["4242424242424242", "4000000000003220"])
    async def test_a_stored_card_is_charged_without_the_customer(self, counter: Counter, number: str) -> None:
        card = CardDetails(number, 12, 2030, "Ada Lovelace")
        purchase = counter.purchase(card=card, network_reference="network_1", return_url="")
        assert isinstance(await counter.acquirer.charge_stored(purchase), Approved)
        assert counter.standing(purchase.key).net == TEN

    async def test_one_card_approves_at_checkout_and_declines_later(self, counter: Counter) -> None:
        first = await counter.acquirer.authorize(counter.purchase("4000000000000341"))
        assert isinstance(first, Approved)
        later = counter.purchase("4000000000000341", network_reference=first.network_reference)
        assert await counter.acquirer.charge_stored(later) == Declined(DeclineReason.DECLINED)

    async def test_a_lost_answer_is_found_later(self, counter: Counter) -> None:
        purchase = counter.purchase(LOST_ANSWER_CARD, network_reference="network_1")
        with pytest.raises(OutcomeUnknown):
            await counter.acquirer.charge_stored(purchase)
        assert isinstance(await counter.acquirer.find(purchase.key), Approved)

    async def test_the_first_payment_must_be_named(self, counter: Counter) -> None:
        with pytest.raises(AcquirerRefused, match="first payment"):
            await counter.acquirer.charge_stored(counter.purchase())


class TestFindingMovements:
    async def test_a_capture_a_refund_and_a_void_are_found_by_their_keys(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        await counter.acquirer.capture("capture", reference, TEN, "USD")
        refund = await counter.acquirer.refund("refund", reference, Decimal(4), "USD")
        assert isinstance(await counter.acquirer.find_movement("capture", key, reference), Moved)
        assert await counter.acquirer.find_movement("refund", key, reference) == Moved(refund)
        other, its_reference = await approved(counter, capture=False)
        await counter.acquirer.void("void", other)
        assert isinstance(await counter.acquirer.find_movement("void", other, its_reference), Moved)

    async def test_what_was_never_asked_for_is_not_found(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        assert await counter.acquirer.find_movement("never sent", key, reference) == NotFound()

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
        assert counter.standing(key).net == TEN

    async def test_a_void_of_nothing_is_found_as_refused(self, counter: Counter) -> None:
        purchase = counter.purchase("4000000000000002")
        await counter.acquirer.authorize(purchase)
        await counter.acquirer.void("void", purchase.key)
        found = await counter.acquirer.find_movement("void", purchase.key, "")
        assert isinstance(found, Refused)

    async def test_a_key_of_another_payments_movement_is_refused(self, counter: Counter) -> None:
        _, reference = await approved(counter)
        other, its_reference = await approved(counter)
        await counter.acquirer.refund("refund", reference, Decimal(1), "USD")
        assert isinstance(await counter.acquirer.find_movement("refund", other, its_reference), Refused)


async def disputed(counter: Counter, **changes: Any) -> tuple[str, str, Dispute]:
    key, reference = await approved(counter, number=DISPUTED_CARD, **changes)
    (dispute,) = (await counter.acquirer.disputes("")).disputes
    return key, reference, dispute


class TestDisputing:
    async def test_the_disputed_card_is_charged_back_as_soon_as_it_is_charged(self, counter: Counter) -> None:
        key, _, dispute = await disputed(counter)
        assert dispute == Dispute(
            dispute.reference, key, TEN, "USD", "fraudulent", DisputeStatus.OPEN, counter.clock.now
        )
        assert (counter.standing(key).net, counter.standing(key).charged_back) == (0, TEN)
        assert isinstance(await counter.acquirer.find(key), Approved)

    async def test_or_as_soon_as_it_is_captured_and_over_what_was_captured(self, counter: Counter) -> None:
        key, reference = await approved(counter, number=DISPUTED_CARD, capture=False)
        assert await counter.acquirer.disputes("") == DisputePage((), "")
        for _ in range(2):
            await counter.acquirer.capture("capture", reference, Decimal(4), "USD")
        (dispute,) = (await counter.acquirer.disputes("")).disputes
        assert (dispute.of_key, dispute.amount) == (key, 4)

    async def test_a_stored_card_too(self, counter: Counter) -> None:
        stored = CardDetails(DISPUTED_CARD, 12, 2030, "Ada Lovelace")
        purchase = counter.purchase(card=stored, network_reference="network_1", return_url="")
        assert isinstance(await counter.acquirer.charge_stored(purchase), Approved)
        assert counter.standing(purchase.key).charged_back == TEN

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
        assert closed == replace(dispute, status=DisputeStatus.LOST, at=counter.clock.now)

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
        assert counter.standing(key).net == 0

    async def test_what_is_not_captured_can_not_be_disputed(self, counter: Counter) -> None:
        held, _ = await approved(counter, capture=False)
        for key, why in ((held, "nothing"), ("never seen", "no purchase")):
            with pytest.raises(AcquirerRefused, match=why):
                await counter.acquirer.open_dispute(key, "fraudulent")

    @pytest.mark.parametrize("lost", [False, True])
    async def test_disputed_money_can_be_neither_refunded_nor_voided(self, counter: Counter, lost: bool) -> None:
        key, reference, dispute = await disputed(counter)
        if lost:
            await counter.acquirer.close_dispute(dispute.reference, False)
        with pytest.raises(AcquirerRefused, match=dispute.reference):
            await counter.acquirer.refund("refund", reference, Decimal(1), "USD")
        with pytest.raises(AcquirerRefused, match=dispute.reference):
            await counter.acquirer.void("void", key)
        assert counter.standing(key).net == 0

    async def test_a_won_dispute_gives_the_money_back_and_it_can_be_refunded(self, counter: Counter) -> None:
        key, reference, dispute = await disputed(counter)
        for _ in range(2):
            await counter.acquirer.close_dispute(dispute.reference, True)
        assert (counter.standing(key).net, counter.standing(key).charged_back) == (TEN, 0)
        await counter.acquirer.refund("refund", reference, TEN, "USD")
        assert counter.standing(key).net == 0

    @pytest.mark.parametrize("won", [True, False])
    async def test_the_end_of_a_dispute_is_final(self, counter: Counter, won: bool) -> None:
        _, _, dispute = await disputed(counter)
        await counter.acquirer.close_dispute(dispute.reference, won)
        with pytest.raises(AcquirerRefused, match="already"):
            await counter.acquirer.close_dispute(dispute.reference, not won)
        with pytest.raises(AcquirerRefused, match="too late"):
            await counter.acquirer.submit_evidence(dispute.reference, "a receipt")

    async def test_evidence_is_kept_for_the_bank(self, counter: Counter) -> None:
        _, _, dispute = await disputed(counter)
        for text in ("a receipt", "a receipt", "a signature"):
            await counter.acquirer.submit_evidence(dispute.reference, text)
        given = [line.result for line in counter.record.operations() if line.kind is Kind.EVIDENCE]
        assert given == ["a receipt", "a signature"]
        assert len((await counter.acquirer.disputes("")).disputes) == 1

    async def test_a_dispute_of_nobody_is_refused(self, counter: Counter) -> None:
        with pytest.raises(AcquirerRefused, match="no dispute"):
            await counter.acquirer.submit_evidence("dispute_unknown", "a receipt")
        with pytest.raises(AcquirerRefused, match="no dispute"):
            await counter.acquirer.close_dispute("dispute_unknown", True)

    async def test_of_a_refund_and_a_dispute_at_once_only_one_gets_the_money(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        await asyncio.gather(
            counter.acquirer.refund("refund", reference, TEN, "USD"),
            counter.acquirer.open_dispute(key, "fraudulent"),
            return_exceptions=True,
        )
        assert counter.standing(key).net == 0
        assert counter.standing(key).refunded + counter.standing(key).charged_back == TEN
