"""What every acquirer must keep, whatever is behind it;
a further acquirer joins as one more `counter`.

The third counter is Stripe's adapter with localstripe behind it; where that falls short of Stripe
is listed in stripe/localstripe.py. What only the simulated bank can show is in
simulator/test_bank.py.
"""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from tests.adapters.acquirers.counters import TEN, Counter, approved, challenged, later_charge

from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Captured,
    Declined,
    DeclineReason,
    Moved,
    NothingHeld,
    OutcomeUnknown,
    Refused,
    Voided,
    is_earlier,
)
from paydesk.adapters.acquirers.listing import ListedPurchase, PurchaseState
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind

ZERO = Decimal(0)


class TestAuthorizing:
    @pytest.mark.parametrize("number", ["4242424242424242", "5555555555554444"])
    async def test_a_good_card_is_charged(self, counter: Counter, number: str) -> None:
        key, reference = await approved(counter, number=number)
        assert (await counter.standing(key)).net == TEN
        found = await counter.acquirer.find(key)
        assert isinstance(found, Approved)
        assert found.reference == reference

    async def test_a_declined_card_is_not_charged(self, counter: Counter) -> None:
        purchase = counter.purchase(counter.declined_card)
        assert await counter.acquirer.authorize(purchase) == Declined(DeclineReason.DECLINED)
        assert await counter.acquirer.find(purchase.key) == Declined(DeclineReason.DECLINED)
        assert (await counter.standing(purchase.key)).net == 0

    async def test_a_card_can_be_checked_without_taking_money(self, counter: Counter) -> None:
        key, _ = await approved(counter, amount="0", capture=False)
        assert ((await counter.standing(key)).net, (await counter.standing(key)).held) == (0, 0)

    async def test_a_lost_answer_is_unknown_and_found_later(self, counter: Counter) -> None:
        purchase = counter.purchase_losing_its_answer()
        with pytest.raises(OutcomeUnknown):
            await counter.acquirer.authorize(purchase)
        assert isinstance(await counter.acquirer.find(purchase.key), Approved)
        assert (await counter.standing(purchase.key)).net == TEN

    async def test_a_key_that_was_never_seen_is_not_found(self, counter: Counter) -> None:
        assert await counter.acquirer.find("never seen") == NothingHeld()

    async def test_looking_before_it_arrives_does_not_stop_a_purchase(self, counter: Counter) -> None:
        purchase = counter.purchase()
        assert await counter.acquirer.find(purchase.key, purchase.not_after) == NothingHeld()
        assert isinstance(await counter.acquirer.authorize(purchase), Approved)
        assert isinstance(await counter.acquirer.find(purchase.key, purchase.not_after), Approved)

    @pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity"])
    async def test_an_amount_that_is_none_is_refused(self, counter: Counter, amount: str) -> None:
        purchase = counter.purchase(amount=amount)
        with pytest.raises(AcquirerRefused, match="not a sum of money"):
            await counter.acquirer.authorize(purchase)
        assert await counter.acquirer.find(purchase.key) == NothingHeld()


class TestComingTooLate:
    async def test_after_its_time_a_key_takes_nothing(self, counter: Counter) -> None:
        purchase = counter.purchase()
        counter.clock.now = purchase.not_after + timedelta(microseconds=1)
        assert await counter.acquirer.authorize(purchase) == Declined(DeclineReason.TOO_LATE)
        assert await counter.acquirer.find(purchase.key) in {NothingHeld(), Declined(DeclineReason.TOO_LATE)}
        assert (await counter.standing(purchase.key)).net == 0

    async def test_a_key_decided_in_time_keeps_its_answer(self, counter: Counter) -> None:
        purchase = counter.purchase()
        first = await counter.acquirer.authorize(purchase)
        counter.clock.now = purchase.not_after + timedelta(hours=23)
        assert await counter.acquirer.authorize(purchase) == first

    async def test_voiding_what_never_arrived_finds_nothing(self, counter: Counter) -> None:
        assert await counter.acquirer.void("void", "never seen") == NothingHeld()
        assert await counter.acquirer.undo("undo", "never seen either") == NothingHeld()


