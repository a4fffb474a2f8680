from __future__ import annotations

from typing import Any

import pytest
from tests import breaking
from tests.conftest import propose_change, submit_profile

from paydesk.database.pool import Database

LIVE = {
    "PAYDESK_LIVE_ACQUIRER": "stripe",
    "PAYDESK_STRIPE_SECRET_KEY": "sk_test_of_nobody",
    "PAYDESK_IDEMPOTENCY_SECRET": "i" * 40,
}


async def waiting(paydesk: Any) -> list[int]:
    return [one["merchant_id"] for one in (await paydesk("profile", "list", "--json")).result]


async def test_a_profile_waits_is_shown_and_accepted(
    paydesk: Any, account: dict[str, Any], environment: dict[str, str], database: Database
) -> None:
    await submit_profile(database, account["id"])
    assert account["id"] in await waiting(paydesk)
    assert "Corner Shop Ltd" in (await paydesk("profile", "show", account["id"])).out
    environment |= LIVE
    accepted = (await paydesk("profile", "accept", account["id"], "--json")).result
    assert (accepted["status"], accepted["went_live_at"] is not None) == ("accepted", True)
    assert account["id"] not in await waiting(paydesk)
    assert (await paydesk("profile", "accept", account["id"])).status == 1


async def test_an_incomplete_profile_is_accepted_with_a_reason_alone(
    paydesk: Any, account: dict[str, Any], environment: dict[str, str], database: Database
) -> None:
    environment |= LIVE
    await submit_profile(database, account["id"])
    await breaking.say(database, "business_profile", {"merchant_id": account["id"]}, city="")
    said = await paydesk("profile", "accept", account["id"])
    assert (said.status, "lacks city" in said.err, "--despite" in said.err) == (1, True, True)
    assert account["id"] in await waiting(paydesk)
    accepted = (await paydesk("profile", "accept", account["id"], "--despite", "Seen", "--json")).result
    assert accepted["status"] == "accepted"


async def test_a_refused_profile_says_why(paydesk: Any, account: dict[str, Any], database: Database) -> None:
    await submit_profile(database, account["id"])
    said = await paydesk("profile", "refuse", account["id"], "--reason", "The website is empty", "--json")
    assert (said.result["status"], said.result["reason"]) == ("refused", "The website is empty")
    assert said.result["went_live_at"] is None


async def test_nobody_is_accepted_without_a_live_acquirer(
    paydesk: Any, account: dict[str, Any], database: Database
) -> None:
    await submit_profile(database, account["id"])
    said = await paydesk("profile", "accept", account["id"])
    assert (said.status, "PAYDESK_LIVE_ACQUIRER" in said.err) == (1, True)


@pytest.mark.parametrize("words", [("show",), ("accept",), ("refuse", "--reason", "x")])
async def test_a_profile_of_nobody_is_not_found(paydesk: Any, environment: dict[str, str], words: Any) -> None:
    environment |= LIVE
    said = await paydesk("profile", words[0], 999_999_999, *words[1:])
    assert (said.status, "there is no merchant" in said.err) == (1, True)


async def test_a_profile_that_was_not_submitted_is_not_answered(
    paydesk: Any, account: dict[str, Any], environment: dict[str, str]
) -> None:
    environment |= LIVE
    said = await paydesk("profile", "accept", account["id"])
    assert (said.status, "not waiting for an answer" in said.err) == (1, True)


async def test_a_change_of_a_live_profile_is_listed_shown_and_answered(
    paydesk: Any, account: dict[str, Any], environment: dict[str, str], database: Database
) -> None:
    environment |= LIVE
    await submit_profile(database, account["id"])
    await paydesk("profile", "accept", account["id"])
    await propose_change(database, account["id"], "Other Shop Ltd")
    (listed,) = [
        one for one in (await paydesk("profile", "list", "--json")).result if one["merchant_id"] == account["id"]
    ]
    assert listed["change"]
    assert (
        "change of legal_name Corner Shop Ltd -> Other Shop Ltd"
        in (await paydesk("profile", "show", account["id"])).out
    )
    seen = (await paydesk("profile", "show", account["id"], "--json")).result["seen"]
    refused = (await paydesk("profile", "refuse", account["id"], "--reason", "Why?", "--json")).result
    assert (refused["status"], refused["legal_name"], refused["change"]) == ("accepted", "Corner Shop Ltd", {})
    await propose_change(database, account["id"], "Evil Ltd")
    stale = await paydesk("profile", "accept", account["id"], "--seen", seen)
    assert (stale.status, "look at it anew" in stale.err) == (1, True)
    assert (await paydesk("profile", "accept", account["id"], "--seen", "soon")).status == 1
    accepted = (await paydesk("profile", "accept", account["id"], "--json")).result
    assert (accepted["legal_name"], accepted["payouts_from"]) == ("Evil Ltd", None)
