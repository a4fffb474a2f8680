"""Mails about what was committed: each event is told once, whatever is lost, late or done twice."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests import breaking, set_back, shopfront
from tests.breaking import refusing
from tests.lengths import long
from tests.links import newest_portal
from tests.shopfront import choose_mails
from tests.till import Till

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.billing.charging_differences import AtOnce, change_and_charge
from paydesk.domain.mail.telling import SWEEP_AFTER, TOLD_FOR, tell_events, tell_failing
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.refunding import refund
from paydesk.domain.subscriptions.changing_plans import Plan
from paydesk.domain.subscriptions.ending import cancel
from paydesk.domain.subscriptions.items import WantedItem, add_item

CARD, FAILS_LATER, DECLINED = "4242424242424242", "4000000000000341", "4000000000000002"


async def buy(
    desk: Desk, shop: Shop, order: str, *, number: str = CARD, language: str = "de-CH", email: str = "ada@example.com"
) -> None:
    link = await shopfront.order(desk.database, shop, order, currency="EUR")
    await shopfront.pay(desk, link, number, language=language, email=email)


async def tell(database: Database, **options: Any) -> None:
    usual: dict[str, Any] = {"real_now": utc_now(), "keep_test": True}
    await tell_events(database, **{**usual, **options})


async def fail(database: Database, **options: Any) -> None:
    usual: dict[str, Any] = {"real_now": utc_now(), "keep_test": True}
    await tell_failing(database, **{**usual, **options})


async def told(database: Database, shop: Shop) -> list[Mapping[str, Any]]:
    rows = await database.fetch("select * from mail where merchant_id = $1 order by id", shop.merchant_id)
    return [{**dict(row), "facts": json.loads(row["facts"])} for row in rows]


async def kinds(database: Database, shop: Shop) -> list[str]:
    return [row["kind"] for row in await told(database, shop)]


async def test_a_payment_at_the_checkout_brings_a_receipt_in_the_pages_language(desk: Desk, shop: Shop) -> None:
    await buy(desk, shop, "A1")
    await tell(desk.database)
    (mail,) = await told(desk.database, shop)
    assert (mail["kind"], mail["recipient"], mail["language"]) == ("receipt", "ada@example.com", "de-CH")
    facts = mail["facts"]
    assert (facts["amount"], facts["currency"], facts["description"]) == ("10", "EUR", "A mug")
    assert (facts["merchant_order_id"], facts["brand"], facts["last4"]) == ("A1", "visa", "4242")
    assert (facts["name"], facts["reserved"], facts["package"]) == ("Ada Lovelace", False, None)


async def test_the_receipt_of_a_difference_names_the_plan_that_it_is_for(subscriber: Till, shop: Shop) -> None:
    begun = await subscriber.subscribe()
    plan = Plan(sku_id="pro", name="Pro", price="30.00")
    await change_and_charge(subscriber.desk, shop, AtOnce(begun.id, plan, by="api", now=utc_now()))
    await tell(subscriber.database)
    (facts,) = [mail["facts"] for mail in await told(subscriber.database, shop) if mail["kind"] == "receipt"]
    assert (facts["amount"], facts["description"]) == ("20", "Pro")
    assert facts["merchant_order_id"] == "club-1:plan-1"


async def test_a_period_that_begins_at_once_brings_one_receipt(subscriber: Till, shop: Shop) -> None:
    begun = await subscriber.subscribe()
    plan = Plan(sku_id="year", name="Yearly", price="100.00", period="1y")
    await change_and_charge(subscriber.desk, shop, AtOnce(begun.id, plan, by="api", now=utc_now()))
    await tell(subscriber.database)
    mails = [(mail["kind"], mail["facts"]["amount"]) for mail in await told(subscriber.database, shop)]
    assert sorted(mails) == [("receipt", "90"), ("subscription_started", "10")]


async def test_a_declined_payment_brings_no_mail(desk: Desk, shop: Shop) -> None:
    await buy(desk, shop, "A1", number=DECLINED)
    await tell(desk.database)
    assert await told(desk.database, shop) == []


async def test_a_subscription_tells_its_start_its_renewals_and_its_end(subscriber: Till, shop: Shop) -> None:
    database = subscriber.desk.database
    subscription = await subscriber.subscribe()
    await tell(database)
    await subscriber.charge_due(subscription)
    await tell(database)
    await cancel(database, shop, subscription.id, by="customer", now=utc_now())
    await tell(database)
    mails = await told(database, shop)
    assert [mail["kind"] for mail in mails] == ["subscription_started", "renewal_receipt", "subscription_cancelled"]
    started = mails[0]["facts"]
    assert (started["package"], started["terms_agreed"], started["amount"]) == ("Coffee club", "ok", "10")
    assert started["date_next"]
    link = await newest_portal(database, shop.merchant_id)
    assert [mail["facts"]["portal"] for mail in mails] == [{"id": subscription.id, "seed": link.seed}] * 3
    assert [mail["facts"]["portal_token"] for mail in mails] == [None] * 3, "the link rests nowhere"


async def test_a_receipt_says_what_was_charged_once_besides_the_price(subscriber: Till, shop: Shop) -> None:
    database = subscriber.desk.database
    subscription = await subscriber.subscribe()
    wanted = WantedItem(Decimal("5.00"), "Set-up")
    await add_item(database, shop, subscription.id, wanted, by="api", now=subscription.date_start)
    await subscriber.charge_due(subscription)
    await tell(database)
    facts = {mail["kind"]: mail["facts"] for mail in await told(database, shop)}
    assert facts["renewal_receipt"]["items"] == [{"amount": "5", "description": "Set-up"}]
    assert facts["renewal_receipt"]["amount"] == "15"
    assert facts["subscription_started"]["items"] is None


async def test_a_failing_renewal_is_told_once_for_its_period_and_the_stop_once(subscriber: Till, shop: Shop) -> None:
    database = subscriber.desk.database
    subscription = await subscriber.subscribe(number=FAILS_LATER)
    for _ in range(3):
        await subscriber.charge_due(subscription)
        await fail(database)
        await fail(database)
    await tell(database)
    assert await kinds(database, shop) == ["renewal_failed", "subscription_started"]
    await subscriber.charge_due(subscription)
    await fail(database)
    await tell(database)
    mails = await told(database, shop)
    assert [mail["kind"] for mail in mails] == ["renewal_failed", "subscription_started", "subscription_stopped"]
    assert (mails[0]["facts"]["amount"], mails[0]["facts"]["last4"]) == ("10", "0341")


async def test_who_is_paused_by_the_last_try_is_told_how_to_pay(subscriber: Till, shop: Shop) -> None:
    database = subscriber.desk.database
    await change_merchant(database, shop.merchant_id, dunning_end=DunningEnd.PAUSE)
    subscription = await subscriber.subscribe(number=FAILS_LATER)
    for _ in range(4):
        await subscriber.charge_due(subscription)
    await fail(database)
    mails = [mail for mail in await told(database, shop) if mail["kind"] == "renewal_failed"]
    assert [(mail["facts"]["end"], mail["facts"]["date_next"]) for mail in mails] == [("pause", None)]


async def test_eight_workers_at_once_tell_each_event_once(desk: Desk, shop: Shop) -> None:
    for number in range(12):
        await buy(desk, shop, f"A{number}")
    await asyncio.gather(*(tell(desk.database, most_events=5) for _ in range(8)))
    mails = await told(desk.database, shop)
    assert sorted(mail["facts"]["merchant_order_id"] for mail in mails) == sorted(f"A{n}" for n in range(12))


async def test_looking_again_tells_nothing_again(desk: Desk, shop: Shop) -> None:
    await buy(desk, shop, "A1")
    for _ in range(3):
        await tell(desk.database)
    await breaking.say(desk.database, "mail_place", {"merchant_id": shop.merchant_id}, read_to=0, swept_to=0)
    await tell(desk.database)
    assert await kinds(desk.database, shop) == ["receipt"]


async def test_what_is_committed_late_is_told_all_the_same(desk: Desk, shop: Shop) -> None:
    """An id that was drawn first is committed last, after a look has gone past it."""
    database, now = desk.database, utc_now()
    await tell(database)
    await buy(desk, shop, "early")
    early = await database.fetchrow("select * from pingback where merchant_id = $1", shop.merchant_id)
    # Nobody else sees it, as if its transaction were still open.
    await database.execute("delete from pingback where merchant_id = $1", shop.merchant_id)
    await buy(desk, shop, "later")
    await tell(database, real_now=now)
    assert [mail["facts"]["merchant_order_id"] for mail in await told(database, shop)] == ["later"]
    names = ", ".join(early.keys())
    marks = ", ".join(f"${number}" for number in range(1, len(early) + 1))
    await database.execute(f"insert into pingback ({names}) values ({marks})", *early.values())
    await tell(database, real_now=now + SWEEP_AFTER / 2)
    assert len(await told(database, shop)) == 1
    await tell(database, real_now=now + SWEEP_AFTER)
    assert [mail["facts"]["merchant_order_id"] for mail in await told(database, shop)] == ["later", "early"]


async def test_a_long_sweep_goes_on_where_it_stopped(desk: Desk, shop: Shop) -> None:
    database, now = desk.database, utc_now()
    for number in range(7):
        await buy(desk, shop, f"A{number}")
    await tell(database, real_now=now, most_events=2)
    await database.execute("delete from mail where merchant_id = $1", shop.merchant_id)
    await tell(database, real_now=now + SWEEP_AFTER, most_events=2)
    await tell(database, real_now=now + 2 * SWEEP_AFTER, most_events=2)
    assert len(await told(database, shop)) == 7
    place = await database.fetchrow("select * from mail_place where merchant_id = $1", shop.merchant_id)
    assert place["read_to"] == place["swept_to"] == place["sweep_to"]


async def test_an_idle_merchant_costs_no_writing(desk: Desk, shop: Shop) -> None:
    await buy(desk, shop, "A1")
    now = utc_now()
    await tell(desk.database, real_now=now)
    await tell(desk.database, real_now=now + SWEEP_AFTER)
    version = "select xmin::text from mail_place where merchant_id = $1"
    before = await desk.database.fetchval(version, shop.merchant_id)
    await tell(desk.database, real_now=now + 5 * SWEEP_AFTER)
    assert await desk.database.fetchval(version, shop.merchant_id) == before


async def test_test_mails_never_go_to_made_up_addresses_by_a_mail_server(desk: Desk, shop: Shop) -> None:
    await buy(desk, shop, "A1")
    await tell(desk.database, keep_test=False)
    assert await told(desk.database, shop) == []
    await choose_mails(desk.database, shop, customer_mails=True, test_mails=True)
    await buy(desk, shop, "A2")
    await tell(desk.database, keep_test=False)
    (mail,) = await told(desk.database, shop)
    assert (mail["recipient"], mail["facts"]["merchant_order_id"]) == ("owner@shop.example", "A2")


async def test_live_customers_are_written_to_themselves(desk: Desk, shop: Shop) -> None:
    live = replace(desk, live_acquirer="simulator")
    side = replace(shop, live=True)
    await buy(live, side, "A1")
    await tell(desk.database, keep_test=False)
    (mail,) = await told(desk.database, shop)
    assert (mail["recipient"], mail["live"]) == ("ada@example.com", True)


async def test_a_merchant_that_writes_its_own_mails_can_switch_ours_off(subscriber: Till, shop: Shop) -> None:
    database = subscriber.desk.database
    await choose_mails(database, shop, customer_mails=False, test_mails=False)
    subscription = await subscriber.subscribe(number=FAILS_LATER)
    await subscriber.charge_due(subscription)
    await tell(database)
    await fail(database)
    assert await told(database, shop) == []


async def test_what_happened_days_ago_is_not_told_any_more(desk: Desk, shop: Shop) -> None:
    await buy(desk, shop, "A1")
    await tell(desk.database, real_now=utc_now() + TOLD_FOR + timedelta(minutes=1))
    assert await told(desk.database, shop) == []


async def test_an_erased_customer_is_not_written_to(desk: Desk, shop: Shop) -> None:
    await buy(desk, shop, "A1")
    await set_back.times(desk.database, "customer", {"merchant_id": shop.merchant_id}, erased_at=utc_now())
    await tell(desk.database)
    assert await told(desk.database, shop) == []


async def test_merchants_never_hear_of_each_other(desk: Desk, shop: Shop, other_shop: Shop) -> None:
    await buy(desk, shop, "A1")
    await buy(desk, other_shop, "A1", email="bob@example.com")
    await tell(desk.database)
    assert [mail["recipient"] for mail in await told(desk.database, shop)] == ["ada@example.com"]
    assert [mail["recipient"] for mail in await told(desk.database, other_shop)] == ["bob@example.com"]


async def _failing(database: Database, shop: Shop, *, attempts: int, url: str = "https://shop.example/pb") -> None:
    key_id = await database.fetchval("select id from merchant_key where merchant_id = $1", shop.merchant_id)
    await database.execute(
        """
        insert into pingback (merchant_id, live, event, url, sign_version, key_id, format, payload, state, attempts,
                              due_at, created_at)
        values ($1, $2, 'test', $3, 'v1', $4, 'json', '{}', 'due', $5, now() + interval '1 day', now())
        """,
        shop.merchant_id,
        shop.live,
        url,
        key_id,
        attempts,
    )


async def test_a_server_that_keeps_failing_is_told_to_its_merchant_once_a_day(database: Database, shop: Shop) -> None:
    await _failing(database, shop, attempts=3)
    now = utc_now()
    await fail(database, real_now=now)
    await fail(database, real_now=now)
    (mail,) = await told(database, shop)
    assert (mail["kind"], mail["recipient"], mail["live"]) == ("failing_endpoint", "owner@shop.example", False)
    assert (mail["facts"]["url"], mail["facts"]["attempts"]) == ("https://shop.example/pb", 3)
    await fail(database, real_now=now + timedelta(days=1))
    assert len(await told(database, shop)) == 2


async def _taken(database: Database, shop: Shop, *, url: str = "https://shop.example/pb") -> None:
    """The server takes a pingback that was made now."""
    await _failing(database, shop, attempts=1, url=url)
    await database.execute(
        "update pingback set state = 'acknowledged', finished_at = now()"
        " where merchant_id = $1 and id = (select max(id) from pingback where merchant_id = $1)",
        shop.merchant_id,
    )


async def test_a_pingback_that_fails_while_later_ones_arrive_is_not_the_endpoints_trouble(
    database: Database, shop: Shop
) -> None:
    await _failing(database, shop, attempts=7)
    await _taken(database, shop)
    await fail(database)
    assert await told(database, shop) == []
    await _failing(database, shop, attempts=4)
    await fail(database)
    (mail,) = await told(database, shop)
    assert mail["facts"]["attempts"] == 4


async def test_each_url_is_judged_by_itself(database: Database, shop: Shop) -> None:
    await _failing(database, shop, attempts=3)
    await _failing(database, shop, attempts=5, url="https://other.example/pb")
    await _taken(database, shop)
    await _failing(database, shop, attempts=3, url="https://third.example/pb")
    await fail(database)
    urls = [mail["facts"]["url"] for mail in await told(database, shop)]
    assert sorted(urls) == ["https://other.example/pb", "https://third.example/pb"]


async def test_trouble_around_midnight_is_told_once(database: Database, shop: Shop) -> None:
    await _failing(database, shop, attempts=3)
    late = utc_now().replace(hour=23, minute=59, second=50)
    await fail(database, real_now=late)
    await fail(database, real_now=late + timedelta(seconds=20))
    assert len(await told(database, shop)) == 1


async def test_what_is_sent_again_by_hand_alarms_nobody(database: Database, shop: Shop) -> None:
    await _failing(database, shop, attempts=11)
    await fail(database)
    assert await told(database, shop) == []


async def test_a_single_failure_alarms_nobody(database: Database, shop: Shop) -> None:
    await _failing(database, shop, attempts=2)
    await fail(database)
    assert await told(database, shop) == []


async def test_a_failing_test_server_is_told_only_to_who_wants_test_mails(database: Database, shop: Shop) -> None:
    await _failing(database, shop, attempts=9, url=f"https://{secrets.token_hex(4)}.example/")
    await fail(database, keep_test=False)
    assert await told(database, shop) == []


async def untold(till: Till) -> list[tuple[str, int, bool]]:
    """Each alarm's subject, how often it was raised, and whether it is open."""
    return [(row["subject"], row["times"], row["settled_at"] is None) for row in await till.rows("alarm")]


