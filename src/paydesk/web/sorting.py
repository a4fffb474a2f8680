"""The order in which people of a language look for a name in a list."""

from __future__ import annotations

from unicodedata import combining, normalize

_LETTERS_OF_THEIR_OWN = {
    "es": "\N{COMBINING TILDE}",
    "pl": "\N{COMBINING ACUTE ACCENT}\N{COMBINING DOT ABOVE}\N{COMBINING OGONEK}",
    "tr": "\N{COMBINING CEDILLA}\N{COMBINING BREVE}\N{COMBINING DIAERESIS}",
    "vi": "\N{COMBINING CIRCUMFLEX ACCENT}\N{COMBINING BREVE}\N{COMBINING HORN}",
}
"""Marks that make another letter, which follows the plain one in the alphabet;
all others are only accents."""

_UNDIVIDED = str.maketrans({"ı": "h\uffff", "ł": "l\uffff", "đ": "d\uffff", "ø": "o", "æ": "ae", "œ": "oe"})
"""Letters that Unicode does not take apart, as what they are sorted like."""

_BY_SOUND = {"zh": "gb18030", "ja": "shift_jis"}
"""Encodings whose common characters stand in the order of how they are read:
by pinyin, by their Japanese sound."""


def sort_key(name: str, language: str) -> tuple[bytes, str]:
    """What to sort a name by in a language, such as `tr`; case never counts.

    The few rare characters that an encoding by sound keeps apart come last.
    """
    kept = _LETTERS_OF_THEIR_OWN.get(language, "")
    letters = normalize("NFKD", name.casefold())
    plain = "".join(letter for letter in letters if not combining(letter) or letter in kept).translate(_UNDIVIDED)
    encoding = _BY_SOUND.get(language)
    return (plain.encode(encoding, "replace") if encoding else b"", plain)
