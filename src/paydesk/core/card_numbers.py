"""Card numbers where none belong: found in any text, so that they are refused at a door or masked
before they rest.

What counts is a run of 13 to 19 digits, in whatever digits and grouped in whatever way, that has a
card scheme's first digits and length and a right check digit. Ids, hashes, telephone numbers and
times are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final
from unicodedata import decimal

from paydesk.core.cards import BRAND_RULES, Brand, detect_brand

MASK: Final = "[digits]"

_SHORTEST, _LONGEST = 13, 19
_LONGEST_TELEPHONE: Final = 15
_SHORTEST_IDENTIFIER: Final = 32
_GAP: Final = r"[\s./+_\-\u00ad\u200b-\u200d\u2010-\u2015\u2212\ufeff\uff0d\uff0e]{0,3}"
_RUN: Final = re.compile(rf"\d(?:{_GAP}\d){{{_SHORTEST - 1},}}")
_GROUP: Final = re.compile(r"\d+")
_ESCAPED_GAP: Final = re.compile(r"%20|%2[dD]")
_WORD: Final = re.compile(r"[0-9A-Za-z]*")
_WORD_BEFORE: Final = re.compile(r"[0-9A-Za-z]+\Z")
_LETTER: Final = re.compile(r"[A-Za-z]")
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
_DATED: Final = re.compile(r"2[2-7](?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{10}")
"""A reference that begins with its day: Mastercard's newer numbers begin alike."""


def holds_card_number(text: str) -> bool:
    """Whether something in a text looks like a card number."""
    return next(_found(text), None) is not None


def masked(text: str) -> str:
    """The text without what looks like a card number."""
    if len(text) < _SHORTEST:
        return text
    kept, end = [], 0
    for start, stop in _found(text):
        kept += [text[end:start], MASK]
        end = stop
    return "".join([*kept, text[end:]]) if kept else text


def masked_values(value: Any) -> Any:
    """The same of all texts, names and numbers in what JSON may hold."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {masked_values(name): masked_values(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [masked_values(inner) for inner in value]
    if isinstance(value, int | Decimal) and holds_card_number(str(value)):
        return MASK
    return value


def _found(text: str) -> Iterator[tuple[int, int]]:
    """Where card numbers stand, in order, none over another."""
    plain = _ESCAPED_GAP.sub("   ", text) if "%2" in text else text
    for run in _RUN.finditer(plain):
        groups = [group.span() for group in _GROUP.finditer(plain, *run.span())]
        yield from _in_groups(plain, groups)


def _in_groups(text: str, groups: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Where some groups that follow each other make up a card number; the longest that do."""
    digits = "".join(str(decimal(letter)) for start, stop in groups for letter in text[start:stop])
    sums = _sums(digits)
    ends = list(accumulate(stop - start for start, stop in groups))
    first = 0
    while first < len(groups):
        begin = ends[first] - (groups[first][1] - groups[first][0])
        last = first
        while last + 1 < len(groups) and ends[last + 1] - begin <= _LONGEST:
            last += 1
        for at in range(last, first - 1, -1):
            start, stop = groups[first][0], groups[at][1]
            if _is_number(digits, begin, ends[at], sums) and not _is_other(text, start, stop, single=at == first):
                yield start, stop
                first = at
                break
        first += 1


def _sums(digits: str) -> tuple[list[int], list[int]]:
    """Running sums of the digits for Luhn's check, with every second one doubled:
    those at even and at odd places.
    """
    doubled = [sum(divmod(2 * int(digit), 10)) for digit in digits]
    even, odd = (
        [doubled[at] if at % 2 == parity else int(digits[at]) for at in range(len(digits))] for parity in (0, 1)
    )
    return [0, *accumulate(even)], [0, *accumulate(odd)]


def _is_number(digits: str, begin: int, end: int, sums: tuple[list[int], list[int]]) -> bool:
    """Whether these digits have a scheme's length and first digits, and a right check digit."""
    if not _SHORTEST <= end - begin <= _LONGEST:
        return False
    total = sums[end % 2]
    return (total[end] - total[begin]) % 10 == 0 and begins_like_a_card(digits[begin:end])


def begins_like_a_card(digits: str) -> bool:
    """Whether digits have a scheme's length and first digits, whatever their check digit is."""
    brand = detect_brand(digits[:6])
    # Visa's numbers of 13 digits are of the past; telephone numbers have as many.
    lengths = (16, 19) if brand is Brand.VISA else BRAND_RULES[brand].number_lengths
    return brand is not Brand.UNKNOWN and len(digits) in lengths


def _is_other(text: str, start: int, stop: int, *, single: bool) -> bool:
    """Whether the digits are a part of something else: a hash, a UUID, a telephone number,
    a dated reference.
    """
    before = text[start - 1 : start]
    if before == "+" and stop - start <= _LONGEST_TELEPHONE and not text[start - 2 : start - 1].isdigit():
        return True
    if single and _DATED.fullmatch(text, start, stop):
        return True
    if single and _is_within_identifier(text, start, stop):
        return True
    return any(
        uuid.start() < stop and start < uuid.end() and _LETTER.search(uuid[0])
        for uuid in _UUID.finditer(text, max(0, start - 36), stop + 36)
    )


def _is_within_identifier(text: str, start: int, stop: int) -> bool:
    """Whether the word around the digits is as long as a hash or a key, and has letters."""
    left = _WORD_BEFORE.search(text, max(0, start - _SHORTEST_IDENTIFIER), start)
    right = _WORD.match(text, stop, stop + _SHORTEST_IDENTIFIER)
    word = (left[0] if left else "") + (right[0] if right else "")
    return len(word) + stop - start >= _SHORTEST_IDENTIFIER and _LETTER.search(word) is not None
