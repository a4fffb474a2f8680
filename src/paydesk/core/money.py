"""Amounts of money: decimals with their currency's digits, never floats."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from functools import lru_cache

from paydesk.core.currencies import is_current, is_withdrawn
from paydesk.core.currencies import minor_digits as minor_digits
from paydesk.core.errors import Malformed
from paydesk.core.wording import worded

LEDGER_DIGITS = Decimal("0.0001")
"""Every amount in the ledger has four decimals (interface.md §5.6)."""

LARGEST = Decimal("999999999999.9999")
"""What a `numeric(20,4)` column and a JSON number both hold without loss."""

_WIDE = Context(prec=60)
"""Holds the product of two amounts without loss, so that what is rounded up was not
rounded before."""

_PLAIN_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,18})?")
_THOUSANDS = 3
"""Digits between the separators that people write in large numbers."""


def parse_currency(text: str, field: str = "currency") -> str:
    """Check an ISO 4217 code of a currency that people pay with today, for something new.

    Raises: Malformed, naming the field.
    """
    if is_withdrawn(text):
        raise Malformed(
            worded(
                '%(field)s "%(text)s" is no currency any more (ISO 4217 has withdrawn it), so nothing new '
                "can be paid in it; what was paid in it can be refunded and paid out",
                field=field,
                text=text,
            ),
            field,
        )
    if not is_current(text):
        raise Malformed(
            worded(
                '%(field)s "%(text)s" is not an ISO 4217 currency code; write it like "USD" or "EUR"',
                field=field,
                text=text[:20],
            ),
            field,
        )
    return text


def parse_known_currency(text: str, field: str = "currency") -> str:
    """Check an ISO 4217 code of a currency that money is in already, one that was withdrawn
    since included.

    Raises: Malformed, naming the field.
    """
    return text if is_withdrawn(text) else parse_currency(text, field)


def parse_amount(text: str, currency: str, field: str = "amount") -> Decimal:
    """Read a positive amount in main units of `currency`:
    plain digits, a dot, no more decimals than the currency has.

    Zeros beyond them are exact, so they are taken: clients write `500.00` for 500 JPY
    (interface.md §2.4).

    Raises: Malformed, saying what is wrong and what was expected.
    """
    amount = parse_exact(text, currency, field, like='"10.00"')
    if amount <= 0:
        raise Malformed(worded('%(field)s "%(text)s" must be greater than 0', field=field, text=text), field)
    return amount


def parse_exact(text: str, currency: str, field: str, *, like: str) -> Decimal:
    """Read an amount that may be 0, with the decimals that the currency has;
    `like` shows how it could be written.

    Raises: Malformed, saying what is wrong and what was expected.
    """
    if not _PLAIN_NUMBER.fullmatch(text):
        raise Malformed(
            worded(
                '%(field)s "%(text)s" is not a plain decimal number; write it like %(like)s',
                field=field,
                text=text[:40],
                like=like,
            ),
            field,
        )
    whole, _, decimals = text.partition(".")
    digits = minor_digits(currency)
    if not fits(Decimal(text), currency):
        raise Malformed(
            worded(
                '%(field)s "%(text)s" has %(length)s decimals, %(currency)s allows %(digits)s',
                field=field,
                text=text,
                length=len(decimals),
                currency=currency,
                digits=digits,
            ),
            field,
        )
    amount = Decimal(f"{whole}.{decimals[:digits]}")
    if amount > LARGEST:
        raise Malformed(
            worded('%(field)s "%(text)s" is larger than %(largest)s', field=field, text=text, largest=LARGEST), field
        )
    return amount


def parse_typed(text: str, currency: str, field: str = "amount") -> Decimal:
    """Read a positive amount that a person typed, with a dot or a comma before the decimals.

    `5.000` JPY or `1,000` USD may well mean thousands, so three decimals that the currency doesn't
    have are asked back.

    Raises: Malformed, saying what is wrong and what was expected.
    """
    amount = parse_amount(with_dot(text), currency, field)
    refuse_thousands(text, currency, field)
    return amount


def with_dot(text: str) -> str:
    """A number that a person typed with a comma before its decimals, with a dot there."""
    return text.replace(",", ".") if "." not in text else text


def refuse_thousands(text: str, currency: str, field: str) -> None:
    """Ask back an amount that may well mean thousands; `parse_typed` does. Of nothing, as in
    `0.000`, there are no thousands.

    Raises: Malformed, saying how to write it.
    """
    whole, _, decimals = with_dot(text).partition(".")
    if whole.strip("0") and len(decimals) == _THOUSANDS > minor_digits(currency):
        raise Malformed(
            worded(
                '%(field)s "%(text)s" may mean thousands; write them without a separator, and at most '
                "%(digits)s decimals for %(currency)s",
                field=field,
                text=text[:40],
                digits=minor_digits(currency),
                currency=currency,
            ),
            field,
        )


def fits(amount: Decimal, currency: str) -> bool:
    """Whether the currency has the decimals to pay this to the digit;
    zeros at its end don't count.
    """
    return amount == amount.quantize(Decimal(1).scaleb(-minor_digits(currency)), context=_WIDE)


@lru_cache(maxsize=4096)
def plain_number(amount: Decimal) -> Decimal:
    """The same amount, written without trailing zeros, an exponent, or a minus before zero,
    as JSON shows it.
    """
    return Decimal(format((amount + 0).normalize(), "f"))


def written(amount: Decimal, currency: str) -> str:
    """The amount for people to read in a line of text:
    `10.00`, with more decimals only where it has them, `0.7453`.
    """
    plain = plain_number(amount)
    digits = max(minor_digits(currency), -int(plain.as_tuple().exponent))
    return f"{plain:.{digits}f}"


@dataclass(frozen=True, slots=True)
class FeePlan:
    """What a merchant pays for a payment: `rate` and `reserve_rate` are fractions,
    `fixed` is in main units.
    """

    rate: Decimal = Decimal("0.03")
    fixed: Decimal = Decimal("0.30")
    reserve_rate: Decimal = Decimal("0.05")


@dataclass(frozen=True, slots=True)
class Split:
    """How a paid amount divides: `net + reserve + fees == paid`;
    net may be negative (interface.md §5.6).
    """

    paid: Decimal
    net: Decimal
    reserve: Decimal
    fees: Decimal


def split_payment(paid: Decimal, plan: FeePlan) -> Split:
    """Divide a paid amount by the fee plan, four decimals, half-even;
    nothing is due on a payment of 0.
    """
    if paid == 0:
        return Split(paid, Decimal(0), Decimal(0), Decimal(0))
    fees = (paid * plan.rate + plan.fixed).quantize(LEDGER_DIGITS, ROUND_HALF_EVEN)
    reserve = (paid * plan.reserve_rate).quantize(LEDGER_DIGITS, ROUND_HALF_EVEN)
    return Split(paid, paid - fees - reserve, reserve, fees)


@dataclass(frozen=True, slots=True)
class Funds:
    """Where a captured payment's money is, in its currency: its split, what was given back,
    and what that took.

    `pending_taken`, `reserve_taken` and `fees_taken` are what refunds and a chargeback took of net,
    reserve and fees. `fees_returned_of` is how much of `given_back` had its fees returned; None if
    nobody knows. Once `settled` its net is available, once `released` its reserve is too.
    """

    split: Split
    given_back: Decimal = Decimal(0)
    pending_taken: Decimal = Decimal(0)
    reserve_taken: Decimal = Decimal(0)
    fees_taken: Decimal = Decimal(0)
    settled: bool = False
    released: bool = False
    fees_returned_of: Decimal | None = None

    @property
    def with_fees(self) -> Decimal:
        """How much was given back with its fees: if nobody knows, all of it where any fees were."""
        if self.fees_returned_of is not None:
            return self.fees_returned_of
        return self.given_back if self.fees_taken else Decimal(0)


@dataclass(frozen=True, slots=True)
class Reversal:
    """What giving money back takes from each of the merchant's balances, and from the fees;
    they sum to the amount.
    """

    pending: Decimal
    available: Decimal
    reserve: Decimal
    fees: Decimal


def split_reversal(funds: Funds, amount: Decimal, *, fees_returned: bool) -> Reversal:
    """Divide what is given back: the reserve's share, the fees' share if they are returned,
    the rest from the merchant.

    Shares are reckoned from all that was given back so far and rounded up to four decimals, so that
    many parts take exactly what one whole refund takes, whatever they are. (Rounded down, the last
    part could be too small for what the others left.) Banks may take back more than was paid: no
    share grows beyond its whole. For fees only those parts count that had theirs returned: what was
    given back before the fees were returned stays as it was. What the merchant bears comes out of
    pending money of this payment as far as there is any, then out of available money. No part is
    negative; they sum to the amount.
    """

    def due(of: Decimal, taken: Decimal, most: Decimal, before: Decimal) -> Decimal:
        """What is still to be taken of a whole, now that this is given back after
        so much before.
        """
        share = _WIDE.divide(_WIDE.multiply(of, before + amount), funds.split.paid)
        share = min(share.quantize(LEDGER_DIGITS, ROUND_CEILING, _WIDE), of)
        return min(max(share - taken, Decimal(0)), most)

    if funds.split.paid == 0:
        return Reversal(Decimal(0), amount, Decimal(0), Decimal(0))
    reserve = Decimal(0) if funds.released else due(funds.split.reserve, funds.reserve_taken, amount, funds.given_back)
    fees = due(funds.split.fees, funds.fees_taken, amount - reserve, funds.with_fees) if fees_returned else Decimal(0)
    rest = amount - reserve - fees
    left = Decimal(0) if funds.settled else max(funds.split.net - funds.pending_taken, Decimal(0))
    pending = min(rest, left)
    return Reversal(pending, rest - pending, reserve, fees)


def fees_due_again(funds: Funds, amount: Decimal) -> Decimal:
    """What of the fees that were returned with `amount` is due again,
    since it came back and was not given back at all.

    What stays returned is what giving back only the rest would have taken, so `fees_taken` is again
    as split_reversal reckons it.
    """
    if funds.split.paid == 0:
        return Decimal(0)
    share = _WIDE.divide(_WIDE.multiply(funds.split.fees, funds.with_fees - amount), funds.split.paid)
    stays = max(share.quantize(LEDGER_DIGITS, ROUND_CEILING, _WIDE), Decimal(0))
    return min(max(funds.fees_taken - stays, Decimal(0)), amount)
