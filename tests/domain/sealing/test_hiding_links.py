"""Links of older versions, which stood in the database in clear, are hidden and go on working."""

from __future__ import annotations

import json
import secrets
from typing import Any

import httpx
import pytest
from tests import breaking
from tests.domain.payments.test_card_secrecy import dump
from tests.links import newest_portal
from tests.till import Till

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import NotFound
from paydesk.database.pool import Database
from paydesk.domain.billing.for_customer import find_holding
from paydesk.domain.mail.telling import tell_events
from paydesk.domain.merchants.customer_links import LinkTo, open_link
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.checkouts import find_checkout
from paydesk.domain.payments.desk import Desk
from paydesk.domain.sealing import hiding_links
from paydesk.domain.sealing.hiding_links import hide_left_links, hide_links


def old_token(shop: Shop) -> str:
    """A link as older versions made it."""
    return f"{'l' if shop.live else 't'}{shop.merchant_id:x}-{secrets.token_hex(16)}"


class Before:
    """A checkout, a subscription and a mail as the version before left them."""

    def __init__(self, database: Database, vault: Vault, shop: Shop) -> None:
        self.database, self.vault, self.shop = database, vault, shop
        self.checkout, self.portal = old_token(shop), old_token(shop)

    async def leave(self) -> None:
        merchant_id = self.shop.merchant_id
        await breaking.say(self.database, "checkout", {"merchant_id": merchant_id}, token=self.checkout)
        before = {"portal_token": self.portal, "portal_seed": None}
        await breaking.say(self.database, "subscription", {"merchant_id": merchant_id}, **before)
        await self.database.execute(
            "insert into mail (merchant_id, kind, recipient, language, facts, once, due_at, created_at)"
            " values ($1, 'receipt', 'a@shop.example', 'en', $2, 'receipt', now(), now())",
            merchant_id, json.dumps({"portal_token": self.portal, "name": "Ada"}),
        )  # fmt: skip

    async def open_both(self) -> None:
        """Both links lead to what they led to."""
        checkout = open_link(self.vault, LinkTo.CHECKOUT, self.checkout)
        assert (await find_checkout(self.database, checkout, now=utc_now())).shop == self.shop
        portal = open_link(self.vault, LinkTo.PORTAL, self.portal)
        assert (await find_holding(self.database, portal, now=utc_now())).shop == self.shop

    async def mail(self) -> dict[str, Any]:
        found = await self.database.fetchval(
            "select facts from mail where merchant_id = $1 and once = 'receipt'", self.shop.merchant_id
        )
        return dict(json.loads(found))


@pytest.fixture
async def before(desk: Desk, shop: Shop, vault: Vault) -> Before:
    await Till(desk, shop).subscribe()
    left = Before(desk.database, vault, shop)
    await left.leave()
    return left


async def test_no_link_rests_anywhere_that_this_version_makes(
    desk: Desk, shop: Shop, vault: Vault, database_url: str, web: httpx.AsyncClient, signed_form: Any
) -> None:
    opened = await web.post("/payment/form", data=signed_form())
    await web.get(opened.headers["location"])
    await Till(desk, shop).subscribe()
    await tell_events(desk.database, real_now=utc_now(), keep_test=True)
    portal = (await newest_portal(desk.database, shop.merchant_id)).token(vault)
    text = await dump(database_url)
    assert "COPY public.mail" in text
    for token in (opened.headers["location"].rpartition("/")[2], portal):
        proof, hidden_id = token[-48:-16], token[-16:]
        assert not any(part in text for part in (token, proof, hidden_id))


async def test_they_work_before_they_are_hidden_and_after(before: Before, database_url: str) -> None:
    await before.open_both()
    assert (await newest_portal(before.database, before.shop.merchant_id)).token(before.vault) == before.portal
    assert await hide_links(before.database, before.vault) >= 2
    await before.open_both()
    assert await hide_links(before.database, before.vault) == 0
    text = await dump(database_url)
    assert before.checkout.partition("-")[2] not in text
    assert before.portal.partition("-")[2] not in text


