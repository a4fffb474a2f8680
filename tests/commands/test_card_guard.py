from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from tests.databases import until_waiting

from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.business.card_guard import queries
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.card_guard import Limits, count_declines


async def test_a_merchants_limits_are_lowered_shown_and_given_back(paydesk: Any, account: dict[str, Any]) -> None:
    guard = ("merchant", "guard")
    said = await paydesk(*guard, "set", account["id"], "--live", "--card", "5", "--always-authenticate", "--json")
    assert said.status == 0, said.err
    assert said.result["state"] == "by_choice"
    card = next(one for one in said.result["limits"] if one["limit"] == "card")
    assert card == {"limit": "card", "holds": 5, "operator": 20, "own": 5}
    shown = await paydesk(*guard, "show", account["id"], "--live")
    for words in ("by_choice", "in the last", "wrong_cvc"):
        assert words in shown.out
    back = await paydesk(*guard, "set", account["id"], "--live", "--card", "0", "--as-needed", "--json")
    assert back.result["state"] == "normal"
    assert all(one["own"] is None for one in back.result["limits"])


async def test_what_makes_no_sense_is_one_line(paydesk: Any, account: dict[str, Any]) -> None:
    for options, words in (
        (("set", account["id"], "--live", "--card", "21"), "from 1 to 20"),
        (("set", account["id"], "--live", "--declines", "-1"), "from 1 to 50"),
        (("set", account["id"]), "nothing to change"),
        (("lift", account["id"], "--live"), "not paused on this side"),
        (("show", 999_999_999), "there is no merchant"),
        (("set", 999_999_999, "--card", "1"), "there is no merchant"),
    ):
        said = await paydesk("merchant", "guard", *options)
        assert (said.status, said.out, said.err.count("\n")) == (1, "", 1), said.err
        assert words in said.err


async def test_a_pause_is_lifted_with_a_note(paydesk: Any, account: dict[str, Any], database: Database) -> None:
    shop = Shop(account["id"], live=True)
    for minutes in (6, 3):
        at = utc_now() - timedelta(minutes=minutes)
        for _ in range(2):
            await count_declines(database, [shop], lambda _: Limits(declines_before_challenge=2), now=at)
    assert (await paydesk("merchant", "guard", "show", shop.merchant_id, "--live", "--json")).result[
        "state"
    ] == "paused"
    said = await paydesk("merchant", "guard", "lift", shop.merchant_id, "--live", "--note", "a sale", "--json")
    assert said.result["state"] == "challenged"
    note = await database.fetchval(
        "select details ->> 'note' from audit_entry where merchant_id = $1 and action = 'card_pause_lifted'",
        shop.merchant_id,
    )
    assert note == "a sale"


async def test_of_two_who_lower_a_limit_each_at_once_nobody_loses_the_others(
    paydesk: Any, account: dict[str, Any], database: Database
) -> None:
    """What one does not name stays as the other leaves it."""
    shop = Shop(account["id"], live=True)
    names = {"merchant_id": shop.merchant_id, "live": shop.live}
    async with database.acquire() as first, first.transaction():
        await queries.begin(first, **names)
        second = asyncio.create_task(paydesk("merchant", "guard", "set", shop.merchant_id, "--live", "--card", "5"))
        await until_waiting(database, second)
        await queries.save(first, **names, limits='{"address": 7}', always_authenticate=True)
    assert (await second).status == 0
    shown = (await paydesk("merchant", "guard", "show", shop.merchant_id, "--live", "--json")).result
    own = {one["limit"]: one["own"] for one in shown["limits"] if one["own"] is not None}
    assert (own, shown["state"]) == ({"address": 7, "card": 5}, "by_choice")
