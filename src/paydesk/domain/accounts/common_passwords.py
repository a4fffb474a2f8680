"""Passwords that are long enough and guessed first all the same:
a common word with a tail, repetitions, rows of keys.

Which words are common say a few that a shop's people think of first, and the lists of `zxcvbn`: the
30,000 passwords that leaked most often, names, and the words of texts and films. A list of whole
passwords would know few of twelve characters and more; those of the field are such words with
something before or after them, which is looked for.
"""

from __future__ import annotations

import re
from functools import cache

FEWEST_DIFFERENT = 5
_LEAST_OWN = 6
"""So many letters and digits have to be left when what everybody guesses is taken away."""

_WORDS = """
password passwort passord wachtwoord contrasena motdepasse senha parola haslo sifre matkhau losenord passw0rd pass
word secret geheim changeme change letmein welcome willkommen bienvenue bienvenido admin administrator
administrateur root superuser login logon access master default guest user username test testing tester temp
temporary demo example sample iloveyou ilove love lovely forever sunshine princess princesa monkey dragon football
fussball futbol baseball basketball soccer hockey superman batman spiderman starwars pokemon naruto shadow michael
jordan jennifer jessica daniel charlie ashley nicole thomas robert andrew joshua matthew anthony william hunter
ranger killer trustno trustnoone whatever freedom computer internet samsung iphone google facebook apple microsoft
windows linux server database paydesk payment checkout merchant operator account company office business summer
winter spring autumn sommer herbst january february march april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday money cash dollar bitcoin hello hallo bonjour goodbye
cheese chocolate cookie banana orange purple yellow silver golden diamond mustang ferrari porsche mercedes corvette
harley yamaha liverpool chelsea arsenal barcelona juventus qwerty qwertz azerty qazwsx qweasd zaqxsw asdfgh zxcvbn
yxcvbn abc abcd abcde abcdef
"""
_ROWS = (
    "1234567890",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "zxcvbnm",
    "yxcvbnm",
    "abcdefghijklmnopqrstuvwxyz",
    "1q2w3e4r5t6z7u8i9o0p",
    "1q2w3e4r5t6y7u8i9o0p",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
)
_BOTH_WAYS = tuple(way * 2 for row in _ROWS for way in (row, row[::-1]))
_ROW_AT_LEAST = 4
_LOOKS_LIKE = str.maketrans({"@": "a", "4": "a", "8": "b", "3": "e", "1": "i", "!": "i", "0": "o", "$": "s", "5": "s"})
_COMMON_WORDS = re.compile("|".join(sorted(_WORDS.split(), key=len, reverse=True)))
_MOST_LISTED = 2
"""A password of three common words that have nothing to do with each other is no common one."""
_SHORTEST_WORD, _SHORTEST_LISTED, _LONGEST_LISTED = 3, 4, 40
_LETTERS = re.compile(r"[^\W\d_]+")
_YEAR = re.compile(r"(19|20)\d\d")


def is_common(password: str, *, email: str) -> bool:
    """Whether hardly anything is left of a password without common words, rows of keys, years,
    and the own address.

    The first call of a process reads the lists, which takes a moment: not for an event loop.
    """
    text = password.casefold()
    if len(set(text)) < FEWEST_DIFFERENT or text in _listed():
        return True
    unit = _repeated(text)
    looks = (unit, unit.translate(_LOOKS_LIKE))
    return min(_left(one, email) for look in looks for one in (look, _without_listed(look))) < _LEAST_OWN


@cache
def _listed() -> frozenset[str]:
    """The words of the lists; they are read only where passwords are chosen,
    for they take 20 MB.
    """
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(word for words in FREQUENCY_LISTS.values() for word in words if len(word) >= _SHORTEST_LISTED)


def _without_listed(text: str) -> str:
    """The text without what is in the lists, if it has one word or two, also written as one;
    else the text.
    """
    runs = {run: _words_in(run) for run in set(_LETTERS.findall(text)) if len(run) >= _SHORTEST_WORD}
    if sum(words or 1 for words in runs.values()) > _MOST_LISTED:
        return text
    return _LETTERS.sub(lambda run: " " if runs.get(run[0]) else run[0], text)


def _words_in(letters: str) -> int:
    """As how many words of the lists a run of letters can be read: one, two, or none."""
    if len(letters) > _LONGEST_LISTED:
        return 0
    if letters in _listed():
        return 1
    places = range(_SHORTEST_LISTED, len(letters) - _SHORTEST_LISTED + 1)
    return 2 if any(letters[:at] in _listed() and letters[at:] in _listed() for at in places) else 0


def _left(text: str, email: str) -> int:
    """How many letters and digits of a text are its own."""
    for name in sorted(re.split(r"[^\w]+", email.casefold()), key=len, reverse=True):
        if len(name) > 3:
            text = text.replace(name, " ")
    text = _without_rows(_YEAR.sub(" ", _COMMON_WORDS.sub(" ", text)))
    return sum(letter.isalnum() or not letter.isascii() for letter in text)


def _without_rows(text: str) -> str:
    """The text without keys that lie beside each other, forwards or backwards."""
    kept, at = [], 0
    while at < len(text):
        length = _row_at(text, at)
        if length < _ROW_AT_LEAST:
            kept.append(text[at])
            length = 1
        at += length
    return "".join(kept)


def _row_at(text: str, at: int) -> int:
    """How many characters from here on are a part of one row."""
    longest = 1
    for row in _BOTH_WAYS:
        length = longest + 1
        while at + length <= len(text) and text[at : at + length] in row:
            longest, length = length, length + 1
    return longest


def _repeated(text: str) -> str:
    """The shortest text whose repetition this one is, or itself."""
    at = (text + text).find(text, 1)
    return text[:at]
