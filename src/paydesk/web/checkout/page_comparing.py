"""The payment page as a customer's browser gets it, compared with what was built (PCI DSS 11.6.1).

It is fetched from the public address, through whatever stands between: a proxy that writes into
pages, drops headers or serves another release shows up here, and so does a file that was changed on
the machine that serves.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

import aiohttp
from starlette.responses import HTMLResponse

from paydesk.core.card_numbers import masked
from paydesk.core.wording import noted
from paydesk.web.assets import ASSETS, PREFIX
from paydesk.web.checkout.pages import texts_for
from paydesk.web.checkout.sample import LANGUAGE, SAMPLE, sample_page

FILES = ("page.css", "checkout.js", "portal.css", "portal.js")
"""Files of all pages on which a card is typed; the payment page brings the first two."""

LARGEST = 1_000_000
PATIENCE = 15.0
"""Seconds that each answer may take."""

_SHOWN, _CONTEXT = 160, 20
"""Letters that are shown of what differs, and before it."""


class NotReached(Exception):
    """The public address did not answer, so that nothing is known of the page."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a browser would get; headers of one name are joined, as browsers do."""

    status: int
    headers: dict[str, str]
    content: bytes


Fetch = Callable[[str], Awaitable[Served]]


async def differences(address: str, fetch: Fetch) -> list[str]:
    """How the page at a public address, and the files of card pages, differ from this build;
    nothing if they don't.

    Raises: NotReached.
    """
    built, served = sample_page(texts_for(LANGUAGE)), await fetch(address + SAMPLE)
    if served.status != built.status_code:
        return [
            noted(
                "the page is answered with status %(status)s: another release, or something else, is served",
                status=served.status,
            )
        ]
    found = [*_headers(built, served), *_lines(bytes(built.body).decode(), served.content.decode("utf-8", "replace"))]
    for name in FILES:
        found += await _file(address, name, fetch)
    return found


def _headers(built: HTMLResponse, served: Served) -> Iterator[str]:
    """Headers that the page must have as they were built;
    others (HSTS, Server) may come besides.
    """
    for name, value in built.headers.items():
        got = served.headers.get(name)
        # A proxy may compress the page.
        if name != "content-length" and got != value:
            yield noted(
                "header %(name)s is %(got)s, built is %(built)s", name=name, got=_shown(got), built=_shown(value)
            )


def _lines(built: str, served: str) -> list[str]:
    """The first line that differs, and how many scripts there are."""
    if built == served:
        return []
    found: list[str] = []
    for number, (ours, theirs) in enumerate(zip_longest(built.splitlines(), served.splitlines()), 1):
        if ours != theirs:
            begin = max(0, _agreeing(ours or "", theirs or "") - _CONTEXT)
            shown = [_shown(line and line[begin:]) for line in (theirs, ours)]
            found = [
                noted(
                    "line %(number)s of the page is %(got)s, built is %(built)s",
                    number=number,
                    got=shown[0],
                    built=shown[1],
                )
            ]
            break
    scripts = [len(re.findall(r"<script\b", text, re.IGNORECASE)) for text in (served, built)]
    if scripts[0] != scripts[1]:
        found.append(noted("the page has %(got)s scripts, built are %(built)s", got=scripts[0], built=scripts[1]))
    return found or [noted("the page differs in its line ends")]


def _agreeing(one: str, other: str) -> int:
    """How many letters two lines have in common before they differ."""
    return next((at for at, (a, b) in enumerate(zip_longest(one, other)) if a != b), len(one))


async def _file(address: str, name: str, fetch: Fetch) -> list[str]:
    asset = ASSETS.find(name)
    served = await fetch(f"{address}{PREFIX}/{asset.url_name}")
    if served.status != 200:
        return [noted("%(name)s is answered with status %(status)s", name=name, status=served.status)]
    if served.content == asset.content:
        return []
    got, built = (hashlib.sha256(content).hexdigest()[:16] for content in (served.content, asset.content))
    return [noted("%(name)s has the SHA-256 %(got)s…, built is %(built)s…", name=name, got=got, built=built)]


def _shown(text: str | None) -> str:
    """A beginning of what was found, for people to read."""
    if text is None:
        return "missing"
    plain = "".join(letter if letter.isprintable() else "?" for letter in masked(text.strip()))
    return f'"{plain[:_SHOWN]}{"…" if len(plain) > _SHOWN else ""}"'


async def fetch(url: str) -> Served:
    """Get something as a stranger's browser would; redirects are not followed.

    Raises: NotReached.
    """
    whole = aiohttp.ClientTimeout(total=PATIENCE)
    headers = {"Accept": "text/html,*/*", "Accept-Language": LANGUAGE, "User-Agent": "Mozilla/5.0 (compatible)"}
    try:
        async with (
            aiohttp.ClientSession(timeout=whole, trust_env=False) as session,
            session.get(url, headers=headers, allow_redirects=False) as answer,
        ):
            content = await answer.content.read(LARGEST)
            while len(content) < LARGEST and (more := await answer.content.read(LARGEST - len(content))):
                content += more
            got = {name.lower(): ", ".join(answer.headers.getall(name)) for name in answer.headers}
            return Served(answer.status, got, content)
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        raise NotReached(f"{url} can't be reached: {type(error).__name__}: {error}") from error
