"""Pages and mails as tests read them: by their elements, not as text."""

from __future__ import annotations

from html.parser import HTMLParser

Attributes = dict[str, str | None]


class Markup(HTMLParser):
    """Every element of a page with its attributes, and the page's text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, Attributes]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[Attributes]:
        """The attributes of each element of a kind."""
        return [attributes for one, attributes in self.found if one == tag]

    def named(self, name: str) -> Attributes:
        """The attributes of the first element of a name."""
        return next(attributes for _, attributes in self.found if attributes.get("name") == name)

    def links(self) -> list[str | None]:
        """Where the page's links lead."""
        return [attributes.get("href") for attributes in self.all("a")]

    def inputs(self) -> dict[str, str]:
        """The values of the page's inputs, by name."""
        return {one["name"] or "": one.get("value") or "" for one in self.all("input") if one.get("name")}
