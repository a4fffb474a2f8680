"""What is held at Mollie: captured once, and let go of when Mollie does so."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from tests.adapters.acquirers.mollie.conftest import Till

from paydesk.adapters.acquirers.hosted_pages import PageState
from paydesk.adapters.acquirers.instruments import InstrumentKind
from paydesk.adapters.acquirers.interface import (
    AcquirerRefused,
    Approved,
    Captured,
    KeyUsed,
    Moved,
    NothingHeld,
    OutcomeUnknown,
    Refused,
    UnderWay,
    Voided,
)


async def held(till: Till) -> tuple[str, str]:
    """The key and the name of a payment whose money is held."""
    return await till.paid(capture=False)


def asked_for(till: Till, ending: str) -> int:
    """How often something was asked for under addresses that end so."""
    return sum(how == "POST" and path.endswith(ending) for how, path, _, _ in till.account.see()["asked"])


async def test_methods_that_hold_are_offered_alone_and_no_card_is_kept(till: Till) -> None:
    await till.acquirer.open_page(till.wanted(capture=False, keep_card=True))
    ((_, _, _, sent),) = till.account.see()["asked"]
    assert '"captureMode":"manual"' in sent
    assert '"method":["creditcard","mobilepay","vipps"]' in sent
    assert "customerId" not in sent


async def test_what_is_held_is_paid_and_says_until_when(till: Till) -> None:
    key, name = await held(till)
    page = await till.acquirer.find_page(key, name)
    until = till.clock.now + timedelta(days=7)
    assert (page.state, page.payment, page.hold_until) == (PageState.PAID, name, until)
    assert page.instrument is not None
    assert page.instrument.kind is InstrumentKind.CARD
    found = await till.restarted().find(key)
    assert isinstance(found, Approved)
    assert found.hold_until == until
    earlier = await till.restarted().look_back(key)
    assert earlier is not None
    assert not earlier.capture


async def test_it_is_captured_once_even_after_mollie_has_forgotten_the_key(till: Till) -> None:
    key, name = await held(till)
    till.account.do("set", loses=1)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.capture("take", name, Decimal(10), "EUR")
    till.pass_to(till.clock.now + timedelta(hours=3))
    assert await till.acquirer.find_movement("take", key, name) == Moved(name)
    await till.acquirer.capture("take", name, Decimal(10), "EUR")
    assert (asked_for(till, "/captures"), till.account.taken(key)) == (1, 10)


async def test_a_capture_that_is_not_decided_is_under_way_until_it_is(till: Till) -> None:
    key, name = await held(till)
    till.account.do("set", capture_status="pending")
    for _ in range(2):
        with pytest.raises(OutcomeUnknown, match="pending"):
            await till.acquirer.capture("take", name, Decimal(10), "EUR")
    assert await till.acquirer.find_movement("take", key, name) == UnderWay()
    (made,) = till.account.see()["captures"]
    till.account.do("decide_capture", made, "succeeded")
    assert await till.acquirer.find_movement("take", key, name) == Moved(name)
    assert (asked_for(till, "/captures"), till.account.taken(key)) == (1, 10)


async def test_a_capture_that_fails_is_refused_and_may_be_tried_under_another_key(till: Till) -> None:
    key, name = await held(till)
    till.account.do("set", capture_status="failed")
    with pytest.raises(AcquirerRefused, match="could not capture"):
        await till.acquirer.capture("take", name, Decimal(10), "EUR")
    assert isinstance(await till.acquirer.find_movement("take", key, name), Refused)
    till.account.do("set", capture_status="succeeded")
    await till.acquirer.capture("again", name, Decimal(10), "EUR")
    assert till.account.taken(key) == 10


async def test_the_key_of_another_capture_and_a_second_one_are_refused(till: Till) -> None:
    key, name = await held(till)
    await till.acquirer.capture("take", name, Decimal(4), "EUR")
    with pytest.raises(KeyUsed):
        await till.acquirer.capture("take", name, Decimal(5), "EUR")
    with pytest.raises(AcquirerRefused, match="nothing is held"):
        await till.acquirer.capture("more", name, Decimal(2), "EUR")
    assert till.account.taken(key) == 4


@pytest.mark.parametrize(("amount", "currency"), [("10.01", "EUR"), ("0", "EUR"), ("NaN", "EUR"), ("10", "USD")])
async def test_what_can_not_be_captured_is_refused(till: Till, amount: str, currency: str) -> None:
    key, name = await held(till)
    with pytest.raises(AcquirerRefused):
        await till.acquirer.capture("take", name, Decimal(amount), currency)
    assert (asked_for(till, "/captures"), till.account.taken(key)) == (0, 0)


async def test_what_is_none_of_ours_is_not_captured(till: Till) -> None:
    for name in ("tr_unknown", "nothing"):
        with pytest.raises(AcquirerRefused, match="no payment"):
            await till.acquirer.capture("take", name, Decimal(10), "EUR")


async def test_it_is_let_go_of_when_mollie_does_so_and_not_before(till: Till) -> None:
    key, name = await held(till)
    till.account.do("set", releases=False)
    for _ in range(2):
        assert await till.acquirer.void("let-go", key) == UnderWay()
    assert await till.acquirer.find_movement("let-go", key, name) == NothingHeld()
    till.account.do("let_go", name)
    assert await till.acquirer.void("let-go", key) == Voided()
    assert await till.restarted().find(key) == Voided()


async def test_what_was_captured_stays_and_the_rest_is_let_go_of(till: Till) -> None:
    key, name = await held(till)
    await till.acquirer.capture("take", name, Decimal(4), "EUR")
    assert till.account.see()["payments"][name]["status"] == "paid"
    assert await till.acquirer.void("let-go", key) == Captured(name, Decimal(4))
    await till.acquirer.refund("back", name, Decimal(4), "EUR")
    assert till.account.taken(key) == 0


async def test_a_rest_that_is_not_let_go_of_at_once_ends_by_itself(till: Till) -> None:
    key, name = await held(till)
    till.account.do("set", releases=False)
    await till.acquirer.capture("take", name, Decimal(4), "EUR")
    assert await till.acquirer.find_movement("take", key, name) == Moved(name)
    assert till.account.taken(key) == 4


async def test_what_must_not_be_is_let_go_of_or_given_back(till: Till) -> None:
    key, name = await held(till)
    till.account.do("set", releases=False)
    assert await till.acquirer.undo("undo", key) == UnderWay()
    till.account.do("let_go", name)
    assert await till.acquirer.undo("undo", key) == Voided()
    taken, other = await held(till)
    till.account.do("set", refund_status="refunded")
    await till.acquirer.capture("take", other, Decimal(10), "EUR")
    assert await till.acquirer.undo("undo it", taken) == Voided()
    assert till.account.taken(taken) == 0


async def test_a_hold_is_no_challenge_that_could_be_ended(till: Till) -> None:
    key, name = await held(till)
    assert await till.acquirer.end_challenge(key) == Approved(name)
    assert (await till.acquirer.end_page(key, name)).state is PageState.PAID
