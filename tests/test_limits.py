"""Each limit of the business is one constant: when it is changed,
rows and words follow it everywhere.

The pages of the account are in `tests/web/account/test_limits.py`, the documented limits in
`tests/docs/test_interface.py`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest
from tests import shopfront
from tests.changing import change, said_with
from tests.proving import check
from tests.web.mails.every_mail import ADDRESSES, mail_of

from paydesk.adapters.outbound import Answer
from paydesk.adapters.vault import Vault
from paydesk.commands import web_part
from paydesk.core.clock import utc_now
from paydesk.core.errors import Unavailable
from paydesk.core.money import FeePlan
from paydesk.database.pool import Database
from paydesk.domain.business.made_up_events import make_up
from paydesk.domain.mail.kinds import MailKind
from paydesk.domain.merchants.merchant import create_merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.merchants.trade_terms import TradeTerms
from paydesk.domain.operations.merchants import own_terms
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.time_to_ship import require_holds
from paydesk.domain.pingbacks.recording import Recorder, Sending
from paydesk.domain.shoppers.instruments import LaterCharges
from paydesk.domain.subscriptions.failing import failed
from paydesk.domain.subscriptions.lifecycle import Subscription, begin
from paydesk.domain.subscriptions.subscription_terms import Package
from paydesk.web.checkout.consents import charge_in_words
from paydesk.web.checkout.pages import texts_for
from paydesk.web.demo.routes import create_shop
from paydesk.web.mails.writing import write
from paydesk.web.texts import LANGUAGES
from paydesk_client import Gateway

SHIPPING = "paydesk.domain.payments.time_to_ship"
RETRIES = "paydesk.domain.subscriptions.retry_times"
RESENDS = "paydesk.domain.pingbacks.schedule"


async def dates_out_of_range(database: Database, shop: Shop) -> list[str]:
    """What the check finds of the shop's dates, by the names of tables."""
    found = await check(database, now=utc_now(), merchant_id=shop.merchant_id)
    return [each.table for one in found if one.rule.statement == "dates_in_range" for each in one.differences]


class TestTimeToShip:
    """7 days, with a reminder a day before."""

    async def test_an_order_is_held_for_it_and_the_check_agrees(
        self, monkeypatch: pytest.MonkeyPatch, desk: Desk, shop: Shop
    ) -> None:
        await shopfront.ships(desk.database, shop)
        monkeypatch.setattr(desk.acquirers["simulator"], "hold_period", timedelta(days=30))
        with monkeypatch.context() as changed:
            change(changed, SHIPPING, "TIME_TO_SHIP", timedelta(days=9))
            change(changed, SHIPPING, "REMINDED_BEFORE", timedelta(days=2))
            payment_id = await shopfront.buy(desk, shop)
            assert await dates_out_of_range(desk.database, shop) == []
        assert await dates_out_of_range(desk.database, shop) == ["payment"], "the usual 7 days would not allow it"
        row = await desk.database.fetchrow(
            "select ship_by - paid_at as held, ship_by - shipping_due_at as reminded from payment where id = $1",
            payment_id,
        )
        assert (row["held"], row["reminded"]) == (timedelta(days=9), timedelta(days=2))

    def test_an_acquirer_that_holds_money_for_less_is_refused(
        self, monkeypatch: pytest.MonkeyPatch, desk: Desk
    ) -> None:
        require_holds(desk.acquirers["simulator"])
        change(monkeypatch, SHIPPING, "TIME_TO_SHIP", timedelta(days=9))
        with pytest.raises(Unavailable, match="goods that are shipped need 9 days"):
            require_holds(desk.acquirers["simulator"])

    def test_help_and_the_apis_description_say_it(self) -> None:
        says = (
            "from paydesk.commands.merchants import app\nimport typer.main\n"
            "from paydesk.web.api.deliveries import router\n"
            "options = {each.name: each.help for each in typer.main.get_command(app).commands['create'].params}\n"
            "print(json.dumps([options['shipped_goods'], *(route.description for route in router.routes)]))"
        )
        words, described = said_with(SHIPPING, "limits.TIME_TO_SHIP = timedelta(days=9)", says)
        assert "9 days at most" in words
        assert "After 9 days without it the hold is let go" in described

    async def test_the_sample_shop_is_told_it_and_tells_it(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        change(monkeypatch, SHIPPING, "TIME_TO_SHIP", timedelta(days=9))
        made: list[Any] = []
        monkeypatch.setattr(web_part, "create_shop", lambda *_, **known: made.append(known["time_to_ship"]))
        settings = SimpleNamespace(
            address="http://pay.test", pingback_header_prefix="X", data_dir=tmp_path, demo_port=1, host="127.0.0.1"
        )
        monkeypatch.setattr(web_part, "demo_address", lambda _: "http://shop.test")
        web_part._shop_of(settings, SimpleNamespace(keys=("a", "b"), shipping_keys=("c", "d")))  # type: ignore[arg-type]
        assert made == [timedelta(days=9)]
        gateway = Gateway("public", "x" * 32, "http://pay.test")
        shop = create_shop(gateway, gateway, base_url="http://shop.test", folder=tmp_path, time_to_ship=made[0])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(shop), base_url="http://shop.test") as visitor:
            assert "within 9 days" in " ".join((await visitor.get("/")).text.split())


