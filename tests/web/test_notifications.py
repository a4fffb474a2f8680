from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from tests import set_back
from tests.shopfront import open_page
from tests.standins.stripe_checkout import StripeCheckout, signature
from tests.web.checkout.test_hosting import page_in, press_continue
from tests.web.checkout.test_live_hosting import VISA, live, live_desk, live_web, stripe
from tests.web.checkout.test_paying import leads_to

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.adapters.acquirers.simulator.own_pages import Way
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant, shop_of
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hurrying import Notified, notify_url
from paydesk.domain.payments.janitor import settle_due
from paydesk.web import notifications
from paydesk.web.notifications import ADDRESS_A_MINUTE, LARGEST_BODY

__all__ = ["live", "live_desk", "live_web", "stripe"]

SignedForm = Callable[..., dict[str, Any]]
OpenWeb = Callable[..., Awaitable[httpx.AsyncClient]]

STRIPE = "/acquirers/stripe/notify"


@pytest.fixture(autouse=True)
async def _nothing_is_due(database: Database) -> None:
    """Of what other tests left."""
    await set_back.nothing_to_look_up(database)


@dataclass
class Led:
    """A customer who was led to a page of Stripe's."""

    web: httpx.AsyncClient
    stripe: StripeCheckout
    database: Database
    merchant: Merchant
    path: str
    session: str

    def pay(self) -> None:
        assert self.stripe.pay(self.session, VISA)

    async def tell(
        self, body: bytes | None = None, *, secret: str = "whsec_a", at: datetime | None = None
    ) -> httpx.Response:
        """Stripe sends what has happened."""
        body = self.stripe.event(self.session) if body is None else body
        headers = {"Stripe-Signature": signature(body, secret, at=at or utc_now()), "Content-Type": "application/json"}
        return await self.web.post(STRIPE, content=body, headers=headers)

    async def row(self) -> tuple[str, datetime]:
        """How the attempt stands, and when it is looked at next."""
        asked = "select state, lookup_at from payment_attempt where merchant_id = $1"
        return tuple(await self.database.fetchrow(asked, self.merchant.id))


@pytest.fixture
async def led(
    live_web: httpx.AsyncClient, signed_form: SignedForm, stripe: StripeCheckout, database: Database, merchant: Merchant
) -> Led:
    path = await open_page(live_web, signed_form())
    session = page_in(leads_to(await press_continue(live_web, path)))
    return Led(live_web, stripe, database, merchant, path, session)


class TestStripe:
    @pytest.mark.parametrize("secret", ["whsec_a", "whsec_b"])
    async def test_a_payment_that_is_told_of_is_recorded_at_once(self, led: Led, live_desk: Desk, secret: str) -> None:
        led.pay()
        answer = await led.tell(secret=secret)
        assert (answer.status_code, answer.text) == (200, "ok")
        await settle_due(live_desk, now=utc_now() + timedelta(seconds=1))
        assert (await led.row())[0] == "approved"

    async def test_what_it_says_of_money_is_not_believed(self, led: Led, live_desk: Desk) -> None:
        led.pay()
        lie = led.stripe.event(led.session)
        led.stripe.sessions[led.session] |= {"status": "open", "payment_status": "unpaid", "payment_intent": None}
        assert (await led.tell(lie)).status_code == 200
        await settle_due(live_desk, now=utc_now() + timedelta(seconds=1))
        assert (await led.row())[0] == "challenged"

    async def test_told_twice_it_is_paid_once(self, led: Led, live_desk: Desk) -> None:
        led.pay()
        for _ in range(2):
            assert (await led.tell()).status_code == 200
            await settle_due(live_desk, now=utc_now() + timedelta(seconds=6))
        told = await led.database.fetch("select event from pingback where merchant_id = $1", led.merchant.id)
        assert [row["event"] for row in told] == ["payment"]

    async def test_what_is_forged_stale_or_of_another_form_changes_nothing(self, led: Led) -> None:
        led.pay()
        before, asked = await led.row(), len(led.stripe.asked)
        event = led.stripe.event(led.session)
        forged = [
            await led.tell(secret="whsec_c"),
            await led.tell(at=utc_now() - timedelta(minutes=6)),
            await led.tell(b"[]"),
            await led.tell(b'{"data":' * 9_000),
            await led.web.post(STRIPE, content=event),
            await led.web.post(STRIPE, content=event, headers={"Stripe-Signature": "t=1,v1=00"}),
        ]
        assert [one.status_code for one in forged] == [400] * 6
        assert all("Stripe" in one.text or "read" in one.text for one in forged)
        assert (await led.row(), len(led.stripe.asked)) == (before, asked)

    async def test_what_is_too_large_is_not_read(self, led: Led) -> None:
        assert (await led.tell(b" " * (LARGEST_BODY + 1))).status_code == 413
        assert (await led.tell(led.stripe.event(led.session) + b" " * 90_000)).status_code == 200

    async def test_what_is_none_of_ours_is_taken_and_costs_nothing(self, led: Led) -> None:
        before, asked = await led.row(), len(led.stripe.asked)
        ours = json.loads(led.stripe.event(led.session))["data"]["object"]
        for foreign in (
            {"object": "checkout.session", "client_reference_id": "theirs"},
            ours | {"metadata": ours["metadata"] | {"paydesk_key": "another"}},
            ours | {"metadata": {"paydesk_key": ours["metadata"]["paydesk_key"]}},
        ):
            assert (await led.tell(json.dumps({"data": {"object": foreign}}).encode())).status_code == 200
        assert (await led.row(), len(led.stripe.asked)) == (before, asked)

    async def test_without_a_secret_none_is_taken(self, led: Led, open_web: OpenWeb, live: dict[str, Any]) -> None:
        led.web = await open_web(**{name: value for name, value in live.items() if name != "stripe_webhook_secret"})
        answer = await led.tell()
        assert answer.status_code == 400
        assert "PAYDESK_STRIPE_WEBHOOK_SECRET" in answer.text


