"""An acquirer's signed notification that comes to another cell than its merchant's: the link that
the page leads back to leads it there, and there it is verified.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from tests import breaking
from tests.conftest import accept_waiting, submit_profile
from tests.shopfront import open_page
from tests.standins.stripe_checkout import StripeCheckout, running, signature
from tests.web.cells.two_cells import CLIENT, HOME, SECOND, Cells, form_of, silent
from tests.web.checkout.test_hosting import page_in, press_continue
from tests.web.checkout.test_live_hosting import VISA
from tests.web.checkout.test_paying import leads_to

import paydesk.app
from paydesk.adapters.acquirers.simulator import Bank, Record, SimulatedAcquirer
from paydesk.core.clock import utc_now
from paydesk.domain.cells.directory import Entry, Kind, enter
from paydesk.domain.cells.fencing import close, fence
from paydesk.domain.merchants.merchant import go_live
from paydesk.domain.payments.janitor import settle_due
from paydesk.equipment import live_acquirer, payment_desk
from paydesk.web import notifications
from paydesk.web.cells import calling, passing_on
from paydesk.web.notifications import ADDRESS_A_MINUTE, LARGEST_BODY

STRIPE = "/acquirers/stripe/notify"
HOMES, SECONDS = "whsec_of_home", "whsec_of_second"


@dataclass
class Told:
    """A customer of the second cell's merchant was led to a page of its account at Stripe, which
    sends what has happened to home's address; `home` are home's settings.
    """

    cells: Cells
    stripe: StripeCheckout
    path: str = ""
    session: str = ""
    home: dict[str, Any] = field(default_factory=dict)
    web: httpx.AsyncClient | None = None

    def account(self, secret: str) -> dict[str, Any]:
        """The settings of a cell with an account at Stripe, as which it signs by a secret."""
        return {
            "live_acquirer": "stripe",
            "stripe_secret_key": SecretStr("sk_test_standin"),
            "stripe_api_base": self.stripe.base_url,
            "stripe_checkout": True,
            "stripe_webhook_secret": SecretStr(secret),
            "idempotency_secret": SecretStr("i" * 40),
        }

    def body(self, **changed: Any) -> bytes:
        """The event of the session, with some of it changed."""
        event = json.loads(self.stripe.event(self.session))
        event["data"]["object"] |= changed
        return json.dumps(event).encode()

    async def tell(
        self, body: bytes | None = None, *, secret: str = SECONDS, to: str = STRIPE, at: datetime | None = None
    ) -> httpx.Response:
        """Stripe, or somebody else, sends it to home."""
        if self.web is None:
            self.web = await self.cells.open(HOME, **self.home)
        body = self.body() if body is None else body
        headers = {"Stripe-Signature": signature(body, secret, at=at or utc_now()), "Content-Type": "application/json"}
        return await self.web.post(to, content=body, headers=headers)

    async def is_hurried(self) -> bool:
        """Whether the janitor looks at the payment at once."""
        asked = "select min(lookup_at) from payment_attempt where merchant_id = $1"
        due: datetime = await self.cells.databases[SECOND].fetchval(asked, self.cells.merchants[SECOND].id)
        return due < utc_now() + timedelta(seconds=10)

    async def work(self) -> str:
        """The second cell's workers look up what is due; how the payment then stands."""
        database, settings = self.cells.databases[SECOND], self.cells.settings[SECOND]
        settings = settings.model_copy(update=self.account(SECONDS))
        live = live_acquirer(settings)
        assert live is not None
        bank = Bank(Record(settings.data_dir / "worker.sqlite"))
        simulated = SimulatedAcquirer(bank, base_url=settings.address)
        desk = payment_desk(settings, database, self.cells.vault, simulated, live)
        await settle_due(desk, now=utc_now() + timedelta(seconds=10))
        await live.close()
        bank.record.close()
        return str(await database.fetchval("select state from payment"))

    @property
    def arrived(self) -> list[str]:
        """What came to the second cell from home."""
        return [one.path for one in self.cells.served[SECOND].arrived]


@pytest.fixture
async def told(cells: Cells) -> AsyncIterator[Told]:
    async with running(utc_now) as stripe:
        told = Told(cells, stripe)
        await cells.know(HOME, SECOND)
        database, merchant = cells.databases[SECOND], cells.merchants[SECOND]
        await submit_profile(database, merchant.id)
        await accept_waiting(database, merchant.id)
        await go_live(database, merchant.id, now=utc_now())
        serving = await cells.serve(SECOND, **told.account(SECONDS))
        cells.served[SECOND].instead = serving.of_browser
        web = await cells.open(SECOND, **told.account(SECONDS))
        told.path = await open_page(web, form_of(merchant))
        told.session = page_in(leads_to(await press_continue(web, told.path)))
        assert not await told.is_hurried()
        yield told
        assert stripe.wrong == []


@pytest.fixture(params=["no account of that name", "another account of that name", "the same account"])
def homes(request: pytest.FixtureRequest, told: Told) -> Told:
    """Whatever home has of that name itself."""
    if "no" not in request.param.split():
        told.home = told.account(SECONDS if "same" in request.param else HOMES)
    return told


