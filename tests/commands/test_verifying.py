"""`paydesk acquirer verify`, as a process of its own beside stand-ins that are processes too."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.commands.conftest import Refusal
from tests.lengths import long
from tests.processes import PATIENCE, environment, free_port
from tests.standings import standings
from tests.standins import account

from paydesk.adapters.acquirers.simulator import Record

VISA = "4242424242424242"


@asynccontextmanager
async def stripe(*words: str) -> AsyncIterator[str]:
    """Stripe's stand-in in a process of its own; its address."""
    port = free_port()
    command = [sys.executable, "-m", "tests.standins.stripe_page", "--port", str(port), *words]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert json.loads(await process.stdout.readline()) == {"serving": port}
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


async def verify(settings: dict[str, object], *words: str, pays: bool = False) -> tuple[int, str, list[str]]:
    """Run the command; a person pays on each page whose address it tells. Its exit status, what it
    printed, and the addresses.
    """
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("paydesk"),
        *("acquirer", "verify", *words),
        env=environment(settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    printed, told = asyncio.create_task(process.stdout.read()), []
    try:
        async with asyncio.timeout(PATIENCE), httpx.AsyncClient() as person:
            async for line in process.stderr:
                if found := re.search(rb"open (http\S+)", line):
                    told.append(found[1].decode())
                    if pays:
                        await person.post(told[-1], data={"number": VISA})
            return await process.wait(), (await printed).decode(), told
    finally:
        if process.returncode is None:
            process.kill()


def at_stripe(address: str, folder: Path) -> dict[str, object]:
    return {
        "DATA_DIR": folder,
        "STRIPE_SECRET_KEY": "sk_test_standin",
        "STRIPE_API_BASE": address,
        "STRIPE_CHECKOUT": True,
    }


async def left_at(address: str) -> list[Any]:
    """The payments that hold or have taken something, and the sessions that are open."""
    headers = {"Authorization": "Bearer sk_test_standin"}
    async with httpx.AsyncClient(base_url=address, headers=headers) as asking:
        intents = (await asking.get("/v1/payment_intents")).json()["data"]
        sessions = (await asking.get("/v1/checkout/sessions")).json()["data"]
        left = [one["id"] for one in sessions if one["status"] == "open"]
        for intent in intents:
            back = (await asking.get("/v1/refunds", params={"payment_intent": intent["id"]})).json()["data"]
            if intent["status"] == "requires_capture" or intent["amount_received"] > sum(one["amount"] for one in back):
                left.append(intent["id"])
        assert (await asking.get("/wrong")).json() == []
    return left


@pytest.mark.parametrize(
    ("name", "key"),
    [("stripe", {"STRIPE_SECRET_KEY": "sk_live_x"}), ("stripe", {}), ("mollie", {"MOLLIE_KEY": "live_x"})],
    ids=["Stripe's live key", "none", "Mollie's live key"],
)
async def test_what_is_no_sandbox_is_refused(refusal: Refusal, tmp_path: Path, name: str, key: dict[str, str]) -> None:
    assert "a sandbox's key alone" in await refusal("acquirer", "verify", name, DATA_DIR=tmp_path, **key)


async def test_an_acquirer_that_there_is_not_is_said_to_be_none(refusal: Refusal, tmp_path: Path) -> None:
    assert 'no acquirer "bank"' in await refusal("acquirer", "verify", "bank", DATA_DIR=tmp_path)


async def test_the_simulated_bank_keeps_every_point_and_has_nothing_left(tmp_path: Path) -> None:
    status, printed, told = await verify({"DATA_DIR": tmp_path, "SIMULATOR_LATENCY": 0}, "simulator", "--json")
    said = json.loads(printed)
    assert (status, said["ok"], told) == (0, True, [])
    assert [one["tried"] for one in said["points"] if one["state"] == "failed"] == []
    assert "--wait" in next(one["seen"] for one in said["points"] if one["state"] == "skipped")
    record = Record(tmp_path / "simulator" / "record.sqlite")
    assert [one for one in standings(record.operations()).values() if one.net or one.held] == []


@long
async def test_stripes_page_is_tried_with_a_person_who_pays(tmp_path: Path) -> None:
    async with stripe() as address:
        status, printed, told = await verify(at_stripe(address, tmp_path), "stripe", "--wait", "5", "--json", pays=True)
        said = json.loads(printed)
        states = {one["tried"]: (one["state"], one["seen"]) for one in said["points"]}
        assert [one for one, (state, _) in states.items() if state != "ok"] == []
        assert (status, len(told)) == (0, 3)
        assert "held until" in states["a person pays what is only held"][1]
        assert await left_at(address) == []


@long
async def test_a_point_that_is_broken_stands_in_the_table(tmp_path: Path) -> None:
    async with stripe("--forgets") as address:
        status, printed, _ = await verify(at_stripe(address, tmp_path), "stripe")
        (broken, other) = [line for line in printed.splitlines() if line.rstrip().endswith(" failed")][:2]
        assert status == 1
        assert re.search(r"the same page again +the same page +cs_test_2, and not cs_test_1 +failed", broken)
        assert other.startswith("another amount under its key")
        assert re.search(r"look at the page .* ok", printed)
        assert await left_at(address) == [], "what it made twice is ended, too"


@long
async def test_mollies_page_is_tried_without_an_address_for_notifications(tmp_path: Path) -> None:
    with account.running("tests.standins.mollie") as mollie:
        given: dict[str, object] = {
            "DATA_DIR": tmp_path,
            "MOLLIE_KEY": "test_standin",
            "MOLLIE_API_BASE": mollie.base_url,
        }
        status, printed, _ = await verify(given, "mollie", "--json")
        points = json.loads(printed)["points"]
        assert [(one["tried"], one["seen"]) for one in points if one["state"] == "failed"] == []
        assert status == 0
        payments = mollie.see()["payments"].values()
        assert payments
        assert not any(one.get("webhookUrl") for one in payments)