async def pingback_of(database: Database, shop: Shop, order: str) -> int:
    return int(
        await database.fetchval(
            "select b.id from pingback b join payment p on p.merchant_id = b.merchant_id and p.id = b.payment_id"
            " where b.merchant_id = $1 and p.merchant_order_id = $2",
            shop.merchant_id,
            order,
        )
    )


@long
async def test_one_event_that_can_not_be_told_holds_back_no_other_mail(
    desk: Desk, shop: Shop, other_shop: Shop, database: Database
) -> None:
    await tell(database)
    for order in ("A1", "A2", "A3"):
        await buy(desk, shop, order)
    await buy(desk, other_shop, "A1")
    odd = f"merchant_id = {shop.merchant_id} and facts->>'merchant_order_id' = 'A2'"
    async with refusing(database, "mail", odd):
        for _ in range(3):
            await tell(database)
        assert await kinds(database, other_shop) == ["receipt"]
        assert [mail["facts"]["merchant_order_id"] for mail in await told(database, shop)] == ["A1", "A3"]
        await buy(desk, shop, "A4")
        await tell(database, real_now=utc_now() + timedelta(minutes=5))
        assert [mail["facts"]["merchant_order_id"] for mail in await told(database, shop)] == ["A1", "A3", "A4"]
        subject = f"mail of pingback {await pingback_of(database, shop, 'A2')}"
        assert await untold(Till(desk, shop)) == [(subject, 1, True)]
        await tell(database, real_now=utc_now() + timedelta(hours=2))
        assert await untold(Till(desk, shop)) == [(subject, 2, True)], "it was tried again"
    await tell(database)
    assert len(await kinds(database, shop)) == 3, "not at once"
    await tell(database, real_now=utc_now() + timedelta(days=5))
    assert [mail["facts"]["merchant_order_id"] for mail in await told(database, shop)] == ["A1", "A3", "A4", "A2"]
    assert await untold(Till(desk, shop)) == [(subject, 2, False)]


