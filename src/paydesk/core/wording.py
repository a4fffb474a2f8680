"""Texts that are English where they are written, and can be said in another language
where they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol


class Language(Protocol):
    """What says texts in one language."""

    def get(self, text: str, /) -> str:
        """A text of ours in the language."""
        ...

    def of_number(self, one: str, many: str, number: int, /) -> str:
        """The form that the language has of a text for a number."""
        ...


class Worded(str):
    """A text in English that remembers what it was made from: a pattern with `%(name)s`,
    and the values in it.

    Programs, logs and commands read it as the text that it is; a page has the pattern translated
    and fills the values in again. A value may be such a text itself; the one called `field` names
    a field, which pages have their own words for. `one` is the pattern for a `count` of 1 where
    a text hangs on a number, and empty elsewhere.
    """

    pattern: str
    values: Mapping[str, object]
    one: str

    def __new__(cls, pattern: str, values: Mapping[str, object], one: str = "") -> Worded:
        """The English text."""
        self = super().__new__(cls, (one if one and values.get("count") == 1 else pattern) % values)
        self.pattern, self.values, self.one = pattern, MappingProxyType(dict(values)), one
        return self

    def __reduce__(self) -> tuple[type[Worded], tuple[str, dict[str, object], str]]:
        """Copied and handed to another process with what it was made from."""
        return type(self), (self.pattern, dict(self.values), self.one)

    def said(self, language: Language) -> str:
        """The text in a language, and so its values where they can be said so."""
        count = self.values.get("count")
        if self.one and isinstance(count, int):
            pattern = language.of_number(self.one, self.pattern, count)
        else:
            pattern = language.get(self.pattern)
        return pattern % {name: _said(name, value, language) for name, value in self.values.items()}


def worded(pattern: str, /, **values: object) -> Worded:
    """A text that pages say in their reader's language; `make messages` collects its pattern."""
    return Worded(pattern, values)


def plural(one: str, many: str, /, *, count: int, **values: object) -> Worded:
    """A text that hangs on a number: in English `one` for a `count` of 1, else `many`.
    `make messages` collects both, for languages that have up to six forms.
    """
    return Worded(many, {**values, "count": count}, one)


def noted(pattern: str, /, **values: object) -> Worded:
    """A text that the books keep in English, as logs and commands say it; pages know its pattern
    again when they show it (`web/noted_texts.py`).
    """
    return Worded(pattern, values)


def noted_as(pattern: str) -> str:
    """A pattern of a text that the books keep in English, and that is put together elsewhere, as in
    a statement; see `noted`.
    """
    return pattern


def plain(value: object) -> object:
    """A text as JSON has it: for encoders, which know no kinds of texts. Raises: TypeError."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def without(text: str, hide: Callable[[str], str]) -> str:
    """A text after `hide` has taken out what nobody may read; still one for every language if what
    it hides stands in the values alone.
    """
    if not isinstance(text, Worded):
        return hide(text)
    shown = Worded(text.pattern, {name: _without(value, hide) for name, value in text.values.items()}, text.one)
    whole = hide(str(shown))
    return shown if whole == shown else whole


def _without(value: object, hide: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return without(value, hide)
    shown = str(value)
    return value if hide(shown) == shown else hide(shown)


def _said(name: str, value: object, language: Language) -> object:
    if isinstance(value, Worded):
        return value.said(language)
    return language.get(value) if name == "field" and isinstance(value, str) else value
