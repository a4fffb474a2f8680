"""The plays find what they are there to find: each bug that is planted, every time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.faults.plays import (
    CANCELLED,
    GIVES_BACK,
    IS_TOLD,
    OF_THE_WEB,
    OF_THE_WORKERS,
    PART_BACK,
    PAYS,
    SHIPPED,
    SHIPS,
    Fate,
    Play,
    perform,
    play,
)
from tests.faults.settling import settle
from tests.faults.stage import Cast, staged
from tests.faults.verifying import contradictions, hear
from tests.lengths import long

pytestmark = pytest.mark.faults

OF_THE_WEBS_BUGS = {
    "payments.begin_attempt": play(PAYS, "after bank.authorize"),
    "movements.begin_refund": play(GIVES_BACK, "after bank.refund", PART_BACK),
    "movements.begin_void": play(GIVES_BACK, "after bank.void", CANCELLED),
    "deliveries.record_delivery": play(SHIPS, "after bank.capture", SHIPPED),
    "payments.record_approvals": play(PAYS, "after payments.record_approvals"),
}
OF_THE_WORKERS_BUGS = {"pingbacks.claim": play(IS_TOLD, "before merchant.post")}
"""The statement that has a bug, and the play that shows it when the process is killed there."""

SAYS = {
    "payments.begin_attempt": "lost: the bank took ",
    "movements.begin_refund": "lost movement: the bank made a refund ",
    "movements.begin_void": "lost movement: the bank made a void ",
    "deliveries.record_delivery": "lost movement: the bank made a capture ",
    "payments.record_approvals": "the merchant was told None of socks-pays-4242-after-payments-record-approvals",
    "pingbacks.claim": "the merchant was told None of socks-is-told-4242-before-merchant-post",
}


async def found_with(folder: Path, bugs: Mapping[str, Play], *, in_background: bool) -> list[str]:
    """What the witnesses say after the plays that show some bugs,
    in which processes were killed.
    """
    async with staged(folder, Cast(bugs=list(bugs))) as stage:
        if in_background:
            async with stage.working():
                await perform(stage, list(bugs.values()), Fate.DIES)
        else:
            await perform(stage, list(bugs.values()), Fate.DIES)
        await settle(stage)
        return contradictions(await hear(stage))


@long
@pytest.mark.parametrize("bugs", [OF_THE_WEBS_BUGS, OF_THE_WORKERS_BUGS], ids=["web", "workers"])
async def test_each_planted_bug_is_found_by_its_play(tmp_path: Path, bugs: Mapping[str, Play]) -> None:
    found = await found_with(tmp_path, bugs, in_background=bugs is OF_THE_WORKERS_BUGS)
    missed = [bug for bug in bugs if not any(said.startswith(SAYS[bug]) for said in found)]
    assert not missed, "\n".join(found)


def test_what_shows_a_bug_is_played_without_it_too() -> None:
    assert set(OF_THE_WEBS_BUGS.values()) <= set(OF_THE_WEB)
    assert set(OF_THE_WORKERS_BUGS.values()) <= set(OF_THE_WORKERS)
