"""What every acquirer that hosts a page must keep, whatever is behind it.

The simulated bank, in this process and in one of its own, and the adapters of Stripe and Mollie
with stand-ins of ours behind them (`tests/standins`), written from the documents of both. Whether
these do what they say is not proven here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pytest
from tests.adapters.acquirers.conftest import Street
from tests.adapters.acquirers.counters import BankClock
from tests.standings import standings
from tests.standins.account import Account
from tests.standins.stripe_checkout import StripeCheckout, running

from paydesk.adapters.acquirers.hosted_pages import ListedPage, Page, PageRequest, PageState
from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.interface import (
    Acquirer,
    AcquirerRefused,
    Approved,
    Captured,
    Declined,
    DeclineReason,
    KeyUsed,
    NoSuchPage,
    OutcomeUnknown,
    Pending,
    Voided,
)
from paydesk.adapters.acquirers.letting_go import release_kept
from paydesk.adapters.acquirers.listing import PurchaseState
from paydesk.adapters.acquirers.marks import Mark, PurchaseKind
from paydesk.adapters.acquirers.mollie import MollieAcquirer
from paydesk.adapters.acquirers.purchases import CardDetails, Purchase
from paydesk.adapters.acquirers.simulator import Bank, Record, RemoteSimulator, SimulatedAcquirer
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.adapters.acquirers.simulator.server import bank_app
from paydesk.adapters.acquirers.stripe import StripeAcquirer
from paydesk.adapters.acquirers.stripe.objects import DEBITS
from paydesk.adapters.acquirers.stripe.sessions import AT_ONCE, SLOW
from paydesk.adapters.acquirers.wrapping import PassingAcquirer

VISA = {"type": "card", "card": {"brand": "visa", "last4": "4242", "wallet": None, "exp_month": 12, "exp_year": 2031}}
IN_WALLET = {"type": "card", "card": {"brand": "mastercard", "last4": "4444", "wallet": {"type": "apple_pay"}}}
IDEAL = {"type": "ideal", "ideal": {"bank": "ing"}}
SEPA = {"type": "sepa_debit", "sepa_debit": {"last4": "3000"}}


@dataclass
class Window:
    """An acquirer that hosts pages, and what its customers do on them."""

    acquirer: Acquirer
    clock: BankClock
    keys: int = 0

    def wanted(self, **changes: Any) -> PageRequest:
        self.keys += 1
        asked: dict[str, Any] = {
            "key": f"key-{self.keys}",
            "amount": Decimal("10.00"),
            "currency": "EUR",
            "order": "A-1",
            "shop": "A shop",
            "description": "A mug",
            "email": "ada@example.com",
            "language": "de-CH",
            "return_url": "https://pay.example/checkout/abc/result",
            "expires_at": self.clock.now + timedelta(hours=1),
            "asked_at": self.clock.now,
        }
        return PageRequest(**(asked | changes))

    def pay(self, reference: str) -> bool:
        """Pay with a Visa card; whether the page took it."""
        raise AssertionError("nobody can pay at this window")

    def go_to_bank(self, reference: str) -> None:
        """Let the page come to where it can't be ended."""
        raise AssertionError("nobody can go to the bank from this window")

    async def kept(self, **changes: Any) -> Instrument:
        """What the customer of a page has left to be charged again."""
        wanted = self.wanted(keep=True, **changes)
        opened = await self.acquirer.open_page(wanted)
        assert self.pay(opened.reference)
        instrument = (await self.acquirer.find_page(wanted.key, opened.reference)).instrument
        assert instrument is not None
        return instrument

    def charge(self, reference: str, **changes: Any) -> Purchase:
        """A later charge of what is kept under a reference."""
        asked: dict[str, Any] = {
            "key": f"charge-{self.keys}",
            "amount": Decimal(7),
            "currency": "EUR",
            "card": CardDetails("", 0, 0, ""),
            "capture": True,
            "not_after": self.clock.now + timedelta(minutes=1),
            "stored_reference": reference,
        }
        return Purchase(**(asked | changes))

    def let_end(self, reference: str) -> None:
        """Let the page be one that can be ended, where most can't."""

    def pass_to(self, now: datetime) -> None:
        """Let time go by, here and there."""
        self.clock.now = now

    def taken(self, key: str) -> Decimal:
        raise AssertionError("nobody can look behind this window")


