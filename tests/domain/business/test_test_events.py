from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest
import structlog
from tests import set_back

from paydesk.adapters.outbound import OutboundClient
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import TooMany
from paydesk.database.pool import Database
from paydesk.domain.business.test_events import A_MINUTE, SentTestEvent, TestEvent, count_test_event, find_target, send
from paydesk.domain.merchants.keys import pairs_of
from paydesk.domain.merchants.merchant import BodyFormat, Merchant, change_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.pingbacks.reasons import Why
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.logs import set_up_logs
from paydesk.settings import Settings
from paydesk_client import Gateway


@pytest.fixture
def terminal(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What stands in the terminal of `paydesk run`, which sets up its logs like this."""
    kept = io.StringIO()
    monkeypatch.setattr(sys, "stderr", kept)
    before = structlog.get_config()
    set_up_logs(settings.model_copy(update={"log_requests": False, "log_format": "console"}))
    yield kept
    structlog.configure(**before)


async def attempt(database: Database, vault: Vault, sender: PingbackSender, shop: Shop, **fields: str) -> SentTestEvent:
    wanted = TestEvent(**{"event": "payment", "url": "", "sign_version": "v2", **fields})
    target = await find_target(database, shop)
    return await send(database, vault, sender, target, shop.merchant_id, wanted, now=utc_now())


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("body_format", ["json", "form"])
async def test_a_test_event_is_genuine_for_the_shops_own_client_and_marked(
    database: Database, vault: Vault, sender: PingbackSender, receiver: Any, merchant: Merchant, shop: Shop,
    version: str, body_format: BodyFormat,
) -> None:  # fmt: skip
    await change_merchant(database, merchant.id, pingback_format=body_format)
    sent = await attempt(database, vault, sender, shop, url=f"{receiver.base}/x", sign_version=version)
    (got,) = receiver.received
    public, private = (await pairs_of(database, vault, merchant.id))[0]
    parsed = Gateway(public, private).pingback().parse(got.body, got.headers)
    assert parsed["payment_order"]["merchant_order_id"] == "paydesk-test-event"
    assert got.headers["X-Service-Test-Event"] == "1"
    assert (sent.why, sent.status, sent.response_body) == (None, 200, "ok")
    assert sent.request_body == got.body.decode()
    assert private not in str(sent)


async def test_what_came_back_and_why_it_does_not_count_is_told(
    database: Database, vault: Vault, sender: PingbackSender, receiver: Any, shop: Shop
) -> None:
    receiver.answers |= {"/nok": [(200, b"NOK")], "/long": [(200, b" " * 4200)], "/odd": [(500, b"\x00\xff")]}
    expected = {"/nok": Why.REJECTED, "/long": Why.EMPTY, "/odd": Why.SERVER_ERROR}
    for path, reason in expected.items():
        sent = await attempt(database, vault, sender, shop, url=f"{receiver.base}{path}")
        assert sent.why is reason
    assert "\x00" not in sent.response_body


async def test_each_test_event_is_a_line_in_the_terminal_with_what_came_of_it(
    database: Database, vault: Vault, sender: PingbackSender, receiver: Any, shop: Shop, terminal: io.StringIO
) -> None:
    receiver.answers |= {"/nok": [(200, b"NOK")], "/down": [(500, b"ok")]}
    await attempt(database, vault, sender, shop, url=f"{receiver.base}/pb?token=very-secret")
    await attempt(database, vault, sender, shop, url=f"{receiver.base}/nok", event="refund")
    await attempt(database, vault, sender, shop, url=f"{receiver.base}/down")
    lines = [re.sub(r"\d+ ms", "1 ms", line) for line in terminal.getvalue().splitlines()]
    assert all(re.match(r"\d\d:\d\d:\d\d  ", line) for line in lines)
    assert [line[10:] for line in lines] == [
        f"test event    payment paydesk-test-event -> {receiver.base}/pb: ok (1 ms)",
        f"test event    refund paydesk-test-event -> {receiver.base}/nok: answered 200, but not ok (1 ms)",
        f"test event    payment paydesk-test-event -> {receiver.base}/down: answered 500, but not ok (1 ms)",
    ]


async def test_no_private_network_is_reached(database: Database, vault: Vault, receiver: Any, shop: Shop) -> None:
    outbound = OutboundClient()
    try:
        guarded = PingbackSender(database, vault, outbound)
        for url in (f"{receiver.base}/x", "http://169.254.169.254/", "http://[::1]/", "http://10.0.0.1/"):
            sent = await attempt(database, vault, guarded, shop, url=url)
            assert (sent.why, sent.status) == (Why.ADDRESS, None), url
    finally:
        await outbound.close()
    assert receiver.received == []


async def test_nothing_is_kept_of_a_test_event(
    database: Database, vault: Vault, sender: PingbackSender, receiver: Any, shop: Shop
) -> None:
    await attempt(database, vault, sender, shop, url=f"{receiver.base}/x", event="refund")
    assert len(receiver.received) == 1
    assert msgspec.json.decode(receiver.received[0].body)["event"] == "refund"
    for table in ("pingback", "pingback_attempt", "payment", "ledger_entry", "mail"):
        assert await database.fetchval(f"select count(*) from {table} where merchant_id = $1", shop.merchant_id) == 0


async def test_once_live_test_events_go_to_the_test_url_by_default(
    database: Database, merchant: Merchant, shop: Shop
) -> None:
    live = Shop(shop.merchant_id, True)
    assert (await find_target(database, shop)).url is None
    await change_merchant(database, merchant.id, pingback_url="https://shop.example/")
    assert (await find_target(database, shop)).url == "https://shop.example/"
    await set_back.went_live(database, merchant.id, test_mode=True)
    assert (await find_target(database, shop)).url is None
    assert (await find_target(database, live)).url == "https://shop.example/"


async def test_a_merchants_test_events_are_limited_and_no_other_merchants(
    database: Database, shop: Shop, other_shop: Shop
) -> None:
    now = utc_now()
    for _ in range(A_MINUTE):
        await count_test_event(database, shop.merchant_id, now=now)
    with pytest.raises(TooMany):
        await count_test_event(database, shop.merchant_id, now=now)
    await count_test_event(database, other_shop.merchant_id, now=now)
    await count_test_event(database, shop.merchant_id, now=now + timedelta(minutes=1))
