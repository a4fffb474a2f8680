"""A subscriber changes the plan, pauses, resumes, ends and keeps a subscription at the sample shop,
which asks the real API by the client library.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from tests.markup import Markup
from tests.paydesk_client.conftest import _service
from tests.shopfront import find_subscription, pay
from tests.web.demo.visiting import SHIPPING_KEY, SHOP, Visitor

from paydesk.core.clock import utc_now
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.receiving import Reception, receive_form
from paydesk.domain.payments.results import Paid
from paydesk.domain.payments.time_to_ship import TIME_TO_SHIP
from paydesk.domain.subscriptions.lifecycle import Subscription
from paydesk.web.demo import create_shop
from paydesk_client import Gateway
from paydesk_client.signature import encode_form

__all__ = ["_service"]

FAILS_LATER = "4000000000000341"


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who has subscribed at the shop, with its page for them."""

    visitor: Visitor
    desk: Desk
    shop: Shop
    reference: str
    id: int

    async def now(self) -> Subscription:
        return await find_subscription(self.desk.database, self.shop, self.id)

    async def page(self) -> str:
        answer = await self.visitor.get("/membership", params={"order": self.reference})
        assert answer.status_code == 200, answer.text
        return answer.text

    async def ask(self, wish: str, when: str = "") -> httpx.Response:
        return await self.visitor.post("/membership", data={"order": self.reference, "wish": wish, "when": when})

    async def agree(self, shown: httpx.Response) -> httpx.Response:
        assert shown.status_code == 200, shown.text
        return await self.visitor.post("/membership", data={**Markup(shown.text).inputs(), "agreed": "1"})

    async def paid(self) -> list[Decimal]:
        asked = "select amount from payment where merchant_id = $1 and paid_at is not null and amount > 0 order by id"
        return [row["amount"] for row in await self.desk.database.fetch(asked, self.shop.merchant_id)]


@pytest.fixture
async def visitor(service: str, merchant: Merchant, tmp_path: Path) -> AsyncIterator[Visitor]:
    gateways = Gateway(merchant.public_key, merchant.private_key, service), Gateway("none", SHIPPING_KEY, service)
    shop = create_shop(*gateways, base_url=SHOP, folder=tmp_path, time_to_ship=TIME_TO_SHIP)
    async with Visitor(transport=httpx.ASGITransport(shop), base_url=SHOP, follow_redirects=True) as visitor:
        yield visitor


async def join(visitor: Visitor, desk: Desk, shop: Shop, merchant: Merchant, number: str) -> Member:
    """Subscribe to the parcels, as the shop hears of it."""
    fields = await visitor.buy("club")
    received = await receive_form(
        Reception(desk.database, desk.vault, 1000, desk.serving),
        encode_form(fields).encode(),
        client_address="192.0.2.1",
        sandbox=False,
        now=utc_now(),
    )
    assert await pay(desk, received.link, number) == Paid()
    asked = "select id from subscription where merchant_id = $1"
    subscription_id = int(await desk.database.fetchval(asked, shop.merchant_id))
    reference = fields["merchant_order_id"]
    subscription = {"id": subscription_id, "status": "Trial", "recurring_id": 7, "init_merchant_order_id": reference}
    order = {
        "id": 7,
        "merchant_order_id": reference,
        "status": "successful",
        "paid_amount": float(fields["recurring_trial_amount"]),
        "paid_currency": fields["currency"],
    }
    sent_at = int(utc_now().timestamp())
    told = {"event": "payment", "payment_order": order, "subscription": subscription, "pingback_ts": sent_at}
    assert (await visitor.pingback(told, key=merchant.private_key)).text == "ok"
    return Member(visitor, desk, shop, reference, subscription_id)


@pytest.fixture
async def member(visitor: Visitor, desk: Desk, shop: Shop, merchant: Merchant) -> Member:
    return await join(visitor, desk, shop, merchant, "4242424242424242")


async def test_another_plan_is_seen_first_and_charged_once(member: Member) -> None:
    before = await member.now()
    assert "Trial." in await member.page()
    shown = await member.ask("double", "now")
    assert "You pay now" in shown.text
    assert await member.now() == before
    answers = [await member.agree(shown) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    now = await member.now()
    terms = now.package.terms
    assert (now.state, terms.price, terms.quantity) == ("Active", 2 * before.package.terms.price, 2)
    assert len(await member.paid()) == 2
    assert "Active." in await member.page()
    yearly = await member.ask("yearly", "later")
    assert "Next payment" in yearly.text
    assert "Its plan changes with the next payment" in (await member.agree(yearly)).text
    assert "The next payment is on" in (await member.agree(await member.ask("undo"))).text
    assert (await member.now()).change is None


async def test_it_is_paused_resumed_ended_and_kept(member: Member) -> None:
    steps = {"pause": "Paused.", "resume": "The next payment is on", "end": "It ends with what is paid"}
    for wish, said in (*steps.items(), ("undo", "The next payment is on")):
        shown = await member.ask(wish)
        assert said not in shown.text
        assert said in (await member.agree(shown)).text
    assert (await member.now()).change is None
    assert len(await member.paid()) == 1


async def test_what_paydesk_refuses_is_said_and_changes_nothing(
    visitor: Visitor, desk: Desk, shop: Shop, merchant: Merchant
) -> None:
    member = await join(visitor, desk, shop, merchant, FAILS_LATER)
    before = await member.now()
    declined = await member.agree(await member.ask("double", "now"))
    assert (declined.status_code, "Nothing was changed." in declined.text) == (402, True)
    assert (await member.ask("free coffee")).status_code == 400
    assert (await member.now()).package.terms == before.package.terms
    mug = (await visitor.buy("mug"))["merchant_order_id"]
    assert (await visitor.get("/membership", params={"order": mug})).status_code == 404
