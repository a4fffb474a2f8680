from __future__ import annotations

from typing import Any

import pytest
from tests.conftest import submit_profile

from paydesk.database.pool import Database

LIVE = {"PAYDESK_LIVE_ACQUIRER": "stripe", "PAYDESK_STRIPE_SECRET_KEY": "sk_test_of_nobody"}


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
