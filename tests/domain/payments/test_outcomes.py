from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from tests.adapters.acquirers.simulator.lying import Lies, LyingAcquirer
from tests.shopfront import MONTHLY

from paydesk.adapters.acquirers.interface import Approved, DeclineReason
from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.money import FeePlan
from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import change_merchant, create_merchant, shop_of
from paydesk.domain.payments.outcomes import Approval, Ending, record_approvals, record_endings
from paydesk.domain.payments.states import AttemptState
from paydesk.domain.pingbacks import destinations

VISA = "4242424242424242"


@pytest.fixture
async def open_attempt(till: Any) -> int:
    """An attempt whose outcome nobody knows yet."""
    mute = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1)))
    await mute.pay(await till.order(), VISA)
    return int((await till.attempts())[0]["id"])


async def counts(database: Database, merchant_id: int) -> tuple[int, int]:
    entries = await database.fetchval("select count(*) from ledger_entry where merchant_id = $1", merchant_id)
    return entries, await database.fetchval("select count(*) from pingback where merchant_id = $1", merchant_id)


async def test_the_samples_of_the_field_come_out_to_the_digit(till: Any, database: Database, vault: Vault) -> None:
    plan = FeePlan(rate=Decimal("0.03"), fixed=Decimal("0.27"), reserve_rate=Decimal("0.05"))
    merchant = await create_merchant(
        database, vault, name="Cent Shop", email="c@shop.example", fees=plan, now=utc_now()
    )
    shop = type(till)(till.desk, shop_of(merchant, live=False))
    await shop.pay(await shop.order(amount=Decimal("0.01"), currency="EUR"), VISA)
    payload = await database.fetchval("select payload from pingback where merchant_id = $1", merchant.id)
    money = {"paid_amount": 0.01, "merchant_net_revenue": -0.2608, "merchant_rolling_reserve": 0.0005, "fees": 0.2703}
    for name, amount in money.items():
        assert f'"{name}":{amount}' in payload
    entries = await database.fetch("select account, amount from ledger_entry where merchant_id = $1", merchant.id)
    assert {row["account"]: row["amount"] for row in entries} == {
        "acquirer": Decimal("0.0100"),
        "pending": Decimal("0.2608"),
        "reserve": Decimal("-0.0005"),
        "fees": Decimal("-0.2703"),
    }


async def test_an_approval_is_recorded_once_with_ledger_and_pingback_in_one_step(
    till: Any, open_attempt: int, database: Database
) -> None:
    approval = Approval(till.shop, open_attempt, Approved("reference"))
    assert await record_approvals(database, [approval], now=utc_now()) == {open_attempt}
    assert await counts(database, till.shop.merchant_id) == (4, 1)
    assert await record_approvals(database, [approval], now=utc_now()) == set()
    ending = Ending(till.shop, open_attempt, AttemptState.DECLINED, DeclineReason.DECLINED)
    assert await record_endings(database, [ending], now=utc_now()) == set(), "a decline comes too late"
    assert await counts(database, till.shop.merchant_id) == (4, 1)


async def test_if_the_pingback_can_not_be_written_nothing_is(
    till: Any, open_attempt: int, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    approval = Approval(till.shop, open_attempt, Approved("reference"))
    with monkeypatch.context() as patch:
        patch.setattr(destinations, "destination", lambda *_, **__: "a\x00b")
        assert await record_approvals(database, [approval], now=utc_now()) == set()
    alarm = await database.fetchrow("select subject, reason from alarm where merchant_id = $1", till.shop.merchant_id)
    assert alarm["subject"] == f"attempt {open_attempt}"
    assert "0x00" in alarm["reason"]
    assert await till.state() == "processing"
    assert await counts(database, till.shop.merchant_id) == (0, 0)
    assert await record_approvals(database, [approval], now=utc_now()) == {open_attempt}


async def test_test_and_live_never_meet(till: Any, open_attempt: int, database: Database, other_shop: Any) -> None:
    live = type(till.shop)(till.shop.merchant_id, live=True)
    for shop in (live, other_shop):
        assert await record_approvals(database, [Approval(shop, open_attempt, Approved("x"))], now=utc_now()) == set()
        ending = Ending(shop, open_attempt, AttemptState.DECLINED, DeclineReason.DECLINED)
        assert await record_endings(database, [ending], now=utc_now()) == set()
    assert await till.state() == "processing"


async def test_many_outcomes_are_recorded_together(till: Any, database: Database) -> None:
    mute = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1)))
    for _ in range(5):
        await mute.pay(await till.order(), VISA)
    ids = [row["id"] for row in await till.attempts()]
    approvals = [Approval(till.shop, id_, Approved(f"reference {id_}")) for id_ in ids]
    assert await record_approvals(database, approvals, now=utc_now()) == set(ids)
    assert {row["acquirer_reference"] for row in await till.attempts()} == {f"reference {id_}" for id_ in ids}
    sums = await database.fetch(
        "select posting_id, sum(amount) from ledger_entry where merchant_id = $1 group by 1", till.shop.merchant_id
    )
    assert [row["sum"] for row in sums] == [0] * 5


