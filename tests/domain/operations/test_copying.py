"""From a copy for staging nothing leaves: no bank, no shop and no customer hears
of what is in it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta

import asyncpg
import pytest
from pydantic import SecretStr
from tests import breaking, set_back
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.adapters.mail.post_offices import PostOffice, post_office
from tests.banks import live_bank_of
from tests.conftest import OpenWeb, SignedForm, accept_waiting, submit_profile
from tests.domain.mail.rounds import send_due
from tests.domain.pingbacks.receiver import Receiver, receiving
from tests.proving import check
from tests.till import Till

from paydesk.adapters.acquirers.simulator import Bank, SimulatedAcquirer
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Conflict, SetupError
from paydesk.database.pool import Database, connected
from paydesk.domain.accounts.audit import COMMAND_LINE
from paydesk.domain.billing.charging import BillingRun
from paydesk.domain.deliveries.deadlines import act_on_due
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.merchant import Merchant, create_merchant, go_live
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.operations.copying import make_harmless, refuse_live_acquirer
from paydesk.domain.operations.history import read
from paydesk.domain.operations.holding import hold_restored
from paydesk.domain.operations.machinery import queries as machinery
from paydesk.domain.operations.merchants import resume_merchant
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.janitor import settle_due
from paydesk.domain.payments.movements import finish_movements
from paydesk.domain.payments.refunding import refund
from paydesk.domain.payments.results import Paid, Unsettled
from paydesk.domain.pingbacks.sending import PingbackSender
from paydesk.equipment import outbound_client, sender_settings
from paydesk.settings import Settings
from paydesk.worker import allowed_mailer, mail_sender

APPROVED = "4242424242424242"
LOOPBACK = "127.0.0.0/8"


@pytest.fixture
def database_url(own_database_url: str) -> str:
    """A copy is a copy for good, so each test has a database of its own."""
    return own_database_url


@pytest.fixture
async def database(own_database_url: str) -> AsyncIterator[Database]:
    async with connected(own_database_url) as pool:
        yield pool


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """The shops' server."""
    async with receiving() as made:
        yield made


@pytest.fixture
async def office() -> AsyncIterator[PostOffice]:
    """The mail server."""
    async with post_office() as opened:
        yield opened


@pytest.fixture
async def merchant(database: Database, vault: Vault, receiver: Receiver) -> Merchant:
    """A merchant that ships, and is live."""
    url = f"{receiver.base}/pingback"
    made = await create_merchant(
        database, vault, name="Mug Shop", email="o@shop.example", now=utc_now(), shipped_goods=True, pingback_url=url
    )
    await submit_profile(database, made.id)
    await accept_waiting(database, made.id)
    await go_live(database, made.id, now=utc_now())
    await breaking.say(database, "merchant", {}, test_pingback_url=f"{receiver.base}/tests")
    return made


@pytest.fixture
def settings(settings: Settings, office: PostOffice) -> Settings:
    """The settings of a deployment that reaches the shops' server and the mail server."""
    mails = {"smtp_url": SecretStr(office.url), "mail_from": "Paydesk <pay@desk.example>"}
    return settings.model_copy(update={"outbound_allow": LOOPBACK, **mails})


@dataclass
class Deployment:
    """A deployment with much to do on its live side, and what the world outside hears of it."""

    settings: Settings
    desk: Desk
    live_bank: SimulatedAcquirer
    bank: Bank
    receiver: Receiver
    office: PostOffice
    shop: Shop

    async def work(self) -> None:
        """All that a worker does: a round of each kind."""
        desk, now = self.desk, utc_now()
        for _ in range(2):
            await BillingRun(desk).charge_due()
            await settle_due(desk, now=now)
            await finish_movements(desk, now=now)
            await act_on_due(desk, real_now=now)
        outbound = await outbound_client(self.settings, desk.database)
        await PingbackSender(desk.database, desk.vault, outbound, sender_settings(self.settings)).send_due_once(now)
        await outbound.close()
        mailer = await allowed_mailer(self.settings, desk.database)
        if mailer is not None:
            await tell_events(desk.database, real_now=now, keep_test=False)
            sender = mail_sender(self.settings, desk.database, desk.vault, mailer)
            await send_due(sender, now=now)
            await sender.finish()

    def heard(self) -> tuple[int, int, int]:
        """What the bank, the shops' server and the mail server have heard so far."""
        return len(list(self.bank.record.operations())), len(self.receiver.received), len(self.office.mails)


