"""What a payment page brings into the customer's browser is what was built, and nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import httpx
from tests.conftest import SignedForm

INVENTORY = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
STATIC = Path(__file__).parents[2] / "src" / "paydesk" / "web"
FILE = re.compile(r'<(script|link)\b[^>]*?(?:src|href)="(/static/[^"]+)"[^>]*>')


async def test_the_payment_page_brings_what_was_built_and_nothing_else(
    web: httpx.AsyncClient, signed_form: SignedForm
) -> None:
    accepted = await web.post("/payment/form", data=signed_form())
    page = (await web.get(accepted.headers["location"])).text
    tags = list(FILE.finditer(page))
    names = set()
    for tag in tags:
        served = (await web.get(tag[2])).content
        name = re.sub(r"\.[0-9a-f]{10}\.", ".", tag[2].rpartition("/")[2])
        names.add(name)
        [built] = list(STATIC.glob(f"**/static/{name}"))
        assert served == built.read_bytes()
        digest = base64.b64encode(hashlib.sha384(served).digest()).decode()
        assert f'integrity="sha384-{digest}"' in tag[0]
    assert len(re.findall(r"<script\b", page)) == len([tag for tag in tags if tag[1] == "script"])
    assert names == set(re.findall(r"^\| `([\w.]+)` \| payment page", INVENTORY, re.M))


async def test_no_other_site_and_no_inline_script_has_a_say(web: httpx.AsyncClient, signed_form: Any) -> None:
    accepted = await web.post("/payment/form", data=signed_form())
    page = await web.get(accepted.headers["location"])
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
