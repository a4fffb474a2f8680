"""The payment page as customers get it, compared with what was built:
whatever stands between shows up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from aiohttp import web as server
from tests import breaking
from tests.sweeping import database, database_url

from paydesk.database.pool import Database
from paydesk.web.checkout.page_comparing import FILES, Fetch, NotReached, Served, differences, fetch
from paydesk.web.checkout.page_watching import SECOND_LOOK, UNSEEN, PageWatch
from paydesk.web.checkout.sample import SAMPLE

__all__ = ["database", "database_url"]

ADDRESS = "http://pay.test"
NOW = datetime(2026, 11, 22, 5, 0, tzinfo=UTC)
Between = Callable[[str, Served], Served]


def through(web: httpx.AsyncClient, between: Between = lambda _, served: served) -> Fetch:
    """The service as it is served through something that may change its answers."""

    async def get(url: str) -> Served:
        answer = await web.get(url, headers={"accept-language": "en"})
        return between(url, Served(answer.status_code, dict(answer.headers), answer.content))

    return get


def page(change: Callable[[Served], Served]) -> Between:
    """Something that changes the page alone."""
    return lambda url, served: change(served) if url.endswith(SAMPLE) else served


def body(old: bytes, new: bytes) -> Between:
    return page(lambda served: replace(served, content=served.content.replace(old, new)))


def header(name: str, change: Callable[[str], str]) -> Between:
    return page(lambda served: replace(served, headers={**served.headers, name: change(served.headers.get(name, ""))}))


def without(name: str) -> Between:
    return page(lambda served: replace(served, headers={kept: v for kept, v in served.headers.items() if kept != name}))


async def test_what_is_served_is_what_was_built(web: httpx.AsyncClient) -> None:
    assert await differences(ADDRESS, through(web)) == []


async def test_the_sample_is_a_payment_page_and_leads_nowhere(web: httpx.AsyncClient) -> None:
    shown = await web.get(SAMPLE)
    assert 'name="number"' in shown.text
    assert (await web.post(f"{SAMPLE}/pay", data={"number": "4242424242424242"})).status_code == 404


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (body(b"</body>", b"<script src=https://evil.example/x.js></script></body>"), "2 scripts, built are 1"),
        (body(b"</head>", b"<script src=https://evil.example/x.js></script></head>"), "src=https://evil.example/x.js"),
        (body(b"<head>", b"<head><base href=https://evil.example/>"), "line 3 of the page"),
        (body(b' integrity="', b' data-x="'), "integrity"),
        (body(b"\n", b"\r\n"), "line ends"),
        (header("content-security-policy", lambda was: was.replace("'self'", "*")), "header content-security-policy"),
        (header("content-security-policy", lambda was: f"{was}, default-src *"), "header content-security-policy"),
        (without("content-security-policy"), "header content-security-policy is missing"),
        (without("x-content-type-options"), "header x-content-type-options is missing"),
        (page(lambda served: replace(served, status=403)), "status 403"),
        (lambda url, served: replace(served, content=served.content + b";") if "checkout." in url else served,
         "checkout.js has the SHA-256"),
        (lambda url, served: replace(served, status=404) if "portal." in url else served, "portal.js is answered"),
    ],
)  # fmt: skip
async def test_whatever_writes_into_pages_is_found(web: httpx.AsyncClient, between: Between, words: str) -> None:
    assert words in "; ".join(await differences(ADDRESS, through(web, between)))


async def test_what_is_found_is_told_in_few_words_without_card_numbers(web: httpx.AsyncClient) -> None:
    written = body(b"<head>", b"<script>send('4242424242424242')\x07" + b"x" * 5000)
    told = "; ".join(await differences(ADDRESS, through(web, written)))
    assert "send(" in told
    assert "4242424242424242" not in told
    assert len(told) < 700
    assert told.isprintable()


async def test_headers_may_come_besides(web: httpx.AsyncClient) -> None:
    more = header("strict-transport-security", lambda _: "max-age=31536000")
    assert await differences(ADDRESS, through(web, more)) == []


async def alarms(database: Database) -> list[tuple[bool, str]]:
    rows = await database.fetch("select settled_at is null as open, reason from alarm where kind = 'page_differs'")
    return [(row["open"], row["reason"]) for row in rows]


async def test_what_differs_twice_is_an_alarm_that_settles_itself(web: httpx.AsyncClient, database: Database) -> None:
    await breaking.no_alarms(database, "page_differs")
    watch = PageWatch(ADDRESS, timedelta(hours=24), due=NOW, seen=NOW)
    good, bad = through(web), through(web, without("content-security-policy"))
    await watch.look(database, now=NOW - timedelta(seconds=1), get=bad)
    assert not watch.differed, "it is not time yet"
    await watch.look(database, now=NOW, get=bad)
    assert await alarms(database) == [], "one release may just be followed by another"
    await watch.look(database, now=NOW + SECOND_LOOK, get=bad)
    [(is_open, reason)] = await alarms(database)
    assert is_open
    assert "content-security-policy is missing" in reason
    await watch.look(database, now=NOW + 2 * SECOND_LOOK, get=good)
    assert [is_open for is_open, _ in await alarms(database)] == [False]
    assert watch.due == NOW + 2 * SECOND_LOOK + timedelta(hours=24)


async def test_who_can_not_reach_the_page_knows_nothing_of_it(web: httpx.AsyncClient, database: Database) -> None:
    await breaking.no_alarms(database, "page_differs")

    async def silent(url: str) -> Served:
        raise NotReached(url)

    watch = PageWatch(ADDRESS, timedelta(hours=24), due=NOW, seen=NOW)
    await watch.look(database, now=NOW, get=silent)
    await watch.look(database, now=NOW + SECOND_LOOK, get=silent)
    assert (await alarms(database), watch.differed) == ([], False)
    assert watch.due == NOW + 2 * SECOND_LOOK
    assert UNSEEN._value.get() == SECOND_LOOK.total_seconds()


Answer = Callable[[server.Request], Awaitable[server.StreamResponse]]


async def test_a_page_is_fetched_over_the_network_as_it_is(web: httpx.AsyncClient) -> None:
    built = await web.get(SAMPLE, headers={"accept-language": "en"})
    asked: list[str] = []

    async def answer(request: server.Request) -> server.StreamResponse:
        asked.append(request.headers["Accept-Language"])
        if request.path == "/moved":
            raise server.HTTPFound("/elsewhere")
        headers = [(name, value) for name, value in built.headers.items() if name.startswith(("content-s", "x-"))]
        return server.Response(body=built.content, headers=[*headers, ("X-Two", "a"), ("X-Two", "b")])

    app = server.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = server.AppRunner(app)
    await runner.setup()
    site = server.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        got = await fetch(f"http://127.0.0.1:{port}{SAMPLE}")
        assert (got.status, got.content) == (200, built.content)
        assert got.headers["x-two"] == "a, b"
        assert got.headers["content-security-policy"] == built.headers["content-security-policy"]
        assert (await fetch(f"http://127.0.0.1:{port}/moved")).status == 302
        assert asked == ["en", "en"]
    finally:
        await runner.cleanup()
    with pytest.raises(NotReached, match="can't be reached"):
        await fetch(f"http://127.0.0.1:{port}{SAMPLE}")


def test_every_file_of_a_card_page_is_compared() -> None:
    assert set(FILES) == {"page.css", "checkout.js", "portal.css", "portal.js"}
