"""Texts that are English where they are written, and can be said in another language
where they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType


class Worded(str):
    """A text in English that remembers what it was made from: a pattern with `%(name)s`,
    and the values in it.

    Programs, logs and commands read it as the text that it is; a page has the pattern translated
    and fills the values in again. A value may be such a text itself; the one called `field` names
    a field, which pages have their own words for.
    """

    pattern: str
    values: Mapping[str, object]

    def __new__(cls, pattern: str, values: Mapping[str, object]) -> Worded:
        """The English text."""
        self = super().__new__(cls, pattern % values)
        self.pattern, self.values = pattern, MappingProxyType(dict(values))
        return self

    def __reduce__(self) -> tuple[type[Worded], tuple[str, dict[str, object]]]:
        """Copied and handed to another process with what it was made from."""
        return type(self), (self.pattern, dict(self.values))

    def said(self, translate: Callable[[str], str]) -> str:
        """The text in the language of `translate`, and so its values where they can be said so."""
        return translate(self.pattern) % {name: _said(name, value, translate) for name, value in self.values.items()}


def worded(pattern: str, /, **values: object) -> Worded:
    """A text that pages say in their reader's language; `make messages` collects its pattern."""
    return Worded(pattern, values)


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
    shown = Worded(text.pattern, {name: _without(value, hide) for name, value in text.values.items()})
    whole = hide(str(shown))
    return shown if whole == shown else whole


def _without(value: object, hide: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return without(value, hide)
    shown = str(value)
    return value if hide(shown) == shown else hide(shown)


def _said(name: str, value: object, translate: Callable[[str], str]) -> object:
    if isinstance(value, Worded):
        return value.said(translate)
    return translate(value) if name == "field" and isinstance(value, str) else value
