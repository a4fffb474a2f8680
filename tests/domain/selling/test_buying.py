"""A payment link sells to the last one and not one more: what is taken is taken by the intent, and
free again once its payment has come to nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from tests import breaking
from tests.banks import answering, ending_in
from tests.lengths import at_length, longer
from tests.shopfront import DECLINED, GOOD, choose, offer_link, pay, ships
from tests.till import Till

from paydesk.adapters.acquirers.interface import AcquirerRefused, OutcomeUnknown
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, Malformed, NotFound
from paydesk.database.pool import Database
from paydesk.domain.merchants.customer_links import Link, LinkTo, open_link
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import Standing, find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.results import Paid, Refused, Result
from paydesk.domain.selling.buying import SoldOut
from paydesk.domain.selling.payment_links import Rhythm, find_payment_link, link_to

CHALLENGED, ANSWER_LOST = "4000000000003220", "4000000000009987"


@pytest.fixture
def till(desk: Desk, shop: Shop) -> Till:
    return Till(desk, shop)


async def opened(till: Till, link: Link) -> Any:
    """The link as a customer finds it now."""
    found = open_link(till.desk.vault, LinkTo.SALE, link.token(till.desk.vault))
    return await find_payment_link(till.database, found)


async def left(till: Till, link: Link) -> Any:
    return (await opened(till, link)).left


async def standing(till: Till, checkout: Link) -> Standing:
    return (await find_checkout(till.database, checkout, now=utc_now())).standing


async def tried(till: Till, checkout: Link, number: str = GOOD, **who: Any) -> Result | None:
    """What pressing the button comes to; None where it was refused."""
    try:
        return await pay(till.desk, checkout, number, **who)
    except Conflict:
        return None


@longer
async def test_of_a_crowd_that_races_for_the_last_one_one_gets_it(till: Till) -> None:
    link = await offer_link(till.database, till.shop, most_sales=1)
    crowd = at_length(200, 30)
    checkouts = [await choose(till.desk, link) for _ in range(crowd)]
    results = await asyncio.gather(
        *(tried(till, one, address=f"192.0.2.{number}") for number, one in enumerate(checkouts))
    )
    assert Counter(result == Paid() for result in results) == {True: 1, False: crowd - 1}
    assert [row["state"] for row in await till.payments()] == ["captured"]
    stands = Counter([await standing(till, one) for one in checkouts])
    assert stands == {Standing.PAID: 1, Standing.SOLD_OUT: crowd - 1}
    assert len([one for one in till.standings().values() if one.net]) == 1
    assert await till.problems() == []


@longer
async def test_never_more_than_there_are_whatever_becomes_of_each_try(till: Till) -> None:
    chance, most = Random(11), 7
    link = await offer_link(till.database, till.shop, most_sales=most, most_quantity=3)
    for _ in range(at_length(12, 4)):
        if not await left(till, link):
            break
        wanted = [chance.randint(1, min(3, await left(till, link))) for _ in range(8)]
        checkouts = [await choose(till.desk, link, quantity=quantity) for quantity in wanted]
        numbers = [chance.choice((GOOD, DECLINED, CHALLENGED, ANSWER_LOST)) for _ in wanted]
        await asyncio.gather(*(tried(till, *one) for one in zip(checkouts, numbers, strict=True)))
        sold = await till.database.fetchval(
            "select coalesce(sum(s.quantity), 0) from payment_link_sale s"
            " join payment p on p.merchant_id = s.merchant_id and p.merchant_order_id = s.merchant_order_id"
            " where s.merchant_id = $1 and p.state <> 'declined'",
            till.shop.merchant_id,
        )
        assert sold <= most
        assert await left(till, link) == most - sold
        await till.settle_all(hours=2)
    paid = sum(row["amount"] for row in await till.payments() if row["state"] == "captured")
    assert paid <= 10 * most
    assert await till.problems() == []


async def test_what_is_declined_is_free_again_and_who_waited_gets_it(till: Till) -> None:
    link = await offer_link(till.database, till.shop, most_sales=1)
    first, second = await choose(till.desk, link), await choose(till.desk, link)
    assert isinstance(await pay(till.desk, first, DECLINED), Refused)
    assert await left(till, link) == 1
    assert await pay(till.desk, second) == Paid()
    assert (await left(till, link), await standing(till, first)) == (0, Standing.SOLD_OUT)
    assert await tried(till, first) is None
    with pytest.raises(SoldOut):
        await choose(till.desk, link)


async def test_a_challenge_holds_it_until_it_is_over(till: Till) -> None:
    link = await offer_link(till.database, till.shop, most_sales=1)
    first, second = await choose(till.desk, link), await choose(till.desk, link)
    await pay(till.desk, first, CHALLENGED)
    assert (await left(till, link), await standing(till, second)) == (0, Standing.SOLD_OUT)
    assert await tried(till, second) is None
    await till.settle_all(hours=2)
    assert (await left(till, link), await standing(till, second)) == (1, Standing.OPEN)
    assert await pay(till.desk, second) == Paid()


async def test_who_leaves_a_challenge_for_another_card_keeps_what_they_hold(till: Till) -> None:
    link = await offer_link(till.database, till.shop, most_sales=1)
    checkout = await choose(till.desk, link)
    await pay(till.desk, checkout, CHALLENGED)
    assert await pay(till.desk, checkout) == Paid()
    assert await left(till, link) == 0


async def test_a_lost_answer_holds_it_and_the_bank_says_whose_it_is(till: Till) -> None:
    link = await offer_link(till.database, till.shop, most_sales=1)
    first, second = await choose(till.desk, link), await choose(till.desk, link)
    await pay(till.desk, first, ANSWER_LOST)
    assert await tried(till, second) is None
    await till.settle_all(minutes=5)
    assert (await standing(till, first), await standing(till, second)) == (Standing.PAID, Standing.SOLD_OUT)


@pytest.mark.parametrize("error", [OutcomeUnknown("the line went dead"), AcquirerRefused("down")])
async def test_what_never_reached_the_bank_is_free_again(till: Till, error: Exception) -> None:
    """As it is when the process dies between the intent and the call."""
    link = await offer_link(till.database, till.shop, most_sales=1)
    first, second = await choose(till.desk, link), await choose(till.desk, link)
    dead = till.at(answering(till.desk.acquirers["simulator"], authorize=ending_in(error)))
    await tried(dead, first)
    assert await left(till, link) in (0, 1)
    await till.settle_all(minutes=5)
    assert await left(till, link) == 1
    assert await pay(till.desk, second) == Paid()
    assert await till.problems() == []


async def test_goods_that_were_never_shipped_are_free_again_and_refunded_ones_are_not(till: Till) -> None:
    await ships(till.database, till.shop)
    link = await offer_link(till.database, till.shop, most_sales=2)
    for _ in range(2):
        assert await pay(till.desk, await choose(till.desk, link)) == Paid()
    first, second = [row["id"] for row in await till.payments()]
    await till.confirm(second)
    await till.finish()
    await replace(till, payment_id=second).give()
    assert await left(till, link) == 0
    await replace(till, payment_id=first).give()
    assert await left(till, link) == 1


async def test_pressed_twice_it_is_one_checkout_and_another_one_once_the_link_has_changed(till: Till) -> None:
    link = await offer_link(till.database, till.shop, most_quantity=2)
    pressed = "ab" * 16
    first, second = [await choose(till.desk, link, press=pressed) for _ in range(2)]
    assert first == second
    assert await choose(till.desk, link, quantity=2, press=pressed) != first
    changed = {"price": Decimal("20.00"), "changed_at": utc_now() + timedelta(seconds=1)}
    await breaking.say(till.database, "payment_link", {"id": link.row_id}, **changed)
    third = await choose(till.desk, link, press=pressed)
    old, new = [await find_checkout(till.database, one, now=utc_now()) for one in (first, third)]
    assert (old.amount, new.amount) == (Decimal(10), Decimal(20))
    assert old.merchant_order_id != new.merchant_order_id


async def test_what_was_chosen_is_shown_and_paid(till: Till) -> None:
    link = await offer_link(till.database, till.shop, most_quantity=3, picture="00" * 32)
    checkout = await find_checkout(till.database, await choose(till.desk, link, quantity=3), now=utc_now())
    assert (checkout.amount, checkout.currency, checkout.description) == (Decimal(30), "USD", "A mug")
    (line,) = checkout.items
    assert (line.name, line.unit_price, line.quantity, line.picture) == ("A mug", Decimal(10), 3, "00" * 32)
    await pay(till.desk, checkout.link)
    (told,) = await till.told()
    assert told["payment_order"]["merchant_order_id"].startswith(f"link-{link.row_id}-")


@pytest.mark.parametrize(("rhythm", "unit"), [(Rhythm.MONTHLY, "month"), (Rhythm.YEARLY, "year")])
async def test_a_subscription_is_taken_out_in_the_rhythm_that_was_chosen(till: Till, rhythm: Rhythm, unit: str) -> None:
    prices = {"price": None, "monthly_price": Decimal("5.00"), "yearly_price": Decimal("50.00")}
    link = await offer_link(till.database, till.shop, **prices)
    checkout = await choose(till.desk, link, rhythm)
    assert await pay(till.desk, checkout) == Paid()
    (told,) = await till.told()
    assert told["subscription"]["period_type"] == unit
    assert told["subscription"]["price"] == f"{prices[f'{rhythm}_price']}"
    assert told["subscription"]["package"]["sku_id"] == f"link-{link.row_id}-{rhythm}"
    with pytest.raises(Malformed):
        await choose(till.desk, link, Rhythm.ONCE)


async def test_more_can_be_sold_once_there_are_more(till: Till) -> None:
    link = await offer_link(till.database, till.shop, most_sales=1)
    waiting = await choose(till.desk, link)
    assert await pay(till.desk, await choose(till.desk, link)) == Paid()
    assert await standing(till, waiting) == Standing.SOLD_OUT
    await breaking.say(till.database, "payment_link", {"id": link.row_id}, most_sales=2)
    assert await pay(till.desk, waiting) == Paid()
    await breaking.say(till.database, "payment_link", {"id": link.row_id}, most_sales=1)
    assert await left(till, link) == 0


@pytest.mark.parametrize(
    ("quantity", "press"), [("0", "a" * 32), ("4", "a" * 32), ("-1", "a" * 32), ("1.5", "a" * 32), ("1", "short")]
)
async def test_what_no_page_of_ours_posts_is_refused(till: Till, quantity: str, press: str) -> None:
    link = await offer_link(till.database, till.shop, most_quantity=3)
    with pytest.raises(Malformed):
        await choose(till.desk, link, quantity=quantity, press=press)  # type: ignore[arg-type]


async def test_nobody_comes_to_another_ones_link(till: Till, other_shop: Shop) -> None:
    link = await offer_link(till.database, till.shop)
    assert link.row_id is not None
    for other in (
        link_to(other_shop, link.row_id, link.seed),
        link_to(replace(till.shop, live=True), link.row_id, link.seed),
        link_to(till.shop, link.row_id, "another seed"),
        link_to(till.shop, link.row_id + 1, link.seed),
        replace(link, to=LinkTo.CHECKOUT),
    ):
        with pytest.raises(NotFound):
            await opened(till, other)


async def test_a_link_that_is_off_sells_nothing_but_what_is_open_may_be_paid(till: Till) -> None:
    link = await offer_link(till.database, till.shop)
    checkout = await choose(till.desk, link)
    await breaking.say(till.database, "payment_link", {"id": link.row_id}, active=False)
    with pytest.raises(Conflict):
        await choose(till.desk, link)
    assert await pay(till.desk, checkout) == Paid()


async def test_a_suspended_merchant_sells_nothing_live(till: Till, database: Database) -> None:
    live = replace(till.shop, live=True)
    link = await offer_link(database, live)
    with pytest.raises(Conflict, match="not live yet"):
        await choose(till.desk, link)
    went_live = {"went_live_at": utc_now(), "suspended_at": utc_now()}
    await breaking.say(database, "merchant", {"id": live.merchant_id}, **went_live)
    with pytest.raises(Conflict, match="suspended"):
        await choose(till.desk, link)


async def test_a_shop_without_a_key_that_signs_sells_nothing(till: Till) -> None:
    link = await offer_link(till.database, till.shop)
    await breaking.say(till.database, "merchant_key", {"merchant_id": till.shop.merchant_id}, scopes=["read"])
    with pytest.raises(Conflict, match="no key"):
        await choose(till.desk, link)
