"""Which country an IP address belongs to, by a file of the operator's in MaxMind's format."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path

import maxminddb

from paydesk.core.errors import SetupError


class IpCountries:
    """An mmdb file as MaxMind (GeoLite2 Country), DB-IP (IP to Country Lite) and others publish;
    it is read where it lies, a few pages for each address.
    """

    def __init__(self, path: Path) -> None:
        """Open the file. Raises: SetupError if that can't be done, or if it has no countries."""
        try:
            self._reader = maxminddb.open_database(path)
        except OSError as error:
            raise SetupError(f"PAYDESK_IP_COUNTRIES: cannot read {path}: {error.strerror or error}") from error
        except maxminddb.InvalidDatabaseError as error:
            raise SetupError(f"PAYDESK_IP_COUNTRIES: {path} is no mmdb file: {error}") from error
        kind = self._reader.metadata().database_type
        if not any(part in kind for part in ("Country", "City", "Location")):
            self._reader.close()
            raise SetupError(f"PAYDESK_IP_COUNTRIES: {path} ({kind}) does not say countries; take one of countries")

    def country_of(self, address: str) -> str:
        """The ISO 3166 code of an address's country, such as `DE`; empty if it is not known."""
        try:
            asked = ip_address(address)
            found = self._reader.get(getattr(asked, "ipv4_mapped", None) or asked)
        except (ValueError, maxminddb.InvalidDatabaseError):
            return ""
        country = found.get("country") if isinstance(found, Mapping) else None
        code = country.get("iso_code") if isinstance(country, Mapping) else country
        return code if isinstance(code, str) else ""