@pytest.fixture
async def deployment(
    settings: Settings, desk: Desk, bank: Bank, shop: Shop, receiver: Receiver, office: PostOffice
) -> AsyncIterator[Deployment]:
    live_bank = live_bank_of(bank)
    live = replace(desk, acquirers={**desk.acquirers, live_bank.name: live_bank}, live_acquirer=live_bank.name)
    made = Deployment(settings, live, live_bank, bank, receiver, office, replace(shop, live=True))
    await _fill(made)
    yield made
    await live_bank.close()


async def _fill(deployment: Deployment) -> None:
    """Leave a subscription to charge, an order to void, outcomes to ask for, a pingback and a mail
    to send.
    """
    database, shop, desk = deployment.desk.database, deployment.shop, deployment.desk
    till = Till(desk, shop)
    await tell_events(database, real_now=utc_now(), keep_test=False)
    await Till(desk, shop).subscribe()
    url = f"{deployment.receiver.base}/pingback"
    assert await till.pay(await till.order("unshipped", pingback_url=url), APPROVED) == Paid()
    paid = await database.fetchval("select id from payment where state = 'captured'")
    tests = Till(desk, replace(shop, live=False))
    assert await tests.pay(await tests.order("test", pingback_url=url), APPROVED) == Paid()
    bank = deployment.live_bank
    deaf = replace(desk, acquirers={**desk.acquirers, bank.name: LyingAcquirer(bank, Lies(lose_answers=1.0))})
    assert await Till(deaf, shop).pay(await till.order("lost", pingback_url=url), APPROVED) == Unsettled()
    await refund(deaf, shop, paid, None, requested_by="api", request_key="lost", now=utc_now())
    hour = timedelta(hours=1)
    for table in ("payment_attempt", "movement"):
        await database.execute(f"update {table} set lookup_at = now() where lookup_at is not null")
    await database.execute("update subscription set date_next = now() - $1::interval", hour)
    await database.execute(
        "update payment set ship_by = now() - $1::interval, shipping_due_at = now() - $1::interval,"
        " paid_at = now() - interval '7 days' where merchant_order_id = 'unshipped'",
        hour,
    )
    await database.execute("update pingback set due_at = now() - $1::interval", hour)
    await tell_events(database, real_now=utc_now(), keep_test=False)
    assert await database.fetchval("select count(*) from mail where state = 'due'") > 0


async def test_the_deployment_itself_has_all_of_it_done(deployment: Deployment) -> None:
    before = deployment.heard()
    await deployment.work()
    renewal_and_void, pingbacks, mails = (a - b for a, b in zip(deployment.heard(), before, strict=True))
    assert (renewal_and_void, pingbacks >= 4, mails >= 3) == (2, True, True)


@pytest.mark.parametrize("reached", ["", LOOPBACK])
async def test_from_a_copy_nothing_leaves_though_it_has_all_that_the_deployment_has(
    deployment: Deployment, reached: str
) -> None:
    deployment.settings = deployment.settings.model_copy(update={"copy_allow": reached})
    database, before = deployment.desk.database, deployment.heard()
    tag = await database.fetchval("select tag from deployment")
    copied = await make_harmless(database)
    assert (copied.declared, copied.tag != tag, copied.merchants) == (True, True, 1)
    await deployment.work()
    assert deployment.heard() == before
    assert [found.rule.statement for found in await check(database, now=utc_now()) if found.found] == []


