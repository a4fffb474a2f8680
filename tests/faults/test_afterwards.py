"""Whatever dies at whichever point: each dispute is booked as the bank says,
each card and each payout once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import pytest
from tests.faults.afterwards import (
    BY_COMMAND,
    CHANGE_IS_FOUND,
    CHANGES,
    CHANGES_AT_THE_DOOR,
    IS_DISPUTED,
    IS_PAID_OUT,
    NEW_CARD,
    OF_DECIDED,
    OF_OPENED,
    UNDER_A_LEASE,
    settle_afterwards,
)
from tests.faults.plays import EACH_FATE, Fate, Play, perform, play, played
from tests.faults.reconciling import differences
from tests.faults.stage import Cast, Stage, staged
from tests.faults.test_plays import check, unforeseen
from tests.lengths import long

pytestmark = pytest.mark.faults

BUGS = {
    "chargebacks.find_charged_back": play(IS_DISPUTED, "before chargebacks.book"),
    "replacing_cards.begin_card_change": play(CHANGES, "after bank.authorize", plan=NEW_CARD),
    "balances.payout_of_reference": play(IS_PAID_OUT, "after operations.pay_out"),
}
"""The statement that has a bug, and the play that shows it when the process is killed there."""
SAYS = {
    "chargebacks.find_charged_back": "the bank took 3.02 back for socks-is-disputed-",
    "replacing_cards.begin_card_change": "lost: the bank checked a card ending in 4444 ",
    "balances.payout_of_reference": "0.50 USD were sent for socks-is-paid-out-4242-after-operations-pay-out once",
}


Plays = tuple[Play, ...]


async def found_after(
    stage: Stage,
    fates: Sequence[Fate],
    at_the_door: Plays,
    by_command: Plays,
    under_a_lease: Plays,
    *in_background: Plays,
) -> list[str]:
    """What bank, books and shop say differently in the end; the parts have the fates by turns."""
    fate = cycle(fates)
    await perform(stage, at_the_door, next(fate))
    with_commands = next(fate)
    for one in by_command:
        # Who records a payout has the merchant's row in hand, and others wait in line for it.
        await perform(stage, (one,), with_commands)
    # Before any money is taken back: what is not there can't be sent.
    await settle_afterwards(stage, at_the_door + by_command)
    async with stage.working():
        for part in in_background:
            await perform(stage, part, next(fate))
        in_line = Fate.LOSES_THE_DATABASE if Fate.LOSES_THE_DATABASE in fates else Fate.DIES
        for one in under_a_lease:
            await perform(stage, (one,), in_line)
    plays = sum(in_background, at_the_door + by_command + under_a_lease)
    await settle_afterwards(stage, plays)
    changing = [one.order.name for one in plays if one.deed in (CHANGES, CHANGE_IS_FOUND)]
    return await differences(stage, changing, [one.order.name for one in plays if one.deed is IS_PAID_OUT])


@long
@pytest.mark.parametrize("fates", EACH_FATE)
async def test_bank_books_and_shop_agree_whatever_happens_at_a_point(tmp_path: Path, fates: list[Fate]) -> None:
    async with staged(tmp_path, Cast(forks=8)) as stage:
        parts = (CHANGES_AT_THE_DOOR, BY_COMMAND, UNDER_A_LEASE, OF_OPENED, OF_DECIDED)
        found = await found_after(stage, fates, *map(played, parts))
        assert not found, "\n".join(found)
        assert await check(stage) == ""
        assert stage.receiver.forged == 0
        assert unforeseen(stage.web, *stage.workers, outages=stage.outages) == []
        assert await stage.web.stop() == 0


@long
async def test_each_planted_bug_is_found_by_its_play(tmp_path: Path) -> None:
    disputed, changes, paid_out = BUGS.values()
    async with staged(tmp_path, Cast(bugs=list(BUGS))) as stage:
        found = await found_after(stage, [Fate.DIES], (changes,), (paid_out,), (disputed,))
    missed = [bug for bug, said in SAYS.items() if not any(one.startswith(said) for one in found)]
    assert not missed, "\n".join(found)


def test_what_shows_a_bug_is_played_without_it_too() -> None:
    assert set(BUGS.values()) <= {*CHANGES_AT_THE_DOOR, *UNDER_A_LEASE, *BY_COMMAND}
