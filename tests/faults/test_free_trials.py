"""Whatever dies while a trial begins without a card: each begins once, told once, and no bank hears
of any.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import pytest
from tests.faults.customers import CLUB, THANKS
from tests.faults.fail_points import Stop
from tests.faults.settling import settle
from tests.faults.stage import Cast, Stage, staged
from tests.faults.supervising import answering, kill, supervised
from tests.lengths import at_length, longer
from tests.processes import PATIENCE
from tests.proving import check

from paydesk.adapters.acquirers.simulator import Record
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.merchant import change_merchant

pytestmark = pytest.mark.faults

STATEMENTS = ("payments.begin_attempt", "payments.record_approvals", "awaiting_cards.await_card")
POINTS = at_length(
    tuple(f"{where} {statement}" for statement in STATEMENTS for where in ("before", "after")),
    ("after payments.begin_attempt", "after awaiting_cards.await_card"),
)
LOST = "before awaiting_cards.await_card"
"""Where the database dies, too, in the midst of the transaction."""
BUSY = (502, 503, 504)
PAUSE = 0.05


async def ordered(stage: Stage, name: str) -> str:
    """A shop sends a customer to the checkout of a free trial; its page."""
    gateway = stage.receiver.gateways["socks"]
    form = gateway.payment_form()
    fields = form.build_parameters(
        {
            "merchant_order_id": name,
            "amount": "10.00",
            "currency": "USD",
            "description": "Socks",
            "success_url": f"{THANKS}?order={name}",
            "sign_version": "v2",
            "recurring_trial_period": "14d",
            **CLUB,
        }
    )
    async with stage.browser.post(form.action, data=fields, allow_redirects=False) as answer:
        assert answer.status == 303
        return urljoin(form.action, answer.headers["Location"])


async def press(stage: Stage, page: str) -> int:
    """A customer presses the button, or tries to; the status of the answer, 503 without one."""
    typed = {"email": "ada@example.com", "agree": "en"}
    with suppress(aiohttp.ClientError, TimeoutError):
        async with stage.browser.post(f"{page}/start", data=typed, allow_redirects=False) as answer:
            return answer.status
    return BUSY[1]


async def insist(stage: Stage, page: str) -> None:
    """Press until it is answered that all is done."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if (status := await press(stage, page)) not in BUSY:
                break
            await asyncio.sleep(PAUSE)
    assert status == 303


async def stopped(stage: Stage, point: str, page: str) -> Stop:
    """Press until somebody has stopped at a point, which a killed service needs a moment for."""
    reached = asyncio.Event()

    async def pressing() -> None:
        while not reached.is_set():
            await press(stage, page)
            with suppress(TimeoutError):
                await asyncio.wait_for(reached.wait(), PAUSE)

    stage.points.arm(point)
    pressed = asyncio.create_task(pressing())
    stop = await stage.points.stopped(point)
    reached.set()
    pressed.cancel()
    return stop


async def begun(database: Database, table: str) -> list[str]:
    """The orders of what began, each as often as it did."""
    asked = {
        "payment": "select merchant_order_id from payment where state = 'captured' and not renewal",
        "pingback": "select p.merchant_order_id from pingback g join payment p"
        " on p.merchant_id = g.merchant_id and p.id = g.payment_id where g.event = 'payment'",
        "subscription": "select s.init_merchant_order_id as merchant_order_id from subscription s"
        " join subscription_change c on c.merchant_id = s.merchant_id and c.id = s.change_id"
        " where s.state = 'Trial' and c.state = 'open' and c.type = 'cancel' and c.asked_by = 'no_card'",
    }
    return sorted(row["merchant_order_id"] for row in await database.fetch(asked[table]))


@longer
async def test_a_trial_without_a_card_begins_once_whatever_dies(tmp_path: Path) -> None:
    async with staged(tmp_path, Cast()) as stage:
        async with connected(stage.settings.database_url, most=2) as database:
            for merchant in await database.fetch("select id from merchant"):
                await change_merchant(database, merchant["id"], trials_without_card=True)
        pages = {f"trial {number}": "" for number in range(len(POINTS) + 1)}
        for name in pages:
            pages[name] = await ordered(stage, name)
        *dying, last = pages.values()
        async with supervised(stage.postgres):
            for point, page in zip(POINTS, dying, strict=True):
                (await stopped(stage, point, page)).kill()
            stop = await stopped(stage, LOST, last)
            kill(stage.postgres)
            await answering(stage.postgres)
            stop.go_on()
        for page in pages.values():
            await asyncio.gather(*(insist(stage, page) for _ in range(2)))
        await settle(stage)
        async with connected(stage.settings.database_url, most=2) as database:
            for table in ("payment", "pingback", "subscription"):
                assert await begun(database, table) == sorted(pages)
            record = Record(stage.record)
            assert list(record.operations()) == []
            found = await check(database, now=utc_now(), record=record)
            assert [f"{one.rule.statement}: {one.differences}" for one in found if one.found] == []
