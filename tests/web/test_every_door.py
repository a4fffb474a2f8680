"""Made-up requests to every door, the same at each run:
no 5xx, and neither memory nor `/metrics` grows with them.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import httpx
from prometheus_client import generate_latest

from paydesk.app import create_app
from paydesk.settings import Settings

REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "600"))
SEED = 11
MOST_METRICS = 1024 * 1024
MOST_GROWTH = 128
FORM, JSON = "application/x-www-form-urlencoded", "application/json"
PIECES = ("0", "1", "-1", "9" * 19, "9" * 4400, "a", "%00", "%ED%A0%80", "é", "..", "%2F", "{x}", "x" * 3000, "\u202e")
BODIES = (b"", b"{}", b"[]", b"null", b"a=1&a[b]=2", b"api_key=%00&hash=1", b'{"a":"\\ud800"}', b"\xff\xfe", b"&" * 300)


def paths(settings: Settings) -> list[str]:
    """The pattern of every route, and of what is mounted."""
    return [route.path for route in create_app(settings).routes if hasattr(route, "path")]


def body(chance: random.Random) -> bytes:
    """A body that no client would send."""
    deep = chance.choice((3, 9, 500, 900, 5000))
    made = (
        b'{"a":' + b"[" * deep + b"1" + b"]" * deep + b"}",
        b'{"a":' * deep + b"1" + b"}" * deep,
        b'{"public_key":"a","hash":"b","a":' + b"9" * deep + b"}",
        chance.randbytes(chance.randrange(300)),
    )
    return chance.choice((*BODIES, *made))


def request_of(chance: random.Random, patterns: list[str]) -> dict[str, Any]:
    """One request to one of the doors, at one of the two bases."""
    path = re.sub(r"\{[^}]+\}", lambda _: chance.choice(PIECES), chance.choice(patterns))
    base = chance.choice(("", "/sandbox"))
    query = chance.choice(("", "", f"?before={chance.choice(PIECES)}&limit={chance.choice(PIECES)}&x=%ff"))
    headers = {
        "Content-Type": chance.choice((FORM, JSON, "text/plain", "")),
        "Accept": chance.choice((JSON, "text/html", "*/*")),
        "Accept-Language": chance.choice(("", "de", "tlh-XX;q=9", "a-b-c," * 90, "zz;q=0.1")),
        "X-ApiKey": chance.choice(("", "x", "x" * 5000)),
        "Cookie": chance.choice(("", "paydesk=x; paydesk-said=a.b", "paydesk=" + "0" * 64, ";;=;")),
        "Idempotency-Key": chance.choice(("", "k", "k" * 500)),
    }
    method = chance.choice(("GET", "GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"))
    return {"method": method, "url": base + path + query, "headers": headers, "content": body(chance)}


def resident() -> int:
    """Megabytes of memory that this process holds."""
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) // 1024


async def test_no_request_fails_on_our_side(web: httpx.AsyncClient, settings: Settings) -> None:
    chance, patterns = random.Random(SEED), paths(settings)
    statuses: dict[int, int] = {}
    # Other tests of this process have measured something, too.
    before, measured = 0, len(generate_latest())
    for number in range(REQUESTS):
        made = request_of(chance, patterns)
        try:
            answer = await web.request(**made)
        except httpx.InvalidURL:
            continue
        assert answer.status_code < 500, (number, made, answer.text[:300])
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        if number == REQUESTS // 4:
            before = resident()
    assert sum(statuses.values()) > REQUESTS * 3 // 4, statuses
    assert resident() - before < MOST_GROWTH, "what strangers write is kept"
    assert len(generate_latest()) - measured < MOST_METRICS