async def test_nothing_that_is_live_begins_in_a_copy_though_a_process_has_the_live_bank(deployment: Deployment) -> None:
    database, shop, desk = deployment.desk.database, deployment.shop, deployment.desk
    till, paid = Till(desk, shop), await database.fetchval("select id from payment where state = 'authorized' and live")
    opened = await till.order()
    await make_harmless(database)
    before = deployment.heard()
    with pytest.raises(Conflict, match="suspended"):
        await till.pay(opened, APPROVED)
    with pytest.raises(Conflict, match="this is a copy"):
        await resume_merchant(database, COMMAND_LINE, shop.merchant_id, now=utc_now())
    # A process that knows nothing of copies has let the merchant go on.
    await breaking.say(database, "merchant", {}, suspended_at=None, suspended_reason="")
    for begin in (
        lambda: till.pay(opened, APPROVED),
        lambda: refund(desk, shop, paid, None, requested_by="operator", request_key="again", now=utc_now()),
    ):
        with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match="nothing is done with live payments here"):
            await begin()
    await deployment.work()
    assert deployment.heard() == before


async def test_tests_go_on_and_reach_only_the_networks_that_are_named_for_copies(
    deployment: Deployment, shop: Shop
) -> None:
    await make_harmless(deployment.desk.database)
    till, url = Till(deployment.desk, shop), f"{deployment.receiver.base}/tests"
    assert await till.pay(await till.order("tried", pingback_url=url), APPROVED) == Paid()
    await deployment.work()
    assert (deployment.receiver.received, deployment.office.mails) == ([], [])
    attempts = "select error from pingback_attempt order by at desc limit 1"
    assert "not one of PAYDESK_COPY_ALLOW" in await deployment.desk.database.fetchval(attempts)
    deployment.settings = deployment.settings.model_copy(update={"copy_allow": LOOPBACK})
    await set_back.times(deployment.desk.database, "pingback", {"state": "due"}, due_at=utc_now())
    await deployment.work()
    assert {one.path for one in deployment.receiver.received} == {"/tests"}


async def test_a_copy_is_made_once_and_not_while_somebody_works_on_it(database: Database) -> None:
    await machinery.say_alive(database, name="somebody", started_at=utc_now(), now=utc_now())
    with pytest.raises(Conflict, match="stop serve and work"):
        await make_harmless(database)
    await machinery.say_goodbye(database, name="somebody")
    first, again = await make_harmless(database), await make_harmless(database)
    assert (first.declared, again.declared, again.tag) == (True, False, first.tag)


async def test_what_its_deployment_held_is_not_held_in_a_copy(database: Database) -> None:
    await hold_restored(database, since=utc_now() - timedelta(days=1), gap=10)
    assert (await read(database)).held_because != ""
    await make_harmless(database)
    assert (await read(database)).held_because == ""
    assert await database.fetchval("select count(*) from alarm where settled_at is null") == 0


async def test_a_copy_refuses_a_live_acquirer_and_its_deployment_does_not(database: Database) -> None:
    await refuse_live_acquirer(database, "stripe")
    await make_harmless(database)
    await refuse_live_acquirer(database, "")
    with pytest.raises(SetupError, match="PAYDESK_LIVE_ACQUIRER=stripe"):
        await refuse_live_acquirer(database, "stripe")


async def test_live_calls_and_forms_are_refused_and_those_of_the_sandbox_are_not(
    database: Database, merchant: Merchant, open_web: OpenWeb, signed_form: SignedForm
) -> None:
    await breaking.say(database, "merchant", {}, test_mode=False)
    browser, keys = await open_web(), {"X-ApiKey": merchant.private_key}
    assert (await browser.get("/api/v1/payments", headers=keys)).status_code == 200
    await make_harmless(database)
    for refused in (
        await browser.get("/api/v1/payments", headers=keys),
        await browser.post("/payment/form", data=signed_form(), headers={"Accept": "application/json"}),
    ):
        assert (refused.status_code, "this is a copy for staging" in refused.text) == (409, True), refused.text
    assert (await browser.get("/sandbox/api/v1/payments", headers=keys)).status_code == 200
    assert (await browser.post("/sandbox/payment/form", data=signed_form())).status_code == 303
