from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from paydesk.core.clock import utc_now
from paydesk.core.periods import Period
from paydesk.database.pool import Database
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.subscriptions.packages import agree_package
from paydesk.domain.subscriptions.subscription_terms import Terms


@pytest.fixture
async def versions(paydesk: Any, subscription: int, account: dict[str, Any], database: Database) -> tuple[int, int]:
    """The version that a subscription is on, and a dearer one."""
    (listed,) = (await paydesk("package", "list", account["id"], "--json")).result
    dearer = Terms("Coffee club", listed["sku_id"], "USD", Decimal(12), Period(1, "month"), None, 0)
    made = await agree_package(database, Shop(account["id"], live=False), dearer, now=utc_now())
    return listed["package_version_id"], made


async def test_a_preview_moves_nothing_then_all_is_planned_and_taken_back(
    paydesk: Any, subscription: int, account: dict[str, Any], versions: tuple[int, int]
) -> None:
    before, after = versions
    words = ("package", "move", account["id"], "--from", before, "--to", after)
    seen = (await paydesk(*words, "--dry-run", "--json")).result
    assert (seen["subscriptions"], seen["paid_before"], seen["paid_after"]) == (1, "10.00", "12.00")
    assert (seen["stay"], seen["preview"], seen["move"]) == ({}, True, None)
    assert (await paydesk("package", "moves", account["id"], "--json")).result == []
    moved = (await paydesk(*words, "--json")).result["move"]
    assert (moved["state"], moved["planned"], moved["waiting"]) == ("moved", 1, 1)
    shown = (await paydesk("subscription", "show", subscription, "--json")).result
    assert (shown["change_request"]["type"], shown["change_request"]["price"]) == ("change", "12.00")
    again = await paydesk(*words)
    assert again.status == 1
    assert "no subscription to move" in again.err
    titles, row = (await paydesk("package", "moves", account["id"])).out.splitlines()
    assert titles.split()[:3] == ["move", "from", "version"]
    assert row.split()[:4] == [str(moved["id"]), str(before), str(after), "moved"]
    for _ in range(2):
        back = (await paydesk("package", "take-back", account["id"], moved["id"], "--json")).result
        assert (back["state"], back["waiting"], back["done"]) == ("taken_back", 0, 0)
    shown = (await paydesk("subscription", "show", subscription, "--json")).result
    assert shown["change_request"] is None


async def test_people_read_what_would_come_of_it(
    paydesk: Any, account: dict[str, Any], versions: tuple[int, int]
) -> None:
    before, after = versions
    said = await paydesk("package", "move", account["id"], "--from", before, "--to", after, "--dry-run")
    assert "12.00 USD / 1m" in said.out
    assert "nothing was moved" in said.err
    done = await paydesk("package", "move", account["id"], "--from", before, "--to", after)
    assert "1 are planned" in done.err
    listed = (await paydesk("package", "list", account["id"])).out.splitlines()
    assert "12.00 USD / 1m" in listed[1]


async def test_the_versions_of_a_package_are_listed(
    paydesk: Any, account: dict[str, Any], versions: tuple[int, int]
) -> None:
    (newest,) = (await paydesk("package", "list", account["id"], "--json")).result
    assert (newest["price"], newest["subscriptions"]) == ("12.00", 1)
    named = ("package", "list", account["id"], "--package", newest["package_id"])
    found = (await paydesk(*named, "--json")).result
    assert [(one["package_version_id"], one["subscriptions"]) for one in found] == [(versions[1], 0), (versions[0], 1)]
    assert (await paydesk("package", "list", account["id"], "--live", "--json")).result == []


async def test_what_is_not_there_is_said(paydesk: Any, account: dict[str, Any], versions: tuple[int, int]) -> None:
    for words in (("move", account["id"], "--from", 1, "--to", 9_999_999), ("take-back", account["id"], 9_999_999)):
        said = await paydesk("package", *words)
        assert (said.status, said.out) == (1, "")
        assert "there is no" in said.err
