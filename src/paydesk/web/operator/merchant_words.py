"""How the console writes a merchant's figures: money by currency, shares, and which are high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from babel.numbers import format_decimal, format_percent

from paydesk.domain.merchants.keys import KeyScope
from paydesk.domain.operations.figures_for_operator import Held, Share, Sold
from paydesk.domain.operations.waiting import MOST
from paydesk.web.console.visit import Visit
from paydesk.web.texts import mark

SCOPES: Mapping[str, str] = {
    KeyScope.sign: mark("Sign checkout forms"),
    KeyScope.read: mark("Read by the API"),
    KeyScope.move: mark("Move money and change things by the API"),
}
"""What a key may do."""


def share_words(visit: Visit, share: Share) -> str:
    """A share with one decimal; a dash of nothing."""
    if share.rate is None:
        return "–"
    return str(format_percent(share.rate, "#,##0.#%", locale=visit.texts.locale))


def volume_words(visit: Visit, sold: Sequence[Sold]) -> str:
    """What was sold in the currency that is used most, and in how many others; else a dash."""
    return _first(visit, [visit.money(one.volume, one.currency) for one in sold])


def held_words(visit: Visit, held: Sequence[Held]) -> str:
    """What is available, the largest amount first, and in how many other currencies."""
    largest = sorted(held, key=lambda one: -abs(one.available))
    return _first(visit, [visit.held(one.available, one.currency) for one in largest])


def count_words(visit: Visit, number: int) -> str:
    """A number in the person's way to write it."""
    return str(format_decimal(number, locale=visit.texts.locale))


def upto(visit: Visit, number: int) -> str:
    """A figure that is counted up to `MOST`, empty for none: `7`, `100+`."""
    return f"{count_words(visit, min(number, MOST))}{'+' if number > MOST else ''}" if number else ""


def percent_change(visit: Visit, now: Decimal | int, before: Decimal | int) -> str:
    """By which share a figure moved; empty where it was nothing."""
    if not before:
        return ""
    moved = round(Decimal(now - before) / before, 2)
    text = str(format_percent(moved, "+#,##0%;−#,##0%" if moved else "0%", locale=visit.texts.locale))
    return visit.texts.apart(text)


def _first(visit: Visit, amounts: Sequence[str]) -> str:
    if not amounts:
        return "–"
    others = len(amounts) - 1
    return amounts[0] + (f" +{count_words(visit, others)}" if others else "")
