"""What a coupon is, and what it makes of a price."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

from paydesk.core.currencies import charge_digits
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.money import fits, parse_amount, parse_currency
from paydesk.core.wording import plural, worded
from paydesk.domain.subscriptions.subscription_terms import MOST_PAYMENTS, Discount, Terms, sku_of

LONGEST_CODE = 40
MOST_USES = 1_000_000
MOST_SKUS = 50

_CODE = re.compile(rf"[A-Z0-9_-]{{1,{LONGEST_CODE}}}")
_WHOLE = re.compile(r"[0-9]{1,7}")
_PERCENT = re.compile(r"[0-9]{1,2}(\.[0-9]{1,2})?|100(\.0{1,2})?")


class CouponRefused(Conflict):
    """A coupon can't be used at a checkout; `why` is a word for it."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(frozen=True, slots=True)
class Coupon:
    """What takes `percent` or `amount` off a price, for so many regular payments (`periods`, all if
    None); it is for `skus`, all packages if there are none, and in `currency`, any if None.

    `uses` counts what was paid with it, or is being paid just now.
    """

    id: int
    code: str
    percent: Decimal | None
    amount: Decimal | None
    currency: str | None
    periods: int | None
    valid_from: datetime | None
    valid_until: datetime | None
    most_uses: int | None
    most_per_customer: int | None
    skus: list[str]
    active: bool
    created_at: datetime
    uses: int


@dataclass(frozen=True, slots=True)
class CouponTerms:
    """What a new coupon is to be."""

    code: str
    percent: Decimal | None
    amount: Decimal | None
    currency: str | None
    periods: int | None
    valid_from: datetime | None
    valid_until: datetime | None
    most_uses: int | None
    most_per_customer: int | None
    skus: tuple[str, ...]


def read_code(text: str, field: str = "code") -> str:
    """A code as it is stored: in capital letters, whatever was typed.

    Raises: Malformed.
    """
    code = text.strip().upper()
    if not _CODE.fullmatch(code):
        raise Malformed(
            plural(
                "%(field)s is 1 to %(count)s letter from A to Z, digits, - and _",
                "%(field)s is 1 to %(count)s letters from A to Z, digits, - and _",
                field=field,
                count=LONGEST_CODE,
            ),
            field,
        )
    return code


def read_terms(
    given: Mapping[str, str], skus: tuple[str, ...], *, valid_from: datetime | None, valid_until: datetime | None
) -> CouponTerms:
    """Check what a coupon is to be; texts that are missing or empty say nothing.

    Raises: Malformed, naming the field.
    """
    percent, amount = given.get("percent", ""), given.get("amount", "")
    if bool(percent) == bool(amount):
        raise Malformed(worded("give either percent or amount"), "percent")
    stated = given.get("currency", "")
    currency = parse_currency(stated) if stated else None
    if amount and currency is None:
        raise Malformed(worded("currency is missing: an amount is of one"), "currency")
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise Malformed(worded("valid_until must be after valid_from"), "valid_until")
    if len(skus) > MOST_SKUS:
        raise Malformed(
            plural(
                "%(count)s package is named, at most %(most_skus)s are accepted",
                "%(count)s packages are named, at most %(most_skus)s are accepted",
                count=len(skus),
                most_skus=MOST_SKUS,
            ),
            "sku_ids",
        )
    return CouponTerms(
        code=read_code(given.get("code", "")),
        percent=_percent(percent) if percent else None,
        amount=parse_amount(amount, currency, "amount") if amount and currency else None,
        currency=currency,
        periods=_number(given, "periods", MOST_PAYMENTS),
        valid_from=valid_from,
        valid_until=valid_until,
        most_uses=_number(given, "most_uses", MOST_USES),
        most_per_customer=_number(given, "most_per_customer", MOST_USES),
        skus=tuple(dict.fromkeys(sku_of(sku, "sku_ids") for sku in skus)),
    )


def discounted(terms: Terms, coupon: Coupon) -> Terms:
    """What a coupon makes of terms: the price of a trial stays as it is, and none is below 0.

    Raises: CouponRefused if it is for other packages or another currency, or takes nothing off.
    """
    if coupon.skus and terms.sku_id not in coupon.skus:
        raise CouponRefused("elsewhere", f"coupon {coupon.code} is not for the package {terms.sku_id}")
    if coupon.currency not in (None, terms.currency):
        raise CouponRefused("elsewhere", f"coupon {coupon.code} is for {coupon.currency}, not {terms.currency}")
    price = max(terms.price - _off(terms, coupon), Decimal(0))
    if price == terms.price or not fits(price, terms.currency):
        raise CouponRefused("elsewhere", f"coupon {coupon.code} takes nothing off {terms.price} {terms.currency}")
    lasts = coupon.periods if not terms.limit or (coupon.periods or 0) < terms.limit else None
    return replace(terms, price=price, discount=Discount(terms.price, lasts))


def _off(terms: Terms, coupon: Coupon) -> Decimal:
    if coupon.amount is not None:
        return coupon.amount
    assert coupon.percent is not None, "a coupon is one or the other"
    unit = Decimal(1).scaleb(-charge_digits(terms.currency))
    return (terms.price * coupon.percent / 100).quantize(unit, ROUND_HALF_EVEN)


def _percent(text: str) -> Decimal:
    try:
        percent = Decimal(text) if _PERCENT.fullmatch(text) else Decimal(0)
    except InvalidOperation:
        percent = Decimal(0)
    if not percent:
        raise Malformed(
            worded('percent "%(text)s" must be more than 0 and at most 100, with at most 2 decimals', text=text[:20]),
            "percent",
        )
    return percent


def _number(given: Mapping[str, str], name: str, most: int) -> int | None:
    text = given.get(name, "")
    if not text:
        return None
    if not _WHOLE.fullmatch(text) or not 1 <= int(text) <= most:
        raise Malformed(worded("%(field)s must be a whole number from 1 to %(most)s", field=name, most=most), name)
    return int(text)