async def test_one_refund_that_can_not_be_told_holds_back_no_other(
    desk: Desk, shop: Shop, other_shop: Shop, database: Database
) -> None:
    await tell(database)
    for here, order in ((shop, "A1"), (shop, "A2"), (other_shop, "A1")):
        await buy(desk, here, order)
        payment_id = await database.fetchval("select max(id) from payment where merchant_id = $1", here.merchant_id)
        await refund(desk, here, payment_id, None, requested_by="api", now=utc_now())
    odd = f"kind = 'refund' and merchant_id = {shop.merchant_id} and facts->>'merchant_order_id' = 'A1'"
    async with refusing(database, "mail", odd):
        await tell(database)
        await tell(database)
        assert await kinds(database, other_shop) == ["receipt", "refund"]
        assert await kinds(database, shop) == ["receipt", "receipt", "refund"]
        first = await database.fetchval("select min(id) from movement where merchant_id = $1", shop.merchant_id)
        assert await untold(Till(desk, shop)) == [(f"mail of refund {first}", 1, True)]
    await tell(database, real_now=utc_now() + timedelta(hours=2))
    assert (await kinds(database, shop)).count("refund") == 2


@long
async def test_one_failing_renewal_or_endpoint_that_can_not_be_told_holds_back_no_other(
    subscriber: Till, shop: Shop, other_shop: Shop, database: Database
) -> None:
    await tell(database)
    ids = []
    for order in ("club-1", "club-2"):
        subscription = await subscriber.subscribe(number=FAILS_LATER, order=order)
        await subscriber.charge_due(subscription)
        ids.append(subscription.id)
    for here in (shop, other_shop):
        await _failing(database, here, attempts=3)
    odd = f"merchant_id = {shop.merchant_id} and (kind = 'failing_endpoint' or once like '% {min(ids)} %')"
    async with refusing(database, "mail", odd):
        await fail(database)
        await fail(database)
        assert (await kinds(database, shop)).count("renewal_failed") == 1
        assert await kinds(database, other_shop) == ["failing_endpoint"]
        assert await untold(subscriber) == [
            (f"mail of renewal of subscription {min(ids)}", 1, True),
            (f"mails of failing endpoints of merchant {shop.merchant_id}", 1, True),
        ]
    await fail(database, real_now=utc_now() + timedelta(hours=2))
    assert (await kinds(database, shop)).count("renewal_failed") == 2
    assert (await kinds(database, shop)).count("failing_endpoint") == 1
