"""Every background loop, driven with everything full: others have their turn all the same,
and a stop ends it.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.lengths import at_length, longer

import paydesk
from paydesk.adapters.mail import Mailbox
from paydesk.adapters.vault import Vault
from paydesk.database.pool import Database
from paydesk.domain.operations.clocks import ClockWatch
from paydesk.domain.operations.history import History
from paydesk.domain.payments.desk import Desk
from paydesk.domain.payments.hold_gate import Standing
from paydesk.settings import Settings
from paydesk.worker import work

SOURCE = Path(paydesk.__file__).parent
HOME = SOURCE / "loops" / "repeating.py"

WORK = {
    "pingbacks": "paydesk.domain.pingbacks.sending:PingbackSender._claim_once",
    "recording of pingbacks": "paydesk.domain.pingbacks.recording:Recorder._gather",
    "words of pingbacks": "paydesk.domain.pingbacks.waking:Listening.look",
    "janitor": "paydesk.domain.payments.janitor:settle_due",
    "janitor of movements": "paydesk.domain.payments.janitor:finish_movements",
    "janitor of kept instruments": "paydesk.domain.payments.janitor:let_go_due",
    "card changes": "paydesk.domain.billing.card_lookups:settle_card_changes",
    "billing 1": "paydesk.domain.billing.charging:BillingRun.charge_due",
    "ending of subscriptions": "paydesk.domain.billing.charging:expire_due",
    "changes of subscriptions": "paydesk.domain.billing.charging:carry_out_due",
    "disputes": "paydesk.domain.chargebacks.reading_acquirers:read_disputes",
    "deadlines of shipments": "paydesk.domain.deliveries.deadlines:act_on_due",
    "settling": "paydesk.domain.ledger.settling:settle_due",
    "closing of the ledger": "paydesk.domain.ledger.closing:close_ledger",
    "summing of sales": "paydesk.domain.ledger.summing_sales:sum_sales",
    "moves of subscriptions": "paydesk.domain.subscriptions.moving:carry_on",
    "mails": "paydesk.domain.mail.sending:MailSender.start_due",
    "forgetting of mails": "paydesk.domain.mail.sending:MailSender._forget",
    "telling": "paydesk.domain.mail.telling:tell_events",
    "telling of failures": "paydesk.domain.mail.telling:tell_failing",
    "telling of cards": "paydesk.domain.mail.telling:tell_expiring",
    "telling of charges": "paydesk.domain.mail.telling:announce_charges",
    "asking for cards": "paydesk.domain.mail.telling:ask_for_cards",
    "table statistics": "paydesk.database.table_statistics:TableStatistics.look",
    "pulse": "paydesk.domain.operations.machinery:queries.say_alive",
    "partitions of the logs": "paydesk.worker:keep_partitions",
    "forgetting of form counts": "paydesk.worker:forget_form_counts",
    "forgetting of tries with cards": "paydesk.worker:forget_tries",
    "forgetting of calls": "paydesk.worker:forget_calls",
    "forgetting of log-in attempts": "paydesk.worker:forget_past_entries",
    "forgetting of shoppers' codes": "paydesk.worker:forget_past",
    "forgetting of saved cards": "paydesk.worker:remove_unneeded",
    "look for cards to let go of": "paydesk.worker:ask_unneeded",
    "folding of recurring revenue": "paydesk.worker:fold_movements",
    "folding of reserves": "paydesk.worker:fold_reserves",
    "sending of what waited": "paydesk.worker:send_all_waiting",
    "queues": "paydesk.worker:watch_queues",
    "open outcomes": "paydesk.worker:watch_open_outcomes",
    "standbys": "paydesk.domain.operations.second_server:StandbyWatch.look",
    "alarms": "paydesk.worker:watch_alarms",
    "moves between cells": "paydesk.domain.operations.half_way:MoveWatch.look",
    "hiding of older links": "paydesk.worker:hide_left_links",
    "erasing of files of past disputes": "paydesk.worker:erase_past_files",
    "payment page": "paydesk.web.checkout.page_watching:PageWatch.look",
    "reconciliation": "paydesk.domain.operations.reconciling:_reconcile_when_due",
    "proceeds": "paydesk.domain.proceeds.reading:_read_when_due",
    "fraud warnings": "paydesk.domain.chargebacks.fraud_warnings:read_fraud_warnings",
    "failed refunds": "paydesk.domain.payments.failed_refunds:read_failed_refunds",
    "clock": "paydesk.domain.operations.clocks:ClockWatch.look",
    "acquirer accounts": "paydesk.domain.acquirers.opening:OpenAcquirers.look",
    "acquirer health": "paydesk.domain.acquirers.health:Health.look",
    "history": "paydesk.domain.operations.history:History.refresh",
    "beat": "paydesk.domain.operations.holding:queries.beat",
    "hold": "paydesk.domain.operations.holding:_Tending.turn",
}
"""Each loop of a worker, and the function that does its work."""


@pytest.fixture(autouse=True)
def _clock_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is due is done: here nobody reads the clocks."""
    monkeypatch.setattr(ClockWatch, "holds_due_work", False)


