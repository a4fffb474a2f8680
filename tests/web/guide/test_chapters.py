"""The guide says what docs/ says, and its links lead somewhere."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from paydesk.domain.business.made_up_events import EVENTS
from paydesk.web.guide import chapters as guide
from paydesk.web.guide.chapters import chapters

DOCS = Path(__file__).parents[3] / "docs"


def test_every_heading_of_the_pages_is_in_the_guide() -> None:
    titles = [section.title for chapter in chapters().values() for section in chapter.sections]
    for page in ("integrate.md", "interface.md"):
        text = re.sub(r"```.*?```", "", (DOCS / page).read_text(), flags=re.DOTALL)
        for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
            assert heading.replace("`", "") in titles


def test_every_program_is_there_whole() -> None:
    html = "".join(chapter.filled_in(guide.ADDRESS, guide.SANDBOX, "") for chapter in chapters().values())
    programs = re.findall(r"^```\w*\n(.*?)^```$", (DOCS / "integrate.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(programs) > 10
    for program in programs:
        assert program in unescape(html)


def test_links_lead_to_headings_that_exist() -> None:
    anchors = {(slug, section.anchor) for slug, chapter in chapters().items() for section in chapter.sections}
    links = [
        (slug, link) for slug, chapter in chapters().items() for link in re.findall(r'href="([^"]+)"', chapter.html)
    ]
    assert len(links) > 10
    for slug, link in links:
        path, _, anchor = link.partition("#")
        home = path.removeprefix("/docs/") or slug
        assert home in chapters(), f"{slug} leads to {link}"
        assert not anchor or (home, anchor) in anchors, f"{slug} leads to {link}"


def test_every_event_has_a_sample() -> None:
    events = chapters()["events-with-samples"]
    assert [section.title for section in events.sections[1:]] == list(EVENTS)
    for event in EVENTS:
        assert f'"event": "{event}"' in events.html


def test_readers_find_their_own_addresses_and_key_in_programs_alone() -> None:
    curl = chapters()["a-first-checkout-with-curl"]
    html = curl.filled_in("https://pay.example", "https://pay.example/sandbox", "k4")
    assert "PAY_URL:-https://pay.example/sandbox}" in html
    assert "PUBLIC_KEY:-k4}" in html
    assert "PRIVATE_KEY:-your-private-key}" in html
    prose = chapters()["before-you-start"].filled_in("https://pay.example", "https://pay.example/sandbox", "k4")
    assert "<code>http://127.0.0.1:8000</code>" in prose
    assert "&lt;script&gt;" in curl.filled_in("<script>", "<script>", "<b>")
    assert "<script>" not in curl.filled_in("<script>", "<script>", "<b>")
