"""Receipts, the way to the shop, and the way to begin again, on a customer's own page."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from tests import breaking
from tests.conftest import accept_waiting, submit_profile
from tests.shopfront import offer_link

from paydesk.database.pool import Database
from paydesk.domain.merchants.merchant import Merchant
from paydesk.domain.subscriptions.items import WantedItem, add_item


async def test_each_payment_that_was_made_has_a_receipt(failing: Any, merchant: Merchant) -> None:
    page = await failing.page()
    (receipt,) = re.findall(rf'href="{failing.path}(/receipt/\d+)"', page)
    shown = await failing.page(below=receipt)
    for text in (merchant.name, "Coffee club", "10.00\u00a0USD", "•••• 0341", receipt.rpartition("/")[2]):
        assert text in shown


async def test_a_receipt_says_what_was_given_back(subscriber: Any, database: Database, merchant: Merchant) -> None:
    await breaking.say(database, "payment", {"merchant_id": merchant.id}, state="partially_refunded", refunded="3.0000")
    (receipt,) = re.findall(rf'href="{subscriber.path}(/receipt/\d+)"', await subscriber.page())
    assert re.search(r"Given back</dt><dd><bdi>3\.00\u00a0USD", await subscriber.page(below=receipt))


async def test_an_item_is_shown_before_its_charge_and_in_its_receipt(subscriber: Any) -> None:
    now = (await subscriber.now()).date_start
    wanted = WantedItem(Decimal("5.00"), "Set-up")
    await add_item(subscriber.desk.database, subscriber.shop, subscriber.id, wanted, by="api", now=now)
    page = await subscriber.page()
    assert "Once, with the next charge" in page
    assert re.search(r"<bdi>Set-up</bdi>, <bdi>5\.00\u00a0USD", page)
    assert re.search(r"15\.00\u00a0USD on", page)
    await subscriber.charge()
    page = await subscriber.page()
    assert "Set-up" not in page
    newest = re.findall(rf'href="{subscriber.path}(/receipt/\d+)"', page)[0]
    receipt = await subscriber.page(below=newest)
    assert re.search(r"Set-up</dt><dd><bdi>5\.00\u00a0USD", receipt)
    assert "15.00\u00a0USD" in receipt


async def test_there_is_no_receipt_for_what_is_no_payment_of_this_subscription(subscriber: Any, subscribe: Any) -> None:
    other = await subscribe()
    (foreign,) = re.findall(rf'href="{other.path}(/receipt/\d+)"', await other.page())
    for below in (foreign, "/receipt/1", "/receipt/x", f"/receipt/{'9' * 30}"):
        assert (await subscriber.web.get(subscriber.path + below)).status_code == 404


async def test_a_failing_subscription_is_called_so(failing: Any) -> None:
    assert '<span class="state failing">Payment failed</span>' in await failing.page()


async def test_the_shops_accepted_address_is_the_way_back_and_to_begin_again(
    subscriber: Any, database: Database, merchant: Merchant
) -> None:
    await submit_profile(database, merchant.id)
    await accept_waiting(database, merchant.id)
    assert 'href="https://shop.example/"' in await subscriber.page()
    assert "Subscribe again" not in await subscriber.page()
    await subscriber.cancel()
    assert '<a class="main" href="https://shop.example/">Subscribe again</a>' in await subscriber.page()


async def test_a_package_that_a_payment_link_sells_is_bought_there_again(
    subscribe: Any, database: Database, merchant: Merchant
) -> None:
    first = await subscribe()
    link = await offer_link(database, first.shop, price=None, monthly_price=Decimal("10.00"))
    again = await subscribe(recurring_sku_id=f"link-{link.row_id}-monthly", recurring_name="Tea club")
    await again.cancel()
    (path,) = re.findall(r'href="([^"]+)">Subscribe again', await again.page())
    assert path == f"/buy/{link.token(again.desk.vault)}"
    assert (await again.web.get(path)).status_code == 200
    await breaking.say(database, "payment_link", {"merchant_id": merchant.id}, active=False)
    assert path not in await again.page()


async def test_who_the_shop_is_stands_below_its_pages_once_an_operator_has_seen_it(
    subscriber: Any, database: Database, merchant: Merchant
) -> None:
    await submit_profile(database, merchant.id)
    said = {"terms_url": "https://shop.example/terms", "privacy_url": "https://shop.example/privacy"}
    await breaking.say(database, "business_profile", {"merchant_id": merchant.id}, **said)
    assert "Corner Shop Ltd" not in await subscriber.page()
    await accept_waiting(database, merchant.id)
    for below in ("", "/card", "/cancel"):
        page = await subscriber.page(below=below)
        assert "<bdi>Corner Shop Ltd</bdi>" in page
        assert 'href="mailto:help@shop.example"' in page
        assert re.search(r'href="https://shop.example/terms">\s*Terms and conditions', page)
        assert re.search(r'href="https://shop.example/privacy">\s*Privacy policy', page)
