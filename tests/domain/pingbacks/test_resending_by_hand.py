from __future__ import annotations

from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from tests import breaking, set_back

from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, NotFound
from paydesk.core.paging import Page
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.destinations import Account, destination
from paydesk.domain.pingbacks.for_api import PingbackFilter, list_pingbacks
from paydesk.domain.pingbacks.resending_by_hand import (
    Exhausted,
    count_exhausted,
    find_tried_pingback,
    resend,
    resend_exhausted,
    send_all_waiting,
    send_waiting,
)
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.domain.pingbacks.states import PingbackState


async def test_an_acknowledged_pingback_can_be_sent_again(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    await sender.send_due_once(utc_now())
    again = await resend(database, shop, pingback_id, now=utc_now())
    assert (again.state, again.finished_at) == (PingbackState.DUE, None)
    assert await sender.send_due_once(utc_now()) == 1
    pingback, attempts = await find_tried_pingback(database, shop, pingback_id)
    assert (pingback.state, pingback.attempts) == (PingbackState.ACKNOWLEDGED, 2)
    assert [attempt.number for attempt in attempts] == [1, 2]
    assert attempts[0].request_headers["X-Service-Signature-Version"] == "v2"


async def test_an_exhausted_pingback_gets_one_attempt_more(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    receiver.answers["/pay"] = [(500, b""), (500, b""), (200, b"ok")]
    pingback_id = await queue(shop, f"{receiver.base}/pay")
    await breaking.say(database, "pingback", {"id": pingback_id}, attempts=10)
    await sender.send_due_once(utc_now())
    for expected in (PingbackState.EXHAUSTED, PingbackState.ACKNOWLEDGED):
        await resend(database, shop, pingback_id, now=utc_now())
        assert await sender.send_due_once(utc_now()) == 1
        assert (await find_tried_pingback(database, shop, pingback_id))[0].state == expected


async def test_a_pingback_that_waits_for_its_next_attempt_can_be_sent_at_once(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, f"{receiver.base}/pay", due_at=utc_now() + timedelta(minutes=30))
    assert await sender.send_due_once(utc_now()) == 0
    await resend(database, shop, pingback_id, now=utc_now())
    assert await sender.send_due_once(utc_now()) == 1


async def test_a_pingback_without_url_can_not_be_sent(database: Database, shop: Shop, queue: Any) -> None:
    pingback_id = await queue(shop, None)
    with pytest.raises(Conflict, match="has no URL"):
        await resend(database, shop, pingback_id, now=utc_now())


async def test_once_live_a_test_pingback_is_sent_again_to_the_test_url_only(
    database: Database, shop: Shop, merchant: Merchant, queue: Any
) -> None:
    pingback_id = await queue(shop, "https://form.example/")
    await set_back.went_live(database, merchant.id, test_mode=True)
    with pytest.raises(Conflict, match="test pingback URL"):
        await resend(database, shop, pingback_id, now=utc_now())
    await change_merchant(database, merchant.id, test_pingback_url="https://test.example/")
    assert (await resend(database, shop, pingback_id, now=utc_now())).url == "https://test.example/"


class TestWhereItGoes:
    """The account's URL of now counts, for whatever is sent again; a form's own stays."""

    OLD, NEW, FORM = (f"https://{name}.example/p" for name in ("old", "new", "form"))

    @pytest.fixture
    async def told(self, database: Database, shop: Shop, merchant: Merchant, buy: Any) -> Any:
        """A payment's pingback, by the URL that its form names (or none),
        told to an account with the old URL.
        """

        async def tell(order: str, form_url: str | None) -> int:
            payment_id = await buy(order=order)
            await breaking.say(database, "payment", {"id": payment_id}, pingback_url=form_url)
            find = "update pingback set url = $2 where payment_id = $1 returning id"
            return int(await database.fetchval(find, payment_id, form_url or self.OLD))

        await change_merchant(database, merchant.id, pingback_url=self.OLD)
        return tell

    async def test_one_that_is_sent_again_goes_to_the_url_of_now(
        self, database: Database, shop: Shop, merchant: Merchant, told: Any
    ) -> None:
        by_account, by_form = await told("A-1", None), await told("A-2", self.FORM)
        await change_merchant(database, merchant.id, pingback_url=self.NEW)
        assert (await resend(database, shop, by_account, now=utc_now())).url == self.NEW
        assert (await resend(database, shop, by_form, now=utc_now())).url == self.FORM
        await change_merchant(database, merchant.id, test_pingback_url="https://test.example/p")
        assert (await resend(database, shop, by_account, now=utc_now())).url == "https://test.example/p"

    async def test_all_that_failed_go_to_the_url_of_now(
        self, database: Database, shop: Shop, merchant: Merchant, told: Any
    ) -> None:
        by_account, by_form = await told("A-1", None), await told("A-2", self.FORM)
        await set_back.given_up(database, {"merchant_id": merchant.id})
        await change_merchant(database, merchant.id, pingback_url=self.NEW)
        assert await resend_exhausted(database, shop, Exhausted(), now=utc_now()) == 2
        assert (await find_tried_pingback(database, shop, by_account))[0].url == self.NEW
        assert (await find_tried_pingback(database, shop, by_form))[0].url == self.FORM

    async def test_what_is_due_follows_the_account_to_its_new_url(
        self, database: Database, shop: Shop, merchant: Merchant, told: Any
    ) -> None:
        by_account, by_form = await told("A-1", None), await told("A-2", self.FORM)
        changed = await change_merchant(database, merchant.id, pingback_url=self.NEW)
        assert await send_waiting(database, changed, now=utc_now()) == 0, "it did not wait for a URL"
        assert (await find_tried_pingback(database, shop, by_account))[0].url == self.NEW
        assert (await find_tried_pingback(database, shop, by_form))[0].url == self.FORM

    async def test_the_rules_are_those_for_a_new_one(self, database: Database, merchant: Merchant, told: Any) -> None:
        pingback_id = await told("A-1", None)
        urls = (None, "https://x.example/")
        for live, went_live, form, account, test in product((True, False), (None, utc_now()), urls, urls, urls):
            await breaking.say(database, "payment", {"merchant_id": merchant.id}, pingback_url=form)
            await breaking.say(
                database,
                "merchant",
                {"id": merchant.id},
                pingback_url=account and f"{account}account",
                test_pingback_url=test and f"{test}test",
                went_live_at=went_live,
            )
            goes_to = await database.fetchval(
                "select pingback_destination(jsonb_populate_record(p, jsonb_build_object('live', $2::boolean)), m)"
                " from pingback p join merchant m on m.id = p.merchant_id where p.id = $1",
                pingback_id,
                live,
            )
            known = Account(account and f"{account}account", test and f"{test}test", went_live)
            # The payment is on the test side, so that a live pingback finds no form.
            assert goes_to == destination(None if live else form, known, live=live)


async def test_another_merchants_pingback_is_not_found(
    database: Database, shop: Shop, other_shop: Shop, queue: Any
) -> None:
    pingback_id = await queue(shop, "https://shop.example/")
    for stranger in (other_shop, Shop(shop.merchant_id, True)):
        with pytest.raises(NotFound):
            await find_tried_pingback(database, stranger, pingback_id)
        with pytest.raises(NotFound):
            await resend(database, stranger, pingback_id, now=utc_now())
        assert await list_pingbacks(database, stranger, PingbackFilter(), Page(10)) == []


async def test_what_waited_is_sent_once_a_url_is_set(
    database: Database, shop: Shop, merchant: Merchant, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    pingback_id = await queue(shop, None, due_at=utc_now() - timedelta(days=3))
    assert await send_waiting(database, merchant, now=utc_now()) == 0
    changed = await change_merchant(database, merchant.id, pingback_url=f"{receiver.base}/account")
    assert await send_waiting(database, changed, now=utc_now()) == 1
    assert await sender.send_due_once(utc_now()) == 1
    assert [one.path for one in receiver.received] == ["/account"]
    assert (await find_tried_pingback(database, shop, pingback_id))[0].state == PingbackState.ACKNOWLEDGED


async def test_what_waited_on_the_test_side_of_a_live_merchant_goes_to_the_test_url(
    database: Database, shop: Shop, merchant: Merchant, queue: Any
) -> None:
    test, live = await queue(shop, None), await queue(Shop(merchant.id, True), None)
    await set_back.went_live(database, merchant.id, test_mode=True)
    changed = await change_merchant(database, merchant.id, pingback_url="https://account.example/")
    assert await send_waiting(database, changed, now=utc_now()) == 1
    assert (await find_tried_pingback(database, Shop(merchant.id, True), live))[0].url == "https://account.example/"
    changed = await change_merchant(database, merchant.id, test_pingback_url="https://test.example/")
    assert await send_waiting(database, changed, now=utc_now()) == 1
    assert (await find_tried_pingback(database, shop, test))[0].url == "https://test.example/"


async def test_what_raced_the_setting_of_a_url_is_sent_by_housekeeping(
    database: Database, shop: Shop, merchant: Merchant, queue: Any
) -> None:
    pingback_id = await queue(shop, None)
    await send_all_waiting(database, now=utc_now())
    assert (await find_tried_pingback(database, shop, pingback_id))[0].state == PingbackState.WAITING
    await change_merchant(database, merchant.id, pingback_url="https://shop.example/pingback")
    await send_all_waiting(database, now=utc_now())
    pingback, _ = await find_tried_pingback(database, shop, pingback_id)
    assert (pingback.state, pingback.url) == (PingbackState.DUE, "https://shop.example/pingback")


async def exhausted(
    database: Database, queue: Any, shop: Shop, url: str, number: int = 1, event: str = "payment"
) -> int:
    last = await queue(shop, url, number=number)
    await breaking.say(
        database,
        "pingback",
        {"merchant_id": shop.merchant_id, "live": shop.live, "state": "due"},
        state="exhausted",
        attempts=11,
        finished_at=utc_now(),
        event=event,
    )
    return int(last)


async def test_all_that_failed_is_sent_again_once_and_what_fails_again_stays_failed(
    database: Database, shop: Shop, sender: PingbackSender, receiver: Any, queue: Any
) -> None:
    await exhausted(database, queue, shop, f"{receiver.base}/good", 3)
    bad = await exhausted(database, queue, shop, f"{receiver.base}/bad")
    receiver.answers["/bad"] = [(500, b"")]
    now = utc_now()
    assert await count_exhausted(database, shop, Exhausted()) == 4
    assert await resend_exhausted(database, shop, Exhausted(), now=now) == 4
    assert await resend_exhausted(database, shop, Exhausted(), now=now) == 0
    assert await sender.send_due_once(now + timedelta(seconds=1)) == 4
    assert [len(receiver.at(path)) for path in ("/good", "/bad")] == [3, 1]
    assert (await find_tried_pingback(database, shop, bad))[0].state == PingbackState.EXHAUSTED
    assert await count_exhausted(database, shop, Exhausted()) == 1


async def test_only_failed_ones_of_the_event_and_the_days_are_sent_again(
    database: Database, shop: Shop, other_shop: Shop, queue: Any
) -> None:
    url = "https://shop.example/"
    refund = await exhausted(database, queue, shop, url, event="refund")
    payment = await exhausted(database, queue, shop, url)
    old = await exhausted(database, queue, shop, url)
    await set_back.times(database, "pingback", {"id": old}, created_at=utc_now() - timedelta(days=3))
    due = await queue(shop, url, due_at=utc_now() + timedelta(hours=1))
    stranger = await exhausted(database, queue, other_shop, url)
    now = utc_now()
    assert await count_exhausted(database, shop, Exhausted("refund")) == 1
    assert await resend_exhausted(database, shop, Exhausted("refund"), now=now) == 1
    assert (await find_tried_pingback(database, shop, refund))[0].state == PingbackState.DUE
    recent = Exhausted(since=now - timedelta(days=1))
    assert await count_exhausted(database, shop, recent) == 1
    assert await resend_exhausted(database, shop, recent, now=now) == 1
    assert (await find_tried_pingback(database, shop, payment))[0].state == PingbackState.DUE
    assert (await find_tried_pingback(database, shop, old))[0].state == PingbackState.EXHAUSTED
    assert (await find_tried_pingback(database, shop, due))[0].due_at > now
    assert (await find_tried_pingback(database, other_shop, stranger))[0].state == PingbackState.EXHAUSTED


async def test_what_is_reported_meanwhile_does_not_wait_for_all_that_is_sent_again(
    database: Database, shop: Shop, queue: Any
) -> None:
    await exhausted(database, queue, shop, "https://shop.example/", 300)
    now = utc_now()
    await resend_exhausted(database, shop, Exhausted(), now=now)
    fresh = await queue(shop, "https://shop.example/", due_at=now + timedelta(seconds=1))
    ahead = await database.fetchval(
        "select count(*) from pingback where merchant_id = $1 and due_at < (select due_at from pingback where id = $2)",
        shop.merchant_id,
        fresh,
    )
    assert 90 <= ahead <= 110


async def test_of_very_many_the_oldest_are_sent_again_first(
    database: Database, shop: Shop, queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paydesk.domain.pingbacks.resending_by_hand.MOST_AT_ONCE", 2)
    last = await exhausted(database, queue, shop, "https://shop.example/", 3)
    assert await resend_exhausted(database, shop, Exhausted(), now=utc_now()) == 2
    assert (await find_tried_pingback(database, shop, last))[0].state == PingbackState.EXHAUSTED


async def test_once_live_failed_test_pingbacks_go_to_the_test_url_or_nowhere(
    database: Database, shop: Shop, merchant: Merchant, queue: Any
) -> None:
    pingback_id = await exhausted(database, queue, shop, "https://form.example/")
    await set_back.went_live(database, merchant.id, test_mode=True)
    assert await count_exhausted(database, shop, Exhausted()) == 0
    assert await resend_exhausted(database, shop, Exhausted(), now=utc_now()) == 0
    await change_merchant(database, merchant.id, test_pingback_url="https://test.example/")
    assert await resend_exhausted(database, shop, Exhausted(), now=utc_now()) == 1
    assert (await find_tried_pingback(database, shop, pingback_id))[0].url == "https://test.example/"
