from __future__ import annotations

import errno
import os
import re
import shlex
from typing import Any, NoReturn

import asyncpg
import pytest
import typer

from paydesk.database.pool import Database
from paydesk.domain.billing import charging_differences
from paydesk.domain.subscriptions import items


async def test_a_subscription_is_shown_as_pingbacks_show_it_with_its_portal(paydesk: Any, subscription: int) -> None:
    said = await paydesk("subscription", "show", subscription, "--json")
    assert (said.status, said.err) == (0, "")
    assert (said.result["id"], said.result["status"], said.result["price"]) == (subscription, "Active", "10.00")
    assert said.result["package"]["sku_id"] == "club"
    assert re.fullmatch(r"http://127\.0\.0\.1:8000/sandbox/portal/t[0-9a-f]+-[0-9a-f]{48}", said.result["portal_url"])


async def test_facts_for_people_name_the_customer_s_page(paydesk: Any, subscription: int) -> None:
    said = await paydesk("subscription", "show", subscription)
    assert "10.0000 USD" not in said.out
    assert "10.00 USD every 1 month" in said.out
    assert "/portal/t" in said.out


async def test_the_list_can_be_narrowed(
    paydesk: Any, subscription: int, account: dict[str, Any], database: Database
) -> None:
    async def listed(*options: object) -> list[int]:
        result = (await paydesk("subscription", "list", account["id"], "--json", *options)).result
        return [one["id"] for one in result]

    assert await listed() == await listed("--state", "Active") == await listed("--test") == [subscription]
    assert await listed("--state", "Cancelled") == await listed("--live") == []
    everybody = (await paydesk("subscription", "list", "--json", "--last", 1)).result
    assert [(one["merchant_id"], one["id"], one["live"]) for one in everybody] == [(account["id"], subscription, False)]


async def test_a_list_for_people_is_a_table(paydesk: Any, subscription: int, account: dict[str, Any]) -> None:
    titles, row = (await paydesk("subscription", "list", account["id"])).out.splitlines()
    assert titles.split()[:4] == ["id", "merchant", "mode", "state"]
    assert row.split()[:5] == [str(subscription), str(account["id"]), "test", "Active", "club"]


async def test_cancelling_twice_says_the_same_and_tells_the_merchant_once(
    paydesk: Any, subscription: int, database: Database
) -> None:
    first, second = [await paydesk("subscription", "cancel", subscription, "--json") for _ in range(2)]
    assert first.result == second.result
    assert first.result["status"] == "Cancelled"
    assert first.result["date_cancelled"] > 0
    told = await database.fetchval(
        "select count(*) from pingback where subscription_id = $1 and event = 'subscription_cancelled'", subscription
    )
    assert told == 1


async def test_something_is_charged_once_with_the_next_charge_or_taken_back(paydesk: Any, subscription: int) -> None:
    seen = (await paydesk("subscription", "item", "add", subscription, "5.00", "Set-up", "--preview", "--json")).result
    assert (seen["item"], seen["next_charge_amount"]) == (None, "15.00")
    added = (await paydesk("subscription", "item", "add", subscription, "5.00", "Set-up", "--json")).result
    (listed,) = (await paydesk("subscription", "item", "list", subscription, "--json")).result
    assert listed == added["item"]
    assert (listed["amount"], listed["status"]) == ("5.00", "waiting")
    back = await paydesk("subscription", "item", "take-back", subscription, listed["id"])
    assert f"item {listed['id']}, 5.00 USD, is taken_back" in back.out
    assert f"the next charge of subscription {subscription} is 10.00 USD" in back.out
    thousands = await paydesk("subscription", "item", "add", subscription, "5.000", "Another", "--preview")
    assert "may mean thousands" in thousands.err
    wrong = await paydesk("subscription", "item", "add", subscription, "5.001", "Set-up")
    assert wrong.status != 0
    assert "decimal" in wrong.err


