"""How amounts that are set once read in each currency: a fee of 15 is 15 USD, and 1,500 JPY.

A unit here is about what one US dollar was worth when this was written, rounded down to 1, 2 or 5
with zeros. All others count as 1. It is a rule of thumb for fees and limits, no exchange rate:
nothing is converted by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

_NAMED = {
    "0.2": "BHD KWD OMR",
    "0.5": "JOD",
    "2": "AED GEL ILS MYR PEN PLN QAR RON SAR TND",
    "5": "BOB BRL CNY DKK GTQ HKD MAD MOP SEK TTD",
    "10": "BWP GHS MDL MXN NAD NOK SCR ZAR",
    "20": "CZK EGP HNL MUR NIO THB TRY TWD UAH UYU ZMW",
    "50": "AFN ALL DOP INR MKD PHP RUB",
    "100": "BDT DJF DZD ETB ISK JMD JPY KES NPR RSD VUV XPF",
    "200": "AMD HUF KMF KZT LKR PKR YER",
    "500": "CLP CRC SOS XAF XOF",
    "1000": "ARS IQD KRW MWK NGN RWF",
    "2000": "BIF COP KHR MGA MMK MNT TZS UGX",
    "5000": "GNF PYG",
    "10000": "IDR UZS",
    "20000": "LAK VND",
    "50000": "LBP",
}

UNITS: Mapping[str, Decimal] = {
    currency: Decimal(units) for units, currencies in _NAMED.items() for currency in currencies.split()
}
"""Of the currencies whose unit is not 1; the table `currency_unit` holds the same
for statements."""


def in_currency(amount: Decimal, currency: str) -> Decimal:
    """An amount that is set for dollars, euros and pounds, as it reads in main units
    of `currency`.
    """
    return amount * UNITS.get(currency, Decimal(1))
