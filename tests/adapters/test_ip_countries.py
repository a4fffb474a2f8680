"""Countries of addresses, from files as their publishers make them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.mmdb import write_countries

from paydesk.adapters.ip_countries import IpCountries
from paydesk.core.errors import SetupError

ELSEWHERE = {"continent": {"code": "EU"}}
GERMAN = {"country": {"iso_code": "DE", "names": {"en": "Germany"}}}


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("192.0.2.7", "DE"),
        ("2001:db8::7", "FR"),
        ("::ffff:192.0.2.7", "DE"),
        ("198.51.100.7", ""),
        ("203.0.113.7", ""),
        ("unknown", ""),
        ("", ""),
    ],
)
def test_an_address_has_a_country_where_the_file_knows_one(tmp_path: Path, address: str, code: str) -> None:
    known = {
        "192.0.2.0/24": GERMAN,
        "2001:db8::/32": {"country": "FR"},
        "203.0.113.0/24": ELSEWHERE,
    }
    assert IpCountries(write_countries(tmp_path / "c.mmdb", known)).country_of(address) == code


def test_a_file_that_is_not_there_is_no_mmdb_or_has_no_countries_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "text.mmdb").write_text("no such thing")
    networks = write_countries(tmp_path / "asn.mmdb", {"192.0.2.0/24": {"autonomous_system_number": 1}}, "GeoLite2-ASN")
    for path, said in (
        (tmp_path / "gone", "cannot read"),
        (tmp_path / "text.mmdb", "no mmdb"),
        (networks, "countries"),
    ):
        with pytest.raises(SetupError, match=f"PAYDESK_IP_COUNTRIES.*{said}"):
            IpCountries(path)
