"""The guide's search: the sections of its chapters, and the calls of the API reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from paydesk.web.guide.calls import REFERENCE, Call
from paydesk.web.guide.chapters import chapters

_TAGS = re.compile(r"<[^>]+>")
_LINKS = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
_MOST_WORDS = 8
_LONGEST_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where words were found: `within` is what the place is a part of, `call` the method and path
    if it is a call of the API.
    """

    address: str
    title: str
    within: str
    excerpt: str
    call: str = ""


def found(words: str, calls: Sequence[Call], *, most: int = 30) -> list[Place]:
    """Places that hold all the words, those first that have them in their heading;
    a call's is its method, path and summary.
    """
    wanted = [_stem(word) for word in words.lower().split()[:_MOST_WORDS]]
    if not wanted:
        return []
    ranked = sorted([*_sections(wanted), *_calls(wanted, calls)], key=lambda one: one[0])
    return [place for _, place in ranked[:most]]


def _stem(word: str) -> str:
    """The word without the s of a plural, so that "refunds" finds a refund; an address as it is."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") and "/" not in word else word


def _sections(wanted: Sequence[str]) -> Iterator[tuple[int, Place]]:
    """Sections with all the words, each with how many of them its heading lacks."""
    for chapter in chapters().values():
        for section in chapter.sections:
            if all(word in f"{section.title} {section.text}".lower() for word in wanted):
                title = section.title
                within = chapter.book if title == chapter.title else f"{chapter.book}, {chapter.title}"
                address = f"/docs/{chapter.slug}#{section.anchor}"
                lacks = sum(word not in title.lower() for word in wanted)
                yield lacks, Place(address, title, within, _excerpt(section.text, wanted))


def _calls(wanted: Sequence[str], calls: Sequence[Call]) -> Iterator[tuple[int, Place]]:
    """Calls with all the words, each with how many of them its heading lacks."""
    for call in calls:
        heading, text = f"{call.line} {call.summary}".lower(), call.description.lower()
        others = [word for word in wanted if word not in heading and not call.answers(word)]
        if all(word in text for word in others):
            address, excerpt = f"{REFERENCE}#{call.anchor}", _excerpt(call.description, others)
            yield len(others), Place(address, call.summary, "API reference", excerpt, call.line)


def _excerpt(text: str, wanted: Sequence[str]) -> str:
    """Some words around the first place where one of the wanted ones stands."""
    plain = " ".join(_LINKS.sub(r"\1", _TAGS.sub("", text)).replace("`", "").replace("*", "").split())
    places = [place for word in wanted if (place := plain.lower().find(word)) >= 0]
    start = max(min(places, default=0) - 60, 0)
    start = plain.rfind(" ", 0, start + 1) + 1
    end = plain.rfind(" ", start, start + _LONGEST_EXCERPT) if len(plain) > start + _LONGEST_EXCERPT else len(plain)
    return ("… " if start else "") + plain[start:end]
