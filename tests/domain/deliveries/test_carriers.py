from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from paydesk.domain.deliveries.carriers import NAMES, tracking_link


@pytest.mark.parametrize(
    "carrier",
    ["FedEx", "UPS", "DHL", "USPS", "DPD", "GLS", "TNT", "Royal Mail", "royal-mail", "U.P.S.", "DHL Express", "evri"],
)
def test_known_carriers_have_a_link_with_the_parcels_number(carrier: str) -> None:
    link = tracking_link(carrier, "1Z999AA10123456784")
    assert urlsplit(link).scheme == "https"
    assert "1Z999AA10123456784" in link


def test_every_carrier_to_choose_from_has_a_link() -> None:
    assert [name for name in NAMES if not tracking_link(name, "1")] == []


@pytest.mark.parametrize("carrier", ["", "My cousin's van", "DHLX", "{}", "fedex.evil.example", "__class__"])
def test_others_have_none(carrier: str) -> None:
    assert tracking_link(carrier, "1") == ""


def test_a_hostile_number_stays_within_its_place() -> None:
    link = tracking_link("DHL", '1&x=2#"><script>/../{0.__class__}')
    assert urlsplit(link).netloc == "www.dhl.com"
    assert not set('"<>{}') & set(link)
    assert urlsplit(link).query.count("&") == 0
    assert urlsplit(link).fragment == ""