@dataclass
class SimulatorsWindow(Window):
    bank: Bank | None = None

    def pay(self, reference: str) -> bool:
        assert self.bank is not None
        before = self.bank.pages.show(reference)
        after = self.bank.pages.pay(reference, Way.CARD, "4242424242424242")
        assert before is not None
        assert after is not None
        return before.state is PageState.OPEN and after.state is PageState.PAID

    def go_to_bank(self, reference: str) -> None:
        assert self.bank is not None
        self.bank.pages.pay(reference, Way.BANK, "")

    def taken(self, key: str) -> Decimal:
        assert self.bank is not None
        found = standings(self.bank.record.operations()).get(key)
        return found.net if found else Decimal(0)


@dataclass
class StripesWindow(Window):
    standin: StripeCheckout | None = None

    def pay(self, reference: str) -> bool:
        assert self.standin is not None
        return self.standin.pay(reference, VISA)

    def go_to_bank(self, reference: str) -> None:
        assert self.standin is not None
        self.standin.stuck.add(reference)

    def taken(self, key: str) -> Decimal:
        assert self.standin is not None
        return Decimal(self.standin.taken(key)).scaleb(-2)


@dataclass
class MolliesWindow(Window):
    account: Account = field(kw_only=True)

    def wanted(self, **changes: Any) -> PageRequest:
        """A page that Mollie lets live as long as it is asked for, which it would not do for us."""
        wanted = super().wanted(**changes)
        self.account.do("set", life=(wanted.expires_at - self.clock.now).total_seconds())
        return wanted

    def pay(self, reference: str) -> bool:
        return bool(self.account.do("pay", reference))

    def go_to_bank(self, reference: str) -> None:
        """There is nothing to do: open payments can't be canceled."""

    def let_end(self, reference: str) -> None:
        self.account.do("set", cancelable=reference)

    def pass_to(self, now: datetime) -> None:
        super().pass_to(now)
        self.account.do("set", time=now.isoformat())

    def taken(self, key: str) -> Decimal:
        return Decimal(str(self.account.taken(key)))


@pytest.fixture
async def standin(clock: BankClock) -> AsyncIterator[StripeCheckout]:
    async with running(clock) as started:
        yield started
        assert started.wrong == [], "what is sent is what the library's types allow"


@pytest.fixture
async def stripes(standin: StripeCheckout, clock: BankClock) -> AsyncIterator[StripesWindow]:
    stripe = StripeAcquirer("sk_test_standin", api_base=standin.base_url, timeout=60, now=clock, hosts_pages=True)
    yield StripesWindow(stripe, clock, standin=standin)
    await stripe.close()


@pytest.fixture(params=["in process", "remote", "stripe", "mollie"])
async def window(
    request: pytest.FixtureRequest, street: Street, record: Record, clock: BankClock
) -> AsyncIterator[Window]:
    if request.param == "mollie":
        account = request.getfixturevalue("mollie_account")
        account.do("set", refund_status="refunded")
        mollie = MollieAcquirer("test_x", api_base=account.base_url, timeout=60, now=clock)
        yield MolliesWindow(mollie, clock, account=account)
        await mollie.close()
        return
    if request.param == "stripe":
        async with running(clock) as started:
            stripe = StripeAcquirer("sk_test_x", api_base=started.base_url, timeout=60, now=clock, hosts_pages=True)
            yield StripesWindow(stripe, clock, standin=started)
            await stripe.close()
            assert started.wrong == [], "what is sent is what the library's types allow"
        return
    bank = Bank(record, now=clock)
    inside = SimulatedAcquirer(bank, base_url=street.base_url)
    street.bank = bank_app(inside)
    acquirer = inside if request.param == "in process" else RemoteSimulator(street.base_url)
    yield SimulatorsWindow(acquirer, clock, bank=bank)
    await acquirer.close()
    await inside.close()


class TestOpening:
    async def test_a_page_is_open_at_an_origin_that_browsers_are_told_of(self, window: Window) -> None:
        wanted = window.wanted()
        page = await window.acquirer.open_page(wanted)
        assert (page.state, page.key, page.amount, page.currency) == (PageState.OPEN, wanted.key, Decimal(10), "EUR")
        assert page.url.startswith(window.acquirer.challenge_origins)
        assert window.acquirer.capabilities.pages
        assert window.taken(wanted.key) == 0

    async def test_the_same_request_gets_the_same_page(self, window: Window) -> None:
        wanted = window.wanted()
        first = await window.acquirer.open_page(wanted)
        window.pass_to(window.clock.now + timedelta(minutes=20))
        assert await window.acquirer.open_page(wanted) == first

    @pytest.mark.parametrize(
        "change", [{"amount": Decimal(9)}, {"email": "other@example.com"}], ids=["amount", "email"]
    )
    async def test_another_request_under_its_key_is_refused(self, window: Window, change: dict[str, Any]) -> None:
        wanted = window.wanted()
        await window.acquirer.open_page(wanted)
        with pytest.raises(KeyUsed):
            await window.acquirer.open_page(replace(wanted, **change))

    @pytest.mark.parametrize("left", [timedelta(minutes=5), timedelta(days=2)], ids=["too short", "too long"])
    async def test_a_page_of_another_length_is_refused(self, window: Window, left: timedelta) -> None:
        with pytest.raises(AcquirerRefused):
            await window.acquirer.open_page(window.wanted(expires_at=window.clock.now + left))


