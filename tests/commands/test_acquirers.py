"""Accounts at acquirers by the command line: a key goes in, and never comes out."""

from __future__ import annotations

from typing import Any

import pytest


async def test_nothing_is_added_yet(paydesk: Any) -> None:
    said = await paydesk("acquirer", "list", "--json")
    assert (said.status, said.result) == (0, [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("stripe", "--kind", "stripe"), "a name has"),
        (("Second", "--kind", "simulator", "--address", "http://127.0.0.1:1"), "a name has"),
        (("second", "--kind", "bank"), "the kind is one of"),
        (("second", "--kind", "simulator"), "needs its address"),
        (("second", "--kind", "simulator", "--address", "http://127.0.0.1:1", "--currencies", "EUX"), "ISO 4217"),
        (("second", "--kind", "simulator", "--address", "http://127.0.0.1:1"), "does not answer"),
    ],
)
async def test_what_can_not_be_an_account_is_refused_in_one_line(
    paydesk: Any, options: tuple[str, ...], words: str
) -> None:
    said = await paydesk("acquirer", "add", *options, stdin="sk_live_secret\n")
    assert (said.status, said.out, said.err.count("\n")) == (1, "", 1)
    assert words in said.err
    assert "secret" not in said.err


async def test_an_account_that_is_not_there_is_named(paydesk: Any) -> None:
    said = await paydesk("acquirer", "disable", "nowhere")
    assert said.status == 1
    assert "nowhere" in said.err