async def test_what_is_told_from_then_on_is_the_link_that_rests_nowhere(before: Before) -> None:
    await hide_links(before.database, before.vault)
    link = await newest_portal(before.database, before.shop.merchant_id)
    told = link.token(before.vault)
    assert told != before.portal
    holding = await find_holding(before.database, open_link(before.vault, LinkTo.PORTAL, told), now=utc_now())
    assert holding.subscription.id == link.row_id
    assert await before.mail() == {"name": "Ada", "portal": {"id": link.row_id, "seed": link.seed}}


async def test_another_secret_key_finds_none(before: Before, database: Database) -> None:
    await hide_links(database, before.vault)
    stranger = Vault({"k": bytes(32)}, secrets.token_bytes(32))
    for to, token, find in (
        (LinkTo.CHECKOUT, before.checkout, find_checkout),
        (LinkTo.PORTAL, before.portal, find_holding),
    ):
        with pytest.raises(NotFound):
            await find(database, open_link(stranger, to, token), now=utc_now())


async def test_a_link_of_one_merchant_opens_nothing_of_another(before: Before, other_shop: Shop) -> None:
    await hide_links(before.database, before.vault)
    secret = before.portal.partition("-")[2]
    for token in (f"t{other_shop.merchant_id:x}-{secret}", "l" + before.portal[1:], before.checkout):
        with pytest.raises(NotFound):
            await find_holding(before.database, open_link(before.vault, LinkTo.PORTAL, token), now=utc_now())


async def test_workers_hide_what_they_find(before: Before, database: Database) -> None:
    await hide_left_links(database, before.vault)
    clear = "select count(*) from checkout where merchant_id = $1 and token is not null"
    assert await database.fetchval(clear, before.shop.merchant_id) == 0
    assert not await hiding_links.queries.are_left(database)
    await before.open_both()


async def test_many_are_hidden_page_by_page(
    before: Before, database: Database, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hiding_links, "BATCH", 3)
    await database.execute(
        "insert into checkout (merchant_id, live, token, request_digest, merchant_order_id, amount, currency,"
        " description, success_url, sign_version, key_id, parameters, created_at, expires_at)"
        " select merchant_id, live, $2 || n, sha256(n::text::bytea), 'o', 1, 'USD', '', '', 'v1', key_id, '{}', now(),"
        " now() from checkout, generate_series(100, 110) n where merchant_id = $1",
        merchant.id, before.checkout[:-3],
    )  # fmt: skip
    await database.execute(
        "insert into mail (merchant_id, kind, recipient, language, facts, once, due_at, created_at)"
        " select $1, 'receipt', 'a@shop.example', 'en', $2, 'receipt ' || n, now(), now()"
        " from generate_series(1, 10) n",
        merchant.id, json.dumps({"portal_token": before.portal}),
    )  # fmt: skip
    await hide_links(database, before.vault)
    left = await database.fetchval(
        "select (select count(*) from checkout where merchant_id = $1 and token is not null)"
        " + (select count(*) from mail where merchant_id = $1 and facts ->> 'portal_token' is not null)",
        merchant.id,
    )
    assert left == 0
    await before.open_both()


async def test_each_way_to_a_row_has_its_index(database: Database) -> None:
    async with database.acquire() as connection, connection.transaction():
        await connection.execute("set local enable_seqscan = off")
        for table, column, index in (
            ("checkout", "token", "checkout_by_old_token"),
            ("checkout", "token_hash", "checkout_by_token_hash"),
            ("subscription", "portal_token", "subscription_by_old_token"),
            ("subscription", "portal_token_hash", "subscription_by_token_hash"),
        ):
            kind = "bytea" if column.endswith("hash") else "text"
            rows = await connection.fetch(
                f"explain select id from {table} where merchant_id = 1 and {column} = 'x'::{kind}"
            )
            assert index in "\n".join(row[0] for row in rows)
