"""One-off items of a subscription, in the account."""

from __future__ import annotations

import pytest
from tests.web.account.conftest import Join, Visitor, fields_of, leads_to, text_of
from tests.web.account.selling import Seller, seller_of
from tests.web.account.test_errors_in_every_language import speak
from tests.web.account.test_subscriptions import subscribe, url

from paydesk.domain.accounts.roles import Role
from paydesk.domain.payments.desk import Desk
from paydesk.domain.subscriptions.items import ItemState, list_items

SETUP = {"amount": "4.00", "description": "Set-up"}


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


async def items(seller: Seller, subscription_id: int) -> list[tuple[str, ItemState]]:
    found = await list_items(seller.database, seller.shop, subscription_id)
    return [(one.description, one.state) for one in found]


async def test_it_is_added_once_after_a_look_and_taken_back(owner: Visitor, seller: Seller) -> None:
    subscription_id = await subscribe(seller)
    page = url(owner, f"/{subscription_id}")
    assert f'href="{page}/items"' in (await owner.see(page)).text
    asked = await owner.send(f"{page}/items", **SETUP)
    assert "“Set-up” for 4.00 USD comes with the next charge, once: 14.00 USD on" in text_of(asked)
    assert await items(seller, subscription_id) == []
    agreed = fields_of(asked.text, f"{page}/items") | {"agreed": "1"}
    for _ in range(2):
        assert leads_to(await owner.web.post(f"{page}/items", data=agreed)) == page
    assert await items(seller, subscription_id) == [("Set-up", ItemState.WAITING)]
    assert await seller.audited("subscription_changed") == [f"subscription {subscription_id}"]
    shown = await owner.see(page)
    assert "One-off items" in shown.text
    assert "Next charge 14.00 USD" in text_of(shown)
    (item,) = await list_items(seller.database, seller.shop, subscription_id)
    back = f"{page}/items/{item.id}/take-back"
    assert back in shown.text
    asked = await owner.see(back)
    assert "Take back “Set-up”?" in text_of(asked)
    for _ in range(2):
        assert leads_to(await owner.web.post(back, data=fields_of(asked.text, back))) == page
    assert await items(seller, subscription_id) == [("Set-up", ItemState.TAKEN_BACK)]
    assert "Next charge 10.00 USD" in text_of(await owner.see(page))


async def test_its_amount_is_typed_as_the_other_ones_are(owner: Visitor, seller: Seller) -> None:
    page = url(owner, f"/{await subscribe(seller)}/items")
    asked = await owner.send(page, **SETUP | {"amount": "4,00"})
    assert "“Set-up” for 4.00 USD" in text_of(asked)
    assert "“Set-up” for 4.00 USD" not in text_of(await owner.send(page, **SETUP | {"amount": "4,000"}))
    agreed = fields_of(asked.text, page) | {"agreed": "1"}
    assert leads_to(await owner.web.post(page, data=agreed)) == page.removesuffix("/items")


@pytest.mark.parametrize(
    "wrong", [{"amount": "0"}, {"amount": "x"}, {"amount": "1.000"}, {"description": ""}, {"description": "x" * 1100}]
)
async def test_what_is_wrong_stands_at_its_field(owner: Visitor, seller: Seller, wrong: dict[str, str]) -> None:
    subscription_id = await subscribe(seller)
    page = url(owner, f"/{subscription_id}/items")
    asked = await owner.send(page, **SETUP | wrong)
    assert asked.status_code == 400
    assert 'aria-invalid="true"' in asked.text
    assert await items(seller, subscription_id) == []


@pytest.mark.parametrize("wrong", [{"agreed": "0"}, {"agreed": "1", "amuont": "1"}])
async def test_nothing_is_agreed_to_but_by_the_pages_own_word(
    owner: Visitor, seller: Seller, wrong: dict[str, str]
) -> None:
    subscription_id = await subscribe(seller)
    page = url(owner, f"/{subscription_id}/items")
    assert (await owner.send(page, **SETUP | wrong)).status_code == 400
    assert await items(seller, subscription_id) == []


async def test_they_are_for_those_who_may_cancel(owner: Visitor, seller: Seller, join: Join) -> None:
    subscription_id = await subscribe(seller)
    page = url(owner, f"/{subscription_id}")
    looker = await join(owner, Role.viewer)
    assert f'href="{page}/items"' not in (await looker.see(page)).text
    csrf = fields_of((await looker.see(page)).text, "/account/logout")
    for wish in ("items", "items/1/take-back"):
        assert (await looker.see(f"{page}/{wish}")).status_code == 403
        assert (await looker.web.post(f"{page}/{wish}", data=csrf | SETUP)).status_code == 403
    assert await items(seller, subscription_id) == []


async def test_one_that_ends_takes_none(owner: Visitor, seller: Seller) -> None:
    subscription_id = await subscribe(seller)
    page = url(owner, f"/{subscription_id}")
    await owner.send(f"{page}/end")
    assert f'href="{page}/items"' not in (await owner.see(page)).text


@pytest.mark.parametrize(
    ("language", "says"),
    [
        ("en", "The next charge would be 1000000000000.00 USD, and no payment is larger than 999999999999.9999"),
        ("fr", "Le prochain débit serait de 1000000000000.00 USD, et aucun paiement ne dépasse 999999999999.9999"),
        ("de", "Die nächste Abbuchung wäre 1000000000000.00 USD, und keine Zahlung ist größer als 999999999999.9999"),
    ],
)
async def test_one_too_many_is_refused_in_the_readers_language(
    owner: Visitor, seller: Seller, language: str, says: str
) -> None:
    subscription_id = await subscribe(seller)
    await speak(owner, language)
    refused = await owner.send(url(owner, f"/{subscription_id}/items"), **SETUP | {"amount": "999999999990.00"})
    assert refused.status_code == 409
    assert says in text_of(refused)
