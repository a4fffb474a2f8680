"""What the account's pages say of limits follows the constants that these are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.changing import change
from tests.web.account.conftest import Visitor, text_of

SHIPPING = "paydesk.domain.payments.time_to_ship"
KEYS = "paydesk.domain.business.key_pairs"


@pytest.mark.parametrize(("days", "words"), [(7, "7 days"), (9, "9 days"), (1, "1 day")])
async def test_how_long_an_order_may_wait_to_be_shipped(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch, days: int, words: str
) -> None:
    change(monkeypatch, SHIPPING, "TIME_TO_SHIP", timedelta(days=days))
    waiting = text_of(await owner.see(f"{owner.merchant_path}/deliveries"))
    assert f"After {words} it goes back to the customer." in waiting
    settings = text_of(await owner.see(f"{owner.merchant_path}/settings/shop"))
    assert f"What is not confirmed within {words} goes back" in settings


async def test_how_long_old_keys_go_on(owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"{owner.merchant_path}/developers/keys"
    usual = text_of(await owner.see(page))
    assert usual.index("In 24 hours") < usual.index("In 7 days") < usual.index("At once")
    change(monkeypatch, KEYS, "GRACE_PERIODS", (timedelta(hours=1), timedelta(days=3)))
    changed = text_of(await owner.see(page))
    assert changed.index("In 1 hour") < changed.index("In 3 days")
    assert not [each for each in ("24 hours", "7 days", "At once") if each in changed]
    refused = await owner.send(page, grace="24", scope=["sign", "read", "move"])
    assert refused.status_code == 400
    made = await owner.send(page, grace="72", scope=["sign", "read", "move"])
    assert made.status_code == 200


async def test_how_long_a_password_is(owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "At least 12 characters. Your other sessions end." in text_of(await owner.see("/account/security"))
    change(monkeypatch, "paydesk.domain.accounts.passwords", "SHORTEST", 15)
    page = await owner.see("/account/security")
    assert "At least 15 characters." in text_of(page)
    assert 'minlength="15"' in page.text


async def test_how_long_a_charge_that_failed_is_tried_again(owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"{owner.merchant_path}/settings/shop"
    assert "At most 10 tries in 60 days." in text_of(await owner.see(page))
    change(monkeypatch, "paydesk.domain.subscriptions.dunning", "MOST_TRIES", 8)
    change(monkeypatch, "paydesk.domain.subscriptions.dunning", "LONGEST_PLAN", 30 * 24)
    assert "At most 8 tries in 30 days." in text_of(await owner.see(page))


async def test_how_much_of_failed_charges_is_looked_at(owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"{owner.merchant_path}/subscriptions/dunning"
    assert "92 days at most; without days the last 30." in text_of(await owner.see(page))
    change(monkeypatch, "paydesk.domain.business.dunning_for_team", "MOST_DAYS", timedelta(days=60))
    change(monkeypatch, "paydesk.domain.business.dunning_for_team", "USUAL_DAYS", timedelta(days=20))
    assert "60 days at most; without days the last 20." in text_of(await owner.see(page))


async def test_how_long_declines_are_counted_and_cards_refused(owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"{owner.merchant_path}/settings/cards"
    change(monkeypatch, "paydesk.domain.payments.card_guard", "PAUSE_FOR", timedelta(minutes=25))
    said = text_of(await owner.see(page))
    assert "Declines in 10 minutes from which all are asked for 3-D Secure" in said
    assert "no cards are taken for 25 minutes." in said


async def test_how_large_a_logo_may_be(owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    page = f"{owner.merchant_path}/settings/branding"
    assert "at most 200 kB" in text_of(await owner.see(page))
    change(monkeypatch, "paydesk.domain.business.branding", "LARGEST_LOGO", 90 * 1024)
    assert "at most 90 kB" in text_of(await owner.see(page))


async def test_how_short_a_period_may_be_that_is_paid_by_direct_debit(
    owner: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = f"{owner.merchant_path}/settings/shop"
    assert "for periods of 14 days or more" in text_of(await owner.see(page))
    change(monkeypatch, "paydesk.domain.subscriptions.subscription_terms", "SHORTEST_FOR_SLOW", 21)
    assert "for periods of 21 days or more" in text_of(await owner.see(page))