class TestTokens:
    async def test_the_address_that_an_acquirer_was_given_hurries_its_attempt(
        self,
        web: httpx.AsyncClient,
        signed_form: SignedForm,
        bank: Bank,
        database: Database,
        desk: Desk,
        merchant: Merchant,
    ) -> None:
        page = page_in(leads_to(await press_continue(web, await open_page(web, signed_form()))))
        asked = json.loads(bank.record.page(page))
        bank.pages.pay(page, Way.CARD, "4242424242424242")
        assert await settle_due(desk, now=utc_now()) == 0
        answer = await web.post(asked["notify_url"], content=b"id=tr_1")
        assert (answer.status_code, answer.text) == (200, "ok")
        await settle_due(desk, now=utc_now() + timedelta(seconds=1))
        states = await database.fetch("select state from payment where merchant_id = $1", merchant.id)
        assert [row["state"] for row in states] == ["captured"]

    async def test_another_token_or_attempt_or_acquirer_is_refused(
        self, web: httpx.AsyncClient, desk: Desk, merchant: Merchant
    ) -> None:
        url = notify_url(desk.vault, "", "simulator", Notified(shop_of(merchant, live=False), 5))
        assert (await web.post(url)).status_code == 200, "it may be over, and nobody's"
        for forged in (
            f"{url}0",
            url[:-1],
            url.replace("-5&", "-6&"),
            url.replace("of=t", "of=l"),
            url.replace("of=", "of=x"),
            f"{url.partition('token=')[0]}token=%C3%A9",
            notify_url(desk.vault, "", "another", Notified(shop_of(merchant, live=False), 5)).replace(
                "another", "simulator"
            ),
        ):
            assert (await web.post(forged)).status_code == 403
        assert (await web.post(url, content=b"x" * (LARGEST_BODY + 1))).status_code == 413

    async def test_what_is_not_signed_and_has_no_token_is_refused(self, web: httpx.AsyncClient) -> None:
        assert (await web.post("/acquirers/simulator/notify")).status_code == 400

    @pytest.mark.parametrize("account", ["nobody", "stripe", "%2e%2e", "x" * 500])
    async def test_an_acquirer_that_is_not_configured_is_not_found(self, web: httpx.AsyncClient, account: str) -> None:
        assert (await web.post(f"/acquirers/{account}/notify")).status_code == 404


async def test_one_address_tells_so_often_what_is_not_verified(
    open_web: OpenWeb, desk: Desk, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = utc_now().replace(second=30)
    monkeypatch.setattr(notifications, "utc_now", lambda: now)
    noisy, other = await open_web(address="192.0.2.7"), await open_web(address="192.0.2.8")
    url = notify_url(desk.vault, "", "simulator", Notified(shop_of(merchant, live=False), 5))
    assert {(await noisy.post(url)).status_code for _ in range(ADDRESS_A_MINUTE + 5)} == {200}
    answers = [(await noisy.post(f"{url}0")).status_code for _ in range(ADDRESS_A_MINUTE + 2)]
    assert answers == [403] * ADDRESS_A_MINUTE + [429] * 2
    assert (await other.post(url)).status_code == 200
