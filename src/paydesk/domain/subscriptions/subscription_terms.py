"""What a customer agrees to: price and period, trial, how long;
read from the form (interface.md §2.3).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal

from paydesk.core.card_numbers import masked
from paydesk.core.errors import Malformed
from paydesk.core.money import LARGEST, parse_exact, plain_number
from paydesk.core.periods import Period, parse_period, whole_number_of
from paydesk.core.storable import refuse_card_number
from paydesk.core.wording import plural, worded

REQUIRED = ("recurring_name", "recurring_sku_id", "recurring_period")
OPTIONAL = ("recurring_trial_amount", "recurring_trial_period", "recurring_duration")
LONGEST_TEXT = 255
SHORTEST_FOR_SLOW = 14
"""The fewest days of a period that may be paid by a method whose money is sure only in some days:
the next one is not to fall due before that is known.
"""
MOST_PAYMENTS = 3660
MOST_UNITS = 10_000
"""How many of a thing one subscription may be to."""

_COUNT = re.compile(r"[0-9]{1,9}")
_JOINERS = re.compile("[\u200c\u200d]")
"""Invisible, but part of words in some scripts, and of emoji."""


@dataclass(frozen=True, slots=True)
class RecurringFields:
    """The fields of a form that make it a subscription's, as plain texts; absent ones are empty."""

    recurring_name: str = ""
    recurring_sku_id: str = ""
    recurring_period: str = ""
    recurring_trial_amount: str = ""
    recurring_trial_period: str = ""
    recurring_duration: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """A first period with a price of its own, in the main unit of the subscription's currency;
    0 is free.
    """

    price: Decimal
    period: Period


