"""A merchant goes to another cell and comes back, or goes to one with a lower number: what is
newest comes first everywhere, each row once, and all goes on.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from tests import shopfront
from tests.breaking import say
from tests.domain.moving.play import HERE, THERE, Cell, Killed, Play, back, clean, going, killing
from tests.set_back import clock_runs_ahead, times
from tests.till import Till

from paydesk.app import create_app
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict
from paydesk.core.paging import LARGEST_ID
from paydesk.domain.billing.for_customer import past_payments
from paydesk.domain.business.deliveries_for_team import newest_deliveries
from paydesk.domain.business.key_pairs import public_keys
from paydesk.domain.business.payment_links import list_payment_links
from paydesk.domain.business.subscriptions_for_team import list_packages
from paydesk.domain.cells.directory import Kind, find_cell
from paydesk.domain.cells.ranges import FIRST_GIVEN, go_on_above, ranges_of
from paydesk.domain.coupons.coupons import CouponTerms
from paydesk.domain.coupons.keeping import make_coupon
from paydesk.domain.ledger.closing import close_ledger
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.keys import pairs_of, rotate
from paydesk.domain.moving import moving
from paydesk.domain.moving.cancelling import cancel_move
from paydesk.domain.moving.moving import move_merchant
from paydesk.domain.moving.steps import Step
from paydesk.domain.moving.tables import THEIRS

IDS = 10**13
EMPTY = CouponTerms("", Decimal(10), None, None, 1, None, None, None, None, ())
LISTS = ("payments", "subscriptions", "pingbacks", "coupons", "ledger")
"""The API's lists of what a shop makes, all of which come in pages."""


async def sell_a_little(play: Play, cell: Cell, name: str) -> None:
    """A little more of everything that lists show, an hour later."""
    till, database = Till(cell.desk, play.shop), cell.database
    hours = await database.fetchval("select test_clock from merchant where id = $1", play.merchant.id)
    await clock_runs_ahead(database, play.merchant.id, hours + timedelta(hours=1))
    now = utc_now() + hours + timedelta(hours=1)
    sold = await till.sell(f"sale-{name}", now=now)
    await till.give_back(sold, "1.00", f"{name}-back", now=now)
    await till.confirm(sold, now=now)
    await till.subscribe(
        replace(shopfront.MONTHLY, name=f"Club {name}", sku_id=f"club-{name}"), order=f"{name}-club", now=now
    )
    await shopfront.offer_link(database, play.shop, title=f"Link {name}")
    async with database.acquire() as connection, connection.transaction():
        await make_coupon(connection, play.shop, replace(EMPTY, code=f"CODE{name}"), now=now)
        newest = (await public_keys(database, play.merchant.id))[0]
        await rotate(connection, cell.vault, play.merchant.id, replaces=newest.id, grace=timedelta(0), now=utc_now())


async def there_and_back(play: Play) -> None:
    """Something is made in each of both cells, and again where the merchant began."""
    await sell_a_little(play, play.here, "A")
    await move_merchant(going(play))
    await sell_a_little(play, play.there, "B")
    await move_merchant(back(play))
    await sell_a_little(play, play.here, "C")


async def ids(cell: Cell, merchant_id: int) -> dict[str, set[int]]:
    """The ids of a merchant's rows, by table."""
    asked = (
        "select table_name from information_schema.columns"
        " where table_schema = 'public' and column_name = 'id' and table_name = any($1)"
    )
    names = [row["table_name"] for row in await cell.database.fetch(asked, list(THEIRS))]
    wanted = [name for name in names if name != "merchant"]
    found = {}
    for name in wanted:
        rows = await cell.database.fetch(f"select id from {name} where merchant_id = $1", merchant_id)
        found[name] = {row["id"] for row in rows}
    return found


async def test_what_is_newer_has_the_higher_id_wherever_it_was_made(joined: Play) -> None:
    known = await ids(joined.here, joined.merchant.id)
    made = 0
    for cell, name, move in ((joined.there, "B", going), (joined.here, "C", back), (joined.there, "D", going)):
        await move_merchant(move(joined))
        await sell_a_little(joined, cell, name)
        now_known = await ids(cell, joined.merchant.id)
        for table, seen in now_known.items():
            fresh = seen - known[table]
            made += len(fresh)
            assert not fresh or min(fresh) > max(known[table], default=0), (table, name)
        known = now_known
    assert made > 60


@asynccontextmanager
async def server_of(play: Play, cell: Cell) -> AsyncIterator[httpx.AsyncClient]:
    """The merchant's server at a cell's API, with its newest key."""
    app = create_app(cell.settings)
    async with app.router.lifespan_context(app) as given:

        async def with_state(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, "state": dict(given or {})}, receive, send)

        key = (await pairs_of(cell.database, cell.vault, play.merchant.id))[0][1]
        transport = httpx.ASGITransport(app=with_state, client=("192.0.2.10", 50000))
        async with httpx.AsyncClient(transport=transport, base_url="http://pay.test", headers={"X-ApiKey": key}) as web:
            yield web


