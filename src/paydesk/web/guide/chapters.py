"""The guide's chapters: each page of docs/ for programmers, cut at its headings, as HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from html import escape, unescape

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from paydesk.domain.business.made_up_events import EVENTS, make_up
from paydesk.web.guide.sources import read_page

ADDRESS, SANDBOX, KEY = "http://127.0.0.1:8000", "http://127.0.0.1:8000/sandbox", "your-public-key"
"""What stands in the programs for the reader's own: the service's bases and a public key."""

_ADDRESS, _SANDBOX, _KEY = "\ue000", "\ue001", "\ue002"
_FOR_SHOPS = "Integrate a shop"
_BOOKS = {"integrate.md": _FOR_SHOPS, "interface.md": "The interface, rule by rule"}
_CUT = re.compile(r"^## ", re.MULTILINE)
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_HEADING = 3
"""Tokens of a heading: it opens, its words, it closes."""

_SAMPLES_OF = datetime(2026, 11, 20, 9, 44, 16, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Section:
    """What stands under one heading: `text` is without marks, to be searched."""

    anchor: str
    title: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """One page of the guide, part of a `book`; its own heading is the first section's."""

    slug: str
    book: str
    title: str
    html: str
    sections: Sequence[Section]

    @property
    def names_a_key(self) -> bool:
        """Whether its programs have a place for a public key."""
        return _KEY in self.html

    def filled_in(self, address: str, sandbox: str, key: str) -> str:
        """The HTML with the reader's own addresses and public key in its programs."""
        filled = self.html
        for mark, value in ((_SANDBOX, sandbox), (_ADDRESS, address), (_KEY, key or KEY)):
            filled = filled.replace(mark, escape(value))
        return filled


@cache
def chapters() -> Mapping[str, Chapter]:
    """All chapters by their slug, in order."""
    drafts = [*_of_page("integrate.md"), _events(), *_of_page("interface.md")]
    # Where two pages have a heading of the same words, a link means that of its own page.
    homes = {
        (chapter.book, section.anchor): chapter.slug for chapter in reversed(drafts) for section in chapter.sections
    }
    return {chapter.slug: replace(chapter, html=_linked(chapter, homes, drafts)) for chapter in drafts}


def _of_page(name: str) -> Iterator[Chapter]:
    """A page cut into chapters; what stands before the first one is a chapter, too."""
    first, *others = _CUT.split(read_page(name))
    yield _chapter(_BOOKS[name], first)
    for other in others:
        yield _chapter(_BOOKS[name], f"# {other}", below=1)


def _chapter(book: str, text: str, *, below: int = 0) -> Chapter:
    """A chapter from its Markdown, which begins with its heading; `below` is how much deeper its
    other headings stand in the page.
    """
    tokens = _MARKDOWN.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close") and below and token.tag != "h1":
            token.tag = f"h{int(token.tag[1]) - below}"
    sections = tuple(_sections(tokens))
    # The page writes the heading itself.
    html = _MARKDOWN.renderer.render(tokens[_HEADING:], _MARKDOWN.options, {})
    return Chapter(sections[0].anchor, book, sections[0].title, html, sections)


def _events() -> Chapter:
    """Every event with a pingback of it, as a merchant's server gets it."""
    parts = [
        "# Events with samples",
        "The body of each pingback, but for its time of sending `pingback_ts`. Which of them you get, and what their "
        "fields mean: [Events](interface.md#6-events). *Send a test event* in your account's pingbacks sends any of "
        "them to your server, signed with your key.",
    ]
    for event in EVENTS:
        sample = json.dumps(json.loads(make_up(event, _SAMPLES_OF)), indent=2)
        parts.append(f"## {event}\n\n```json\n{sample}\n```")
    return _chapter(_FOR_SHOPS, "\n\n".join(parts))


def _sections(tokens: Sequence[Token]) -> Iterator[Section]:
    """The headings with what stands below each; gives each its anchor."""
    taken: set[str] = set()
    starts = [place for place, token in enumerate(tokens) if token.type == "heading_open"]
    for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
        title = _plain(tokens[start + 1])
        anchor = anchor_of(title)
        if anchor in taken:
            raise ValueError(f"two headings of one chapter are called {title}")
        taken.add(anchor)
        tokens[start].attrSet("id", anchor)
        text = " ".join(token.content for token in tokens[start + _HEADING : end] if token.content)
        yield Section(anchor, title, int(tokens[start].tag[1]), text)


def anchor_of(title: str) -> str:
    """The anchor of a heading, as the places make it where docs/ is read."""
    return _NOT_IN_ANCHORS.sub("", title.lower()).strip().replace(" ", "-")


def _plain(heading: Token) -> str:
    return "".join(token.content for token in heading.children or ())


def _linked(chapter: Chapter, homes: Mapping[tuple[str, str], str], drafts: Sequence[Chapter]) -> str:
    """The HTML with its links between pages led to chapters;
    what leads out of the guide becomes plain words.
    """
    firsts = {name: next(one.slug for one in drafts if one.book == book) for name, book in _BOOKS.items()}

    def lead(found: re.Match[str]) -> str:
        address, words = unescape(found[1]), found[2]
        if re.match(r"https?://", address):
            return found[0]
        page, _, anchor = address.partition("#")
        book = _BOOKS.get(page, "") if page else chapter.book
        home = homes.get((book, anchor)) if anchor else firsts.get(page)
        if home is None:
            return words
        place = f"#{anchor}" if anchor else ""
        return f'<a href="/docs/{home}{place}">{words}</a>'

    # A column without a name has no heading to read out.
    html = chapter.html.replace("<th></th>", "<td></td>")
    return re.sub(r'<a href="([^"]*)">(.*?)</a>', lead, html, flags=re.DOTALL)


def _fence(_: RendererProtocol, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    """A program, with marks where the reader's own addresses and key belong.

    The tab key reaches it, since it may scroll.
    """
    text = tokens[index].content
    for words, mark in ((SANDBOX, _SANDBOX), (ADDRESS, _ADDRESS), (KEY, _KEY)):
        text = text.replace(words, mark)
    return f'<pre tabindex="0"><code>{escape(text, quote=False)}</code></pre>\n'


_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
_MARKDOWN.add_render_rule("fence", _fence)