class TestTermsOfTrade:
    """3 % and 0.30, 5 % held back for 180 days, the rest for 7."""

    async def test_a_new_merchant_gets_them_all(
        self, monkeypatch: pytest.MonkeyPatch, database: Database, vault: Vault
    ) -> None:
        wanted = TradeTerms(Decimal("0.01"), Decimal(2), Decimal("0.2"), True, Decimal(9), 3, 90)
        values = tuple(getattr(wanted, name) for name in TradeTerms.__slots__)
        monkeypatch.setattr(TradeTerms.__init__, "__defaults__", values)
        assert TradeTerms() == wanted
        usual = await create_merchant(database, vault, name="Usual", email="a@shop.example", now=utc_now())
        agreed = await create_merchant(
            database, vault, name="Agreed", email="b@shop.example", now=utc_now(), fees=FeePlan(rate=Decimal("0.02"))
        )
        rows = [
            await database.fetchrow(
                "select f.*, m.settlement_days, m.reserve_days from merchant m join fee_plan f on f.merchant_id = m.id"
                " where m.id = $1",
                merchant.id,
            )
            for merchant in (usual, agreed)
        ]
        assert tuple(rows[0][name] for name in TradeTerms.__slots__) == values
        assert (rows[1]["rate"], rows[1]["settlement_days"], rows[1]["reserve_days"]) == (Decimal("0.02"), 3, 90)
        others = [one.merchant_id for one in await own_terms(database, before_id=agreed.id + 1, most=2)]
        assert agreed.id in others
        assert usual.id not in others


class TestRetriesOfACharge:
    """3 of them, 6 hours apart."""

    def test_a_failed_charge_is_tried_again_so_often(self, monkeypatch: pytest.MonkeyPatch) -> None:
        change(monkeypatch, RETRIES, "RETRY_AFTER", timedelta(hours=2))
        change(monkeypatch, RETRIES, "MOST_RETRIES", 1)
        at = datetime(2028, 2, 29, tzinfo=UTC)
        once = failed(begun(), at=at)
        assert once.date_next == at + timedelta(hours=2)
        assert failed(once, at=at).date_stopped == at
        stopped = msgspec.json.decode(make_up("subscription_stopped", at))
        assert stopped["subscription"]["failures"] == 2

    async def test_the_check_allows_the_pause(self, monkeypatch: pytest.MonkeyPatch, desk: Desk, shop: Shop) -> None:
        subscription = await shopfront.subscribe(desk, shop)
        pause = timedelta(days=60)
        await desk.database.execute(
            "update subscription set date_next = now() + $3 where merchant_id = $1 and id = $2",
            shop.merchant_id, subscription.id, pause,
        )  # fmt: skip
        assert await dates_out_of_range(desk.database, shop) == ["subscription"]
        change(monkeypatch, RETRIES, "RETRY_AFTER", pause)
        assert await dates_out_of_range(desk.database, shop) == []