class TestPaying:
    async def test_a_paid_page_names_its_payment_and_what_it_was_paid_with(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        assert window.pay(opened.reference)
        page = await window.acquirer.find_page(wanted.key, opened.reference)
        assert (page.state, page.key, page.amount, page.currency) == (PageState.PAID, wanted.key, Decimal(10), "EUR")
        assert page.instrument == Instrument(InstrumentKind.CARD, "visa", "4242")
        assert window.taken(wanted.key) == 10

    async def test_its_payment_is_refunded_and_found_as_any_other(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        window.pay(opened.reference)
        page = await window.acquirer.find_page(wanted.key, opened.reference)
        found = await window.acquirer.find(wanted.key)
        assert isinstance(found, Approved)
        assert found.reference == page.payment
        await window.acquirer.refund("back", page.payment, Decimal(4), "EUR")
        assert window.taken(wanted.key) == 6

    async def test_it_is_paid_once(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        assert window.pay(opened.reference)
        assert not window.pay(opened.reference)
        assert window.taken(wanted.key) == 10

    async def test_one_that_must_not_be_is_undone_in_full(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        window.pay(opened.reference)
        for _ in range(2):
            assert await window.acquirer.undo(f"{wanted.key}:void", wanted.key) == Voided()
        assert window.taken(wanted.key) == 0


class TestHolding:
    """Every acquirer here holds money (`hold_period`)."""

    async def held(self, window: Window) -> tuple[PageRequest, Page]:
        """A page whose money is only to be held, and that is paid."""
        wanted = window.wanted(capture=False)
        opened = await window.acquirer.open_page(wanted)
        assert window.pay(opened.reference)
        return wanted, await window.acquirer.find_page(wanted.key, opened.reference)

    async def test_its_money_is_held_and_not_taken(self, window: Window) -> None:
        wanted, page = await self.held(window)
        assert page.state is PageState.PAID
        assert window.taken(wanted.key) == 0
        assert page.hold_until is not None
        assert abs(page.hold_until - window.clock.now - timedelta(days=7)) < timedelta(seconds=1)

    async def test_the_end_of_the_hold_is_found_again_by_key_and_in_the_list(self, window: Window) -> None:
        wanted, page = await self.held(window)
        found = await window.acquirer.find(wanted.key)
        listed = await window.acquirer.list_purchases(window.clock.now - timedelta(hours=1), "")
        assert isinstance(found, Approved)
        assert (found.reference, found.hold_until) == (page.payment, page.hold_until)
        assert [(one.state, one.hold_until) for one in listed.purchases] == [
            (PurchaseState.AUTHORIZED, page.hold_until)
        ]

    async def test_a_part_of_it_is_captured(self, window: Window) -> None:
        wanted, page = await self.held(window)
        for _ in range(2):
            await window.acquirer.capture("take", page.payment, Decimal(6), "EUR")
        again = await window.acquirer.find_page(wanted.key, page.reference)
        assert window.taken(wanted.key) == 6
        assert (again.state, again.hold_until) == (PageState.PAID, None)
        assert await window.acquirer.void("let-go", wanted.key) == Captured(page.payment, Decimal(6))

    async def test_it_is_let_go_of(self, window: Window) -> None:
        wanted, page = await self.held(window)
        for _ in range(2):
            assert await window.acquirer.void("let-go", wanted.key) == Voided()
        assert (await window.acquirer.end_page(wanted.key, page.reference)).state is PageState.ENDED
        with pytest.raises(AcquirerRefused):
            await window.acquirer.capture("take", page.payment, Decimal(10), "EUR")
        assert window.taken(wanted.key) == 0

    async def test_a_page_that_takes_and_one_that_holds_are_not_the_same(self, window: Window) -> None:
        wanted = window.wanted(capture=False)
        await window.acquirer.open_page(wanted)
        with pytest.raises(KeyUsed):
            await window.acquirer.open_page(replace(wanted, capture=True))


class TestEnding:
    async def test_an_ended_page_takes_nothing(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        window.let_end(opened.reference)
        for _ in range(2):
            assert (await window.acquirer.end_page(wanted.key, opened.reference)).state is PageState.ENDED
        assert not window.pay(opened.reference)

    async def test_a_paid_page_stays_paid(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        window.pay(opened.reference)
        assert (await window.acquirer.end_page(wanted.key, opened.reference)).state is PageState.PAID
        assert window.taken(wanted.key) == 10

    async def test_one_that_cant_be_ended_says_so(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        window.go_to_bank(opened.reference)
        assert (await window.acquirer.end_page(wanted.key, opened.reference)).state is PageState.OPEN

    async def test_its_time_ends_it(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        window.pass_to(wanted.expires_at + timedelta(seconds=1))
        assert (await window.acquirer.find_page(wanted.key, opened.reference)).state is PageState.ENDED
        assert not window.pay(opened.reference)

    async def test_a_page_that_is_none_is_said_to_be_none(self, window: Window) -> None:
        for ask in (window.acquirer.find_page, window.acquirer.end_page):
            with pytest.raises(NoSuchPage):
                await ask("key", "cs_none")


class TestKeeping:
    """Where an acquirer keeps what was paid with (`capabilities.stored`)."""

    async def test_what_was_paid_with_is_kept_and_charged_again(self, window: Window) -> None:
        kept = await window.kept()
        assert window.taken("key-1") == 10
        assert (kept.kind, kept.brand, kept.last4, kept.exp_month) == (InstrumentKind.CARD, "visa", "4242", 12)
        assert kept.reference
        charge = window.charge(kept.reference)
        first = await window.acquirer.charge_stored(charge)
        assert isinstance(first, Approved)
        assert await window.acquirer.charge_stored(charge) == first
        assert window.taken(charge.key) == 7
        found = await window.acquirer.find(charge.key)
        assert isinstance(found, Approved)
        assert found.reference == first.reference

    async def test_it_is_kept_for_nothing_at_all(self, window: Window) -> None:
        kept = await window.kept(amount=Decimal(0))
        assert window.taken("key-1") == 0
        assert kept.last4 == "4242"
        charge = window.charge(kept.reference)
        assert isinstance(await window.acquirer.charge_stored(charge), Approved)
        assert window.taken(charge.key) == 7

    async def test_a_page_that_only_keeps_is_asked_for_again_and_says_what_it_is_for(self, window: Window) -> None:
        wanted = window.wanted(keep=True, amount=Decimal(0), currency="USD")
        first = await window.acquirer.open_page(wanted)
        assert await window.acquirer.open_page(wanted) == first
        assert (first.state, first.key, first.amount, first.currency) == (PageState.OPEN, wanted.key, Decimal(0), "USD")

    async def test_nothing_is_kept_unless_asked_for(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        assert window.pay(opened.reference)
        instrument = (await window.acquirer.find_page(wanted.key, opened.reference)).instrument
        assert instrument is not None
        assert instrument.reference == ""

    async def test_what_is_not_kept_takes_nothing(self, window: Window) -> None:
        charge = window.charge("kept_elsewhere")
        with suppress(AcquirerRefused):
            assert isinstance(await window.acquirer.charge_stored(charge), Declined)
        assert window.taken(charge.key) == 0

    async def test_the_key_of_a_charge_is_for_one_instrument(self, window: Window) -> None:
        first, other = await window.kept(), await window.kept()
        charge = window.charge(first.reference)
        await window.acquirer.charge_stored(charge)
        with pytest.raises(KeyUsed):
            await window.acquirer.charge_stored(replace(charge, stored_reference=other.reference))
        assert window.taken(charge.key) == 7

    async def test_a_page_without_an_amount_is_for_keeping_alone(self, window: Window) -> None:
        with pytest.raises(AcquirerRefused):
            await window.acquirer.open_page(window.wanted(amount=Decimal(0)))

    async def test_keeping_that_must_not_be_is_undone(self, window: Window) -> None:
        await window.kept(amount=Decimal(0))
        assert await window.acquirer.undo("key-1:void", "key-1") == Voided()
        assert await window.acquirer.find("key-1") == Voided()


class TestLettingGo:
    """What an acquirer keeps is let go of where its customer wants that."""

    async def test_it_is_charged_never_again_however_often_it_is_told(self, window: Window) -> None:
        kept, other = await window.kept(), await window.kept()
        for _ in range(2):
            await release_kept(PassingAcquirer(window.acquirer), kept.reference)
        gone, left = window.charge(kept.reference), window.charge(other.reference, key="another")
        with suppress(AcquirerRefused):
            assert isinstance(await window.acquirer.charge_stored(gone), Declined)
        assert isinstance(await window.acquirer.charge_stored(left), Approved)
        assert window.taken(gone.key) == 0
        assert window.taken(left.key) == 7

    @pytest.mark.parametrize("is_undone_first", [True, False])
    @pytest.mark.parametrize("amount", [Decimal(10), Decimal(0)], ids=["paid", "kept for nothing"])
    async def test_what_a_page_kept_that_must_not_be_goes_before_or_after_it_is_undone(
        self, window: Window, amount: Decimal, is_undone_first: bool
    ) -> None:
        kept = await window.kept(amount=amount)
        if is_undone_first:
            assert await window.acquirer.undo("key-1:void", "key-1") == Voided()
        await release_kept(window.acquirer, kept.reference)
        assert await window.acquirer.undo("key-1:void", "key-1") == Voided()
        assert await window.acquirer.find("key-1") == Voided()
        charge = window.charge(kept.reference)
        with suppress(AcquirerRefused):
            assert isinstance(await window.acquirer.charge_stored(charge), Declined)
        assert window.taken("key-1") == 0
        assert window.taken(charge.key) == 0

    @pytest.mark.parametrize("reference", ["", "of another", "cus_9/pm_9", "cst_9/mdt_9"])
    async def test_what_it_does_not_keep_needs_nothing(self, window: Window, reference: str) -> None:
        await release_kept(window.acquirer, reference)


async def listed(window: Window, since: timedelta = timedelta(hours=25)) -> dict[str, ListedPage]:
    """All pages of the acquirer's list, by key."""
    found, after, is_over = dict[str, ListedPage](), "", False
    while not is_over:
        part = await window.acquirer.list_pages(window.clock.now - since, after)
        found |= {one.page.key: one for one in part.pages}
        after, is_over = part.next, not part.next
    return found


class TestListing:
    async def test_open_and_paid_pages_are_listed_with_their_marks_and_ended_ones_are_not(self, window: Window) -> None:
        mark = Mark("deployment", 3, "merchant", live=True, kind=PurchaseKind.ORDER, order="A-1", payment_id=7)
        wanted = [window.wanted(mark=mark) for _ in range(4)]
        opened = [await window.acquirer.open_page(one) for one in wanted]
        window.pay(opened[1].reference)
        window.go_to_bank(opened[2].reference)
        window.let_end(opened[3].reference)
        await window.acquirer.end_page(wanted[3].key, opened[3].reference)
        found = await listed(window)
        states = {wanted[0].key: PageState.OPEN, wanted[1].key: PageState.PAID, wanted[2].key: PageState.OPEN}
        assert {key: one.page.state for key, one in found.items()} == states
        assert {one.page.reference for one in found.values()} == {one.reference for one in opened[:3]}
        assert all(one.mark == mark and abs(one.at - window.clock.now) < timedelta(seconds=1) for one in found.values())

    async def test_what_was_made_before_is_not_listed(self, window: Window) -> None:
        old = window.wanted(expires_at=window.clock.now + timedelta(hours=23))
        await window.acquirer.open_page(old)
        window.pass_to(window.clock.now + timedelta(hours=2))
        new = window.wanted()
        await window.acquirer.open_page(new)
        assert set(await listed(window, since=timedelta(hours=1))) == {new.key}
        assert set(await listed(window)) == {old.key, new.key}

    async def test_more_than_a_page_of_them_are_all_listed(self, window: Window) -> None:
        wanted = [window.wanted() for _ in range(103)]
        for number, one in enumerate(wanted):
            opened = await window.acquirer.open_page(one)
            if number % 50 == 0:
                window.pay(opened.reference)
        assert set(await listed(window)) == {one.key for one in wanted}

    async def test_a_cursor_of_another_is_refused(self, window: Window) -> None:
        with pytest.raises(AcquirerRefused):
            await window.acquirer.list_pages(window.clock.now, "elsewhere")

    async def test_a_purchase_in_the_list_tells_what_was_paid_with(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        window.pay(opened.reference)
        page = await window.acquirer.list_purchases(window.clock.now - timedelta(hours=1), "")
        (one,) = [each for each in page.purchases if each.key == wanted.key]
        assert one.instrument == Instrument(InstrumentKind.CARD, "visa", "4242")

    async def test_an_ended_page_is_found_by_its_key(self, window: Window) -> None:
        wanted = window.wanted()
        opened = await window.acquirer.open_page(wanted)
        window.let_end(opened.reference)
        await window.acquirer.end_page(wanted.key, opened.reference)
        earlier = await window.acquirer.look_back(wanted.key)
        assert earlier is not None
        assert (earlier.finding, earlier.amount, earlier.currency) == (Voided(), Decimal(10), "EUR")


class TestStripesOwn:
    """What only Stripe's adapter shows: what it sends, and how it reads sessions."""

    async def test_a_lost_answer_is_asked_for_again_byte_for_byte(self, stripes: StripesWindow) -> None:
        assert stripes.standin is not None
        wanted = stripes.wanted()
        stripes.standin.loses = 1
        with pytest.raises(OutcomeUnknown):
            await stripes.acquirer.open_page(wanted)
        page = await stripes.acquirer.open_page(wanted)
        (first, again) = stripes.standin.asked
        assert first == again
        assert list(stripes.standin.sessions) == [page.reference]

    async def test_what_would_change_the_amount_is_off_and_slow_methods_are_not_offered(
        self, stripes: StripesWindow
    ) -> None:
        assert stripes.standin is not None
        await stripes.acquirer.open_page(stripes.wanted())
        sent = stripes.standin.asked[0][2].decode()
        for off in ("adaptive_pricing[enabled]=false", "allow_promotion_codes=false", "automatic_tax[enabled]=false"):
            assert off in sent.replace("%5B", "[").replace("%5D", "]")
        assert "sepa_debit" in sent
        assert "payment_method_types[" not in sent.replace("excluded_payment_method_types[", "").replace("%5B", "[")

    @pytest.mark.parametrize(
        ("method", "shown"),
        [
            (IN_WALLET, Instrument(InstrumentKind.CARD, "mastercard", "4444", "apple_pay")),
            (IDEAL, Instrument(InstrumentKind.BANK)),
            ({"type": "paypal", "paypal": {}}, Instrument(InstrumentKind.OTHER)),
        ],
        ids=["a wallet", "a bank", "another method"],
    )
    async def test_what_was_paid_with_is_told(
        self, stripes: StripesWindow, method: dict[str, Any], shown: Instrument
    ) -> None:
        assert stripes.standin is not None
        wanted = stripes.wanted()
        opened = await stripes.acquirer.open_page(wanted)
        stripes.standin.pay(opened.reference, method)
        assert (await stripes.acquirer.find_page(wanted.key, opened.reference)).instrument == shown

    async def test_money_that_is_on_its_way_is_pending_until_it_is_there_or_not(self, stripes: StripesWindow) -> None:
        assert stripes.standin is not None
        wanted = stripes.wanted()
        opened = await stripes.acquirer.open_page(wanted)
        stripes.standin.pay(opened.reference, IDEAL, sure=False)
        for ask in (stripes.acquirer.find_page, stripes.acquirer.end_page):
            assert (await ask(wanted.key, opened.reference)).state is PageState.PENDING
        (intent,) = stripes.standin.intents.values()
        intent["status"] = "requires_payment_method"
        assert (await stripes.acquirer.find_page(wanted.key, opened.reference)).state is PageState.ENDED

    async def test_direct_debits_are_offered_where_slow_methods_are_wanted_and_what_nobody_may_pay_never(
        self, stripes: StripesWindow
    ) -> None:
        assert stripes.standin is not None
        for slow, offered in ((False, set()), (True, set(DEBITS))):
            await stripes.acquirer.open_page(stripes.wanted(slow=slow))
            sent = unquote(stripes.standin.asked[-1][2].decode())
            left_out = {one.partition("=")[2] for one in sent.split("&") if one.startswith("excluded_payment_method")}
            assert set(SLOW) - left_out == offered

    @pytest.mark.parametrize("paid", [True, False])
    async def test_a_direct_debit_is_pending_until_its_bank_has_decided(
        self, stripes: StripesWindow, paid: bool
    ) -> None:
        assert stripes.standin is not None
        wanted = stripes.wanted(slow=True)
        opened = await stripes.acquirer.open_page(wanted)
        stripes.standin.pay(opened.reference, SEPA, sure=False)
        page = await stripes.acquirer.find_page(wanted.key, opened.reference)
        assert (page.state, page.instrument) == (PageState.PENDING, Instrument(InstrumentKind.SLOW_BANK))
        assert page.until is not None
        assert timedelta(days=20) < page.until - stripes.clock.now < timedelta(days=22)
        (listed,) = (await stripes.acquirer.list_purchases(stripes.clock.now - timedelta(hours=1), "")).purchases
        assert listed.state is PurchaseState.PENDING
        earlier = await stripes.acquirer.look_back(wanted.key)
        assert earlier is not None
        assert isinstance(earlier.finding, Pending)
        stripes.standin.debit_ends(opened.reference, paid=paid)
        page = await stripes.acquirer.find_page(wanted.key, opened.reference)
        assert page.state is (PageState.PAID if paid else PageState.ENDED)
        earlier = await stripes.acquirer.look_back(wanted.key)
        assert earlier is not None
        assert isinstance(earlier.finding, Approved if paid else Declined)

    @pytest.mark.parametrize("amount", [Decimal(10), Decimal(0)], ids=["paid", "set up"])
    async def test_a_lost_answer_to_keeping_is_asked_for_again_byte_for_byte(
        self, stripes: StripesWindow, amount: Decimal
    ) -> None:
        assert stripes.standin is not None
        wanted = stripes.wanted(keep=True, amount=amount)
        for _ in range(2):
            stripes.standin.loses = 1
            with pytest.raises(OutcomeUnknown):
                await stripes.acquirer.open_page(wanted)
            await stripes.acquirer.open_page(wanted)
        sent = stripes.standin.asked
        assert len(set(sent)) == 2, "a customer and a session, each of them always the same"
        assert (len(stripes.standin.customers), len(stripes.standin.sessions)) == (1, 1)

    @pytest.mark.parametrize("method", ["ideal", "sepa_debit"])
    async def test_what_would_be_kept_as_a_debit_is_not_offered(self, stripes: StripesWindow, method: str) -> None:
        assert stripes.standin is not None
        opened = await stripes.acquirer.open_page(stripes.wanted(keep=True))
        assert not stripes.standin.pay(opened.reference, {"type": method})

    async def test_where_slow_methods_are_wanted_sepa_s_debit_is_kept_and_no_other(
        self, stripes: StripesWindow
    ) -> None:
        assert stripes.standin is not None
        await stripes.acquirer.open_page(stripes.wanted(keep=True, slow=True))
        sent = unquote(stripes.standin.asked[-1][2].decode())
        left_out = {one.partition("=")[2] for one in sent.split("&") if one.startswith("excluded_payment_method")}
        assert set(SLOW) - left_out == {"sepa_debit"}
        assert {"ideal", "bancontact"} <= left_out
        assert "payment_intent_data[setup_future_usage]=off_session" in sent

    @pytest.mark.parametrize("amount", [Decimal(10), Decimal(0)], ids=["paid", "set up"])
    @pytest.mark.parametrize("paid", [True, False])
    async def test_a_later_debit_is_pending_until_its_bank_has_decided(
        self, stripes: StripesWindow, paid: bool, amount: Decimal
    ) -> None:
        assert stripes.standin is not None
        wanted = stripes.wanted(keep=True, slow=True, amount=amount)
        opened = await stripes.acquirer.open_page(wanted)
        assert stripes.standin.pay(opened.reference, SEPA, sure=not amount)
        if amount:
            stripes.standin.debit_ends(opened.reference, paid=True)
        kept = (await stripes.acquirer.find_page(wanted.key, opened.reference)).instrument
        assert kept is not None
        assert (kept.kind, kept.slow, kept.exp_year) == (InstrumentKind.SLOW_BANK, True, 0)
        charge = stripes.charge(kept.reference)
        answer = await stripes.acquirer.charge_stored(charge)
        assert isinstance(answer, Pending)
        assert answer.until is not None
        assert timedelta(days=20) < answer.until - stripes.clock.now < timedelta(days=22)
        assert await stripes.acquirer.charge_stored(charge) == answer
        for_good = charge.not_after + timedelta(minutes=1)
        stripes.pass_to(for_good)
        assert await stripes.acquirer.find(charge.key, charge.not_after) == answer
        assert stripes.taken(charge.key) == 0
        stripes.standin.debit_ends(answer.reference, paid=paid)
        found = await stripes.acquirer.find(charge.key, charge.not_after)
        assert isinstance(found, Approved if paid else Declined)
        assert found.until == charge.not_after
        assert stripes.taken(charge.key) == (charge.amount if paid else 0)

    async def test_another_method_is_kept_and_charged_as_what_it_is(self, stripes: StripesWindow) -> None:
        assert stripes.standin is not None
        wanted = stripes.wanted(keep=True)
        opened = await stripes.acquirer.open_page(wanted)
        assert stripes.standin.pay(opened.reference, {"type": "paypal", "paypal": {}})
        kept = (await stripes.acquirer.find_page(wanted.key, opened.reference)).instrument
        assert kept is not None
        assert kept.kind is InstrumentKind.OTHER
        assert isinstance(await stripes.acquirer.charge_stored(stripes.charge(kept.reference)), Approved)

    @pytest.mark.parametrize(
        ("trouble", "reason"),
        [("asking", DeclineReason.AUTHENTICATION_FAILED), ("failing", DeclineReason.DECLINED)],
    )
    async def test_a_later_charge_that_fails_is_a_decline(
        self, stripes: StripesWindow, trouble: str, reason: DeclineReason
    ) -> None:
        assert stripes.standin is not None
        kept = await stripes.kept()
        getattr(stripes.standin, trouble).add(kept.reference.split("/")[1])
        answer = await stripes.acquirer.charge_stored(stripes.charge(kept.reference))
        assert answer == Declined(reason)

    async def test_what_was_detached_at_stripe_is_a_decline_as_a_mandate_that_was_revoked_is(
        self, stripes: StripesWindow
    ) -> None:
        kept = await stripes.kept()
        await release_kept(stripes.acquirer, kept.reference)
        answer = await stripes.acquirer.charge_stored(stripes.charge(kept.reference))
        assert answer == Declined(DeclineReason.DECLINED)

    async def test_what_was_kept_with_a_typed_card_is_charged_as_before(self, stripes: StripesWindow) -> None:
        kept = await stripes.kept()
        charge = stripes.charge("", network_reference=kept.reference)
        assert isinstance(await stripes.acquirer.charge_stored(charge), Approved)
        assert stripes.taken(charge.key) == 7

    async def test_what_would_take_the_money_at_once_is_not_offered_where_it_is_to_be_held(
        self, stripes: StripesWindow
    ) -> None:
        assert stripes.standin is not None
        opened = await stripes.acquirer.open_page(stripes.wanted(capture=False))
        sent = stripes.standin.asked[0][2].decode()
        assert all(f"={method}&" in f"{sent}&" for method in (*SLOW, *AT_ONCE))
        assert not stripes.standin.pay(opened.reference, IDEAL)
        assert stripes.standin.pay(opened.reference, IN_WALLET)

    async def test_a_method_of_which_no_end_is_told_has_none(self, stripes: StripesWindow) -> None:
        assert stripes.standin is not None
        wanted = stripes.wanted(capture=False)
        opened = await stripes.acquirer.open_page(wanted)
        stripes.standin.pay(opened.reference, {"type": "klarna", "klarna": {}})
        page = await stripes.acquirer.find_page(wanted.key, opened.reference)
        assert (page.state, page.hold_until) == (PageState.PAID, None)

    @pytest.mark.parametrize(("language", "sent"), [("de-CH", "de"), ("pt-BR", "pt-BR"), ("ar", "auto")])
    async def test_a_language_that_the_page_lacks_is_its_own_choice(
        self, stripes: StripesWindow, language: str, sent: str
    ) -> None:
        assert stripes.standin is not None
        await stripes.acquirer.open_page(stripes.wanted(language=language))
        assert f"locale={sent}&" in f"{stripes.standin.asked[0][2].decode()}&"

    async def test_3_d_secure_for_everybody_is_asked_for_on_its_page(self, stripes: StripesWindow) -> None:
        assert stripes.standin is not None
        await stripes.acquirer.open_page(stripes.wanted())
        await stripes.acquirer.open_page(stripes.wanted(authenticate=True))
        first, second = (sent.decode() for _, _, sent in stripes.standin.asked)
        assert "request_three_d_secure" not in first
        assert "payment_method_options[card][request_three_d_secure]=any" in unquote(second)

    async def test_without_the_setting_it_takes_cards_and_hosts_nothing(self) -> None:
        stripe = StripeAcquirer("sk_test_x", api_base="http://127.0.0.1:9")
        assert (stripe.capabilities.cards, stripe.capabilities.pages) == (True, False)

    async def test_a_domain_of_the_accounts_own_may_be_led_to(self) -> None:
        stripe = StripeAcquirer("sk_test_x", hosts_pages=True, checkout_domain="pay.shop.example")
        assert {"https://checkout.stripe.com", "https://pay.shop.example"} <= set(stripe.challenge_origins)