class TestWhatIsGenuine:
    async def test_what_was_paid_is_recorded_at_once_where_the_merchant_is(self, homes: Told) -> None:
        assert homes.stripe.pay(homes.session, VISA)
        assert await homes.work() == "challenged", "nobody has told of it yet"
        answer = await homes.tell()
        assert (answer.status_code, answer.text) == (200, "ok")
        assert homes.arrived == [STRIPE]
        assert await homes.work() == "captured"

    async def test_what_is_verified_here_alone_is_well(self, told: Told) -> None:
        """An account that both share has an endpoint at each: Stripe tells both, and signs each by
        another secret.
        """
        told.home = told.account(HOMES)
        answer = await told.tell(secret=HOMES)
        assert (answer.status_code, answer.text, told.arrived) == (200, "ok", [STRIPE])
        assert not await told.is_hurried()

    async def test_home_keeps_its_own(self, told: Told) -> None:
        """Though another cell has an account of that name."""
        told.home = told.account(HOMES)
        link = f"http://pay1.test/checkout/l{told.cells.merchants[HOME].id:x}-{'0' * 48}/result"
        assert (await told.tell(told.body(success_url=link), secret=HOMES)).text == "ok"
        assert (await told.tell(told.body(success_url=link))).status_code == 400
        assert told.arrived == []

    async def test_a_large_one_arrives_whole(self, told: Told) -> None:
        body = told.body()
        assert (await told.tell(body + b" " * (LARGEST_BODY - len(body)))).status_code == 200
        assert (await told.tell(body + b" " * LARGEST_BODY)).status_code == 413
        assert await told.is_hurried()
        assert told.arrived == [STRIPE]

    async def test_none_counts_among_those_that_nobody_could_verify(
        self, homes: Told, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = utc_now()
        monkeypatch.setattr(notifications, "utc_now", lambda: now)
        assert {(await homes.tell()).status_code for _ in range(ADDRESS_A_MINUTE + 5)} == {200}

    async def test_what_one_cell_refuses_uses_up_no_turn_of_the_other(
        self, told: Told, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = utc_now()
        monkeypatch.setattr(notifications, "utc_now", lambda: now)
        told.home = told.account(HOMES)
        for _ in range(ADDRESS_A_MINUTE + 1):
            assert (await told.tell(secret=HOMES)).status_code == 200
        assert (await told.tell()).status_code == 200
        assert await told.is_hurried()

    @pytest.mark.parametrize("path", ["portal/{}/card/result", "portal/pay/7/{}/result"])
    async def test_it_is_led_by_the_page_of_another_card_as_well(self, told: Told, path: str) -> None:
        token = f"l{told.cells.merchants[SECOND].id:x}-{'0' * 48}"
        link = f"http://pay2.test/{path.format(token)}"
        assert (await told.tell(told.body(success_url=link))).text == "ok"
        assert told.arrived == [STRIPE]

    async def test_an_account_that_has_gone_with_its_merchant_is_reached_by_its_name(self, told: Told) -> None:
        left = told.cells.merchants[HOME]
        for each in told.cells.databases.values():
            await breaking.say(each, "directory", {"merchant_id": left.id}, cell=SECOND)
        link = f"http://pay1.test/checkout/l{left.id:x}-{'0' * 48}/result"
        await told.tell(told.body(success_url=link), to="/acquirers/stripe-own/notify")
        assert told.arrived == ["/acquirers/stripe-own/notify"]

    async def test_while_its_merchant_moves_it_is_to_come_again(self, told: Told) -> None:
        """It finds the merchant then wherever it is."""
        database, merchant = told.cells.databases[SECOND], told.cells.merchants[SECOND]
        await fence(database, merchant.id, other_cell=HOME, tables=["payment_attempt"])
        await close(database, merchant.id, patience=0)
        answer = await told.tell()
        assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
        assert not await told.is_hurried()

    async def test_while_it_moves_its_notifications_use_up_no_turn_of_strangers(
        self, told: Told, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was verified is no stranger's, though nothing may be written of it just now."""
        now = utc_now()
        monkeypatch.setattr(notifications, "utc_now", lambda: now)
        database, merchant = told.cells.databases[SECOND], told.cells.merchants[SECOND]
        await fence(database, merchant.id, other_cell=HOME, tables=["payment_attempt"])
        await close(database, merchant.id, patience=0)
        told.web = await told.cells.open(SECOND, **told.account(SECONDS))
        assert {(await told.tell()).status_code for _ in range(ADDRESS_A_MINUTE + 5)} == {503}


class TestWhatIsNot:
    async def test_it_is_refused_by_whichever_cell_verifies_it(self, homes: Told) -> None:
        answers = [
            await homes.tell(secret="whsec_of_nobody"),
            await homes.tell(at=utc_now() - timedelta(minutes=6)),
        ]
        assert [(one.status_code, one.text.split()[0]) for one in answers] == [(400, "Stripe-Signature")] * 2
        assert not await homes.is_hurried()
        assert homes.arrived == [STRIPE] * 2

    async def test_a_cell_is_asked_about_no_more_than_one_address_may_send(
        self, homes: Told, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now = utc_now()
        monkeypatch.setattr(notifications, "utc_now", lambda: now)
        monkeypatch.setattr(notifications, "ADDRESS_A_MINUTE", 3)
        answers = [(await homes.tell(secret="whsec_of_nobody")).status_code for _ in range(5)]
        assert answers == [400] * 3 + [429] * 2
        assert homes.arrived == [STRIPE] * 3

    async def test_what_names_no_merchant_stays(self, homes: Told) -> None:
        merchant = f"{homes.cells.merchants[SECOND].id:x}"
        named = f"http://pay2.test/checkout/l{merchant}-{'0' * 48}/result"
        nonsense: list[bytes] = [
            *(homes.body(success_url=one) for one in (None, 7, [named], {"url": named}, "", "http://pay2.test/")),
            homes.body(success_url=f"http://pay2.test/checkout/l{'f' * 40}-{'0' * 48}/result"),
            homes.body(success_url=f"http://pay2.test/checkout/l0-{'0' * 48}/result"),
            homes.body(success_url=f"http://pay2.test/checkout/l{merchant}-{'0' * 47}x/result"),
            homes.body(success_url="/checkout/l" * 10_000),
            json.dumps({"success_url": named}).encode(),
            json.dumps([{"data": {"object": {"success_url": named}}}]).encode(),
            b'{"data":' * 16_000,
            b'{"data":{"object":{"success_url":"\\ud800"}}}',
            b"\xff\xfe",
            b"",
        ]
        for body in nonsense:
            assert (await homes.tell(body, secret="whsec_of_nobody")).status_code in (400, 404)
        assert homes.arrived == []

    async def test_an_address_with_a_token_is_led_by_nothing_else(self, homes: Told) -> None:
        answer = await homes.tell(to=f"{STRIPE}?of=l5-7&token=00")
        assert answer.status_code in (403, 404)
        assert homes.arrived == []

    async def test_made_up_merchants_do_not_flood_home(self, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(passing_on, "HOME_ADDRESS_A_MINUTE", 3)
        minute = utc_now()
        monkeypatch.setattr(paydesk.app, "utc_now", lambda: minute)
        told.web = await told.cells.open(SECOND)
        links = [f"http://pay1.test/checkout/l{one:x}-{'0' * 48}/result" for one in range(901, 906)]
        answers = [(await told.tell(told.body(success_url=link))).status_code for link in links]
        assert answers == [404] * 3 + [503] * 2


class TestBetweenCells:
    async def test_cells_that_disagree_ask_each_other_once(self, told: Told) -> None:
        await breaking.say(
            told.cells.databases[SECOND], "directory", {"merchant_id": told.cells.merchants[SECOND].id}, cell=HOME
        )
        answer = await told.tell(secret="whsec_of_nobody")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
        assert (len(told.arrived), len(told.cells.served[HOME].arrived)) == (1, 0)

    async def test_one_for_a_cell_that_does_not_answer_is_to_come_again(
        self, homes: Told, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(calling, "ANSWER", 0.5)
        homes.cells.served[SECOND].instead = silent
        assert (await homes.tell()).status_code == 503
        await breaking.say(homes.cells.databases[HOME], "cell", {"number": SECOND}, inside="http://127.0.0.1:9")
        away = await homes.tell()
        assert (away.status_code, away.headers["retry-after"]) == (503, "3")

    @pytest.mark.parametrize("addresses", [1, 40], ids=["from one address", "from many"])
    async def test_one_account_leaves_places_though_it_names_many_merchants(self, told: Told, addresses: int) -> None:
        """Also to notifications of others that come from the same address, as the acquirer's do."""
        for one in range(900, 940):
            await enter(told.cells.databases[HOME], [Entry(Kind.merchant, str(one), one)], SECOND, now=utc_now())
        told.web = web = await told.cells.open(HOME, trusted_proxies=f"{CLIENT}/32", **told.account(HOMES))
        told.cells.served[SECOND].instead = silent
        waiting = []

        async def tell(number: int, secret: str) -> bool:
            """Whether it is passed on."""
            web.headers["X-Forwarded-For"] = f"198.51.100.{number % addresses}"
            link = f"http://pay2.test/checkout/l{900 + number:x}-{'0' * 48}/result"
            one = asyncio.create_task(told.tell(told.body(success_url=link), secret=secret))
            before = len(told.arrived)
            while len(told.arrived) == before and not one.done():  # noqa: ASYNC110 (it sends no event)
                await asyncio.sleep(0.002)
            waiting.append(one)
            return not one.done() or one.result().status_code != 503

        passed = [await tell(number, HOMES) for number in range(40)]
        assert 0 < sum(passed) < 32 // 2
        assert await tell(0, SECONDS)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def test_the_page_is_led_to_as_well(self, told: Told) -> None:
        """What the notification is about is found at the address that it names."""
        link = json.loads(told.body())["data"]["object"]["success_url"]
        told.web = await told.cells.open(HOME)
        assert (await told.web.get(httpx.URL(link).path)).status_code == 200
        assert httpx.URL(link).path == f"{told.path}/result"
