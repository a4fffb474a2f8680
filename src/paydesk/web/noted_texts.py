"""What the books keep in English, such as the reason of an alarm, said in another language.

A text that was made by `noted` is kept as logs and commands say it. A page finds the pattern again
that it was made from, and says that in its reader's language with the same values; so what was kept
by an older release, and what other columns have copied, is said as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import NamedTuple

from paydesk.core.wording import noted_as

NOTED = "noted"
"""Stands in a catalogue above each pattern of such a text."""

WORDS: Mapping[str, str] = {
    "a card's last digits": noted_as("Last four digits"),
    "a number or reference": noted_as("Reference"),
    "abandoned": noted_as("Given up"),
    "account": noted_as("Account"),
    "alarm": noted_as("Alarm"),
    "all": noted_as("All"),
    "an e-mail address": noted_as("E-mail address"),
    "another one": noted_as("Another secret key"),
    "any": noted_as("Everything"),
    "approved": noted_as("Approved"),
    "attempt": noted_as("Attempt"),
    "authorized": noted_as("Authorized"),
    "bank account": noted_as("Bank account"),
    "begun": noted_as("Under way"),
    "branding": noted_as("Branding"),
    "business profile": noted_as("Business profile"),
    "by the rule": noted_as("By the rule"),
    "cancellation": noted_as("Cancelled"),
    "capture": noted_as("Capture"),
    "captured": noted_as("Paid"),
    "card change": noted_as("Replace the card"),
    "card guard": noted_as("Card testing"),
    "challenged": noted_as("3-D Secure"),
    "chargeback": noted_as("Chargeback"),
    "charged_back": noted_as("Charged back"),
    "checkout": noted_as("Checkout page"),
    "checkouts": noted_as("Checkouts"),
    "command line": noted_as("Command line"),
    "coupon": noted_as("Coupon"),
    "customer": noted_as("Customer"),
    "declined": noted_as("Declined"),
    "deliveries": noted_as("Deliveries"),
    "developer": noted_as("Developer"),
    "dispute": noted_as("Dispute"),
    "done": noted_as("Done"),
    "dunning": noted_as("Dunning"),
    "ended": noted_as("Ended"),
    "failed": noted_as("Failed"),
    "file dropped": noted_as("Dropped"),
    "file made": noted_as("Made"),
    "first day": noted_as("First day"),
    "key": noted_as("Key"),
    "live": noted_as("Live"),
    "made": noted_as("Made"),
    "mail": noted_as("Mail"),
    "mail about the card of subscription": noted_as("Mail about the card of subscription"),
    "mail about the next charge of subscription": noted_as("Mail about the next charge of subscription"),
    "mail asking for the card of subscription": noted_as("Mail asking for the card of subscription"),
    "mail of renewal of subscription": noted_as("Mail of renewal of subscription"),
    "mails of failing endpoints of merchant": noted_as("Mails of failing endpoints of merchant"),
    "mails of merchant": noted_as("Mails of merchant"),
    "merchant": noted_as("Merchant"),
    "new version": noted_as("New version"),
    "off": noted_as("Off"),
    "on": noted_as("On"),
    "open": noted_as("Open"),
    "operator": noted_as("Operator"),
    "owner": noted_as("Owner"),
    "package": noted_as("Package"),
    "package move": noted_as("Move subscriptions"),
    "page": noted_as("Page"),
    "partially_refunded": noted_as("Partly refunded"),
    "pause": noted_as("Paused"),
    "payment": noted_as("Payment"),
    "payment link": noted_as("Payment link"),
    "payments": noted_as("Payments"),
    "payout": noted_as("Payout"),
    "payout file": noted_as("Payout file"),
    "payouts": noted_as("Payouts"),
    "pending": noted_as("Pending"),
    "person": noted_as("Person"),
    "pingback": noted_as("Pingback"),
    "plan": noted_as("Plan"),
    "portal": noted_as("The customer's page"),
    "processing": noted_as("Processing"),
    "purchase": noted_as("Payment"),
    "put away": noted_as("Put this list away"),
    "quantity": noted_as("Quantity"),
    "receipt": noted_as("Receipt"),
    "refund": noted_as("Refund"),
    "refunded": noted_as("Refunded"),
    "refused": noted_as("Refused"),
    "revenue": noted_as("Recurring revenue"),
    "session": noted_as("Session"),
    "shop": noted_as("Shop"),
    "statement": noted_as("Statement"),
    "subscription": noted_as("Subscription"),
    "subscriptions": noted_as("Subscriptions"),
    "support": noted_as("Support"),
    "synchronous standby": noted_as("Synchronous standby"),
    "taken back": noted_as("Taken back"),
    "test": noted_as("Test"),
    "this deployment": noted_as("This deployment"),
    "unknown": noted_as("Unknown"),
    "viewer": noted_as("Viewer"),
    "void": noted_as("Void"),
    "voided": noted_as("Voided"),
}
"""What pages call the states, kinds and things that the books name by a word."""

_THING = re.compile(r"([a-z][a-z ]*) (\d+)|(purchase|refund|page|dispute) (\S+) at (\S+)")
"""A thing by its number, or by its key and the acquirer that it is at."""

_PLACEHOLDER = re.compile(r"%\((\w+)\)s")
_ENDS = (". ", "; ", ": ")
"""Where two texts meet of which one is made."""

_NAMES = frozenset({"acquirer", "host", "key", "name", "words"})
"""Values that are names, or words of people's, and stay even where they are words of ours."""

