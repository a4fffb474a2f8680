"""Amounts that acquirers take: of some currencies fewer decimals than there are."""

from __future__ import annotations

from decimal import ROUND_DOWN, ROUND_UP, Decimal

from paydesk.core.currencies import charge_digits
from paydesk.core.errors import Conflict, Malformed
from paydesk.core.money import written
from paydesk.core.wording import worded
from paydesk.domain.merchants.shop import Shop


def taken(amount: Decimal, currency: str, *, live: bool) -> Decimal:
    """What acquirers take of a live amount that rests from before it would have been refused.

    It is rounded down, but never to nothing; test amounts are taken as they are. `taken` of the
    schema is the same for amounts that have no more decimals than their currency.
    """
    rounded = amount.quantize(Decimal(1).scaleb(-charge_digits(currency)), ROUND_DOWN)
    return rounded if live and rounded > 0 and rounded != amount else amount


def require_taken(shop: Shop, currency: str, *amounts: Decimal, most: Decimal | None = None) -> None:
    """Refuse live amounts whose decimals no acquirer takes, before somebody is to pay them; no
    more than `most` could be asked for, which is taken as it is.

    Raises: Conflict, saying which one, and what could be asked for.
    """
    odd = next((amount for amount in amounts if has_more_decimals(amount, currency)), None)
    if shop.live and odd is not None:
        rounded = odd.quantize(Decimal(1).scaleb(-charge_digits(currency)), ROUND_UP)
        raise Conflict(
            worded(
                "acquirers don't take %(amount)s %(currency)s, which has too many decimals; ask for %(rounded)s, for "
                "example. Test payments are not concerned",
                amount=written(odd, currency),
                currency=currency,
                rounded=written(rounded if most is None else min(rounded, most), currency),
            )
        )


def require_typed_taken(shop: Shop, currency: str, **typed: Decimal | None) -> None:
    """The same for amounts of a form, by its fields; one that was left out is None.

    Raises: Malformed, naming the field.
    """
    for field, amount in typed.items():
        if amount is None:
            continue
        try:
            require_taken(shop, currency, amount)
        except Conflict as error:
            raise Malformed(error.message, field) from error


def has_more_decimals(amount: Decimal, currency: str) -> bool:
    """Whether an amount has more decimals than acquirers take of its currency."""
    return amount != round(amount, charge_digits(currency))
