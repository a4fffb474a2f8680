from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from paydesk.core.clock import utc_now

Subscribe = Callable[..., Awaitable[Any]]


def leads_to(answer: Any) -> str:
    assert answer.status_code == 303
    return str(answer.headers["location"])


async def test_cancelling_asks_first_and_a_question_changes_nothing(subscriber: Any) -> None:
    page = await subscriber.page(below="/cancel")
    assert "Cancel Coffee club?" in page
    assert "What you have paid runs until" in page
    assert 'method="post"' in page
    assert (await subscriber.now()).state == "Active"


async def test_cancelling_takes_effect_at_once_and_says_until_when_it_runs(subscriber: Any) -> None:
    before = await subscriber.now()
    assert leads_to(await subscriber.cancel()) == subscriber.path
    after = await subscriber.now()
    assert (after.state, after.date_next, after.cancelled_by) == ("Cancelled", None, "customer")
    page = await subscriber.page()
    assert "Nothing more is charged." in page
    assert (
        f"What you have paid runs until {before.date_next:%B} {before.date_next.day}, {before.date_next.year}" in page
    )
    assert "Cancel the subscription" not in page
    assert "Replace the card" not in page


async def test_cancelling_twice_gets_the_same_answer_and_one_pingback(subscriber: Any) -> None:
    first, second = await subscriber.cancel(), await subscriber.cancel()
    assert leads_to(first) == leads_to(second)
    assert await subscriber.events() == ["subscription_cancelled"]


async def test_nothing_is_charged_after_a_cancel(subscriber: Any, charges: Any) -> None:
    await subscriber.cancel()
    assert await subscriber.charge(utc_now() + timedelta(days=3650)) == 0
    assert len(charges()) == 1


async def test_a_trial_can_be_cancelled_and_runs_to_its_end(subscribe: Subscribe) -> None:
    subscriber = await subscribe(recurring_trial_period="14d")
    anchor = (await subscriber.now()).anchor
    await subscriber.cancel()
    assert f"runs until {anchor:%B} {anchor.day}, {anchor.year}" in await subscriber.page()


async def test_a_stopped_subscription_says_why(failing: Any) -> None:
    for _ in range(3):
        assert await failing.charge() == 1
    page = await failing.page()
    assert "stopped because the charges failed" in page
    assert "Replace the card" not in page
    assert leads_to(await failing.cancel()) == failing.path
    assert await failing.events() == ["subscription_stopped"]


@pytest.mark.parametrize("below", ["/cancel", "/card"])
async def test_what_has_ended_leads_back_to_its_page(subscriber: Any, below: str) -> None:
    await subscriber.cancel()
    assert leads_to(await subscriber.web.get(subscriber.path + below)) == subscriber.path


async def test_cancelling_is_never_a_get(subscriber: Any) -> None:
    for _ in range(2):
        await subscriber.web.get(f"{subscriber.path}/cancel?confirm=1")
        await subscriber.web.head(f"{subscriber.path}/cancel")
    assert (await subscriber.now()).state == "Active"
