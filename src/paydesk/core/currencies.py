"""The currencies there are or were: a code that leaves ISO 4217 keeps the digits that it had
when it was stored.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from iso4217 import Currency

_BY_DIGITS: Final = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    2: (
        "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW"
        " CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF"
        " IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK"
        " MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP"
        " SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG"
        " YER ZAR ZMW ZWG"
    ),
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
"""Every currency of ISO 4217 as the locked list has it, by its digits. A test compares the two: one
that the list gains is added here, one that it loses moves to the withdrawn ones, so that no release
forgets digits that rows rely on.
"""

WITHDRAWN: Final = {
    0: "BYR",
    2: "ANG BGN CUC EEK HRK LTL LVL MRO SLL STD VEF ZMK ZWL",
}
"""Currencies that left ISO 4217 since 2010, by the digits that they had."""


def _digits_of(lists: dict[int, str]) -> dict[str, int]:
    return {code: digits for digits, codes in lists.items() for code in codes.split()}


DIGITS: Final = _digits_of(_BY_DIGITS) | _digits_of(WITHDRAWN)
"""The digits of every currency that money may be in:
what was stored years ago is read by them too."""


@cache
def minor_digits(currency: str) -> int:
    """How many decimals the currency has, or had when it left ISO 4217:
    2 for USD, 0 for JPY, 3 for BHD.

    Raises: ValueError if it never was one.
    """
    known = DIGITS.get(currency)
    return (Currency(currency).exponent or 0) if known is None else known


def charge_digits(currency: str) -> int:
    """How many decimals a charge has that we work out ourselves: acquirers take two of a dinar's
    three, and none of an ariary's.

    Raises: ValueError if it never was one.
    """
    return _DIGITS_OF_CHARGES.get(currency, minor_digits(currency))


_DIGITS_OF_CHARGES: Final = {**dict.fromkeys(_BY_DIGITS[3].split(), 2), "MGA": 0}
"""Where acquirers take fewer decimals than ISO 4217 has.

Source: docs.stripe.com/currencies, "Zero-decimal currencies" and "Three-decimal currencies".
"""


def is_current(code: str) -> bool:
    """Whether people pay with it today."""
    try:
        return Currency(code).exponent is not None
    except ValueError:
        return False


def is_withdrawn(code: str) -> bool:
    """Whether people paid with it once: it is in no list any more, but rows may be in it."""
    return code in DIGITS and not is_current(code)