def last_turns() -> dict[str, float]:
    """When each loop ended its last turn."""
    return {
        sample.labels["loop"]: sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "paydesk_loop_last_turn_timestamp_seconds"
    }


async def always_more(*_: Any, **__: Any) -> int:
    """Work that awaits nothing, and says that there is more to do at once."""
    return 100


def replace(monkeypatch: pytest.MonkeyPatch, place: str, work: Callable[..., Awaitable[Any]]) -> None:
    module, _, path = place.partition(":")
    owner, _, name = path.rpartition(".")
    target: Any = importlib.import_module(module)
    monkeypatch.setattr(getattr(target, owner) if owner else target, name, work)


async def run_worker_until(
    settled: Callable[[], bool], settings: Settings, database: Database, vault: Vault, desk: Desk
) -> None:
    """Let a whole worker work until something is true, and end it by its stop;
    the test run's timeout ends the rest.
    """
    stop, history = asyncio.Event(), History()
    history.gate.say(Standing.OPEN)
    working = asyncio.create_task(work(settings, database, vault, desk, stop, history=history, mailbox=Mailbox()))
    while not settled():
        assert not working.done(), working.exception()
        await asyncio.sleep(0.001)
    stop.set()
    await working


async def test_with_everything_full_each_loop_gives_way_and_stops(
    settings: Settings, database: Database, vault: Vault, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = dict.fromkeys(WORK, 0)

    def counted(name: str) -> Callable[..., Awaitable[int]]:
        async def turn(*_: Any, **__: Any) -> int:
            turns[name] += 1
            return 100

        return turn

    for name, place in WORK.items():
        replace(monkeypatch, place, counted(name))
    await run_worker_until(lambda: all(turns.values()), settings, database, vault, desk)
    assert min(turns.values()) > 0


FAILING = at_length([{name} for name in WORK], [set(list(WORK)[::2]), set(list(WORK)[1::2])])
"""Whose work fails in one play: each alone, or in the short form every second."""


@longer
@pytest.mark.parametrize("failing", FAILING, ids=min)
async def test_a_loop_whose_work_fails_stops_no_other(
    failing: set[str], settings: Settings, database: Database, vault: Vault, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = set()

    def failing_as(name: str) -> Callable[..., Awaitable[int]]:
        async def turn(*_: Any, **__: Any) -> int:
            failed.add(name)
            raise ZeroDivisionError

        return turn

    for name, place in WORK.items():
        replace(monkeypatch, place, failing_as(name) if name in failing else always_more)
    began = last_turns()
    await run_worker_until(
        lambda: failed == failing and all(last_turns().get(other) != began.get(other) for other in WORK),
        settings, database, vault, desk,
    )  # fmt: skip


async def test_no_loop_of_a_worker_is_left_out_here(
    settings: Settings, database: Database, vault: Vault, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in WORK.values():
        replace(monkeypatch, place, always_more)
    names, looks = set[str](), list[int]()

    async def noted(name: str, _turn: object, stop: asyncio.Event, **_: Any) -> None:
        names.add(name)
        await stop.wait()

    def all_have_begun() -> bool:
        looks.append(1)
        return len(looks) > 100

    for file in SOURCE.rglob("*.py"):
        if file != HOME and re.search(r"loops\.repeating import .*\brepeat\b", file.read_text()):
            monkeypatch.setattr(f"paydesk.{'.'.join(file.relative_to(SOURCE).with_suffix('').parts)}.repeat", noted)
    await run_worker_until(all_have_begun, settings, database, vault, desk)
    found = {name for name in names if not name.startswith("billing ")} | {"billing 1"}
    assert found == set(WORK), "a new loop: add it to WORK, with what does its work"


def goes_round_by_itself(node: ast.AST) -> bool:
    """Whether this is a loop without an end of its own, or one that a stop ends."""
    if not isinstance(node, ast.While):
        return False
    return isinstance(node.test, ast.Constant) or "is_set" in ast.unparse(node.test)


def test_nothing_in_the_background_goes_round_but_by_the_one_way_to_do_so() -> None:
    files = [*(SOURCE / "domain").rglob("*.py"), SOURCE / "worker.py", *(SOURCE / "loops").rglob("*.py")]
    found = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.While) and goes_round_by_itself(node)
    ]
    assert [place.partition(":")[0] for place in found] == ["loops/repeating.py"], found
