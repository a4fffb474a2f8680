"""Files of countries by address, as their publishers make them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmdb_writer import MMDBWriter
from netaddr import IPSet


def write_countries(path: Path, countries: Mapping[str, Any], kind: str = "GeoLite2-Country") -> Path:
    """A file that says what belongs to each of some networks."""
    writer = MMDBWriter(ip_version=6, ipv4_compatible=True, database_type=kind)
    for network, record in countries.items():
        writer.insert_network(IPSet([network]), record)
    writer.to_db_file(str(path))
    return path
