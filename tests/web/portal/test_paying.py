"""The link in a mail about a failed charge: it pays what is open in one step, and opens no more."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from tests.breaking import say
from tests.links import newest_portal
from tests.proving import check
from tests.web.portal.conftest import TYPED, Subscriber, leads_to, text_of

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.domain.billing.replacing_cards import settle_challenge
from paydesk.domain.merchants.customer_links import LinkTo
from paydesk.domain.merchants.dunning_end import DunningEnd
from paydesk.domain.merchants.merchant import change_merchant
from paydesk.domain.subscriptions.changing import carry_out_due, pause

MASTERCARD, DECLINED, FAILS_LATER = "5555555555554444", "4000000000000002", "4000000000000341"
ASKS_CUSTOMER = "4000000000003220"


@dataclass(frozen=True, slots=True)
class Payer:
    """Somebody who has the link of a mail about a failed charge."""

    subscriber: Subscriber
    path: str

    async def see(self, below: str = "") -> httpx.Response:
        return await self.subscriber.web.get(self.path + below, headers={"Accept-Language": "en-US"})

    async def pay(self, number: str = MASTERCARD) -> httpx.Response:
        return await self.subscriber.web.post(self.path, data={**TYPED, "number": number})


async def link_for(subscriber: Subscriber, period: int = 2) -> Payer:
    portal = await newest_portal(subscriber.desk.database, subscriber.shop.merchant_id)
    token = replace(portal, to=LinkTo.PAYING, period=period).token(subscriber.desk.vault)
    return Payer(subscriber, f"/portal/pay/{period}/{token}")


@pytest.fixture
async def payer(failing: Subscriber) -> Payer:
    return await link_for(failing)


async def test_the_page_says_what_is_open_and_for_when_and_shows_no_more(payer: Payer) -> None:
    shown = text_of(await payer.see())
    subscription = await payer.subscriber.now()
    assert "Coffee club" in shown
    assert re.search(r"<h1[^>]*>\s*Pay \S*10", shown)
    assert f"{subscription.paid_until:%B} {subscription.paid_until.day}, {subscription.paid_until.year} – " in shown
    assert "•••• 0341" not in shown
    assert payer.subscriber.path not in shown
    assert "Cancel" not in shown


async def test_it_is_paid_in_one_step(payer: Payer, charges: Any) -> None:
    assert leads_to(await payer.pay()) == f"{payer.path}/result"
    assert "do not pay a second time" in text_of(await payer.see("/result"))
    assert (await payer.see("/status")).json() == {"state": "processing"}
    assert await payer.subscriber.charge() == 1
    assert (await payer.see("/status")).json() == {"state": "done", "url": f"{payer.path}/result"}
    assert "This payment is made" in text_of(await payer.see("/result"))
    assert [charge.last4 for charge in charges()] == ["0341", "4444"]
    assert (await payer.subscriber.now()).failures == 0


async def test_pressed_twice_it_takes_money_once(payer: Payer, charges: Any) -> None:
    await asyncio.gather(payer.pay(), payer.pay())
    assert leads_to(await payer.pay()) == f"{payer.path}/result"
    await payer.subscriber.charge()
    assert leads_to(await payer.pay()) == f"{payer.path}/result"
    assert await payer.subscriber.charge(utc_now()) == 0
    assert [charge.last4 for charge in charges()] == ["0341", "4444"]


async def test_a_link_for_what_is_paid_says_so_in_a_later_dunning_too(payer: Payer) -> None:
    await payer.pay()
    await payer.subscriber.charge()
    assert "This payment is made" in text_of(await payer.see())
    await payer.subscriber.give(FAILS_LATER)
    await payer.subscriber.charge()
    assert (await payer.subscriber.now()).failures == 1
    assert "This payment is made" in text_of(await payer.see())
    assert "Pay " in text_of(await (await link_for(payer.subscriber, 3)).see())


async def test_an_ended_subscription_says_so_and_takes_no_card(payer: Payer, count_rows: Any) -> None:
    await payer.subscriber.cancel()
    assert "This subscription has ended" in text_of(await payer.see())
    assert leads_to(await payer.pay()) == f"{payer.path}/result"
    assert "there is nothing to pay" in text_of(await payer.see("/result"))
    assert await count_rows("card_change") == 0


async def test_while_it_is_paused_nothing_is_to_be_paid(payer: Payer, count_rows: Any) -> None:
    held = payer.subscriber
    await pause(held.desk.database, held.shop, held.id, until=None, by="merchant", now=utc_now())
    assert "There is nothing to pay" in text_of(await payer.see())
    await payer.pay()
    assert await count_rows("card_change") == 0


async def test_a_decline_of_the_card_says_so_and_asks_for_another(payer: Payer) -> None:
    answer = await payer.pay(DECLINED)
    assert answer.status_code == 402
    assert "declined" in text_of(answer)
    assert f'action="{payer.path}"' in answer.text
    assert leads_to(await payer.pay())


async def test_a_charge_that_fails_all_the_same_takes_no_planned_try_away(payer: Payer) -> None:
    planned = (await payer.subscriber.now()).date_next
    assert planned is not None
    for failures in (2, 3, 4, 5):
        await payer.pay(FAILS_LATER)
        assert await payer.subscriber.charge() == 1
        answer = await payer.see("/result")
        assert answer.status_code == 402
        assert "did not go through" in text_of(answer)
        after = await payer.subscriber.now()
        assert (after.date_next, after.failures) == (planned, failures)
    for _ in range(2):
        await payer.subscriber.charge()
        assert (await payer.subscriber.now()).running
    await payer.subscriber.charge()
    assert not (await payer.subscriber.now()).running
    assert "This subscription has ended" in text_of(await payer.see())
    found = await check(payer.subscriber.desk.database, now=planned, merchant_id=payer.subscriber.shop.merchant_id)
    assert [(one.rule.statement, one.differences) for one in found if one.found] == []


async def test_what_is_kept_open_is_paid_long_after_the_last_try(subscribe: Any, charges: Any) -> None:
    held = await subscribe(FAILS_LATER)
    await change_merchant(held.desk.database, held.shop.merchant_id, dunning_end=DunningEnd.KEEP_OPEN)
    for _ in range(4):
        await held.charge()
    assert (await held.now()).kept_open
    assert "is open and is not tried again by itself" in await held.page()
    payer = await link_for(held)
    assert "Pay " in text_of(await payer.see())
    assert leads_to(await payer.pay()) == f"{payer.path}/result"
    assert await held.charge() == 1
    assert [charge.last4 for charge in charges()] == ["0341", "4444"]
    assert (await held.now()).failures == 0


async def test_what_was_paused_by_the_last_try_goes_on_with_another_card(subscribe: Any, charges: Any) -> None:
    held = await subscribe(FAILS_LATER)
    database, merchant_id = held.desk.database, held.shop.merchant_id
    await change_merchant(database, merchant_id, dunning_end=DunningEnd.PAUSE)
    for _ in range(4):
        await held.charge()
    assert (await held.now()).paused_by_retries
    shown = await held.page()
    assert "This subscription is paused. Nothing is charged until it goes on." in shown
    assert "is open and is not tried again by itself" in shown
    payer = await link_for(held)
    assert "Pay " in text_of(await payer.see())
    assert leads_to(await payer.pay()) == f"{payer.path}/result"
    assert (await payer.see("/status")).json()["state"] == "processing"
    now = utc_now()
    for carried_out in (1, 0):
        assert await carry_out_due(database, real_now=now, merchant_id=merchant_id, at=now) == carried_out
    assert await held.charge() == 1
    assert [charge.last4 for charge in charges()] == ["0341", "4444"]
    after = await held.now()
    assert (after.failures, after.paused) == (0, False)
    assert "This payment is made" in text_of(await payer.see("/result"))


async def test_another_card_resumes_nothing_that_somebody_has_paused(subscribe: Any) -> None:
    held = await subscribe()
    await pause(held.desk.database, held.shop, held.id, until=None, by="merchant", now=utc_now())
    await held.give(MASTERCARD)
    later = utc_now() + timedelta(days=400)
    assert await carry_out_due(held.desk.database, real_now=later, merchant_id=held.shop.merchant_id, at=later) == 0


async def test_the_banks_question_leads_back_to_the_page_that_pays(payer: Payer, bank: Bank) -> None:
    challenge = bank.challenge(leads_to(await payer.pay(ASKS_CUSTOMER)).rpartition("/")[2])
    assert challenge is not None
    assert challenge.return_url == f"http://pay.test{payer.path}/result"
    bank.decide(challenge.reference, "approve")
    assert leads_to(await payer.see("/result")) == f"{payer.path}/result"
    await payer.subscriber.charge()
    assert "This payment is made" in text_of(await payer.see("/result"))


async def test_who_has_answered_nothing_when_it_is_paid_meanwhile_is_asked_for_no_card(
    payer: Payer, monkeypatch: pytest.MonkeyPatch
) -> None:
    leads_to(await payer.pay(ASKS_CUSTOMER))

    async def settled_late(*named: Any, **more: Any) -> Any:
        """The bank is asked, and the card on file is charged before it has answered."""
        result = await settle_challenge(*named, **more)
        database, merchant_id = payer.subscriber.desk.database, payer.subscriber.shop.merchant_id
        await say(database, "subscription", {"merchant_id": merchant_id}, failures=0, next_period=3)
        return result

    monkeypatch.setattr("paydesk.web.portal.replacing.settle_challenge", settled_late)
    assert leads_to(await payer.see("/result")) == f"{payer.path}/result"
    shown = text_of(await payer.see("/result"))
    assert "This payment is made" in shown
    assert 'name="number"' not in shown


async def test_a_question_that_was_begun_in_the_portal_is_not_shown_to_who_may_only_pay(payer: Payer) -> None:
    asked = leads_to(await payer.subscriber.give(ASKS_CUSTOMER))
    assert (await payer.see("/status")).json() == {"state": "done", "url": f"{payer.path}/result"}
    assert asked not in (await payer.see("/result")).text


async def test_a_link_opens_nothing_but_its_own_charge(payer: Payer) -> None:
    token, portal = payer.path.rpartition("/")[2], payer.subscriber.path.rpartition("/")[2]
    wrong = f"{token[:-1]}{'0' if token[-1] != '0' else '1'}"
    for path in (
        f"/portal/pay/1/{token}",
        f"/portal/pay/3/{token}",
        f"/portal/pay/2/{wrong}",
        f"/portal/pay/2/{portal}",
        f"/portal/pay/2/{token[:-16]}",
        f"/portal/pay/{'9' * 4400}/{token}",
        f"/portal/pay/x/{token}",
        f"/portal/{token}",
        f"/portal/{token}/cancel",
    ):
        answer = await payer.subscriber.web.get(path)
        assert answer.status_code == 404, path


async def test_guessing_cards_there_is_stopped_as_in_the_portal(payer: Payer) -> None:
    statuses = [(await payer.pay(DECLINED)).status_code for _ in range(11)]
    assert statuses == [402] * 10 + [429]
    shown = await payer.pay()
    assert shown.status_code == 429
    assert payer.subscriber.path not in shown.text
    assert (await payer.subscriber.give(MASTERCARD)).status_code == 429
