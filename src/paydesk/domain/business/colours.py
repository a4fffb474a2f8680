"""Colours of a brand, and whether people can read what is written in them
(WCAG 2.2, contrast ratio).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from paydesk.core.errors import Malformed
from paydesk.core.wording import worded

READABLE = 4.5
"""The least contrast of text (WCAG 2.2, 1.4.3)."""

WHITE, DARK_GROUND, DARK_TEXT = "#ffffff", "#1a2029", "#0b1730"
_HEX = re.compile(r"#[0-9a-f]{6}")
_STEPS = 50


@dataclass(frozen=True, slots=True)
class Shades:
    """An accent on one ground: the colour itself, for hovering, and the text on it."""

    accent: str
    strong: str
    on_accent: str


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours like `#1746a2`, from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def parse_accent(text: str) -> str:
    """A colour that can be read on white. Raises: Malformed, naming a darker shade that can."""
    colour = text.strip().lower()
    if not _HEX.fullmatch(colour):
        raise Malformed(worded("a colour is # and six hexadecimal digits, like #1746a2"), "accent")
    ratio = contrast(colour, WHITE)
    if ratio < READABLE:
        better = _until_readable(colour, towards="#000000", ground=WHITE)
        raise Malformed(
            worded(
                "%(colour)s has a contrast of %(ratio)s to white, and %(readable)s is the least that "
                "people can read; %(better)s, a darker shade of it, would do",
                colour=colour,
                ratio=f"{ratio:.1f}",
                readable=READABLE,
                better=better,
            ),
            "accent",
        )
    return colour


def light_shades(accent: str) -> Shades:
    """The accent on a light page."""
    return Shades(accent, _mixed(accent, "#000000", 0.25), WHITE)


def dark_shades(accent: str) -> Shades:
    """The accent on a dark page: as much lighter as it takes to be read there."""
    light = _until_readable(accent, towards=WHITE, ground=DARK_GROUND)
    return Shades(light, _mixed(light, WHITE, 0.3), DARK_TEXT)


def _until_readable(colour: str, *, towards: str, ground: str) -> str:
    mixes = (_mixed(colour, towards, step / _STEPS) for step in range(_STEPS + 1))
    return next((mix for mix in mixes if contrast(mix, ground) >= READABLE), towards)


def _mixed(colour: str, other: str, share: float) -> str:
    channels = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in channels)


def _channels(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (1, 3, 5)]


def _luminance(colour: str) -> float:
    linear = [_linear(channel / 255) for channel in _channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