class TestChallenging:
    async def test_nothing_is_taken_before_the_customer_approves(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        assert (await counter.standing(key)).net == 0
        assert await counter.acquirer.find(key) == challenge
        assert challenge.url.startswith(counter.acquirer.challenge_origins)

    async def test_an_approved_challenge_is_charged_once_and_returns(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        for _ in range(2):
            assert await counter.press(challenge.url, "approve") == (303, "http://shop.test/checkout/abc?x=1")
        assert isinstance(await counter.acquirer.find(key), Approved)
        assert (await counter.standing(key)).net == TEN

    async def test_an_approved_challenge_of_an_authorization_holds_and_is_captured(self, counter: Counter) -> None:
        key, challenge = await challenged(counter, capture=False)
        await counter.press(challenge.url, "approve")
        assert ((await counter.standing(key)).net, (await counter.standing(key)).held) == (0, TEN)
        found = await counter.acquirer.find(key)
        assert isinstance(found, Approved)
        await counter.acquirer.capture("capture", found.reference, TEN, "USD")
        assert (await counter.standing(key)).net == TEN

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
        assert (await counter.standing(key)).net == 0

    async def test_ending_a_challenge_leaves_an_approval_as_it_is(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        await counter.press(challenge.url, "approve")
        assert isinstance(await counter.acquirer.end_challenge(key), Approved)
        assert (await counter.standing(key)).net == TEN

    async def test_ending_an_unknown_challenge_finds_nothing(self, counter: Counter) -> None:
        assert await counter.acquirer.end_challenge("never seen") == NothingHeld()

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
            await counter.acquirer.authorize(counter.purchase("4000000000003220", return_url="javascript:alert(1)"))


class TestCapturing:
    async def test_an_authorization_holds_the_money_until_it_is_captured(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        assert ((await counter.standing(key)).net, (await counter.standing(key)).held) == (0, TEN)
        for _ in range(2):
            await counter.acquirer.capture("capture", reference, TEN, "USD")
        assert ((await counter.standing(key)).net, (await counter.standing(key)).held) == (TEN, 0)

    async def test_part_of_it_may_be_captured(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        await counter.acquirer.capture("capture", reference, Decimal("4.50"), "USD")
        assert ((await counter.standing(key)).net, (await counter.standing(key)).held) == (Decimal("4.50"), 0)

    @pytest.mark.parametrize(
        ("amount", "currency", "why"), [("10.01", "USD", "is held"), ("0", "USD", "above 0"), ("10", "EUR", "in USD")]
    )
    async def test_no_more_than_what_is_held_can_be_captured(
        self, counter: Counter, amount: str, currency: str, why: str
    ) -> None:
        key, reference = await approved(counter, capture=False)
        with pytest.raises(AcquirerRefused, match=why):
            await counter.acquirer.capture("capture", reference, Decimal(amount), currency)
        assert (await counter.standing(key)).held == TEN

    async def test_it_is_captured_once(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        await counter.acquirer.capture("capture", reference, Decimal(4), "USD")
        with pytest.raises(AcquirerRefused, match="nothing is left"):
            await counter.acquirer.capture("again", reference, Decimal(4), "USD")
        with pytest.raises(AcquirerRefused, match="used for another capture"):
            await counter.acquirer.capture("capture", reference, Decimal(5), "USD")
        assert (await counter.standing(key)).net == 4

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
    async def test_a_voided_authorization_holds_nothing(self, counter: Counter) -> None:
        key, _ = await approved(counter, capture=False)
        for void in ("void", "void", "another void"):
            assert await counter.acquirer.void(void, key) == Voided()
        assert await counter.acquirer.find(key) == Voided()
        assert ((await counter.standing(key)).net, (await counter.standing(key)).held) == (0, 0)

    async def test_captured_money_stays_where_it_is(self, counter: Counter) -> None:
        key, reference = await approved(counter, capture=False)
        await counter.acquirer.capture("capture", reference, TEN, "USD")
        for void in ("void", "void", "another void"):
            assert await counter.acquirer.void(void, key) == Captured(reference, TEN)
        assert isinstance(await counter.acquirer.find(key), Approved)
        assert await counter.acquirer.find_movement("void", key, reference) == NothingHeld()
        assert (await counter.standing(key)).net == TEN

    async def test_a_charge_stays_where_it_is_whatever_was_refunded(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        await counter.acquirer.refund("refund", reference, Decimal(4), "USD")
        assert await counter.acquirer.void("void", key) == Captured(reference, TEN)
        assert (await counter.standing(key)).net == 6

    async def test_a_declined_purchase_stays_declined(self, counter: Counter) -> None:
        purchase = counter.purchase(counter.declined_card)
        await counter.acquirer.authorize(purchase)
        assert await counter.acquirer.void("void", purchase.key) == Declined(DeclineReason.DECLINED)


class TestUndoing:
    @pytest.mark.parametrize("capture", [True, False])
    async def test_whatever_a_purchase_took_is_given_back(self, counter: Counter, capture: bool) -> None:
        key, _ = await approved(counter, capture=capture)
        for undo in ("undo", "undo", "another undo"):
            assert await counter.acquirer.undo(undo, key) == Voided()
        assert await counter.acquirer.find(key) == Voided()
        assert ((await counter.standing(key)).net, (await counter.standing(key)).held) == (0, 0)

    async def test_an_open_challenge_is_ended(self, counter: Counter) -> None:
        key, challenge = await challenged(counter)
        assert await counter.acquirer.undo("undo", key) == Voided()
        assert (await counter.press(challenge.url, "approve"))[0] == 409

    async def test_a_declined_purchase_stays_declined(self, counter: Counter) -> None:
        purchase = counter.purchase(counter.declined_card)
        await counter.acquirer.authorize(purchase)
        assert await counter.acquirer.undo("undo", purchase.key) == Declined(DeclineReason.DECLINED)

    async def test_a_refunded_charge_can_not_be_undone(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        await counter.acquirer.refund("refund", reference, Decimal(1), "USD")
        with pytest.raises(AcquirerRefused, match="refunded"):
            await counter.acquirer.undo("undo", key)
        assert (await counter.standing(key)).net == 9


class TestRefunding:
    async def test_a_charge_is_refunded_in_parts_up_to_all_of_it(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        first = await counter.acquirer.refund("one", reference, Decimal(4), "USD")
        assert await counter.acquirer.refund("one", reference, Decimal(4), "USD") == first
        assert await counter.acquirer.refund("two", reference, Decimal(6), "USD") != first
        assert (await counter.standing(key)).net == 0
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
        assert (await counter.standing(key)).net == 6


class TestChargingStoredCards:
    async def test_a_stored_card_is_charged_without_the_customer(self, counter: Counter) -> None:
        first = await counter.acquirer.authorize(counter.purchase(keep_card=True))
        later = later_charge(counter, "4242424242424242", first)
        assert isinstance(await counter.acquirer.charge_stored(later), Approved)
        assert (await counter.standing(later.key)).net == TEN

    async def test_a_card_that_was_only_checked_is_charged_later(self, counter: Counter) -> None:
        checked = counter.purchase(amount="0", capture=False, keep_card=True)
        later = later_charge(counter, "4242424242424242", await counter.acquirer.authorize(checked))
        assert isinstance(await counter.acquirer.charge_stored(later), Approved)
        assert ((await counter.standing(checked.key)).net, (await counter.standing(later.key)).net) == (0, TEN)

    async def test_one_card_approves_at_checkout_and_declines_later(self, counter: Counter) -> None:
        checked = counter.purchase("4000000000000341", amount="0", capture=False, keep_card=True)
        later = later_charge(counter, "4000000000000341", await counter.acquirer.authorize(checked))
        assert await counter.acquirer.charge_stored(later) == Declined(DeclineReason.DECLINED)
        assert (await counter.standing(later.key)).net == 0

    async def test_a_lost_answer_is_found_later(self, counter: Counter) -> None:
        first = await counter.acquirer.authorize(counter.purchase(keep_card=True))
        assert isinstance(first, Approved)
        purchase = counter.purchase_losing_its_answer(network_reference=first.network_reference)
        with pytest.raises(OutcomeUnknown):
            await counter.acquirer.charge_stored(purchase)
        assert isinstance(await counter.acquirer.find(purchase.key), Approved)
        assert (await counter.standing(purchase.key)).net == TEN

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
        assert await counter.acquirer.find_movement("never sent", key, reference) == NothingHeld()

    async def test_a_key_of_another_payments_movement_is_refused(self, counter: Counter) -> None:
        _, reference = await approved(counter)
        other, its_reference = await approved(counter)
        await counter.acquirer.refund("refund", reference, Decimal(1), "USD")
        found = await counter.acquirer.find_movement("refund", other, its_reference)
        assert isinstance(found, Refused | NothingHeld)


class TestListing:
    async def listed(self, counter: Counter, since: datetime) -> dict[str, ListedPurchase]:
        """All purchases since a time, by key."""
        found: dict[str, ListedPurchase] = {}
        cursor, is_over = "", False
        while not is_over:
            page = await counter.acquirer.list_purchases(since, cursor)
            found |= {purchase.key: purchase for purchase in page.purchases}
            cursor, is_over = page.next, not page.next
        return found

    async def test_each_purchase_is_listed_as_it_stands_now(self, counter: Counter) -> None:
        since = counter.clock.now - timedelta(hours=1)
        taken, reference = await approved(counter)
        held, _ = await approved(counter, capture=False)
        let_go, _ = await approved(counter, capture=False)
        await counter.acquirer.void("let go", let_go)
        refused = counter.purchase(counter.declined_card)
        await counter.acquirer.authorize(refused)
        await counter.acquirer.refund("back", reference, Decimal(4), "USD")
        found = await self.listed(counter, since)
        assert {key: (one.state, one.captured, one.refunded) for key, one in found.items()} == {
            taken: (PurchaseState.CAPTURED, TEN, Decimal(4)),
            held: (PurchaseState.AUTHORIZED, ZERO, ZERO),
            let_go: (PurchaseState.ENDED, ZERO, ZERO),
            refused.key: (PurchaseState.DECLINED, ZERO, ZERO),
        }
        assert {(one.amount, one.currency) for one in found.values()} == {(TEN, "USD")}
        assert found[taken].reference == reference

    async def test_it_carries_the_mark_that_says_whose_it_is(self, counter: Counter) -> None:
        mark = Mark("here", 1, "shop", False, PurchaseKind.ORDER, "A-1", payment_id=8, attempt=1)
        key, _ = await approved(counter, mark=mark)
        assert (await self.listed(counter, counter.clock.now - timedelta(hours=1)))[key].mark == mark

    async def test_a_refund_is_listed_with_its_key_and_its_purchase(self, counter: Counter) -> None:
        key, reference = await approved(counter)
        back = await counter.acquirer.refund("back", reference, Decimal(4), "USD", 4711)
        page = await counter.acquirer.list_refunds(counter.clock.now - timedelta(hours=1), "")
        (refund,) = page.refunds
        assert (refund.key, refund.reference, refund.of_reference) == ("back", back, reference)
        assert (refund.amount, refund.currency, refund.made, page.next) == (Decimal(4), "USD", True, "")
        assert (refund.of_key, refund.number) == (key, 4711)


class TestLookingBack:
    async def test_nothing_is_found_under_a_key_that_was_never_used(self, counter: Counter) -> None:
        assert await counter.acquirer.look_back("never seen") is None

    async def test_a_purchase_is_found_with_what_it_was_for(self, counter: Counter) -> None:
        mark = Mark("here", 1, "tag", live=False, kind=PurchaseKind.ORDER, order="order-1", payment_id=18, attempt=1)
        purchase = counter.purchase(mark=mark)
        assert isinstance(await counter.acquirer.authorize(purchase), Approved)
        earlier = await counter.acquirer.look_back(purchase.key)
        assert earlier is not None
        assert isinstance(earlier.finding, Approved)
        assert not is_earlier(earlier.finding, purchase.not_after)
        assert is_earlier(earlier.finding, purchase.not_after + timedelta(seconds=1))
        assert (earlier.amount, earlier.currency, earlier.capture, earlier.mark) == (TEN, "USD", True, mark)

    async def test_a_hold_is_told_from_a_charge(self, counter: Counter) -> None:
        purchase = counter.purchase(capture=False)
        await counter.acquirer.authorize(purchase)
        earlier = await counter.acquirer.look_back(purchase.key)
        assert earlier is not None
        assert not earlier.capture

    async def test_it_is_found_after_its_key_is_forgotten(self, counter: Counter) -> None:
        purchase = counter.purchase()
        await counter.acquirer.authorize(purchase)
        counter.clock.now += counter.acquirer.key_lifetime - timedelta(minutes=1)
        earlier = await counter.acquirer.look_back(purchase.key)
        assert earlier is not None
        assert isinstance(earlier.finding, Approved)
        assert counter.acquirer.key_lifetime >= timedelta(hours=24)