async def test_a_preview_of_an_item_that_broke_off_is_run_again_as_one(
    paydesk: Any, subscription: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    wish = ("subscription", "item", "add", subscription, "5.00", "A set-up", "--preview")
    with monkeypatch.context() as full:
        full.setattr(typer, "echo", no_room)
        said = await paydesk(*wish)
    assert said.status == 1
    if "run: paydesk " in said.err:
        again = await paydesk(*shlex.split(said.err.rsplit("run: paydesk ", 1)[1]))
        assert (again.status, "this is a preview" in again.err) == (0, True)
    assert (await paydesk("subscription", "item", "list", subscription, "--json")).result == []


async def test_an_item_whose_answer_was_lost_is_run_again_under_its_key_and_charged_once(
    paydesk: Any, subscription: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = items.queries.add_item

    async def add_and_lose(database: Any, **asked: Any) -> None:
        await honest(database, **asked)
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    with monkeypatch.context() as broken:
        broken.setattr(items.queries, "add_item", add_and_lose)
        said = await paydesk("subscription", "item", "add", subscription, "5.00", "A set-up")
    assert (said.status, "it is safe to run" in said.err) == (1, True)
    again = shlex.split(said.err.rsplit("run: paydesk ", 1)[1])
    assert again[:-1] == ["subscription", "item", "add", str(subscription), "5.00", "A set-up", "--key"]
    assert (await paydesk(*again)).status == 0
    (listed,) = (await paydesk("subscription", "item", "list", subscription, "--json")).result
    assert listed["description"] == "A set-up"
    other = await paydesk("subscription", "item", "add", subscription, "6.00", "Another", "--key", again[-1])
    assert (other.status, "came with another request" in other.err) == (1, True)


async def test_an_item_that_broke_off_before_it_said_anything_is_run_again_and_charged_once(
    paydesk: Any, subscription: int, account: dict[str, Any]
) -> None:
    wish = ("subscription", "item", "add", subscription, "5.00", "A set-up")
    assert (await paydesk(*wish)).status == 0
    again = await paydesk(*wish)
    assert (again.status, "this was added before; another one needs a --key" in again.err) == (0, True)
    (listed,) = (await paydesk("subscription", "item", "list", subscription, "--json")).result
    await paydesk("subscription", "item", "take-back", subscription, listed["id"])
    assert "is waiting" in (await paydesk(*wish)).out, "what was taken back is wished anew"
    await paydesk(*wish, "--key", "one-more")
    await paydesk("clock", "advance", account["id"], "1m")
    added = await paydesk(*wish)
    assert ("is waiting" in added.out, added.err) == (True, ""), "what was charged comes once more"
    found = (await paydesk("subscription", "item", "list", subscription, "--json")).result
    assert sorted(one["status"] for one in found) == ["charged", "charged", "taken_back", "waiting"]


@pytest.mark.parametrize("first", [(), ("--key", "mine")], ids=["without a key", "under one"])
async def test_an_item_is_the_same_one_as_any_equal_one_that_waits(
    paydesk: Any, subscription: int, first: tuple[str, ...]
) -> None:
    wish = ("subscription", "item", "add", subscription, "5.00", "A set-up")
    kept = (await paydesk(*wish, *first, "--json")).result["item"]
    other = (await paydesk(*wish, "--key", "one-more", "--json")).result["item"]
    await paydesk("subscription", "item", "take-back", subscription, other["id"])
    again = await paydesk(*wish, "--json")
    assert (again.status, again.result["item"]) == (0, kept)
    assert "this was added before; another one needs a --key" in again.err
    found = (await paydesk("subscription", "item", "list", subscription, "--json")).result
    assert sorted(one["status"] for one in found) == ["taken_back", "waiting"]


async def test_cancelling_under_a_test_clock_carries_its_time(
    paydesk: Any, subscription: int, account: dict[str, Any]
) -> None:
    await paydesk("clock", "advance", account["id"], "3m")
    shown = (await paydesk("subscription", "cancel", subscription, "--json")).result
    assert shown["date_cancelled"] >= shown["date_paid"] > shown["date_start"]


async def test_an_unknown_subscription_is_one_line(paydesk: Any) -> None:
    for word in ("show", "cancel"):
        said = await paydesk("subscription", word, 10**12)
        assert (said.status, said.err) == (
            1,
            f"paydesk: there is no subscription {10**12}; see: paydesk subscription list\n",
        )
    assert (await paydesk("subscription", "list", 10**12)).status == 1


async def test_what_was_missed_is_shown_and_charged_whole_if_that_is_wanted(
    subscription: int, account: dict[str, Any], paydesk: Any, database: Database
) -> None:
    await database.execute(
        "update subscription set anchor = anchor - interval '4 months', date_next = date_next - interval '4 months'"
        " where id = $1",
        subscription,
    )
    (one,) = (await paydesk("subscription", "missed", account["id"], "--test", "--json")).result
    assert (one["currency"], one["subscriptions"], one["once"]) == ("USD", 1, 10)
    assert one["periods"] >= 3
    assert one["skipped"] == one["periods"] - 1
    assert await database.fetchval("select charge_missed_until from merchant where id = $1", account["id"]) is None
    said = await paydesk("subscription", "missed", account["id"], "--test", "--charge-all")
    assert "every period that is due is charged" in said.err
    assert await database.fetchval("select charge_missed_until from merchant where id = $1", account["id"]) is not None


async def test_it_ends_with_its_period_unless_that_is_undone(
    paydesk: Any, subscription: int, account: dict[str, Any], database: Database
) -> None:
    before = (await paydesk("subscription", "show", subscription, "--json")).result
    seen = (await paydesk("subscription", "cancel", subscription, "--at-period-end", "--preview", "--json")).result
    assert (seen["preview"], seen["change_request"]["at"]) == (True, before["date_next"])
    assert (await paydesk("subscription", "show", subscription, "--json")).result == before
    said = await paydesk("subscription", "cancel", subscription, "--at-period-end")
    assert "nothing is charged any more" in said.out
    kept = (await paydesk("subscription", "undo", subscription, "--json")).result
    assert (kept["date_next"], kept["change_request"]) == (before["date_next"], None)
    ending = (await paydesk("subscription", "cancel", subscription, "--at-period-end", "--json")).result
    assert (ending["status"], ending["cancel_delay"] > 0) == ("Active", True)
    journey = await paydesk("clock", "advance", account["id"], "2m", "--json")
    assert journey.result["counts"]["subscription_cancelled"] == 1
    assert "payment" not in journey.result["counts"]
    ended = (await paydesk("subscription", "show", subscription, "--json")).result
    assert (ended["status"], ended["date_cancelled"]) == ("Cancelled", before["date_next"])


async def test_a_pause_is_over_on_its_day_and_its_time_is_added(
    paydesk: Any, subscription: int, account: dict[str, Any]
) -> None:
    before = (await paydesk("subscription", "show", subscription, "--json")).result
    until = before["date_next"] + 40 * 86400
    paused = (await paydesk("subscription", "pause", subscription, "--until", until, "--json")).result
    assert (paused["date_next"], paused["change_request"]["at"]) == (0, until)
    away = until - paused["change_request"]["since"]
    replaced = (await paydesk("subscription", "pause", subscription, "--json")).result["replaced"]
    assert replaced["at"] == until
    await paydesk("subscription", "pause", subscription, "--until", until)
    journey = await paydesk("clock", "advance", account["id"], "4m", "--json")
    assert journey.result["counts"]["subscription_resumed"] == 1
    assert journey.result["counts"]["payment"] == 1
    after = (await paydesk("subscription", "show", subscription, "--json")).result
    assert abs(after["date_paid"] - before["date_next"] - away) <= 1


async def test_a_pause_ends_when_somebody_wants_it(paydesk: Any, subscription: int) -> None:
    said = await paydesk("subscription", "pause", subscription)
    assert "is paused until it is resumed" in said.out
    assert "is Active, and next charged" in (await paydesk("subscription", "resume", subscription)).out
    refused = await paydesk("subscription", "pause", subscription, "--until", "soon")
    assert refused.status == 2


async def test_it_goes_on_by_another_plan_with_its_next_period(
    paydesk: Any, subscription: int, account: dict[str, Any]
) -> None:
    assert (await paydesk("subscription", "change", subscription)).status == 2
    seen = await paydesk("subscription", "change", subscription, "--price", "30.00", "--preview")
    assert "30.00 USD every 1 month" in seen.out
    assert "this is a preview" in seen.err
    changed = (await paydesk("subscription", "change", subscription, "--price", "30.00", "--json")).result
    assert (changed["price"], changed["change_request"]["price"]) == ("10.00", "30.00")
    assert "30.00 USD" in (await paydesk("subscription", "show", subscription)).out
    await paydesk("clock", "advance", account["id"], "1m")
    shown = (await paydesk("subscription", "show", subscription, "--json")).result
    assert (shown["price"], shown["counter"], shown["change_request"]) == ("30.00", 2, None)
    at_once = await paydesk("subscription", "change", subscription, "--price", "40.00", "--now")
    assert "at once it is of" in at_once.out
    assert "40.00 USD every 1 month" in at_once.out
    assert (await paydesk("subscription", "show", subscription, "--json")).result["price"] == "40.00"


async def test_the_difference_is_charged_now_if_that_is_wanted(paydesk: Any, subscription: int) -> None:
    change = ("subscription", "change", subscription, "--price", "30.00")
    assert (await paydesk(*change, "--charge")).status == 2
    assert (await paydesk(*change, "--now", "--prorate", "--charge")).status == 2
    seen = await paydesk(*change, "--now", "--charge", "--preview")
    assert "20.00 USD for the rest of the period would be charged now" in seen.out
    assert "this is a preview" in seen.err
    done = (await paydesk(*change, "--now", "--charge", "--json")).result
    assert (done["price"], done["charged_now"], done["charge"]["status"]) == ("30.00", "20.00", "successful")
    said = await paydesk("subscription", "change", subscription, "--price", "5.00", "--now", "--charge")
    assert "less than 0 is a credit" in said.out


async def test_another_period_begins_now_and_is_charged(paydesk: Any, subscription: int) -> None:
    change = ("subscription", "change", subscription, "--price", "100.00", "--period", "1y", "--now")
    assert (await paydesk(*change, "--no-credit")).status == 2
    whole = await paydesk(*change, "--charge", "--no-credit", "--preview")
    assert "100.00 USD for the period that begins now would be charged now" in whole.out
    done = (await paydesk(*change, "--charge", "--json")).result
    assert (done["charged_now"], done["counter"], done["period_type"]) == ("90.00", 2, "year")


async def test_a_difference_that_may_be_begun_is_asked_for_by_the_same_command_which_has_no_key(
    paydesk: Any, subscription: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lose(*_: object, **__: object) -> NoReturn:
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    change = ("subscription", "change", subscription, "--price", "30.00", "--now", "--charge", "--json")
    with monkeypatch.context() as broken:
        broken.setattr(charging_differences.queries, "begin_difference", lose)
        said = await paydesk(*change)
    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert ("run the same command again" in said.err, "key" in said.err) == (True, False)
    charged = [(await paydesk(*change)).result["charged_now"] for _ in range(2)]
    assert charged == ["20.00", "0.00"]
