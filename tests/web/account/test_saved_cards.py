"""A team sees which cards customers have saved, by kind and last four digits."""

import pytest
from tests import set_back
from tests.shopfront import become_known, save_card
from tests.web.account.conftest import Visitor, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.adapters.acquirers.simulator import Bank
from paydesk.core.clock import utc_now
from paydesk.domain.payments.desk import Desk
from paydesk.domain.shoppers.instruments import remove


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


async def test_the_list_shows_kind_last_digits_and_what_is_allowed(
    owner: Visitor, seller: Seller, desk: Desk, bank: Bank
) -> None:
    await set_back.no_codes_counted(desk.database)
    ada = await become_known(desk, seller.shop)
    eve = await become_known(desk, seller.shop, "eve@example.com")
    await save_card(desk, bank, ada)
    card = await save_card(desk, bank, eve, later=None)
    path = f"{owner.merchant_path}/saved-cards"
    page = text_of(await owner.web.get(path))
    assert "Visa •••• 4242" in page
    assert "what your car has charged; at most 50.00 USD within 30 days" in page.replace("\u00a0", " ")
    assert "4242424242" not in page
    one = text_of(await owner.web.get(f"{path}?q=EVE@example.com"))
    assert "eve@example.com" in one
    assert "ada@example.com" not in one
    await remove(desk.database, seller.shop, eve.id, card, now=utc_now())
    assert "eve@example.com" not in text_of(await owner.web.get(path))


async def test_an_empty_list_says_so(owner: Visitor) -> None:
    assert "No saved cards yet." in text_of(await owner.web.get(f"{owner.merchant_path}/saved-cards"))
