"""What Mollie is asked for a page, and how its answers are read."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.adapters.acquirers.mollie.conftest import Till

from paydesk.adapters.acquirers.hosted_pages import PageState
from paydesk.adapters.acquirers.instruments import Instrument, InstrumentKind
from paydesk.adapters.acquirers.interface import AcquirerRefused, KeyUsed, OutcomeUnknown
from paydesk.adapters.acquirers.notices import NoticeRefused


def created(till: Till) -> list[Any]:
    """The requests for payments, each with its key."""
    return [(key, json.loads(body)) for how, path, key, body in till.account.see()["asked"] if how == "POST"]


async def test_a_lost_answer_is_asked_for_again_byte_for_byte(till: Till) -> None:
    wanted = till.wanted()
    till.account.do("set", loses=1)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.open_page(wanted)
    page = await till.acquirer.open_page(wanted)
    first, again = created(till)
    assert first == again
    assert list(till.account.see()["payments"]) == [page.reference]


async def test_one_whose_key_mollie_has_forgotten_is_found_and_no_second_one_is_made(till: Till) -> None:
    wanted = till.wanted()
    till.account.do("set", loses=1, part=1)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.open_page(wanted)
    for _ in range(3):
        await till.acquirer.open_page(till.wanted())
    till.pass_to(till.clock.now + timedelta(hours=2))
    other = till.restarted()
    page = await other.open_page(wanted)
    await other.close()
    assert (page.reference, page.state) == ("tr_0000000001", PageState.ENDED)
    assert len(till.account.see()["payments"]) == 4


async def test_a_repeated_key_with_another_request_is_refused_whatever_mollie_does(till: Till) -> None:
    wanted = till.wanted()
    await till.acquirer.open_page(wanted)
    for change in ({"amount": Decimal(9)}, {"return_url": "https://pay.example/other"}, {"language": "fr"}):
        with pytest.raises(KeyUsed):
            await till.acquirer.open_page(replace(wanted, **change))


async def test_what_is_sent_is_what_was_asked_for(till: Till) -> None:
    await till.acquirer.open_page(till.wanted(amount=Decimal("1.5"), description=" "))
    ((key, sent),) = created(till)
    assert key[14] == "4", "an idempotency key is a UUID of version 4"
    assert sent["amount"] == {"currency": "EUR", "value": "1.50"}
    assert (sent["description"], sent["locale"]) == ("A-1", "de_CH")
    assert "banktransfer" not in sent["method"]
    assert sent["metadata"]["paydesk_order"] == "Bestellung №7"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("https://pay.example/acquirers/mollie/notify?of=l1-2&token=x", True),
        ("", False),
        ("http://pay.example/notify", False),
        ("https://127.0.0.1:8000/notify", False),
        ("https://[::1]/notify", False),
        ("https://localhost/notify", False),
        ("https://pay.internal/notify", False),
    ],
)
async def test_it_is_told_only_where_it_may_reach_us(till: Till, address: str, told: bool) -> None:
    await till.acquirer.open_page(till.wanted(notify_url=address))
    assert created(till)[0][1].get("webhookUrl") == (address if told else None)


async def test_a_notification_is_never_taken_for_mollies(till: Till) -> None:
    with pytest.raises(NoticeRefused):
        till.acquirer.read_notification({}, b"id=tr_0000000001")


@pytest.mark.parametrize(("language", "sent"), [("fr-CA", "fr_FR"), ("pt-BR", "pt_PT"), ("en", "en_US"), ("ja", None)])
async def test_a_language_that_the_page_lacks_is_the_browsers_choice(till: Till, language: str, sent: str) -> None:
    await till.acquirer.open_page(till.wanted(language=language))
    assert created(till)[0][1].get("locale") == sent


@pytest.mark.parametrize(("amount", "currency", "value"), [("1000", "JPY", "1000"), ("10", "USD", "10.00")])
async def test_an_amount_has_its_currencys_decimals(till: Till, amount: str, currency: str, value: str) -> None:
    page = await till.acquirer.open_page(till.wanted(amount=Decimal(amount), currency=currency))
    assert created(till)[0][1]["amount"]["value"] == value
    assert (page.amount, page.currency) == (Decimal(amount), currency)


@pytest.mark.parametrize("amount", ["1.001", "-1", "NaN", "Infinity"])
async def test_an_amount_that_is_none_is_refused(till: Till, amount: str) -> None:
    with pytest.raises(AcquirerRefused):
        await till.acquirer.open_page(till.wanted(amount=Decimal(amount)))
    assert created(till) == []


async def test_the_longest_reference_of_an_order_fits(till: Till) -> None:
    wanted = till.wanted()
    assert wanted.mark is not None
    page = await till.acquirer.open_page(replace(wanted, mark=replace(wanted.mark, order="𐍈" * 255)))
    (listed,) = (await till.acquirer.list_purchases(till.clock.now, "")).purchases
    assert listed.reference == page.reference
    assert listed.mark is not None
    assert listed.mark.is_of(replace(wanted.mark, order="𐍈" * 255))


async def test_what_no_method_takes_is_refused_with_mollies_words(till: Till) -> None:
    till.account.do("set", active=["banktransfer"])
    with pytest.raises(AcquirerRefused, match="No suitable payment methods found"):
        await till.acquirer.open_page(till.wanted())


@pytest.mark.parametrize(
    ("method", "details", "shown"),
    [
        ("creditcard", {"wallet": "applepay"}, Instrument(InstrumentKind.CARD, "visa", "4242", "apple_pay")),
        ("creditcard", {"cardLabel": "Dankort"}, Instrument(InstrumentKind.CARD, "unknown", "4242")),
        ("ideal", {}, Instrument(InstrumentKind.BANK)),
        ("paypal", {}, Instrument(InstrumentKind.OTHER)),
    ],
    ids=["a wallet", "another card", "a bank", "another method"],
)
async def test_what_was_paid_with_is_told(till: Till, method: str, details: dict[str, str], shown: Instrument) -> None:
    wanted = till.wanted()
    opened = await till.acquirer.open_page(wanted)
    till.account.do("pay", opened.reference, method, **details)
    assert (await till.acquirer.find_page(wanted.key, opened.reference)).instrument == shown


@pytest.mark.parametrize(("then", "state"), [("paid", PageState.PAID), ("failed", PageState.ENDED)])
async def test_money_that_is_on_its_way_is_pending_until_it_is_there_or_not(
    till: Till, then: str, state: PageState
) -> None:
    wanted = till.wanted()
    opened = await till.acquirer.open_page(wanted)
    till.account.do("pay", opened.reference, "paypal", "pending")
    for ask in (till.acquirer.find_page, till.acquirer.end_page):
        assert (await ask(wanted.key, opened.reference)).state is PageState.PENDING
    till.account.do("settle", opened.reference, then)
    assert (await till.acquirer.find_page(wanted.key, opened.reference)).state is state


async def test_a_state_that_nobody_knows_is_no_answer(till: Till) -> None:
    wanted = till.wanted()
    opened = await till.acquirer.open_page(wanted)
    till.account.do("pay", opened.reference, "paypal", "shiny")
    with pytest.raises(OutcomeUnknown, match="shiny"):
        await till.acquirer.find_page(wanted.key, opened.reference)


async def test_what_it_does_not_take_is_said_and_refused(till: Till) -> None:
    can = till.acquirer.capabilities
    assert (can.cards, can.pages, can.stored, till.acquirer.hold_period) == (False, True, True, timedelta(7))
    with pytest.raises(AcquirerRefused, match="taken at once at Mollie"):
        await till.acquirer.open_page(till.wanted(capture=False, keep=True))
    assert created(till) == []


@pytest.mark.parametrize(("amount", "methods"), [("10", ["applepay", "creditcard"]), ("0", ["creditcard"])])
async def test_a_page_that_keeps_offers_what_is_charged_at_once_later(
    till: Till, amount: str, methods: list[str]
) -> None:
    await till.acquirer.open_page(till.wanted(keep=True, amount=Decimal(amount)))
    (_, customer), (_, sent) = created(till)
    assert customer["email"] == "ada@example.com"
    assert (sent["sequenceType"], sent["customerId"], sent["method"]) == ("first", "cst_000001", methods)


async def test_a_lost_answer_to_keeping_is_asked_for_again_byte_for_byte(till: Till) -> None:
    wanted = till.wanted(keep=True)
    till.account.do("set", loses=1)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.open_page(wanted)
    for _ in range(2):
        await till.acquirer.open_page(wanted)
    lost, customer, payment, *again = created(till)
    assert lost == customer
    assert again == [customer, payment]
    assert len(till.account.see()["payments"]) == 1


async def test_a_payment_of_other_software_in_a_state_of_tomorrow_keeps_no_page_from_being_listed(till: Till) -> None:
    # Mollie: new values may come at any time, and are to be taken as unknown.
    _, theirs = await till.paid()
    ours = await till.acquirer.open_page(till.wanted())
    payments = till.account.see()["payments"]
    payments[theirs] |= {"status": "a state of tomorrow", "metadata": None}
    till.account.do("set", payments=payments)
    since = till.clock.now - timedelta(minutes=1)
    assert [one.page.reference for one in (await till.acquirer.list_pages(since, "")).pages] == [ours.reference]
    payments[ours.reference] |= {"status": "a state of tomorrow"}
    till.account.do("set", payments=payments)
    with pytest.raises(OutcomeUnknown):
        await till.acquirer.list_pages(since, "")