WRITTEN = {
    "payment": "state net reserve fees paid_at ship_by shipping_due_at captured_at funds_due_at subscription_id",
    "payment_attempt": "state acquirer_reference network_reference finished_at lookup_at leased_until",
    "checkout": "led_back_at",
    "ledger_posting": "kind currency acquirer pending reserve fees",
    "pingback": "event url sign_version key_id format state due_at created_at",
}
"""What an approval writes, but for what names the payment itself."""


@pytest.mark.parametrize("ships", [False, True])
async def test_a_payment_alone_is_recorded_as_one_beside_a_subscriptions(
    till: Any, database: Database, ships: bool
) -> None:
    await change_merchant(database, till.shop.merchant_id, shipped_goods=ships)
    mute, now = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1))), utc_now()
    for order, terms in enumerate((None, None, MONTHLY)):
        await mute.pay(await till.order(str(order), terms=terms), VISA)
    answer = Approved("reference", network_reference="network", hold_until=now + timedelta(days=5))
    alone, beside, subscribed = [
        Approval(till.shop, row["id"], answer, leads_back=True) for row in await till.attempts()
    ]
    for together in ([alone], [beside, subscribed]):
        assert await record_approvals(database, together, now=now) == {one.attempt_id for one in together}
    for table, columns in WRITTEN.items():
        rows = sorted(await till.rows(table), key=lambda row: row.get("payment_id") or row["id"])
        written = [[row[column] for column in columns.split()] for row in rows]
        if ships and table == "ledger_posting":
            assert len(written) == 1, "what is to be shipped is only held"
        else:
            assert written[0] == written[1], table
    told = sorted(await till.rows("pingback"), key=lambda row: int(row["payment_id"]))
    payloads = [re.sub(r"\d+", "N", row["payload"]) for row in told]
    assert payloads[0] == payloads[1] != payloads[2]


async def test_only_a_plain_decline_is_never_asked_for_again(till: Any, database: Database) -> None:
    mute = till.at(LyingAcquirer(till.desk.acquirers["simulator"], Lies(lose_answers=1)))
    now = utc_now()
    looks = {}
    for state in (AttemptState.DECLINED, AttemptState.FAILED):
        await mute.pay(await till.order(), VISA)
        id_ = (await till.attempts())[-1]["id"]
        await record_endings(database, [Ending(till.shop, id_, state, DeclineReason.PROCESSING_ERROR)], now=now)
        looks[state] = (await till.attempts())[-1]["lookup_at"]
    assert looks == {AttemptState.DECLINED: None, AttemptState.FAILED: now + timedelta(seconds=30)}


@pytest.mark.parametrize(
    ("form_url", "account_url", "state", "url"),
    [
        ("https://form.example/", "https://account.example/", "due", "https://form.example/"),
        (None, "https://account.example/", "due", "https://account.example/"),
        (None, None, "waiting", None),
    ],
)
async def test_a_pingback_goes_to_the_forms_address_else_the_accounts_else_waits(
    till: Any,
    database: Database,
    vault: Vault,
    form_url: str | None,
    account_url: str | None,
    state: str,
    url: str | None,
) -> None:
    merchant = await create_merchant(
        database, vault, name="Shop", email="o@shop.example", pingback_url=account_url, now=utc_now()
    )
    shop = type(till)(till.desk, shop_of(merchant, live=False))
    await shop.pay(await shop.order(pingback_url=form_url), VISA)
    row = await database.fetchrow("select * from pingback where merchant_id = $1", merchant.id)
    assert (row["state"], row["url"]) == (state, url)
    assert msgspec.json.decode(row["payload"])["payment_order"]["status"] == "successful"