async def all_pages(web: httpx.AsyncClient, path: str, limit: int) -> list[dict[str, Any]]:
    """A list to its end, page by page."""
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": limit}
    while True:
        answer = await web.get(f"/api/v1/{path}", params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["data"]
        if page["next_cursor"] is None:
            return found
        query = {"limit": limit, "cursor": page["next_cursor"]}


async def test_the_apis_lists_show_the_newest_first_and_each_once(joined: Play) -> None:
    await there_and_back(joined)
    async with server_of(joined, joined.here) as web:
        for name in LISTS:
            rows = await all_pages(web, name, limit=2)
            assert rows == await all_pages(web, name, limit=100), name
            assert len({json.dumps(row) for row in rows}) == len(rows), name
            if name == "ledger":
                places = [row["at"] for row in rows]
            else:
                places = [row.get("payment_order", row)["id"] for row in rows]
                assert {one // IDS for one in places} == {HERE, THERE, FIRST_GIVEN}, name
            assert places == sorted(places, reverse=True), name
            assert len(rows) >= 3, name


async def test_the_accounts_lists_show_the_newest_first_and_each_once(joined: Play) -> None:
    await there_and_back(joined)
    database, shop = joined.here.database, joined.shop

    async def links(before: int) -> list[tuple[int, str]]:
        found = await list_payment_links(database, shop, before=before, most=1)
        return [(one.id, one.offer.title) for one in found]

    async def packages(before: int) -> list[tuple[int, str]]:
        found = await list_packages(database, shop, before=before, most=1)
        return [(one.package.id, one.package.terms.name) for one in found]

    async def deliveries(before: int) -> list[tuple[int, str]]:
        found = await newest_deliveries(database, shop, before=before, most=1)
        return [(one.id, one.merchant_order_id) for one in found]

    for listed, newest in (
        (links, ["Link C", "Link B", "Link A"]),
        (packages, ["Club C", "Club B", "Club A"]),
        (deliveries, ["sale-C", "sale-B", "sale-A"]),
    ):
        before, seen = LARGEST_ID, []
        while page := await listed(before):
            before = page[0][0]
            seen.append(page[0][1])
        assert seen[:3] == newest
        assert len(seen) == len(set(seen))


async def test_the_newest_key_is_the_one_that_was_made_last(joined: Play) -> None:
    await there_and_back(joined)
    keys = await public_keys(joined.here.database, joined.merchant.id)
    assert [one.created_at for one in keys] == sorted([one.created_at for one in keys], reverse=True)
    assert [one.valid_until is None for one in keys] == [True, False, False, False]


async def renew(play: Play, cell: Cell) -> None:
    """A month has passed for whoever has subscribed."""
    await times(cell.database, "subscription", {"merchant_id": play.merchant.id}, date_next=utc_now())
    await shopfront.charge_round(cell.desk)


async def test_a_customer_sees_what_was_paid_last_first(joined: Play) -> None:
    await renew(joined, joined.here)
    await move_merchant(going(joined))
    await renew(joined, joined.there)
    await move_merchant(back(joined))
    await renew(joined, joined.here)
    (row,) = await joined.here.database.fetch("select id from subscription where merchant_id = $1", joined.merchant.id)
    held = await shopfront.find_subscription(joined.here.database, joined.shop, row["id"])
    before, seen = None, []
    while True:
        page = await past_payments(joined.here.database, held, before=before, most=1)
        seen += [one.period for one in page.shown]
        if page.older is None:
            break
        before = page.older
    assert seen == [4, 3, 2, 1]
    assert await clean(joined.here) == []


async def test_customers_hear_of_each_sale_once_wherever_it_was_untold(joined: Play) -> None:
    async def tell(cell: Cell) -> None:
        await tell_events(cell.database, real_now=utc_now(), keep_test=True)

    await tell(joined.here)
    for cell, name, move in ((joined.here, "A", going), (joined.there, "B", back), (joined.here, "C", going)):
        await Till(cell.desk, joined.shop).sell(f"{name}-told")
        await tell(cell)
        await Till(cell.desk, joined.shop).sell(f"{name}-untold")
        await move_merchant(move(joined))
    for _ in range(3):
        await tell(joined.there)
    rows = await joined.there.database.fetch(
        "select p.merchant_order_id as sale, count(*) as mails"
        " from mail m join payment p on p.merchant_id = m.merchant_id and m.once = 'receipt ' || p.id"
        " where p.merchant_order_id like '%told' group by 1 order by 1"
    )
    sales = [f"{name}-{how}" for name in "ABC" for how in ("told", "untold")]
    assert [(row["sale"], row["mails"]) for row in rows] == [(sale, 1) for sale in sales]


async def test_what_was_sold_elsewhere_is_given_back_and_balances_are_closed(joined: Play) -> None:
    await there_and_back(joined)
    till = Till(joined.here.desk, joined.shop)
    sold = {row["merchant_order_id"]: row["id"] for row in await till.payments()}
    for name in "ABC":
        await till.give_back(sold[f"sale-{name}"], "2.00", f"again-{name}")
    for _ in range(3):
        await close_ledger(joined.here.database)
    newest = await joined.here.database.fetchval("select max(id) from ledger_entry")
    assert await joined.here.database.fetchval("select closed_id from ledger_horizon") >= newest - 10
    assert (await clean(joined.here), await clean(joined.there)) == ([], [])


@pytest.mark.parametrize("step", list(Step)[:-1])
async def test_killed_on_the_way_back_the_same_command_goes_on(joined: Play, step: Step) -> None:
    await move_merchant(going(joined))
    with pytest.raises(Killed):
        await move_merchant(back(joined), passed=killing(step))
    assert [await joined.is_open(joined.here), await joined.is_open(joined.there)].count(True) <= 1
    await move_merchant(back(joined))
    assert (await joined.is_open(joined.here), await joined.is_open(joined.there)) == (True, False)
    assert await Till(joined.here.desk, joined.shop).sell("C-1")
    assert (await clean(joined.here), await clean(joined.there)) == ([], [])
    found = await find_cell(joined.here.database, Kind.merchant, str(joined.merchant.id))
    assert found is not None
    assert found.number == HERE


async def test_who_does_not_come_back_after_all_leaves_the_keys_that_banks_know(joined: Play) -> None:
    async def known() -> set[str]:
        rows = await joined.here.database.fetch("select idempotency_key from forgotten_attempt")
        return {row["idempotency_key"] for row in rows}

    await move_merchant(going(joined))
    before = await known()
    assert before
    with pytest.raises(Killed):
        await move_merchant(back(joined), passed=killing(Step.followed))
    assert await known() >= before, "while the copy comes, the books here are compared with the bank's"
    await cancel_move(back(joined))
    assert await known() >= before
    assert (await joined.is_open(joined.here), await joined.is_open(joined.there)) == (False, True)
    assert set((await joined.rows(joined.here, joined.merchant.id)).values()) == {"[]"}
    await move_merchant(back(joined))
    assert await joined.is_open(joined.here)


async def test_a_cell_that_went_above_meanwhile_is_overtaken_before_the_merchant_is_there(joined: Play) -> None:
    """Another merchant's move, the other way round."""
    home = joined.here.database

    async def overtake() -> None:
        await go_on_above(home, joined.here.database, HERE, THERE, now=utc_now())
        await Till(joined.here.desk, joined.shop).sell("late")

    with pytest.raises(Killed):
        await move_merchant(going(joined), passed=killing(Step.followed))
    await overtake()
    moved = await move_merchant(going(joined))
    assert moved.ids == FIRST_GIVEN + 1
    late = await joined.there.database.fetchval("select id from payment where merchant_order_id = 'late'")
    assert await Till(joined.there.desk, joined.shop).sell("later") > late


async def test_each_turn_takes_one_range_and_who_follows_takes_none(joined: Play) -> None:
    assert (await move_merchant(going(joined))).ids is None
    assert (await move_merchant(back(joined))).ids == FIRST_GIVEN
    beside = await shopfront.buy(joined.here.desk, joined.beside)
    assert beside // IDS == FIRST_GIVEN
    assert (await move_merchant(replace(going(joined), merchant_id=joined.beside.merchant_id))).ids == FIRST_GIVEN + 1
    assert (await move_merchant(going(joined))).ids is None


async def test_without_a_directory_it_goes_up_alone(play: Play) -> None:
    await move_merchant(play.move)
    with pytest.raises(Conflict, match=r"gives out smaller ids than cell 2.*add both, by paydesk cell add"):
        await move_merchant(replace(back(play), home=None))
    assert (await play.is_open(play.there), (await ranges_of(play.here.database)).highest) == (True, HERE)


@pytest.mark.parametrize("error", [Conflict("there is no range above that"), ConnectionRefusedError("home is away")])
async def test_who_can_not_go_on_above_is_not_left_closed(
    joined: Play, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def none_left(*_: object) -> int:
        raise error

    with pytest.raises(Killed):
        await move_merchant(going(joined), passed=killing(Step.closed))
    monkeypatch.setattr(moving, "_go_on_above", none_left)
    with pytest.raises(type(error), match=str(error)):
        await move_merchant(going(joined))
    assert (await joined.is_open(joined.here), await joined.is_open(joined.there)) == (True, False)


async def test_what_was_changed_elsewhere_is_what_comes_back(joined: Play) -> None:
    await move_merchant(going(joined))
    await say(joined.there.database, "merchant", {"id": joined.merchant.id}, name="Renamed there")
    await say(joined.there.database, "payment", {"merchant_order_id": "A-1"}, revision=77)
    left = json.loads((await joined.rows(joined.there, joined.merchant.id))["payment"])
    await move_merchant(back(joined))
    came = json.loads((await joined.rows(joined.here, joined.merchant.id))["payment"])
    assert came == left
    assert await joined.here.database.fetchval("select name from merchant where id = $1", joined.merchant.id) == (
        "Renamed there"
    )
