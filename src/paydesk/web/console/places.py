"""Where customers were when they paid, as far as their addresses tell."""

from __future__ import annotations

from babel import Locale

from paydesk.web.console.visit import Visit


def placed(visit: Visit, address: str, language: str = "") -> str:
    """An address with its country in the person's language, or in another one; without it where no
    file says so.
    """
    countries = visit.services.countries
    code = countries.country_of(address) if countries is not None and address else ""
    if not code:
        return address
    names = Locale.parse(language or visit.texts.language, sep="-").territories
    return f"{address}, {names.get(code, code)}"
