"""What every mail is made of: one content, from which its text and its HTML are drawn,
so that they say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Literal

import msgspec
from babel.dates import format_date, format_skeleton, format_timedelta

from paydesk.core.cards import BRAND_RULES, Brand
from paydesk.core.payment_systems import PAYMENT_SYSTEMS
from paydesk.core.periods import zone_named
from paydesk.web.texts import Texts, mark

_INSTEAD = {"bank": mark("Bank account"), "slow_bank": mark("Bank account"), "other": mark("Another method")}
"""What was paid with instead of a card, by the name that stands in place of its brand."""

_NEVER_LARGER = 10_000
"""Of a unit are there so many before the next larger one is taken, which would round."""


class _Item(msgspec.Struct, frozen=True):
    """Something that was charged once, with a subscription's period."""

    description: str
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Content:
    """A mail's words in the order in which they are read; `rows` are labels with values,
    `button` a text and a URL.
    """

    subject: str
    paragraphs: tuple[str, ...]
    rows: tuple[tuple[str, str], ...] = ()
    button: tuple[str, str] | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MailMatter:
    """What a mail is written from: its facts, the language, who it is about, and where links lead.

    `base` is the address of the side that the mail is about, `account` that of the account, both
    without a slash.
    """

    facts: Mapping[str, object]
    texts: Texts
    merchant: str
    time_zone: str
    base: str
    account: str

    def say(self, text: str, **values: object) -> str:
        """A marked text in the mail's language, with values filled in."""
        return self.texts.get(text) % values if values else self.texts.get(text)

    def fact(self, name: str) -> str:
        """A fact as text, empty if it is not known."""
        value = self.facts.get(name)
        return "" if value is None else str(value)

    def money(self) -> str:
        """The amount with its currency's code."""
        return self.texts.money(Decimal(self.fact("amount")), self.fact("currency"))

    def items(self) -> tuple[tuple[str, str], ...]:
        """The one-off items of a charge, each with its amount."""
        found = msgspec.convert(self.facts.get("items") or [], list[_Item], strict=False)
        return tuple((one.description, self.texts.money(one.amount, self.fact("currency"))) for one in found)

    def day(self, name: str) -> str:
        """A fact that is a moment, as a day in the merchant's time zone; empty if it is not set."""
        at = self.moment_of(name)
        return "" if at is None else format_date(at, "long", self.texts.date_locale)

    def month(self, name: str) -> str:
        """A fact that is a date, as its month and year."""
        return str(format_skeleton("yMMMM", date.fromisoformat(self.fact(name)), locale=self.texts.date_locale))

    def moment(self, name: str) -> str:
        """A fact that is a moment, with its time of day and zone; empty if it is not set."""
        at = self.moment_of(name)
        return "" if at is None else f"{self.texts.moment(at)} ({self.time_zone})"

    def moment_of(self, name: str) -> datetime | None:
        """A fact that is a moment, in the merchant's time zone."""
        text = self.fact(name)
        return datetime.fromisoformat(text).astimezone(zone_named(self.time_zone)) if text else None

    def lasting(self, period: timedelta) -> str:
        """A length of time in the mail's language, in whole hours if it is:
        `30 minutes`, `2 hours`.
        """
        unit: Literal["minute", "hour"] = "minute" if period % timedelta(hours=1) else "hour"
        words = format_timedelta(period, granularity=unit, threshold=_NEVER_LARGER, locale=self.texts.date_locale)
        return str(words)

    @property
    def by_card(self) -> bool:
        """Whether it was paid with a card, or is to be."""
        return self.fact("brand") not in PAYMENT_SYSTEMS

    def instrument(self) -> tuple[str, str]:
        """What is charged, as a row: `Card` with `Visa •••• 4242`, `Payment method` with
        `Bank account`; without a value for a card that is not known.
        """
        brand = self.fact("brand")
        digits = f" ••••\u00a0{self.fact('last4')}" if self.fact("last4") else ""
        if not self.by_card:
            return self.say(mark("Payment method")), self.say(_INSTEAD[brand]) + digits
        label = BRAND_RULES[Brand(brand)].label if brand in set(Brand) and Brand(brand) in BRAND_RULES else ""
        return self.say(mark("Card")), f"{label}{digits}".strip() if digits else ""

    def saved_cards(self) -> str:
        """The customer's own page of the cards that they have saved at the shop."""
        return f"{self.base}/portal/cards/{self.fact('shopper_token')}"

    def portal(self, path: str = "") -> str:
        """The customer's own page of the subscription."""
        return f"{self.base}/portal/{self.fact('portal_token')}{path}"

    def paying(self) -> str:
        """The page that pays what is open of the subscription, and does nothing else; of one with
        a link of an older version the page that takes another card.
        """
        paying = self.fact("paying")
        return f"{self.base}/portal/pay/{paying}" if paying else self.portal("/card")


def known(*rows: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """The rows that have a value."""
    return tuple((label, value) for label, value in rows if value)


def account_button(telling: MailMatter, page: str = "") -> tuple[str, str]:
    """The way into the account, to a page of the merchant's if the mail knows whose it is."""
    merchant_id = telling.fact("merchant_id")
    path = f"/{merchant_id}/{page}" if page and merchant_id else ""
    return telling.say(mark("Open your account")), f"{telling.account}/account{path}"
