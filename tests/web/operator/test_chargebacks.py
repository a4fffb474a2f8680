"""Chargebacks over all merchants, as operators read them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from tests import set_back
from tests.core.documents import hostile
from tests.web.account.conftest import Visitor, text_of
from tests.web.account.selling import Seller, seller_of

from paydesk.adapters.acquirers.disputes import EvidenceKind
from paydesk.core.clock import utc_now
from paydesk.database.pool import Database
from paydesk.domain.chargebacks.evidence_files import add_file
from paydesk.domain.payments.desk import Desk


@pytest.fixture
def seller(desk: Desk, owner: Visitor) -> Seller:
    return seller_of(desk, owner)


async def dispute(seller: Seller, payment_id: int, at: datetime, *, until: datetime | None = None) -> int:
    """A chargeback of a payment: when it was opened, and until when the bank takes an answer."""
    return int(
        await seller.database.fetchval(
            "insert into chargeback (merchant_id, live, payment_id, state, acquirer, acquirer_reference, amount,"
            " currency, fee, reason, opened_at, respond_by) values ($1, false, $2, 'open', 'simulator', $3, 10, 'USD',"
            " 15, 'fraudulent', $4, $5) returning id",
            seller.shop.merchant_id,
            payment_id,
            f"d-{payment_id}",
            at,
            until,
        )
    )


async def test_a_dispute_beside_a_test_clock_is_read_in_its_shops_time(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    payment_id = await seller.sell()
    await set_back.clock_runs_ahead(database, seller.shop.merchant_id, timedelta(days=365))
    real_day = utc_now() + timedelta(days=10)
    chargeback_id = await dispute(seller, payment_id, utc_now() + timedelta(days=365), until=real_day)
    shown = text_of(await operator.see(f"/operator/chargebacks/{seller.shop.merchant_id}/{chargeback_id}"))
    day = real_day + timedelta(days=365)
    assert re.search(rf"Answer until {day:%b} {day.day}, {day.year}, .*?\( ?in 1 week ?\)", shown), shown
    told = text_of(await operator.see(f"/operator/merchants/{seller.shop.merchant_id}/payments/{payment_id}"))
    assert "in 1 year" not in told
    assert "just now" in told


async def test_chargebacks_of_all_merchants_are_listed_and_read(
    operator: Visitor, seller: Seller, database: Database
) -> None:
    payment_id = await seller.sell()
    chargeback_id = await dispute(seller, payment_id, utc_now() + timedelta(days=50 * 365))
    shown = text_of(await operator.see("/operator/chargebacks?side=test&state=open"))
    assert "Corner Shop" in shown
    assert "Not given yet" in shown
    path = f"/operator/chargebacks/{seller.shop.merchant_id}/{chargeback_id}"
    detail = await operator.see(path)
    assert "fraudulent" in text_of(detail)
    for words in ("did not pay this", "What we know", "Grace Hopper", "Paid from", "none was sent"):
        assert words in text_of(detail), words
    assert "•••• 4242" not in detail.text
    assert "42424242" not in detail.text
    assert (await operator.see(f"/operator/chargebacks/{seller.shop.merchant_id}/999999999")).status_code == 404
    await add_file(seller.desk, seller.shop, chargeback_id, EvidenceKind.DELIVERY, "note.pdf", hostile(), now=utc_now())
    listed = await operator.see(path)
    assert "Delivery: a label, a signed note" in text_of(listed)
    assert "Remove" not in text_of(listed)
    (link,) = re.findall(rf'href="({path}/files/[0-9]+)"', listed.text)
    file = await operator.see(link)
    assert file.headers["content-disposition"].startswith("attachment; ")
    assert (file.content[:5], b"JavaScript" in file.content) == (b"%PDF-", False)
    assert (await operator.see(link.replace(f"/{chargeback_id}/", "/999999999/"))).status_code == 404
