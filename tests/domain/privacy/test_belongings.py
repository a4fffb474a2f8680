"""Whose rows are whose, however the letters of an address are written, and whatever the database's
locale makes of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from tests import set_back, shopfront
from tests.conftest import migrated_database
from tests.domain.payments.test_card_secrecy import dump

from paydesk.adapters.vault import Vault
from paydesk.core.clock import utc_now
from paydesk.core.errors import Malformed
from paydesk.database.pool import Database, connected
from paydesk.domain.merchants.refused_forms import log_rejected_form
from paydesk.domain.merchants.shop import Shop
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.results import Paid
from paydesk.domain.privacy.belongings import Subject
from paydesk.domain.privacy.erasing import erase
from paydesk.domain.privacy.erasures import PURPOSE, ErasureLine, ErasureList, still_there
from paydesk.domain.privacy.exporting import export

VISA = "4242424242424242"
TYPED = {
    "İrem.Çelik@plume.example": "İrem Çelikoğlu",
    "ΝΙΚΟΣ@plume.example": "ΝΙΚΟΣ ΞΕΝΑΚΗΣ",
    "Özge@plume.example": "Özge ÇELİKOĞLU",
}
USUAL, THREE_MACHINES = "", "locale_provider libc locale 'C'"
"""The locale of our own servers, and that of three machines for the database, which knows the small
letters of ASCII alone.
"""


@pytest.fixture(scope="module", params=[USUAL, THREE_MACHINES], ids=["usual", "C"])
async def database_url(server_url: str, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    async with migrated_database(server_url, cell=None, locale=request.param) as url:
        yield url


@pytest.fixture(scope="module")
async def database(database_url: str) -> AsyncIterator[Database]:
    async with connected(database_url) as pool:
        yield pool


async def buy(desk: Desk, shop: Shop, email: str, name: str) -> None:
    """Somebody pays, and a form of theirs that holds their name as a page's address is refused."""
    link = await shopfront.order(desk.database, shop, "mug-1", email=email, form={"note": f"for {name.upper()}"})
    assert await shopfront.pay(desk, link, VISA, name=name, email=email) == Paid()
    address = f"https://shop.example/thanks?who={quote_plus(name)}&to={quote_plus(email)}"
    await log_rejected_form(desk.database, shop, Malformed("odd"), {"url": address, "to": [email]}, utc_now())
    await set_back.acknowledged(desk.database, {"merchant_id": shop.merchant_id, "state": "due"})


@pytest.mark.parametrize("email", TYPED)
async def test_who_typed_their_address_so_is_handed_out_and_erased_by_it(
    desk: Desk, shop: Shop, database_url: str, email: str
) -> None:
    name = TYPED[email]
    await buy(desk, shop, email, name)
    subject = Subject(shop.merchant_id, email=email)
    rows = await export(desk.database, subject, now=utc_now())
    assert {kind: len(rows[kind]) for kind in ("customers", "payments", "refused_forms")} == {
        "customers": 1, "payments": 1, "refused_forms": 1,
    }  # fmt: skip
    await erase(desk.database, subject, now=utc_now())
    left = await dump(database_url)
    ways = {way for one in (email, name) for way in (one, one.lower(), one.upper(), quote_plus(one))}
    assert [way for way in ways if way in left] == []


@pytest.mark.parametrize("email", TYPED)
async def test_the_list_erases_again_who_typed_their_address_so(
    desk: Desk, shop: Shop, vault: Vault, tmp_path: Path, email: str
) -> None:
    """Also by lines of earlier versions, whose small letters were Python's."""
    await buy(desk, shop, email, TYPED[email])
    subject = Subject(shop.merchant_id, email=email)
    ours = ErasureList(tmp_path / "erasures.jsonl", vault)
    ours.remember(subject, now=utc_now())
    before = vault.fingerprint(f"{shop.merchant_id} email {email.lower()}", purpose=PURPOSE).hex()
    for lines in (ours.read(), [ErasureLine(utc_now(), shop.merchant_id, before)]):
        (again,) = await still_there(desk.database, ours, lines)
    await erase(desk.database, again, again=True, now=utc_now())
    assert await still_there(desk.database, ours, ours.read()) == []