class TestResendsOfAPingback:
    """10 of them, 30 minutes apart."""

    async def test_a_failed_attempt_is_followed_by_so_many(
        self, monkeypatch: pytest.MonkeyPatch, desk: Desk, shop: Shop
    ) -> None:
        pause = timedelta(days=3)
        await shopfront.buy(desk, shop)
        with monkeypatch.context() as changed:
            change(changed, RESENDS, "RESEND_INTERVAL", pause)
            change(changed, RESENDS, "MOST_ATTEMPTS", 2)
            at = utc_now()
            assert await after_a_failure(desk.database, shop, at) == ("due", at + pause)
            assert await dates_out_of_range(desk.database, shop) == []
            with monkeypatch.context() as usual:
                change(usual, RESENDS, "RESEND_INTERVAL", timedelta(minutes=30))
                assert await dates_out_of_range(desk.database, shop) == ["pingback"], "it would not allow 3 days"
            assert (await after_a_failure(desk.database, shop, at + pause))[0] == "exhausted"

    @pytest.mark.parametrize(
        ("language", "words"),
        [
            ("en", "every 45 minutes, up to 4 times"),
            ("pl", "co 45 minut, każdy do 4 razy"),
            ("ja", "45 分ごとに最大4回"),
        ],
    )
    def test_the_mail_to_the_merchant_says_it(self, monkeypatch: pytest.MonkeyPatch, language: str, words: str) -> None:
        change(monkeypatch, RESENDS, "RESEND_INTERVAL", timedelta(minutes=45))
        change(monkeypatch, RESENDS, "MOST_ATTEMPTS", 5)
        said = write(mail_of(MailKind.failing_endpoint, language), ADDRESSES).text
        assert words in " ".join(said.split())


class TestAnswersKept:
    """For 7 days an equal call gets the same answer."""

    def test_the_apis_description_says_it(self) -> None:
        says = (
            "from paydesk.web.api import idempotency\nfrom typing import get_type_hints\n"
            "hints = get_type_hints(idempotency._once, include_extras=True)\n"
            "print(json.dumps(hints['_key'].__metadata__[0].description))"
        )
        described = said_with("paydesk.domain.merchants.idempotent_calls", "limits.KEPT = timedelta(days=9)", says)
        assert "within 9 days" in described


class TestInvitations:
    """Whose links work for 7 days."""

    def test_the_help_says_it(self) -> None:
        says = (
            "from paydesk.commands.merchants import app\nimport typer.main\n"
            "print(json.dumps(typer.main.get_command(app).commands['invite'].help))"
        )
        change = "limits.INVITATION_LIFETIME = timedelta(days=9)"
        assert "for 9 days." in said_with("paydesk.domain.accounts.team", change, says)


class TestLaterCharges:
    """What a customer allowed, within 30 days."""

    def test_the_apis_descriptions_say_it(self) -> None:
        says = (
            "from paydesk.web.api import charges, checkouts\n"
            "print(json.dumps([checkouts._WORDS['later_charges_limit'],"
            " *(route.description for route in charges.router.routes)]))"
        )
        change = "limits.LIMITED = timedelta(days=9)"
        described = said_with("paydesk.domain.billing.charging_saved", change, says)
        assert described[0] == "The most of that within 9 days."
        assert any("within\n9 days" in one for one in described)

    @pytest.mark.parametrize("language", LANGUAGES)
    def test_a_customer_agrees_to_it_in_every_language(self, monkeypatch: pytest.MonkeyPatch, language: str) -> None:
        change(monkeypatch, "paydesk.domain.billing.charging_saved", "LIMITED", timedelta(days=19))
        later = LaterCharges("power", Decimal(70), "EUR")
        for on_page in (False, True):
            assert "19" in charge_in_words("Shop", later, texts_for(language), on_page=on_page)


def begun() -> Subscription:
    """A subscription that has just been taken out."""
    return begin(
        Package(1, 1, shopfront.MONTHLY, 0),
        merchant_id=1,
        live=False,
        subscription_id=7,
        payment_id=70,
        merchant_order_id="club",
        email="ada@example.com",
        time_zone="UTC",
        at=datetime(2028, 1, 31, tzinfo=UTC),
    )


async def after_a_failure(database: Database, shop: Shop, at: datetime) -> tuple[str, datetime]:
    """Where the shop's pingback stands once its server has answered 500, and when it is due."""
    name = await database.fetchval("select id from pingback where merchant_id = $1", shop.merchant_id)
    recorder = Recorder(database, lambda _: None)
    answer = Answer(sent={}, status=500, body_start=b"", complete=True, error=None, duration=0.1)
    recorder.add(Sending((shop.merchant_id, shop.live, name), "https://shop.example/", at, b"{}", answer))
    await recorder.flush()
    row = await database.fetchrow("select state, due_at from pingback where id = $1", name)
    return row["state"], row["due_at"]