@dataclass(frozen=True, slots=True)
class Discount:
    """What a coupon has made of a price: `list_price` is that without it, which comes after so many
    regular payments, never if `periods` is None.
    """

    list_price: Decimal
    periods: int | None


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a subscription: `price` per `period`, after its `discount` if it has one;
    `limit` is the number of regular payments, 0 for no limit; prices are of `quantity` together.
    """

    name: str
    sku_id: str
    currency: str
    price: Decimal
    period: Period
    trial: Trial | None
    limit: int
    discount: Discount | None = None
    quantity: int = 1

    @property
    def list_price(self) -> Decimal:
        """What a period costs without a coupon."""
        return self.price if self.discount is None else self.discount.list_price

    @property
    def unit_price(self) -> Decimal:
        """What one costs in a period, without a coupon."""
        return self.list_price / self.quantity

    @property
    def undiscounted(self) -> Terms:
        """The same without a coupon."""
        return replace(self, price=self.list_price, discount=None)

    @property
    def first_amount(self) -> Decimal:
        """What is charged at the checkout."""
        return self.price if self.trial is None else self.trial.price

    @property
    def may_be_slow(self) -> bool:
        """Whether its periods are long enough for a method that takes days."""
        days = self.period.in_days
        return days is None or days >= SHORTEST_FOR_SLOW


@dataclass(frozen=True, slots=True)
class Package:
    """What is sold: `version_id` names the terms, `subscriptions_count` says how many subscriptions
    it has had.
    """

    id: int
    version_id: int
    terms: Terms
    subscriptions_count: int


def read_terms(given: RecurringFields, price: Decimal, currency: str) -> Terms | None:
    """The terms that a form's recurring fields state, or None for a one-time payment;
    `price` is the form's amount.

    Raises: Malformed, naming the field and what was expected.
    """
    if given in (RecurringFields(), RecurringFields(recurring_duration="0")):
        return None
    texts = (given.recurring_name, given.recurring_sku_id, given.recurring_period)
    for name, text in zip(REQUIRED, texts, strict=True):
        if not text.strip():
            raise Malformed(
                f"{name} is missing; a subscription needs {', '.join(REQUIRED)}",
                name,
            )
    sku_id = sku_of(given.recurring_sku_id, "recurring_sku_id")
    period = parse_period(given.recurring_period, "recurring_period")
    return Terms(
        name=named(given.recurring_name, "recurring_name"),
        sku_id=sku_id,
        currency=currency,
        price=price,
        period=period,
        trial=_trial(given.recurring_trial_period, given.recurring_trial_amount, currency),
        limit=_limit(given.recurring_duration, period),
    )


def as_fields(terms: Terms) -> dict[str, str]:
    """The fields of a form that state terms without a coupon, of one: `read_terms` reads the same
    from them, with the price as the form's amount.
    """
    stated = {
        "recurring_name": terms.name,
        "recurring_sku_id": terms.sku_id,
        "recurring_period": written(terms.period),
    }
    if terms.trial is not None:
        stated["recurring_trial_amount"] = f"{plain_number(terms.trial.price):f}"
        stated["recurring_trial_period"] = written(terms.trial.period)
    if terms.limit:
        stated["recurring_duration"] = str(terms.limit)
    return stated


def written(period: Period) -> str:
    """A period as a form writes it: `1m`, `30d`."""
    return f"{period.length}{period.unit[0]}"


def several(terms: Terms, text: str, field: str) -> Terms:
    """The terms for so many of a thing, by those for one: each price that many times, to the digit.

    Raises: Malformed, naming the field.
    """
    if not _COUNT.fullmatch(text) or not 1 <= int(text) <= MOST_UNITS:
        raise Malformed(
            worded(
                '%(field)s "%(text)s" is not a whole number from 1 to %(most_units)s',
                field=field,
                text=text[:40],
                most_units=MOST_UNITS,
            ),
            field,
        )
    quantity, trial = int(text), terms.trial
    if trial is not None:
        trial = replace(trial, price=trial.price * quantity)
    whole = replace(terms, price=terms.price * quantity, trial=trial, quantity=quantity)
    if max(whole.price, whole.first_amount) > LARGEST:
        raise Malformed(
            worded(
                "%(field)s: %(quantity)s times the price is larger than %(largest)s",
                field=field,
                quantity=quantity,
                largest=LARGEST,
            ),
            field,
        )
    return whole


def named(text: str, field: str) -> str:
    """The name of a package. Raises: Malformed."""
    if not text.strip():
        raise Malformed(worded("%(field)s is empty; say what the subscription is to", field=field), field)
    return masked(_text(" ".join(text.split()), field))


def sku_of(text: str, field: str) -> str:
    """What the shop calls a package, to the character: pingbacks echo it. Raises: Malformed."""
    if not text.strip():
        raise Malformed(worded("%(field)s is empty; say what your shop calls the package", field=field), field)
    refuse_card_number(text, field)
    return _text(text, field)


def _text(text: str, field: str) -> str:
    """A text that can't change how the words around it read:
    no line breaks, nothing that turns the direction.
    """
    if not _JOINERS.sub("", text).isprintable():
        raise Malformed(worded("%(field)s contains a control character; send plain text", field=field), field)
    if len(text) > LONGEST_TEXT:
        raise Malformed(
            plural(
                "%(field)s has %(count)s character, at most %(most)s are accepted",
                "%(field)s has %(count)s characters, at most %(most)s are accepted",
                field=field,
                count=len(text),
                most=LONGEST_TEXT,
            ),
            field,
        )
    return text


def _trial(period: str, amount: str, currency: str) -> Trial | None:
    price = _trial_price(amount, currency)
    if not period:
        if price:
            raise Malformed(
                "recurring_trial_period is missing; recurring_trial_amount needs the length of the trial",
                "recurring_trial_period",
            )
        return None
    return Trial(price, parse_period(period, "recurring_trial_period"))


def _trial_price(text: str, currency: str) -> Decimal:
    """The price of a trial; 0 or absent is a free one, and it may exceed the price:
    shops use it as a set-up fee.
    """
    if not text:
        return Decimal(0)
    return parse_exact(text, currency, "recurring_trial_amount", like=worded('"1.00", or 0 for free'))


def _limit(duration: str, period: Period) -> int:
    """The number of regular payments that a duration allows; 0 for no limit."""
    if not duration or duration == "0":
        return 0
    field = "recurring_duration"
    limit = int(duration) if _COUNT.fullmatch(duration) else whole_number_of(period, _duration(duration))
    if limit is None:
        raise Malformed(
            f'{field} "{duration}" is not a whole number of periods (recurring_period)',
            field,
        )
    if limit > MOST_PAYMENTS:
        raise Malformed(
            f'{field} "{duration}" is more than {MOST_PAYMENTS} payments',
            field,
        )
    return limit


def _duration(text: str) -> Period:
    """A duration that is not a number of payments."""
    try:
        return parse_period(text, "recurring_duration")
    except Malformed as error:
        raise Malformed(
            f"{error.message}; or a number of payments, like 12, or 0 for no limit",
            "recurring_duration",
        ) from error