_SUM = re.compile(r"\d")
"""What an amount has, and a sentence that only ends like a pattern has not."""

_LONGEST = 2000
_MOST_MEETINGS = 12
"""At how many places a text is looked at for being two, which nobody needs more of."""

_DEEPEST = 4
"""How many texts may stand within one another."""

Translate = Callable[[str], str]


class _Pattern(NamedTuple):
    """A pattern as what stands between its values, and what these are called."""

    text: str
    pieces: tuple[str, ...]
    names: tuple[str, ...]


def said_again(text: str, patterns: tuple[str, ...], translate: Translate) -> str:
    """A text of the books in the language of `translate`, piece by piece where it was put together;
    what follows none of the patterns stays as it is.
    """
    return _said(text, patterns, translate, _DEEPEST) or text


def _said(text: str, patterns: tuple[str, ...], translate: Translate, deep: int) -> str | None:
    """A whole text, or the first of two that it is put together of, and the rest as far as that is
    known; None for what nobody here has written.
    """
    if len(text) > _LONGEST or not deep:
        return None
    whole = _named(text, translate) or _matched(text, patterns, translate, deep)
    if whole is not None:
        return whole
    for end, at in _meetings(text):
        first = _matched(text[:at], patterns, translate, deep)
        if first is not None:
            rest = text[at + len(end) :]
            return f"{first}{end}{_said(rest, patterns, translate, deep - 1) or rest}"
    return None


def _named(text: str, translate: Translate) -> str | None:
    """A word of ours, or a thing by its number or key: `payment 13330`."""
    if text in WORDS:
        return translate(WORDS[text])
    thing = _THING.fullmatch(text)
    word, number, place = (thing[1] or thing[3], thing[2] or thing[4], thing[5]) if thing else ("", "", "")
    if word not in WORDS:
        return None
    return f"{translate(WORDS[word])} {number}" + (f" · {place}" if place else "")


def _matched(text: str, patterns: tuple[str, ...], translate: Translate, deep: int) -> str | None:
    """A text by the pattern that has most in common with it."""
    for pattern in _by_length(patterns):
        values = _values(text, pattern.pieces)
        if values is not None and _fits(named := dict(zip(pattern.names, values, strict=True))):
            told = {
                name: value if name in _NAMES else _said(value, patterns, translate, deep - 1) or value
                for name, value in named.items()
            }
            return translate(pattern.text) % told
    return None


def _fits(values: Mapping[str, str]) -> bool:
    """Whether values are what their names say."""
    amount = values.get("amount")
    return amount is None or _SUM.search(amount) is not None


def _values(text: str, pieces: tuple[str, ...]) -> list[str] | None:
    """What stands between the pieces of a pattern, each where it comes first; None if one is not
    there. Takes the time that reading the text takes, whatever stands in it.
    """
    first, *between = pieces
    if not between:
        return [] if text == first else None
    if not text.startswith(first):
        return None
    values, at = [], len(first)
    for piece in between[:-1]:
        found = text.find(piece, at + 1)
        if found < 0:
            return None
        values.append(text[at:found])
        at = found + len(piece)
    end = len(text) - len(between[-1])
    if end <= at or not text.endswith(between[-1]):
        return None
    return [*values, text[at:end]]


def _meetings(text: str) -> Iterator[tuple[str, int]]:
    """Where a text may be put together of two, from its begin."""
    found = ((text[at : at + 2], at) for at in range(1, len(text) - 2) if text[at : at + 2] in _ENDS)
    return islice(found, _MOST_MEETINGS)


@cache
def _by_length(patterns: tuple[str, ...]) -> tuple[_Pattern, ...]:
    """Patterns with those first that have the most words of their own."""
    taken = [_taken_apart(one) for one in dict.fromkeys(patterns)]
    return tuple(sorted(taken, key=lambda one: -sum(len(piece) for piece in one.pieces)))


def _taken_apart(pattern: str) -> _Pattern:
    parts = _PLACEHOLDER.split(pattern)
    return _Pattern(pattern, tuple(part.replace("%%", "%") for part in parts[::2]), tuple(parts[1::2]))
