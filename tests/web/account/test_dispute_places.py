"""The countries of addresses in a dispute, where the operator has a file of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import set_back
from tests.mmdb import write_countries
from tests.web.account.conftest import Visitor, text_of
from tests.web.account.selling import seller_of

from paydesk.core.clock import utc_now
from paydesk.domain.chargebacks.reading_acquirers import read_disputes
from paydesk.domain.payments.desk import Desk
from paydesk.settings import Settings


@pytest.fixture
def settings(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Of a deployment that has a file of countries."""
    folder: Path = tmp_path_factory.mktemp("countries")
    written = write_countries(folder / "countries.mmdb", {"192.0.2.0/24": {"country": {"iso_code": "DE"}}})
    return settings.model_copy(update={"ip_countries": str(written)})


async def test_evidence_names_the_country_that_an_order_was_paid_from(owner: Visitor, desk: Desk) -> None:
    seller = seller_of(desk, owner)
    await set_back.banks_tell_again(seller.database)
    await seller.sell("A-16")
    await seller.sell("A-17", number="4000000000000259")
    await read_disputes(seller.desk, now=utc_now())
    dispute = await seller.database.fetchval(
        "select id from chargeback where merchant_id = $1", seller.shop.merchant_id
    )
    shown = text_of(await owner.see(f"{owner.merchant_path}/disputes/{dispute}"))
    assert "Paid from the address 192.0.2.1, Germany." in shown
    assert "from the address 192.0.2.1, Germany, and did not dispute it" in shown
    assert shown.count("192.0.2.1, Germany") == 4
